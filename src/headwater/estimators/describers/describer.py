"""Describer: what a model says of itself. Each kind of model has its own, which reads the model and never changes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator

import numpy as np

from headwater.core.chunk import values_of
from headwater.core.statistics import Array
from headwater.core.values import Rows, Values
from headwater.diagnostics.component_description import Limits, row_totals
from headwater.diagnostics.description import Description, Value
from headwater.diagnostics.display import html_strip
from headwater.diagnostics.health import Evidence, Health
from headwater.diagnostics.health_checks import judge_health
from headwater.diagnostics.notes import Results, notes_of
from headwater.diagnostics.subject import Subject
from headwater.estimators.reading import Folded, mean_shares


class GaussianView(Protocol):
    """Components that are Gaussians over the columns."""

    @property
    def weights_(self) -> Array:
        """Their weights (K,)."""

    @property
    def means_(self) -> Array:
        """Their means (K, d)."""

    @property
    def covariances_(self) -> Array:
        """Their covariances, in the shape of their kind."""

    @property
    def covariance_type(self) -> str:
        """The kind of covariance."""


class Describer(ABC):
    """Reads a model and describes it: a description, a table, the evidence of its health, why a row is odd."""

    def __init__(self, model: StreamingEstimator) -> None:
        self.model = model._in_doubles()

    def judge_health(self, brief: bool = False) -> Health:
        """Return the health of the model; `brief` leaves out slow checks."""
        return judge_health(self.subject(), self.evidence(), self.model._read(), brief)

    def subject(self) -> Subject:
        """The model as diagnostics see it."""
        passes = 0
        if getattr(self.model, "converged_", True) is False and not self.model._learner.algorithm.again:
            passes = int(self.model.n_iter_)
        return Subject(
            type(self.model).__name__, self.model._traits.unit, self.model._runtime, self.model._learner,
            getattr(self.model, "half_life", None),
            getattr(self.model, "history_", None), passes, "n_iter" if hasattr(self.model, "n_iter") else "max_iter",
        )  # fmt: skip

    def notes(self, component: str) -> tuple[str, ...]:
        """Sentences about the state; `component` is what its components are called."""
        known = {
            name: getattr(self.model, f"{name}_", None) for name in ("race", "growth", "merge_report", "distributed_report")
        }
        passes = int(self.model.n_iter_) if getattr(self.model, "converged_", True) is False else None
        findings = tuple(finding.sentence for finding in self.model.health_.shown)
        return notes_of(self.subject(), Results(**known, passes=passes), findings, component)

    @abstractmethod
    def describe(self, limits: Limits) -> Description:
        """Describe what only this model has: components, matrices, curves, facts."""

    def component_names(self) -> list[str] | None:
        """What components are called; None where they have no names but their numbers."""
        return None

    def patterns(self) -> Array | None:
        """What components are in all columns (K, d), where that may be looked at as images."""
        return None

    def gaussians(self) -> GaussianView | None:
        """What has `weights_`, `means_`, `covariances_` and `covariance_type`, if components are Gaussians over the columns."""
        return None

    def row_scorer(self) -> Callable[..., Array]:
        """Return what scores the rows of one chunk after the other, by what is known now."""
        return self.model.score_samples

    def row_sizes(self, X: Rows, lengths: Values = None) -> Array | None:
        """How long each row is, if rows have a `_measure`: then they are ranked by the score of one word or symbol."""
        return row_totals(values_of(X)) if self.model._traits.measure else None

    def category_texts(self, row: Array) -> dict[int, str]:
        """Return what is to be shown of a row in place of numbers, by the places of the columns; "" shows nothing."""
        return {}

    def oddities(self, row: Array, most: int) -> tuple[Value, ...]:
        """Say what makes a row odd: some of its values, how far each stands out, the farthest first."""
        return ()

    def shares_now(self) -> Array:
        """Shares of the components by what was folded so far; empty in the warm-up."""
        return mean_shares([self.shares_of(part) for part in self.model._fitted().folded()])

    def shares_of(self, folded: Folded) -> Array:
        """Shares of the components by what was folded; empty if the model has none."""
        return np.empty(0)

    def evidence(self) -> Evidence:
        """What the health of the model is judged by."""
        return Evidence(self.shares_now() * self.model._runtime.rows, unit=self.model._traits.unit)

    def picture(self) -> str:
        """A small picture for notebooks, as HTML: the weights of the components. Empty if there is nothing to draw yet."""
        shares = self.shares_now()
        return html_strip(shares.tolist(), [f"component {at}" for at in range(len(shares))])

    @abstractmethod
    def summary(self) -> tuple[str, list[str], list[list[str]]]:
        """One line, and the head and the lines of a small table."""
