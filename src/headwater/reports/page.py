"""report: one page that says what a model has learned."""

from __future__ import annotations

from typing import Any


def report(model: Any, data: Any = None, path: Any = None) -> str:
    """Return a page."""
    raise NotImplementedError
