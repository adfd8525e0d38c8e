"""A lock between processes: of several that start together, one compiles a kernel and the others wait for its file.

The lock only saves work. Files are replaced as a whole, so that two processes that compile the same kernel at once do no harm:
if a file system has no locks, or a wait is too long, a process goes on without the lock.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import IO

LONGEST_WAIT = 120.0  # seconds: the largest kernel compiles in five, on a machine with ten processes per core in fifty
POLL_INTERVAL = 0.02  # seconds; a small kernel compiles in 0.05


class FileLock:
    """The lock that a file stands for, held from `acquire` to `release` or to the end of the process."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def acquire(self, longest_wait: float = LONGEST_WAIT) -> bool:
        """Wait for the lock; return whether it is held."""
        end = time.monotonic() + longest_wait
        while True:
            try:
                file = open(self.path, "ab")  # noqa: SIM115 (open until it is released)
            except OSError:
                return False
            try:
                _lock(file)
                if self._is_at_path(file):  # not a file that its last holder has removed meanwhile
                    self._file = file
                    return True
            except (BlockingIOError, PermissionError):
                if time.monotonic() >= end:
                    end = -1.0
            except OSError:  # a file system without locks
                end = -1.0
            file.close()
            if end < 0.0:
                return False
            time.sleep(POLL_INTERVAL)

    def release(self) -> None:
        """Release the lock, and remove the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # Windows removes no file that is open: it stays, empty
                os.unlink(self.path)
            with contextlib.suppress(OSError):
                _unlock(self._file)
            self._file.close()
            self._file = None

    def _is_at_path(self, file: IO[bytes]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), os.stat(self.path))
        except OSError:
            return False


if os.name == "nt":
    import msvcrt as _system

    def _lock(file: IO[bytes]) -> None:
        file.seek(0)
        _system.locking(file.fileno(), _system.LK_NBLCK, 1)

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        _system.locking(file.fileno(), _system.LK_UNLCK, 1)

else:
    import fcntl as _system

    def _lock(file: IO[bytes]) -> None:
        _system.flock(file, _system.LOCK_EX | _system.LOCK_NB)

    def _unlock(file: IO[bytes]) -> None:
        _system.flock(file, _system.LOCK_UN)  # closing is not enough: a forked child may have the file open, too
