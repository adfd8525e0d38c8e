"""What `refinement` measures on drawn sets: the loss and the seconds of every peer, and of every contender in every order.

An entry is ready for JSON: a set, its `peers` (one for each n_init) and its `runs` (one for each order and contender). Losses
are nats a row on rows held out, against the reference; below zero is better than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.refinement_contenders import CONTENDERS, Contender, Run, compile_kernels, streamed
from benchmarks.refinement_data import HELD_OUT, ORDERS, ROWS, arranged, draw
from benchmarks.refinement_peers import INITS, RESTARTS, Peers, Task, peers_of

SETS = 60

Entry = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is compared: which sets, how large, in which orders, by whom; and where peers are kept, if they are."""

    seed: int = 1000
    sets: Sequence[int] = range(SETS)
    orders: Sequence[str] = tuple(ORDERS)
    contenders: tuple[Contender, ...] = CONTENDERS
    rows: int = ROWS
    held_out: int = HELD_OUT
    restarts: int = RESTARTS
    cache: Path | None = None


def compared(plan: Plan) -> Iterator[Entry]:
    """Yield set after set."""
    for number in plan.sets:
        drawn = draw(plan.seed, number, plan.rows, plan.held_out)
        shape = drawn.shape
        task = Task(f"refinement-{plan.seed}-{number}", shape.n_components, drawn.rows, drawn.held_out, restarts=plan.restarts)
        peers = peers_of(task, plan.cache)
        if number == plan.sets[0]:
            compile_kernels(plan.contenders, drawn.rows)
        runs = []
        for order in plan.orders:
            rows = arranged(drawn, order, number)
            for one in plan.contenders:
                run = streamed(one.model(shape.n_components, number), rows, drawn.held_out)
                runs.append(run_entry(order, one.name, run, peers))
        yield {"set": number, "text": str(shape), **asdict(shape), "peers": peer_entries(peers), "runs": runs}


def peer_entries(peers: Peers) -> list[Entry]:
    return [
        {"n_init": n_init, "loss": peers.reference - peers.score(n_init), "seconds": peers.seconds(n_init)} for n_init in INITS
    ]


def run_entry(order: str, name: str, run: Run, peers: Peers) -> Entry:
    return {
        "order": order, "contender": name, "loss": peers.reference - run.score, "learning": run.learning, "reading": run.reading
    }  # fmt: skip


def told(entry: Entry) -> str:
    """One set in one line, for reading along: the losses of the peers, then the contenders, the mean of their runs."""
    if not entry["runs"]:
        return f"{entry['set']} was left out"
    text = f"{entry['set']:>3} {entry['text']} sklearn " + " ".join(f"{peer['loss']:+.4f}" for peer in entry["peers"])
    text += f" {entry['peers'][0]['seconds']:5.2f} s"
    found: dict[tuple[str, str], list[Entry]] = {}
    for run in entry["runs"]:
        found.setdefault((run["order"], run["contender"]), []).append(run)
    order = None
    for (each, _), runs in found.items():
        loss, learning, reading = (mean(run[name] for run in runs) for name in ("loss", "learning", "reading"))
        text += f" | {each}" if each != order else " "
        text += f" {loss:+.4f} {learning:.2f}+{reading:.2f} s"
        order = each
    return text
