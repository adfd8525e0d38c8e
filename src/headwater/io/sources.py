"""What the user named becomes pieces: paths, folders, globs, addresses, standard input, lists of them, and memory."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from headwater.core.validation import one_line
from headwater.io.formats import suffix_format
from headwater.io.pieces import STANDARD_INPUT, File, Held, Pipe, piped, standard_input, uncompressed
from headwater.io.read_errors import StreamError, reading, told

ADDRESS = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+://")
WILD = re.compile(r"[*?\[]")

Piece = File | Pipe | Held


class Names(tuple[str, ...]):
    """Names of files, where a list of strings might be taken for texts."""


def find_pieces(source: Any, any_suffix: bool, lines: bool = False) -> list[Piece]:
    """Return the pieces of a source, in the order in which they are read. Folders give the files that have a known ending.

    With `lines` the format is one of lines, so that a list of strings may be the lines themselves.
    """
    if isinstance(source, str | PurePath):
        return _named(str(source), any_suffix)
    if isinstance(source, list | tuple) and source and all(isinstance(one, str | PurePath) for one in source):
        if not isinstance(source, Names):
            if lines and _are_texts(source):
                return [_held(source)]
            if not lines and not any(map(_looks_named, source)):
                raise FileNotFoundError(f"{str(source[0])!r:.60} is no file: if these are texts, say so by format='text'")
        return [piece for one in source for piece in _named(str(one), any_suffix)]
    return [_held(source)]


def _are_texts(items: Sequence[str | PurePath]) -> bool:
    """Whether strings are texts, and do not name files; refuse them if some do and others cannot."""
    texts = [item for item in items if not _looks_named(item)]
    if not texts:
        return False
    there = next((item for item in items if isinstance(item, PurePath) or _exists(item)), None)
    if there is None:
        return True
    raise StreamError(
        f"the list holds the name of a file, {str(there)!r:.60}, and what is no file, {str(texts[0])!r:.60}: pass names as "
        f"paths (pathlib), or texts as an array or a series"
    )


def _looks_named(item: str | PurePath) -> bool:
    """Whether this names a file: one that is there, an address, or what is written like a path or with a known ending."""
    if isinstance(item, PurePath) or item == STANDARD_INPUT or ADDRESS.match(item) or _exists(item):
        return True
    if not item or re.search(r"\s", item):
        return False
    return bool(os.path.dirname(item)) or suffix_format(uncompressed(item)) is not None


def _exists(name: str) -> bool:
    try:
        return os.path.exists(name) or (bool(WILD.search(name)) and bool(glob.glob(name, recursive=True)))
    except (OSError, ValueError):  # too long for a name, or with characters that no name has
        return False


def _held(source: Any) -> Held:
    name = f"the {type(source).__name__}"
    if hasattr(source, "read") and not hasattr(source, "__arrow_c_stream__"):
        raise TypeError(f"a stream is made of names of files or of rows, got {name}, an open file: pass its path")
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__") or hasattr(source, "shape"):
        return Held(name, source, once=type(source).__name__ == "RecordBatchReader")
    if isinstance(source, Iterator):
        return Held(name, source, once=True)
    if isinstance(source, Mapping) or not isinstance(source, Iterable) or isinstance(source, bytes):
        raise TypeError(
            f"a stream is made of names of files, tables, arrays or an iterable of them, got {one_line(source, 80)}"
        )
    return Held(name, source)


def _named(name: str, any_suffix: bool) -> list[Piece]:
    if not name:
        raise ValueError("a stream needs the name of a file, got an empty one")
    if name == STANDARD_INPUT:
        return [standard_input()]
    if ADDRESS.match(name):
        return _remote(name, any_suffix)
    if os.path.isdir(name):
        found = sorted(os.path.join(folder, one) for folder, _, names in os.walk(name) for one in names)
        return [_local(path) for path in _chosen(name, found, name, any_suffix)]
    if WILD.search(name) and not os.path.exists(name):
        found = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
        if not found:
            raise FileNotFoundError(f"{name} matches no file")
        return [_local(path) for path in found]
    return [_local(name)]


def _local(path: str) -> Piece:
    from pyarrow.fs import LocalFileSystem

    with reading(path):
        about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):
        return piped(path)
    return File(path, path, LocalFileSystem(), about.st_size, about.st_mtime_ns)


def _chosen(folder: str, paths: list[str], base: str, any_suffix: bool) -> list[str]:
    """Leave out hidden files and, where no format was named, those without a known ending; refuse several formats."""
    shown = [path for path in paths if not _hidden(path[len(base) :])]
    formats = {path: suffix_format(uncompressed(path)) for path in shown}
    chosen = shown if any_suffix else [path for path in shown if formats[path] is not None]
    if not chosen:
        among = f", only {len(shown)} with unknown endings: name their format=" if shown else ""
        raise FileNotFoundError(f"{folder} is a folder without files to read{among}")
    several = sorted({found.name for path in chosen if (found := formats[path]) is not None})
    if len(several) > 1:
        raise StreamError(f"{folder} holds files of several formats, {' and '.join(several)}: choose some by a glob")
    return chosen


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in PurePath(path.lstrip("/\\")).parts)


def _remote(address: str, any_suffix: bool) -> list[Piece]:
    from pyarrow.fs import FileSelector, FileType

    filesystem, path = _filesystem(address)
    scheme = address.split("://", 1)[0]
    with reading(address):
        info = filesystem.get_file_info(path)
        if info.type == FileType.File:
            return [File(address, path, filesystem, info.size, info.mtime_ns)]
        wild = info.type == FileType.NotFound and "*" in path
        if info.type == FileType.NotFound and not wild:
            raise FileNotFoundError(2, "there is no such file")
        base = path.split("*", 1)[0].rsplit("/", 1)[0] if wild else path
        infos = {one.path: one for one in filesystem.get_file_info(FileSelector(base, recursive=True)) if one.is_file}
        found = sorted(one for one in infos if not wild or fnmatch.fnmatch(one, path))
        if not found and wild:
            raise FileNotFoundError(2, "it matches no file")
    chosen = found if wild else _chosen(address, found, path, any_suffix)
    return [File(f"{scheme}://{one.lstrip('/')}", one, filesystem, infos[one].size, infos[one].mtime_ns) for one in chosen]


def _filesystem(address: str) -> tuple[Any, str]:
    """Return the file system of an address and the path in it: pyarrow's own, or one of fsspec."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        filesystem, path = fs.FileSystem.from_uri(address)
        return filesystem, path
    except OSError as error:
        raise StreamError(f"{address} cannot be read: {told(error)}") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as first:
        scheme = address.split("://", 1)[0]
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise StreamError(
                f"{address} cannot be read: pyarrow does not know {scheme}://, and fsspec, which may, is not installed"
            ) from first
        try:
            found, path = url_to_fs(address)
        except (ValueError, ImportError) as error:
            raise StreamError(f"{address} cannot be read: {told(error)}") from error
        return fs.PyFileSystem(fs.FSSpecHandler(found)), path
