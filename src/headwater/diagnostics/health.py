"""Health: findings about a fitted model, in sentences. Records alone, and no estimator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array

SHOWN_FINDINGS = 3  # findings beneath the table of a model
REMARK_KINDS = frozenset({"refinement", "forgetting", "gaps"})  # kinds that say how something went, good or bad
UNSHOWN_KINDS = frozenset({"refinement"})  # kinds that are for programs: there is nothing in them to act upon


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes
    ----------
    kind : str
        "dead", "duplicated", "collapsed", "mixed", "starved", "flat", "lopsided", "unheard", "drift", "order",
        "unconverged", "cut", "gaps", "unseen", "unidentified", "refinement" or "forgetting".
    components : tuple of int
        The components that it is about; empty if it is about all of the model.
    sentence : str
        What was found, with its numbers.
    action : bool
        Whether you should act: answers are worse than they could be, or mean less than they seem to.
    numbers : mapping of str to float
        The numbers of the sentence, by name.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(3000, 2))
    >>> rows[:, 1] = 7.0
    >>> finding = hw.GaussianMixture(1, random_state=0).partial_fit(rows).health_.findings[0]
    >>> finding.kind, finding.action
    ('flat', False)
    """

    kind: str
    components: tuple[int, ...]
    sentence: str
    action: bool = False
    numbers: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, object]:
        """Return the same as dicts, lists, strings and numbers; numbers that are not finite are None."""
        numbers = {name: value if math.isfinite(value) else None for name, value in self.numbers.items()}
        return {
            "kind": self.kind,
            "components": list(self.components),
            "sentence": self.sentence,
            "action": self.action,
            "numbers": numbers,
        }


@dataclass(frozen=True, repr=False)
class Health:
    """How well a model is doing. `model.health_` makes it; `print` it for sentences.

    It never warns: what needs action is printed below the model, by `headwater inspect` and in reports.

    Attributes
    ----------
    model : str
        The class of the model.
    rows : int
        Rows learned from so far.
    unit : str
        What a row is: "rows", "documents", "sequences", "frames" or "snapshots".
    warming : bool
        Whether the warm-up is not over, so that all is provisional.
    findings : tuple of Finding
        What was found, what needs action first.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(3000, 2))
    >>> hw.GaussianMixture(1, random_state=0).partial_fit(rows).health_
    GaussianMixture after 3,000 rows: nothing is wrong.
    >>> rows[:, 1] = 7.0
    >>> health = hw.GaussianMixture(1, random_state=0).partial_fit(rows).health_
    >>> health.ok, health.findings[0].kind
    (True, 'flat')
    """

    model: str
    rows: int
    unit: str = "rows"
    warming: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing needs action."""
        return not self.actions

    @property
    def actions(self) -> tuple[Finding, ...]:
        """The findings that need action."""
        return tuple(one for one in self.findings if one.action)

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that are not mere remarks on how something went."""
        return tuple(one for one in self.findings if one.kind not in REMARK_KINDS)

    @property
    def shown(self) -> tuple[Finding, ...]:
        """The findings that are printed: all but how the last refinement went, which asks for nothing."""
        return tuple(one for one in self.findings if one.kind not in UNSHOWN_KINDS)

    @property
    def headline(self) -> str:
        """The health in one line."""
        unit = self.unit[:-1] if self.rows == 1 else self.unit
        warming = " (warming up)" if self.warming else ""
        return f"{self.model} after {self.rows:,} {unit}{warming}: {self.verdict}."

    @property
    def verdict(self) -> str:
        """How many findings there are, in a few words."""
        number, urgent = len(self.problems), len(self.actions)
        if not number:
            return "nothing is wrong"
        found = f"{number} finding{'s' * (number != 1)}"
        if not urgent:
            return f"{found}, {'none of which needs action' if number != 1 else 'which needs no action'}"
        if urgent == number:
            return f"{found} that need{'s' * (number == 1)} action"
        return f"{found}, of which {urgent} need{'s' * (urgent == 1)} action"

    def of_kind(self, kind: str) -> tuple[Finding, ...]:
        """Return the findings of a kind."""
        return tuple(one for one in self.findings if one.kind == kind)

    def lines(self) -> list[str]:
        """Return a line for each finding that is shown; those that need action are marked."""
        return [f"{'!' if one.action else ' '} {one.sentence}" for one in self.shown]

    def __str__(self) -> str:
        return "\n".join([self.headline, *self.lines()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.headline)}</p>{_html_list(self.shown)}"

    def to_dict(self) -> dict[str, object]:
        """Return the same as dicts, lists, strings and numbers."""
        return {
            "ok": self.ok,
            "rows": self.rows,
            "warming": self.warming,
            "findings": [one.to_dict() for one in self.findings],
        }


