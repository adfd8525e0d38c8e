"""Health: findings about a fitted model, in sentences. Records alone, and no estimator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape

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
        "unconverged", "gaps", "unseen", "unidentified", "refinement" or "forgetting".
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
