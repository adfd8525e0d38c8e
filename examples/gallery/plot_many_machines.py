"""
Many machines: learn apart, then merge
======================================

Four sites collect data that must not leave them, or four processes read four files. Each
learns on its own. What they have learned is small and adds up: ``hw.merge`` makes one model
of it.
"""

import matplotlib.pyplot as plt
import numpy as np

import headwater as hw
from headwater import plotting

# %%
# Four sites
# ----------
# Every site sees its own mix of five groups. None of them sees all groups often.

rng = np.random.default_rng(9)
centres = np.array([[0.0, 0.0], [6.0, 0.5], [3.0, 5.0], [-2.5, 5.5], [8.0, 6.0]])
mixes = (
    np.array(
        [
            [8, 1, 0.3, 0.3, 0.4],
            [0.3, 8, 1, 0.3, 0.4],
            [0.4, 0.3, 8, 1, 0.3],
            [0.3, 0.4, 0.3, 4, 5],
        ]
    )
    / 10.0
)


def rows_of(site, number):
    group = rng.choice(5, size=number, p=mixes[site])
    return centres[group] + rng.normal(scale=0.8, size=(number, 2))


sites = [rows_of(site, 10_000) for site in range(4)]
held_out = np.concatenate([rows_of(site, 2_000) for site in range(4)])

# %%
# One start for all
# -----------------
# A small sample of rows gives the components their names. ``branch()`` makes a model that
# begins there, and whose results can be added to those of other branches, exactly. A model
# can travel as a file: ``model.save("site.hw")``, ``hw.load("site.hw")``.

sample = np.concatenate([rows[:500] for rows in sites])
start = hw.GaussianMixture(5, random_state=0).warm_start_from(sample)
models = [start.branch().partial_fit(rows[500:]) for rows in sites]
together = hw.merge(models)
print(together.merge_report_)

# %%
# Is it as good as one machine that has seen everything?

alone = hw.GaussianMixture(5, random_state=0).partial_fit(
    rng.permutation(np.concatenate(sites))
)
scores = {f"site {site + 1}": model.score(held_out) for site, model in enumerate(models)}
scores |= {"merged": together.score(held_out), "all on one": alone.score(held_out)}
for name, score in scores.items():
    print(f"{name:12} {score:.3f} nats per row")

# %%
# On a cluster
# ------------
# With Dask (``pip install 'headwater[dask]'``) one line does all of this, from files that
# the workers read:
#
# .. code-block:: python
#
#     model = hw.distributed.fit(hw.GaussianMixture(5), "days/*.parquet", client=client)

figure, axes = plt.subplots(
    1, 6, figsize=(14, 3), width_ratios=(1, 1, 1, 1, 1, 1.3), layout="constrained"
)
for (name, model), rows, ax in zip(
    [*zip(scores, models, strict=False), ("merged", together)],
    [*sites, held_out],
    axes[:5],
    strict=True,
):
    plotting.ellipses(model, rows[:2000], ax=ax)
    ax.set(
        title=name,
        xlabel="",
        ylabel="",
        xlim=(-6, 11.5),
        ylim=(-4, 10),
        xticks=[],
        yticks=[],
    )
axes[5].plot(list(scores.values()), list(scores), "o", color="#0072B2")
axes[5].invert_yaxis()
axes[5].grid(axis="x", color="0.9")
axes[5].set_xlabel("held-out score, nats per row")
plt.show()