def brief_lines(health: Health) -> tuple[list[str], str]:
    """Return what stands beneath the table of a model: what needs action, and what else there is to read."""
    urgent = [one.sentence for one in health.actions[:SHOWN_FINDINGS]]
    rest = len(health.problems) - len(urgent)
    more = f"{rest} {'more ' if urgent else ''}finding{'s' * (rest != 1)} in health_" if rest else ""
    return urgent, more


def _html_list(findings: Iterable[Finding]) -> str:
    items = "".join(
        f"<li>{'<strong>Needs action:</strong> ' if one.action else ''}{escape(one.sentence)}</li>" for one in findings
    )
    return f"<ul>{items}</ul>" if items else ""


NO_ROWS: Array = np.empty(0)
PRUNE_ADVICE = "; prune() removes {}"  # in braces, the components


@dataclass(frozen=True)
class Support:
    """The data behind each component (K,), found and needed. `has` says why it is needed, with the number in braces.

    Of counts, the number needed is that of the words over which a component is spread, not of all words.
    """

    found: Array
    unit: str
    needed: Array
    has: str = "but has {} parameters"
    least: float = 1.0  # rows, or words, for each of those that are needed


class ComponentChecks(Protocol):
    """Checks of the components of one kind of model."""

    def support(self) -> Support | None:
        """Return the data behind each component, or None if any amount is enough."""

    def divergences(self) -> tuple[Array, Array] | None:
        """Return symmetric divergences of the densities (K, K), in nats a row, and how much of each may be chance."""

    def degenerate_findings(self, alive: NDArray[np.bool_]) -> list[Finding]:
        """Return findings about components that have collapsed, or about columns that carry no information."""


@dataclass(frozen=True)
class Evidence:
    """What there is to judge a model by.

    Attributes
    ----------
    rows : ndarray of shape (n_components,)
        Effective rows (or words, or frames) behind each component; empty if the model has none.
    word, unit : str
        What a component is called, and what is counted in `rows`.
    shares : ndarray of shape (n_components,)
        Weights; by default, those of the rows.
    checks : callable, optional
        Returns the `ComponentChecks`, at a cost of about `work` operations.
    remedy : str
        What can be done about components that are dead.
    known : tuple of Finding
        What a model knows by itself, such as how much was missing.
    """

    rows: Array = field(default_factory=lambda: NO_ROWS)
    word: str = "component"
    unit: str = "rows"
    shares: Array = field(default_factory=lambda: NO_ROWS)
    checks: Callable[[], ComponentChecks] | None = None
    work: float = 0.0
    remedy: str = ""
    known: tuple[Finding, ...] = ()

    @property
    def weights(self) -> Array:
        """Shares of the components, which sum to one."""
        shares = np.maximum(self.shares if len(self.shares) else self.rows, 0.0)
        return np.asarray(shares / max(float(shares.sum()), 1e-300))


def component_phrase(word: str, components: Sequence[int], most: int = 6) -> str:
    """Return the subject of a sentence about these components, such as "Components 2, 3 and 5"."""
    shown = [str(one) for one in components[:most]]
    if len(components) > most:
        return f"{word.capitalize()}s {', '.join(shown)} and {len(components) - most} more"
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
    return f"{word.capitalize()}{'s' * (len(shown) != 1)} {listed}"


def format_amount(value: float) -> str:
    """Return a number of rows, in at most three digits if it is small."""
    return f"{value:,.0f}" if value >= 9.995 else f"{value:.3g}"


def count_phrase(value: float, unit: str) -> str:
    """Return a number of effective rows, or of what else the unit says."""
    number = format_amount(value)
    return f"{number} effective {unit[:-1] if number == '1' else unit}"


def format_percent(share: float) -> str:
    """Return a share in percent, with two or three digits."""
    return f"{100.0 * share:.2g}%" if share < 0.0995 else f"{100.0 * share:.3g}%"
