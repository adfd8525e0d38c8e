"""
Anomalies: how odd, how many, and why
=====================================

A model that has learned a stream knows how odd usual rows are. So it can give a new row a
p-value, call rows odd at a rate that you choose, and say which column is to blame.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import headwater as hw

# %%
# A machine that idles or works
# -----------------------------
# The columns depend on one another: a pump that draws more current shakes more.

rng = np.random.default_rng(8)
modes = np.array([[60.0, 2.0, 30.0], [75.0, 3.5, 55.0]])  # idle, at work
spread = np.array([[9.0, 0.4, 3.0], [0.4, 0.04, 0.3], [3.0, 0.3, 4.0]])


def draw(number, warmer=0.0):
    noise = rng.multivariate_normal(np.zeros(3), spread, size=number)
    rows = modes[rng.integers(2, size=number)] + noise + [warmer, 0.0, 0.0]
    return pd.DataFrame(rows, columns=["heat", "vibration", "current"])


model = hw.GaussianMixture("auto", random_state=0)
for _ in range(20):
    model.partial_fit(draw(1000))
print(model)

# %%
# One table, of which one row in a hundred is broken
# --------------------------------------------------
# In these rows vibration is wrong, by little or by much. ``rate`` is the share of usual
# rows that are called odd, whatever else is in the table. ``fdr`` is the share of the rows
# called odd that are usual: it follows how much there is to find.

today = draw(5000)
broken = np.arange(5000) % 100 == 0
today.loc[broken, "vibration"] += rng.choice([-1, 1], 50) * rng.uniform(0.1, 0.9, 50)
for setting in ({"rate": 0.01}, {"rate": 0.001}, {"fdr": 0.2}):
    odd = model.decide(today, **setting)
    print(f"{setting}: {odd.sum()} odd, {broken[odd].sum()} of them broken")

# %%
# Why? ``explain`` compares each value with what the others of its row predict.

oddest = today.iloc[model.anomaly_pvalue(today).argsort()[:3]]
print(model.explain(oddest).top(1))

# %%
# Somebody who knows looks at the three oddest rows, and says that the first is a test.
# Rows like it are less odd from now on; nothing is learned, and the density stays.

looked = model.branch().label_anomalies(oddest, [0, 1, 1])
print("before", model.anomaly_score(oddest).round(1))
print("after ", looked.anomaly_score(oddest).round(1))

# %%
# A stream that drifts
# --------------------
# A summer begins: the machine gets warmer by 8 degrees, and the model learns nothing of it.
# The threshold of ``decide`` stays where it is, and soon most rows are odd. That of
# ``decide_next`` follows, and one row in a hundred is.

stays, follows = [], []
for step in range(100):
    rows = draw(500, warmer=8.0 * np.clip((step - 20) / 40, 0.0, 1.0))
    stays.append(model.decide(rows, rate=0.01).mean())
    follows.append(model.decide_next(rows, rate=0.01).mean())

seen = np.arange(500, 50_001, 500)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
for rows, size, color, label in (
    (~broken & ~odd, 4, "0.8", "usual"),
    (broken & odd, 26, "#0072B2", "broken, and found"),
    (broken & ~odd, 26, "#E69F00", "broken, and missed"),
    (~broken & odd, 26, "#D55E00", "usual, and called odd"),
):
    left.scatter(today["current"][rows], today["vibration"][rows], size, color, label=label)
left.set_xlabel("current")
left.set_ylabel("vibration")
left.set_title("decide(fdr=0.2)", fontsize="medium")
left.legend(loc="upper left", fontsize="small")
right.plot(seen, stays, color="#E69F00", label="decide(rate=0.01)")
right.plot(seen, follows, color="#0072B2", label="decide_next(rate=0.01)")
right.axhline(0.01, color="black", linestyle=":", label="the rate")
right.set_yscale("log")
right.set_xlabel("rows")
right.set_ylabel("share of rows called odd")
right.legend(loc="upper left", fontsize="small")
plt.show()
