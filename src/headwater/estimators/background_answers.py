"""What a mixture with a background answers: which rows belong to no component, and how many do.

A mixture has these if this class is among its bases and `background` among its parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.core.values import Matrix, Row, Rows
from headwater.estimators.calls import answers_by_chunk, reads
from headwater.estimators.mixture_answers import MixtureAnswers
from headwater.estimators.seeds import rng_of
from headwater.families.background import Background
from headwater.families.family import AnyFamily, Family

BACKGROUND = -1  # the component of a row that belongs to none, as scikit-learn's DBSCAN has it


class BackgroundAnswers(MixtureAnswers):
    """Answers of mixtures whose rows need not belong to a component."""

    background: bool | float

    @property
    @reads
    def background_weight_(self) -> float:
        """Weight of the background, with `background`: with `weights_` it sums to one."""
        if self._background is None:
            raise AttributeError(f"background_weight_ is there with background=True or a share, got {self.background!r}")
        return float(np.exp(self._read().parameters.components.log_background))

    @answers_by_chunk
    def background_proba(self, X: Rows) -> Array:
        """Return the probability that each row belongs to no component: what `predict_proba` leaves of one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples,)
            0 without a background.
        """
        if self._background is None:
            return np.zeros(len(self._rows(X)))
        return np.clip(1.0 - self._posterior(X).sum(axis=1), 0.0, 1.0)

    @answers_by_chunk
    def predict(self, X: Rows) -> NDArray[np.int64]:
        """Return the most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        components : ndarray of shape (n_samples,)
            Indices of components; -1 for rows that most probably belong to the background, if there is one.
        """
        if self._background is None:
            return super().predict(X)
        return _most_probable(self._posterior(X))

    def _posterior(self, X: Rows) -> Array:
        return self._model.posterior(self._read().parameters, self._rows(X), self._threads)

    @reads
    def predict_one(self, x: Row) -> int:
        """Return the most probable component of one row under the parameters of the last refresh.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The row.

        Returns
        -------
        component : int
            Its index; -1 for the background, if there is one.
        """
        shares = self._one_posterior(x)
        return int(shares[0].argmax() if self._background is None else _most_probable(shares)[0])

    @reads
    def sample(self, n_samples: int = 1) -> tuple[Matrix, NDArray[np.int64]]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows, sorted by component.
        y : ndarray of shape (n_samples,)
            The component of each row; -1 for the background, if there is one.
        """
        family = self._background
        if family is None:
            return super().sample(n_samples)
        number, parameters, rng = self._checked_number(n_samples), self._read().parameters, rng_of(self)
        outside = int(rng.binomial(number, self.background_weight_))
        rows, components = self._model.sample(parameters, number - outside, rng)
        odd = family.sample_background(parameters.components, outside, rng)
        return np.vstack([odd, rows]), np.append(np.full(outside, BACKGROUND), components)

    @property
    def _background(self) -> Background | None:
        family = self._model.family
        return family if isinstance(family, Background) else None

    def _with_background(self, family: Family) -> Family:
        """The family of the components, before a background if the user wants one."""
        if not self.background:
            return family
        learned = isinstance(self.background, bool | np.bool_)
        return Background(family, None if learned else float(self.background))

    @property
    def _component_family(self) -> AnyFamily:
        """The family of the components alone."""
        family = self._model.family
        return family.components if isinstance(family, Background) else family

    def _component_part(self, record: Any) -> Any:
        """What a prior, statistics or parameters of the family say of the components alone."""
        return record if self._background is None else record.components


def _most_probable(shares: Array) -> NDArray[np.int64]:
    found = shares.argmax(axis=1)
    return np.where(1.0 - shares.sum(axis=1) > shares[np.arange(len(shares)), found], BACKGROUND, found)
