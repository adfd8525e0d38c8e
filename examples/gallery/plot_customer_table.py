"""
A table as it comes: groups of customers
========================================

Tables of a shop have numbers, categories, yes and no, and counts.
:class:`headwater.MixedMixture` takes them as they are, in one pass: without encoding or
scaling, and ids are left out.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import headwater as hw

# %%
# Three kinds of customers
# ------------------------

rng = np.random.default_rng(1)
n = 6000
kind = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
channel = np.array(["shop", "web", "phone"])
chances = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.2, 0.5]])
table = pd.DataFrame(
    {
        "age": rng.normal(np.array([45, 28, 70])[kind], np.array([9, 5, 6])[kind]),
        "spends": rng.normal(np.array([60, 35, 90])[kind], np.array([15, 10, 25])[kind]),
        "channel": [channel[rng.choice(3, p=chances[one])] for one in kind],
        "newsletter": rng.random(n) < np.array([0.3, 0.8, 0.1])[kind],
        "visits": rng.poisson(np.array([4, 9, 2])[kind]),
    }
)
print(table.head())

# %%
# One pass
# --------
# The number of groups is found from the rows. Counts are counts only if we say so.

model = hw.MixedMixture("auto", columns={"visits": "poisson"}, random_state=0)
for start in range(0, n, 1000):
    model.partial_fit(table[start : start + 1000])
print(model.describe())

# %%
# Do the groups agree with the kinds that we drew? Each row a group, each column a kind.

groups = model.predict(table)
print(pd.crosstab(groups, kind, rownames=["group"], colnames=["kind"]))

# %%
# What tells the groups apart
# ---------------------------

order = np.argsort(-model.weights_)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
for k in order:
    axes[0].scatter(
        *table[groups == k][["age", "spends"]].to_numpy()[:300].T,
        s=4,
        label=f"{model.weights_[k]:.0%}",
    )
axes[0].set(xlabel="age", ylabel="spends", title="numbers")
axes[0].legend(title="group", markerscale=3)
places = np.arange(len(model.categories_["channel"]))
for at, k in enumerate(order):
    axes[1].bar(places + 0.25 * at, model.probabilities_["channel"][k], width=0.25)
axes[1].set(title="channel", ylabel="probability")
axes[1].set_xticks(places + 0.25, model.categories_["channel"])
axes[2].bar(
    np.arange(len(order)),
    model.rates_["visits"][order],
    color=[f"C{at}" for at in range(len(order))],
)
axes[2].set(title="visits", ylabel="rate", xlabel="group")
axes[2].set_xticks(np.arange(len(order)))
plt.show()

# %%
# Odd rows
# --------
# A customer who is young, spends much and comes by phone fits no group.

odd = pd.DataFrame(
    [{"age": 20.0, "spends": 150.0, "channel": "phone", "newsletter": False, "visits": 15}]
)
print(
    "score of the odd row:",
    model.score_samples(odd).round(1),
    "usual:",
    np.median(model.score_samples(table)).round(1),
)
