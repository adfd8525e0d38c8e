"""
Sorted files: one pass, and the order does not matter
=====================================================

Files are often sorted: by customer, by day, by class. A learner that reads once then sees
one group after the other. Headwater keeps a bounded random sample of the rows and revises
its components by it, so a sorted file gives what a shuffled one gives.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import headwater as hw
from headwater import plotting

# %%
# A file sorted by its groups
# ---------------------------

rng = np.random.default_rng(6)
centres = np.array(
    [[0, 0], [5, 0], [10, 1], [1, 5], [6, 5], [11, 6], [3, 10], [8, 10]], dtype=float
)
group = np.sort(rng.integers(8, size=80_000))
rows = pd.DataFrame(
    centres[group] + rng.normal(scale=0.9, size=(80_000, 2)), columns=["width", "height"]
)
held_out = rows.sample(5000, random_state=0)
rows = rows.drop(held_out.index)
folder = TemporaryDirectory()
sorted_file = Path(folder.name) / "sorted.csv"
rows.to_csv(sorted_file, index=False)

# %%
# Read it once, three times
# -------------------------
# With the sample (the default), without it, and with an online EM as it is in textbooks.
# ``hw.stream`` reads the file in chunks, whatever its size.

models = {
    "headwater": hw.GaussianMixture(8, random_state=0),
    "without the sample": hw.GaussianMixture(8, reservoir=0, random_state=0),
    "textbook online EM": hw.GaussianMixture(8, algorithm="online-em", random_state=0),
}
for name, model in models.items():
    for chunk in hw.stream(sorted_file):
        model.partial_fit(chunk)
    print(f"{name:20} {model.score(held_out):.3f} nats per row")

shuffled = hw.GaussianMixture(8, random_state=0).partial_fit(
    rows.sample(frac=1.0, random_state=0)
)
print(f"{'a shuffled file':20} {shuffled.score(held_out):.3f} nats per row")

# %%
# What each has learned
# ---------------------
# Without the sample, the start was found on rows of the first group alone, and the model
# never recovers from it.

figure, axes = plt.subplots(
    1, 3, figsize=(12, 4), sharex=True, sharey=True, layout="constrained"
)
for (name, model), ax in zip(models.items(), axes, strict=True):
    plotting.ellipses(model, held_out, ax=ax)
    ax.set_title(f"{name}: {model.score(held_out):.2f} nats", fontsize="medium")
    ax.set_xlim(-3.5, 14.5)
    ax.set_ylim(-3.5, 13.5)
plt.show()
folder.cleanup()
