"""The walk of docs/guide/command-line.md: every command on the page is run, and what it says is written beneath it.

    python -m examples.guide            # run the commands and write the page anew
    python -m examples.guide --check    # run them, and fail if one does

A block that begins with ```console holds commands, each after a "$ ", and what they said. Commands run one after the other in
one directory, which is new and thrown away.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "guide" / "command-line.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
LONGEST = 160

Run = Callable[[str], tuple[int, str]]


def commands(page: str) -> list[str]:
    """Every command on the page."""
    return [line[2:] for block in BLOCK.findall(page) for line in block.splitlines() if line.startswith("$ ")]


def written_anew(page: str, run: Run) -> str:
    """The page with what its commands say now; a command that fails is an error."""

    def block(found: re.Match[str]) -> str:
        lines: list[str] = []
        for command in (line[2:] for line in found[1].splitlines() if line.startswith("$ ")):
            code, said = run(command)
            if code != 0:
                raise SystemExit(f"{command} ended with code {code}:\n{said}")
            lines += [f"$ {command}", *(line.rstrip()[:LONGEST] for line in said.strip("\n").splitlines())]
        return "```console\n" + "\n".join(lines) + "\n```"

    return BLOCK.sub(block, page)


def shell(folder: str) -> Run:
    """A function that runs commands in a folder, where `headwater` is that of this repository."""
    binaries = Path(folder) / ".bin"
    binaries.mkdir()
    script = binaries / "headwater"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m headwater "$@"\n')
    script.chmod(0o755)
    paths = {
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        "COLUMNS": str(LONGEST),
    }

    def run(command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"],
            cwd=folder, env={**os.environ, **paths}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    return run


def main(argv: Sequence[str] | None = None) -> int:
    """Run the commands of the page, and write it."""
    parser = argparse.ArgumentParser(prog="python -m examples.guide", description="Run the commands of its page.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        page = written_anew(PAGE.read_text(encoding="utf-8"), shell(folder))
    if not options.check:
        PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
