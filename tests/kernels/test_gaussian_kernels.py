"""The E-step kernels against their naive twins."""

from dataclasses import replace

import numpy as np
import pytest
from naive import gaussian as naive

from headwater.core.batch import Batch
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_covariance import COVARIANCES
from headwater.families.gaussian_records import GaussianParameters, GaussianStatistics

K = 3
# Around the blocks of 128 (full, tied) and 256 (diag) rows, and from two slabs on.
# With 90 columns, rows of which a component has a negligible share are left out of its moments.
SIZES = [(1, 1), (127, 2), (129, 5), (257, 9), (8200, 2), (300, 90)]
EXTRAS = ["plain", "weights", "labels", "weights and labels"]
kinds = pytest.mark.parametrize("kind", naive.KINDS)
tails = pytest.mark.parametrize("tail", ["gaussian", "student"])


@pytest.fixture(params=["loops", "products"], autouse=True)
def way(request, monkeypatch):
    """Return the E-step by loops over blocks of rows, or by products of matrices."""
    dense = request.param == "products"
    for name, kind in COVARIANCES.items():
        monkeypatch.setitem(COVARIANCES, name, replace(kind, dense_from=lambda k, d: dense))


def random_parameters(kind, tail, d, rng):
    k = 1 if kind == "tied" else K
    if kind in ("full", "tied"):
        factor = np.tril(rng.normal(0.0, 0.4, (k, d, d)), -1) + np.eye(d) * rng.uniform(0.5, 1.5, (k, 1, 1))
        factor = factor[0] if kind == "tied" else factor
    else:
        factor = rng.uniform(0.5, 1.5, (K, d if kind == "diag" else 1)) * np.ones((1, d))
    power = np.zeros(K) if tail == "gaussian" else rng.uniform(1.0, 5.0, K)
    means, shift = rng.normal(size=(2, K, d))
    return GaussianParameters(rng.normal(size=d), means, factor, shift, rng.normal(size=K), power, rng.uniform(0.3, 0.9, K))


def random_batch(n, d, extras, rng):
    weights = rng.uniform(0.1, 3.0, n) if "weights" in extras else np.empty(0)
    labels = rng.integers(-1, K, n) if "labels" in extras else np.empty(0, dtype=np.int64)
    return Batch(rng.normal(0.0, 2.0, (n, d)), weights, labels)


def random_totals(family, d, rng):
    zeros = family.zeros(d)
    return GaussianStatistics(*(rng.normal(size=array.shape) for array in zeros.to_arrays().values()))


def expected(kind, parameters, log_weights, batch):
    joint = naive.log_joint(kind, parameters, log_weights, batch.X)
    resp, scores = naive.responsibilities(joint, batch.labels if batch.labels.size else None)
    return resp, scores, naive.totals(kind, batch.X - parameters.origin, resp, batch.row_weights)


def assert_added(kind, totals, before, wanted):
    """Check that `wanted` was added to the totals; for symmetric second moments, to the lower triangle."""
    count, first, second = wanted
    second = np.tril(second) if kind in ("full", "tied") else second
    for name, array in (("count", count), ("first", first), ("second", second)):
        found = getattr(totals, name) - getattr(before, name)
        np.testing.assert_allclose(found, array, rtol=1e-11, atol=1e-12 * (1.0 + np.abs(array).max()), err_msg=name)


def run(kind, parameters, log_weights, batch, totals=None, **options):
    return Gaussian(K, kind).estep(parameters, log_weights, batch, totals, **options)[0]


@pytest.mark.covering("kind", "tail", "n")
@kinds
@tails
@pytest.mark.parametrize(("n", "d"), SIZES)
@pytest.mark.parametrize("extras", EXTRAS)
def test_estep_equals_its_twin(kind, tail, n, d, extras):
    rng = np.random.default_rng([n, d])
    parameters, log_weights = random_parameters(kind, tail, d, rng), np.log(rng.dirichlet(np.ones(K)))
    batch = random_batch(n, d, extras, rng)
    totals = random_totals(Gaussian(K, kind), d, rng)
    before, scores, resp = totals.copy(), np.empty(n), np.empty((n, K))
    total = run(kind, parameters, log_weights, batch, totals, scores=scores, responsibilities=resp)
    wanted_resp, wanted_scores, wanted_totals = expected(kind, parameters, log_weights, batch)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(resp, wanted_resp, rtol=1e-11, atol=1e-14)
    assert total == pytest.approx(batch.row_weights @ wanted_scores, rel=1e-12, abs=1e-10)
    assert_added(kind, totals, before, wanted_totals)
    assert totals.from_base == before.from_base


