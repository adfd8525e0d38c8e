"""
How sure is the model?
======================

After a hundred rows a model knows little, after a hundred thousand it knows much.
``credible_intervals`` says how much: of weights and means, at any moment of the stream.
"""

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw

# %%
# Intervals while the rows come
# -----------------------------
# Three groups with weights 0.5, 0.3 and 0.2. We ask for 90 percent intervals after 100,
# 300, 1,000 ... rows.

rng = np.random.default_rng(14)
truth, centres = np.array([0.5, 0.3, 0.2]), np.array([[0.0, 0.0], [6.0, 0.0], [3.0, 6.0]])
group = rng.choice(3, size=100_000, p=truth)
rows = centres[group] + rng.normal(size=(100_000, 2))

moments = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000]
model = hw.GaussianMixture(3, warm_up=100, random_state=0)
intervals, at = [], 0
for moment in moments:
    model.partial_fit(rows[at:moment])
    at = moment
    order = [
        int(np.argmin(np.linalg.norm(model.means_ - centre, axis=1))) for centre in centres
    ]
    intervals.append(
        model.credible_intervals(0.9).weights[order]
    )  # low and high of each group

# %%
# Intervals shrink with the square root of the rows. These groups lie apart. Where groups
# overlap, a row says less, since nobody knows its group, and the intervals are wider.

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
for k, color in enumerate(("#0072B2", "#E69F00", "#009E73")):
    low, high = np.array(intervals)[:, k].T
    ax.fill_between(moments, low, high, color=color, alpha=0.3)
    ax.plot(moments, (low + high) / 2, "o-", color=color, label=f"group {k + 1}")
    ax.axhline(truth[k], color=color, linestyle="--", linewidth=1)
ax.set_xscale("log")
ax.set_xlabel("rows learned")
ax.set_ylabel("weight, with 90 percent credible interval")
ax.set_title("dashed: the truth")
ax.legend()
plt.show()
