"""What a mixture of factor analysers says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.diagnostics.component_description import column_names, gaussian_oddities
from headwater.diagnostics.description import Value
from headwater.estimators.describers.family_mixture import FamilyMixtureDescriber

if TYPE_CHECKING:
    from headwater.core.statistics import Array


class FactorMixtureDescriber(FamilyMixtureDescriber):
    """Means and variances of the components; rows that are odd are so by the covariance, factors included."""

    def oddities(self, row: Array, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first."""
        k = int(self.model.predict_one(row))
        names = column_names(self.model, self.model.n_features_in_)
        return gaussian_oddities(names, row, self.model.means_[k], self.model.covariances_[k], most)
