"""Health checks of Gaussians: their divergences, and whether one has collapsed onto a few rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.health import Finding, Support, component_phrase
from headwater.families.gaussian_records import GaussianPrior, GaussianStatistics, masses

COLLAPSE_RATIO = 1e-6  # variance of a component over that of most rows: a thousandth of their standard deviation
FLOOR_FACTOR = 2.0  # times the floor under variances; below it, the floor decides
USUAL_QUANTILE = (
    0.6  # of the weight, by which the usual variance of a column is found: outlying or wide components do not count
)
COARSE_FLOOR_RATIO = 0.1  # of the usual variance; so high a floor affects all components
LEAST_LOADING = 0.3  # of a column in the thinnest direction, to be named in the sentence
LEAST_VARIANCE = 1e-300
ROUNDING_ERROR = 1e-12  # of the size of a value; a column that varies less is constant
NAMED_COLUMNS = 6  # in one sentence


@dataclass(frozen=True)
class GaussianChecks:
    """Gaussians with means (K, d) and covariances: matrices (K, d, d) or (d, d), or else variances (K, d) or (K,).

    `floor` is what keeps variances from vanishing, if that may decide about them, and `parameters` those of one component.
    """

    rows: Array
    means: Array
    covariances: Array
    matrix: bool
    names: Sequence[str]
    parameters: float
    floor: float = 0.0
    floor_name: str = "reg_covar"
    word: str = "component"
    constant: tuple[int, ...] = ()  # columns that have one value in all rows
    spherical: bool = False  # one variance for all columns of a component, in their own units or in those of the data
    rounds: bool = False  # whether a resolution could be given for columns that are rounded

    @property
    def variances(self) -> Array:
        """Variance of each column in each component."""
        if self.matrix:
            return np.broadcast_to(np.diagonal(self.covariances, axis1=-2, axis2=-1), self.means.shape)
        columns = self.covariances[:, None] if self.covariances.ndim == 1 else self.covariances
        return np.broadcast_to(columns, self.means.shape)

    def support(self) -> Support:
        """Rows of each, and the parameters it has."""
        return Support(self.rows, "rows", np.full(len(self.rows), self.parameters))

    def divergences(self) -> tuple[Array, Array]:
        """Jeffreys' divergences of the Gaussians."""
        k, width = self.means.shape
        units = np.sqrt(np.maximum(self._usual(), LEAST_VARIANCE))
        means = (self.means - self.means.mean(axis=0)) / units
        shapes, along = np.empty((k, k)), np.empty((k, k))  # of b in the metric of a
        if self.matrix:
            scaled = np.broadcast_to(self.covariances / units / units[:, None], (k, width, width))
            inverses = np.broadcast_to(_inverse(self.covariances / units / units[:, None]), (k, width, width))
            shapes = inverses.reshape(k, -1) @ scaled.reshape(k, -1).T
        for a in range(k):
            gap = means - means[a]
            if self.matrix:
                along[a] = ((gap @ inverses[a]) * gap).sum(axis=1)
            else:
                variances = np.maximum(self.variances / units**2, LEAST_VARIANCE)
                shapes[a] = (variances / variances[a]).sum(axis=1)
                along[a] = (gap**2 / variances[a]).sum(axis=1)
        found = 0.5 * (shapes + shapes.T - 2.0 * width + along + along.T)
        return np.where(np.isfinite(found), np.maximum(found, 0.0), np.inf), np.zeros((k, k))

    def degenerate_findings(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """Components that are thin in some direction; if all are, it is the columns that say nothing. So are constant ones."""
        if self.constant:
            kept = np.setdiff1d(np.arange(self.means.shape[1]), self.constant)
            return [self._flat(alive), *(self._without(kept).degenerate_findings(alive) if len(kept) else [])]
        usual, variances = np.maximum(self._usual(), LEAST_VARIANCE), self.variances
        if not self.matrix:
            ratios, lowest = (variances / usual).min(axis=1), variances.min(axis=1)
            return self._degenerate(alive, ratios, lowest, [(int(at),) for at in (variances / usual).argmin(axis=1)])
        units, k = np.sqrt(usual), len(self.means)
        scaled, shared = self.covariances / units / units[:, None], self.covariances.ndim == 2
        ratios, lowest = np.full((2, k), np.inf)
        telling: list[tuple[int, ...]] = [()] * k
        for one in np.flatnonzero(alive)[: 1 if shared else k]:
            matrix = scaled if shared else scaled[one]
            if np.isfinite(matrix).all():
                values, vectors = np.linalg.eigh(matrix)
                thinnest, which = vectors[:, 0], slice(None) if shared else slice(one, one + 1)
                order = np.argsort(-np.abs(thinnest), kind="stable")[:4]
                columns = tuple(int(at) for at in order if abs(thinnest[at]) > LEAST_LOADING)
                ratios[which], telling[which] = values[0], [columns] * (k if shared else 1)
                lowest[which] = values[0] / max(
                    float(((thinnest / units) ** 2).sum()), LEAST_VARIANCE
                )  # in the units of the columns
        return self._degenerate(alive, ratios, lowest, telling)

    def _without(self, kept: NDArray[np.int64]) -> GaussianChecks:
        """The same of some of the columns."""
        covariances = self.covariances
        if self.matrix:
            covariances = covariances[..., kept[:, None], kept]
        elif covariances.ndim == 2:
            covariances = covariances[:, kept]
        names = [self.names[at] for at in kept]
        return replace(self, means=self.means[:, kept], covariances=covariances, names=names, constant=())

    def _flat(self, alive: NDArray[np.bool_]) -> Finding:
        where, several = [str(self.names[at]) for at in self.constant], len(self.constant) > 1
        have, carry, them = ("have", "carry", "them") if several else ("has", "carries", "it")
        if len(where) > NAMED_COLUMNS:
            where = [*where[:NAMED_COLUMNS], f"{len(where) - NAMED_COLUMNS} more"]
        by = f"{self.floor_name} ({self.floor:g})" if self.floor else "the prior"
        effect = f"scores there are decided by {by}"
        if self.spherical and len(self.constant) < self.means.shape[1]:  # the other columns decide the variance
            lower = "lower" if several else "lowers"
            effect = f"{'they' if several else 'it'} {lower} the one variance that all columns of a {self.word} share"
        sentence = (
            f"Column{'s' * several} {_join_names(where)} {have} one value in all rows and {carry} no information: {effect}, "
            f"so leave {them} out."
        )
        which = tuple(int(k) for k in np.flatnonzero(alive))
        return Finding("flat", which, sentence, self.floor > 0.0, {"columns": float(len(self.constant))})

    def _degenerate(
        self, alive: NDArray[np.bool_], ratios: Array, lowest: Array, columns: Sequence[tuple[int, ...]]
    ) -> list[Finding]:
        which = [int(k) for k in np.flatnonzero(alive & ((ratios < COLLAPSE_RATIO) | (lowest <= FLOOR_FACTOR * self.floor)))]
        if not which:
            return []
        worst = min(which, key=lambda k: float(ratios[k]))
        deviation, part = (float(np.sqrt(max(float(one[worst]), 0.0))) for one in (lowest, ratios))
        floored = bool(lowest[worst] <= FLOOR_FACTOR * self.floor)
        numbers = {"deviation": deviation, "of_usual": part, **({"floor": self.floor} if floored else {})}
        where = _join_names([str(self.names[at]) for at in columns[worst]])
        if floored and ratios[worst] > COARSE_FLOOR_RATIO:
            sentence = self._coarse(which, where)
        elif len(which) == int(alive.sum()) and len({columns[k] for k in which}) == 1:
            several = len(columns[worst]) > 1
            what = f"Columns {where} are almost linearly dependent" if several else f"Column {where} hardly varies"
            by = f"{self.floor_name} ({self.floor:g})" if floored else "the prior, and by rounding"
            sentence = (
                f"{what} in every {self.word} (a standard deviation of {deviation:.2g} is left): scores there are decided by "
                f"{by}, so leave a column out."
            )
        else:
            share = f"as thin as {self.floor_name} allows" if floored else f"{part:.1e} of what is usual"
            remedy = f"raise {self.floor_name}, or give a resolution" if self.rounds else f"or raise {self.floor_name}"
            have, its = ("have", "the thinnest has") if len(which) > 1 else ("has", "it has")
            sentence = (
                f"{component_phrase(self.word, which)} {have} collapsed: {its} a standard deviation of {deviation:.2g} "
                f"in {where}, {share}. Its density is almost unbounded: look for repeated rows, {remedy}."
            )
            return [Finding("collapsed", tuple(which), sentence, True, numbers)]
        return [Finding("flat", tuple(which), sentence, floored, numbers)]

    def _coarse(self, which: list[int], where: str) -> str:
        are, them = ("are", "them") if len(which) > 1 else ("is", "it")
        return (
            f"{component_phrase(self.word, which)} {are} as wide in {where} as {self.floor_name} ({self.floor:g}) makes "
            f"{them}, whatever the rows: lower it, change the units, or set scale_columns=True."
        )

    def _usual(self) -> Array:
        """The variance of each column over most rows, without outliers."""
        weights = np.maximum(self.rows, 0.0)
        weights = weights / weights.sum() if weights.sum() > 0.0 else np.full(len(weights), 1.0 / len(weights))
        squares = self.variances + (self.means - _quantile(self.means, weights, 0.5)) ** 2
        return _quantile(squares, weights, USUAL_QUANTILE)


def constant_columns(statistics: GaussianStatistics, prior: GaussianPrior, matrix: bool) -> tuple[int, ...]:
    """Return the columns that have had one value in all rows, by their moments about the origin of the prior."""
    count = np.maximum(masses(statistics, "full" if matrix else "diag")[0].sum(axis=0), LEAST_VARIANCE)
    mean = statistics.first.sum(axis=0) / count
    second = np.diagonal(statistics.second, axis1=-2, axis2=-1) if matrix else statistics.second
    spread = second.reshape(-1, len(mean)).sum(axis=0) / count - mean**2
    size = np.abs(prior.origin) / (prior.units if prior.units.size else 1.0) + np.abs(mean)
    return tuple(int(at) for at in np.flatnonzero(spread <= (ROUNDING_ERROR * size) ** 2))


def _quantile(values: Array, weights: Array, level: float) -> Array:
    """The value of each column (K, d) below which this share of the weights lies."""
    order = np.argsort(values, axis=0, kind="stable")
    below = np.cumsum(weights[order], axis=0)
    first = np.minimum((below < level - 1e-12).sum(axis=0), len(values) - 1)
    return np.asarray(np.take_along_axis(np.take_along_axis(values, order, axis=0), first[None], axis=0)[0])


def _inverse(matrices: Array) -> Array:
    try:
        return np.asarray(np.linalg.inv(matrices), dtype=float)
    except np.linalg.LinAlgError:
        return np.full(matrices.shape, np.nan)


def _join_names(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0] if names else "some direction"
