"""What a mixture of directions says of itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.component_description import column_names
from headwater.diagnostics.health import Evidence
from headwater.estimators.describers.family_mixture import SHOWN, FamilyMixtureDescriber


class VonMisesFisherMixtureDescriber(FamilyMixtureDescriber):
    """Mean directions and concentrations of the components."""

    def patterns(self) -> Array:
        """Return the mean directions (K, d)."""
        return self.model.mean_directions_

    def evidence(self) -> Evidence:
        """Return what the health of the model is judged by: divergences have a closed form, so that they cost little."""
        found = super().evidence()
        return replace(found, work=float(found.rows.size) ** 2 * self.model.n_features_in_)

    def columns(self, components: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """Return what the table shows of these components: concentrations, and columns of the mean directions."""
        names, directions = column_names(self.model, self.model.n_features_in_), self.model.mean_directions_
        more = ["..."] if len(names) > SHOWN else []
        concentrations = self.model.concentrations_
        lines = [
            [f"{concentrations[at]:.4g}", *(f"{value:.4g}" for value in directions[at, :SHOWN]), *more] for at in components
        ]
        return "mean directions", ["concentration", *names[:SHOWN], *more], lines
