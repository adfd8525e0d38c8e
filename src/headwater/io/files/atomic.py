"""Atomic writes: a file is there in full, or not at all."""

from __future__ import annotations

import glob
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to. It replaces `path` in one step at the end, and is removed after an error.

    A reader of the path finds the old file or the new one, never a part of one. A symbolic link stays a link, and the new
    file has the permissions of the old one. Anything but a regular file is refused.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a directory, and should be a file")
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is no regular file, and cannot be replaced by one")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no directory {target.parent} to write {target.name} to")
    place = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        rights = stat.S_IMODE((target if target.exists() else place).stat().st_mode)
        yield place
        os.chmod(place, rights)  # the writer may have changed them
        _flush(place, os.O_RDWR)
        os.replace(place, target)
    except BaseException:
        with suppress(OSError):
            place.unlink()
        raise
    with suppress(OSError):  # not every file system lets a directory be synchronised
        _flush(target.parent, os.O_RDONLY)


def remove_parts(path: Path) -> None:
    """Remove the temporary files that killed processes left beside a path."""
    target = Path(os.path.realpath(path))
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        left.unlink(missing_ok=True)


def _flush(path: Path, flags: int) -> None:
    """Make sure that what was written is on the disk."""
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
