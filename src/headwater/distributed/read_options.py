"""Ways: what a look at some rows tells of how all others are to be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.distributed.parts import Way

ROLES = ("target", "weight", "label", "key", "text")
# Options that say how a file is written; the others have become a schema.
WRITTEN = ("format", "header", "delimiter", "decimal", "array", "missing")


def way_of(kind: str, opened: Any, reading: Mapping[str, Any]) -> Way:
    """Return how rows are to be read like those of a stream; companions that were asked for must be there."""
    schema = opened.schema
    options = {name: reading[name] for name in WRITTEN if reading.get(name) is not None}
    options |= {name: schema[name] for name in ROLES if reading.get(name) is not None and schema.get(name) is not None}
    return Way(kind, schema, options, opened.chunk_rows, counted=kind == "files" and opened.skips_rows)
