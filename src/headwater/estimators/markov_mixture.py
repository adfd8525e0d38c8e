"""MarkovMixture: streaming soft clustering of sequences of symbols by first symbols and transitions."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from headwater.core.algorithm import Algorithm
from headwater.core.batch import SparseRows
from headwater.core.chunk import Chunk, values_of
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.values import RandomState, Rows, Values
from headwater.estimators.calls import reads
from headwater.estimators.describers.counts import MarkovMixtureDescriber
from headwater.estimators.seeds import rng_of
from headwater.estimators.sequence_mixture import SequenceMixture
from headwater.estimators.sequences import check_merged_symbols, check_same_symbols, check_sequences, transition_counts
from headwater.estimators.start_parameters import given_chains
from headwater.families.multinomial import Multinomial

MOST_UNASKED = 2000  # symbols; a larger number must be confirmed by n_symbols


class MarkovMixture(SequenceMixture):
    """A mixture of Markov chains that learns from streams of sequences of symbols, such as clicks, pages or notes.

    Each component has probabilities of the first symbol and of the steps from symbol to symbol; a sequence is learned through
    its counts of them, so it costs as many numbers as it has different steps, however long it is.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of components. With 'auto' it grows by splits that gain more than 2.5 standard errors, and more than 0.0005 nats
        a row, on rows that did not propose them; of fewer than 1000 rows the least BIC decides (see `growth_`).
    n_symbols : int, optional
        Symbols are 0, 1, ..., n_symbols - 1. Default: as many as the first sequences that are learned have.
    weights_init, startprob_init, transmat_init : array-like, optional
        Weights (n_components,), probabilities of the first symbol (n_components, n_symbols) and of the steps
        (n_components, n_symbols, n_symbols) to start from; the last two together.
    start_weight : float, optional
        Sequences that the start counts as: the stream begins as if it had learned so many, distributed as the start says.
        Default: as many as it takes to estimate every parameter, less those of the warm-up. They are as long as those of the
        warm-up are on average; without one, as the first sequence of the stream.
    startprob_prior, transmat_prior : float, optional
        Dirichlet parameters of the first symbol and of each row of the transition matrix. A mode takes 1 off them. Default: 0.1
        counts are added to each, for means and modes alike.
    tol, max_iter, n_init, init_params, random_state, warm_start, verbose, verbose_interval, algorithm, half_life, warm_up, \
