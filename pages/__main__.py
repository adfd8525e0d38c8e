"""python -m pages [NAME ...]: measure what pages show, store the figures, and render the pages from them."""

from __future__ import annotations

import argparse
import ast
import shlex
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from pages import machine
from pages.page import NAMES, Page, data_directory, find
from pages.render import text, write
from pages.results import Results, plain


def main(argv: Sequence[str] | None = None) -> int:
    parser = command()
    options = parser.parse_args(argv)
    names = [name for name in NAMES if name in options.names or NAMES[name] in options.names]
    for name in options.names:
        if name not in NAMES and name not in NAMES.values():
            parser.error(f"{name!r} is no page: choose from {', '.join(NAMES)}, or a folder of them")
    if not names:
        print("\n".join(state(find(name)) for name in NAMES))
    for name in names:
        page = find(name)
        if options.check:
            check(parser, page)
        else:
            make(parser, page, options, argv)
    return 0


def command() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pages", description=__doc__, epilog="Without names: the state of all.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}; or papers, benchmarks, examples")
    parser.add_argument("--quick", action="store_true", help="few and small sets, to see that everything runs; needs --out")
    parser.add_argument("--render", action="store_true", help="write page and pictures again from the figures there are")
    parser.add_argument("--check", action="store_true", help="fail if a page is not what its template and figures say")
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="measure this part only (repeatable)")
    parser.add_argument("--fresh", action="store_true", help="do not go on with a run that was interrupted")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="do more or less (repeatable)")
    parser.add_argument("--data", type=Path, default=data_directory(), help="directory of data sets (default: HEADWATER_DATA)")
    parser.add_argument("--out", type=Path, help="where to write (default: docs/papers, docs/benchmarks or docs/examples)")
    return parser


def make(parser: argparse.ArgumentParser, page: Page, options: argparse.Namespace, argv: Sequence[str] | None) -> None:
    """Measure, unless the figures there are will do, and render."""
    out, began = options.out or page.out, time.perf_counter()
    scale = changed(parser, page.quick if options.quick else page.full, options.set)
    results = page.results(out, scale)
    if options.render:
        if not results.figures:
            parser.error(f"there are no figures to render in {out}")
    else:
        if out == page.out and scale != page.full:
            parser.error("a quick or changed run is no result: give another --out")
        if results.scale != plain(asdict(scale)):
            parser.error(f"{out} holds the figures of a run of another size: give another --out")
        for part in options.only:
            if part not in page.parts:
                parser.error(f"{part!r} is no part of {page.name}: choose from {', '.join(page.parts)}")
        for file in page.needs:
            if options.data is None or not (options.data / file).is_file():
                parser.error(f"HEADWATER_DATA, or --data, must name a directory of data sets that has {file}")
        out.mkdir(parents=True, exist_ok=True)
        said = shlex.join(["python", "-m", "pages", *(argv if argv is not None else sys.argv[1:])])
        measure(page, results, results.begin([*page.parts], options.only, options.fresh), scale, options.data, said)
    write(page, results, out)
    print(f"Wrote {page.name}.md, its pictures and its figures to {out} in {time.perf_counter() - began:.0f} s.")


def changed(parser: argparse.ArgumentParser, scale: Any, settings: Sequence[str]) -> Any:
    """A scale with some fields changed."""
    for setting in settings:
        name, _, value = setting.partition("=")
        if name not in asdict(scale):
            parser.error(f"{name!r} is no size of this page: choose from {', '.join(asdict(scale))}")
        now = getattr(scale, name)
        try:
            wanted = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            wanted = value
        if now is not None and type(wanted) is not type(now):
            parser.error(f"{name} is {now!r}: {value!r} is not of that kind")
        scale = replace(scale, **{name: wanted})
    return scale


def measure(page: Page, results: Results, parts: Sequence[str], scale: Any, data: Path | None, said: str = "") -> None:
    """Measure the sets of some parts that are not there yet; figures are written after each."""
    results.absent = page.absent(scale, data)
    about = {"commit": machine.revision(), "command": said, "seeds": page.seeds, "machine": machine.describe()}
    with threadpool_limits(1), warnings.catch_warnings():
        for kind in page.silent:
            warnings.simplefilter("ignore", kind)
        if parts:
            page.prepare()
        for part in parts:
            kept = results.figures.setdefault(part, {})
            for name, work in page.parts[part](scale, data):
                if name in kept:
                    continue
                began = time.perf_counter()
                kept[name] = plain(work())
                seconds = time.perf_counter() - began
                before = results.runs.get(part, {}).get("seconds") or 0.0
                results.runs[part] = plain({**about, "date": about["machine"]["date"], "seconds": before + seconds})
                print(f"{part}: {name}, {seconds:.1f} s", flush=True)
                results.write()
            results.pending.remove(part)
            results.write()


def check(parser: argparse.ArgumentParser, page: Page) -> None:
    """Hold a page of docs against its template and figures."""
    if text(page, page.results()) != (page.out / f"{page.name}.md").read_text(encoding="utf-8"):
        parser.error(
            f"docs/{page.template} is not what {page.template} and its figures say: python -m pages {page.name} --render"
        )


def state(page: Page) -> str:
    """Name, minutes, and how old the figures are."""
    results = page.results()
    commits = dict.fromkeys(run["commit"] for run in results.runs.values())
    stated = []
    for commit in commits:
        number = machine.changed_files(commit, "src/headwater")
        stated.append(
            f"{commit} ({'not in this history' if number is None else f'{number} files of the library changed since'})"
        )
    return f"{page.name:18} {page.minutes:4g} min  {'; '.join(stated) or 'no figures'}"


if __name__ == "__main__":
    raise SystemExit(main())
