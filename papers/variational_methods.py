"""The data, the settings and the methods of paper 004's example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal

import headwater as hw
from headwater.core.statistics import Array

CLUSTERS, COMPONENTS, ROWS, HELD_OUT = 5, 20, 3000, 5000
ACTIVE_WEIGHT = 1 / (2 * COMPONENTS)
LEAST_WEIGHT = 0.1
WARM_UP = 400
DEGREES_OF_FREEDOM = 4.0


# The data


@dataclass(frozen=True)
class DataSet:
    rows: Array
    held_out: Array
    weights_: Array
    means_: Array
    covariances_: Array
    seed: int
    covariance_type: str = "full"

    @classmethod
    def drawn(cls, seed: int, least_distance: float) -> DataSet:
        """Means in a square of side 12, at least so far apart; slanted clusters of 0.4 to 1 standard deviations."""
        rng = np.random.default_rng(np.random.SeedSequence((4, seed)))
        while True:
            means = rng.uniform(-6.0, 6.0, size=(CLUSTERS, 2))
            gaps = np.linalg.norm(means[:, None] - means, axis=2)[np.triu_indices(CLUSTERS, 1)]
            if gaps.min() >= least_distance:
                break
        turn = rng.uniform(0.0, np.pi, size=CLUSTERS)
        axes = np.moveaxis(np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]), 2, 0)
        deviations = rng.uniform(0.4, 1.0, size=(CLUSTERS, 1, 2))
        covariances = (axes * deviations**2) @ axes.swapaxes(1, 2)
        weights = LEAST_WEIGHT + (1.0 - CLUSTERS * LEAST_WEIGHT) * rng.dirichlet(np.full(CLUSTERS, 3.0))
        cluster = rng.choice(CLUSTERS, size=ROWS + HELD_OUT, p=weights)
        noise = rng.standard_normal((ROWS + HELD_OUT, 2))
        rows = means[cluster] + np.einsum("nij,nj->ni", np.linalg.cholesky(covariances)[cluster], noise)
        return cls(rows[:ROWS], rows[ROWS:], weights, means, covariances, seed)

    @property
    def truth_score(self) -> float:
        joint = [
            np.log(weight) + multivariate_normal(mean, covariance).logpdf(self.held_out)
            for weight, mean, covariance in zip(self.weights_, self.means_, self.covariances_, strict=True)
        ]
        return float(np.logaddexp.reduce(joint, axis=0).mean())


# The settings


@dataclass(frozen=True)
class Settings:
    """The prior of every method, the order of the rows and how close clusters may be. Scale None: the library's own."""

    concentration: float = 0.05
    scale: float | None = 0.1
    mean_precision: float | None = 0.1
    least_distance: float = 3.5
    sort: bool = False

    def data(self, seed: int) -> DataSet:
        made = DataSet.drawn(seed, self.least_distance)
        return replace(made, rows=made.rows[np.argsort(made.rows[:, 0])]) if self.sort else made

    def prior(self, data: DataSet) -> dict[str, Any]:
        covariance = None
        if self.scale is not None:
            covariance = DEGREES_OF_FREEDOM * self.scale * data.rows.var(axis=0).mean() * np.eye(2)
        return {
            "weight_concentration_prior": self.concentration,
            "mean_precision_prior": self.mean_precision,
            "degrees_of_freedom_prior": DEGREES_OF_FREEDOM,
            "covariance_prior": covariance,
            "random_state": data.seed,
        }


OTHERS = {
    "prior scale 0.02": Settings(scale=0.02),
    "prior scale 0.05": Settings(scale=0.05),
    "prior scale 0.2": Settings(scale=0.2),
    "prior scale and mean precision left to the library": Settings(scale=None, mean_precision=None),
    "weight concentration 1": Settings(concentration=1.0),
    "mean precision 0.01": Settings(mean_precision=0.01),
    "closer clusters: means at least 2 apart": Settings(least_distance=2.0),
    "rows sorted by their first column": Settings(sort=True),
}


# The methods


def batch(data: DataSet, prior: dict[str, Any]) -> hw.GaussianMixture:
    return _batch(data.rows, prior)


def after_batch(data: DataSet, prior: dict[str, Any]) -> hw.GaussianMixture:
    model = _batch(data.rows[:WARM_UP], prior)
    return model.set_params(algorithm="online-vb").partial_fit(data.rows[WARM_UP:])


