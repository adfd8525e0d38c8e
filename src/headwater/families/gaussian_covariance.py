"""The kinds of covariance: full, tied, diagonal, spherical; their kernels, shapes and numbers of parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater.core.statistics import Array
from headwater.kernels import chain_sweep as chain_kernels
from headwater.kernels import gaussian as batch_kernels
from headwater.kernels import gaussian_climb as climb_kernels
from headwater.kernels import gaussian_dense as dense
from headwater.kernels import gaussian_match as match_kernels
from headwater.kernels import gaussian_sweep as sweep_kernels


@dataclass(frozen=True)
class Covariance:
    """What differs between the kinds of covariance."""

    estep: Callable[..., float]
    refresh: Callable[..., int]
    sweep: Callable[..., float]
    climb: Callable[..., tuple[int, bool, int]] | None
    match: Callable[..., float] | None
    sweep_chain: Callable[..., tuple[float, Array]]
    second_shape: Callable[[int, int], tuple[int, ...]]
    factor_shape: Callable[[int, int], tuple[int, ...]]
    matrix: bool
    n_parameters: Callable[[int, int], int]
    mode_shift: Callable[[int, int], float]
    dense: Callable[..., float]  # the E-step by products of matrices
    dense_from: Callable[[int, int], bool]  # components and columns for which it is the faster one (benchmarks/estep_shapes)


COVARIANCES = {
    "full": Covariance(
        batch_kernels.estep_full, batch_kernels.refresh_full, sweep_kernels.sweep_full, None,
        match_kernels.match_full, chain_kernels.sweep_gaussian_full,
        lambda k, d: (k, d, d), lambda k, d: (k, d, d), True, lambda k, d: k * d * (d + 1) // 2, lambda k, d: d,
        dense.estep_full, lambda k, d: d >= 128,
    ),
    "tied": Covariance(
        batch_kernels.estep_tied, batch_kernels.refresh_tied, sweep_kernels.sweep_tied, climb_kernels.climb_tied,
        None, chain_kernels.sweep_gaussian_tied,
        lambda k, d: (d, d), lambda k, d: (d, d), True, lambda k, d: d * (d + 1) // 2, lambda k, d: d + 1 - k,
        dense.estep_tied, lambda k, d: k * d >= 2048,
    ),
    "diag": Covariance(
        batch_kernels.estep_diag, batch_kernels.refresh_diag, sweep_kernels.sweep_diag, climb_kernels.climb_diag,
        match_kernels.match_diag, chain_kernels.sweep_gaussian_diag,
        lambda k, d: (k, d), lambda k, d: (k, d), False, lambda k, d: k * d, lambda k, d: 1.0,
        dense.estep_diag, lambda k, d: k >= 16 and k * d >= 2048,
    ),
    "spherical": Covariance(
        batch_kernels.estep_diag, batch_kernels.refresh_diag, sweep_kernels.sweep_diag, climb_kernels.climb_diag,
        match_kernels.match_diag, chain_kernels.sweep_gaussian_diag,
        lambda k, d: (k, d), lambda k, d: (k, d), False, lambda k, d: k, lambda k, d: 2.0 / d - 1.0,
        dense.estep_diag, lambda k, d: k >= 16 and k * d >= 1024,
    ),
}  # fmt: skip
