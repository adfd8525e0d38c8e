"""Files of headwater whose functions a command calls: ``python -m benchmarks.files_crossed fit gaussian rows.csv``.

Calls while a module is being imported are left out. Kernels are compiled code, and count only where Python calls them.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import headwater
from headwater.cli import main

ROOT = Path(headwater.__file__).parent
FUNCTION = 0x1  # the flag of code that has fast locals: bodies of modules and classes have not


class Tracer:
    """Counts calls by file, in every thread."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.importing = threading.local()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(f"{ROOT}/"):
            return
        depth = getattr(self.importing, "depth", 0)
        if code.co_name == "<module>":
            self.importing.depth = depth + (1 if event == "call" else -1)
        elif event == "call" and not depth and code.co_flags & FUNCTION:
            self.calls[code.co_filename.removeprefix(f"{ROOT}/")] += 1


def trace(arguments: list[str]) -> Counter[str]:
    """Run a command and return the number of calls by file."""
    tracer = Tracer()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        main(arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return tracer.calls


if __name__ == "__main__":
    found = trace(sys.argv[1:])
    for name, calls in sorted(found.items()):
        print(f"{calls:10,}  {name}", file=sys.stderr)
    rooms = Counter(name.split("/")[0] for name in found)
    print(f"{len(found)} files: {', '.join(f'{room} {number}' for room, number in rooms.most_common())}", file=sys.stderr)
