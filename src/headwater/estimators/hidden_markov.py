"""What every hidden Markov model answers, in hmmlearn's words; nothing of any one family."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from headwater.algorithms import AutoOnlineEM, BayesianOnlineEM, OnlineEM, OnlineVB, SatoEM, resolve
from headwater.estimators.chain_answers import ChainAnswers
from headwater.estimators.chains import (
    Chunk,
    GivenChain,
    Hold,
    check_key,
    check_keys,
    check_lengths,
    check_probabilities,
    check_shape,
)
from headwater.estimators.display import html_table, text_table
from headwater.estimators.mixture import CONSTRAINTS
from headwater.learner import Learner, belief, branch, closed, milestone_parameters, report
from headwater.models.chain_records import ChainParameters
from headwater.models.hidden_markov import HiddenMarkov
from headwater.models.protocol import StartSettings
from headwater.state import Batch, joined
from headwater.statistics import Array
from headwater.validation import check_finite, check_width, numeric

NOBODY = -(2**62)  # the number of a sequence that is not there
SHARED = ("n_components", "random_state", "verbose", "half_life", "warm_up", "n_threads", "tol", "algorithm")


@dataclass(frozen=True)
class Monitor:
    """How a fit went, in hmmlearn's words: the log-likelihood of all rows after each pass, and whether it settled."""

    history: tuple[float, ...]
    converged: bool

    @property
    def iter(self) -> int:
        """Number of passes."""
        return len(self.history)


