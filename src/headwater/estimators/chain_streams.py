"""How every hidden Markov model learns: from sequences in memory, or from such as never end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.chunk import refuse_lost
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.validation import check_width
from headwater.core.values import Key, Matrix, Row, Rows, Values
from headwater.estimators.calls import learns, learns_at_once, learns_by_chunk
from headwater.estimators.chain_forecasts import ChainForecasts
from headwater.estimators.chains import Chunk, check_key, check_keys, check_lengths, one_of
from headwater.estimators.component_count import start_branch
from headwater.estimators.traits import Taken


class ChainStreams(ChainForecasts):
    """Sequences in, open ones kept by their keys."""

    _traits = replace(
        ChainForecasts._traits,
        chained=True,
        scored_share=0.25,  # rows have to be filtered once more
    )

    # What a subclass says

    @abstractmethod
    def _checked(self, X: Taken, anew: bool = False) -> Matrix:
        """Return the rows of a chunk, or refuse them in one sentence; `anew`, of a model that forgets what it learned."""

    def _width_of(self, rows: Array) -> int:
        """Width of a model that begins with these rows."""
        return int(rows.shape[1])

    @abstractmethod
    def _start_values(self) -> dict[str, Array]:
        """What learning anew begins with: what was set by hand, or learned."""

    @abstractmethod
    def _give_all(self, values: dict[str, Array]) -> None:
        """Let these be what is set by hand, and nothing else."""

    @abstractmethod
    def _anew(self) -> Self:
        """A model that has learned nothing, which begins where this one would if it learned anew."""

    @abstractmethod
    def _tell_overwritten(self) -> None:
        """Warn of parameters that were set by hand and are not where learning starts."""

    def _beside(self, X: Rows, y: Values) -> Rows:
        """Return rows with what belongs to them, as `_checked` takes them; chains have no target, unless a subclass has one."""
        return X

    def _beside_past(
        self, rows: Array, sequences: NDArray[np.int64], pasts: Mapping[int, Array]
    ) -> tuple[Array, dict[int, Array]]:
        """Return rows beside those before them, where a row depends on them, and the last rows of each sequence."""
        return rows, {}

    # Learning

    @learns_at_once
    def fit(self, X: Rows, y: Values = None, lengths: Values = None) -> Self:
        """Learn from all sequences at once; what was learned before is dropped, except for what `init_params` leaves out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of all sequences, one after the other. A row of NaN is missing.
        y : array-like of shape (n_sequences,), optional
            The position of `lengths` in ``fit(X, lengths)``; pipelines pass None here.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        refuse_lost(X)
        chunk = self._numbered(X, one_of(y, lengths), reset=True)
        if not np.any(chunk.sequences[1:] == chunk.sequences[:-1]):
            raise ValueError(
                f"{type(self).__name__} needs a sequence of at least two rows: transitions between states cannot be learned "
                f"from sequences of one row"
            )
        self._tell_overwritten()
        start = self._start_values()
        self._fit(chunk, None)
        self._give_all(start)
        last = chunk.sequences == chunk.sequences[-1]
        batch = Batch(chunk.rows[last], sequences=chunk.sequences[last])
        self._end = self._model.last_states(self._parameters_seen(), batch, self._threads)
        return self

    @learns_by_chunk
    def partial_fit(self, X: Rows, lengths: Values = None, *, key: Key = None) -> Self:  # type: ignore[override]
        """Learn a chunk of a stream, of any size; the result does not depend on how the stream was cut.

        Without `lengths` the rows continue the sequence of the last call. A sequence ends when it is closed (`close`), or when
        the model is merged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows. A row of NaN is missing.
        lengths : array-like of shape (n_sequences,), optional
            Length of each of some complete sequences.
        key : str or int, or array-like of shape (n_samples,), optional
            The sequence that the rows belong to, if there are several at a time; or that of each row.

        Returns
        -------
        self : object
            The estimator.
        """
        self._learn_rows(X, lengths, key, False)
        return self

    @learns_by_chunk
    def update(self, X: Rows, lengths: Values = None, *, key: Key = None) -> Array:
        """Score each row given those before it, as the model was before learning it, and learn it.

        The honest (prequential) score of a stream: what is far below the usual was not expected, whatever was learned. The
        first eight rows, when not even the scale is known, score NaN.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows. A row of NaN is missing, and scores 0.
        lengths : array-like of shape (n_sequences,), optional
            Length of each of some complete sequences.
        key : str or int, or array-like of shape (n_samples,), optional
            The sequence that the rows belong to, if there are several at a time; or that of each row.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Log-density of each row given the rows before it in its sequence.
        """
        return self._learn_rows(X, lengths, key, True)

    def _learn_rows(self, X: Rows, lengths: Values, key: Key, scored: bool) -> Array:
        first = not self._has_state()
        refuse_lost(X)
        chunk = self._numbered(X, lengths, reset=first, key=key, streaming=True)
        self._tell_overwritten()
        scores = self._learn_chunk(chunk, scored=scored)
        self._open = chunk.opened
        return scores

    @learns_at_once
    def warm_start_from(self, X: Rows, lengths: Values = None, *, weight: float = 1.0) -> Self:
        """Find a start on a sample of sequences, and forget what was learned before; the warm-up is over then.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the sample.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.
        weight : float, default=1.0
            How much of the sample counts as learned; less than 1 if its rows will come again in the stream.

        Returns
        -------
        self : object
            The estimator, at the beginning of a stream.
        """
        chunk = self._numbered(X, lengths, reset=True)
        self._tell_overwritten()
        start = self._start_values()
        self._plant(chunk, None, weight)
        self._give_all(start)
        return self

    def branch(self) -> Self:
        """Return a copy that others can be merged with: it has learned the same, and its sequences are closed.

        Returns
        -------
        model : estimator
            The branch; the model itself is left as it is.
        """
        self._check_stream()
        branched = copy(self)
        for name in ("_open", "_end", "_pasts", "_end_rows"):
            branched.__dict__.pop(name, None)
        branched._runtime = start_branch(branched)
        return branched

    @learns
    def close(self, key: Key = None) -> Self:
        """End an open sequence: rows that come next under this key begin another.

        Parameters
        ----------
        key : str or int, optional
            The sequence; by default the one without a name.

        Returns
        -------
        self : object
            The estimator.
        """
        key, opened = check_key(key), dict(self.__dict__.get("_open", {}))
        if key not in opened:
            some = ", ".join(map(repr, list(opened)[:5])) + (" ..." if len(opened) > 5 else "")
            raise ValueError(f"there is no open sequence with the key {key!r}; open are: {some or 'none'}")
        number = opened.pop(key)
        self._runtime = self._runtime.close(number)
        self._open = opened
        return self

    @learns
    def learn_one(self, x: Row, key: Key = None) -> Self:
        """Learn one row, which follows those before it.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The row.
        key : str or int, optional
            The sequence it belongs to.

        Returns
        -------
        self : object
            The estimator.
        """
        first = not self._has_state()
        chunk = self._numbered(self._one(x, learning=True), None, reset=first, key=key, streaming=True)
        self._tell_overwritten()
        self._learn_chunk(replace(chunk, given=None))
        self._open = chunk.opened
        if first and isinstance(x, Mapping):
            self.feature_names_in_ = np.asarray(list(x), dtype=object)
        return self

    # The machinery

    def _chunk(self, X: Rows, y: Values = None) -> Taken:
        return self._numbered(X, None, reset=True)

    def _taken(self, reset: bool, X: Rows, lengths: Values = None) -> tuple[Batch, Learner]:  # type: ignore[override]
        refuse_lost(X)
        return self._take(self._numbered(X, lengths, reset=reset), None, None, reset=reset)

    def _numbered(self, X: Rows, lengths: Values, reset: bool, key: Key = None, streaming: bool = False) -> Chunk:
        """Check rows and say which sequence each belongs to: numbers come from the place of the first row in the stream."""
        rows = self._checked(X, reset)
        if not reset:
            rows = self._aligned(rows)
        seen = self._runtime.rows if streaming and self._has_state() else 0
        opened = dict(self.__dict__.get("_open", {}))
        if not streaming or lengths is not None:
            if key is not None:
                raise ValueError("key names sequences that go on, and lengths are those of complete ones: give one of them")
            sizes = np.array([len(rows)]) if lengths is None else check_lengths(lengths, len(rows))
            begins = seen + np.cumsum(sizes) - sizes
            return Chunk(rows, np.repeat(-1 - begins, sizes), X, opened)
        if key is None or np.isscalar(key):
            number = opened.setdefault(check_key(key), seen)
            return Chunk(rows, np.full(len(rows), number), X, opened)
        names, first, places = check_keys(key, len(rows))
        numbers = np.array([opened.setdefault(name, seen + int(at)) for name, at in zip(names, first, strict=True)])
        return Chunk(rows, numbers[places], X, opened)

    def _take(
        self, X: Taken, sample_weight: Values, labels: Values, reset: bool, going_on: bool | None = None
    ) -> tuple[Batch, Learner]:
        width = self._width_of(X.rows) if reset else self._width_with(self.n_features_in_)
        if reset and self._has_state():  # what was learned may be where it starts
            learner = self._anew()._make_learner(width)
        else:
            learner = self._learner_for(width, not reset if going_on is None else going_on)
        return Batch(X.rows, sequences=X.sequences), learner

    def _note_columns(self, X: Taken, reset: bool) -> None:
        if not isinstance(X, Chunk) or X.given is not None:
            super()._note_columns(X.given if isinstance(X, Chunk) else X, reset)
        elif reset:  # one row, whose columns were checked by their names
            self.n_features_in_ = self._features_of(X.rows.shape[1])

    def _aligned(self, rows: Matrix) -> Matrix:
        check_width(rows, self.n_features_in_ if self._has_state() else self._given_width(), type(self).__name__)
        return rows

    def _sequences_of(self, X: Rows, lengths: Values) -> Batch:
        self._parameters_seen()
        chunk = self._numbered(X, lengths, reset=False)
        if self._has_state():
            self._note_columns(chunk, reset=False)
        return Batch(chunk.rows, sequences=chunk.sequences)
