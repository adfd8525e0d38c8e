"""Records of a background beside K components: statistics, prior, parameters, and the geometry of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array, Statistics
from headwater.families.components import ComponentStatistics
from headwater.families.geometry import RowGeometry
from headwater.families.wide_law import WideLaw


@dataclass(frozen=True)
class BackgroundStatistics(ComponentStatistics):
    """Rows (K,) of each component, the statistics of the components, and the rows (1,) of the background."""

    components: ComponentStatistics
    background: Array

    @property
    def total(self) -> float:
        return float(self.count.sum() + self.background.sum())

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays by name, those of the components behind a slash."""
        own = {"from_base": self.from_base, "count": self.count, "background": self.background}
        return own | {f"components/{name}": array for name, array in self.components.to_arrays().items()}

    @property
    def forms(self) -> tuple[Statistics, ...]:
        """These statistics with each form that those of the components may have."""
        return tuple(replace(self, components=cast(ComponentStatistics, form)) for form in self.components.forms)


@dataclass(frozen=True)
class BackgroundPrior:
    """The prior of the components, where columns lie, and Beta parameters of the share of the background."""

    components: object
    law: WideLaw
    inside: float
    outside: float


@dataclass(frozen=True)
class BackgroundParameters:
    """The parameters of the components, where columns lie, and log-shares of background and components, or expectations."""

    components: object
    law: WideLaw
    log_background: float
    log_rest: float


@dataclass(frozen=True)
class BackgroundGeometry:
    """What a start needs to know of the rows but for those far out, and where columns lie."""

    components: RowGeometry
    law: WideLaw

    @property
    def scale(self) -> float:
        """What a row's log-density is measured in."""
        return float(self.components.scale)

    def views(self, rows: NDArray[np.int64]) -> tuple[Array, ...]:
        """Some rows, in each kind of units."""
        views: tuple[Array, ...] = self.components.views(rows)
        return views
