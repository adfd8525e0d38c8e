"""What a model of a table has learned of its columns: parameters by the names of the columns, and moments of components."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.estimators.calls import reads
from headwater.estimators.column_kinds import CATEGORICAL, GAUSSIAN, POISSON
from headwater.estimators.rounded_columns import prior_steps
from headwater.estimators.skewed_columns import column_values, skewed_indicators
from headwater.estimators.table_input import TableInput
from headwater.estimators.table_mixture import category_indicators, indicators
from headwater.families.bernoulli import BernoulliParameters
from headwater.families.category_tables import CategoryParameters
from headwater.families.family import AnyFamily
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import column_variances
from headwater.families.poisson import PoissonParameters
from headwater.families.product import Block, Product, ProductPrior


class MixedAttributes(TableInput):
    """Base of the models whose components are products over the columns of a table: their attributes. Abstract."""

    @property
    @abstractmethod
    def _column_family(self) -> AnyFamily:
        """The product of the blocks of columns."""

    @property
    @abstractmethod
    def _column_parameters(self) -> Any:
        """The parameters of the blocks."""

    @property
    @abstractmethod
    def _column_prior(self) -> ProductPrior:
        """The priors of the blocks."""

    # What was learned

    @property
    @reads
    def columns_(self) -> dict[str, str]:
        """What each column is."""
        self._fitted()
        return dict(zip(self._column_names, self._schema.kinds, strict=True))

    @property
    @reads
    def means_(self) -> Array:
        """Means of the numbers in each component."""
        found = self._block(GAUSSIAN)
        return np.empty((self.n_components_, 0)) if found is None else found[0].means(found[1])

    @property
    @reads
    def covariances_(self) -> Array:
        """Covariances of the numbers in each component."""
        found = self._block(GAUSSIAN)
        return np.empty((self.n_components_, 0, 0)) if found is None else found[0].covariances(found[1])

    @property
    @reads
    def resolution_(self) -> dict[str, float]:
        """Step of each of the numbers, 0 where there is none."""
        steps, names = self._steps(), self._names_of(GAUSSIAN)
        return dict.fromkeys(names, 0.0) if steps is None else dict(zip(names, steps.tolist(), strict=True))

    @property
    @reads
    def rates_(self) -> dict[str, Array]:
        """Rate of each column of counts in each component."""
        found = self._block(POISSON)
        return {} if found is None else dict(zip(self._names_of(POISSON), found[1].rates.T, strict=True))

    @property
    @reads
    def column_parameters_(self) -> dict[str, dict[str, Array]]:
        """Parameters of each skewed column in each component: `log_mean` and `log_deviation`, or `shape` and `rate`."""
        found: dict[str, dict[str, Array]] = {}
        for block, parameters in self._blocks():
            found.update(column_values(parameters, self._names_of(block.name)))
        return found

    @property
    @reads
    def probabilities_(self) -> dict[str, Array]:
        """Probability of yes, or of each category, in each component."""
        found: dict[str, Array] = {}
        for block, parameters in self._blocks():
            names = self._names_of(block.name)
            if isinstance(parameters, BernoulliParameters):
                found.update(zip(names, np.exp(parameters.log_ones).T, strict=True))
            if isinstance(parameters, CategoryParameters):
                shares = np.exp(parameters.logs)
                sizes = enumerate(self._schema.codebook.sizes)
                found.update(zip(names, (shares[:, at, :size] for at, size in sizes), strict=True))
        return found

    @property
    @reads
    def categories_(self) -> dict[str, NDArray[np.generic]]:
        """Categories of each categorical column."""
        self._fitted()
        levels = (one.as_array() for one in self._schema.codebook.levels)
        return dict(zip(self._names_of(CATEGORICAL), levels, strict=True))

    def _indicators(self) -> list[tuple[str, Array, Array]]:
        found = []
        for block, parameters in self._blocks():
            names = self._names_of(block.name)
            if isinstance(block.family, Gaussian):
                means, variances = block.family.means(parameters), column_variances(block.family, parameters)
                found += list(zip(names, means.T, variances.T, strict=True))
            elif isinstance(parameters, PoissonParameters):
                found += [(name, rates, rates) for name, rates in zip(names, parameters.rates.T, strict=True)]
            elif isinstance(parameters, BernoulliParameters):
                found += indicators(names, list(np.exp(parameters.log_ones).T))
            elif isinstance(parameters, CategoryParameters):
                found += category_indicators(names, self._schema.codebook, parameters)
            else:
                found += skewed_indicators(parameters, names)
        return found

    def _steps(self) -> Array | None:
        """The steps of the numbers in their own units; None if there are no numbers, or none were asked for."""
        blocks = zip(cast(Product, self._column_family).blocks, self._column_prior.blocks, strict=True)
        return prior_steps(next((one for block, one in blocks if block.name == GAUSSIAN), None))

    def _blocks(self) -> list[tuple[Block, Any]]:
        family = cast(Product, self._column_family)
        return list(zip(family.blocks, self._column_parameters.blocks, strict=True))

    def _block(self, kind: str) -> tuple[Any, Any] | None:
        """The family and the parameters of the columns of a kind, if there are any."""
        return next(((block.family, parameters) for block, parameters in self._blocks() if block.name == kind), None)

    def _names_of(self, kind: str) -> list[str]:
        return [name for name, one in zip(self._column_names, self._schema.kinds, strict=True) if one == kind]
