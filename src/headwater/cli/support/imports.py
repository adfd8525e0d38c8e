"""What a command need not load."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from typing import Any

LEFT_OUT = "pandas"
# Loaded when somebody asks for what is in it, which scikit-learn, who imports it, hardly does: a second for nothing.
PUT_OFF = "scipy.stats"


class _Sparing:
    """Finds no pandas, which scikit-learn and pyarrow would load where it is installed, and puts off what takes long."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if name == LEFT_OUT:
            raise ModuleNotFoundError(f"the command line does without {LEFT_OUT}", name=name)
        if name != PUT_OFF:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def spare_imports() -> None:
    """Let this process load less: data comes to the command line by way of Arrow."""
    if LEFT_OUT not in sys.modules:
        sys.meta_path.insert(0, _Sparing())
