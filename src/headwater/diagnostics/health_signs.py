"""Signs of regressions, spectra and directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.health import Finding
from headwater.diagnostics.health_gaussian import GaussianSigns
from headwater.diagnostics.health_vitals import Food, named, percent

TINY = 1e-300  # a variance that is none
FLOOR = 2.0  # times the least noise, below which there is none
QUIETEST = 1e-6  # of a spectrum, as a part of its loudest bin: 60 dB below
ALONE = 0.999  # share of its power that a bin may have
STANDS_OUT = 4.0  # standard errors of what is heard from anywhere: the loudest direction of mere noise has about two
UNHEARD = 0.01  # share of the snapshots that a sensor is in


@dataclass(frozen=True)
class LineSigns:
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
    gate: GaussianSigns | None = None

    def food(self) -> Food:
        """Rows of each, and the parameters it has."""
        return Food(self.rows, "rows", np.full(len(self.rows), self.parameters))

    def apart(self) -> tuple[Array, Array]:
        """Jeffreys' divergences of the targets at the usual inputs, and of the inputs if they gate."""
        gap = self.coef[:, None] - self.coef
        along = np.einsum("abi,ij,abj->ab", gap, self.design, gap)
        one, two = self.noise[:, None], self.noise
        found = 0.5 * (one / two + two / one - 2.0) + 0.5 * along * (1.0 / one + 1.0 / two)
        if self.gate is not None:
            found = found + self.gate.apart()[0]
        return np.where(np.isfinite(found), np.maximum(found, 0.0), np.inf), np.zeros_like(found)

    def worn(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """Regressions that go through all of their rows."""
        found = [] if self.gate is None else self.gate.worn(alive)
        for k in np.flatnonzero(alive & (self.noise <= FLOOR * self.floor)):
            share = float(np.sqrt(self.noise[k] / self.target)) if self.target > TINY else np.inf
            about = f", {percent(share)} of the target's" if self.target > TINY else ""
            found.append(
                Finding(
                    "collapsed", (int(k),),
                    f"{named('component', [int(k)])} goes through its {self.rows[k]:,.0f} rows without noise (a standard "
                    f"deviation of {np.sqrt(self.noise[k]):.2g}{about}). Rows there score without "
                    f"bound; look for inputs that hold the target.",
                    True, {"deviation": float(np.sqrt(self.noise[k])), "of_target": share, "rows": float(self.rows[k])},
                )
            )  # fmt: skip
        return found


@dataclass(frozen=True)
class SpectrumSigns:
    """Spectra (K, F), whose scale says nothing."""

    powers: Array
    names: Sequence[str]

    def food(self) -> None:
        """A frame says something of every bin: few are enough."""
        return None

    def apart(self) -> tuple[Array, Array]:
        """Symmetric divergences of exponential powers, in nats a bin, at the best scale."""
        loud = self.powers.max(axis=1, keepdims=True)
        logs = np.log(np.maximum(self.powers, QUIETEST * np.maximum(loud, 1e-300)))
        k = len(logs)
        found = np.zeros((k, k))
        for a in range(k):
            ratio = np.exp(logs - logs[a])
            up, down = ratio.mean(axis=1), (1.0 / ratio).mean(axis=1)
            found[a] = 2.0 * np.sqrt(up * down) - 2.0  # the least, over scales, of the mean of r + 1 / r - 2
        return np.maximum(found, 0.0), np.zeros_like(found)

    def worn(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """Spectra that are one bin."""
        shares = self.powers / np.maximum(self.powers.sum(axis=1, keepdims=True), 1e-300)
        if shares.shape[1] < 2:
            return []
        tops, bins = shares.max(axis=1), shares.argmax(axis=1)
        return [
            Finding(
                "collapsed", (int(k),),
                f"{named('component', [int(k)])} is next to nothing but bin {self.names[bins[k]]} ({percent(float(tops[k]))} "
                f"of its power).",
                False, {"share": float(tops[k])},
            )
            for k in np.flatnonzero(alive & (tops > ALONE))
        ]  # fmt: skip


@dataclass(frozen=True)
class ArrivalSigns:
    """A direction: its power and that of the noise, and the share of snapshots that each sensor is in."""

    rows: Array
    power: float
    noise: float
    observed: Array
    names: Sequence[str]

    def food(self) -> Food:
        """Snapshots, for a direction and two powers."""
        return Food(self.rows, "snapshots", np.array([3.0]))

    def apart(self) -> None:
        """There is one source."""
        return None

    def worn(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """A direction that may be any, and sensors that are hardly there."""
        found = []
        ratio = self.power / max(self.noise, 1e-300)
        errors = ratio * float(self.observed.sum()) * float(np.sqrt(self.rows[0]))
        if alive.any() and errors < STANDS_OUT:
            found.append(
                Finding(
                    "unheard", (),
                    f"No direction stands out: the power of the source is {ratio:.2g} times that of the noise, which is "
                    f"{errors:.1f} standard errors of what noise alone would have.",
                    True, {"signal_to_noise": ratio, "z": errors},
                )
            )  # fmt: skip
        for at in np.flatnonzero(self.observed < UNHEARD)[:3]:
            found.append(
                Finding(
                    "unheard", (),
                    f"Column {self.names[at]} is in {percent(float(self.observed[at]))} of the snapshots: nearly all that "
                    f"is said of it comes from the others.",
                    False, {"sensor": float(at), "share": float(self.observed[at])},
                )
            )  # fmt: skip
        return found
