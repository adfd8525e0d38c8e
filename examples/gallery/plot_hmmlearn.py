"""
From hmmlearn: a hidden Markov model of a sequence that never ends
==================================================================

``headwater.GaussianHMM`` has the names of hmmlearn: ``fit(X, lengths)``, ``decode``,
``predict``, ``transmat_``, ``means_``. It also learns a sequence that goes on and on:
``partial_fit`` continues where the last call ended, and ``filter`` says in which state the
sequence is now.
"""

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw
from headwater import plotting

# %%
# A machine with three states
# ---------------------------
# It idles, works or is jammed. We see its temperature and its current.

rng = np.random.default_rng(5)
passages = np.array([[0.97, 0.03, 0.00], [0.015, 0.97, 0.015], [0.06, 0.00, 0.94]])
means = np.array([[20.0, 1.0], [60.0, 5.0], [75.0, 9.0]])
spreads = np.array([[4.0, 0.4], [6.0, 0.8], [5.0, 1.2]])
states = np.zeros(20_000, dtype=int)
for time in range(1, len(states)):
    states[time] = rng.choice(3, p=passages[states[time - 1]])
X = means[states] + spreads[states] * rng.normal(size=(len(states), 2))

# %%
# Learn it in chunks
# ------------------
# ``update`` scores each row given all rows before it, and then learns it.

model = hw.GaussianHMM(3, random_state=0)
for chunk in np.array_split(X, 40):
    model.update(chunk)

order = np.argsort(
    model.means_[:, 0]
)  # states have no names: the coolest is idle, the hottest is jammed
print("means found:\n", model.means_[order].round(1))
print("passages found:\n", model.transmat_[np.ix_(order, order)].round(3))

# %%
# Where is the machine when the next row has come, and where will it go?

next_row = [74.0, 8.2]
print("idle, working, jammed at this row:  ", model.filter(next_row)[order].round(3))
print("idle, working, jammed in one step:  ", model.next_state_proba()[order].round(3))

# %%
# Decode
# ------
# ``decode`` finds the most probable path of states. The strip under the points is the true
# path.

_, path = model.decode(X[-600:])
found = np.argsort(order)[path]
print(
    f"{np.mean(found == states[-600:]):.1%} of the last 600 states are decoded as they were"
)

colors = np.array(plotting.PALETTE[:3])
places = [["rows", "matrix"], ["truth", "matrix"]]
sizes = {"width_ratios": (2.3, 1), "height_ratios": (7, 1)}
figure, axes = plt.subplot_mosaic(places, **sizes, figsize=(10, 4.2), layout="constrained")
for place, name in enumerate(("idle", "working", "jammed")):
    at = np.flatnonzero(found == place)
    axes["rows"].plot(
        at, X[-600:][at, 0], ".", color=colors[place], label=f"{name}: state {order[place]}"
    )
axes["rows"].set_ylabel("temperature")
axes["rows"].set_xticks([])
axes["rows"].legend(
    ncols=3, fontsize="small", loc="upper left", bbox_to_anchor=(0.0, 1.14), frameon=False
)
axes["truth"].bar(np.arange(600), 1.0, width=1.0, color=colors[states[-600:]])
axes["truth"].set_yticks([])
axes["truth"].set_ylabel("truth", rotation=0, ha="right", va="center")
axes["truth"].set_xlabel("the last 600 rows")
for side in ("rows", "truth"):
    axes[side].set_xlim(0, 600)
plotting.transitions(model, ax=axes["matrix"])
plt.show()
