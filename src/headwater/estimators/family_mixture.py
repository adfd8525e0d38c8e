"""FamilyMixture: the estimator of a family, as far as it is the same for every family.

docs/contributing/new-family.md makes one. A subclass says which family it is of and names what was learned; parameters,
learning, answers, tables, descriptions, health and model files come from here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from headwater.core.algorithm import Algorithm
from headwater.core.gapped_rows import GappedRows
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.validation import check_row, check_rows
from headwater.core.values import Matrix, RandomState, Row
from headwater.diagnostics.component_description import column_names
from headwater.estimators.describers.family_mixture import MOMENT_ROWS, FamilyMixtureDescriber
from headwater.estimators.mixture import CONSTRAINTS, MixtureEstimator
from headwater.estimators.traits import Taken
from headwater.families.family import Family
from headwater.models.mixture import Mixture
from headwater.models.seeding import INIT_PARAMS

if TYPE_CHECKING:
    from sklearn.utils import Tags


def _has_predictive(model: FamilyMixture) -> bool:
    if model._has_state():  # a column that a parameter names is known
        return "predictive" in cast(Mixture, model._learner.model).family.readouts
    return "predictive" in model._family_of(1).readouts


class FamilyMixture(MixtureEstimator):
    """Base of the mixtures that have no parameters but those of every mixture. See `GaussianMixture` for what they mean."""

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {**CONSTRAINTS, "init_params": [StrOptions(set(INIT_PARAMS))]}
    _traits = replace(
        MixtureEstimator._traits,
        merge_parameters=("n_components", "half_life", "weight_concentration_prior"),
        given_start=(),
    )

    # Whether rows must not be negative.
    _positive_only: ClassVar[bool] = False

    @property
    def _describer(self) -> FamilyMixtureDescriber:
        return FamilyMixtureDescriber(self)

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        random_state: RandomState = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        algorithm: str | Algorithm = "auto",
        half_life: float | Literal["auto"] | None = None,
        warm_up: int | Literal["auto"] = "auto",
        weight_concentration_prior: float | None = None,
        n_threads: int | None = None,
        parts: int = 1,
        reservoir: int | Literal["auto"] = "auto",
    ) -> None:
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.weight_concentration_prior = weight_concentration_prior
        self.n_threads = n_threads
        self.parts = parts
        self.reservoir = reservoir

    # What a subclass says

    @abstractmethod
    def _family_of(self, width: int) -> Family:
        """Return the family of `self.n_components` components, for rows of this width."""

    def _moments(self) -> tuple[Array, Array]:
        """Return mean and variance (K, d) of the components, for tables and descriptions; by default of rows that are drawn."""
        parameters, k = self._components, self.n_components_
        rng = np.random.default_rng(0)
        draws = [self._component_family.sample(parameters, np.full(MOMENT_ROWS, one), rng) for one in range(k)]
        return np.array([rows.mean(axis=0) for rows in draws]), np.array([rows.var(axis=0) for rows in draws])

    def _moment_names(self) -> list[str]:
        """Return the names of what `_moments` has: by default the columns."""
        return column_names(self, self.n_features_in_)

    # What follows

    predictive_score_samples = available_if(_has_predictive)(MixtureEstimator.predictive_score_samples)

    @property
    def _components(self) -> Any:
        """Parameters of the components, as the user sees them: what the family's readout made."""
        return self._component_part(self._read().parameters.components)

    def _described(self, width: int) -> Learner:
        self._check_parameters()
        return self._learner_of(self._family_of(width), width, type(self).__name__, None, polish=True)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self._positive_only
        tags.input_tags.allow_nan = self._takes_gaps
        return tags

    def _checked(self, X: Taken) -> Matrix:
        return self._refuse_negative(check_rows(X, owner=type(self).__name__, gaps=self._takes_gaps))

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Matrix:
        return self._refuse_negative(check_row(x, names, width, self._takes_gaps))

    def _refuse_negative(self, rows: Matrix) -> Matrix:
        if self._positive_only:
            least = float((rows.filled(0.0) if isinstance(rows, GappedRows) else rows).min())
            if least < 0.0:
                raise ValueError(f"Negative values in data passed to {type(self).__name__}: X holds {least:g}")
        return rows
