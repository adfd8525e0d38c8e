"""Files that a checkpoint has learned, and files that are new: the new ones continue the stream."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from headwater.io.sources import Source
    from headwater.io.stream import Stream

Record = list[Any]  # name, size, time of change, digest: a list, as in JSON


def records_of(files: Sequence[Source], known: Sequence[Record] = ()) -> list[Record]:
    """Return name, size, time and digest of files; the digest is reused if name, size and time are `known`."""
    digests = {(name, size, changed): digest for name, size, changed, digest in known}
    return [
        [one.name, one.size, one.changed, digests.get((one.name, one.size, one.changed)) or _digest(one.name)] for one in files
    ]


def _digest(name: str) -> str | None:
    path = Path(name)
    if not path.is_file():  # a remote file: size and time must be enough
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def match_stages(stream: Stream, stages: object, path: Path) -> tuple[list[list[Source]], list[Source]]:
    """Return the files of each stage of a checkpoint, and the new files; refuse a file that has changed."""
    if not _are_sound(stages):
        raise ValueError(f"the checkpoint {path} is damaged: it does not say what was read; remove it to begin anew")
    left: dict[str, list[Source]] = {}
    for one in stream.files:
        left.setdefault(one.name, []).append(one)
    again = "remove the checkpoint to begin anew, or choose another name for one"
    found = []
    for stage in stages:
        files = [_take_file(left, record, path, again) for record in stage]
        for record, (_, size, changed, digest) in zip(records_of(files, stage), stage, strict=True):
            if record[1] != size or (record[2] != changed and (digest is None or record[3] != digest)):
                sizes = "with other values" if record[1] == size else f"{size:,} bytes then and {record[1]:,} now"
                raise ValueError(f"{record[0]} has changed since the checkpoint {path} learned it, {sizes}: {again}")
        found.append(files)
    return found, [one for one in stream.files if any(one is other for other in left[one.name])]


def _take_file(left: dict[str, list[Source]], record: Record, path: Path, again: str) -> Source:
    if not left.get(record[0]):
        raise ValueError(f"{record[0]} was learned by the checkpoint {path}, and is not among the data now: {again}")
    return left[record[0]].pop(0)


def _are_sound(stages: object) -> TypeGuard[list[list[Record]]]:
    return isinstance(stages, list) and all(
        isinstance(stage, list)
        and stage
        and all(isinstance(one, list) and len(one) == 4 and isinstance(one[0], str) for one in stage)
        for stage in stages
    )
