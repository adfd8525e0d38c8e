"""What a model has learned, in a few kinds of records that are the same for every model."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, TypedDict


@dataclass(frozen=True)
class Value:
    """A number with a name: of a column, a word, a coefficient.

    Attributes
    ----------
    name : str
        The column, the word, or what else it is.
    value : float
        In the units of the column.
    spread : float, optional
        Its standard deviation from row to row, in the same units.
    low, high : float, optional
        A credible interval, of the level that the description has.
    standing : float, optional
        How far it stands out, on a scale on which 1 is much: of a mean the distance from that of all rows in their standard
        deviations, of a word the logarithm of how much more probable it is than in all rows.
    """

    name: str
    value: float
    spread: float | None = None
    low: float | None = None
    high: float | None = None
    standing: float | None = None

    is_share: ClassVar[bool] = False


@dataclass(frozen=True)
class Share(Value):
    """The probability of a category or a flag, which has no spread."""

    is_share: ClassVar[bool] = True


@dataclass(frozen=True)
class Word(Value):
    """A category or a flag in place of a number: what it is, and what was expected. `value` is its tail probability."""

    word: str = ""
    expected: str = ""


@dataclass(frozen=True)
class Component:
    """One of the hidden sources: its number in the model, its weight (and an interval, if there is one), values, name."""

    index: int
    weight: float
    values: tuple[Value, ...] = ()
    low: float | None = None
    high: float | None = None
    remark: str = ""
    name: str = ""

    @property
    def label(self) -> str:
        """What it is called: its name, or its number."""
        return self.name or str(self.index)


@dataclass(frozen=True)
class Matrix:
    """Probabilities of passing from each row's name to each column's; of one component, if `component` names it."""

    title: str
    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    often: tuple[float, ...] = ()
    component: int | None = None


@dataclass(frozen=True)
class Curve:
    """Values along an axis: the spectrum of a component, the power by angle."""

    title: str
    positions: tuple[float, ...]
    values: tuple[float, ...]
    along: str
    what: str
    component: int | None = None


class LeftOut(TypedDict):
    """The fields of a `Description` about components that it leaves out."""

    left_out: int
    weight_left_out: float


class DescribedComponents(LeftOut, total=False):
    """The fields of a `Description` about its components."""

    value: str
    spread: str
    components: tuple[Component, ...]
    values_left_out: int


class DescribedStates(DescribedComponents, total=False):
    """The fields of a `Description` about the states of a chain."""

    component: str
    weight: str
    matrices: tuple[Matrix, ...]


@dataclass(frozen=True)
class Description:
    """What a model has learned. `model.describe()` makes it, `print` shows it, `to_dict` turns it into what JSON knows.

    Attributes
    ----------
    model, algorithm : str
        The class of the model, and the word for how it learns.
    rows, columns : int
        Rows learned from, and how wide they are.
    unit : str
        What a row is: "rows", "documents", "sequences", "frames" or "snapshots".
    width : str
        What a column is: "columns", "words", "symbols", "bins" or "sensors".
    component, weight, value, spread : str
        What components, their weights, their values and the spreads are called; empty where there is none.
    components : tuple of Component
        The heaviest first.
    left_out, weight_left_out : int and float
        Components that are not among them, and what they weigh together.
    values_left_out : int
        Columns or words of each component that are not among its values.
    matrices, curves, facts
        What else there is: `Matrix`, `Curve` and `Value`.
    level : float
        Probability of the intervals.
    notes : tuple of str
        What a reader should know: sentences.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = hw.GaussianMixture(1, random_state=0).fit(rows).describe()
    >>> [found.rows, found.columns, len(found.components), found.unit]
    [300, 2, 1, 'rows']
    """

    model: str = ""
    algorithm: str = ""
    rows: int = 0
    columns: int = 0
    unit: str = "rows"
    width: str = "columns"
    component: str = "component"
    weight: str = "weight"
    value: str = ""
    spread: str = ""
    components: tuple[Component, ...] = ()
    left_out: int = 0
    weight_left_out: float = 0.0
    values_left_out: int = 0
    matrices: tuple[Matrix, ...] = ()
    curves: tuple[Curve, ...] = ()
    facts: tuple[Value, ...] = ()
    level: float = 0.9
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """One line: the model, how it learns, what it has seen."""
        unit = self.unit[:-1] if self.rows == 1 else self.unit
        width = f" of {self.columns:,} {self.width[:-1] if self.columns == 1 else self.width}" if self.columns else ""
        number = len(self.components) + self.left_out
        parts = f", {number:,} {self.component}{'s' * (number != 1)}" if number else ""
        return f"{self.model} ({self.algorithm}){parts}: {self.rows:,} {unit}{width} seen"

    def __str__(self) -> str:
        from headwater.diagnostics.description_text import description_text

        return description_text(self)

    def _repr_html_(self) -> str:
        from headwater.diagnostics.description_text import description_html

        return description_html(self)

    def to_dict(self) -> dict[str, object]:
        """Return the same as dicts, lists, strings and numbers; numbers that are not finite are None."""
        return {"title": self.title, **_to_plain(self)}


def _to_plain(value: object) -> Any:
    if is_dataclass(value):
        return {field.name: _to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_to_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
