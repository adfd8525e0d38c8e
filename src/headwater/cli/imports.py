"""What a command need not load."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any


class _LeftOut:
    """Finds no pandas, which scikit-learn and pyarrow would load where it is installed: half a second for nothing."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the command line does without pandas", name=name)


def leave_out_pandas() -> None:
    """Let this process do without pandas: data comes to the command line by way of Arrow."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _LeftOut())
