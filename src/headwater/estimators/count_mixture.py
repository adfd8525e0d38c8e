"""What the mixtures over counts share: the family, the check of the prior, the log-posterior."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from sklearn.utils._param_validation import StrOptions

from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.values import Rows, Values
from headwater.estimators.calls import answers_by_score
from headwater.estimators.describers.counts import CountDescriber
from headwater.estimators.mixture import CONSTRAINTS, MixtureEstimator
from headwater.families.multinomial import Multinomial
from headwater.models.seeding import INIT_PARAMS

if TYPE_CHECKING:
    from headwater.core.contracts import Given


class CountMixture(MixtureEstimator):
    """Base of the mixtures over counts, which share a family."""

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **CONSTRAINTS,
        "init_params": [StrOptions({"auto", "farthest-first", *INIT_PARAMS})],
    }

    @property
    @abstractmethod
    def _describer(self) -> CountDescriber:
        """What says what was learned."""

    def _counts_learner(self, family: Multinomial, width: int, given: Given | None, polish: bool, names: str) -> Learner:
        learner = self._learner_of(family, width, type(self).__name__, given, polish)
        least = np.inf if family.concentration_prior is None else float(np.nanmin(family.concentration_prior))
        if least <= 0.0:
            raise ValueError(f"{names} must be positive, got {least:g}")
        if least < 1.0 and learner.algorithm.readout == "mode":
            raise ValueError(
                f"{names} must be at least 1 for algorithm {learner.algorithm.word!r}, whose probabilities are a mode, "
                f"got {least:g}"
            )
        return learner

    @answers_by_score
    def log_posterior(self, X: Rows) -> float:
        """Return the log-density of the current parameters and the rows: what MAP-EM maximises.

        The sum of `score_samples`, and the log-density of the prior at the parameters. A prior below 1, which has no mode,
        counts as 1, and without one its default is a part of a count more than 1.

        Parameters
        ----------
        X : array-like or sparse matrix
            The rows.

        Returns
        -------
        log_posterior : float
            Up to the evidence of the rows, which does not depend on the parameters.
        """
        scores = self.score_samples(X)
        reading = self._read()
        prior, components, parameters = reading.prior, reading.prior.components, reading.parameters
        alpha = np.maximum(prior.concentration, 1.0)
        weights = gammaln(alpha.sum()) - gammaln(alpha).sum() + ((alpha - 1.0) * parameters.log_weights).sum()
        excess = np.broadcast_to(components.beta - components.shift, (components.width, self.n_components_))
        sums = components.totals - components.shift_totals
        sizes = np.bincount(self._family.groups) if self._family.groups.size else np.array([components.width])
        constants = gammaln(sums + sizes[:, None]).sum() - gammaln(excess + 1.0).sum()
        words = self._family.log_prior(components, parameters.components)
        return float(scores.sum() + weights + constants + words)

    @property
    def _family(self) -> Multinomial:
        family = self._model.family
        assert isinstance(family, Multinomial)
        return family

    @property
    def _probabilities(self) -> Array:
        """Probabilities (K, V) of all columns."""
        return self._family.probabilities(self._read().parameters.components)

    @property
    def _probability_concentration(self) -> Array:
        """Dirichlet parameters (K, V) of the belief about all columns."""
        prior, statistics, count = self._proper_belief()
        return np.ascontiguousarray((prior.components.beta + count * np.asarray(statistics.table)).T)

    def _mean_length(self) -> float:
        """Counts of a row on average."""
        _, statistics, _ = self._proper_belief()
        return float(statistics.length.sum() / statistics.count.sum())

    def _checked_lengths(self, n_samples: int, length: Values) -> NDArray[np.int64]:
        """Lengths of rows to draw, one for each."""
        lengths = np.asarray(max(1, round(self._mean_length())) if length is None else length)
        if lengths.dtype.kind not in "iu" or lengths.shape not in ((), (n_samples,)) or lengths.min() < 0:
            raise ValueError(f"length must be a whole number, or one for each of the {n_samples} rows, got {length!r}")
        return np.broadcast_to(lengths, (n_samples,)).astype(np.int64)
