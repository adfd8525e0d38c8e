"""How every mixture learns: its parameters, the learner they describe, and rows in; nothing of any one family."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.algorithms import IN_BATCHES, Auto, resolve
from headwater.core.contracts import Given, StartSettings
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.values import Rows, Values
from headwater.estimators.anomaly_answers import AnomalyAnswers
from headwater.estimators.anomaly_decisions import AnomalyDecisions
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.calls import learns_at_once, learns_by_chunk
from headwater.estimators.component_priors import given_concentration, select_component_priors
from headwater.estimators.describers.mixture import MixtureDescriber
from headwater.estimators.parameters import check_parameters
from headwater.estimators.row_numbers import find_row_numbers, warn_of_row_numbers
from headwater.estimators.start_parameters import check_start_weight
from headwater.estimators.traits import Taken
from headwater.models.mixture import Mixture
from headwater.policies.choose import mixture_policies
from headwater.policies.reservoir_policy import LEAST_ROWS_EACH, kept_rows

if TYPE_CHECKING:
    from headwater.families.family import AnyFamily

# Parameters that every mixture has, and the values they take.
CONSTRAINTS: dict[str, list[object]] = {
    "n_components": [Interval(numbers.Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "tol": [Interval(numbers.Real, 0.0, None, closed="left")],
    "max_iter": [Interval(numbers.Integral, 0, None, closed="left")],
    "n_init": [Interval(numbers.Integral, 1, None, closed="left")],
    "weights_init": ["array-like", None],
    "random_state": ["random_state"],
    "warm_start": ["boolean"],
    "verbose": ["verbose"],
    "verbose_interval": [Interval(numbers.Integral, 1, None, closed="left")],
    "algorithm": [str, Algorithm],
    "half_life": [None, Interval(numbers.Real, 0.0, None, closed="neither"), StrOptions({"auto"})],
    "warm_up": [StrOptions({"auto"}), Interval(numbers.Integral, 0, None, closed="left")],
    "start_weight": [None, Interval(numbers.Real, 0.0, None, closed="neither")],
    "weight_concentration_prior": ["array-like", None, Interval(numbers.Real, 0.0, None, closed="neither")],
    "n_threads": [None, Interval(numbers.Integral, 1, None, closed="left")],
    "parts": [Interval(numbers.Integral, 1, 4096, closed="both")],
    "reservoir": [StrOptions({"auto"}), Interval(numbers.Integral, 0, None, closed="left")],
}


def _check_adapts(learner: Learner, reservoir: int | None, algorithm: object) -> None:
    """Refuse half_life='auto' where there is nothing to estimate it from."""
    least = LEAST_ROWS_EACH * learner.model.n_components
    if reservoir is not None and reservoir < least:
        raise ValueError(
            f"half_life='auto' compares new rows with reservoir rows, so reservoir must be at least {least}, got {reservoir}"
        )
    if not kept_rows(learner.plan, learner.model):
        raise ValueError(
            f"half_life='auto' needs algorithm='auto', which keeps rows to compare new ones with, got {algorithm!r}"
        )
    if learner.shards > 1:
        raise ValueError(f"half_life='auto' forgets in the order of one stream, so parts must be 1, got {learner.shards}")


class MixtureEstimator(AnomalyAnswers, AnomalyDecisions):
    """Base of the mixtures: K components of a family that the subclass names."""

    # What a subclass says

    _parameter_constraints: ClassVar[dict[str, list[object]]] = CONSTRAINTS
    _traits = replace(
        StreamingEstimator._traits,
        prior_parameters=("weight_concentration_prior",),
        given_start=("weights_init",),
        splits=True,
    )

    @property
    @abstractmethod
    def _describer(self) -> MixtureDescriber:
        """What says what was learned."""

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _learner_of(
        self, family: AnyFamily, width: int, name: str, given: Given | None, polish: bool, modal: bool = True
    ) -> Learner:
        """The learner of a mixture of this family; `modal` says whether the components' prior has a mode."""
        model = self._mixture_of(family)
        algorithm = resolve(self.algorithm, model, name, self._own_algorithms(family))
        proper = model.weight_concentration_prior is None or float(np.min(model.weight_concentration_prior)) >= 1.0
        if algorithm.readout == "mode" and not proper:
            raise ValueError(
                f"weight_concentration_prior must be at least 1 for algorithm {algorithm.word!r}, whose weights are a mode, "
                f"got {model.weight_concentration_prior}"
            )
        adapts = isinstance(self.half_life, str)
        reservoir = None if self.reservoir == "auto" else int(self.reservoir)
        learner = Learner(
            model,
            algorithm,
            width,
            StartSettings(
                self.init_params,
                polish=polish and self.max_iter > 0,
                readout="mode" if proper and modal else "expect_log",
                given=given,
                weight=self._start_weight(given),
            ),
            None if adapts else self.half_life,
            None if self.warm_up == "auto" else int(self.warm_up),
            self.n_threads,
            int(self.parts),
            policies=mixture_policies(reservoir, adapts, bool(self._traits.measure)),
        )
        if adapts:
            _check_adapts(learner, reservoir, self.algorithm)
        return learner

    def _start_weight(self, given: Given | None) -> float | None:
        """Rows that a start counts as, if the user says so."""
        weight: float | None = getattr(self, "start_weight", None)
        return check_start_weight(weight, given is not None and given.locates)

    def _mixture_of(self, family: AnyFamily) -> Mixture:
        """The mixture of components of this family."""
        return Mixture(self.n_components, family, given_concentration(self.weight_concentration_prior, self.n_components))

    def _note_columns(self, X: Taken, reset: bool) -> None:
        super()._note_columns(X, reset)
        if reset:
            warn_of_row_numbers(self._row_numbers(X), 6)

    def _row_numbers(self, X: Taken) -> list[str]:
        """Names of columns that number the rows; tables leave them out by themselves, and inputs of a target may be times."""
        return [] if self._traits.takes_tables or self._traits.target_columns else find_row_numbers(X)

    def _own_algorithms(self, family: AnyFamily) -> dict[str, Algorithm]:
        """What words of algorithms mean for components of this family, where it is not what they mean for all."""
        return {"auto": self._auto(family), **({} if family.sweeps_rows else IN_BATCHES)}

    def _auto(self, family: AnyFamily) -> Algorithm:
        """What algorithm "auto" is for components of this family."""
        return Auto(stream=family.stream_readout)

    def _parameters_of(self, kept: NDArray[np.bool_]) -> dict[str, object]:
        return {**super()._parameters_of(kept), **select_component_priors(self, kept)}

    # Learning

    @learns_at_once
    def fit(self, X: Rows, y: Values = None, sample_weight: Values = None, *, labels: Values = None) -> Self:
        """Learn from all rows at once; what was learned before is dropped, unless `warm_start`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows: an array, or a pandas or polars frame of numbers.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is ignored.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, sample_weight, labels)

    @learns_by_chunk
    def partial_fit(self, X: Rows, y: Values = None, sample_weight: Values = None, *, labels: Values = None) -> Self:
        """Learn a chunk of a stream, of any size; the result does not depend on how the stream was cut.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is ignored.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not.

        Returns
        -------
        self : object
            The estimator.
        """
        self._learn_chunk(X, sample_weight, labels)
        return self

    @learns_by_chunk
    def update(self, X: Rows, sample_weight: Values = None, *, labels: Values = None) -> Array:
        """Score each row as the model was before learning it, and learn it, in one E-step.

        Within a batch, and between the powers of two of the warm-up, parameters stand still, so this is the honest
        (prequential) score of a stream. The first eight rows, when not even the scale is known, score NaN. Variational
        algorithms score their lower bound of the log-density, which is close to it once there are rows enough.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is scored, but not learned.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not; a labelled row scores its joint log-density.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Log-density of each row before it was learned.
        """
        return self._update(X, sample_weight, labels)

    @learns_at_once
    def warm_start_from(self, X: Rows, sample_weight: Values = None, *, labels: Values = None, weight: float = 1.0) -> Self:
        """Find a start on a sample, whatever its size, and forget what was learned before; the warm-up is over then.

        Workers that share the start, as branches of this model or copies made at once, can be merged without any matching.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The sample.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is ignored.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not.
        weight : float, default=1.0
            How much of the sample counts as learned. Less than 1 if its rows will come again in the stream: they then only
            hold the start in place, and are not among `n_samples_seen_`.

        Returns
        -------
        self : object
            The estimator, at the beginning of a stream.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rows = np.random.default_rng(0).normal(size=(9000, 2))
        >>> start = hw.GaussianMixture(2, random_state=0).warm_start_from(rows[::9], weight=0.1)
        >>> parts = [start.branch().partial_fit(rows[part::3]) for part in range(3)]
        >>> hw.merge(parts).n_samples_seen_
        9000
        """
        return self._plant(X, sample_weight, weight, labels)

    @learns_at_once
    def fit_predict(
        self, X: Rows, y: Values = None, sample_weight: Values = None, *, labels: Values = None
    ) -> NDArray[np.int64]:
        """Learn from the rows and return the most probable component of each.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.
        labels : array-like of shape (n_samples,), optional
            The component of each row where it is known, -1 where not.

        Returns
        -------
        components : ndarray of shape (n_samples,)
            Indices of components.
        """
        return self.fit(X, y, sample_weight, labels=labels).predict(X)
