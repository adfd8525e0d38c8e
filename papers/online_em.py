"""Paper 002's experiments made again: online EM for mixtures, hidden Markov models and sensor arrays (Cappé, slides of 2010).

Run it with ``python -m papers.online_em``; it writes docs/papers/online_em.md, the pictures beside it and the figures behind
both (online_em.json). All data are generated. A run that was broken off goes on where it ended; ``--only`` makes parts again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from papers import online_em_array as array
from papers import online_em_averaging as averaging
from papers import online_em_batch as batch
from papers import online_em_blocks as blocks
from papers import online_em_chains as chains
from papers import online_em_exponents as exponents
from papers import online_em_gradient as gradient
from papers import online_em_limit as limit
from papers import online_em_smoothing as smoothing
from papers.online_em_claims import claims
from papers.online_em_page import render
from papers.online_em_results import FULL, NAME, PARTS, QUICK, Figures, Results, Scale

OUT = Path(__file__).resolve().parents[1] / "docs" / "papers"
Measures = Iterator[tuple[str, Callable[[], Figures]]]  # the sets of a part, and what measures each


def make_records(scale: Scale) -> Measures:
    for rows in batch.LENGTHS:
        yield f"passes/{rows}", partial(batch.passes_set, rows, scale)
    for rows in scale.sizes:
        yield f"sizes/{rows}", partial(batch.sizes_set, rows, scale)
    yield "starts", partial(batch.starts_set, scale)


def make_averaging(scale: Scale) -> Measures:
    yield "trajectories", partial(averaging.averaging_set, scale)


def make_exponents(scale: Scale) -> Measures:
    for case in exponents.TRUTHS:
        for start in exponents.STARTS:
            yield f"{case}/{start}", partial(exponents.exponents_set, case, start, scale)


def make_blocks(scale: Scale) -> Measures:
    for line in blocks.LINES:
        for size in blocks.SIZES:
            yield f"{line}/{size}", partial(blocks.blocks_set, line, size, scale)


def make_gradient(scale: Scale) -> Measures:
    for decay in gradient.DECAYS:
        yield f"beside/{decay:g}", partial(gradient.beside_set, decay, scale)
        yield f"leaving/{decay:g}", partial(gradient.leaving_set, decay, scale)


def make_scans(scale: Scale) -> Measures:
    yield "scans", partial(batch.scans_set, scale)


def make_limit(scale: Scale) -> Measures:
    for law in limit.LAWS:
        yield law.name, partial(limit.limit_set, law, scale)


def make_smoothing(scale: Scale) -> Measures:
    for law in smoothing.LAWS:
        yield law, partial(smoothing.smoothing_set, law, scale)


def make_chains(scale: Scale) -> Measures:
    for case in chains.CASES:
        for line in chains.LINES:
            yield f"{case}/{line.name}", partial(chains.chains_set, case, line, scale)


def make_array(scale: Scale) -> Measures:
    for rows in array.sizes(scale):
        for line in array.LINES:
            yield f"{rows}/{line.name}", partial(array.array_set, line, rows, scale)


def make_efficiency(scale: Scale) -> Measures:
    for case in averaging.TRUTHS:
        for rows in averaging.sizes(scale):
            yield f"{case}/{rows}", partial(averaging.efficiency_set, case, rows, scale)


MAKERS = {
    "records": make_records, "averaging": make_averaging, "efficiency": make_efficiency, "exponents": make_exponents,
    "blocks": make_blocks,
    "gradient": make_gradient, "scans": make_scans, "limit": make_limit, "smoothing": make_smoothing,
    "chains": make_chains, "array": make_array,
}  # fmt: skip


# The command


def run(results: Results, parts: Sequence[str]) -> None:
    scale = Scale.stored(results.scale)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for part in parts:
            kept = results.figures.setdefault(part, {})
            for name, measure in MAKERS[part](scale):
                if name in kept:
                    continue
                began = time.perf_counter()
                kept[name] = measure()
                print(f"{part}: {name}, {time.perf_counter() - began:.1f} s", flush=True)
                results.write()
            results.pending.remove(part)
            results.write()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m papers.{NAME}", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few and short runs, for a test of the command")
    parser.add_argument("--only", choices=PARTS, action="append", help="make this part only (may be given again)")
    parser.add_argument("--fresh", action="store_true", help="do not go on with a run that was broken off")
    parser.add_argument("--render", action="store_true", help="write page and pictures again from the figures there are")
    parser.add_argument("--out", type=Path, default=OUT, help="where to write (default: docs/papers)")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    scale: Any = asdict(QUICK if options.quick else FULL)
    results = Results.read(options.out / f"{NAME}.json", scale)
    if options.render:
        if not results.figures:
            parser.error(f"there are no figures to render in {options.out}")
    else:
        if Scale.stored(results.scale) != Scale.stored(scale):
            parser.error(f"{options.out} holds the figures of a run of another size: give another --out")
        run(results, results.begin(options.only or (), options.fresh))  # type: ignore[arg-type]
    render(results, options.out)  # type: ignore[arg-type]
    print("\n".join(claims(results)))  # type: ignore[arg-type]
    print(f"\nWrote {NAME}.md, its pictures and its figures to {options.out} in {time.perf_counter() - began:.0f} s.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