class HiddenMarkovEstimator(ChainAnswers):
    """Base of the hidden Markov models: K states with a component of a family that the subclass names."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: CONSTRAINTS[name] for name in SHARED},
        "n_iter": CONSTRAINTS["max_iter"],
        "startprob_prior": [None, "array-like", Interval(numbers.Real, 0.0, None, closed="neither")],
        "transmat_prior": [None, "array-like", Interval(numbers.Real, 0.0, None, closed="neither")],
        "decoder": [StrOptions({"viterbi", "map"})],
        "params": [str],
        "init_params": [str],
        "lag": [Interval(numbers.Integral, 1, None, closed="left")],
    }
    _shape_parameters: ClassVar[tuple[str, ...]] = ("n_components",)
    _merge_parameters: ClassVar[tuple[str, ...]] = ("n_components", "half_life", "lag")
    _letters: ClassVar[str] = "st"
    _row_dimensions: ClassVar[int] = 1
    _warns = False

    warm_start = False
    verbose_interval = 1

    _open: dict[Any, int]
    _given: dict[str, Array]

    # What a subclass says

    @abstractmethod
    def _family(self, width: int) -> Any:
        """The family of the parameters."""

    @abstractmethod
    def _checked(self, X: Any, anew: bool = False) -> Any:
        """Return the rows of a chunk, or refuse them in one sentence; `anew`, of a model that forgets what it learned."""

    def _width_of(self, rows: Array) -> int:
        """Width of a model that begins with these rows."""
        return int(rows.shape[1])

    @abstractmethod
    def _emissions_given(self, letters: str, width: int) -> dict[str, Array]:
        """What the user gave of the emissions, among these letters, or a refusal if it does not fit."""

    @abstractmethod
    def _columns(self, states: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """What the table shows of these states: a word for it, the heads of the columns, and a line for each."""

    @property
    def max_iter(self) -> int:
        """Passes that a `fit` makes at most."""
        return int(self.n_iter)

    def _patience(self, batch: Batch) -> tuple[int, float]:
        return self.max_iter, self.tol / len(batch)

    def _check_parameters(self) -> None:
        parameters = {name: getattr(self, name) for name in self._parameter_names()}
        if isinstance(self.algorithm, str) and self.algorithm in ("viterbi", "map"):
            raise ValueError(
                f"algorithm says how the model learns, such as 'auto' or 'em': to decode by {self.algorithm!r}, say "
                f"decoder={self.algorithm!r}"
            )
        validate_parameter_constraints(self._parameter_constraints, parameters, type(self).__name__)
        for name in ("params", "init_params"):
            unknown = set(parameters[name]) - set(self._letters)
            if unknown:
                raise ValueError(f"{name} must be made of the letters {self._letters!r}, got {parameters[name]!r}")
        k = self.n_components
        for name, shape in (("startprob_prior", (k,)), ("transmat_prior", (k, k))):
            self._check_concentration(name, shape)

    def _check_concentration(self, name: str, shape: tuple[int, ...]) -> None:
        value = getattr(self, name)
        if value is None:
            return
        array = np.asarray(numeric(value, name), dtype=float)
        check_finite(array.reshape(-1, 1), name)
        try:
            np.broadcast_to(array, shape)
        except ValueError:
            raise ValueError(f"{name} must be a number or have shape {shape}, got {array.shape}") from None
        if array.min() <= 0.0:
            raise ValueError(f"{name} must be positive, got {array.min():g}")

    def _make_learner(self, width: int) -> Learner:
        self._check_parameters()
        family, k = self._family(width), self.n_components
        hold = Hold(family, self.params) if set(self.params) < set(self._letters) else None
        model = HiddenMarkov(k, family, self.startprob_prior, self.transmat_prior, int(self.lag), hold)
        algorithm = resolve(
            self.algorithm, model, type(self).__name__,
            {
                "auto": AutoOnlineEM(), "online-em": OnlineEM(batch_size=1), "soem": SatoEM(batch_size="auto"),
                "boem": BayesianOnlineEM(batch_size="auto"), "online-vb": OnlineVB(batch_size="auto"),
            },
        )  # fmt: skip
        given = self._given_chain(family, width)
        settings = StartSettings(
            "kmeans", polish=self.max_iter > 0 and self._needs_start(given), readout=self._start_readout(), given=given
        )
        warm_up = None if self.warm_up == "auto" else int(self.warm_up)
        learner = Learner(model, algorithm, width, settings, self.half_life, warm_up, self.n_threads)
        if hold is not None and algorithm.online and learner.sweeps:
            raise ValueError(
                f"params must name all of {self._letters!r} for an algorithm that learns step by step, got {self.params!r}: "
                f"give it a batch_size"
            )
        if algorithm.readout == "mode" and self._start_readout() != "mode":
            raise ValueError(f"priors must be at least 1 for algorithm {algorithm.word!r}, whose probabilities are a mode")
        return learner

    def _start_readout(self) -> str:
        """Priors of less than one have no mode."""
        priors = [getattr(self, name) for name in self._concentrations]
        return "mode" if all(prior is None or np.min(prior) >= 1.0 for prior in priors) else "mean"

    def _given_chain(self, family: Any, width: int) -> GivenChain | None:
        """What the user set beforehand, of what `init_params` leaves to them."""
        letters = "".join(letter for letter in self._letters if letter not in self.init_params)
        if not letters:
            return None
        given = self.__dict__.get("_given", {})
        names = {"s": "startprob_", "t": "transmat_", **self._emission_names}
        for letter in letters:
            if names[letter] not in given and not self._has_state():
                raise ValueError(f"init_params leaves out {letter!r}, so {names[letter]} must be set before learning")
        k = self.n_components
        start = transitions = None
        if "s" in letters and "startprob_" in given:
            start = check_shape(given["startprob_"], (k,), "startprob_")
        if "t" in letters and "transmat_" in given:
            transitions = check_shape(given["transmat_"], (k, k), "transmat_")
        return GivenChain(family, start, transitions, self._emissions_given(letters, width))

    _emission_names: ClassVar[dict[str, str]] = {}
    _concentrations: ClassVar[tuple[str, ...]] = ("startprob_prior", "transmat_prior")

    def _needs_start(self, given: GivenChain | None) -> bool:
        """Whether there is something left to search for: what the chain does follows from what its states are."""
        return any(letter in self.init_params for letter in self._emission_names)

    # Learning

    def fit(self, X: Any, lengths: Any = None) -> Self:  # type: ignore[override]
        """Learn from all sequences at hand, forgetting what was learned before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of all sequences, one after the other. A row of NaN is missing.
        lengths : array-like of shape (n_sequences,), optional
            Length of each sequence; by default all rows are one.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        chunk = self._numbered(X, lengths, reset=True)
        if not np.any(chunk.sequences[1:] == chunk.sequences[:-1]):
            raise ValueError(
                f"{type(self).__name__} needs a sequence of at least two rows: how states follow one another cannot be seen in "
                f"sequences of one"
            )
        return self._fit(chunk, None)

    def partial_fit(self, X: Any, lengths: Any = None, *, key: Any = None) -> Self:  # type: ignore[override]
        """Learn a chunk of a stream, of any size; the answer does not depend on how the stream was cut.

        Without `lengths` the rows go on where the last call ended. A sequence ends when it is closed (`close`), or when the
        model is merged.

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
            The estimator, a chunk wiser.
        """
        self._learn_rows(X, lengths, key, False)
        return self

    def update(self, X: Any, lengths: Any = None, *, key: Any = None) -> Array:
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

    def _learn_rows(self, X: Any, lengths: Any, key: Any, scored: bool) -> Array:
        first = not self._has_state()
        chunk = self._numbered(X, lengths, reset=first, key=key, streaming=True)
        scores = self._learn_chunk(chunk, scored=scored)
        self._open = chunk.opened
        return scores

    def warm_start_from(self, X: Any, lengths: Any = None, *, weight: float = 1.0) -> Self:
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
        return self._plant(self._numbered(X, lengths, reset=True), None, weight)

    def branch(self) -> Self:
        """Return a copy that others can be merged with: it has learned the same, and its sequences are closed.

        Returns
        -------
        model : estimator
            The branch; the model itself is left as it is.
        """
        self._fitted_state()
        branched = copy(self)
        branched.__dict__.pop("_open", None)
        branched._set(branch(self._learner, self._state), self._learner)
        return branched

    def close(self, key: Any = None) -> Self:
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
            raise ValueError(f"there is no open sequence with the key {key!r}, but {list(opened)}")
        self._set(closed(self._state, opened.pop(key)), self._learner)
        self._cache.carry = None
        self._open = opened
        return self

    @property
    def open_sequences_(self) -> list[Any]:
        """Keys of the sequences that are open; None is the one without a name."""
        self._fitted_state()
        return list(self.__dict__.get("_open", {}))

    def learn_one(self, x: Any, key: Any = None) -> Self:
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
            The estimator, a row wiser.
        """
        named = isinstance(x, Mapping) and not self._has_state()
        self.partial_fit(self._one(x, learning=True), key=key)
        if named:
            self.feature_names_in_ = np.asarray(list(x), dtype=object)
        return self

    def score_one(self, x: Any, key: Any = None) -> float:
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

    def filter(self, X: Any, *, key: Any = None) -> Array:
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
        single = isinstance(X, Mapping) or np.ndim(X) == self._row_dimensions
        rows = self._one(X) if single else self._aligned(self._checked(X))
        states = np.empty((len(rows), self.n_components))
        self._went_on(rows, key, np.empty(0), states)
        return states[0] if single else states

    def next_state_proba(self, key: Any = None) -> Array:
        """Return the probability of each state at the next row of a sequence.

        Parameters
        ----------
        key : str or int, optional
            The sequence; if it is not open, the next row is its first.

        Returns
        -------
        states : ndarray of shape (n_components,)
            Probabilities, which sum to one.
        """
        parameters, carry = self._position()
        number = self.__dict__.get("_open", {}).get(check_key(key))
        known = None if number is None else carry.filters.get(number)
        return parameters.start.copy() if known is None else known @ parameters.transitions

    def _went_on(self, rows: Array, key: Any, scores: Array, states: Array) -> None:
        """Filter rows that follow those of an open sequence."""
        parameters, carry = self._position()
        number = self.__dict__.get("_open", {}).get(check_key(key), NOBODY)
        batch = Batch(rows, sequences=np.full(len(rows), number))
        self._model.follow(parameters, batch, carry, scores, states, 1)

    def _position(self) -> tuple[ChainParameters, Any]:
        """Parameters of the last refresh, and what is known of open sequences under them."""
        if not self._has_state():
            return self._parameters_seen(), None
        state, cache = self._state, self._cache
        parameters = self._quick_parameters(self.n_features_in_)
        rows = [*state.waiting]
        if state.base is None:
            assert state.buffer is not None
            rows = [state.buffer.batch()]
        number = sum(map(len, rows))
        if cache.carry is None or cache.carry[0] is not parameters:
            cache.carry = (parameters, 0, state.carry)
        _, followed, carry = cache.carry
        if followed < number:
            carry = self._model.follow(parameters, joined(rows)[followed:], carry)
            cache.carry = (parameters, number, carry)
        return parameters, carry

    def _set(self, state: Any, learner: Learner) -> None:
        known = self.__dict__["_cache"].carry if "_cache" in self.__dict__ else None
        super()._set(state, learner)
        if state.base is not None:
            self._cache.carry = known  # which goes on if nothing but more rows waits

    def _quick_parameters(self, width: int) -> Any:
        state, learner = self._state, self._learner
        if state.base is None:
            return milestone_parameters(learner, state)
        cache = self._cache
        if cache.quick is None or cache.quick[0] is not state.statistics:
            cache.quick = (state.statistics, report(learner, replace(state, waiting=(), carry=None)))
        return cache.quick[1]

    # What was learned

    @property
    def startprob_(self) -> Array:
        """Probability of each state to be the first (n_components,). May be set before learning (see `init_params`)."""
        return self._parameters_seen("startprob_").start / self._parameters_seen("startprob_").start.sum()

    @startprob_.setter
    def startprob_(self, value: Any) -> None:
        self._give("startprob_", check_probabilities(value, (self.n_components,), "startprob_"))

    @property
    def transmat_(self) -> Array:
        """Probability of each passage (n_components, n_components). May be set before learning (see `init_params`)."""
        transitions = self._parameters_seen("transmat_").transitions
        return transitions / transitions.sum(axis=1, keepdims=True)

    @transmat_.setter
    def transmat_(self, value: Any) -> None:
        self._give("transmat_", check_probabilities(value, (self.n_components, self.n_components), "transmat_"))

    @property
    def monitor_(self) -> Monitor:
        """How the last fit went."""
        if "lower_bounds_" not in self.__dict__:
            raise NotFittedError(
                f"this {type(self).__name__} has no fit to tell of: it was learned from a stream, or not at all"
            )
        rows = self.n_samples_seen_
        return Monitor(tuple(bound * rows for bound in self.lower_bounds_), bool(self.converged_))

    @property
    def _model(self) -> HiddenMarkov:
        learner = self._learner if self._has_state() else self._make_learner(self._given_width())
        model = learner.model
        assert isinstance(model, HiddenMarkov)
        return model

    def _belief(self) -> tuple[Any, Any, float]:
        return belief(self._learner, self._reading()[0])

    def _n_parameters(self) -> int:
        return self._model.n_parameters(self.n_features_in_ if self._has_state() else self._given_width())

    # Parameters that are set by hand

    @abstractmethod
    def _given_width(self) -> int:
        """Number of columns of what was set by hand."""

    @abstractmethod
    def _given_emissions(self) -> Any:
        """Parameters of the family, as they were set by hand."""

    def _give(self, name: str, value: Array) -> None:
        if self._has_state():
            raise AttributeError(
                f"{name} was learned and cannot be set: make a new model, set it there, and leave its letter out of init_params"
            )
        given = {**self.__dict__.get("_given", {}), name: value}
        self._given = given

    def _parameters_seen(self, name: str | None = None) -> ChainParameters:
        """Parameters that were learned, or set by hand; one alone may be read as soon as it is set."""
        if self._has_state():
            return self._reading()[1]
        given = self.__dict__.get("_given", {})
        wanted = {"startprob_", "transmat_", *self._emission_names.values()} if name is None else {name}
        if not wanted <= set(given):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call 'fit' or 'partial_fit', or set "
                f"{', '.join(sorted(wanted - set(given)))}"
            )
        emissions = self._given_emissions() if name is None else None
        return ChainParameters(given.get("startprob_"), given.get("transmat_"), emissions)

    def __sklearn_is_fitted__(self) -> bool:
        wanted = {"startprob_", "transmat_", *self._emission_names.values()}
        return self._has_state() or wanted <= set(self.__dict__.get("_given", {}))

    # The machinery

    def _numbered(self, X: Any, lengths: Any, reset: bool, key: Any = None, streaming: bool = False) -> Chunk:
        """Check rows and say which sequence each belongs to: numbers come from the place of the first row in the stream."""
        rows = self._checked(X, reset)
        if not reset:
            rows = self._aligned(rows)
        seen = self._state.rows if streaming and self._has_state() else 0
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
        sequences = [opened.setdefault(name, seen + at) for at, name in enumerate(check_keys(key, len(rows)))]
        return Chunk(rows, np.array(sequences), X, opened)

    def _take(
        self, X: Any, sample_weight: Any, labels: Any, reset: bool, going_on: bool | None = None
    ) -> tuple[Batch, Learner]:
        width = self._width_of(X.rows) if reset else self.n_features_in_
        learner = self._learner_for(width, not reset if going_on is None else going_on)
        return Batch(X.rows, sequences=X.sequences), learner

    def _note_columns(self, X: Any, reset: bool) -> None:
        super()._note_columns(X.given if isinstance(X, Chunk) else X, reset)

    def _aligned(self, rows: Any) -> Any:
        check_width(rows, self.n_features_in_ if self._has_state() else self._given_width(), type(self).__name__)
        return rows

    def _sequences_of(self, X: Any, lengths: Any) -> Batch:
        self._parameters_seen()
        chunk = self._numbered(X, lengths, reset=False)
        if self._has_state():
            self._note_columns(chunk, reset=False)
        return Batch(chunk.rows, sequences=chunk.sequences)

    # How it looks

    def _summary(self) -> tuple[str, list[str], list[list[str]]]:
        often = self.get_stationary_distribution()
        order = np.argsort(-often, kind="stable")
        word, columns, lines = self._columns(order[:8])
        stays = np.diag(self.transmat_)
        table = [
            [str(k), f"{often[k]:.3f}", f"{stays[k]:.3f}", *line] for k, line in zip(order[:8], lines, strict=True)
        ]  # fmt: skip
        if len(order) > 8:
            table.append(["...", f"{often[order[8:]].sum():.3f}", "", *[""] * len(columns)])
        warming = " (warming up)" if self._state.base is None else ""
        rows = f"{self.n_samples_seen_:,} row{'s' if self.n_samples_seen_ != 1 else ''}"
        return (
            f"{rows} seen{warming}; states by how often they are, with their {word}:",
            ["state", "often", "stays", *columns],
            table,
        )

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)
        return f"{text}\n{text_table(*self._summary())}" if self._has_state() else text

    def _repr_html_inner(self) -> str:
        html = super()._repr_html_inner()
        return html + html_table(*self._summary()) if self._has_state() else html
