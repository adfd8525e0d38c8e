"""Rows that a person has marked as odd or usual, which move the anomaly score; for every mixture and chain."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Set
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.core.validation import one_line
from headwater.core.values import Rows, Values
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.calls import learns_at_once, reads
from headwater.families.multinomial import Multinomial
from headwater.models.mixture import Mixture
from headwater.policies.marks import FARTHEST, Marks, scale_of
from headwater.policies.names import MARKS
from headwater.policies.score_sketch import ScoreSketch

HIGH_RATE = 0.01  # of usual rows: marked odd rows are to lie beyond these
DRAWN_ROWS = 2000  # of the model, by which columns are scaled


class AnomalyMarks(StreamingEstimator):
    """What a person says of rows."""

    @abstractmethod
    def _odd_scores(self, X: Rows, y: Values, lengths: Values) -> Array:
        """The anomaly scores of rows, with what is given beside them."""

    @abstractmethod
    def _score_sketch(self) -> ScoreSketch:
        """The scores of usual rows."""

    @learns_at_once
    def label_anomalies(self, X: Rows, odd: Values, y: Values = None, *, lengths: Values = None) -> Self:
        """Take what a person says of rows: the anomaly scores of these rows, and of rows like them, move.

        Rows like those marked usual become less odd, rows like those marked odd become odder; all others keep their scores.
        Nothing is learned or forgotten, and the density stays as it is. The newest 256 marks are kept; they are saved with the
        model and united in merged models. A row that is marked again has its newest mark.

        Rows are compared by their values (of chains, whatever came before), those of many columns and of words by random
        projections. Columns are scaled by rows drawn from the model; for chains, regressions and documents by the rows given,
        among which there should be usual ones.

        P-values and thresholds go on comparing with the scores that usual rows had before; `calibrate` with usual rows takes
        their scores after the marks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows. Of chains, whole sequences.
        odd : array-like of shape (n_samples,)
            1 or True for odd rows, 0 or False for usual ones, NaN or None for rows that nobody has looked at.
        y : array-like of shape (n_samples,), optional
            The target, for regressions.
        lengths : array-like of shape (n_sequences,), optional
            The length of each sequence.

        Returns
        -------
        self : object
            The model.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> model = hw.GaussianMixture(1, random_state=0).fit(rng.normal(size=(2000, 2)))
        >>> high, left = [0.0, 5.0], [-4.0, 0.0]
        >>> model.anomaly_score([high, left]).round(1)
        array([14.5,  9.7])
        >>> model.label_anomalies([high], [0]).anomaly_score([high, left, [0.1, 5.2]]).round(1)
        array([2.8, 6.3, 3. ])
        """
        verdicts = checked_verdicts(odd)
        scores = self._odd_scores(X, y, lengths)
        if len(verdicts) != len(scores):
            raise ValueError(f"odd must have a value for each of the {len(scores)} rows, got {len(verdicts)}")
        if not np.isfinite(verdicts).any():
            raise ValueError("odd must mark at least one row as 1 (odd) or 0 (usual), got none")
        marked = np.flatnonzero(np.isfinite(verdicts) & np.isfinite(scores))
        if not len(marked):
            raise ValueError("odd must mark at least one row that can be scored, got marks of rows that say nothing")
        sketch = self._score_sketch()
        stream, runtime = self._read().stream, self._fitted()
        marks: Marks = stream.records.get(MARKS) or Marks.blank()
        profiles = cast(Any, stream.model).family.profile(cast(Any, self)._batch_of(X, y, lengths).X)
        before = marks.unmoved(profiles[marked], scores[marked])
        high = float(np.clip(sketch.threshold(HIGH_RATE), -FARTHEST, FARTHEST))
        marks = marks.on_scale(*scale_of(self._usual_profiles(profiles)), sketch.origin, sketch.unit, high)
        ended = runtime.warming_up or self._learner.shards > 1
        self._runtime = runtime.with_record(MARKS, marks.add(profiles[marked], before, verdicts[marked] > 0.0), ended)
        return self

    @property
    @reads
    def n_marked_(self) -> int:
        """Rows that were marked by `label_anomalies`, and are kept."""
        if self.__sklearn_is_fitted__() and not self._has_state():
            return 0
        marks: Marks | None = self._read().stream.records.get(MARKS)
        return 0 if marks is None else len(marks)

    def _usual_profiles(self, given: Array) -> Array:
        """Profiles of rows by which columns are scaled: rows drawn from the model, or those given if it cannot draw."""
        reading, model = self._read(), self._read().stream.model
        if not isinstance(model, Mixture) or isinstance(model.family, Multinomial) or self._traits.target_columns:
            return given
        rows = model.sample(cast(Any, reading.parameters), DRAWN_ROWS, np.random.default_rng(0))[0]
        return model.family.profile(rows)


def checked_verdicts(odd: Values) -> NDArray[np.float64]:
    """Return 1 for odd rows, 0 for usual ones and NaN for those without a mark, or refuse."""
    if isinstance(odd, str | Mapping | Set):
        raise ValueError(f"odd must have a value for each row, in the order of the rows, got {one_line(odd)}")
    given = np.asarray(odd if hasattr(odd, "__array__") or not np.iterable(odd) else list(cast(Any, odd)), dtype=object)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1:
        raise ValueError(f"odd must have a value for each row, got an array of shape {given.shape}")
    found = np.full(len(given), np.nan)
    for at, value in enumerate(given.tolist()):
        if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
            continue
        if isinstance(value, str) or value not in (0, 1):
            raise ValueError(f"odd must be 1 (odd), 0 (usual) or NaN (not looked at) for each row, got {one_line(value)}")
        found[at] = float(value)
    return found
