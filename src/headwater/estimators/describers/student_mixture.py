"""What a mixture of Student's t says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.core.chunk import Chunk
from headwater.diagnostics.component_description import column_names
from headwater.diagnostics.description import Value
from headwater.estimators.describers.family_mixture import SHOWN, FamilyMixtureDescriber

if TYPE_CHECKING:
    from headwater.core.statistics import Array


class StudentMixtureDescriber(FamilyMixtureDescriber):
    """Centres, scales and degrees of freedom of the components."""

    def oddities(self, row: Array, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first: from what the other columns expect."""
        chunk = Chunk(np.asarray(row, dtype=float)[None], getattr(self.model, "feature_names_in_", None))
        reasons = self.model.explain(chunk)
        names, standing = column_names(self.model, self.model.n_features_in_), reasons.deviations[0]
        return tuple(
            Value(names[j], float(row[j]), None, float(reasons.low[0, j]), float(reasons.high[0, j]), float(standing[j]))
            for j in reasons.order(most)[0]
            if not np.isnan(standing[j])
        )

    def columns(self, components: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """Return what the table shows of these components: degrees of freedom, and centres."""
        names, means, dof = self.model._moment_names(), self.model.means_, self.model.degrees_of_freedom_
        more = ["..."] if len(names) > SHOWN else []
        lines = [[f"{dof[at]:.3g}", *(f"{value:.4g}" for value in means[at][:SHOWN]), *more] for at in components]
        return "centres", ["dof", *names[:SHOWN], *more], lines
