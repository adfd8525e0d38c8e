"""report: one page about a model: odd rows, what was learned, how learning went, how sure it is."""

from __future__ import annotations

from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.estimators.base import StreamingEstimator
from headwater.io.files.atomic import atomic_write

if TYPE_CHECKING:
    from jinja2 import Template

    from headwater.reports.reading import Data

MISSING_PACKAGES = "reports need matplotlib and jinja2: pip install 'headwater[plot]'"


def report(
    model: StreamingEstimator,
    data: Data | None = None,
    path: str | PathLike[str] | None = None,
    *,
    title: str | None = None,
    command: str | None = None,
    source: str | None = None,
    image_shape: tuple[int, int] | None = None,
    components: int = 24,
    values: int = 10,
    odd_rows: int = 10,
    level: float = 0.9,
) -> str:
    """Write one page of HTML about a model, which needs nothing else: no network, no scripts.

    Parameters
    ----------
    model : estimator
        A model that has learned something. If a `Monitor` watched it learn, the page shows scores and weights over the stream.
    data : iterable of Chunk or arrays, optional
        Rows to look for odd ones in, and to draw: read once, chunk by chunk. An array, a frame or a path will do. Columns that
        `headwater.stream(..., keep=)` keeps, such as an id, are shown beside odd rows. The page of a chain shows one column as
        a series, with dates if such a column, or the index of a data frame, has them.
    path : str or path, optional
        Where to write the page.
    title : str, optional
        Its headline. Default: the name of the data, if it has one; otherwise how many rows were learned.
    command : str, optional
        The command that learned the model, shown as it is.
    source : str, optional
        What was read, shown as it is.
    image_shape : (int, int), optional
        Height and width, where columns are pixels. Default: a square, if the columns look like pixels.
    components, values, odd_rows : int
        Most components to show, values of each, and odd rows.
    level : float, default=0.9
        Probability of the credible intervals.

    Returns
    -------
    html : str
        The page.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(3000, 2))
    >>> html = hw.report(hw.GaussianMixture(1, random_state=0).partial_fit(rows), rows, title="Noise")
    >>> "<h1>Noise</h1>" in html, "<script" in html
    (True, False)
    """
    if not isinstance(model, StreamingEstimator):
        raise TypeError(f"model must be a headwater model, got {type(model).__name__}")
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as missing:
        raise ImportError(MISSING_PACKAGES) from missing
    from headwater.reports.context import PageOptions, context_of

    options = PageOptions(title, command, source, image_shape, components, values, odd_rows, level)
    html = _template().render(context_of(model, data, options))
    if path is not None:
        with atomic_write(Path(path)) as place:
            place.write_text(html, encoding="utf-8")
    return html


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("headwater.reports", ".")
    return Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    ).get_template("page.html")  # fmt: skip
