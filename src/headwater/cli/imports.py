"""What takes long to load, loaded as fast as it can be."""

from __future__ import annotations

import sys


def load_estimators() -> None:
    """Load scikit-learn without pandas, which it would load for nothing: data comes here by way of Arrow."""
    if "sklearn" in sys.modules or "pandas" in sys.modules:
        return
    from importlib import import_module

    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        import_module("headwater.estimators.base")
    finally:
        del sys.modules["pandas"]
