"""The rows of the law table, and the models in it that differ from public ones only in the rows that they are given."""

from functools import cache

import chain_models
import numpy as np

import headwater as hw
from headwater.core.batch import SparseRows, drop_zeros
from headwater.core.count_validation import check_counts
from headwater.core.gapped_rows import GappedRows
from headwater.core.noisy_rows import NoisyRows


class GapFed(hw.GaussianMixture):
    """GaussianMixture on rows with gaps."""


class RoundFed(hw.GaussianMixture):
    """GaussianMixture on rounded rows."""


class NoiseFed(hw.GaussianMixture):
    """GaussianMixture on rows with measurement errors, whose variances hang on the values: so copies of a row have the same."""

    def _checked(self, X):
        rows = super()._checked(X)
        values = rows.values if isinstance(rows, GappedRows) else np.asarray(rows, dtype=float)
        return NoisyRows.of_errors(rows, 0.5 * np.mod(7.0 * values, 1.0))

    @property
    def predictive_score_samples(self):
        raise AttributeError("a Student-t and an error add to no known law")


class GapNoiseFed(NoiseFed):
    """The same, with gaps."""


class SparseFed(hw.MultinomialMixture):
    """MultinomialMixture on sparse rows."""

    def _checked(self, X):
        rows = check_counts(X)
        return rows if isinstance(rows, SparseRows) else drop_zeros(rows)


class GapFedStudent(hw.StudentMixture):
    """StudentMixture on rows with gaps."""


class SkewedFed(hw.MixedMixture):
    """The mixture, whose rows in the table are skewed."""


class GapFedRegression(hw.RegressionMixture):
    """RegressionMixture on inputs with gaps."""

    @property
    def predictive_score_samples(self):
        raise AttributeError("the predictive density has no closed form where inputs are missing")


@cache
def rows():
    """Rows of three groups, far from zero."""
    rng = np.random.default_rng(7)
    return rng.normal(size=(400, 2)) * [1.0, 3.0] + 4.0 * rng.integers(3, size=(400, 1)) + 100.0


@cache
def gapped():
    """Return rows of three groups with a quarter of the values missing; every row has a value."""
    rng = np.random.default_rng(12)
    found = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3)) + 4.0 * rng.integers(3, size=(400, 1)) + 100.0
    missing = rng.random(found.shape) < 0.25
    missing[np.arange(400), rng.integers(3, size=400)] = False
    return np.where(missing, np.nan, found)


@cache
def rounded():
    """Return rows of three groups in integers, halves, and unrounded numbers; the groups are hardly wider than the steps."""
    rng = np.random.default_rng(21)
    found = rng.normal(size=(400, 3)) * [0.3, 0.5, 1.0] + 4.0 * rng.integers(3, size=(400, 1)) + 100.0
    return np.column_stack([found[:, 0].round(), (2.0 * found[:, 1]).round() / 2.0, found[:, 2]])


@cache
def counts():
    """Return rows of counts of three kinds, short and long, and a row without counts."""
    rng = np.random.default_rng(8)
    kinds = rng.dirichlet(np.full(6, 0.5), size=3)
    rows = rng.multinomial(rng.integers(0, 40, size=400), kinds[rng.integers(3, size=400)]).astype(float)
    rows[17] = 0.0
    return rows


@cache
def sequences():
    """Return sequences of two kinds, as a matrix: with a change at every step, or hardly any."""
    rng = np.random.default_rng(9)
    change = rng.random((400, 8)) < rng.choice([0.15, 0.85], size=(400, 1))
    return (rng.integers(3, size=(400, 1)) + np.cumsum(change, axis=1)) % 3


@cache
def events():
    """Return counts of two kinds; the second column is never zero, so that it can be an exposure."""
    rng = np.random.default_rng(12)
    kinds = rng.integers(2, size=400)
    rows = rng.poisson(np.array([[1.0, 3.0, 6.0], [5.0, 2.0, 1.0]])[kinds]).astype(float)
    rows[:, 1] += 1.0
    return rows


@cache
def answers():
    """Return flags, of two kinds of rows."""
    rng = np.random.default_rng(13)
    return (rng.random((400, 4)) < np.array([[0.9, 0.7, 0.2, 0.1], [0.1, 0.3, 0.8, 0.8]])[rng.integers(2, size=400)]) * 1.0


@cache
def categories():
    """Categories of two kinds of rows, as numbers, some of which come late; a tenth is missing."""
    rng = np.random.default_rng(14)
    rows = (answers() + rng.integers(2, size=(400, 4))).copy()
    rows[rows == 2.0] = np.where(np.flatnonzero(rows == 2.0) < 800, 0.0, 2.0)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


