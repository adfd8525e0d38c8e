"""What every hidden Markov model has, with the names of hmmlearn; nothing specific to one family."""

from __future__ import annotations

import logging
import numbers
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithms import AutoOnlineEM, BayesianOnlineEM, OnlineEM, OnlineVB, SatoEM, resolve
from headwater.core.contracts import StartSettings
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.validation import check_finite, numeric, one_line
from headwater.diagnostics.component_description import SYMBOL_LIMIT, column_names, heaviest_components, matrix_of
from headwater.diagnostics.description import DescribedComponents, DescribedStates
from headwater.diagnostics.health import ComponentChecks, Evidence
from headwater.diagnostics.health_counts import ChainChecks
from headwater.diagnostics.health_gaps import gap_findings
from headwater.estimators.calls import learns, reads
from headwater.estimators.chain_monitor import ChainMonitor
from headwater.estimators.chain_streams import ChainStreams
from headwater.estimators.chains import GivenChain, Hold, check_numbers, check_probabilities
from headwater.estimators.component_count import GIVEN
from headwater.estimators.describers.chains import ChainDescriber
from headwater.estimators.mixture import CONSTRAINTS
from headwater.estimators.parameters import check_parameters
from headwater.estimators.start_parameters import check_start_weight
from headwater.families.capabilities import SweepsChains
from headwater.models.chain_records import ChainParameters, ChainPrior, ChainStatistics
from headwater.models.hidden_markov import HiddenMarkov
from headwater.policies.choose import oddity_policies

if TYPE_CHECKING:
    from headwater.families.family import AnyFamily

SHARED = ("n_components", "random_state", "verbose", "half_life", "warm_up", "n_threads", "tol", "algorithm", "start_weight")


