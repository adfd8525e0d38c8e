"""Statistics: expected sufficient statistics, which add, shrink and move towards one another."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# What a model is made of. Only the model looks into a prior and into parameters; of statistics all know that they are linear.
Prior = TypeVar("Prior")
Stats = TypeVar("Stats", bound="Statistics")
Params = TypeVar("Params")
Part = TypeVar("Part")

# Limits of what is learned from. Squares of larger values would overflow in the second moments of a long stream.
LARGEST = 1e100
HEAVIEST, LIGHTEST = 1e30, 1e-300  # weight of a row other than 0; inverses of smaller ones overflow
LEAST_COUNT = 1e-250  # other than 0; shares of a sum of smaller ones are not finite
LARGEST_COUNT = 1e40  # sums of larger counts would leave the range of the digamma function


@dataclass(frozen=True)
class Statistics:
    """Base of every model's statistics: a frozen record of arrays, tables or other statistics, on which the loop is linear.

    A subclass only lists them. Held by a `State` they are means per observation; held by a `Summary` they are
    totals over the rows of a batch. `from_base` is the share of the warm-up summary in them: 1 in the base, 0 in what
    a batch yields. It is folded and averaged like any other statistic, so a merge can count the base once.
    """

    from_base: Array

    gapped: ClassVar[bool] = False  # whether they include rows with gaps, which not every kernel takes

    __array_ufunc__ = None  # a NumPy number times statistics is statistics, too

    @classmethod
    def of(cls, *arrays: object) -> Self:
        """Return the statistics of rows: the arrays in the order in which the class lists them."""
        return cls(np.zeros(1), *arrays)

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays by name, without copying."""
        return {name: getattr(self, name) for name in self._names()}

    def _parts(self) -> Iterator[Any]:
        return (getattr(self, name) for name in self._names())

    @classmethod
    @cache
    def _names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))

    def _combine(self, function: Callable[..., Any], *others: Statistics) -> Self:
        parts: tuple[Statistics, ...] = (self, *others)
        if others and type(others[0]) is not type(self):
            parts = to_one_form(parts)
        made = type(parts[0])(*[function(*[getattr(part, name) for part in parts]) for name in parts[0]._names()])
        return cast(Self, made)

    def in_form(self, form: type[Statistics]) -> Statistics:
        """Return the statistics in a wider form, which has more arrays; by default there is none."""
        return self

    @property
    def forms(self) -> tuple[Statistics, ...]:
        """These statistics in each form that streams of the model may keep, for model files."""
        return (self,)

    def __add__(self, other: Self) -> Self:
        return self._combine(operator.add, other)

    def __sub__(self, other: Self) -> Self:
        return self._combine(operator.sub, other)

    def scaled(self, factor: float) -> Self:
        """Return these statistics times a number."""
        return self._combine(lambda array: array * factor)

    def __mul__(self, factor: float) -> Self:
        return self.scaled(factor)

    __rmul__ = __mul__

    def toward(self, other: Self, step_size: float, other_scale: float = 1.0) -> Self:
        """Return self + step_size * (other_scale * other - self): the fold of every algorithm."""
        keep, gain = 1.0 - step_size, step_size * other_scale
        return self._combine(lambda mine, theirs: keep * mine + gain * theirs, other)

    def averaged(self, newest: Self, gain: float) -> Self:
        """Return these statistics, a running average, moved towards the newest."""
        return self.toward(newest, gain)

    def since(self, base: Self) -> tuple[float, Self]:
        """Return the multiple of their base in these statistics, and the rest: self = multiple * base + rest."""
        multiple = float(self.from_base[0])
        return multiple, self - base.scaled(multiple)

    def average_since(self, average: Self, base: Self, rest: Self) -> tuple[float, float, Self]:
        """Return the multiples of the average and of the statistics of their base in this average, and the rest.

        `rest` is what the newest statistics hold beyond the base. An average that does not differ from it is left whole.
        """
        return 0.0, 0.0, self

    def zeros_like(self) -> Self:
        """Return statistics of the same shape that are zero."""
        return self._combine(lambda array: 0.0 * array)

    def copy(self) -> Self:
        """Return statistics that share no memory with these."""
        return self._combine(lambda array: array.copy())

    def is_finite(self, most: int) -> bool:
        """Whether every array of at most `most` numbers is finite. Larger ones are not checked."""
        return all(part.is_finite(most) if hasattr(part, "is_finite") else _is_finite(part, most) for part in self._parts())

    def writable(self) -> Self:
        """Return statistics whose arrays may be written to. A table is never written to: what changes is a new one."""
        return self._combine(_writable)

    def with_share_of_base(self, share: float | Array) -> Self:
        """Return statistics that may be written to, with another share of their base."""
        found = self.writable()
        found.from_base[...] = share
        return found


def _is_finite(array: Array, most: int) -> bool:
    # A sum shows values that are not finite at a tenth of the cost of testing every number.
    with np.errstate(invalid="ignore", over="ignore"):
        return array.size > most or math.isfinite(array.sum()) or bool(np.isfinite(array).all())


def to_one_form(parts: Sequence[Stats]) -> tuple[Stats, ...]:
    """Return statistics in the widest form that one of them has."""
    form = type(max(parts, key=lambda part: len(part._names())))
    return tuple(cast(Stats, part.in_form(form)) for part in parts)


def widest_form(statistics: Stats) -> Stats:
    """Return statistics in the form with the most arrays, to which rows of every kind can be added."""
    return cast(Stats, max(statistics.forms, key=lambda form: len(form._names())))


def _writable(part: Part) -> Part:
    if isinstance(part, Statistics):
        return part.writable()
    return part.copy() if isinstance(part, np.ndarray) else part
