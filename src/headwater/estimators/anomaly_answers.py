"""How odd rows are: a score of typicality, beside the density; for every mixture."""

from __future__ import annotations

import numbers

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.validation import one_line
from headwater.core.values import Rows, Values
from headwater.diagnostics.component_description import scores_per_size
from headwater.estimators.calls import answers_by_chunk
from headwater.estimators.mixture_answers import MixtureAnswers
from headwater.policies.mark_policy import scores_with_marks
from headwater.policies.typicality import EXPECTED_RATE, Typicality, limited, typicality_of


class AnomalyAnswers(MixtureAnswers):
    """Which rows are odd."""

    @answers_by_chunk
    def anomaly_score(self, X: Rows, *, rate: float = EXPECTED_RATE) -> Array:
        """Return how odd each row is: the higher, the odder.

        Minus the logarithm of a density that anomalies among the learned rows hardly change: components lighter than
        `rate` are left out, since anomalies may have made them, and a row counts as odd if it is odd under the others, or under
        the one component that these add up to. Of documents and sequences it is the score per word or symbol.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        rate : float, default=0.05
            Expected share of anomalies among the rows that were learned. With 0 no component is left out.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Scores in nats; NaN for rows that say nothing, such as documents without a word or rows without a value.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> usual, odd = rng.normal(size=(2000, 2)), 0.1 * rng.normal(size=(40, 2)) + 6.0
        >>> model = hw.GaussianMixture(2, random_state=0).fit(np.vstack([usual, odd]))
        >>> bool(model.score_samples([[6.0, 6.0]]) > model.score_samples([[2.0, -2.0]]))  # the odd rows have a component
        True
        >>> bool(model.anomaly_score([[6.0, 6.0]]) > model.anomaly_score([[2.0, -2.0]]))
        True
        """
        return self._anomaly_scores(X, checked_share(rate, "rate", least=0.0, below=0.5))

    def _anomaly_scores(self, X: Rows, rate: float, sizes: Array | None = None) -> Array:
        batch = self._rows(X)
        sizes = self._describer.row_sizes(X) if sizes is None else sizes
        scores = -self._typicality(rate).scores(batch, self._threads)
        return scores_with_marks(self._read().stream, batch, scores_per_size(limited(scores), sizes))

    def _batch_of(self, X: Rows, y: Values = None, lengths: Values = None) -> Batch:
        """The rows that have a score each."""
        return self._rows(X)

    def _typicality(self, rate: float) -> Typicality:
        reading = self._read()
        return typicality_of(self._model, self._row_parameters(), reading.belief, reading.plan.algorithm.report, rate)


def checked_share(value: object, name: str, least: float, below: float) -> float:
    """Return a share of rows between two numbers, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not least <= float(value) < below:
        raise ValueError(f"{name} must be a number from {least:g} to less than {below:g}, got {one_line(value)}")
    return float(value)
