"""What refinement costs a long stream: the default beside the plain stream; warm-up, stream and first reading apart."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np

from benchmarks.data import Array, make_truth
from benchmarks.refinement_contenders import CONTENDERS, Contender, learned

ROWS, WIDTH, COMPONENTS = 1_000_000, 10, 10
WARM_UP = 20_000  # rows in which every contender has found its start


@dataclass(frozen=True)
class Spent:
    """CPU seconds."""

    warm_up: float
    stream: float
    reading: float


def spent(contender: Contender, rows: Array, seed: int) -> Spent:
    model = contender.model(COMPONENTS, seed)
    begin = process_time()
    learned(model, rows[:WARM_UP])
    started = process_time()
    learned(model, rows[WARM_UP:])
    end = process_time()
    _ = model.weights_
    return Spent(started - begin, end - started, process_time() - end)


def cost(seed: int, rows: int = ROWS, repeats: int = 3, contenders: tuple[Contender, ...] = CONTENDERS) -> dict[str, Any]:
    """Run contenders in turns on the same rows; ready for JSON."""
    rng = np.random.default_rng(seed)
    drawn = make_truth(COMPONENTS, WIDTH, rng).sample(rows, rng)
    found: dict[str, list[Spent]] = {one.name: [] for one in contenders}
    for repeat in range(repeats):
        for one in contenders:
            found[one.name].append(spent(one, drawn, repeat))
    runs = [
        {"contender": name, "warm_up": [each.warm_up for each in all_of], "stream": [each.stream for each in all_of],
         "reading": [each.reading for each in all_of]}
        for name, all_of in found.items()
    ]  # fmt: skip
    return {"rows": rows, "n_components": COMPONENTS, "width": WIDTH, "warm_up_rows": WARM_UP, "runs": runs}


def extra(costs: dict[str, Any]) -> float:
    """How much more the last contender takes than the first: after the warm-up, with the first reading, in the best repeat."""
    first, last = (best(costs["runs"][at]) for at in (0, -1))
    return last / first - 1.0


def best(run: dict[str, Any]) -> float:
    """Seconds of the best repeat, after the warm-up and with the first reading."""
    return min(stream + reading for stream, reading in zip(run["stream"], run["reading"], strict=True))
