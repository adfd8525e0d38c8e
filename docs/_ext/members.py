"""Leave out of the reference what scikit-learn adds to every estimator and documents itself."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

ADDED = re.compile(r"set_\w+_request|set_output|get_metadata_routing")


def skip(app: Sphinx, kind: str, name: str, member: Any, skipped: bool, options: Any) -> bool | None:
    """Say that a member is left out; otherwise leave the decision to autodoc."""
    # The score of scikit-learn's mixins refers to pages of its own documentation.
    theirs = name == "score" and getattr(member, "__module__", "").startswith("sklearn.")
    return True if theirs or ADDED.fullmatch(name) else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the rule."""
    app.connect("autodoc-skip-member", skip)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
