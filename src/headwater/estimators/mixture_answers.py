"""What every mixture answers: scores, probabilities, samples, weights; nothing of any one family."""

from __future__ import annotations

import numbers
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Row, Rows, Values
from headwater.estimators.calls import answers_by_chunk, answers_by_score, reads
from headwater.estimators.component_names import NamedComponents, select_names
from headwater.estimators.estimator_core import RESULTS
from headwater.estimators.seeds import rng_of
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixtureParameters
from headwater.policies.names import IDENTITY

if TYPE_CHECKING:
    from headwater.families.family import AnyFamily

PREDICTED_AT_ONCE = 2**22  # probabilities that `predict` holds at a time: 32 MB


class MixtureAnswers(DensityMixin, NamedComponents):
    """The questions that only read: rows in, answers out; and what was learned."""

    # Answers

    @answers_by_chunk
    def score_samples(self, X: Rows) -> Array:
        """Return the log-density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_prob : ndarray of shape (n_samples,)
            Log-density of each row under the current parameters.
        """
        batch = self._rows(X)
        return self._in_precision(X, self._model.log_likelihood(self._row_parameters(), batch, self._threads))

    @answers_by_score
    def score(self, X: Rows, y: Values = None) -> float:
        """Return the mean log-density of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        log_likelihood : float
            Mean log-density per row.
        """
        return self.score_samples(X).mean()

    @answers_by_chunk
    def predictive_score_samples(self, X: Rows) -> Array:
        """Return the log-density of each row with the uncertainty of the parameters integrated out.

        Of Gaussians that makes Student's t, of counts Pólya's urns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_prob : ndarray of shape (n_samples,)
            Log posterior predictive density of each row.
        """
        batch = self._rows(X)
        parameters = self._model.readout("predictive", *self._proper_belief())
        return self._model.log_likelihood(parameters, batch, self._threads)

    @answers_by_chunk
    def predict_proba(self, X: Rows) -> Array:
        """Return the probability of each component for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        responsibilities : ndarray of shape (n_samples, n_components)
            Probabilities, which sum to one in each row.
        """
        batch = self._rows(X)
        return self._in_precision(X, self._model.posterior(self._row_parameters(), batch, self._threads))

    @answers_by_chunk
    def predict(self, X: Rows) -> NDArray[np.int64]:
        """Return the most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        components : ndarray of shape (n_samples,)
            Indices of components.
        """
        batch, parameters = self._rows(X), self._row_parameters()
        step = max(PREDICTED_AT_ONCE // self._model.n_components, 1)
        parts = (batch[at : at + step] for at in range(0, len(batch), step))
        return np.concatenate([self._model.posterior(parameters, part, self._threads).argmax(axis=1) for part in parts])

    @reads
    def predict_one(self, x: Row) -> int:
        """Return the most probable component of one row under the parameters of the last refresh.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The row.

        Returns
        -------
        component : int
            Its index.
        """
        return int(np.argmax(self._one_posterior(x)[0]))

    def _one_posterior(self, x: Row) -> Array:
        """Probabilities (1, K) of the components for one row under the parameters of the last refresh."""
        row = self._one(x)
        return self._learner.model.posterior(self._quick_parameters(row.shape[1]), Batch(row), 1)

    @reads
    def sample(self, n_samples: int = 1) -> tuple[Matrix, NDArray[np.int64]]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows, sorted by component.
        y : ndarray of shape (n_samples,)
            The component of each row.
        """
        return self._model.sample(self._read().parameters, self._checked_number(n_samples), rng_of(self))

    @property
    def _component_family(self) -> AnyFamily:
        """The family of the components, without what there may be beside them."""
        return self._model.family

    def _component_part(self, record: Any) -> Any:
        """What a prior, statistics or parameters of the family say of the components."""
        return record

    def _in_precision(self, X: Rows, answer: Array) -> Array:
        """Return an answer about rows in the type that it is to have."""
        return answer

    def _in_learned_type(self, learned: Array) -> Array:
        """Return what was learned in the type that it is to have."""
        return learned

    def _parameters_of(self, kept: NDArray[np.bool_]) -> dict[str, object]:
        """Parameters of each component, for some of the components."""
        return {}

    def _checked_number(self, n_samples: object) -> int:
        check_is_fitted(self)
        if not isinstance(n_samples, numbers.Integral) or n_samples < 1:
            raise ValueError(f"Invalid value for 'n_samples': {n_samples!r}. The sampling requires at least one sample.")
        return int(n_samples)

    @reads
    def prune(self, min_weight: float | None = None) -> Self:
        """Return a model without the components that are empty; it can go on learning.

        Parameters
        ----------
        min_weight : float, optional
            Components of less weight are left out. By default those for which less than one row's worth was learned (see
            `n_active_`). The heaviest always stays.

        Returns
        -------
        model : estimator
            A smaller model, whose components keep their order; this one does not change.
        """
        if min_weight is not None and (not isinstance(min_weight, numbers.Real) or not 0.0 <= min_weight < 1.0):
            raise ValueError(f"min_weight must lie between 0 and 1, got {min_weight!r}")
        weights = self.weights_
        kept = self._active() if min_weight is None else weights >= min_weight
        kept[np.argmax(weights)] = True
        kept[np.argmax(self._read().stream.statistics.count)] = True  # passes of `fit` may have made it light
        pruned, now = copy(self), self._given_parameters()
        pruned.set_params(**self._runtime.made_with)  # what was set since holds when learning goes on, if it can
        smaller = {"n_components": int(kept.sum()), **dict.fromkeys(self._traits.given_start), **pruned._parameters_of(kept)}
        learner = pruned.set_params(**smaller)._make_learner(self._learner.width)
        pruned._runtime = self._reader.select(learner, np.flatnonzero(kept), pruned._given_parameters())
        select_names(pruned, np.flatnonzero(kept), self._read().stream.records.get(IDENTITY))
        pruned.set_params(**{name: value for name, value in now.items() if name not in smaller})
        for name in RESULTS:
            pruned.__dict__.pop(name, None)
        return pruned

    @answers_by_score
    def bic(self, X: Rows) -> float:
        """Return the Bayesian information criterion on the rows; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        bic : float
            The criterion.
        """
        scores = self.score_samples(X)
        return float(-2.0 * scores.sum() + self._n_parameters() * np.log(len(scores)))

    @answers_by_score
    def aic(self, X: Rows) -> float:
        """Return Akaike's information criterion on the rows; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        aic : float
            The criterion.
        """
        return float(-2.0 * self.score_samples(X).sum() + 2.0 * self._n_parameters())

    # What was learned

    @property
    @reads
    def weights_(self) -> Array:
        """Weight of each component."""
        return self._in_learned_type(np.exp(self._read().parameters.log_weights))

    @property
    @reads
    def half_life_(self) -> Array:
        """Half-life of each component now, in rows of the stream; infinite if it forgets nothing.

        With `half_life='auto'` that of a component which has changed is finite, and grows until it is infinite again.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.normal(size=(8000, 1)) + 9.0 * rng.integers(2, size=(8000, 1))
        >>> model = hw.GaussianMixture(2, half_life="auto", random_state=0).partial_fit(rows)
        >>> model.half_life_
        array([inf, inf])
        >>> model = model.partial_fit(np.where(rows > 4.5, rows + 3.0, rows)[:4000])
        >>> bool(np.isfinite(model.half_life_[np.argmax(model.means_[:, 0])]))
        True
        """
        reading = self._read()
        if reading.drift is not None:
            return reading.half_lives()[0]
        half_life = self._learner.half_life
        return np.full(self._model.n_components, np.inf if half_life is None else float(half_life))

    @property
    @reads
    def weight_concentration_(self) -> Array:
        """Dirichlet parameters (posterior) of the weights."""
        prior, statistics, count = self._proper_belief()
        return prior.concentration + count * statistics.count

    @property
    @reads
    def n_active_(self) -> int:
        """Number of components that rows were learned for: at least one row's worth in all."""
        return int(np.count_nonzero(self._active()))

    @property
    def _model(self) -> Mixture:
        check_is_fitted(self)
        model = self._read().model if self._runtime.grows else self._learner.model
        assert isinstance(model, Mixture)
        return model

    def _row_parameters(self) -> MixtureParameters:
        """Parameters by which rows are scored and assigned."""
        return self._read().parameters

    def _proper_belief(self) -> tuple[Any, Any, float]:
        return self._read().belief

    def _weight_marginals(self) -> tuple[Array, Array]:
        """Both parameters (K,) of the Beta belief about each weight."""
        prior, statistics, count = self._proper_belief()
        return self._model.weight_marginals(prior, count * statistics.count)

    def _n_parameters(self) -> int:
        return self._model.n_parameters(self._learner.width)

    def _active(self) -> NDArray[np.bool_]:
        _, statistics, count = self._proper_belief()
        return np.asarray(count * statistics.count >= 1.0)

    def _rows_behind(self) -> Array:
        """Effective rows that each component was learned from."""
        _, statistics, count = self._proper_belief()
        return np.maximum(count * statistics.count, 0.0)

    def _n_class_columns(self) -> int | None:
        """Columns of categories or flags, if components rest on nothing else; None by default."""
        return None

    @property
    def _modal(self) -> bool:
        """Whether what the user sees is a mode, of which the floor under variances is a part."""
        algorithm = self._learner.algorithm
        if (
            algorithm.finish and self._read().ends_passes
        ):  # under the prior of the stream, in which the floor is one of many parts
            return not self._model.is_regularized
        return self._read().ends_passes or algorithm.report == "mode"
