"""
Drift: a model that detects a change
====================================

With ``half_life="auto"`` every component watches how its rows score. When they score unlike
before, that component forgets its old rows and follows; the others keep all they know.
Without drift nothing is forgotten.
"""

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw

# %%
# One of three groups moves
# -------------------------
# After 30,000 rows the second group begins to move, and it comes to rest 20,000 rows later.

rng = np.random.default_rng(10)
number = 80_000
centres = np.array([[0.0, 0.0], [5.0, 0.0], [2.5, 5.0]])
moved = 4.0 * np.clip((np.arange(number) - 30_000) / 20_000, 0.0, 1.0)
group = rng.integers(3, size=number)
rows = centres[group] + 0.7 * rng.normal(size=(number, 2))
rows[:, 1] -= np.where(group == 1, moved, 0.0)

# %%
# Three models on the same stream
# -------------------------------
# ``update`` scores each row before it is learned. The mean of these scores is an
# honest measure.

models = {
    "never forgets": hw.GaussianMixture(3, random_state=0),
    "half_life=2000": hw.GaussianMixture(3, half_life=2000, random_state=0),
    'half_life="auto"': hw.GaussianMixture(3, half_life="auto", random_state=0),
}
scores, places = {}, {}
for name, model in models.items():
    scores[name], places[name] = [], []
    for chunk in np.array_split(rows, 160):
        scores[name].append(np.nanmean(model.update(chunk)))
        places[name].append(
            model.means_[np.argmin(np.linalg.norm(model.means_ - [5.0, -2.0], axis=1))]
        )
print(models['half_life="auto"'].health_)

# %%
# Where each thinks the moving group is
# -------------------------------------

seen = np.arange(500, number + 1, 500)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
left.plot(np.arange(number), -moved, color="black", linestyle="--", label="true place")
for color, name in zip(("#999999", "#E69F00", "#0072B2"), models, strict=True):
    left.plot(seen, np.array(places[name])[:, 1], color=color, label=name)
    smooth = np.convolve(scores[name], np.ones(8) / 8, mode="valid")
    right.plot(seen[7:], smooth, color=color, label=name)
left.set_ylabel("second coordinate of the moving group")
right.set_ylabel("score before learning, nats per row")
right.set_ylim(-4.6, None)
for ax in (left, right):
    ax.axvspan(30_000, 50_000, color="0.93")
    ax.set_xlabel("rows")
    ax.legend()
plt.show()
