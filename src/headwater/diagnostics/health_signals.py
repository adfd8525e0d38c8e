"""Health checks of spectra and of directions of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.health import Finding, Support, component_phrase, format_percent

LEAST_POWER_RATIO = 1e-6  # of the loudest bin of a spectrum: 60 dB below it
SINGLE_BIN_SHARE = 0.999  # of the power of a spectrum, in one bin
SOURCE_Z = 4.0  # standard errors above noise; the loudest direction of mere noise has about two
RARE_SENSOR_SHARE = 0.01  # of the snapshots that a sensor is in


@dataclass(frozen=True)
class SpectrumChecks:
    """Spectra (K, F), whose scale says nothing."""

    powers: Array
    names: Sequence[str]

    def support(self) -> None:
        """A frame says something of every bin: few are enough."""
        return None

    def divergences(self) -> tuple[Array, Array]:
        """Symmetric divergences of exponential powers, in nats a bin, at the best scale."""
        loud = self.powers.max(axis=1, keepdims=True)
        logs = np.log(np.maximum(self.powers, LEAST_POWER_RATIO * np.maximum(loud, 1e-300)))
        k = len(logs)
        found = np.zeros((k, k))
        for a in range(k):
            ratio = np.exp(logs - logs[a])
            up, down = ratio.mean(axis=1), (1.0 / ratio).mean(axis=1)
            found[a] = 2.0 * np.sqrt(up * down) - 2.0  # the least, over scales, of the mean of r + 1 / r - 2
        return np.maximum(found, 0.0), np.zeros_like(found)

    def degenerate_findings(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """Spectra that are one bin."""
        shares = self.powers / np.maximum(self.powers.sum(axis=1, keepdims=True), 1e-300)
        if shares.shape[1] < 2:
            return []
        tops, bins = shares.max(axis=1), shares.argmax(axis=1)
        return [
            Finding(
                "collapsed", (int(k),),
                f"{component_phrase('component', [int(k)])} has hardly any power outside bin {self.names[bins[k]]} "
                f"({format_percent(float(tops[k]))} of its power): leave the bin out if it is hum, or use fewer components.",
                False, {"share": float(tops[k])},
            )
            for k in np.flatnonzero(alive & (tops > SINGLE_BIN_SHARE))
        ]  # fmt: skip


@dataclass(frozen=True)
class ArrivalChecks:
    """A direction: its power and that of the noise, and the share of snapshots that each sensor is in."""

    rows: Array
    power: float
    noise: float
    observed: Array
    names: Sequence[str]

    def support(self) -> Support:
        """Snapshots, for a direction and two powers."""
        return Support(self.rows, "snapshots", np.array([3.0]))

    def divergences(self) -> None:
        """There is one source."""
        return None

    def degenerate_findings(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """A direction that may be any, and sensors that are hardly there."""
        found = []
        ratio = self.power / max(self.noise, 1e-300)
        errors = ratio * float(self.observed.sum()) * float(np.sqrt(self.rows[0]))
        if alive.any() and errors < SOURCE_Z:
            found.append(
                Finding(
                    "unheard", (),
                    f"No direction stands out: the power of the source is {ratio:.2g} times that of the noise, which is "
                    f"{errors:.1f} standard errors of what noise alone would have. Learn more snapshots, or check the sensors.",
                    True, {"signal_to_noise": ratio, "z": errors},
                )
            )  # fmt: skip
        for at in np.flatnonzero(self.observed < RARE_SENSOR_SHARE)[:3]:
            found.append(
                Finding(
                    "unheard", (),
                    f"Column {self.names[at]} is in {format_percent(float(self.observed[at]))} of the snapshots: its values "
                    f"come almost entirely from the other sensors. Check this one.",
                    False, {"sensor": float(at), "share": float(self.observed[at])},
                )
            )  # fmt: skip
        return found
