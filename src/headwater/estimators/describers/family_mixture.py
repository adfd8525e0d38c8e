"""What a mixture of any family says of itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.component_description import Limits, column_names, gaussian_components
from headwater.diagnostics.description import Description
from headwater.diagnostics.health import PRUNE_ADVICE, Evidence, Finding, Support
from headwater.diagnostics.health_classes import class_findings
from headwater.diagnostics.health_gaps import table_gap_findings
from headwater.estimators.describers.mixture import MixtureDescriber
from headwater.families.family import Family

MOMENT_ROWS = 4096  # drawn from a component to tell its mean: off by a sixtieth of a standard deviation
DOUBT = 2.0  # standard deviations of a chi-squared variable that may be chance
SHOWN = 4  # columns of the table of a model


@dataclass(frozen=True)
class FamilyChecks:
    """Signs of the components of any family: rows for each parameter, and how far their densities are apart."""

    family: Family
    parameters: object
    rows: Array
    each: float  # parameters of a component

    def support(self) -> Support:
        """Rows and parameters of each component."""
        return Support(self.rows, "rows", np.full(len(self.rows), self.each))

    def divergences(self) -> tuple[Array, Array]:
        """Symmetric divergences (K, K) of the densities, in nats a row, and what of them is chance: chi-squared, by rows."""
        return self.family.density_divergences(self.parameters, self.parameters), self._chance()

    def _chance(self) -> Array:
        behind = np.maximum(self.rows, 1.0)
        return np.asarray((self.each + DOUBT * np.sqrt(2.0 * self.each)) * (1.0 / behind[:, None] + 1.0 / behind))

    def degenerate_findings(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """Nothing is known of components by themselves."""
        return []


class FamilyMixtureDescriber(MixtureDescriber):
    """Means and variances of the components of any family."""

    def describe(self, limits: Limits) -> Description:
        """Describe components, matrices, curves and facts."""
        names, intervals = self.model._moment_names(), self.weight_intervals(limits)
        means, variances = self.model._moments()
        return Description(**gaussian_components(names, self.model.weights_, means, variances, limits, intervals))

    def moments(self) -> tuple[list[str], Array, Array]:
        """Return the names of what a component has, and mean and variance (K, d) of each."""
        return self.model._moment_names(), *self.model._moments()

    def patterns(self) -> Array | None:
        """Return what components are in all columns (K, d)."""
        return self.model._moments()[0]

    def evidence(self) -> Evidence:
        """Return what the health of the model is judged by."""
        family, rows = self.model._component_family, self.model._rows_behind()
        each = family.n_parameters(self.model.n_features_in_) / len(rows)
        work = float(len(rows)) ** 2 * each * MOMENT_ROWS

        def checks() -> FamilyChecks:
            return FamilyChecks(family, self.model._components, rows, each)

        _, statistics, count = self.model._proper_belief()
        names = column_names(self.model, self.model.n_features_in_)
        known = (
            *class_findings(self.model._n_class_columns(), len(rows)),
            *table_gap_findings(family, self.model._component_part(statistics), count, names),
        )
        return Evidence(rows, checks=checks, work=work, remedy=PRUNE_ADVICE, known=known)

    def columns(self, components: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """Return what the table shows of these components: a word for it, heads of columns, and a line for each."""
        names, means = self.model._moment_names(), self.model._moments()[0]
        more = ["..."] if len(names) > SHOWN else []
        lines = [[*(f"{value:.4g}" for value in mean[:SHOWN]), *more] for mean in means[components]]
        return "means", [*names[:SHOWN], *more], lines
