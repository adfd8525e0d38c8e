"""Health checks of regressions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.health import Finding, Support, component_phrase, format_percent
from headwater.diagnostics.health_gaussian import GaussianChecks

LEAST_VARIANCE = 1e-300  # of a target that varies
FLOOR_FACTOR = 2.0  # times the least noise variance; below it, there is no noise


@dataclass(frozen=True)
class RegressionChecks:
    """Regressions: coefficients (K, p), noise variances (K,), and the second moments (p, p) of the inputs they are of.

    `floor` is the least noise variance, `target` that of the target. `gate` are the Gaussians over inputs, if there are any.
    """

    rows: Array
    coef: Array
    noise: Array
    design: Array
    target: float
    floor: float
    parameters: float
    gate: GaussianChecks | None = None

    def support(self) -> Support:
        """Rows of each, and the parameters it has."""
        return Support(self.rows, "rows", np.full(len(self.rows), self.parameters))

    def divergences(self) -> tuple[Array, Array]:
        """Jeffreys' divergences of the targets at the usual inputs, and of the inputs if they gate."""
        gap = self.coef[:, None] - self.coef
        along = np.einsum("abi,ij,abj->ab", gap, self.design, gap)
        one, two = self.noise[:, None], self.noise
        found = 0.5 * (one / two + two / one - 2.0) + 0.5 * along * (1.0 / one + 1.0 / two)
        if self.gate is not None:
            found = found + self.gate.divergences()[0]
        return np.where(np.isfinite(found), np.maximum(found, 0.0), np.inf), np.zeros_like(found)

    def degenerate_findings(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """Regressions that go through all of their rows."""
        found = [] if self.gate is None else self.gate.degenerate_findings(alive)
        for k in np.flatnonzero(alive & (self.noise <= FLOOR_FACTOR * self.floor)):
            share = float(np.sqrt(self.noise[k] / self.target)) if self.target > LEAST_VARIANCE else np.inf
            about = f", {format_percent(share)} of the target's" if self.target > LEAST_VARIANCE else ""
            found.append(
                Finding(
                    "collapsed", (int(k),),
                    f"{component_phrase('component', [int(k)])} goes through its {self.rows[k]:,.0f} rows without noise (a "
                    f"standard deviation of {np.sqrt(self.noise[k]):.2g}{about}). Its density is almost "
                    f"unbounded: look for inputs that contain the target.",
                    True, {"deviation": float(np.sqrt(self.noise[k])), "of_target": share, "rows": float(self.rows[k])},
                )
            )  # fmt: skip
        return found
