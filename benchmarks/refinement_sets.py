"""What `refinement` measures on drawn sets: the loss and the seconds of every peer, and of every contender in every order.

An entry is ready for JSON: a set, its `peers` (one for each n_init) and its `runs` (one for each order and contender). Losses
are nats a row on rows held out, against the reference; below zero is better than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.refinement_contenders import CONTENDERS, Contender, Run, streamed
from benchmarks.refinement_data import HELD_OUT, ORDERS, ROWS, arranged, draw
from benchmarks.refinement_peers import INITS, RESTARTS, Peers, Task, peers_of

SETS = 60

Entry = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """How sets are compared: how large, in which orders, by whom; and where peers are stored, if they are."""

    seed: int = 1000
    orders: Sequence[str] = tuple(ORDERS)
    contenders: tuple[Contender, ...] = CONTENDERS
    rows: int = ROWS
    held_out: int = HELD_OUT
    restarts: int = RESTARTS
    cache: Path | None = None


def compared(plan: Plan, number: int) -> Entry:
    """The set of this number."""
    drawn = draw(plan.seed, number, plan.rows, plan.held_out)
    shape = drawn.shape
    task = Task(f"refinement-{plan.seed}-{number}", shape.n_components, drawn.rows, drawn.held_out, restarts=plan.restarts)
    peers = peers_of(task, plan.cache)
    runs = []
    for order in plan.orders:
        rows = arranged(drawn, order, number)
        for one in plan.contenders:
            run = streamed(one.model(shape.n_components, number), rows, drawn.held_out)
            runs.append(run_entry(order, one.name, run, peers))
    return {"set": number, "text": str(shape), **asdict(shape), "peers": peer_entries(peers), "runs": runs}


def peer_entries(peers: Peers) -> list[Entry]:
    return [
        {"n_init": n_init, "loss": peers.reference - peers.score(n_init), "seconds": peers.seconds(n_init)} for n_init in INITS
    ]


def run_entry(order: str, name: str, run: Run, peers: Peers) -> Entry:
    return {
        "order": order, "contender": name, "loss": peers.reference - run.score, "learning": run.learning, "reading": run.reading
    }  # fmt: skip
