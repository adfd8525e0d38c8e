"""Comparison: what has changed between two models of the same columns, in words and as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from headwater.diagnostics.description import printable, wide_table_html, wide_table_text

SHOWN_CHANGES = 3  # of a component, in words
NOTABLE = 3.0  # standard errors: less may be chance where there are some hundred numbers


@dataclass(frozen=True)
class Change:
    """A number of a component before and after, and how many standard errors it has moved by."""

    name: str
    before: float
    after: float
    standard_errors: float

    def __str__(self) -> str:
        return f"{self.name} {self.before:.4g} → {self.after:.4g} ({self.standard_errors:+.1f} se)"


@dataclass(frozen=True)
class ComponentChange:
    """A component of the first model, its counterpart in the second, and what has changed.

    `divergence` is the mean of both Kullback-Leibler divergences of their densities, in nats a row. `changes` are those of the
    columns, the largest in standard errors first.
    """

    before: int
    after: int
    weight: Change
    divergence: float
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Comparison:
    """What `headwater.compare_models` found.

    Attributes
    ----------
    components : tuple of ComponentChange
        Components that both models have, the heaviest of the first model first.
    lost, new : tuple of int
        Components of the first model that the second has not, and those of the second that the first has not.
    divergence, divergence_back : float
        Kullback-Leibler divergence of the second density from the first, and of the first from the second, in nats a row, by
        rows that are drawn.
    standard_error, standard_error_back : float
        Of these, by the number of rows drawn.
    names_before, names_after : tuple of str
        Names of the components, where they were given (`names_`).
    moved : tuple of str
        Columns that have moved in most components, so that components were matched by the others.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(2000, 2))
    >>> models = [hw.GaussianMixture(1, random_state=0).fit(one) for one in (rows[:1000], rows[1000:])]
    >>> found = hw.compare_models(*models)
    >>> len(found.components), found.lost, found.new
    (1, (), ())
    """

    components: tuple[ComponentChange, ...]
    lost: tuple[int, ...]
    new: tuple[int, ...]
    divergence: float
    divergence_back: float
    standard_error: float
    standard_error_back: float
    names_before: tuple[str, ...] = ()
    names_after: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[ComponentChange, ...]:
        """Components in which a weight or a column has moved by more than three standard errors."""
        return tuple(one for one in self.components if any(abs(change.standard_errors) > NOTABLE for change in _all(one)))

    def to_dict(self) -> dict[str, object]:
        """Return everything as values that JSON knows."""
        return asdict(self)

    def __str__(self) -> str:
        return wide_table_text(*self._table())

    def _repr_html_(self) -> str:
        return wide_table_html(*self._table())

    def _pair(self, one: ComponentChange) -> str:
        return f"{_label(one.before, self.names_before)} → {_label(one.after, self.names_after)}"

    def _table(self) -> tuple[str, list[str], list[list[str]], list[str]]:
        """Return a title, the header and a row for each pair of components, and sentences below."""
        title = f"{len(self.components)} components in both models, {len(self.lost)} lost, {len(self.new)} new"
        rows = [
            [self._pair(one), str(one.weight).removeprefix("weight "), f"{one.divergence:.3f}"]
            for one in self.components
        ]  # fmt: skip
        notes = [
            f"{self._pair(one)}: {'; '.join(map(str, one.changes[:SHOWN_CHANGES]))}"
            for one in self.components
            if one in self.changed
        ]
        notes += [
            f"Divergence: {self.divergence:.3f} nats a row (± {self.standard_error:.3f}), "
            f"back {self.divergence_back:.3f} (± {self.standard_error_back:.3f})."
        ]
        if self.moved:
            notes.append(f"Moved: {', '.join(map(printable, self.moved))}; components are matched by the other columns.")
        if self.lost:
            notes.append(f"Lost: {', '.join(_label(k, self.names_before) for k in self.lost)} of the first model.")
        if self.new:
            notes.append(f"New: {', '.join(_label(k, self.names_after) for k in self.new)} of the second model.")
        if not (self.changed or self.lost or self.new):
            notes.append("No number has moved by more than three standard errors.")
        return title, ["component", "weight", "nats apart"], rows, notes


def _label(component: int, names: tuple[str, ...]) -> str:
    return printable(names[component]) if names else str(component)


def _all(one: ComponentChange) -> tuple[Change, ...]:
    return (one.weight, *one.changes)
