"""Compiled kernels on disk: a file that is damaged is compiled anew, and one that cannot be written is done without."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from typing import Any

# Stands at the end of a file of code, before the digest of all that is before it. Numba's own reader does not look there.
MARK = b"\nheadwater sha256 "
NOT_KEPT = "headwater cannot keep its compiled kernels in %s (%s): they are compiled again at the next start."


def is_kept(dispatcher: Any) -> bool:
    """Whether the code of a kernel is kept on disk."""
    path = getattr(getattr(dispatcher, "_cache", None), "cache_path", None)
    return bool(path) and os.access(path, os.W_OK)


def keep_soundly(dispatcher: Any) -> None:
    """Let the cache of a kernel survive whatever its files hold."""
    cache = getattr(dispatcher, "_cache", None)
    # Not a public promise of Numba's: where it has changed, its own cache is used as it is.
    if _SoundFile is not None and type(cache).__name__ == "FunctionCache" and hasattr(cache, "_cache_file"):
        dispatcher._cache.__class__ = _SoundCache
        cache._cache_file.__class__ = _SoundFile


_SoundCache: Any = None
_SoundFile: Any = None
_told: set[str] = set()

with contextlib.suppress(ImportError, AttributeError):
    from numba.core.caching import FunctionCache, IndexDataCacheFile

    class _File(IndexDataCacheFile):
        """Index and code of a kernel; each file of code ends with its digest, for damaged code would end the process."""

        def _load_index(self) -> Any:
            try:
                return super()._load_index()
            except Exception:  # whatever pickle makes of garbage
                return {}

        def _load_data(self, name: str) -> Any:
            with open(self._data_path(name), "rb") as file:
                data = file.read()
            code, mark, digest = data.rpartition(MARK)
            if mark and hashlib.sha256(code).hexdigest().encode() != digest:
                raise ValueError(f"{name} is damaged")
            return super()._load_data(name)

        def _dump(self, obj: Any) -> bytes:
            data: bytes = super()._dump(obj)
            return data + MARK + hashlib.sha256(data).hexdigest().encode()

    class _Cache(FunctionCache):
        """A cache in which nothing is found where its files are damaged, and in which nothing need be written."""

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except Exception:
                return None  # compiled anew, which replaces the files

        def save_overload(self, sig: Any, data: Any) -> None:
            try:
                super().save_overload(sig, data)
            except Exception as error:
                if self.cache_path not in _told:
                    _told.add(self.cache_path)
                    why = getattr(error, "strerror", None) or error
                    logging.getLogger("headwater").warning(NOT_KEPT, self.cache_path, why)

    _SoundCache, _SoundFile = _Cache, _File