@kinds
@pytest.mark.parametrize("extras", EXTRAS[:2])
@pytest.mark.parametrize(("n", "d"), SIZES)
def test_given_responsibilities_are_counted_as_they_are(kind, extras, n, d):
    rng = np.random.default_rng(n)
    parameters, batch = random_parameters(kind, "gaussian", d, rng), random_batch(n, d, extras, rng)
    totals, resp = Gaussian(K, kind).zeros(d), rng.uniform(0.0, 2.0, (n, K))
    kept = resp.copy()
    score = run(kind, parameters, np.zeros(K), batch, totals, responsibilities=resp, given=True)
    wanted = naive.totals(kind, batch.X - parameters.origin, kept, batch.row_weights)
    assert_added(kind, totals, Gaussian(K, kind).zeros(d), wanted)
    assert score == 0.0
    np.testing.assert_array_equal(resp, kept)


@kinds
def test_what_is_not_asked_for_changes_nothing(kind):
    rng = np.random.default_rng(1)
    parameters, batch = random_parameters(kind, "gaussian", 2, rng), random_batch(300, 2, "weights", rng)
    family = Gaussian(K, kind)
    totals, scores, resp = family.zeros(2), np.empty(300), np.empty((300, K))
    everything = run(kind, parameters, np.zeros(K), batch, totals, scores=scores, responsibilities=resp)
    alone, only_scores, only_resp = family.zeros(2), np.empty(300), np.empty((300, K))
    assert run(kind, parameters, np.zeros(K), batch) == pytest.approx(everything, rel=1e-14)
    assert run(kind, parameters, np.zeros(K), batch, alone) == pytest.approx(everything, rel=1e-14)
    run(kind, parameters, np.zeros(K), batch, scores=only_scores)
    run(kind, parameters, np.zeros(K), batch, responsibilities=only_resp)
    np.testing.assert_array_equal(only_scores, scores)
    np.testing.assert_array_equal(only_resp, resp)
    for one, other in zip(alone.to_arrays().values(), totals.to_arrays().values(), strict=True):
        np.testing.assert_array_equal(one, other)


@kinds
@tails
@pytest.mark.parametrize("n", [1, 5000, 20_000])
def test_threads_do_not_change_a_bit(kind, tail, n):
    rng = np.random.default_rng(2)
    parameters, batch = random_parameters(kind, tail, 3, rng), random_batch(n, 3, "weights and labels", rng)
    results = []
    for n_threads in (1, 2):
        totals, scores, resp = Gaussian(K, kind).zeros(3), np.empty(n), np.empty((n, K))
        total = run(kind, parameters, np.zeros(K), batch, totals, scores=scores, responsibilities=resp, n_threads=n_threads)
        results.append([np.array(total), scores, resp, *totals.to_arrays().values()])
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.covering("kind", "extras")
@kinds
@tails
@pytest.mark.parametrize("extras", ["plain", "weights and labels"])
def test_the_place_in_memory_does_not_change_a_bit(kind, tail, extras):
    # A loop that stores and sums has another order of summation when LLVM's check for overlap fails.
    rng = np.random.default_rng(9)
    parameters, batch = random_parameters(kind, tail, 2, rng), random_batch(300, 2, extras, rng)
    results = set()
    for _ in range(1000):
        moved = [np.empty(size) for size in rng.integers(1, 400, 5)]
        copied = Batch(batch.X.copy(), batch.weights.copy(), batch.labels.copy())
        totals = Gaussian(K, kind).zeros(2)
        score = run(kind, parameters, np.zeros(K), copied, totals, n_threads=1)
        results.add((score, *(array.tobytes() for array in totals.to_arrays().values())))
        del moved
    assert len(results) == 1


@kinds
@tails
def test_inputs_are_not_changed(kind, tail):
    rng = np.random.default_rng(3)
    parameters, batch = random_parameters(kind, tail, 3, rng), random_batch(300, 3, "weights and labels", rng)
    inputs = {**vars(parameters), **vars(batch), "log_weights": rng.normal(size=K)}
    before = {name: array.copy() for name, array in inputs.items()}
    totals, scores, resp = Gaussian(K, kind).zeros(3), np.empty(300), np.empty((300, K))
    run(kind, parameters, inputs["log_weights"], batch, totals, scores=scores, responsibilities=resp)
    for name, array in inputs.items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


