"""What every estimator tells of what it has learned: descriptions, and what reports are made of."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from headwater.core.chunk import values_of
from headwater.core.statistics import Array
from headwater.core.validation import one_line
from headwater.diagnostics.component_description import Limits, row_totals
from headwater.diagnostics.description import Description, Value
from headwater.diagnostics.display import html_table, text_table
from headwater.diagnostics.health import Health, brief_lines
from headwater.diagnostics.health_checks import judge_health
from headwater.diagnostics.health_evidence import Evidence
from headwater.diagnostics.notes import Results, notes_of
from headwater.diagnostics.subject import Subject
from headwater.estimators.calls import reads
from headwater.estimators.estimator_core import EstimatorCore
from headwater.estimators.reading import Folded, mean_shares


class Telling(EstimatorCore):
    """The half of every estimator that says what was learned; a subclass says what only it has, by `_describe`."""

    n_features_in_: int
    score_samples: Callable[..., Any]

    @reads
    def describe(self, *, values: int = 12, components: int = 32, level: float = 0.9) -> Description:
        """Return what was learned, in parts that are the same for every model: for tables, reports and other programs.

        Parameters
        ----------
        values : int, default=12
            Most columns, words or coefficients to tell of each component: those that tell most.
        components : int, default=32
            Most components to tell of: the heaviest.
        level : float, default=0.9
            Probability of the credible intervals.

        Returns
        -------
        description : Description
            A frozen record; `to_dict` makes of it what JSON knows.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rows = np.random.default_rng(0).normal(size=(3000, 2))
        >>> description = hw.GaussianMixture(1, random_state=0).partial_fit(rows).describe()
        >>> print(description.title)
        GaussianMixture (auto), 1 component: 3,000 rows of 2 columns seen
        >>> [value.name for value in description.components[0].values]
        ['x0', 'x1']
        """
        for name, wanted in (("values", values), ("components", components)):
            if isinstance(wanted, bool) or not isinstance(wanted, numbers.Integral) or wanted < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {one_line(wanted)}")
        if isinstance(level, bool) or not isinstance(level, numbers.Real) or not 0.0 < level < 1.0:
            raise ValueError(f"level must lie between 0 and 1, got {one_line(level)}")
        self._check_learned("described")
        limits = Limits(int(values), int(components), float(level))
        found = self._describe(limits)
        return replace(
            found,
            model=type(self).__name__,
            algorithm=self._learner.algorithm.word,
            rows=self._runtime.rows,
            columns=found.columns or self.n_features_in_,
            unit=self._traits.unit,
            level=limits.level,
            notes=(*self._notes(found.component), *found.notes),
        )

    @property
    @reads
    def health_(self) -> Health:
        """How well the model is doing: components that are dead, doubled, collapsed or starved, drift; a sentence for each.

        It is read from what was learned, at any moment, and changes nothing.
        """
        self._check_learned("judged")
        cache = self._runtime.cache
        known = {name: value for name, value in vars(self).items() if name != "_runtime"}
        found = cache.health
        if found is None or not _are_same(found[0], known):
            found = cache.health = known, self._judge_health()
        return found[1]

    def _judge_health(self, brief: bool = False) -> Health:
        return judge_health(self._subject(), self._evidence(), self._read(), brief)

    def _subject(self) -> Subject:
        """The model as diagnostics see it."""
        passes = 0
        if getattr(self, "converged_", True) is False and not self._learner.algorithm.again:
            passes = int(self.n_iter_)
        return Subject(
            type(self).__name__, self._traits.unit, self._runtime, self._learner, getattr(self, "half_life", None),
            getattr(self, "history_", None), passes,
        )  # fmt: skip

    def _notes(self, component: str) -> tuple[str, ...]:
        """Sentences about the state; `component` is what its components are called."""
        known = {name: getattr(self, f"{name}_", None) for name in ("race", "growth", "merge_report", "distributed_report")}
        passes = int(self.n_iter_) if getattr(self, "converged_", True) is False else None
        findings = tuple(finding.sentence for finding in self.health_.findings)
        return notes_of(self._subject(), Results(**known, passes=passes), findings, component)

    def _check_learned(self, what: str) -> None:
        check_is_fitted(self)
        if not self._has_state():
            raise NotFittedError(f"this {type(self).__name__} has learned nothing that could be {what}")

    @abstractmethod
    def _describe(self, limits: Limits) -> Description:
        """Describe what only this model has: components, matrices, curves, facts."""

    def _patterns(self) -> Array | None:
        """What components are in all columns (K, d), where that may be looked at as images."""
        return None

    def _gaussians(self) -> Any:
        """What has `weights_`, `means_`, `covariances_` and `covariance_type`, if components are Gaussians over the columns."""
        return None

    def _row_scorer(self) -> Callable[..., Array]:
        """Return what scores the rows of one chunk after the other, by what is known now."""
        return self.score_samples

    def _sizes(self, X: Any, lengths: Any = None) -> Array | None:
        """How long each row is, if rows have a `_measure`: then they are ranked by the score of one word or symbol."""
        return row_totals(values_of(X)) if self._traits.measure else None

    def _oddities(self, row: Any, most: int) -> tuple[Value, ...]:
        """Say what makes a row odd: some of its values, how far each stands out, the farthest first."""
        return ()

    def _shares_now(self) -> Array:
        """Shares of the components by what was folded so far; empty in the warm-up."""
        return mean_shares([self._shares_of(part) for part in self._fitted().folded()])

    def _shares_of(self, folded: Folded) -> Array:
        """Shares of the components by what was folded; empty if the model has none."""
        return np.empty(0)

    def _evidence(self) -> Evidence:
        """What the health of the model is judged by."""
        return Evidence(self._shares_now() * self._runtime.rows, unit=self._traits.unit)

    # How it looks

    @abstractmethod
    def _summary(self) -> tuple[str, list[str], list[list[str]]]:
        """One line, and the head and the lines of a small table."""

    @reads
    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)
        return (
            f"{text}\n{text_table(*self._summary(), *brief_lines(self._judge_health(brief=True)))}"
            if self._has_state()
            else text
        )

    @reads
    def _repr_html_inner(self) -> str:
        html = super()._repr_html_inner()
        return html + html_table(*self._summary(), *brief_lines(self._judge_health(brief=True))) if self._has_state() else html


def _are_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two dicts hold the very same objects."""
    return one.keys() == other.keys() and all(value is other[name] for name, value in one.items())
