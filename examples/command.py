"""What the examples share: where their data are, their figures on disk, and the command line."""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from examples.page import PAGES, Page, write_page

OUT = Path(__file__).resolve().parents[1] / "docs" / "examples"


def data_directory() -> Path | None:
    """The directory that HEADWATER_DATA names, if it is one."""
    name = os.environ.get("HEADWATER_DATA", "")
    return Path(name) if name and Path(name).is_dir() else None


def read(out: Path, of: Page) -> dict[str, Any]:
    """The figures of every example of the page that was run."""
    path = out / f"{of.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write(out: Path, results: dict[str, Any], of: Page) -> None:
    """Write the figures, all or nothing; a list of numbers or words takes one line."""
    text = re.sub(r"\[[^][{}]*\]", lambda found: " ".join(found[0].split()), json.dumps(rounded(results), indent=1))
    part = out / f"{of.name}.part"
    part.write_text(f"{text}\n", encoding="utf-8")
    part.replace(out / f"{of.name}.json")


def rounded(value: Any) -> Any:
    """The same with numbers that a reader can bear."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def run(
    name: str, file: str, measure: Callable[[Path, bool], dict[str, Any]], about: str | None, argv: Sequence[str] | None
) -> int:
    """Measure one example on its file, unless its figures are only to be rendered again, and write page and pictures."""
    parser = argparse.ArgumentParser(prog=f"python -m examples.{name}", description=about)
    parser.add_argument("--quick", action="store_true", help="few and small, for a test of the command; needs --out")
    parser.add_argument("--render", action="store_true", help="write page and pictures again from the figures there are")
    parser.add_argument("--data", type=Path, default=data_directory(), help="directory of data sets (default: HEADWATER_DATA)")
    parser.add_argument("--out", type=Path, default=OUT, help="where to write (default: docs/examples)")
    options = parser.parse_args(argv)
    of = PAGES[name]
    results, began = read(options.out, of), time.perf_counter()
    if options.render:
        if not results:
            parser.error(f"there are no figures to render in {options.out}")
    else:
        if options.quick and options.out == OUT:
            parser.error("a quick run is no result: give another --out")
        if options.data is None or not (options.data / file).is_file():
            parser.error(f"HEADWATER_DATA, or --data, must name a directory of data sets that has {file}")
        options.out.mkdir(parents=True, exist_ok=True)
        with threadpool_limits(1):
            results[name] = measure(options.data / file, options.quick)
        write(options.out, results, of)
        results = read(options.out, of)
    write_page(options.out, results, of)
    print(f"Wrote {of.name}.md, its pictures and its figures to {options.out} in {time.perf_counter() - began:.0f} s.")
    return 0
