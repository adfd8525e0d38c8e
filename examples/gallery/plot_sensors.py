"""
Sensors: odd rows in telemetry, and the reason
==============================================

A pump reports five numbers every second. Each number may lie in its usual range while
together they cannot be right: the pump runs fast, and the flow does not follow. A mixture
knows which values go together.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import headwater as hw

# %%
# A day of telemetry
# ------------------
# The pump has two modes. Some rows are wrong: a blocked pipe (speed without flow), and a
# sensor of temperature that sticks.

rng = np.random.default_rng(7)
number = 30_000
fast = np.repeat(rng.random(300) < 0.4, 100)
speed = np.where(fast, 2400.0, 1200.0) + 60.0 * rng.normal(size=number)
table = pd.DataFrame(
    {
        "speed": speed,
        "flow": 0.02 * speed + 0.8 * rng.normal(size=number),
        "pressure": 1.0 + 1.2e-3 * speed + 0.08 * rng.normal(size=number),
        "temperature": 30.0 + 0.012 * speed + 0.9 * rng.normal(size=number),
        "vibration": np.where(fast, 3.0, 1.2) + 0.25 * rng.normal(size=number),
    }
)
fast_rows, slow_rows = (
    np.flatnonzero(fast[20_000:]) + 20_000,
    np.flatnonzero(~fast[20_000:]) + 20_000,
)
blocked = rng.choice(fast_rows, 12, replace=False)
table.loc[blocked, "flow"] = 24.0 + rng.normal(size=12)  # a usual value of the slow mode
stuck = rng.choice(slow_rows, 12, replace=False)
table.loc[stuck, "temperature"] = 59.0 + 0.5 * rng.normal(
    size=12
)  # a usual value of the fast mode

# %%
# Learn, and keep what is usual
# -----------------------------
# A :class:`headwater.Monitor` learns as ``partial_fit`` does and remembers how rows scored
# before they were learned. Its ``threshold(0.001)`` is the score that one row in a thousand
# falls below.

monitor = hw.Monitor(hw.GaussianMixture(2, scale_columns=True, random_state=0))
for start in range(0, 20_000, 1000):
    model = monitor.learn(table[start : start + 1000])
threshold = model.history_.threshold(0.001)
print(model.health_)

# %%
# Score the new rows
# ------------------

new = table[20_000:]
score = model.score_samples(new)
odd = new.index[score < threshold]
planted = np.union1d(blocked, stuck)
hits = np.isin(planted, odd).sum()
print(f"{len(odd)} odd rows, among them {hits} of the {len(planted)} that are wrong")

# %%
# Why is a row odd?
# -----------------
# ``explain`` asks of each value what the other columns of its row expect. ``tail`` is the
# probability of a value as far out; columns are ranked by it. ``deviations`` says the same
# in standard deviations.

reasons = model.explain(new.loc[planted])
print(model.explain(new.loc[[blocked[0], stuck[0]]]).top(2))
worst = pd.Series(np.array(reasons.columns)[reasons.tail.argmin(axis=1)], index=planted)
print(
    worst[blocked].value_counts().to_dict(),
    "for a blocked pipe,",
    worst[stuck].value_counts().to_dict(),
    "for a sensor that sticks",
)
deviations = pd.DataFrame(reasons.deviations, index=planted, columns=new.columns)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
left.plot(new["speed"], new["flow"], ".", color="0.75", markersize=2, label="usual rows")
left.plot(
    new["speed"][blocked], new["flow"][blocked], "o", color="#D55E00", label="blocked pipe"
)
left.plot(
    new["speed"][stuck],
    new["flow"][stuck],
    "s",
    color="#0072B2",
    label="stuck temperature",
    markersize=5,
)
left.set_xlabel("speed, turns per minute")
left.set_ylabel("flow, litres per second")
left.set_title("every value is usual, the pair is not")
left.legend()
picture = right.imshow(
    deviations.loc[[*blocked, *stuck]].to_numpy(),
    aspect="auto",
    cmap="RdBu_r",
    vmin=-30,
    vmax=30,
)
right.set_xticks(range(5), new.columns, rotation=20)
right.set_yticks([5.5, 17.5], ["blocked\npipe", "stuck\nsensor"])
right.axhline(11.5, color="black", linewidth=1)
right.set_title("the column that makes it odd")
figure.colorbar(picture, ax=right, label="standard deviations from the prediction")
plt.show()
