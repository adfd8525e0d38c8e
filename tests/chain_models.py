"""Hidden Markov models and rows for the tests of them, and models that take rows as the laws give them."""

import numpy as np

import headwater as hw
from headwater.core.validation import check_weights


def a_stream(rows, seed=0, n_states=2, width=2, apart=3.0, stay=0.9):
    """Return rows of a chain with long stays, and the states."""
    rng = np.random.default_rng(seed)
    states = np.cumsum(np.where(rng.random(rows) < stay, 0, rng.integers(1, max(n_states, 2), size=rows))) % n_states
    return rng.normal(size=(rows, width)) + apart * states[:, None], states


def gapped_stream(rows, seed=0):
    """Return rows of a chain. A fifth of the values is missing; some rows have no value at all."""
    X, _ = a_stream(rows, seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.2] = np.nan
    return X


def count_stream(rows, seed=0, gaps=False):
    """Return counts of a chain with long stays; with gaps a fifth is missing, and some rows have no count at all."""
    rng = np.random.default_rng(seed)
    states = np.cumsum(rng.random(rows) > 0.9) % 2
    X = rng.poisson(np.array([[1.0, 6.0], [5.0, 2.0]])[states]).astype(float)
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X


def table_stream(rows, seed=0):
    """Return rows of a chain with long stays: a number, a count, a flag and a category; a tenth of the values is missing."""
    rng = np.random.default_rng(seed)
    states = np.cumsum(rng.random(rows) > 0.9) % 2
    columns = [
        rng.normal(4.0 * states, 1.0),
        rng.poisson(1.0 + 4.0 * states),
        rng.random(rows) < 0.2 + 0.6 * states,
        np.where(rng.random(rows) < 0.8, states, 2),
    ]
    X = np.column_stack(columns).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def symbol_stream(rows, seed=0, n_symbols=4, stay=0.9):
    """Return symbols of a chain of two states, which have only the middle symbols in common."""
    rng = np.random.default_rng(seed)
    states = np.cumsum(rng.random(rows) > stay) % 2
    tables = np.array([[0.6, 0.3, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6]])[:, :n_symbols]
    running = np.cumsum(tables / tables.sum(axis=1, keepdims=True), axis=1)
    return (rng.random(rows)[:, None] > running[states]).sum(axis=1)[:, None].astype(float), states


class RowsIn:
    """Checks weights and ignores them, since chains have none, and scores row by row: all rows are one sequence."""

    monitor_ = None  # which exists only after a fit

    def fit(self, X, sample_weight=None):
        check_weights(sample_weight, len(np.atleast_2d(np.asarray(X, dtype=object))))
        return super().fit(X)

    def partial_fit(self, X, sample_weight=None, **options):
        check_weights(sample_weight, len(np.atleast_2d(np.asarray(X, dtype=object))))
        return super().partial_fit(X, **options)

    def score_samples(self, X):
        return self.score_steps(X)


class RowsInGaussianHMM(RowsIn, hw.GaussianHMM):
    """GaussianHMM on rows."""


class GapFedGaussianHMM(RowsInGaussianHMM):
    """GaussianHMM, with rows that have gaps; some have no value at all."""


class RowsInCategoricalHMM(RowsIn, hw.CategoricalHMM):
    """CategoricalHMM on rows."""


class RowsInPoissonHMM(RowsIn, hw.PoissonHMM):
    """PoissonHMM on rows of counts."""


class GapFedPoissonHMM(RowsInPoissonHMM):
    """PoissonHMM, with counts that are missing; some rows have none at all."""


class RowsInBernoulliHMM(RowsIn, hw.BernoulliHMM):
    """BernoulliHMM on rows of yes and no."""


class RowsInGMMHMM(RowsIn, hw.GMMHMM):
    """GMMHMM on rows."""


class RowsInSemiMarkov(RowsIn, hw.SemiMarkov):
    """SemiMarkov on rows."""


class RowsInMixedHMM(RowsIn, hw.MixedHMM):
    """MixedHMM on rows of a number, a count, a flag and a category."""


class RowsInRegressionHMM(hw.RegressionHMM):
    """RegressionHMM on rows."""

    monitor_ = None

    def fit(self, X, y, sample_weight=None):
        check_weights(sample_weight, len(X))
        return super().fit(X, y)

    def partial_fit(self, X, y, sample_weight=None, **options):
        check_weights(sample_weight, len(np.atleast_2d(np.asarray(X, dtype=object))))
        return super().partial_fit(X, y, **options)

    def score_samples(self, X, y):
        return self.score_steps(X, y)

    def predict(self, X):
        """Laws ask a regressor about inputs alone."""
        return super().predict(X, np.zeros(len(X)))


class RowsInAutoregressiveHMM(RowsIn, hw.AutoregressiveHMM):
    """AutoregressiveHMM on rows."""


class WithStart:
    """Keeps parameters that were set by hand when it is cloned: the laws clone models."""

    def __sklearn_clone__(self):
        other = type(self)(**self.get_params(deep=False))
        other._given = dict(self._given)
        return other


class StartedGaussianHMM(WithStart, RowsInGaussianHMM):
    """GaussianHMM, from a given start."""


class StartedCategoricalHMM(WithStart, RowsInCategoricalHMM):
    """CategoricalHMM, from a given start."""


class StartedPoissonHMM(WithStart, RowsInPoissonHMM):
    """PoissonHMM, from a given start."""


class StartedBernoulliHMM(WithStart, RowsInBernoulliHMM):
    """BernoulliHMM, from a given start."""


def started(model):
    """Set by hand what `init_params` leaves out, with zeros among the first states and transitions."""
    k = model.n_components
    near = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) < (2 if k > 2 else 1)
    near[0, -1] |= k == 2
    model.startprob_ = np.append(np.full(k - 1, 1.0 / (k - 1)), 0.0)
    model.transmat_ = near / near.sum(axis=1, keepdims=True)
    if "e" not in model.init_params and "e" in model._letters:
        model.emissionprob_ = (
            np.linspace(1.0, 2.0, 6 * k).reshape(k, 6) / np.linspace(1.0, 2.0, 6 * k).reshape(k, 6).sum(axis=1)[:, None]
        )
    if "m" not in model.init_params and "m" in model._letters:
        model.means_ = np.outer(np.arange(k), [1.5, 1.0])
        model.covars_ = np.tile(3.0 * np.eye(2), (k, 1, 1))
    if "l" not in model.init_params and "l" in model._letters:
        model.lambdas_ = 1.0 + np.outer(np.arange(k), [3.0, 1.0])
    return model
