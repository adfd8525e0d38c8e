"""Incremental EM: passes over blocks of rows, with new parameters after each block (Neal and Hinton 1998).

A pass of batch EM moves the parameters once. Where a pass is dear, moving them after every block of rows gets farther in as
many passes: the statistics of all rows are a sum over blocks, and a block that is read again replaces its own part of it.
"""

from __future__ import annotations

from functools import reduce
from itertools import accumulate
from operator import add

from headwater.core.batch import Batch
from headwater.core.climb import Climb
from headwater.core.contracts import Model
from headwater.core.state import Summary
from headwater.core.statistics import Params, Prior, Stats
from headwater.kernels.parallel import run_tasks

BLOCKS = 8  # of rows, at most: more of them gain little
ROWS_A_COLUMN = 16  # of a block, at least, for each column: reading parameters out costs as much as some rows
PARTS = 4  # of a block, for threads
MOST_NUMBERS = 2**24  # in the statistics of all blocks


def climb_blocks(
    model: Model[Prior, Stats, Params],
    name: str,
    prior: Prior,
    statistics: Stats,
    batch: Batch,
    passes: int,
    tol: float,
    n_threads: int | None = None,
) -> Climb[Stats, Params]:
    """Make passes until one gains less than tol a row, and an E-step of all rows at the end.

    `statistics` are means per row to begin with. The trace has the score of the rows in each pass, every block at the
    parameters of its turn, and last that of the E-step at the end.
    """
    blocks = cut_blocks(batch, sum(array.size for array in statistics.to_arrays().values()))
    sizes = [sum(part.size for part in parts) for parts in blocks]

    def summarize(parameters: Params, parts: list[Batch]) -> Summary[Stats]:
        found = run_tasks(lambda part: model.summarize(parameters, part, n_threads=1), parts, n_threads)
        return reduce(add, found)

    def read_out(means: Stats) -> Params:
        return model.readout(name, prior, means, batch.size)

    own = [statistics.scaled(size / batch.size) for size in sizes]
    trace: list[float] = []
    while len(trace) < passes and not (len(trace) > 1 and trace[-1] - trace[-2] < tol):
        later = [*accumulate(reversed(own), add)][::-1]  # the sums of what blocks from each on hold
        seen: list[Stats] = []
        score = 0.0
        for at, parts in enumerate(blocks):
            summary = summarize(read_out(seen[-1] + later[at] if seen else later[0]), parts)
            own[at] = summary.statistics.scaled(1.0 / batch.size)
            seen.append(seen[-1] + own[at] if seen else own[at])
            score += summary.score
        trace.append(score / batch.size)
    parameters = read_out(reduce(add, own))
    end = reduce(add, [summarize(parameters, parts) for parts in blocks])
    return Climb(end, parameters, (*trace, end.score / end.size), len(trace) < passes)


def cut_blocks(batch: Batch, numbers: int) -> list[list[Batch]]:
    """Return blocks of rows from all over the batch, each in parts; `numbers` are those of its statistics."""
    n, width = batch.X.shape
    number = max(1, min(BLOCKS, n // (ROWS_A_COLUMN * width), MOST_NUMBERS // max(numbers, 1)))
    blocks = [batch[at::number] if number > 1 else batch for at in range(number)]
    return [[block[len(block) * one // PARTS : len(block) * (one + 1) // PARTS] for one in range(PARTS)] for block in blocks]
