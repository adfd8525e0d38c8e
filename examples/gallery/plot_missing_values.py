"""
A table with holes
==================

Half of the values of a table are missing. Rows that are complete are few, and a mixture of
them alone knows little. ``GaussianMixture`` learns from all rows, as they are.
"""

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw

# %%
# Rows with gaps
# --------------
# Three groups in six columns. We remove more and more of the values at random, and learn
# from what is left: from all rows, from complete rows alone, and from rows whose gaps were
# filled with the mean of the column.

rng = np.random.default_rng(5)
roots, centres = 0.6 * rng.normal(size=(3, 6, 6)), 3.0 * rng.normal(size=(3, 6))


def draw(rows):
    group = rng.integers(3, size=rows)
    return centres[group] + np.einsum(
        "nij,nj->ni", roots[group], rng.normal(size=(rows, 6))
    )


whole, other = draw(6_000), draw(6_000)
shares = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
names = ("all rows, as they are", "complete rows alone", "gaps filled with means")
scores = {name: [] for name in names}
for share in shares:
    rows = np.where(rng.random(whole.shape) < share, np.nan, whole)
    complete = rows[~np.isnan(rows).any(axis=1)]
    filled = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    for name, given in zip(scores, (rows, complete, filled), strict=True):
        model = hw.GaussianMixture(3, random_state=0).fit(given)
        scores[name].append(model.score(other))

# %%
# The score is the mean log-density of rows without gaps that no model has seen. Filling in
# means invents rows that lie between the groups.

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
for (name, line), color in zip(
    scores.items(), ("#0072B2", "#E69F00", "#009E73"), strict=True
):
    ax.plot([100 * share for share in shares], line, "o-", color=color, label=name)
ax.set_xlabel("percent of the values that are missing")
ax.set_ylabel("score of other rows, nats")
ax.legend()
plt.show()
