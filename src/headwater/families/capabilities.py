"""Capabilities of a family beyond `Family`, as protocols, and what each makes possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.contracts import ParamsIn, PriorIn
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array, Stats
from headwater.core.values import Matrix
from headwater.families.conditional_law import ConditionalLaw, Mask


@runtime_checkable
class SweepsRows(Protocol[PriorIn, Stats]):
    """Rows are learned one by one in a kernel. Without it there is a readout and an E-step for each row."""

    def sweep(
        self,
        name: str,
        prior: PriorIn,
        concentration: Array,
        batch: Batch,
        steps: Array,
        gains: Array,
        n_eff: float,
        statistics: Stats,
        average: Stats | None,
        scores: Array,
    ) -> tuple[Stats, Stats | None, float]:
        """Learn row by row; return statistics and average, as means per row, and n_eff."""


@runtime_checkable
class SweepsChains(Protocol[PriorIn, Stats]):
    """Components can be the states of a chain that is learned row by row (kernels/chain_sweep.py)."""

    def flat(self, statistics: Stats) -> Array:
        """Return statistics as one row of numbers, the counts first."""

    def unflat(self, row: Array, width: int) -> Stats:
        """Return the statistics that such a row holds."""

    def sweep_chain(
        self,
        name: str,
        prior: PriorIn,
        chain: tuple[Array, ...],
        X: Array,
        steps: Array,
        gains: Array,
        n_eff: float,
        known: bool,
        now: Array,
        given: Array,
        mean: Array,
        average: Array,
        scores: Array,
    ) -> tuple[float, Array]:
        """Learn the rows of a sequence one by one."""


@runtime_checkable
class TakesParameters(Protocol):
    """Parameters can be given by hand, all of them, by the names that the estimator has for them."""

    def with_parameters(self, given: Mapping[str, Array], found: Any) -> Any:
        """Return the given parameters; `found` are others of the same shape, or None."""

    def pseudo_rows(self, parameters: Any) -> tuple[Array, Array]:
        """Return rows (m, d) that hold as much as the parameters, and shares (m, K) of the components in them."""


@runtime_checkable
class MatchesMoments(Protocol[PriorIn, Stats]):
    """A family that can be learned by moment matching: it has "match_moments" among its readouts."""

    def split_masses(self, statistics: Stats) -> Stats:
        """Return statistics in the form that moment matching keeps, where a component's masses may differ."""

    def find_proper(self, prior: PriorIn, totals: Stats) -> NDArray[np.bool_]:
        """Return which components (K,) have a belief."""

    def match(
        self,
        prior: PriorIn,
        concentration: Array,
        batch: Batch,
        steps: Array,
        n_eff: float,
        statistics: Stats,
        scores: Array,
        projection: tuple[str, str],
    ) -> tuple[Stats, float]:
        """Learn row by row; return statistics, as means per row, and n_eff."""


@runtime_checkable
class AnswersGaps(Protocol[ParamsIn]):
    """Missing columns can be predicted from the observed ones: rows with gaps are completed and explained."""

    def conditional(self, parameters: ParamsIn, X: Matrix, missing: Mask) -> ConditionalLaw:
        """Return the law of the missing columns of rows (n, d) under each component, given their observed columns."""


@runtime_checkable
class ExpectsGaps(Protocol[ParamsIn]):
    """Gaps are filled by their conditional means at once, without the laws that have them."""

    def expect_gaps(self, parameters: ParamsIn, log_weights: Array, X: GappedRows) -> Array:
        """Return the rows (n, d), with gaps filled; those without any value get the mean of the mixture."""
