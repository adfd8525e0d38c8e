"""Statistics, prior and parameters of spectra."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.core.statistics import Array, Statistics


@dataclass(frozen=True)
class SpectraStatistics(Statistics):
    """What the draws of rows say of the spectra.

    `parts` are E|c|^2 / h of plain EM, in the scale of the powers. The statistics of the faster step are kept in units in which
    a spectrum has mean 1, so that statistics at different scales can be added: `up` = E[G y / v], `down` = E[h / v], and
    `moments` (2, K) of log h. `lively` is the share of rows that have power, `accepted` that of accepted proposals.
    """

    parts: Array
    up: Array
    down: Array
    moments: Array
    lively: Array
    accepted: Array


@dataclass(frozen=True)
class SpectraPrior:
    """Inverse Gamma beliefs about spectra, worth `rows` rows: about a spectrum (F,) of mean 1, and a scale of the weights.

    `level` is the sum of the log-powers of both together.
    """

    rows: Array
    spectrum: Array
    scale: Array
    level: Array


@dataclass(frozen=True)
class SpectraParameters:
    """Powers (K, F); scales (K,) of the weights whose spectra have mean 1, and their shape; the level of the prior."""

    powers: Array
    scales: Array
    shape: Array
    level: Array
