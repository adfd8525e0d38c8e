"""
Cytometry: cell populations, one of them rare
=============================================

A flow cytometer measures millions of cells, sample by sample. A mixture finds the
populations, also when one cell in two hundred belongs to the one you look for.
``n_components="auto"`` finds how many there are.
"""

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw
from headwater import plotting

# %%
# Four samples
# ------------
# Three markers for each cell, on a scale that is already transformed (for raw intensities
# use ``np.arcsinh(intensity / 150)``). The rare population is on its way up from sample to
# sample.

rng = np.random.default_rng(4)
centres = np.array(
    [[1.0, 1.2, 0.8], [4.0, 1.0, 3.5], [3.6, 4.4, 1.0], [1.2, 4.0, 4.2], [5.6, 5.8, 4.6]]
)
spreads = np.array(
    [[0.5, 0.4, 0.4], [0.5, 0.4, 0.6], [0.4, 0.5, 0.4], [0.4, 0.5, 0.5], [0.25, 0.25, 0.3]]
)
markers = ["CD3", "CD8", "CD45RA"]


def sample_of_cells(number, rare):
    shares = np.array([0.45, 0.25, 0.2, 0.1]) * (1.0 - rare)
    population = rng.choice(5, size=number, p=[*shares, rare])
    return centres[population] + spreads[population] * rng.normal(size=(number, 3))


rare = [0.002, 0.004, 0.006, 0.012]
samples = [sample_of_cells(25_000, share) for share in rare]

# %%
# One model for all samples
# -------------------------
# Each sample is read once. The model shows the populations, and credible intervals
# of their shares.

model = hw.GaussianMixture("auto", random_state=0)
for cells in samples:
    model.partial_fit(cells)
print(model.n_components_, "populations")
print("growth:", model.growth_.sentence)
model.describe()

# %%
# Shares in each sample
# ---------------------
# The rare population is the one with the smallest weight.

smallest = int(np.argmin(model.weights_))
found = [np.mean(model.predict(cells) == smallest) for cells in samples]

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
for ax, columns in ((left, (0, 1)), (middle, (0, 2))):
    plotting.ellipses(model, samples[0], columns, ax)
    ax.set_xlabel(markers[columns[0]])
    ax.set_ylabel(markers[columns[1]])
    ax.annotate(
        "rare",
        model.means_[smallest, list(columns)],
        (-62, 4),
        textcoords="offset points",
        arrowprops={"arrowstyle": "->"},
    )
left.set_title("populations, first two markers")
middle.set_title("first and third marker")
places = np.arange(4)
right.bar(
    places - 0.2,
    100 * np.array(found),
    width=0.4,
    color=plotting.PALETTE[smallest % 8],
    label="found",
)
right.bar(
    places + 0.2,
    100 * np.array(rare),
    width=0.4,
    color="0.75",
    label="expected of the simulation",
)
right.set_xticks(places, [f"sample {place + 1}" for place in places])
right.set_ylabel("rare population, percent of the cells")
right.legend()
right.set_title("a rare population grows")
plt.show()
