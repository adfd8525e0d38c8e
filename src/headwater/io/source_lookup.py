"""Finding the sources of a stream: paths, folders, globs, addresses, standard input, lists of them, and data in memory."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from headwater.core.validation import one_line
from headwater.io.byte_streams import strip_codec_suffix
from headwater.io.formats import suffix_format
from headwater.io.read_errors import StreamError, explain_read_errors, one_line_message
from headwater.io.sources import STANDARD_INPUT, File, InMemory, Source, open_named_pipe, standard_input

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

ADDRESS = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+://")
GLOB_CHARACTER = re.compile(r"[*?\[]")


class FileNames(tuple[str, ...]):
    """Names of files, in a type that cannot be confused with a list of texts."""


def find_sources(source: object, any_suffix: bool, lines: bool = False) -> list[Source]:
    """Return the sources in the order of reading.

    A folder gives its files with a known ending, or all files with `any_suffix`. With `lines` the format is one of lines, so
    that a list of strings may be the lines themselves.
    """
    if isinstance(source, str | PurePath):
        return _find_by_name(str(source), any_suffix)
    if isinstance(source, list | tuple) and source and all(isinstance(one, str | PurePath) for one in source):
        if not isinstance(source, FileNames):
            if lines and _are_texts(source):
                return [_memory_source(source)]
            if not lines and not any(map(_looks_like_a_name, source)):
                raise FileNotFoundError(f"{str(source[0])!r:.60} is no file: if these are texts, say so by format='text'")
        return [found for one in source for found in _find_by_name(str(one), any_suffix)]
    return [_memory_source(source)]


def _are_texts(items: Sequence[str | PurePath]) -> bool:
    """Whether strings are texts and not names of files; refuse a mix of both."""
    texts = [item for item in items if not _looks_like_a_name(item)]
    if not texts:
        return False
    there = next((item for item in items if isinstance(item, PurePath) or _exists(item)), None)
    if there is None:
        return True
    raise StreamError(
        f"the list holds the name of a file, {str(there)!r:.60}, and what is no file, {str(texts[0])!r:.60}: pass names as "
        f"paths (pathlib), or texts as an array or a series"
    )


def _looks_like_a_name(item: str | PurePath) -> bool:
    """Whether this names a file: one that is there, an address, or what is written like a path or with a known ending."""
    if isinstance(item, PurePath) or item == STANDARD_INPUT or ADDRESS.match(item) or _exists(item):
        return True
    if not item or re.search(r"\s", item):
        return False
    return bool(os.path.dirname(item)) or suffix_format(strip_codec_suffix(item)) is not None


def _exists(name: str) -> bool:
    try:
        return os.path.exists(name) or (bool(GLOB_CHARACTER.search(name)) and bool(glob.glob(name, recursive=True)))
    except (OSError, ValueError):  # too long for a name, or with characters that names cannot have
        return False


def _memory_source(source: object) -> InMemory:
    name = f"the {type(source).__name__}"
    if hasattr(source, "read") and not hasattr(source, "__arrow_c_stream__"):
        raise TypeError(f"a stream is made of names of files or of rows, got {name}, an open file: pass its path")
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__") or hasattr(source, "shape"):
        return InMemory(name, source, once=type(source).__name__ == "RecordBatchReader")
    if isinstance(source, Iterator):
        return InMemory(name, source, once=True)
    if isinstance(source, Mapping) or not isinstance(source, Iterable) or isinstance(source, bytes):
        raise TypeError(
            f"a stream is made of names of files, tables, arrays or an iterable of them, got {one_line(source, 80)}"
        )
    return InMemory(name, source)


def _find_by_name(name: str, any_suffix: bool) -> list[Source]:
    if not name:
        raise ValueError("a stream needs the name of a file, got an empty one")
    if name == STANDARD_INPUT:
        return [standard_input()]
    if ADDRESS.match(name):
        return _find_remote(name, any_suffix)
    if os.path.isdir(name):
        found = sorted(os.path.join(folder, one) for folder, _, names in os.walk(name) for one in names)
        return [_local_source(path) for path in _select_readable(name, found, name, any_suffix)]
    if GLOB_CHARACTER.search(name) and not os.path.exists(name):
        found = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
        if not found:
            raise FileNotFoundError(f"{name} matches no file")
        return [_local_source(path) for path in found]
    return [_local_source(name)]


def _local_source(path: str) -> Source:
    from pyarrow.fs import LocalFileSystem

    with explain_read_errors(path):
        about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):
        return open_named_pipe(path)
    return File(path, path, LocalFileSystem(), about.st_size, about.st_mtime_ns)


def _select_readable(folder: str, paths: list[str], base: str, any_suffix: bool) -> list[str]:
    """Leave out hidden files and, where no format was named, those without a known ending; refuse several formats."""
    shown = [path for path in paths if not _is_hidden(path[len(base) :])]
    formats = {path: suffix_format(strip_codec_suffix(path)) for path in shown}
    chosen = shown if any_suffix else [path for path in shown if formats[path] is not None]
    if not chosen:
        among = f", only {len(shown)} with unknown endings: name their format=" if shown else ""
        raise FileNotFoundError(f"{folder} is a folder without files to read{among}")
    several = sorted({found.name for path in chosen if (found := formats[path]) is not None})
    if len(several) > 1:
        raise StreamError(f"{folder} holds files of several formats, {' and '.join(several)}: choose some by a glob")
    return chosen


def _is_hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in PurePath(path.lstrip("/\\")).parts)


def _find_remote(address: str, any_suffix: bool) -> list[Source]:
    from pyarrow.fs import FileSelector, FileType

    filesystem, path = _filesystem(address)
    scheme = address.split("://", 1)[0]
    with explain_read_errors(address):
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
    chosen = found if wild else _select_readable(address, found, path, any_suffix)
    return [File(f"{scheme}://{one.lstrip('/')}", one, filesystem, infos[one].size, infos[one].mtime_ns) for one in chosen]


def _filesystem(address: str) -> tuple[FileSystem, str]:
    """Return the file system of an address and the path in it: pyarrow's own, or one of fsspec."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        filesystem, path = fs.FileSystem.from_uri(address)
        return filesystem, path
    except OSError as error:
        raise StreamError(f"{address} cannot be read: {one_line_message(error)}") from error
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
            raise StreamError(f"{address} cannot be read: {one_line_message(error)}") from error
        return fs.PyFileSystem(fs.FSSpecHandler(found)), path
