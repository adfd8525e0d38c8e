"""Orders of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def order_labelled_first(labels: NDArray[np.int64], order: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Return row numbers in an order that puts labelled rows first, up to half of the first `rows` if others are not labelled.

    Labelled rows are worth more than others, but clusters without labels must be represented, too.
    """
    if not labels.size:
        return order
    named = labels[order] >= 0
    most = max(rows // 2, rows - int(np.count_nonzero(~named)))
    first = named & (np.cumsum(named) <= most)
    first |= ~named & (np.cumsum(~named) <= rows - np.count_nonzero(first))
    return np.concatenate([order[first], order[~first]])
