"""Run the code on the pages of docs, and write its output beneath it.

    python -m examples.guide                         # every page of the site that has code
    python -m examples.guide docs/guide/mixtures.md  # one page

The blocks of a page run in order, in a new temporary folder:

- a block that begins with ```python, in one session for the whole page. If a block that begins with ```output follows, what was
  printed is written there;
- a block that begins with ```console holds commands, each after a "$ ", and their output.

A line "% not run: reason" before a block leaves it out.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from headwater.kernels._jit import COMPILING, COMPILING_ANEW

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
WALK = DOCS / "guide" / "command-line.md"
BLOCK = re.compile(
    r"(?P<skip>^% not run: .*\n)?^```(?P<kind>python|console)\n(?P<code>.*?)^```\n(?P<output>\n```output\n.*?^```\n)?",
    re.DOTALL | re.MULTILINE,
)
WRITTEN_BY_COMMANDS = ("papers", "benchmarks", "examples", "contributing")  # folders of pages that other commands write or test
LONGEST = 160  # characters of a line of output

Say = Callable[[str], str]


def find_pages() -> list[Path]:
    """Return the pages of the site with blocks that run, and the README."""
    pages = [page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).parts[0] not in WRITTEN_BY_COMMANDS]
    return [page for page in [ROOT / "README.md", *pages] if list(find_blocks(page.read_text(encoding="utf-8")))]


def find_blocks(page: str, kind: str | None = None) -> Iterator[re.Match[str]]:
    """Yield the blocks of a page that run, all of them or those of one kind."""
    return (found for found in BLOCK.finditer(page) if not found["skip"] and kind in (None, found["kind"]))


def list_commands(page: str) -> list[str]:
    """Return every command of a page."""
    return [line[2:] for found in find_blocks(page, "console") for line in found["code"].splitlines() if line.startswith("$ ")]


def write_answers(page: str, run_python: Say, run_command: Say) -> str:
    """Return the page with the present output of its code and commands."""

    def renew(found: re.Match[str]) -> str:
        if found["skip"]:
            return found[0]
        if found["kind"] == "python":
            said = run_python(found["code"])
            output = f"\n```output\n{_trim(said)}```\n" if found["output"] else ""
            return f"```python\n{found['code']}```\n{output}"
        commands = [line[2:] for line in found["code"].splitlines() if line.startswith("$ ")]
        return "```console\n" + "".join(f"$ {command}\n{_trim(run_command(command))}" for command in commands) + "```\n"

    return BLOCK.sub(renew, page)


def _trim(said: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in said.strip("\n").splitlines())


def start_session(name: str) -> Say:
    """Return a function that runs blocks of Python in one session, and returns what each printed."""
    session: dict[str, object] = {"__name__": "__main__"}

    def run(code: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"the code of {name}", "exec"), session)
        return printed.getvalue()

    return run


def start_shell(folder: str) -> Say:
    """Return a function that runs commands in a folder, where `headwater` is that of this repository."""
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

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"],
            cwd=folder, env={**os.environ, **paths}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise SystemExit(f"{command} ended with code {done.returncode}:\n{done.stdout}")
        # The first command on a new machine also prints that kernels are compiled; the pages leave this line out.
        lines = done.stdout.splitlines(keepends=True)
        return "".join(line for line in lines if line.rstrip() not in (COMPILING, COMPILING_ANEW))

    return run


def renew_page(page: Path) -> str:
    """Run the code of a page in a new folder, and return the page with the new output."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return write_answers(page.read_text(encoding="utf-8"), start_session(page.name), start_shell(folder))


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages that are named, or all of them."""
    names = sys.argv[1:] if argv is None else argv
    for page in [Path(name).resolve() for name in names] or find_pages():
        page.write_text(renew_page(page), encoding="utf-8")
        print(page.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
