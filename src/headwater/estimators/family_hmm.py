"""FamilyHMM: the hidden Markov model over a family, as far as it is the same for every family."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from headwater.core.algorithm import Algorithm
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.validation import check_row
from headwater.core.values import Matrix, RandomState, Row, Values
from headwater.diagnostics.component_description import column_names
from headwater.estimators.chains import check_chain_rows, check_numbers
from headwater.estimators.describers.family_chains import FamilyChainDescriber
from headwater.estimators.hidden_markov import HiddenMarkovEstimator
from headwater.estimators.traits import Taken
from headwater.families.capabilities import TakesParameters

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from headwater.families.family import AnyFamily


class FamilyHMM(HiddenMarkovEstimator):
    """Base of the hidden Markov models over rows of numbers: a subclass says which family, and names what was learned."""

    _traits = replace(
        HiddenMarkovEstimator._traits,
        shape_parameters=("n_components", "params"),
        takes_gaps=True,
    )

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        startprob_prior: Values = None,
        transmat_prior: Values = None,
        decoder: str = "viterbi",
        random_state: RandomState = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "st",
        init_params: str = "st",
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | str = "auto",
        start_weight: float | None = None,
        lag: int = 50,
        n_threads: int | None = None,
        implementation: str = "log",
    ) -> None:
        self.n_components = n_components
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.decoder = decoder
        self.random_state = random_state
        self.n_iter = n_iter
        self.tol = tol
        self.verbose = verbose
        self.params = params
        self.init_params = init_params
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.start_weight = start_weight
        self.lag = lag
        self.n_threads = n_threads
        self.implementation = implementation

    # What a subclass says

    @abstractmethod
    def _family(self, width: int) -> AnyFamily:
        """The family of the parameters."""

    @abstractmethod
    def _moments(self) -> tuple[Array, Array]:
        """Mean and variance (K, d) of the rows of each state."""

    def _moment_names(self) -> list[str]:
        """Return the names of what `_moments` has: by default the columns."""
        return column_names(self, self.n_features_in_)

    @abstractmethod
    def _family_names(self) -> Mapping[str, str]:
        """What the family calls the parameters that can be set by hand, by the names of the attributes."""

    @abstractmethod
    def _given_shape(self, name: str, width: int) -> tuple[int, ...]:
        """Shape of a parameter that is set by hand."""

    # What follows

    @property
    def _describer(self) -> FamilyChainDescriber:
        return FamilyChainDescriber(self)

    @property
    def _emissions(self) -> Any:
        """Parameters of the emissions."""
        return self._parameters_seen().emissions

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _refuse_rows(self, rows: Array) -> Array:
        """Refuse rows that the family does not know, or return them."""
        return rows

    def _checked(self, X: Taken, anew: bool = False) -> Array:
        return self._refuse_rows(check_chain_rows(X, type(self).__name__))

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Array:
        row = check_row(x, names, width, gaps=True)
        return self._refuse_rows(row.values if isinstance(row, GappedRows) else np.asarray(row))

    def _check_stored(self, X: Matrix, width: int) -> None:
        if not isinstance(X, np.ndarray):
            raise ValueError(f"{type(self).__name__} takes rows of numbers")
        self._checked(X)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        learned = [letter for letter in self._emission_names if letter in self.params]
        if learned and len(learned) < len(self._emission_names):
            raise ValueError(
                f"params must name all of {''.join(self._emission_names)!r}, which are learned together, or none of them, got "
                f"{self.params!r}"
            )

    # Parameters that are set by hand

    def _emissions_given(self, letters: str, width: int) -> dict[str, Array]:
        given, called = self.__dict__.get("_given", {}), self._family_names()
        wanted = {name: called[name] for letter, name in self._emission_names.items() if letter in letters and name in given}
        if wanted and set(wanted) < set(called):
            missing = ", ".join(sorted(set(called) - set(wanted)))
            raise ValueError(
                f"{' and '.join(sorted(wanted))} must be given with all parameters of the states, got none for {missing}"
            )
        return {word: check_numbers(given[name], self._given_shape(name, width), name) for name, word in wanted.items()}

    def _learned_values(self, names: list[str]) -> dict[str, Array]:
        return {name: getattr(self, name) for name in names}

    def _given_emissions(self) -> object:
        width, family = self._given_width(), self._family(self._given_width())
        assert isinstance(family, TakesParameters)
        return family.with_parameters(self._emissions_given("".join(self._emission_names), width), None)
