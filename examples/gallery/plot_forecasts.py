"""
Forecasts: the next days of a series, and how sure they are
===========================================================

Calls to a help desk come at a rate that depends on what goes on: quiet days, busy days, and
outages. A hidden Markov model of counts forecasts how many come next, with intervals, and
its residuals say whether to believe them.
"""

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw
from headwater import plotting

# %%
# Hours of calls
# --------------
# Three regimes, each of which lasts for a while.

rng = np.random.default_rng(21)
rates = np.array([4.0, 15.0, 40.0])
passages = np.array([[0.97, 0.025, 0.005], [0.04, 0.95, 0.01], [0.0, 0.1, 0.9]])
regime = np.zeros(4000, dtype=int)
for hour in range(1, 4000):
    regime[hour] = rng.choice(3, p=passages[regime[hour - 1]])
calls = rng.poisson(rates[regime])[:, None]

model = hw.PoissonHMM(3, random_state=0).fit(calls[:3000])
print("calls an hour:", np.sort(model.lambdas_.ravel()).round(1))
print("hours that regimes last:", model.expected_durations_.round())

# %%
# A day ahead, at any hour
# ------------------------
# ``forecast`` goes on from the end of the rows that it is given. Means and quantiles are
# exact: no paths need to be drawn. How often are counts within their 90 percent intervals?
# Somewhat more often than that, since counts are whole numbers.

inside = []
for hour in range(3000, 3976, 24):
    low, high = model.forecast(24, calls[:hour]).interval(0.9)
    inside.append((low <= calls[hour : hour + 24]) & (calls[hour : hour + 24] <= high))
print(f"within 90 percent intervals: {np.mean(inside):.1%}")

# %%
# Are they right?
# ---------------
# Left: two days ahead, from the sixth hour of an outage. Nobody knows when it ends, and the
# intervals say so. Right: ``residuals`` says where each count fell in the law that was
# forecast for it an hour before. For the right model all places are equally frequent, and
# the bars are level, within the grey band. With one regime they pile up at both ends.

busy = next(hour for hour in range(3100, 4000) if (regime[hour - 6 : hour] == 2).all())
ahead = model.forecast(48, calls[:busy])
hours = np.arange(1, 49)

figure, (fan, *histograms) = plt.subplots(
    1, 3, figsize=(13, 4), width_ratios=(2, 1, 1), layout="constrained"
)
for level, shade in ((0.9, 0.2), (0.5, 0.4)):
    low, high = ahead.interval(level)
    fan.fill_between(
        hours, low.ravel(), high.ravel(), color="#0072B2", alpha=shade, label=f"{level:.0%}"
    )
fan.plot(hours, ahead.mean.ravel(), color="#0072B2", label="mean")
fan.plot(
    np.arange(-47, 1), calls[busy - 48 : busy], ".-", color="0.6", label="calls so far"
)
fan.plot(hours, calls[busy : busy + 48], ".", color="black", label="calls that came")
fan.set_xlabel("hours from now")
fan.set_ylabel("calls an hour")
fan.legend(fontsize="small")
one = hw.PoissonHMM(1, random_state=0).fit(calls[:3000])
for ax, fitted in zip(histograms, (model, one), strict=True):
    plotting.residuals(fitted.residuals(calls[3000:]), ax)
    ax.set_title(f"residuals, regimes: {fitted.n_components_}")
    ax.set_xlabel("probability of fewer calls")
plt.show()