@cache
def tables():
    """Rows of a number, a count, a flag and a category, of two kinds."""
    return np.column_stack([rows()[:, 0], events()[:, 0], answers()[:, 0], (counts()[:, 0] > 3) + answers()[:, 1]])


@cache
def amounts():
    """Rows of a number, a positive amount, an amount that is often zero, and a count, of two kinds; some are missing."""
    rng = np.random.default_rng(15)
    kinds = rng.integers(2, size=400)
    paid, rest = np.exp(rng.normal(1.0 + kinds, 0.5)), rng.gamma(1.0 + 3.0 * kinds) / (0.3 + kinds)
    found = np.column_stack([rows()[:, 0], paid, rest * (rng.random(400) > 0.5 - 0.3 * kinds), events()[:, 0]])
    found[rng.random(found.shape) < 0.05] = np.nan
    return found


@cache
def frames():
    """Return powers about sums of three spectra; one bin and one frame have no power."""
    rng = np.random.default_rng(10)
    rows = rng.exponential(1.0 / rng.gamma(2.0, size=(400, 3)) @ rng.dirichlet(np.full(6, 0.5), size=3))
    rows[:, 5], rows[17] = 0.0, 0.0
    return rows


@cache
def targets():
    """Return inputs, and a target by two regressions."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(200, 2)) * [1.0, 3.0] + 100.0
    y = np.where(rng.random(200) < 0.5, X @ [2.0, -0.5], X @ [-1.0, 0.4] + 50.0)
    return np.column_stack([X, y + 0.5 * rng.normal(size=200)])


@cache
def gapped_targets():
    """Return the same, with a fifth of the inputs missing."""
    found = targets().copy()
    found[:, :2] = np.where(np.random.default_rng(13).random((len(found), 2)) < 0.2, np.nan, found[:, :2])
    return found


@cache
def snapshots():
    """Return snapshots of one source with five sensors; a third of the values are missing, and one snapshot has none."""
    rng = np.random.default_rng(11)
    draws = rng.normal(scale=np.sqrt(0.5), size=(400, 6, 2)).view(np.complex128)[..., 0]
    rows = draws[:, :1] * np.exp(0.7j * np.arange(5)) + np.sqrt(0.5) * draws[:, 1:]
    rows[rng.random(rows.shape) < 0.35] = np.nan
    rows[17] = np.nan
    return rows


@cache
def directions():
    """Rows about three directions, of any length."""
    rng = np.random.default_rng(12)
    rows = np.eye(4)[rng.integers(3, size=400)] + 0.3 * rng.normal(size=(400, 4))
    return rows * rng.uniform(0.1, 10.0, size=(400, 1))


def rows_for(model):
    """Return the rows for a model of the table."""
    if isinstance(model, chain_models.RowsInCategoricalHMM):
        return chain_models.symbol_stream(400, seed=7)[0]
    if isinstance(model, chain_models.RowsInRegressionHMM):
        return targets()
    if isinstance(model, chain_models.RowsInAutoregressiveHMM):
        return chain_models.a_stream(400, seed=7)[0]
    if isinstance(model, chain_models.RowsInPoissonHMM):
        return chain_models.count_stream(400, 7, isinstance(model, chain_models.GapFedPoissonHMM))
    if isinstance(model, chain_models.RowsInBernoulliHMM):
        return (chain_models.count_stream(400, 7, True) > 2.0) * 1.0
    if isinstance(model, chain_models.RowsInMixedHMM):
        return chain_models.table_stream(400, 7)
    if isinstance(model, chain_models.GapFedGaussianHMM):
        return chain_models.gapped_stream(400, seed=7)
    if isinstance(model, chain_models.RowsInSemiMarkov) and model.emission == "poisson":
        return chain_models.count_stream(400, 7)
    if isinstance(model, (chain_models.RowsInGaussianHMM, chain_models.RowsInGMMHMM, chain_models.RowsInSemiMarkov)):
        return chain_models.a_stream(400, seed=7)[0]
    kinds = {
        hw.GaussianMixture: rows, hw.MarkovMixture: sequences, hw.RegressionMixture: targets, hw.ItakuraSaitoNMF: frames,
        hw.DirectionOfArrival: snapshots, hw.VonMisesFisherMixture: directions, hw.PoissonMixture: events,
        hw.BernoulliMixture: answers, hw.CategoricalMixture: categories, hw.MixedMixture: tables,
        GapFed: gapped, hw.StudentMixture: rows, hw.BayesianGaussianMixture: rows, GapFedStudent: gapped,
        RoundFed: rounded, GapFedRegression: gapped_targets, SkewedFed: amounts, NoiseFed: rows, GapNoiseFed: gapped,
    }  # fmt: skip
    return kinds.get(type(model), counts)()