@kinds
@tails
@pytest.mark.parametrize("size", [1e100, 1e149, 1e152])
def test_far_rows_stay_finite_and_keep_their_mass(kind, tail, size):
    rng = np.random.default_rng(4)
    parameters = random_parameters(kind, tail, 2, rng)
    rows = np.array([[size, 0.0], [0.0, -size], [size, size], [-size, 1.0]])
    totals, scores, resp = Gaussian(K, kind).zeros(2), np.empty(4), np.empty((4, K))
    run(kind, parameters, np.zeros(K), Batch(rows), totals, scores=scores, responsibilities=resp)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(resp.sum(axis=1), 1.0, rtol=1e-14)
    assert totals.count.sum() == pytest.approx(4.0)
    assert all(np.isfinite(array).all() for array in totals.to_arrays().values())


@kinds
@tails
@pytest.mark.parametrize("size", [1e100, 1e152])
def test_a_label_holds_however_far_the_row(kind, tail, size):
    parameters = random_parameters(kind, tail, 2, np.random.default_rng(5))
    resp = np.empty((2, K))
    batch = Batch(np.full((2, 2), size), labels=np.array([2, 0]))
    run(kind, parameters, np.zeros(K), batch, responsibilities=resp)
    np.testing.assert_array_equal(resp, np.eye(K)[[2, 0]])


@kinds
@tails
def test_integer_weights_are_copies_and_weight_zero_is_absence(kind, tail):
    rng = np.random.default_rng(6)
    parameters, batch = random_parameters(kind, tail, 2, rng), random_batch(200, 2, "labels", rng)
    copies = rng.integers(0, 4, 200)
    weighted, repeated = Gaussian(K, kind).zeros(2), Gaussian(K, kind).zeros(2)
    batch_weighted = Batch(batch.X, copies.astype(float), batch.labels)
    score = run(kind, parameters, np.zeros(K), batch_weighted, weighted)
    assert score == pytest.approx(run(kind, parameters, np.zeros(K), batch[np.repeat(np.arange(200), copies)], repeated))
    for one, other in zip(weighted.to_arrays().values(), repeated.to_arrays().values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


@kinds
def test_weights_do_not_change_responsibilities(kind):
    rng = np.random.default_rng(7)
    parameters, batch = random_parameters(kind, "gaussian", 2, rng), random_batch(50, 2, "plain", rng)
    plain, weighted = np.empty((2, 50, K))
    weights = 10.0 ** rng.uniform(-9.0, 9.0, 50)
    run(kind, parameters, np.zeros(K), batch, responsibilities=plain)
    run(kind, parameters, np.zeros(K), Batch(batch.X, weights), responsibilities=weighted)
    np.testing.assert_allclose(weighted, plain, rtol=1e-12)


# Slow: each memory layout is compiled separately, and estimators use C order only.
@kinds
@pytest.mark.slow
@pytest.mark.parametrize("layout", ["fortran", "strided"])
def test_memory_layout_does_not_change_the_answer(kind, layout):
    rng = np.random.default_rng(8)
    parameters, batch = random_parameters(kind, "gaussian", 3, rng), random_batch(300, 3, "plain", rng)
    other = np.asfortranarray(batch.X) if layout == "fortran" else np.repeat(batch.X, 2, axis=0)[::2]
    scores, wanted = np.empty((2, 300))
    run(kind, parameters, np.zeros(K), batch, scores=wanted)
    run(kind, parameters, np.zeros(K), Batch(other), scores=scores)
    np.testing.assert_allclose(scores, wanted, rtol=1e-13, atol=1e-13)


def test_rows_taken_in_strides_are_contiguous_and_a_run_of_rows_is_not_copied():
    batch = Batch(np.arange(24.0).reshape(12, 2), np.arange(12.0), np.arange(12))
    strided, run = batch[1::3], batch[2:5]
    for array in (strided.X, strided.weights, strided.labels):
        assert array.flags.c_contiguous
    np.testing.assert_array_equal(strided.X, batch.X[1::3])
    assert np.shares_memory(run.X, batch.X)


@kinds
def test_means_far_from_the_origin_lose_no_digits(kind):
    rng = np.random.default_rng(4)
    parameters, batch = random_parameters(kind, "gaussian", 5, rng), random_batch(50, 5, "plain", rng)
    step = 1e5 * (parameters.factor.sum(axis=-1) if kind in ("full", "tied") else parameters.factor)  # factor @ (1e5, 1e5, ...)
    far = replace(parameters, origin=parameters.origin - 1e5, shift=parameters.shift + step)
    near_scores, far_scores = np.empty((2, 50))
    run(kind, parameters, np.zeros(K), batch, scores=near_scores)
    run(kind, far, np.zeros(K), batch, scores=far_scores)
    np.testing.assert_allclose(far_scores, near_scores, rtol=0.0, atol=1e-8)
