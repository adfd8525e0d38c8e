"""Where the open sequences of a hidden Markov model have got to, and what may come next."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from headwater.core.batch import NO_SEQUENCES, Batch
from headwater.core.statistics import Array
from headwater.core.validation import n_dimensions
from headwater.core.values import Key, Row, Rows
from headwater.estimators.calls import answers_at_once, reads
from headwater.estimators.chain_diagnostics import ChainDiagnostics
from headwater.estimators.chains import Chunk, check_key
from headwater.models.chain_records import Carry, ChainParameters

NOBODY = -(2**62)  # the number of a sequence that does not exist


class ChainPositions(ChainDiagnostics):
    """Questions about sequences that go on; nothing is learned here."""

    _open: dict[object, int]
    _end: Array  # states at the last row of a fit

    # What the learning half says

    def _is_row(self, X: Rows) -> bool:
        """Whether this is one row, not some."""
        return n_dimensions(X) == 1

    @abstractmethod
    def _given_width(self) -> int:
        """Number of columns of what was set by hand."""

    # Answers

    @property
    @reads
    def open_sequences_(self) -> list[object]:
        """Keys of the sequences that are open; None is the one without a name."""
        check_is_fitted(self)
        return list(self.__dict__.get("_open", {}))

    @reads
    def score_one(self, x: Row, key: Key = None) -> float:
        """Return the log-density of one row if it came next, under the parameters of the last refresh.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The row.
        key : str or int, optional
            The sequence it would belong to.

        Returns
        -------
        score : float
            Its log-density given the rows so far.
        """
        scores = np.empty(1)
        self._went_on(self._one(x), key, scores, np.empty((0, 0)))
        return float(scores[0])

    @answers_at_once
    def filter(self, X: Rows, *, key: Key = None) -> Array:
        """Return the probability of each state at each row, given the rows up to it, if they came next.

        The rows follow those that were learned; nothing is learned from them, and the sequence does not go on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_features,) for one row
            The rows.
        key : str or int, optional
            The open sequence that they follow; if there is none, they begin one.

        Returns
        -------
        states : ndarray of shape (n_samples, n_components), or (n_components,) for one row
            Probabilities, which sum to one in each row.
        """
        if not self._has_state():
            self._parameters_seen()
        single = isinstance(X, Mapping) or self._is_row(X)
        rows = self._one(X) if single else self._aligned(self._checked(X))
        if self._has_state() and not single:
            self._note_columns(Chunk(rows, NO_SEQUENCES, X, {}), reset=False)
        found = np.empty((len(rows), self._model.n_components))
        self._went_on(rows, key, np.empty(0), found)
        states = self._pool_states(found)
        return states[0] if single else states

    @answers_at_once
    def next_state_proba(self, key: Key = None, X: Rows = None) -> Array:
        """Return the probability of each state at the next row of a sequence.

        Parameters
        ----------
        key : str or int, optional
            The open sequence; if there is none with this key, the next row is its first. By default the one without a name, and
            after a `fit` the last one that was learned.
        X : array-like of shape (n_samples, n_features), optional
            The rows so far of another sequence, from its first on; nothing is learned from them.

        Returns
        -------
        states : ndarray of shape (n_components,)
            Probabilities, which sum to one.
        """
        return self._pool_states(self._next_states(key, X)[1])

    def _next_states(self, key: Key, X: Rows) -> tuple[ChainParameters, Array]:
        """Parameters, and where the chain may be at the next row of a sequence."""
        key = check_key(key)
        if X is not None:
            if key is not None:
                raise ValueError("key names a sequence that was learned, and X are the rows of another: give one of them")
            batch, parameters = self._sequences_of(X, None), self._parameters_seen()
            return parameters, self._model.last_states(parameters, batch, self._threads) @ parameters.transitions
        opened = self.__dict__.get("_open", {})
        if key is None and key not in opened and "_end" in self.__dict__:
            parameters = self._parameters_seen()
            return parameters, self._end @ parameters.transitions
        parameters, carry = self._position()
        known = carry.filters.get(opened[key]) if key in opened else None
        return parameters, parameters.start.copy() if known is None else known @ parameters.transitions

    def _went_on(self, rows: Array, key: Key, scores: Array, states: Array) -> None:
        """Filter rows that follow those of an open sequence."""
        parameters, carry = self._position()
        number = self.__dict__.get("_open", {}).get(check_key(key), NOBODY)
        batch = Batch(rows, sequences=np.full(len(rows), number))
        self._model.follow(parameters, batch, carry, scores, states, 1)

    def _position(self) -> tuple[ChainParameters, Carry]:
        """Parameters of the last refresh, and what is known of open sequences under them."""
        if not self._has_state():
            return self._parameters_seen(), Carry()
        parameters, carry = self._reader.position()
        return parameters, cast(Carry, carry) if carry is not None else Carry()