class HiddenMarkovEstimator(ChainStreams):
    """Base of the hidden Markov models: K states with a component of a family that the subclass names."""

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **{name: CONSTRAINTS[name] for name in SHARED},
        "half_life": CONSTRAINTS["half_life"][:2],  # it keeps no rows by which it could find one itself
        "n_iter": CONSTRAINTS["max_iter"],
        "startprob_prior": [None, "array-like", Interval(numbers.Real, 0.0, None, closed="neither")],
        "transmat_prior": [None, "array-like", Interval(numbers.Real, 0.0, None, closed="neither")],
        "decoder": [StrOptions({"viterbi", "map"})],
        "params": [str],
        "init_params": [str],
        "lag": [Interval(numbers.Integral, 1, None, closed="left")],
        "implementation": [StrOptions({"log", "scaling"})],
    }
    _traits = replace(
        ChainStreams._traits,
        shape_parameters=("n_components", "params"),
        prior_parameters=("startprob_prior", "transmat_prior"),
        merge_parameters=(
            "n_components",
            "half_life",
            "lag",
            "params",
            "startprob_prior",
            "transmat_prior",
        ),
        warns=False,
    )
    _letters: ClassVar[str] = "st"

    warm_start = False
    verbose_interval = 1

    _given: dict[str, Array]

    # What a subclass says

    @property
    @abstractmethod
    def _describer(self) -> ChainDescriber:
        """What says what was learned."""

    @abstractmethod
    def _family(self, width: int) -> AnyFamily:
        """The family of the parameters."""

    @abstractmethod
    def _emissions_given(self, letters: str, width: int) -> dict[str, Array]:
        """What the user gave of the emissions, among these letters, or a refusal if it does not fit."""

    @property
    @reads
    def max_iter(self) -> int:
        """Passes that a `fit` makes at most."""
        return int(self.n_iter)

    def _patience(self, rows: int) -> tuple[int, float]:
        return self.max_iter, self.tol / rows

    def _check_parameters(self) -> None:
        if isinstance(self.algorithm, str) and self.algorithm in ("viterbi", "map"):
            raise ValueError(
                f"algorithm says how the model learns, such as 'auto' or 'em': to decode by {self.algorithm!r}, set "
                f"decoder={self.algorithm!r}"
            )
        check_parameters(self)
        for name in ("params", "init_params"):
            letters = getattr(self, name)
            if set(letters) - set(self._letters):
                raise ValueError(f"{name} must be made of the letters {self._letters!r}, got {letters!r}")
        k = 1 if self.n_components == "auto" else self.n_components  # numbers alone fit whatever number is found
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

    def _described(self, width: int) -> Learner:
        self._check_parameters()
        family, k = self._family(width), self.n_components
        hold = Hold(family, self.params) if set(self.params) < set(self._letters) else None
        model = HiddenMarkov(k, family, self.startprob_prior, self.transmat_prior, int(self.lag), hold)
        algorithm = resolve(
            self.algorithm, model, type(self).__name__,
            {
                "auto": AutoOnlineEM(), "soem": SatoEM(batch_size="auto"),
                "online-em": OnlineEM(batch_size=1 if isinstance(family, SweepsChains) else "auto", average_exponent=1.0),
                "boem": BayesianOnlineEM(batch_size="auto"), "online-vb": OnlineVB(batch_size="auto"),
            },
        )  # fmt: skip
        settings = self._start_settings(family, width)
        warm_up = None if self.warm_up == "auto" else int(self.warm_up)
        beside = oddity_policies()
        learner = Learner(model, algorithm, width, settings, self.half_life, warm_up, self.n_threads, policies=beside)
        if hold is not None and algorithm.online and learner.plan.sweeps:
            raise ValueError(
                f"params must name all of {self._letters!r} for an algorithm that learns row by row, got {self.params!r}: "
                f"give it a batch_size"
            )
        if algorithm.readout == "mode" and self._start_readout() != "mode":
            names = " and ".join(self._concentrations)
            raise ValueError(f"{names} must be at least 1 for algorithm {algorithm.word!r}, whose probabilities are a mode")
        if hold is not None and algorithm.readout == "expect_log":
            raise ValueError(
                f"params must name all of {self._letters!r} for algorithm {algorithm.word!r}, whose bound is of them all, got "
                f"{self.params!r}"
            )
        return learner

    def _start_readout(self) -> str:
        """Priors of less than one have no mode."""
        priors = [getattr(self, name) for name in self._concentrations]
        return "mode" if all(prior is None or np.min(prior) >= 1.0 for prior in priors) else "mean"

    def _start_settings(self, family: object, width: int) -> StartSettings:
        """How to start: from what was set by hand, of what `init_params` leaves out, and from what is found beside it.

        Given components are fixed while the rest is searched for. A given chain is free meanwhile, since components that only
        fit a rough guess of it are a poor local optimum, and is restored at the end. If the components are given, the chain
        follows from them, and there is nothing to search for.
        """
        given, letters = self._given_chain(family, width)
        weight = check_start_weight(getattr(self, "start_weight", None), given.locates)
        polish = self.max_iter > 0 and any(letter not in letters for letter in self._emission_names)
        settings = StartSettings(self._seeds, polish=polish, readout=self._start_readout())
        if not letters:
            return settings
        searched = "".join(letter for letter in self.params if letter in "st" or letter not in letters)
        states = given.states if given.locates else None
        order = given.order if states is None and ("s" in letters or "t" in letters) else None
        hold = Hold(family, searched)
        return replace(settings, given=given, weight=weight, hold=hold, states=states, order=order, whole=given.confines)

    def _given_chain(self, family: object, width: int) -> tuple[GivenChain, str]:
        """What was set by hand, of what `init_params` leaves out, and the letters of it."""
        given, k = self.__dict__.get("_given", {}), self.n_components
        letters = "".join(letter for letter, name in self._names.items() if letter not in self.init_params and name in given)
        start = check_numbers(given["startprob_"], (k,), "startprob_") if "s" in letters else None
        transitions = check_numbers(given["transmat_"], (k, k), "transmat_") if "t" in letters else None
        return GivenChain(family, start, transitions, self._emissions_given(letters, width)), letters

    @property
    def _names(self) -> dict[str, str]:
        """What the letters stand for."""
        return {"s": "startprob_", "t": "transmat_", **self._emission_names}

    _emission_names: ClassVar[dict[str, str]] = {}
    _seeds: ClassVar[str] = "kmeans"  # how the states of a start are found
    _concentrations: ClassVar[tuple[str, ...]] = ("startprob_prior", "transmat_prior")

    # What was learned

    @property
    @reads
    def startprob_(self) -> Array:
        """Probability of each state to be the first (n_components,). May be set before learning (see `init_params`)."""
        return self._parameters_seen("startprob_").start / self._parameters_seen("startprob_").start.sum()

    @startprob_.setter
    @learns
    def startprob_(self, value: object) -> None:
        self._give("startprob_", check_probabilities(value, (self._given_number(),), "startprob_"))

    @property
    @reads
    def transmat_(self) -> Array:
        """Probability of each transition (n_components, n_components). May be set before learning (see `init_params`)."""
        transitions = self._parameters_seen("transmat_").transitions
        return transitions / transitions.sum(axis=1, keepdims=True)

    @transmat_.setter
    @learns
    def transmat_(self, value: object) -> None:
        self._give("transmat_", check_probabilities(value, (self._given_number(), self._given_number()), "transmat_"))

    @property
    @reads
    def monitor_(self) -> ChainMonitor:
        """How the last fit went."""
        if "lower_bounds_" not in self.__dict__:
            raise NotFittedError(
                f"this {type(self).__name__} has no result of a fit: it was learned from a stream, or not at all"
            )
        rows = self.n_samples_seen_
        return ChainMonitor(tuple(bound * rows for bound in self.lower_bounds_), bool(self.converged_))

    @property
    def _model(self) -> HiddenMarkov:
        if not self._has_state():
            self._parameters_seen()  # or a sentence, if there are none
        learner = self._learner if self._has_state() else self._make_learner(self._width_with(self._given_width()))
        model = learner.model
        assert isinstance(model, HiddenMarkov)
        return model

    def _belief(self) -> tuple[ChainPrior, ChainStatistics, float]:
        return self._read().belief

    def _n_parameters(self) -> int:
        return self._model.n_parameters(self._learner.width if self._has_state() else self._width_with(self._given_width()))

    def _impossible(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which states no sequence begins in (K,), and which transitions do not exist (K, K)."""
        prior, k = self._runtime.prior, self.n_components_
        if prior is not None:
            return prior.start == 0.0, prior.steps == 0.0
        given = self._runtime.learner.settings.given
        chain = given if isinstance(given, GivenChain) else GivenChain(None)
        start = np.ones(k) if chain.start is None else chain.start
        return start == 0.0, (np.ones((k, k)) if chain.transitions is None else chain.transitions) == 0.0

    def _check_merge(self, other: Self) -> None:
        if self.n_components_ == other.n_components_ and not all(map(np.array_equal, self._impossible(), other._impossible())):
            raise ValueError("models must allow the same first states and transitions, got some that are 0 in only one model")
        params = set(self._runtime.made_with.get("params", self.params))
        if params != set(other._runtime.made_with.get("params", other.params)):
            return  # refused later, with all parameters that must agree
        for letter, name in self._names.items():
            if letter in params:
                continue
            held = getattr(self, name), getattr(other, name)
            # Values are kept relative to an origin of each model, so that they agree up to rounding.
            if held[0].shape != held[1].shape or not np.allclose(*held, rtol=1e-9, atol=1e-12):
                raise ValueError(f"models must have the same values of what params leaves out, got different ones of {name}")

    # Parameters that are set by hand

    def _given_number(self) -> int:
        """Number of components of what is set by hand."""
        if not isinstance(self.n_components, numbers.Integral):
            raise ValueError(
                f"n_components must be a number where parameters are set by hand, got {one_line(self.n_components)}"
            )
        return int(self.n_components)

    @abstractmethod
    def _given_emissions(self) -> object:
        """Parameters of the family, as they were set by hand."""

    def _give(self, name: str, value: Array) -> None:
        if self._has_state():
            raise AttributeError(
                f"{name} was learned and cannot be set: make a new model, set it there, and leave its letter out of init_params"
            )
        given = {**self.__dict__.get("_given", {}), name: value}
        self._given = given

    def _start_values(self) -> dict[str, Array]:
        """What learning anew begins with, of what `init_params` leaves out: what was learned, or else set by hand."""
        if self._choice != GIVEN:
            return {}
        names = [name for letter, name in self._names.items() if letter not in self.init_params]
        if self._has_state():
            return self._learned_values(names)
        given = self.__dict__.get("_given", {})
        return {name: given[name] for name in names if name in given}

    @abstractmethod
    def _learned_values(self, names: list[str]) -> dict[str, Array]:
        """Some of what was learned, in the shapes in which it is kept when it is set by hand."""

    def _anew(self) -> Self:
        """A model that has learned nothing, which begins where this one would if it learned anew."""
        other = type(self)(**self._given_parameters())
        other._give_all(self._start_values())
        return other

    def _give_all(self, values: dict[str, Array]) -> None:
        """Let these be what is set by hand, and nothing else."""
        self.__dict__.pop("_given", None)
        if values:
            self._given = values

    def _keep_start(self) -> None:
        self._give_all(self._start_values())

    def _tell_overwritten(self) -> None:
        """Warn, as hmmlearn does, of parameters that were set by hand and are not where learning starts."""
        given = {} if self._has_state() else self.__dict__.get("_given", {})
        for letter, name in self._names.items():
            if name in given and letter in self.init_params:
                logging.getLogger("headwater").warning(
                    "Even though the %r attribute is set, it will be overwritten during initialization because 'init_params' "
                    "contains %r",
                    name,
                    letter,
                )

    def _parameters_seen(self, name: str | None = None) -> ChainParameters:
        """Parameters that were learned, or set by hand; one alone may be read as soon as it is set."""
        if self._has_state():
            return self._read().parameters
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

    # How it looks

    def _chain_parts(self, found: DescribedComponents) -> DescribedStates:
        """Add what the chain does to the description of its states: how long they last, and the transitions."""
        often, transitions = self.get_stationary_distribution(), self.transmat_
        durations = self.expected_durations_

        def lasting(k: int) -> str:
            length = float(durations[k])
            return f"lasts {length:,.1f} rows on average" if length < 1e6 else "is never left"

        components = tuple(replace(one, remark=lasting(one.index)) for one in found["components"])
        shown = np.sort(heaviest_components(often, SYMBOL_LIMIT))
        names = [f"state {k}" for k in range(len(often))]
        matrices = (matrix_of("Transitions between states", names, transitions, often, shown),) if len(often) > 1 else ()
        return {**found, "component": "state", "weight": "how often", "components": components, "matrices": matrices}

    def _chain_evidence(self, emissions: Callable[[Array], ComponentChecks], size: float) -> Evidence:
        """Evidence of the states; `emissions` returns the checks of what they emit, of so many numbers each."""
        _, statistics, count = self._belief()
        rows = self._pool_states(np.maximum(count * statistics.emissions.count, 0.0))
        gaps = tuple(gap_findings(statistics.emissions, count, column_names(self, self.n_features_in_), "state"))
        k = float(len(rows))

        def checks() -> ChainChecks:
            return ChainChecks(emissions(rows), self.transmat_, rows)

        return Evidence(rows, "state", checks=checks, work=k * k * (size + 100.0 * k), known=gaps)