weight_concentration_prior, n_threads, parts, reservoir
        As in `MultinomialMixture`; a row is a sequence.

    Attributes
    ----------
    n_components_ : int
        Number of components; with 'auto', the number that was found.
    growth_ : Growth
        How it came to that, step by step; None if n_components is a number.
    weights_ : ndarray of shape (n_components,)
        Weight of each component.
    startprob_ : ndarray of shape (n_components, n_symbols)
        Probability of each first symbol.
    transmat_ : ndarray of shape (n_components, n_symbols, n_symbols)
        Probability of each step, from the first symbol to the second.
    n_active_ : int
        Number of components with at least one sequence's worth of belief; see `prune`.
    n_symbols_ : int
        Number of symbols.
    n_features_in_ : int
        Number of different counts of a sequence, `n_symbols_ * (1 + n_symbols_)`.
    startprob_concentration_, transmat_concentration_ : ndarray
        The belief about them: Dirichlet parameters, of the same shapes.
    weight_concentration_ : ndarray of shape (n_components,)
        The belief about the weights: Dirichlet parameters.
    merge_report_, converged_, n_iter_, lower_bound_, lower_bounds_
        As in `MultinomialMixture`.
    n_samples_seen_ : int
        Sequences learned from.

    Notes
    -----
    Sequences come as a list, as a matrix with one in each row, or one after the other with their `lengths`, as in hmmlearn.
    Each is complete: the next call starts another. Lengths are not modelled.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import MarkovMixture
    >>> model = MarkovMixture(2, random_state=0, warm_up=20)
    >>> back_and_forth, stay = [0, 1] * 5, [0] * 5 + [1] * 5
    >>> model = model.partial_fit([back_and_forth, stay] * 50)
    >>> model.transmat_[model.predict([stay])[0]].round(1).tolist()
    [[0.8, 0.2], [0.0, 1.0]]
    """

    _traits = replace(
        SequenceMixture._traits,
        shape_parameters=("n_components", "n_symbols"),
        prior_parameters=("weight_concentration_prior", "startprob_prior", "transmat_prior"),
        merge_parameters=("n_components", "half_life", "weight_concentration_prior", "startprob_prior", "transmat_prior"),
        given_start=("weights_init", "startprob_init", "transmat_init"),
        unit="sequences",
        answers=("weights_", "startprob_", "transmat_"),
    )
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **SequenceMixture._parameter_constraints,
        "startprob_init": ["array-like", None],
        "transmat_init": ["array-like", None],
        "n_symbols": [None, Interval(numbers.Integral, 1, 46340, closed="both")],
        "startprob_prior": [None, Interval(numbers.Real, 0.0, None, closed="neither")],
        "transmat_prior": [None, Interval(numbers.Real, 0.0, None, closed="neither")],
    }

    @property
    def _describer(self) -> MarkovMixtureDescriber:
        return MarkovMixtureDescriber(self)

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        n_symbols: int | None = None,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "auto",
        weights_init: Values = None,
        startprob_init: Values = None,
        transmat_init: Values = None,
        start_weight: float | None = None,
        random_state: RandomState = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        algorithm: str | Algorithm = "auto",
        half_life: float | Literal["auto"] | None = None,
        warm_up: int | Literal["auto"] = "auto",
        weight_concentration_prior: float | None = None,
        startprob_prior: float | None = None,
        transmat_prior: float | None = None,
        n_threads: int | None = None,
        parts: int = 1,
        reservoir: int | Literal["auto"] = "auto",
    ) -> None:
        self.n_components = n_components
        self.n_symbols = n_symbols
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.startprob_init = startprob_init
        self.transmat_init = transmat_init
        self.start_weight = start_weight
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.weight_concentration_prior = weight_concentration_prior
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.n_threads = n_threads
        self.parts = parts
        self.reservoir = reservoir

    @reads
    def sample(self, n_samples: int = 1, length: Values = None) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
        """Draw sequences from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of sequences.
        length : int or array-like of shape (n_samples,), optional
            Length of each. Default: the mean of the sequences learned from.

        Returns
        -------
        X : list of ndarray
            The sequences, sorted by component.
        y : ndarray of shape (n_samples,)
            The component of each sequence.
        """
        n_samples = self._checked_number(n_samples)
        lengths = self._checked_lengths(n_samples, length)
        rng = rng_of(self)
        components = np.repeat(np.arange(self.n_components_), rng.multinomial(n_samples, self.weights_ / self.weights_.sum()))
        start, steps = np.cumsum(self.startprob_, axis=1), np.cumsum(self.transmat_, axis=2)
        symbols = np.zeros((n_samples, int(lengths.max(initial=0))), dtype=np.int64)
        for place in range(symbols.shape[1]):  # all sequences at once, a symbol at a time
            rows = start[components] if place == 0 else steps[components, symbols[:, place - 1]]
            draws = rng.uniform(size=n_samples) * rows[:, -1]
            symbols[:, place] = np.minimum((rows < draws[:, None]).sum(axis=1), self.n_symbols_ - 1)
        return [row[:size] for row, size in zip(symbols, lengths, strict=True)], components

    # What was learned

    @property
    @reads
    def n_symbols_(self) -> int:
        """Number of symbols."""
        return _symbols_of(self.n_features_in_)

    @property
    @reads
    def startprob_(self) -> Array:
        """Probability of each first symbol in each component."""
        return self._probabilities[:, : self.n_symbols_]

    @property
    @reads
    def transmat_(self) -> Array:
        """Probability of each step in each component."""
        size = self.n_symbols_
        return self._probabilities[:, size:].reshape(-1, size, size)

    @property
    @reads
    def startprob_concentration_(self) -> Array:
        """Dirichlet parameters (posterior) of each first symbol in each component."""
        return self._probability_concentration[:, : self.n_symbols_]

    @property
    @reads
    def transmat_concentration_(self) -> Array:
        """Dirichlet parameters (posterior) of each step in each component."""
        size = self.n_symbols_
        return self._probability_concentration[:, size:].reshape(-1, size, size)

    # The machinery

    def _described(self, width: int) -> Learner:
        self._check_parameters()
        size = _symbols_of(width)
        if size * (size + 1) != width or self.n_symbols not in (None, size):
            raise ValueError(f"width must be that of first symbols and steps of {self.n_symbols or size} symbols, got {width}")
        prior = None
        if self.startprob_prior is not None or self.transmat_prior is not None:
            start, steps = (np.nan if one is None else float(one) for one in (self.startprob_prior, self.transmat_prior))
            prior = np.repeat([start, steps], [size, size * size])
        groups = np.repeat(np.arange(size + 1, dtype=np.int32), size)
        family = Multinomial(self.n_components, prior, groups)
        given = given_chains(family, size, self.weights_init, self.startprob_init, self.transmat_init)
        polish = given is None or not given.locates
        return self._counts_learner(family, width, given, polish, "startprob_prior and transmat_prior")

    def _counted(self, X: Rows, lengths: Values, y: Values = None, anew: bool = False) -> SparseRows:
        """Return the counts of sequences, unless they are counts already."""
        if not anew:
            check_same_symbols(X, self)
        if isinstance(X, Chunk) and X.lengths is not None and lengths is None:
            lengths, X = X.lengths, X.X
        X = values_of(X)
        if isinstance(X, SparseRows):
            return X
        if y is not None and lengths is None:
            raise ValueError("y is not used: if these are the lengths of the sequences, pass lengths=; if labels, labels=")
        symbols, sizes = check_sequences(X, lengths)
        known = self.n_symbols
        if not anew and self._has_state():
            known = self.n_symbols_
        largest = int(symbols.max(initial=0))
        if known is None:
            known = largest + 1
            if known > MOST_UNASKED:
                raise ValueError(
                    f"X has the symbol {largest}, and all pairs of symbols are counted: if there are so many, say so by "
                    f"n_symbols, or else number them from 0"
                )
        elif largest >= known:
            raise ValueError(
                f"X has the symbol {largest}, but {type(self).__name__} is expecting symbols from 0 to {known - 1}; if more "
                f"are to come than the first sequences have, say so by n_symbols"
            )
        return transition_counts(symbols, sizes, int(known))

    def _check_merge(self, other: Self) -> None:
        super()._check_merge(other)
        check_merged_symbols(self, other)


def _symbols_of(width: int) -> int:
    """Number of symbols of which there are this many first symbols and steps."""
    return round((np.sqrt(4.0 * width + 1.0) - 1.0) / 2.0)
