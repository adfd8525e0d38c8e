"""python -m benchmarks.refinement: one pass over rows in any order, against ten restarts of scikit-learn on all of them.

Without options that choose, all is measured and written to docs/benchmarks; with them, only printed, unless --out is given.
What peers need minutes for is kept, by the rows that it was found on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import page
from benchmarks.line import Line
from benchmarks.refinement_contenders import CONTENDERS, contender
from benchmarks.refinement_cost import ROWS as LONG
from benchmarks.refinement_cost import cost
from benchmarks.refinement_data import HELD_OUT, ORDERS, ROWS
from benchmarks.refinement_lines import cost_line, real_lines, set_lines
from benchmarks.refinement_page import PAGE
from benchmarks.refinement_peers import folder
from benchmarks.refinement_real import REALS, REPEATS, real_sets
from benchmarks.refinement_sets import SETS, Plan, compared, told
from benchmarks.refinement_summary import summaries
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import one_thread

PARTS = ("sets", "real", "cost")
CHOOSING = ("sets", "first", "orders", "rows", "contender", "parts")


@benchmark
def refinement(scale: Scale) -> Iterator[Line]:
    plan = Plan(
        scale.first_seed, range(SETS if scale.judged else scale.seeds), rows=scale.rows(ROWS), held_out=scale.rows(HELD_OUT),
        cache=folder() if scale.judged else None,
    )  # fmt: skip
    yield from set_lines(list(compared(plan)))
    yield from real_lines(list(real_sets(plan, REALS if scale.judged else REALS[-1:], REPEATS if scale.judged else 1)))
    yield cost_line(cost(scale.first_seed, scale.rows(LONG, least=40_000), scale.repeats))


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    chosen = any(getattr(options, name) is not None for name in CHOOSING)
    if chosen and not options.quick and not options.render and options.out == page.OUT:
        for _ in measure(options, options.parts or PARTS[:1]):
            pass
    else:
        page.run(PAGE, options, partial(measure, options, options.parts or PARTS))


def measure(options: argparse.Namespace, parts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield all that was measured so far, set after set, and say it."""
    plan = planned(options)
    figures: dict[str, Any] = {
        "seed": plan.seed,
        "rows": plan.rows,
        "held_out": plan.held_out,
        "sets": [],
        "real": [],
        "cost": None,
    }
    print(f"{', '.join(one.name for one in plan.contenders)}: loss, seconds of learning + of the first reading", flush=True)
    reals = REALS[-1:] if options.quick else REALS
    with one_thread():
        for part, entries in (("sets", compared(plan)), ("real", real_sets(plan, reals, 1 if options.quick else REPEATS))):
            for entry in entries if part in parts else ():
                print(told(entry), flush=True)
                figures[part].append(entry)
                yield figures
        for (order, name), each in summaries(figures["sets"]).items():
            print(f"{order:14} {name:24} {each}")
        if "cost" in parts:
            figures["cost"] = cost(plan.seed, LONG // 20 if options.quick else LONG, contenders=plan.contenders)
            print(cost_line(figures["cost"]).note)
            yield figures


def planned(options: argparse.Namespace) -> Plan:
    first, sets = options.first or 0, options.sets or (2 if options.quick else SETS)
    rows = options.rows or (ROWS // 40 if options.quick else ROWS)
    cache = options.cache or (None if options.quick else folder())
    return Plan(
        options.seed, range(first, first + sets), options.orders or tuple(ORDERS), tuple(options.contender or CONTENDERS), rows,
        HELD_OUT // 40 if options.quick else HELD_OUT, cache=cache,
    )  # fmt: skip


def parser() -> argparse.ArgumentParser:
    result = page.parser(PAGE, __doc__)
    result.add_argument("--sets", type=int, help=f"how many data sets (default: {SETS})")
    result.add_argument("--first", type=int, help="number of the first set")
    result.add_argument("--orders", type=partial(named, tuple(ORDERS)), help=f"any of {', '.join(ORDERS)}, with commas between")
    result.add_argument("--parts", type=partial(named, PARTS), help=f"any of {', '.join(PARTS)}, with commas between")
    result.add_argument("--rows", type=int, help=f"rows of a set (default: {ROWS})")
    result.add_argument("--contender", type=contender, action="append", metavar="NAME:KEY=VALUE,...", help="in place of ours")
    result.add_argument("--cache", type=Path, help="where peers are kept (default: HEADWATER_BENCHMARK_CACHE)")
    return result


def named(known: Sequence[str], text: str) -> tuple[str, ...]:
    """Names of a list with commas, all of them known."""
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
    return names


if __name__ == "__main__":
    main()
