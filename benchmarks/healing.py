"""python -m benchmarks.healing: one pass over rows in any order, against ten restarts of scikit-learn on all of them.

Losses are nats a row on rows held out, against the best of ten restarts that were polished far beyond the stop of scikit-learn.
Below zero is better than that. Seconds are CPU seconds of one thread.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.healing_contenders import CONTENDERS, Contender, Run, compile_kernels, contender, streamed
from benchmarks.healing_data import HELD_OUT, ORDERS, ROWS, Shape, arranged, draw
from benchmarks.healing_peers import INITS, RESTARTS, Peers, folder, peers_of
from benchmarks.timing import one_thread

SETS = 64
CLOSE = 0.002


@dataclass(frozen=True)
class Plan:
    """What is compared: sets, how large, in which orders, by whom."""

    seed: int = 1000
    sets: Sequence[int] = range(SETS)
    orders: Sequence[str] = tuple(ORDERS)
    contenders: tuple[Contender, ...] = CONTENDERS
    rows: int = ROWS
    held_out: int = HELD_OUT
    restarts: int = RESTARTS
    cache: Path | None = None


@dataclass(frozen=True)
class Compared:
    """One set: its peers, and the run of each contender in each order."""

    number: int
    shape: Shape
    peers: Peers
    runs: dict[tuple[str, str], Run]

    def loss(self, order: str, name: str) -> float:
        return self.peers.reference - self.runs[order, name].score

    def peer_loss(self, n_init: int) -> float:
        return self.peers.reference - self.peers.score(n_init)


def compared(plan: Plan) -> Iterator[Compared]:
    """Yield set after set."""
    for number in plan.sets:
        drawn = draw(plan.seed, number, plan.rows, plan.held_out)
        name, shape = f"healing-{plan.seed}-{number}", drawn.shape
        peers = peers_of(name, shape.n_components, drawn.rows, drawn.held_out, plan.cache or folder(), plan.restarts)
        if number == plan.sets[0]:
            compile_kernels(plan.contenders, drawn.rows)
        runs = {}
        for order in plan.orders:
            rows = arranged(drawn, order, number)
            for one in plan.contenders:
                runs[order, one.name] = streamed(one.model(shape.n_components, number), rows, drawn.held_out)
        yield Compared(number, shape, peers, runs)


@dataclass(frozen=True)
class Summary:
    """Losses over all sets, and seconds against one fit of scikit-learn, as sums over the sets."""

    mean: float
    ninetieth: float
    worst: float
    close: float
    seconds: float
    ratio: float

    def __str__(self) -> str:
        return (
            f"mean {self.mean:+.4f}  90th {self.ninetieth:+.4f}  worst {self.worst:+.4f}  within {CLOSE} {self.close:4.0%}  "
            f"{self.seconds:6.1f} s  {self.ratio:.2f} of one fit"
        )


def summary(losses: Sequence[float], seconds: float, one_fit: float) -> Summary:
    """Sum up losses and seconds of all sets."""
    values = np.asarray(losses)
    return Summary(
        float(values.mean()), float(np.quantile(values, 0.9)), float(values.max()), float(np.mean(values <= CLOSE)), seconds,
        seconds / one_fit,
    )  # fmt: skip


def summaries(found: Sequence[Compared], plan: Plan) -> dict[tuple[str, str], Summary]:
    """Sum up peers, which know no order, and contenders in each order."""
    one_fit = sum(each.peers.seconds(1) for each in found)
    result = {}
    for n_init in INITS:
        seconds = sum(each.peers.seconds(n_init) for each in found)
        result["any", f"scikit-learn n_init={n_init}"] = summary([each.peer_loss(n_init) for each in found], seconds, one_fit)
    for order in plan.orders:
        for one in plan.contenders:
            seconds = sum(each.runs[order, one.name].seconds for each in found)
            result[order, one.name] = summary([each.loss(order, one.name) for each in found], seconds, one_fit)
    return result


def line(each: Compared, plan: Plan) -> str:
    """One set, for reading along."""
    parts = [f"{each.number:3} {each.shape} sklearn " + " ".join(f"{each.peer_loss(n):+.4f}" for n in INITS)]
    parts[0] += f" {each.peers.seconds(1):5.2f} s"
    for order in plan.orders:
        runs = [(each.loss(order, one.name), each.runs[order, one.name]) for one in plan.contenders]
        parts.append(f"{order} " + "  ".join(f"{loss:+.4f} {run.learning:.2f}+{run.reading:.2f} s" for loss, run in runs))
    return " | ".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    plan = Plan(
        options.seed, range(options.first, options.first + options.sets), options.orders.split(","),
        tuple(options.contender or CONTENDERS), options.rows, cache=options.cache,
    )  # fmt: skip
    print(f"contenders: {', '.join(one.name for one in plan.contenders)}: loss, seconds to learn + to read first", flush=True)
    found = []
    with one_thread():
        for each in compared(plan):
            found.append(each)
            print(line(each, plan), flush=True)
    for (order, name), summed in summaries(found, plan).items():
        print(f"{order:14} {name:24} {summed}")


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser("python -m benchmarks.healing", description=(__doc__ or "").splitlines()[0])
    result.add_argument("--seed", type=int, default=Plan.seed, help="first seed, for fresh data")
    result.add_argument("--sets", type=int, default=SETS, help="how many data sets")
    result.add_argument("--first", type=int, default=0, help="number of the first set")
    result.add_argument("--orders", default=",".join(ORDERS), help=f"any of {', '.join(ORDERS)}, with commas between")
    result.add_argument("--rows", type=int, default=ROWS, help="rows of a set")
    result.add_argument(
        "--contender", type=contender, action="append", metavar="NAME:KEY=VALUE,...", help="instead of those there are; again"
    )
    result.add_argument("--cache", type=Path, help="where peers are kept (default: HEADWATER_BENCHMARK_CACHE)")
    return result


if __name__ == "__main__":
    main()
