"""A lock on a folder that ends with its process, however that ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path


class FolderLock:
    """Holds a folder for one process; another one is refused."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o666)
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(self._descriptor, msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise ValueError(
                f"{folder} is in use by another process: stop it first, or name another folder by --state"
            ) from None

    def release(self) -> None:
        """Let others have the folder."""
        os.close(self._descriptor)
