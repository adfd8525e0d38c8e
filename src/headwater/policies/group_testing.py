"""Groups of rows: whether all rows of one are usual, against learned rows, against its own past, and against other groups.

Each row has a p-value among the rows that it is compared with, and Fisher's method joins those of a group: the sum of -2 log p
has a chi-squared law if rows are independent. Rows that share the m rows they are compared with are not, quite: the sum of n of
them has 1 + n/m times that variance, which is taken off (Bates et al. 2023, "Testing for outliers with conformal p-values").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from headwater.core.statistics import Array
from headwater.core.values import AnyArray

LEAST_COMPARED = 20  # rows to compare with; with fewer there is no p-value
MORE = 2.0  # times the rows of the group: p-values near 0.01 are up to a third too small then, and more with fewer


def join_pvalues(log_sums: Array, rows: Array, compared: Array) -> Array:
    """Return the p-value of each group: its sum of log p, its rows, and the rows that each of them was compared with.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater.policies.group_testing import join_pvalues
    >>> join_pvalues(np.log([0.3, 0.001]), np.array([1.0, 1.0]), np.array([1e9, 1e9])).round(4)
    array([0.3  , 0.001])
    """
    wider = np.sqrt(1.0 + rows / np.maximum(compared, 1.0))
    found = chi2.sf((-2.0 * log_sums + 2.0 * rows * (wider - 1.0)) / wider, 2.0 * np.maximum(rows, 1.0))
    return np.where((rows > 0.0) & (compared >= np.maximum(LEAST_COMPARED, MORE * rows)), found, np.nan)


def judge_groups(
    scores: Array, pvalues: Array, groups: AnyArray | None, window: int | None, known: float, uniforms: Array
) -> dict[str, AnyArray]:
    """Return a line for each window of each group, the oddest first; `known` rows made the p-values of single rows.

    Ties between rows are broken by uniform numbers.
    """
    scored = np.flatnonzero(~np.isnan(scores))
    names, codes = (np.zeros(1, dtype=np.int64), np.zeros(len(scores), dtype=np.int64))
    if groups is not None:
        names, codes = np.unique(groups, return_inverse=True)
    order = scored[np.argsort(codes[scored], kind="stable")]  # the rows of each group, in their order
    code = codes[order]
    sizes = np.bincount(code, minlength=len(names))
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    part = place // min(window, len(order) + 1) if window else np.zeros(len(order), dtype=np.int64)
    begins = np.flatnonzero(np.r_[True, (code[1:] != code[:-1]) | (part[1:] != part[:-1])]) if len(order) else np.empty(0, int)
    rows = np.diff(np.r_[begins, len(order)]).astype(np.float64)
    score, shake = scores[order], uniforms[order]

    def add(values: Array) -> Array:
        return np.add.reduceat(values, begins) if len(begins) else np.empty(0)

    columns: dict[str, AnyArray] = {} if groups is None else {"group": names[code[begins]]}
    columns |= {"first": np.minimum.reduceat(order, begins) if len(begins) else order, "rows": rows.astype(np.int64)}
    columns |= {"score": add(score) / np.maximum(rows, 1.0)}
    columns["pvalue"] = join_pvalues(add(np.log(pvalues[order])), rows, np.full(len(begins), known))
    if window:
        logs, before = _against_past(score, shake, code, begins, rows)
        columns["pvalue_past"] = join_pvalues(add(logs), rows, before)
    if groups is not None:
        others = (len(order) - sizes[code]).astype(np.float64)
        above = _above(score, shake, np.zeros(len(order), dtype=np.int64)) - _above(score, shake, code)
        columns["pvalue_peers"] = join_pvalues(add(np.log((above + shake) / (others + 1.0))), rows, others[begins])
    oddest = np.argsort(columns["pvalue"], kind="stable")
    return {name: values[oddest] for name, values in columns.items()}


def _above(scores: Array, shake: Array, code: NDArray[np.int64]) -> Array:
    """How many rows of the same code are odder than each row."""
    order = np.lexsort((shake, scores, code))
    sizes = np.bincount(code)
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    found = np.empty(len(order))
    found[order] = (np.repeat(sizes, sizes) - 1 - place).astype(np.float64)
    return found


def _against_past(
    scores: Array, shake: Array, code: NDArray[np.int64], begins: NDArray[np.int64], rows: Array
) -> tuple[Array, Array]:
    """The log p-value of each row among those of its group before its window, and how many these are, window by window."""
    logs, before = np.zeros(len(scores)), np.zeros(len(begins))
    first = 0
    for at, begin in enumerate(begins.tolist()):
        if at and code[begin] != code[begins[at - 1]]:
            first = begin
        window = slice(begin, begin + int(rows[at]))
        past = np.sort(scores[first:begin])
        before[at] = len(past)
        low, high = (np.searchsorted(past, scores[window], side) for side in ("left", "right"))
        logs[window] = np.log((len(past) - high + shake[window] * (high - low + 1.0)) / (len(past) + 1.0))
    return logs, before