def warmed(data: DataSet, prior: dict[str, Any]) -> hw.GaussianMixture:
    return hw.GaussianMixture(COMPONENTS, algorithm="online-vb", warm_up=WARM_UP, **prior).partial_fit(data.rows)


def barely_warmed(data: DataSet, prior: dict[str, Any]) -> hw.GaussianMixture:
    return _on_few_rows(100, prior).partial_fit(data.rows)


def cold(data: DataSet, prior: dict[str, Any]) -> hw.GaussianMixture:
    return _on_few_rows(0, prior).partial_fit(data.rows)


def seeded(worth: float) -> Callable[[DataSet, dict[str, Any]], hw.GaussianMixture]:
    """Each component begins as one labelled row of little weight; then all rows stream."""

    def learn(data: DataSet, prior: dict[str, Any]) -> hw.GaussianMixture:
        seeds, labels = data.rows[:COMPONENTS], np.arange(COMPONENTS)
        model = _on_few_rows(0, prior).partial_fit(seeds, sample_weight=np.full(COMPONENTS, worth), labels=labels)
        return model.partial_fit(data.rows)

    return learn


def _batch(rows: Array, prior: dict[str, Any]) -> hw.GaussianMixture:
    return hw.GaussianMixture(COMPONENTS, algorithm="vb", tol=1e-6, max_iter=2000, **prior).fit(rows)


def _on_few_rows(passes: int, prior: dict[str, Any]) -> hw.GaussianMixture:
    """A stream that starts on as many rows as there are components, the fewest that can seed them."""
    start = {"warm_up": COMPONENTS, "init_params": "random_from_data", "max_iter": passes}
    return hw.GaussianMixture(COMPONENTS, algorithm="online-vb", **start, **prior)


@dataclass(frozen=True)
class Method:
    name: str
    meaning: str
    learn: Callable[[DataSet, dict[str, Any]], hw.GaussianMixture]


def without_warm_up(worth: float) -> Method:
    return Method(
        f"no warm-up, seeds of weight {worth:g}",
        f"each of the first {COMPONENTS} rows is given to one component as its seed, at {worth:g} of a row's weight "
        f"(`sample_weight` and `labels`, `warm_up={COMPONENTS}, max_iter=0`); then all rows stream by "
        '`algorithm="online-vb"`, these included',
        seeded(worth),
    )


BATCH = Method(
    "batch VB",
    '`algorithm="vb"`: passes over all rows, from one k-means seed, until the free energy per row gains less than 1e-6',
    batch,
)
AFTER_BATCH = Method(
    f"batch VB on {WARM_UP} rows, then online",
    f'`algorithm="vb"` on the first {WARM_UP} rows, then `algorithm="online-vb"` row by row over the others',
    after_batch,
)
WARMED = Method(
    f"online VB, warm-up of {WARM_UP} rows",
    f'`algorithm="online-vb", warm_up={WARM_UP}`: the library finds a start on the first {WARM_UP} rows (k-means seeds, '
    "passes of variational Bayes, the best one chosen), counts these rows once, and goes on row by row",
    warmed,
)
BARELY = Method(
    f"online VB, warm-up of {COMPONENTS} rows",
    f'the same with `warm_up={COMPONENTS}, init_params="random_from_data"`: as many rows as components, the fewest that '
    "can seed them, but with passes over these rows",
    barely_warmed,
)
WEAK = without_warm_up(0.1)
COLD = Method(
    "no warm-up, first rows as seeds",
    f'`warm_up={COMPONENTS}, init_params="random_from_data", max_iter=0`: each of the first {COMPONENTS} rows is the '
    "centre of a component, no pass is made to improve on that, and every row, these included, counts once",
    cold,
)
METHODS = (BATCH, AFTER_BATCH, WARMED, BARELY, WEAK, COLD)
STREAMS = (AFTER_BATCH, WARMED, WEAK, COLD)
PANELS = (BATCH, WARMED, WEAK, COLD)
WORTHS = (1.0, 0.3, 0.1, 0.03, 0.01)


def active_components(model: Any) -> Array:
    return np.flatnonzero(model.weights_ > ACTIVE_WEIGHT)
