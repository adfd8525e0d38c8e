"""P-values of rows, thresholds, and decisions about what is odd; for every mixture."""

from __future__ import annotations

import numbers
from dataclasses import replace
from inspect import signature
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from headwater.core.statistics import Array
from headwater.core.validation import one_line
from headwater.core.values import RandomState, Rows, Values
from headwater.estimators.anomaly_groups import AnomalyGroups
from headwater.estimators.calls import answers_at_once, learns_at_once, reads
from headwater.policies.decision_policy import Decisions
from headwater.policies.names import DECISIONS, SCORES
from headwater.policies.score_sketch import ScoreSketch
from headwater.policies.testing import benjamini_hochberg

ABSENT = {"y": "no target", "lengths": "no sequences"}


class AnomalyDecisions(AnomalyGroups):
    """Which rows are odd, at a rate that the user says."""

    @answers_at_once
    def anomaly_pvalue(self, X: Rows, y: Values = None, *, lengths: Values = None, random_state: RandomState = None) -> Array:
        """Return the share of usual rows that are at least as odd as each row.

        Usual rows are those that were learned, each as odd as it was just before it was learned. The model keeps a sketch of
        their scores, which is saved, merged and forgotten with it; beyond it, where fewer than 25 rows were as odd, a
        generalised Pareto law is fitted. After `fit` the scores are those of the learned rows themselves, which makes p-values
        slightly too small. They are exact for a model that is not changed any more and rows that it has never seen, after
        `calibrate` on rows of the same kind.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,), optional
            The target, for regressions.
        lengths : array-like of shape (n_sequences,), optional
            The length of each sequence, for mixtures of sequences.
        random_state : int, RandomState or None, default=None
            Breaks ties between rows that are equally odd. None breaks them in the same way at each call.

        Returns
        -------
        pvalues : ndarray of shape (n_samples,)
            P-values; NaN for rows that say nothing.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> model = hw.GaussianMixture(2, random_state=0).partial_fit(rng.normal(size=(20_000, 2)))
        >>> pvalues = model.anomaly_pvalue(rng.normal(size=(10_000, 2)))
        >>> bool(0.008 < np.mean(pvalues < 0.01) < 0.012)
        True
        """
        scores = self._odd_scores(X, y, lengths)
        uniforms = check_random_state(0 if random_state is None else random_state).random_sample(len(scores))
        return self._score_sketch().pvalues(scores, 1.0 - uniforms)

    @reads
    def threshold(self, rate: float) -> float:
        """Return the anomaly score that this share of usual rows passes.

        Parameters
        ----------
        rate : float
            Share of usual rows, between 0 and 1.

        Returns
        -------
        threshold : float
            Rows with a higher `anomaly_score` are odd at this rate.
        """
        return self._score_sketch().threshold(checked_level(rate, "rate"))

    @answers_at_once
    def decide(
        self,
        X: Rows,
        y: Values = None,
        *,
        rate: float | None = None,
        fdr: float | None = None,
        lengths: Values = None,
        random_state: RandomState = None,
    ) -> NDArray[np.bool_]:
        """Return which rows are odd, at a false alarm rate or at a false discovery rate.

        It needs p-values: any model that has learned rows has them (see `anomaly_pvalue`). It does not change the model, so a
        service may ask one copy while another one learns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,), optional
            The target, for regressions.
        rate : float, optional
            Share of usual rows that may be called odd.
        fdr : float, optional
            Share of the rows called odd that may be usual, on average over tables like X: Benjamini and Hochberg's procedure
            within X.
        lengths : array-like of shape (n_sequences,), optional
            The length of each sequence, for mixtures of sequences.
        random_state : int, RandomState or None, default=None
            Breaks ties between rows that are equally odd.

        Returns
        -------
        odd : ndarray of bool of shape (n_samples,)
            Whether each row is odd. Rows that say nothing are not.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> model = hw.GaussianMixture(1, random_state=0).partial_fit(rng.normal(size=(20_000, 2)))
        >>> rows = np.vstack([rng.normal(size=(1000, 2)), rng.normal(size=(5, 2)) + 8.0])
        >>> odd = model.decide(rows, fdr=0.1)
        >>> print(odd[1000:], odd[:1000].sum() < 4)
        [ True  True  True  True  True] True
        """
        level = one_level(rate, fdr)
        pvalues = self.anomaly_pvalue(X, y, lengths=lengths, random_state=random_state)
        if rate is not None:
            return np.asarray(pvalues <= level)
        return benjamini_hochberg(pvalues, level)

    @learns_at_once
    def calibrate(self, X: Rows, y: Values = None, *, lengths: Values = None) -> Self:
        """Take the scores of these rows as those of usual rows, in place of those that the model kept. Nothing is learned.

        P-values are exact for further rows of the same kind, as long as the model learns nothing. If it learns, the scores of
        what it learns are added.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Usual rows that the model has not learned.
        y : array-like of shape (n_samples,), optional
            The target, for regressions.
        lengths : array-like of shape (n_sequences,), optional
            The length of each sequence, for mixtures of sequences.

        Returns
        -------
        self : object
            The model.
        """
        scores = self._odd_scores(X, y, lengths)
        if not np.isfinite(scores).any():
            raise ValueError("X must have a row that can be scored, got none")
        sketch = ScoreSketch.on_grid_of(scores)
        runtime = self._fitted()
        ended = runtime.warming_up or self._learner.shards > 1  # shards have scores of their own
        self._runtime = runtime.with_record(SCORES, sketch.add(scores, np.ones(len(scores))), ended)
        return self

    @learns_at_once
    def decide_next(
        self,
        X: Rows,
        y: Values = None,
        *,
        rate: float | None = None,
        fdr: float | None = None,
        lengths: Values = None,
        random_state: RandomState = None,
    ) -> NDArray[np.bool_]:
        """Return which of the next rows of a stream are odd: decisions go on from those before, and the model keeps where.

        With `rate` the threshold follows the stream: it rises after each odd row and falls after each other one, so that the
        share of odd rows in the long run is the rate even if the stream drifts away from what was learned. With `fdr` it is an
        online test (LORD++): of all rows called odd since the first call, no more than this share are usual, on average. Call
        it before the rows are learned. The state is saved with the model; a merged model begins anew.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The next rows, in their order.
        y : array-like of shape (n_samples,), optional
            The target, for regressions.
        rate : float, optional
            Share of all rows that are called odd, in the long run. Another rate than before begins anew.
        fdr : float, optional
            Share of the rows called odd that may be usual. Another level than before begins anew.
        lengths : array-like of shape (n_sequences,), optional
            The length of each sequence, for mixtures of sequences.
        random_state : int, RandomState or None, default=None
            Breaks ties between rows that are equally odd.

        Returns
        -------
        odd : ndarray of bool of shape (n_samples,)
            Whether each row is odd.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> model = hw.GaussianMixture(1, random_state=0).partial_fit(rng.normal(size=(5000, 2)))
        >>> drifted = [model.decide_next(1.3 * rng.normal(size=(5000, 2)), rate=0.01).mean() for _ in range(4)]
        >>> print(np.round(np.mean(drifted), 2))
        0.01
        """
        level = one_level(rate, fdr)
        if self._fitted().warming_up:
            raise ValueError(
                "decide_next goes on from row to row, which it can do once the warm-up is over: learn more rows, or use decide"
            )
        pvalues = self.anomaly_pvalue(X, y, lengths=lengths, random_state=random_state)
        known: Decisions = self._read().stream.records.get(DECISIONS) or Decisions.blank()
        if rate is not None:
            follower, odd = known.follower_at(level).take(pvalues)
            known = replace(known, follower=follower)
        else:
            tests, odd = known.tests_at(level).take(pvalues)
            known = replace(known, tests=tests)
        self._runtime = self._fitted().with_record(DECISIONS, known)
        return odd

    def _odd_scores(self, X: Rows, y: Values, lengths: Values) -> Array:
        """The anomaly scores of rows, with what is given beside them."""
        takes = signature(cast(Any, self).anomaly_score).parameters
        given = {name: value for name, value in (("y", y), ("lengths", lengths)) if value is not None or name in takes}
        for name in given.keys() - takes.keys():
            raise ValueError(f"{name} must be None, since {type(self).__name__} has {ABSENT[name]}, got some")
        return np.asarray(cast(Any, self).anomaly_score(X, **given))

    def _score_sketch(self) -> ScoreSketch:
        """The scores of usual rows."""
        from headwater.policies.typicality import ScorePolicy

        reading, runtime = self._read(), self._fitted()
        sketch: ScoreSketch | None = reading.stream.records.get(SCORES)
        if sketch is None and runtime.warming_up:
            policy = next((one for one in reading.plan.policies if isinstance(one, ScorePolicy)), None)
            if policy is not None:
                sketch = policy.sketch_of(reading.plan, reading.stream, runtime.waiting_batch())
        if sketch is None or not sketch.rows:
            raise ValueError(
                f"{type(self).__name__} has kept no scores of usual rows, which p-values and marks need: call "
                "calibrate(X) with rows that it has not learned"
            )
        return sketch


def one_level(rate: float | None, fdr: float | None) -> float:
    """Return the one of two levels that was given."""
    if (rate is None) == (fdr is None):
        raise ValueError(f"one of rate and fdr must be given, got rate={rate} and fdr={fdr}")
    return checked_level(rate, "rate") if rate is not None else checked_level(fdr, "fdr")


def checked_level(value: object, name: str) -> float:
    """Return a rate, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0.0 < float(value) < 1.0:
        raise ValueError(f"{name} must be a number between 0 and 1, got {one_line(value)}")
    return float(value)
