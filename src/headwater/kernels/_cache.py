"""Compiled kernels on disk: found by what they were compiled from, compiled by one process at a time, never trusted blindly.

Numba keeps an index and a file of code for each kernel. What is different here:

- A file is out of date when any source of the kernels has changed, not only the one that holds the kernel: helpers of other
  files are inlined into it. What counts is what sources say, not their times, so that copies of an installation stay valid.
- Of processes that start at once, one compiles a kernel, and the others wait for it and load its file.
- A file of code is named by its signature and processor. Numba counts, and two processes that count at once write the same
  name for different code.
- A damaged file is compiled anew, and one that cannot be written is done without.
- Where the installation is read-only, kernels that were compiled in it beforehand are used. What is missing goes to the
  user's cache directory, or is compiled at every start if there is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from functools import cache
from pathlib import Path
from threading import get_ident
from types import FunctionType
from typing import TYPE_CHECKING

from headwater.kernels._lock import FileLock

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.core.compiler import CompileResult
    from numba.core.dispatcher import Dispatcher
    from numba.core.typing.templates import Signature

# Stands at the end of a file of code, before the digest of all that is before it. Numba's own reader does not look there.
MARK = b"\nheadwater sha256 "
NOT_KEPT = "headwater cannot keep its compiled kernels in %s (%s): they are compiled again at the next start."

# A process with this variable compiles all kernels that it uses, and replaces the files on disk.
COMPILE_ANEW = "HEADWATER_COMPILE_ANEW"


def cache_directory(dispatcher: Dispatcher) -> str | None:
    """Return the directory in which the code of a kernel is kept, None if it cannot be."""
    path = getattr(getattr(dispatcher, "_cache", None), "cache_path", None)
    return path if path and os.access(path, os.W_OK) else None


def use_safe_files(dispatcher: Dispatcher) -> None:
    """Give a kernel the cache that is described above."""
    files = getattr(dispatcher, "_cache", None)
    # Not part of Numba's public interface: if it changes, Numba's own cache is used.
    if _SafeFile is not None and type(files).__name__ == "FunctionCache" and hasattr(files, "_cache_file"):
        files.__class__ = _SafeCache
        files.start(dispatcher.py_func)


def release_lock(dispatcher: Dispatcher) -> None:
    """Let other processes compile a kernel, whether or not this process has compiled it."""
    if isinstance(files := getattr(dispatcher, "_cache", None), _SafeCache or ()):
        files.release()


@cache
def source_stamp(source: str) -> str:
    """Return a digest of a source file and of all sources of the kernels."""
    found = hashlib.sha256()
    for path in (*sorted(Path(__file__).parent.glob("*.py")), Path(source)):
        with contextlib.suppress(OSError):
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


_SafeCache: type[_Cache] | None = None
_SafeFile: type[_File] | None = None
_reported: set[str] = set()

with contextlib.suppress(ImportError, AttributeError):
    from numba.core.caching import FunctionCache, IndexDataCacheFile

    class _File(IndexDataCacheFile):
        """Index and code of a kernel; each file of code ends with its digest, for damaged code would end the process."""

        def save(self, key: tuple[object, ...], data: object) -> None:
            name = self._data_name_pattern.replace("{number:d}", hashlib.sha256(str(key).encode()).hexdigest()[:12])
            self._save_data(name, data)
            index = self._load_index()
            index[key] = name
            self._save_index(index)

        def load(self, key: tuple[object, ...]) -> object:
            try:
                return super().load(key)
            except Exception:  # whatever pickle makes of garbage
                return None

        def _load_index(self) -> dict[tuple[object, ...], str]:
            try:
                return super()._load_index()
            except Exception:  # whatever pickle makes of garbage
                return {}

        def _load_data(self, name: str) -> object:
            with open(self._data_path(name), "rb") as file:
                data = file.read()
            code, mark, digest = data.rpartition(MARK)
            if mark and hashlib.sha256(code).hexdigest().encode() != digest:
                raise ValueError(f"{name} is damaged")
            return super()._load_data(name)

        def _dump(self, obj: object) -> bytes:
            data: bytes = super()._dump(obj)
            return data + MARK + hashlib.sha256(data).hexdigest().encode()

    class _Cache(FunctionCache):
        """A cache that ignores damaged files, and that may be read-only."""

        def start(self, function: FunctionType) -> None:
            """Turn Numba's cache of a function into one of this kind."""
            self._cache_file.__class__ = _File
            source = function.__code__.co_filename
            self._cache_file._source_stamp = source_stamp(source)
            self._locks: dict[int, FileLock] = {}  # by thread
            self._installed: _File | None = None
            beside = os.path.join(os.path.dirname(os.path.abspath(source)), "__pycache__")
            if type(self._impl.locator).__name__ == "UserWideCacheLocator" and os.path.isdir(beside):
                self._installed = _File(beside, self._impl.filename_base, self._cache_file._source_stamp)

        def load_overload(self, sig: Signature, target_context: BaseContext) -> CompileResult | None:
            """Return the code of a signature; None, and the lock of the kernel, if this process has to compile it."""
            target_context.refresh()
            found = self._find(sig, target_context)
            if found is None and get_ident() not in self._locks:
                lock = FileLock(os.path.join(self.cache_path, f"{self._impl.filename_base}.lock"))
                with contextlib.suppress(OSError):
                    self._impl.locator.ensure_cache_path()
                if lock.acquire():
                    self._locks[get_ident()] = lock
                    found = self._find(sig, target_context)  # another process may have compiled it meanwhile
                    if found is not None:
                        self.release()
            return found

        def _find(self, sig: Signature, target_context: BaseContext) -> CompileResult | None:
            if os.environ.get(COMPILE_ANEW):
                return None
            key = self._index_key(sig, target_context.codegen())
            for file in (self._cache_file, self._installed):
                with contextlib.suppress(Exception):  # compiled anew, which replaces the files
                    if file is not None and (data := file.load(key)) is not None:
                        return self._impl.rebuild(target_context, data)
            return None

        def save_overload(self, sig: Signature, data: CompileResult) -> None:
            try:
                super().save_overload(sig, data)
            except Exception as error:
                if self.cache_path not in _reported:
                    _reported.add(self.cache_path)
                    why = getattr(error, "strerror", None) or error
                    logging.getLogger("headwater").warning(NOT_KEPT, self.cache_path, why)
            finally:
                self.release()

        def release(self) -> None:
            """Let other processes compile this kernel."""
            if (lock := self._locks.pop(get_ident(), None)) is not None:
                lock.release()

    _SafeCache, _SafeFile = _Cache, _File
