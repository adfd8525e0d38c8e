"""One pass over rows in any order, against ten restarts of scikit-learn on all of them.

``python -m pages refinement`` measures it and writes docs/benchmarks/refinement.md; ``--set`` and ``--out`` make other runs:

    python -m pages refinement --only sets --set sets=24 --set seed=77 --set "orders=('shuffled',)" --out /tmp/some
    python -m pages refinement --only cost --set "contenders=('small:reservoir=2000', 'default')" --out /tmp/small

What peers need minutes for is stored, by the rows that it was found on. `python -m benchmarks refinement` has the same figures
as lines with targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import refinement_values as values
from benchmarks.line import Line
from benchmarks.refinement_contenders import CONTENDERS, compile_kernels, contender
from benchmarks.refinement_cost import ROWS as LONG
from benchmarks.refinement_cost import best, cost
from benchmarks.refinement_data import HELD_OUT, LONGEST, ORDERS, ROWS, SMALL, draw
from benchmarks.refinement_lines import cost_line, real_lines, set_lines
from benchmarks.refinement_peers import POLISH, RESTARTS, folder
from benchmarks.refinement_real import FLOOR, REALS, REPEATS, real_set
from benchmarks.refinement_sets import SETS, Plan, compared
from benchmarks.refinement_summary import CLOSE, PEERS
from benchmarks.registry import benchmark
from benchmarks.scale import Scale as Topic
from pages.page import Measures, Page, data_directory


@benchmark
def refinement(scale: Topic) -> Iterator[Line]:
    plan = Plan(
        scale.first_seed, rows=scale.rows(ROWS), held_out=scale.rows(HELD_OUT), cache=folder() if scale.judged else None
    )  # fmt: skip
    prepare()
    yield from set_lines([compared(plan, number) for number in range(SETS if scale.judged else scale.seeds)])
    reals, repeats = (REALS, REPEATS) if scale.judged else (REALS[-1:], 1)
    yield from real_lines({real.name: real_set(plan, real, repeats, data_directory()) for real in reals})
    yield cost_line(cost(scale.first_seed, scale.rows(LONG, least=40_000), scale.repeats))


@dataclass(frozen=True)
class Scale:
    """How much is done. A contender is NAME, or NAME:PARAMETER=VALUE,PARAMETER=VALUE; peers are stored if `cached`."""

    seed: int = 4000
    first: int = 0
    sets: int = SETS
    orders: tuple[str, ...] = tuple(ORDERS)
    contenders: tuple[str, ...] = ("plain stream:reservoir=0", "default")
    rows: int = ROWS
    held_out: int = HELD_OUT
    real: tuple[str, ...] = tuple(real.name for real in REALS)
    repeats: int = REPEATS
    long: int = LONG
    cached: bool = True

    @property
    def plan(self) -> Plan:
        return Plan(
            self.seed, self.orders, tuple(map(contender, self.contenders)), self.rows, self.held_out,
            cache=folder() if self.cached else None,
        )  # fmt: skip


def measure_sets(scale: Scale, data: Path | None) -> Measures:
    for number in range(scale.first, scale.first + scale.sets):
        yield f"{number}", partial(compared, scale.plan, number)


def measure_real(scale: Scale, data: Path | None) -> Measures:
    for real in REALS:
        if real.name in scale.real and real.path(data):
            yield real.name, partial(real_set, scale.plan, real, scale.repeats, data)


def measure_cost(scale: Scale, data: Path | None) -> Measures:
    yield "long stream", partial(cost, scale.seed, scale.long, contenders=scale.plan.contenders)


def absent(scale: Scale, data: Path | None) -> list[str]:
    return [real.name for real in REALS if real.name in scale.real and not real.path(data)]


def prepare() -> None:
    compile_kernels(CONTENDERS, draw(0, 0, 12_000, 10).rows)


PAGE = Page(
    name="refinement", room="benchmarks", full=Scale(), minutes=60, seeds="4000, with the number of the set",
    quick=Scale(sets=2, rows=ROWS // 40, held_out=HELD_OUT // 40, real=("abalone",), repeats=1, long=LONG // 20, cached=False),
    parts={"sets": measure_sets, "real": measure_real, "cost": measure_cost},
    values={"sets": values.sets, "real": values.real, "cost": values.cost},
    names={
        "code": values, "CLOSE": CLOSE, "PEERS": PEERS, "RESTARTS": RESTARTS, "POLISH": POLISH, "SMALL": SMALL,
        "LONGEST": LONGEST, "FLOOR": FLOOR, "best": best,
    },
    absent=absent, prepare=prepare,
)  # fmt: skip
