"""What a model loses when rows are learned in many parts, against one stream of the same rows.

``python -m pages parts_and_rounds`` measures it and writes docs/benchmarks/parts_and_rounds.md. Rows are shuffled, so that
parts are alike, or sorted by component, so that parts differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import headwater as hw
from benchmarks.data import Array
from benchmarks.parts_and_rounds_data import KINDS, Drawn, Kind
from benchmarks.parts_and_rounds_values import losses
from headwater import distributed
from pages.page import Measures, Page
from pages.results import Figures

PARTS = (1, 4, 16, 64)
ROUNDS: tuple[Any, ...] = (1, 4, "auto")


@dataclass(frozen=True)
class Scale:
    """How much is done: data sets of each kind, rows divided by so much, numbers of parts."""

    sets: int = 2
    divide: int = 1
    parts: tuple[int, ...] = PARTS
    seed: int = 1000


def measure(scale: Scale, data: Path | None) -> Measures:
    with distributed.connect("local") as client:
        for at, kind in enumerate(KINDS):
            for number in range(scale.sets):
                rng = np.random.default_rng([scale.seed, number, at])
                yield f"{kind.name}/{number}", partial(loss_set, kind, rng, scale, client)


def loss_set(kind: Kind, rng: np.random.Generator, scale: Scale, client: Any) -> Figures:
    drawn = kind.draw(kind.rows // scale.divide, rng)
    found = [*compared(drawn, rng, scale.parts, client)]
    return {"kind": kind.name, "rows": len(drawn.rows), "per": kind.per, "losses": found}


def compared(drawn: Drawn, rng: np.random.Generator, parts: Sequence[int], client: Any) -> Iterator[list[Any]]:
    """Yield order, way, rounds, and what is lost that way against one stream of the shuffled rows, in nats."""
    orders = {"shuffled": drawn.rows[rng.permutation(len(drawn.rows))], "sorted": drawn.rows}
    again = drawn.rows[rng.permutation(len(drawn.rows))]
    with TemporaryDirectory(prefix="headwater-parts-") as folder:
        bar = drawn.score(streamed(drawn, orders["shuffled"], folder), drawn.held_out)

        def lost(model: Any) -> float:
            return bar - drawn.score(model, drawn.held_out)

        yield ["shuffled", "another stream", None, lost(streamed(drawn, again, folder))]
        yield ["sorted", "one stream", None, lost(streamed(drawn, drawn.rows, folder))]
        for order, rows in orders.items():
            path = saved(rows, folder)
            for n in parts:
                # A round has whole parts, so there are no more rounds than parts.
                for rounds in (one for one in ROUNDS if one == "auto" or one <= n):
                    yield [order, n, rounds, lost(parted(drawn, path, len(rows), n, rounds, client))]


def saved(rows: Array, folder: str) -> str:
    path = Path(folder) / "rows.npy"
    np.save(path, rows)
    return str(path)


def streamed(drawn: Drawn, rows: Array, folder: str) -> Any:
    model = drawn.model()
    for chunk in hw.stream(saved(rows, folder)):
        model.partial_fit(chunk)
    return model


def parted(drawn: Drawn, path: str, rows: int, n_parts: int, rounds: int | str, client: Any) -> Any:
    each = -(-rows // n_parts)
    # A part has whole chunks, so chunks are as small as the smallest parts.
    chunk = max(1, rows // PARTS[-1])
    model = distributed.fit(drawn.model(), path, client=client, rounds=rounds, part_rows=each, chunk_rows=chunk)
    if model.distributed_report_.parts != n_parts:
        raise RuntimeError(f"{model.distributed_report_.parts} parts were made instead of {n_parts}")
    return model


PAGE = Page(
    name="parts_and_rounds", room="benchmarks", full=Scale(), quick=Scale(1, 20, PARTS[:2]), minutes=6,
    seeds="1000, with the number of the set", parts={"losses": measure}, values={"losses": losses}, names={"ROUNDS": ROUNDS},
)  # fmt: skip
