"""Packages that a command does not need, and does not load."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader

SKIPPED_PACKAGE = "pandas"
# Loaded on the first use of a name in it. scikit-learn imports it, hardly uses it, and it takes a second.
DEFERRED_MODULE = "scipy.stats"


class _SkippingFinder:
    """Hides pandas, which scikit-learn and pyarrow would import if it is installed, and defers a slow module."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if name == SKIPPED_PACKAGE:
            raise ModuleNotFoundError(f"the command line does without {SKIPPED_PACKAGE}", name=name)
        if name != DEFERRED_MODULE:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def skip_slow_imports() -> None:
    """Import less in this process: the command line reads data by Arrow and needs no pandas."""
    if SKIPPED_PACKAGE not in sys.modules:
        sys.meta_path.insert(0, _SkippingFinder())
