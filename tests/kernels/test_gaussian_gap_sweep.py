"""Row-by-row kernels for rows with gaps, against the loop with batches of one: an E-step and a readout for each row."""

import numpy as np
import pytest
from naive import gaussian as naive

from headwater.core.batch import Batch
from headwater.core.contracts import Model
from headwater.core.gapped_rows import GappedRows
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GaussianPrior
from headwater.families.gaussian_scaled import ScaledGaussian
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixturePrior

K, D, ROWS, START = 3, 4, 40, 30.0
RNG = np.random.default_rng(0)
CENTRES = np.array([[0.0, 0.0, 1.0, 0.0], [2.5, 1.0, -1.0, 2.0], [-1.0, 3.0, 0.0, -2.0]])
COMPLETE = RNG.normal(size=(ROWS, D)) + CENTRES[RNG.integers(0, K, ROWS)]
GONE = RNG.random((ROWS, D)) < 0.35
GONE[np.arange(ROWS), RNG.integers(D, size=ROWS)] = False
GONE[::5] = False
X = GappedRows.of(np.where(GONE, np.nan, COMPLETE))
READOUTS = ("mode", "mean", "expect_log", "predictive")


def a_prior(kind, units=None):
    matrix = kind in ("full", "tied")
    scale = np.diag([2.0, 1.0, 1.5, 1.0]) + 0.2 if matrix else np.full(D, 1.5) if kind == "spherical" else np.arange(1.0, D + 1)
    own = {} if units is None else {"units": units}
    parts = GaussianPrior(COMPLETE.mean(axis=0), np.array([0.2, -0.1, 0.0, 0.1]), 0.4, 7.5, scale, 0.01, **own)
    return MixturePrior(np.array([1.0, 1.5, 2.0]), parts)


def a_start(family, prior, gapped):
    """Mean statistics of rows at random responsibilities, with or without gaps among them."""
    shares = np.random.default_rng(1).dirichlet(np.full(K, 0.3), ROWS)
    rows = X if gapped else COMPLETE
    parameters = family.readout("mean", prior.components, family.zeros(D))
    return family.collect(parameters, rows, shares).scaled(1.0 / ROWS)


@pytest.mark.covering("kind", "name")
@pytest.mark.parametrize("kind", naive.KINDS)
@pytest.mark.parametrize("name", READOUTS)
@pytest.mark.parametrize("steps", ["equal", "decaying"])
def test_rows_with_gaps_one_by_one(kind, name, steps):
    check(Gaussian(K, kind), a_prior(kind), name, steps, gapped=steps == "equal", averages=steps == "decaying")


@pytest.mark.parametrize("kind", naive.KINDS)
def test_columns_in_units(kind):
    prior = a_prior(kind, np.array([1.0, 2.0, 0.5, 3.0]))
    check(ScaledGaussian(K, kind), prior, "mode", "equal", gapped=True, averages=False)


def check(family, prior, name, steps, gapped, averages):
    model, held = Mixture(K, family), a_start(family, prior, gapped)
    sizes = np.random.default_rng(2).uniform(0.2, 3.0, ROWS) if averages else np.ones(ROWS)
    labels = np.random.default_rng(3).choice([-1, -1, 0, 1, 2], ROWS) if averages else np.empty(0, dtype=np.int64)
    batch = Batch(X, sizes if averages else np.empty(0), labels)
    by = naive.equal_steps(sizes, mass=START) if steps == "equal" else naive.timed_steps(lambda t: (t + 2.0) ** -0.6, sizes)
    gains = np.random.default_rng(4).uniform(0.01, 1.0, ROWS) if averages else np.empty(0)
    given = (name, prior, held, held if averages else None, START, batch, by, gains)
    scores, wanted_scores = np.empty(ROWS), np.empty(ROWS)
    before = held.copy()
    found, average, n_eff = model.sweep(*given, scores)
    wanted, wanted_average, wanted_n_eff = Model.sweep(model, *given, wanted_scores)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9, atol=1e-10)
    assert n_eff == pytest.approx(wanted_n_eff, rel=1e-12)
    for one, other in ((found, wanted), (average, wanted_average)):
        for array, other_array in zip(*(part.to_arrays().items() for part in (one, other)), strict=True) if one else ():
            np.testing.assert_allclose(array[1], other_array[1], rtol=1e-8, atol=1e-11, err_msg=array[0])
    for array, other_array in zip(held.to_arrays().values(), before.to_arrays().values(), strict=True):
        np.testing.assert_array_equal(array, other_array)
