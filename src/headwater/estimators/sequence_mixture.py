"""What a mixture over sequences answers: the methods of every mixture, each with `lengths`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from headwater.core.batch import Batch, SparseRows
from headwater.core.chunk import Chunk, refuse_lost
from headwater.core.count_validation import check_counts
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.values import Matrix, Row, Rows, Values
from headwater.estimators.calls import answers_by_chunk, answers_by_score, learns_at_once, learns_by_chunk
from headwater.estimators.count_mixture import CountMixture
from headwater.estimators.describers.counts import SequenceDescriber
from headwater.estimators.traits import Taken
from headwater.policies.typicality import EXPECTED_RATE


class SequenceMixture(CountMixture):
    """Base of the mixtures over sequences, which a subclass turns into rows of counts."""

    _traits = replace(
        CountMixture._traits,
        takes_sequences=True,
        takes_symbols=True,
        measure="symbols",
    )

    @property
    @abstractmethod
    def _describer(self) -> SequenceDescriber:
        """What says what was learned."""

    @abstractmethod
    def _counted(self, X: Rows, lengths: Values, y: Values = None, anew: bool = False) -> SparseRows:
        """Return the counts of sequences, unless they are counts already; `anew`, of a model that knows nothing yet."""

    def _counts(self, X: Rows, lengths: Values, y: Values = None, anew: bool = False) -> object:
        """Return the counts of sequences, with what is known of how they were read."""
        refuse_lost(X)
        counted = self._counted(X, lengths, y, anew)
        return Chunk(counted, schema=X.schema) if isinstance(X, Chunk) else counted

    def _checked(self, X: Taken) -> Matrix:
        return self._counted(X, None)

    def _check_stored(self, X: Matrix, width: int) -> None:
        if not isinstance(X, SparseRows):
            raise ValueError("rows of counts must be sparse")
        check_counts(csr_array((X.data, X.indices, X.indptr), shape=X.shape), owner=type(self).__name__)

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Matrix:
        return self._counted([x], None)

    def _taken(
        self,
        reset: bool,
        X: Rows,
        y: Values = None,
        sample_weight: Values = None,
        labels: Values = None,
        lengths: Values = None,
    ) -> tuple[Batch, Learner]:
        return super()._taken(reset, self._counts(X, lengths, y, anew=reset), None, sample_weight, labels)

    @learns_at_once
    def fit(
        self, X: Rows, y: Values = None, sample_weight: Values = None, *, lengths: Values = None, labels: Values = None
    ) -> Self:
        """Learn from all sequences at once; what was learned before is dropped, unless `warm_start`.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_sequences,), optional
            Weight of each sequence; one of weight 0 is ignored.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.
        labels : array-like of shape (n_sequences,), optional
            The component of each sequence where it is known, -1 where not.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return super().fit(self._counts(X, lengths, y, anew=not self.warm_start), None, sample_weight, labels=labels)

    @learns_by_chunk
    def partial_fit(
        self, X: Rows, y: Values = None, sample_weight: Values = None, *, lengths: Values = None, labels: Values = None
    ) -> Self:
        """Learn some sequences of a stream; the result does not depend on how the stream was cut.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_sequences,), optional
            Weight of each sequence; one of weight 0 is ignored.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.
        labels : array-like of shape (n_sequences,), optional
            The component of each sequence where it is known, -1 where not.

        Returns
        -------
        self : object
            The estimator.
        """
        return super().partial_fit(self._counts(X, lengths, y), None, sample_weight, labels=labels)

    @learns_by_chunk
    def update(self, X: Rows, sample_weight: Values = None, *, lengths: Values = None, labels: Values = None) -> Array:
        """Score each sequence as the model was before learning it, and learn it, in one E-step.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        sample_weight : array-like of shape (n_sequences,), optional
            Weight of each sequence; one of weight 0 is scored, but not learned.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.
        labels : array-like of shape (n_sequences,), optional
            The component of each sequence where it is known, -1 where not.

        Returns
        -------
        scores : ndarray of shape (n_sequences,)
            Log-probability of each sequence before it was learned.
        """
        return super().update(self._counts(X, lengths), sample_weight, labels=labels)

    @learns_at_once
    def warm_start_from(
        self, X: Rows, sample_weight: Values = None, *, lengths: Values = None, labels: Values = None, weight: float = 1.0
    ) -> Self:
        """Find a start on a sample of sequences, and forget what was learned before; the warm-up is over then.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sample; or, with `lengths`, the symbols of all of its sequences.
        sample_weight : array-like of shape (n_sequences,), optional
            Weight of each sequence; one of weight 0 is ignored.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.
        labels : array-like of shape (n_sequences,), optional
            The component of each sequence where it is known, -1 where not.
        weight : float, default=1.0
            How much of the sample counts as learned; less than 1 if its sequences will come again in the stream.

        Returns
        -------
        self : object
            The estimator, at the beginning of a stream.
        """
        return super().warm_start_from(self._counts(X, lengths, anew=True), sample_weight, labels=labels, weight=weight)

    @answers_by_chunk
    def score_samples(self, X: Rows, lengths: Values = None) -> Array:
        """Return the log-probability of each sequence.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.

        Returns
        -------
        log_prob : ndarray of shape (n_sequences,)
            Log-probability of each sequence under the current parameters.
        """
        return super().score_samples(self._counted(X, lengths))

    @answers_by_chunk
    def anomaly_score(self, X: Rows, lengths: Values = None, *, rate: float = EXPECTED_RATE) -> Array:
        """Return how odd each sequence is, a symbol: the higher, the odder.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.
        rate : float, default=0.05
            Expected share of anomalies among the sequences that were learned: lighter components are left out.

        Returns
        -------
        scores : ndarray of shape (n_sequences,)
            Scores in nats; NaN for an empty sequence.
        """
        return super().anomaly_score(self._counted(X, lengths), rate=rate)

    def _batch_of(self, X: Rows, y: Values = None, lengths: Values = None) -> Batch:
        return self._rows(self._counted(X, lengths))

    @answers_by_score
    def score(self, X: Rows, y: Values = None, lengths: Values = None) -> float:
        """Return the mean log-probability of the sequences.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        y : Ignored
            Not used, present for API consistency by convention.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.

        Returns
        -------
        log_likelihood : float
            Mean log-probability per sequence.
        """
        return float(self.score_samples(self._counted(X, lengths, y)).mean())

    @answers_by_chunk
    def predictive_score_samples(self, X: Rows, lengths: Values = None) -> Array:
        """Return the log-probability of each sequence with the uncertainty of the parameters integrated out.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.

        Returns
        -------
        log_prob : ndarray of shape (n_sequences,)
            Log posterior predictive probability of each sequence.
        """
        return super().predictive_score_samples(self._counted(X, lengths))

    @answers_by_chunk
    def predict_proba(self, X: Rows, lengths: Values = None) -> Array:
        """Return the probability of each component for each sequence.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.

        Returns
        -------
        responsibilities : ndarray of shape (n_sequences, n_components)
            Probabilities, which sum to one in each row.
        """
        return super().predict_proba(self._counted(X, lengths))

    @answers_by_chunk
    def predict(self, X: Rows, lengths: Values = None) -> NDArray[np.int64]:
        """Return the most probable component of each sequence.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.

        Returns
        -------
        components : ndarray of shape (n_sequences,)
            Indices of components.
        """
        return self.predict_proba(X, lengths).argmax(axis=1)

    @learns_at_once
    def fit_predict(
        self, X: Rows, y: Values = None, sample_weight: Values = None, *, lengths: Values = None, labels: Values = None
    ) -> NDArray[np.int64]:
        """Learn from the sequences and return the most probable component of each.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_sequences,), optional
            Weight of each sequence.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.
        labels : array-like of shape (n_sequences,), optional
            The component of each sequence where it is known, -1 where not.

        Returns
        -------
        components : ndarray of shape (n_sequences,)
            Indices of components.
        """
        return self.fit(X, y, sample_weight, lengths=lengths, labels=labels).predict(X, lengths)

    @answers_by_score
    def log_posterior(self, X: Rows, lengths: Values = None) -> float:
        """Return the log-density of the current parameters and the sequences: what MAP-EM maximises.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.

        Returns
        -------
        log_posterior : float
            Up to the evidence of the sequences, which does not depend on the parameters.
        """
        return super().log_posterior(self._counted(X, lengths))

    @answers_by_score
    def bic(self, X: Rows, lengths: Values = None) -> float:
        """Return the Bayesian information criterion on the sequences; lower is better.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.

        Returns
        -------
        bic : float
            The criterion.
        """
        return super().bic(self._counted(X, lengths))

    @answers_by_score
    def aic(self, X: Rows, lengths: Values = None) -> float:
        """Return Akaike's information criterion on the sequences; lower is better.

        Parameters
        ----------
        X : list of sequences, or array-like
            The sequences; or, with `lengths`, the symbols of all of them.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence.

        Returns
        -------
        aic : float
            The criterion.
        """
        return super().aic(self._counted(X, lengths))
