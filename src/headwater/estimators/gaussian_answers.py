"""What a mixture of Gaussians says of its components: means, covariances, and the belief about them."""

from __future__ import annotations

from typing import Literal

import numpy as np

from headwater.core.statistics import Array
from headwater.core.values import Rows, Values
from headwater.diagnostics.component_description import column_names
from headwater.diagnostics.intervals import CredibleIntervals, credible_intervals
from headwater.diagnostics.observed_information import MOST_PARAMETERS, Widening
from headwater.estimators.background_answers import BackgroundAnswers
from headwater.estimators.calls import reads
from headwater.estimators.column_mixture import check_level
from headwater.estimators.informed_rows import find_widening
from headwater.estimators.measured_rows import MeasuredRows
from headwater.estimators.rounded_columns import cell_volumes, known_prior, prior_steps
from headwater.families.factor_gaussian import FactorGaussian
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GaussianBelief
from headwater.families.gaussian_scores import gaussian_scores, n_scored
from headwater.families.parameter_scores import ParameterScores


class GaussianAnswers(BackgroundAnswers, MeasuredRows):
    """What was learned of Gaussian components, in the words and shapes of scikit-learn."""

    covariance_type: str

    def score_samples(self, X: Rows, *, noise: Values = None, cells: bool = False) -> Array:
        """Return the log-density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        noise : array-like of shape (n_samples, n_features) or (n_samples, n_features, n_features), optional
            Variances of the measurement errors of the values, or covariances of those of each row: the density is that of
            what is measured with such errors.
        cells : bool, default=False
            Whether the logarithms of the steps of rounded columns are added (see `resolution_`): to the first order that is
            the log-probability of the cell that a row was rounded to, so it does not depend on units.

        Returns
        -------
        log_prob : ndarray of shape (n_samples,)
            Log-density of each row under the current parameters.
        """
        scores = super().score_samples(X, noise=noise)
        return scores + self._in_precision(X, self._cell_volumes(X)) if cells else scores

    def _cell_volumes(self, X: Rows) -> Array:
        return cell_volumes(prior_steps(known_prior(self)), self._rows(X).X)

    @property
    @reads
    def resolution_(self) -> Array:
        """Step of each column, 0 where there is none.

        Examples
        --------
        >>> import numpy as np
        >>> from headwater import GaussianMixture
        >>> rows = np.random.default_rng(0).normal(size=(1000, 3)) * [30.0, 2.0, 1.0]
        >>> rows[:, 0], rows[:, 1] = rows[:, 0].round(), rows[:, 1].round(2)
        >>> GaussianMixture(resolution="auto").fit(rows).resolution_
        array([1.  , 0.01, 0.  ])
        """
        steps = prior_steps(known_prior(self))
        return np.zeros(self.n_features_in_) if steps is None else steps.copy()

    @reads
    def credible_intervals(
        self,
        level: float = 0.9,
        *,
        method: Literal["observed-information", "mean-field"] = "observed-information",
        X: Rows | None = None,
    ) -> CredibleIntervals:
        """Return central credible intervals of weights, means and variances, one by one.

        They do not consider other ways to label or split the components. The mean-field belief counts a row that half belongs
        to a component as half a row that certainly does, so where components overlap it is too narrow; the observed
        information says by how much (Louis, 1982).

        Parameters
        ----------
        level : float, default=0.9
            Probability of each interval.
        method : {"observed-information", "mean-field"}, default="observed-information"
            How wide intervals are: as the observed information has it, but no narrower than the approximate posterior; or as
            wide as that. With more than 1,000 parameters correlations are taken as known, and then components one by one.
        X : array-like of shape (n_samples, n_features), optional
            Rows like those that were learned, by which the information is computed. Default: reservoir rows, where there are
            some without gaps, else rows that are drawn from the model.

        Returns
        -------
        intervals : CredibleIntervals
            `weights` (K, 2), `means` and `variances` (K, d, 2); printed, they are a table.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.normal(size=(5000, 1)) + 2.5 * rng.integers(2, size=(5000, 1))
        >>> model = hw.GaussianMixture(2, random_state=0).partial_fit(rows)
        >>> for method in ("mean-field", "observed-information"):
        ...     print(model.credible_intervals(method=method).means[0, 0].round(2))
        [-0.11 -0.04]
        [-0.2   0.05]
        """
        level, belief, family = check_level(level), self._component_belief(), self._family
        assert isinstance(family, Gaussian)
        wider = self._widening(family, method, X)
        columns = column_names(self, self.n_features_in_)
        return credible_intervals(family, self._weight_marginals(), belief, level, columns, wider)

    def _widening(self, family: Gaussian, method: str, X: Rows | None) -> Widening | None:
        k, width = self.n_components_, self.n_features_in_
        kind, prior = family.covariance_type, self._component_part(self._proper_belief()[0].components)
        correlations = k * (n_scored(kind, width) + 1) <= MOST_PARAMETERS
        parameters = self._component_part(self._read().parameters.components)
        means, covariances = family.means(parameters), family.covariances(parameters)

        def scores(rows: Array) -> ParameterScores:
            return gaussian_scores(kind, means, covariances, prior.mean_precision, prior.dof, rows, correlations)

        return find_widening(self, method, X, k * (n_scored(kind, width, correlations) + 1), scores)

    @property
    @reads
    def means_(self) -> Array:
        """Mean of each component."""
        return self._in_learned_type(self._family.means(self._component_part(self._read().parameters.components)))

    @property
    @reads
    def covariances_(self) -> Array:
        """Covariance of each component, in the shape of `covariance_type`."""
        return self._in_learned_type(self._family.covariances(self._component_part(self._read().parameters.components)))

    @property
    @reads
    def precisions_cholesky_(self) -> Array:
        """Upper triangular factors of the precisions."""
        return self._in_learned_type(self._factors())

    @property
    @reads
    def precisions_(self) -> Array:
        """Inverse covariances."""
        factor = self._factors()
        matrices = self.covariance_type in ("full", "tied", "factor")
        return self._in_learned_type(factor @ np.swapaxes(factor, -1, -2) if matrices else factor**2)

    def _factors(self) -> Array:
        return self._family.precisions_cholesky(self._component_part(self._read().parameters.components))

    @property
    @reads
    def mean_precision_(self) -> Array:
        """Rows behind the posterior of each mean."""
        return self._component_belief().mean_precision

    @property
    @reads
    def degrees_of_freedom_(self) -> Array:
        """Degrees of freedom of the belief about each precision."""
        return self._component_belief().dof

    @property
    def _family(self) -> Gaussian | FactorGaussian:
        family = self._component_family
        assert isinstance(family, Gaussian | FactorGaussian)
        return family

    def _component_belief(self) -> GaussianBelief:
        family = self._family
        if isinstance(family, FactorGaussian):
            raise AttributeError("covariance_type='factor' keeps only the mode of means and precisions, not their posterior")
        prior, statistics, count = self._proper_belief()
        return family.belief(self._component_part(prior.components), self._component_part(statistics).scaled(count))
