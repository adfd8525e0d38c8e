"""The step that the values of a column are rounded to: 1, 0.1, 0.05, a 255th, or none.

Only distinct values count, so ties and weights change nothing, and neither do columns that pile up at 0 and 100.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Values

AUTO = "auto"  # the resolution that is found on the rows of the warm-up
MANTISSAS = (5.0, 2.5, 2.0, 1.0)  # of the steps that people round to
ON_STEP = 0.95  # of the distinct values: filled-in means and a few finer ones do no harm
PRECISIONS = (2e-15, 1.2e-7)  # of float64, with some ulps to spare, and of what was float32 once
SLACK = 1e-6  # of a step, beside the precision of the values
MOST_SLACK = 0.05  # of a step; beyond it every value lies near some multiple
LEAST_EVIDENCE = 20.0  # nats by which chance would have to put all values on multiples
FINEST = 1e-9  # of the range of the values: a finer step changes nothing
FINEST_COMMON = 1e-6  # of the size of the values; finer steps are not searched for, since float32 has such
FEW_VALUES = 64  # which are looked at first: most columns without a step are found out by them
MOST_VALUES = 4096
LEAST_POWER = -300  # of ten; the inverses of smaller steps overflow
BLOCK = 4096  # values times steps that are tried at once


def find_steps(X: Matrix) -> Array:
    """Return the step (d,) of each column of rows that may have gaps; 0 where there is none."""
    values = X.values if isinstance(X, GappedRows) else X
    return np.array([find_step(column[~np.isnan(column)]) for column in np.asarray(values, dtype=float).T])


def find_step(values: Array) -> float:
    """Return the coarsest step whose multiples nearly all of the distinct values are, from 0 or from the least; 0 if none."""
    distinct = np.unique(np.asarray(values, dtype=float))
    if len(distinct) < 2:
        return 0.0
    return max(_find_step(distinct, precision) for precision in PRECISIONS)


def _find_step(distinct: Array, precision: float) -> float:
    """The step of values that are known with this precision: of few of them at first, and then of more."""
    step = 0.0
    for most in (FEW_VALUES, MOST_VALUES):
        chosen = distinct[_spaced(len(distinct), most)]
        step = max(_find_round_step(chosen, precision), _find_common_step(_neighbours(distinct, most), chosen, precision))
        if not step:
            break
    return step


def _spaced(size: int, most: int) -> NDArray[np.int64]:
    return np.arange(size) if size <= most else np.linspace(0, size - 1, most).astype(np.int64)


def _neighbours(distinct: Array, most: int) -> Array:
    """Differences of values that follow one another: small multiples of the step."""
    differences = np.diff(distinct)
    return differences[_spaced(len(differences), most)]


def _find_round_step(values: Array, precision: float) -> float:
    """The coarsest of the steps that people round to; multiples begin at 0."""
    size, reach = float(np.abs(values).max()), float(values[-1] - values[0])
    steps = _round_steps(int(np.ceil(np.log10(reach))), int(np.floor(np.log10(FINEST * reach))))
    slack = SLACK + precision * size / steps  # which rises
    tried = int(np.searchsorted(slack, MOST_SLACK, side="right"))
    steps, slack = steps[:tried], slack[:tried]
    block = max(1, BLOCK // len(values))
    for begin in range(0, len(steps), block):
        units = values / steps[begin : begin + block, None]
        off = np.count_nonzero(np.abs(units - np.round(units)) > slack[begin : begin + block, None], axis=1)
        for at in np.flatnonzero(len(values) - off >= ON_STEP * len(values)):
            on = int(len(values) - off[at])
            if _evidence(on, float(slack[begin + at])) - off[at] * np.log(len(values)) > LEAST_EVIDENCE:
                step = float(steps[begin + at])
                return step if step <= reach else 0.0
    return 0.0


@cache
def _round_steps(top: int, bottom: int) -> Array:
    """Steps that people round to, from the coarsest; as quotients, those below one are the nearest numbers."""
    powers = range(top, max(bottom, LEAST_POWER) - 1, -1)
    return np.array([m * 10.0**power if power >= 0 else m / 10.0**-power for power in powers for m in MANTISSAS])


def _find_common_step(differences: Array, values: Array, precision: float) -> float:
    """The greatest common divisor of the differences (Euclid), for columns that were scaled or shifted after rounding."""
    size = float(np.abs(values).max())
    error = 4.0 * precision * size
    differences = differences[differences > error]
    if not len(differences):
        return 0.0
    step = float(differences.min())
    while step > FINEST_COMMON * size and MOST_SLACK * step > error + SLACK * step:
        multiples = np.maximum(np.round(differences / step), 1.0)
        left = np.abs(differences - multiples * step)
        off = left > SLACK * step + error
        if not off.any():
            step = float(differences @ multiples / (multiples @ multiples))
            cells = np.log(float(values[-1] - values[0]) / step + 1.0)
            return step if _evidence(len(values) - 2, SLACK + error / step) - cells > LEAST_EVIDENCE else 0.0
        step = float(left[off].min())
    return 0.0


def _evidence(on: int, slack: float) -> float:
    """Nats against so many values lying near multiples by chance."""
    return on * -float(np.log(2.0 * slack))


def check_resolution(resolution: Values, width: int) -> str | Array | None:
    """Return a resolution as None, "auto" or one step (d,) a column, or refuse it."""
    if resolution is None or isinstance(resolution, str):
        if resolution not in (None, AUTO):
            raise ValueError(f"resolution must be None, 'auto', a number or one for each column, got {resolution!r}")
        return resolution
    try:
        steps = np.asarray(resolution, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"resolution must hold numbers: {error}") from error
    if steps.shape not in ((), (width,)):
        raise ValueError(f"resolution must be one number, or one for each of {width} columns, got shape {steps.shape}")
    if not np.isfinite(steps).all() or steps.min() < 0.0:
        raise ValueError(f"resolution must be 0 for a column without a step, or more, got {steps.tolist()}")
    return np.array(np.broadcast_to(steps, (width,)))


def settle_steps(resolution: str | Array | None, X: Matrix) -> Array | None:
    """Return the step of each column, found on these rows if it is to be; None where no resolution was asked for."""
    return find_steps(X) if isinstance(resolution, str) else resolution
