"""Mixtures as outlier detectors, with the names and signs of scikit-learn and of PyOD."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.outlier.mixture_outlier import MixtureOutlier

if TYPE_CHECKING:
    from headwater.outlier.pyod_mixture import PyODMixture

__all__ = ["MixtureOutlier", "PyODMixture"]


def __getattr__(name: str) -> type[PyODMixture]:
    if name != "PyODMixture":
        raise AttributeError(f"module 'headwater.outlier' has no attribute {name!r}")
    from headwater.outlier.pyod_mixture import PyODMixture  # asks for PyOD

    return PyODMixture


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
