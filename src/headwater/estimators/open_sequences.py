"""Scores of sequences that come in chunks, when nothing is to be learned from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import NO_SEQUENCES, Batch
from headwater.core.statistics import Array
from headwater.core.values import Key, Rows, Values
from headwater.estimators.chain_streams import ChainStreams
from headwater.estimators.chains import Chunk, check_keys, check_lengths
from headwater.models.chain_records import Carry


class Follower:
    """Follows sequences with a hidden Markov model: what is known of each goes on from one chunk to the next.

    Parameters
    ----------
    model : GaussianHMM or CategoricalHMM
        A fitted model, which is not changed.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> from headwater.estimators.open_sequences import Follower
    >>> rows = np.random.default_rng(0).normal(size=(300, 1))
    >>> model = hw.GaussianHMM(2, random_state=0).fit(rows)
    >>> follower = Follower(model)
    >>> scores = np.concatenate([follower.follow(rows[:100])[0], follower.follow(rows[100:])[0]])
    >>> bool(np.allclose(scores, model.score_steps(rows)))
    True
    """

    def __init__(self, model: ChainStreams) -> None:
        self._chain = model
        self._parameters = model._parameters_seen()
        self._numbers: dict[object, int] = {}
        self._complete = 0
        self._pasts: dict[int, Array] = {}
        self._carry: Carry | None = None

    def follow(self, X: Rows, lengths: Values = None, key: Key = None, y: Values = None) -> tuple[Array, Array]:
        """Score rows that come next, and say which states they are in.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        lengths : array-like of shape (n_sequences,), optional
            Length of each of some complete sequences.
        key : array-like of shape (n_samples,), optional
            The sequence that each row belongs to; without it and without lengths, all rows are of one.
        y : array-like of shape (n_samples,), optional
            The targets, for models that have one.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Log-density of each row given those before it in its sequence.
        states : ndarray of shape (n_samples, n_components)
            Probability of each state given the rows so far.
        """
        chain = self._chain
        rows = chain._aligned(chain._checked(chain._beside(X, y)))
        if chain._has_state():
            chain._note_columns(Chunk(rows, NO_SEQUENCES, X, {}), reset=False)
        sequences = self._sequences(len(rows), lengths, key)
        rows, pasts = chain._beside_past(rows, sequences, self._pasts)
        self._pasts |= {number: past for number, past in pasts.items() if number >= 0}
        batch = Batch(rows, sequences=sequences)
        scores, states = np.empty(len(rows)), np.empty((len(rows), chain._model.n_components))
        if len(rows):
            self._carry = chain._model.follow(self._parameters, batch, self._carry, scores, states, chain._threads)
        return scores, chain._pool_states(states)

    def _sequences(self, rows: int, lengths: Values, key: Key) -> NDArray[np.int64]:
        if lengths is not None:
            sizes = check_lengths(lengths, rows)
            numbered = -1 - self._complete - np.arange(len(sizes))  # negative: complete, and not carried on
            self._complete += len(sizes)
            return np.repeat(numbered, sizes)
        if key is None:
            return np.zeros(rows, dtype=np.int64)
        names, _, places = check_keys(key, rows)
        numbers = [self._numbers.setdefault(name, 1 + len(self._numbers)) for name in names]
        return np.asarray(numbers, dtype=np.int64)[places]
