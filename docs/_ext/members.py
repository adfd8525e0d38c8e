"""Leave out of the reference what scikit-learn adds to every estimator and documents itself, and what PyOD does."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

ADDED = re.compile(r"set_\w+_request|set_output|get_metadata_routing")


def skip(app: Sphinx, kind: str, name: str, member: Any, skipped: bool, options: Any) -> bool | None:
    """Say that a member is left out; otherwise leave the decision to autodoc."""
    # The score of scikit-learn's mixins, and whatever PyOD's base has, refer to pages of their own documentation.
    home = getattr(member, "__module__", None) or ""
    theirs = home.startswith("pyod.") or (name == "score" and home.startswith("sklearn."))
    return True if theirs or ADDED.fullmatch(name) else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the rule."""
    app.connect("autodoc-skip-member", skip)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
