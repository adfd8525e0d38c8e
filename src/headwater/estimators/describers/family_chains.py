"""What hidden Markov models over any family say of themselves: means and variances of the rows of each state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.component_description import Limits, gaussian_components, gaussian_oddities
from headwater.diagnostics.description import Description, Value
from headwater.diagnostics.health import Evidence
from headwater.estimators.describers.chains import ChainDescriber
from headwater.estimators.describers.family_mixture import MOMENT_ROWS, SHOWN, FamilyChecks


class FamilyChainDescriber(ChainDescriber):
    """States over rows of any family."""

    def describe(self, limits: Limits) -> Description:
        """Describe components, matrices, curves and facts."""
        often, (means, variances) = self.model.get_stationary_distribution(), self.model._moments()
        found = gaussian_components(self.model._moment_names(), often, means, variances, limits)
        return Description(**self.model._chain_parts(found))

    def evidence(self) -> Evidence:
        """Return what the health of the model is judged by."""
        each = self.model._model.family.n_parameters(self.model._learner.width) / self.model.n_components_
        return self.model._chain_evidence(lambda rows: self._checks(rows, each), each * MOMENT_ROWS)

    def _checks(self, rows: Array, each: float) -> FamilyChecks:
        """Return the checks of states with so many rows, and with `each` parameters."""
        return FamilyChecks(self.model._model.family, self.model._emissions, rows, each)

    def patterns(self) -> Array | None:
        """Return what components are in all columns (K, d)."""
        return np.asarray(self.model._moments()[0])

    def oddities(self, row: Array, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first: compared with the nearest state."""
        values = np.asarray(row, dtype=float)
        seen = np.flatnonzero(~np.isnan(values))
        if not len(seen):
            return ()
        means, variances = (part[:, seen] for part in self.model._moments())
        variances = np.maximum(variances, 1e-300)
        k = int(np.argmin(((values[seen] - means) ** 2 / variances + np.log(variances)).sum(axis=1)))
        names = [self.model._moment_names()[j] for j in seen]
        return gaussian_oddities(names, values[seen], means[k], np.diag(variances[k]), most)

    def columns(self, states: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """Return what the table shows of these components: a word for it, heads of columns, and a line for each."""
        names, means = [str(name) for name in self.model._moment_names()], self.model._moments()[0]
        more = ["..."] if len(names) > SHOWN else []
        lines = [[*(f"{value:.4g}" for value in mean[:SHOWN]), *more] for mean in means[states]]
        return "means", [*names[:SHOWN], *more], lines
