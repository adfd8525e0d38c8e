"""What a command need not load."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from typing import Any

SKIPPED_PACKAGE = "pandas"
# Loaded when somebody asks for what is in it, which scikit-learn, who imports it, hardly does: a second for nothing.
DEFERRED_MODULE = "scipy.stats"


class _SkippingFinder:
    """Finds no pandas, which scikit-learn and pyarrow would load where it is installed, and puts off what takes long."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if name == SKIPPED_PACKAGE:
            raise ModuleNotFoundError(f"the command line does without {SKIPPED_PACKAGE}", name=name)
        if name != DEFERRED_MODULE:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def skip_slow_imports() -> None:
    """Let this process load less: data comes to the command line by way of Arrow."""
    if SKIPPED_PACKAGE not in sys.modules:
        sys.meta_path.insert(0, _SkippingFinder())
