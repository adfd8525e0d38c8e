"""Output files: written in full, or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headwater.cli.support.failures import usage_error
from headwater.cli.support.signals import remove_parts_on_stop

SHORT_WRITE = re.compile(r"^\d+ requested and \d+ written$")  # what NumPy says of a disk that is full


def check_output(path: Path | None) -> None:
    """Refuse a path that cannot be written, before any work is done."""
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(f"the output must be a file, and {path} is a directory")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"the output {path} cannot be written: there is no directory {folder}")
    wanted = path if path.exists() and not path.is_file() else folder
    if not os.access(wanted, os.W_OK):
        raise PermissionError(f"the output {path} cannot be written: {wanted} is read-only")


def refuse_to_replace(option: str, output: Path, inputs: Iterable[str]) -> None:
    """Refuse an output that is one of the input files, also under another name: the input would be lost."""
    if not output.is_file():
        return
    for path in _input_files(inputs):
        if path.is_file() and path.samefile(output):
            raise usage_error(f"{option} {output} would replace {path}, which is read: choose another name")


def _input_files(inputs: Iterable[str]) -> Iterator[Path]:
    from headwater.io.source_lookup import find_sources

    for one in inputs:
        if Path(one).is_file():
            yield Path(one)
        elif one != "-":
            with suppress(OSError, ValueError):  # the reader will report what cannot be read
                yield from (Path(piece.name) for piece in find_sources(one, any_suffix=True))


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to. After success it is renamed to `path`; after an error it is removed."""
    from headwater.io.files.atomic import atomic_write  # which loads NumPy with its room

    check_output(path)
    if path.exists() and not path.is_file():  # a device or a pipe is written directly
        with _name_file_in_errors(path):
            yield path
        return
    with remove_parts_on_stop(path), _name_file_in_errors(path), atomic_write(path) as place:
        yield place


@contextmanager
def _name_file_in_errors(path: Path) -> Iterator[None]:
    """Add the name of the file to errors such as a full disk."""
    try:
        yield
    except OSError as error:
        if error.strerror and not error.filename and not isinstance(error, BrokenPipeError):
            raise OSError(f"{path} cannot be written: {error.strerror}") from error
        if SHORT_WRITE.search(str(error)):
            raise OSError(f"{path} cannot be written: the disk took only a part of it, and may be full") from error
        raise
