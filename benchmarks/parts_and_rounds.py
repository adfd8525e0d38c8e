"""python -m benchmarks.parts_and_rounds: what a model loses when rows are learned in many parts, against one stream.

One pass by `hw.distributed.fit` over 1, 4, 16 and 64 parts of the same rows, in 1 and 4 rounds and in as many as it chooses.
Rows are shuffled, so that parts are alike, or sorted by component, so that each part has seen something else. The bar is one
stream of the shuffled rows; another stream, of the rows in another order, says how much of a difference is luck.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import headwater as hw
from benchmarks import page
from benchmarks.data import Array
from benchmarks.parts_and_rounds_data import KINDS, Drawn, Kind
from benchmarks.parts_and_rounds_page import PAGE
from benchmarks.timing import one_thread
from headwater import distributed

PARTS = (1, 4, 16, 64)
ROUNDS: tuple[Any, ...] = (1, 4, "auto")


def main(arguments: Sequence[str] | None = None) -> None:
    result = page.parser(PAGE, __doc__)
    result.add_argument("--sets", type=int, help="at most so many data sets of each kind")
    options = result.parse_args(arguments)
    page.run(PAGE, options, partial(measure, options))


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    most, divide = options.sets or (1 if options.quick else 100), 20 if options.quick else 1
    parts = PARTS[:2] if options.quick else PARTS
    kinds = [{"name": kind.name, "rows": kind.rows // divide, "sets": min(kind.sets, most), "per": kind.per} for kind in KINDS]
    figures: dict[str, Any] = {"kinds": [], "parts": list(parts), "rounds": list(ROUNDS), "found": []}
    with one_thread(), distributed.connect("local") as client:
        for kind, about in zip(KINDS, kinds, strict=True):
            for number in range(about["sets"]):
                rng = np.random.default_rng([options.seed, number, KINDS.index(kind)])
                drawn = kind.draw(about["rows"], rng)
                for entry in compared(kind, number, drawn, rng, parts, client):
                    print("  ".join(str(value) for value in entry.values()), flush=True)
                    figures["found"].append(entry)
            figures["kinds"].append(about)
            yield figures


def compared(
    kind: Kind, number: int, drawn: Drawn, rng: np.random.Generator, parts: Sequence[int], client: Any
) -> Iterator[dict[str, Any]]:
    """Yield what every way loses against one stream of the shuffled rows, in nats."""
    orders = {"shuffled": drawn.rows[rng.permutation(len(drawn.rows))], "sorted": drawn.rows}
    again = drawn.rows[rng.permutation(len(drawn.rows))]
    with TemporaryDirectory(prefix="headwater-parts-") as folder:
        bar = drawn.score(streamed(drawn, orders["shuffled"], folder), drawn.held_out)

        def entry(order: str, way: int | str, rounds: int | str | None, model: Any) -> dict[str, Any]:
            lost = bar - drawn.score(model, drawn.held_out)
            return {"kind": kind.name, "set": number, "order": order, "way": way, "rounds": rounds, "loss": lost}

        yield entry("shuffled", "another stream", None, streamed(drawn, again, folder))
        yield entry("sorted", "one stream", None, streamed(drawn, drawn.rows, folder))
        for order, rows in orders.items():
            path = saved(rows, folder)
            for n in parts:
                # A round has whole parts, so there are no more rounds than parts.
                for rounds in (one for one in ROUNDS if one == "auto" or one <= n):
                    yield entry(order, n, rounds, parted(drawn, path, len(rows), n, rounds, client))


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


if __name__ == "__main__":
    main()
