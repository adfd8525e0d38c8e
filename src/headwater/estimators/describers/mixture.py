"""What mixtures say of themselves."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.component_description import Limits, dirichlet_interval
from headwater.estimators.component_names import shown_names
from headwater.estimators.describers.describer import Describer
from headwater.estimators.reading import Folded


class MixtureDescriber(Describer):
    """What every mixture says of itself: weights, and a table of the heaviest components."""

    def weight_intervals(self, limits: Limits) -> Array:
        """Credible intervals (K, 2) of the weights."""
        own, others = self.model._weight_marginals()
        return np.ones((1, 2)) if len(own) == 1 else dirichlet_interval(own, own + others, limits)

    def component_names(self) -> list[str] | None:
        """Return the names that were given, and those of components that came later."""
        return shown_names(self.model)

    def shares_of(self, folded: Folded) -> Array:
        """Return the shares of the components by what was folded."""
        return np.asarray(folded.prior.concentration + folded.n_eff * folded.statistics.count)

    def moments(self) -> tuple[list[str], Array, Array]:
        """Return the names of columns, and mean and variance (K, d) of the components in them, where a model compares these."""
        raise TypeError(f"{type(self.model).__name__} has no moments to compare")

    @abstractmethod
    def columns(self, components: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """What the table shows of these components: a word for it, the heads of the columns, and a line for each."""

    def rows_seen(self) -> str:
        """What was learned from, and how much of it."""
        seen = self.model.n_samples_seen_
        return f"{seen:,} row{'s' if seen != 1 else ''} of {self.model.n_features_in_} columns"

    def summary(self) -> tuple[str, list[str], list[list[str]]]:
        """One line and a table of the heaviest components."""
        weights = self.model.weights_
        order = np.argsort(-weights, kind="stable")
        word, columns, lines = self.columns(order[:8])
        names = self.component_names() or [str(k) for k in range(len(weights))]
        table = [[names[k], f"{weights[k]:.3f}", *line] for k, line in zip(order[:8], lines, strict=True)]
        if len(order) > 8:
            table.append(["...", f"{weights[order[8:]].sum():.3f}", *[""] * len(columns)])
        warming = " (warming up)" if self.model._runtime.warming_up else ""
        line = f"{self.rows_seen()} seen{warming}; components by weight, with their {word}:"
        return line, ["component", "weight", *columns], table


class TargetDescriber(MixtureDescriber):
    """What a mixture with a target says of itself."""

    def rows_seen(self) -> str:
        """Say what was learned from, and how much of it."""
        return f"{super().rows_seen()} and a target"
