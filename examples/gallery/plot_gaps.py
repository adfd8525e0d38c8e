"""
Gaps: fill them, and predict any column
=======================================

A pump has run at two speeds, and some of its numbers are missing. One mixture of Gaussians
knows what the other columns say of a gap: a mean, an interval, draws, the most probable
values. The same model predicts any column from the others.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import headwater as hw

# %%
# Rows to learn from, and rows with gaps
# --------------------------------------
# Power depends on flow in two ways: one for an open valve, and one for a valve that is half
# closed. A curve through the middle would be wrong for both.

rng = np.random.default_rng(3)


def draw(number):
    """Return rows of a pump whose valve is open or half closed."""
    flow = rng.uniform(10.0, 60.0, size=number)
    closed = rng.random(number) < 0.4
    power = np.where(closed, 9.0 + 0.004 * flow**2, 2.0 + 0.10 * flow)
    vibration = np.where(closed, 3.0, 1.0)
    return pd.DataFrame(
        {
            "flow": flow,
            "power": power + 0.4 * rng.normal(size=number),
            "vibration": vibration + 0.5 * rng.normal(size=number),
        }
    )


model = hw.GaussianMixture(10, random_state=0).fit(draw(8000))
truth = draw(1500)
gaps = truth.copy()
gaps.loc[rng.random(1500) < 0.3, "power"] = np.nan
gaps.loc[rng.random(1500) < 0.3, "vibration"] = np.nan
print(gaps.isna().sum().to_dict(), "values are missing")

# %%
# What is known of each gap
# -------------------------
# The law of a gap is a mixture, so an interval may have two modes in it. Intervals hold
# what they promise.

law = model.condition(gaps)
low, high = law.interval(0.9)
inside = (truth >= low) & (truth <= high)
share = inside.to_numpy()[law.missing].mean()
print(f"{share:.1%} of {law.missing.sum()} missing values lie in their 90% interval")

# %%
# Three ways to fill them
# -----------------------
# Where the valve is not known, the mean lies between both curves, where the pump never is.
# It has the least squared error. The most probable value lies on one of the curves, and a
# draw lies on either, as often as the pump does.

missing = law.missing[:, 1]
filled = {
    method: model.impute(gaps, method=method, random_state=0)
    for method in ("mean", "mode", "sample")
}
for method, table in filled.items():
    error = np.sqrt(np.mean((table["power"] - truth["power"])[missing] ** 2))
    print(f"{method:6} error {error:.2f}, spread {table['power'].std():.2f}")
print(f"spread of the truth {truth['power'].std():.2f}")

figure, panels = plt.subplots(
    1, 3, figsize=(10, 3.6), sharex=True, sharey=True, layout="constrained"
)
for panel, (method, table) in zip(panels, filled.items(), strict=True):
    panel.plot(truth["flow"], truth["power"], ".", color="0.8", markersize=3)
    panel.plot(
        table["flow"][missing], table["power"][missing], ".", color="#D55E00", markersize=4
    )
    panel.set_title(f'method="{method}"')
    panel.set_xlabel("flow, litres per second")
panels[0].set_ylabel("power, kilowatts")
figure.suptitle("all rows in grey, filled values of power in orange")
plt.show()

# %%
# Predict a column
# ----------------
# ``regressor("power")`` is an estimator of scikit-learn, fitted. Given flow alone its
# interval holds both curves; given the vibration, too, it knows the valve.

power = model.regressor("power")
flow = np.linspace(10.0, 60.0, 200)
figure, panels = plt.subplots(
    1, 2, figsize=(10, 3.8), sharex=True, sharey=True, layout="constrained"
)
for panel, vibration, title in zip(
    panels, (np.nan, 1.0), ("vibration missing", "vibration 1"), strict=True
):
    rows = pd.DataFrame({"flow": flow, "power": np.nan, "vibration": vibration})
    known = model.condition(rows)
    least, most = known.interval(0.9)
    panel.plot(truth["flow"], truth["power"], ".", color="0.8", markersize=3)
    panel.fill_between(flow, least[:, 1], most[:, 1], color="#0072B2", alpha=0.2)
    panel.plot(flow, known.mean[:, 1], color="#0072B2", label="mean, and 90% interval")
    panel.set_title(title)
    panel.set_xlabel("flow, litres per second")
panels[0].set_ylabel("power, kilowatts")
panels[0].legend(loc="upper left")
score = power.score(truth[["flow", "vibration"]], truth["power"])
print(f"R² of power, given flow and vibration: {score:.2f}")
plt.show()

# %%
# Explain an odd row
# ------------------
# ``explain`` says of each entry how probable one so far off is, given the other columns of
# its row, and what they expect. Of three pumps one draws twice the power that its flow and
# its vibration ask for; one lacks its flow, and is odd for nothing.

odd = pd.DataFrame(
    {"flow": [30.0, 30.0, np.nan], "power": [5.0, 10.0, 5.0], "vibration": [1.0, 1.0, 1.0]},
    index=["as usual", "odd", "flow missing"],
)
reasons = model.explain(odd)
for name, tail, expected in zip(
    odd.index, reasons.tail[:, 1], reasons.expected[:, 1], strict=True
):
    print(f"{name}: power {expected:.1f} expected, as far off with probability {tail:.2g}")
