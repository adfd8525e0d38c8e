"""E-step and search of one source before an array of sensors, against slow twins."""

import numpy as np
import pytest
from naive import arrival as naive
from scipy.optimize import minimize

from headwater.core.batch import Batch
from headwater.models.arrival import Arrival, ArrivalParameters, ArrivalStatistics
from headwater.models.steering import GivenSensors, LinearSensors

M = 6
PLACES = np.array([0.0, 1.0, 2.5, 3.1, 4.8, 7.0])
GAINS = np.array([1.0, 0.5, 2.0, 1.0, 1.5, 0.8])


def uneven(angles):
    """Return the steering of six sensors at uneven places along a line, with different gains."""
    return GAINS * np.exp(1j * np.pi * np.outer(np.sin(angles), PLACES))


LINEAR, UNEVEN = LinearSensors(M, 0.5), GivenSensors(M, uneven, np.array([-1.5, 1.5]))


def steering_of(sensors):
    return lambda x: sensors.vectors(np.array([x]))[0]


def snapshots(rng, rows, missing=0.4, width=M):
    X = rng.normal(size=(rows, width, 2)).view(np.complex128)[..., 0]
    X[rng.random(X.shape) < missing] = np.nan
    return X


def random_moments(rng, rank, width=M):
    factor = rng.normal(size=(rank, width, 2)).view(np.complex128)[..., 0]
    return factor.T @ factor.conj() / rank


def statistics_of(S, count=1.0):
    real, imag = np.ascontiguousarray(count * S.real), np.ascontiguousarray(count * S.imag)
    return ArrivalStatistics(np.zeros(1), np.array([count]), real, imag, np.zeros(len(S)), np.zeros(1))


@pytest.mark.parametrize("sensors", [LINEAR, UNEVEN], ids=["linear", "uneven"])
@pytest.mark.parametrize(("power", "noise"), [(1.3, 0.4), (0.0, 2.0), (100.0, 0.01)])
def test_the_e_step_completes_sensors(sensors, power, noise):
    rng = np.random.default_rng(0)
    X, weights = snapshots(rng, 150), rng.uniform(0.5, 3.0, size=150)
    X[3], X[4] = np.nan, rng.normal(size=M) + 1j
    model = Arrival(sensors)
    parameters = ArrivalParameters(0.6, power, noise, *sensors.steered(0.6))
    a = steering_of(sensors)(0.6)
    G = naive.covariance(a, power, noise)
    scores = np.empty(150)
    summary = model.summarize(parameters, Batch(X, weights), scores=scores)
    totals = summary.statistics
    expected = naive.moments(X, weights, G)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(totals.real + 1j * totals.imag, expected, rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_array_equal(totals.imag, -totals.imag.T)
    np.testing.assert_allclose(scores, [naive.log_density(z, G) for z in X], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.log_likelihood(parameters, Batch(X)), scores)
    np.testing.assert_allclose(summary.score, weights @ scores)
    np.testing.assert_allclose(totals.heard, weights @ ~np.isnan(X))
    np.testing.assert_allclose(totals.count, weights.sum())
    signal = model.posterior(parameters, Batch(X))
    np.testing.assert_allclose(signal, [naive.source(z, a, power, noise) for z in X], rtol=1e-8, atol=1e-12)


def test_rows_are_added_to_those_that_wait():
    rng = np.random.default_rng(1)
    X = snapshots(rng, 300)
    model = Arrival(LINEAR)
    parameters = ArrivalParameters(0.6, 1.0, 0.5, *LINEAR.steered(0.6))
    first = model.summarize(parameters, Batch(X[:77]))
    before = first.statistics.copy()
    both, whole = model.summarize(parameters, Batch(X[77:]), first), model.summarize(parameters, Batch(X))
    for name, value in both.statistics.to_arrays().items():
        np.testing.assert_allclose(value, getattr(whole.statistics, name), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(getattr(first.statistics, name), getattr(before, name))


def test_information_is_fishers():
    """Gains of a linear array do not depend on the direction, so unknown power and noise cost no information about it."""
    X = snapshots(np.random.default_rng(2), 40, 0.5)
    parameters = ArrivalParameters(-0.9, 1.3, 0.4, *LINEAR.steered(-0.9))
    found = Arrival(LINEAR).summarize(parameters, Batch(X)).statistics.information[0]
    expected = sum(naive.information(z, steering_of(LINEAR), -0.9, 1.3, 0.4) for z in X)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.covering("sensors")
@pytest.mark.parametrize("sensors", [LINEAR, UNEVEN, LinearSensors(M, 0.2)], ids=["linear", "uneven", "close"])
@pytest.mark.parametrize("rank", [1, 3, 20])
def test_the_m_step_is_the_maximum(sensors, rank):
    steer = steering_of(sensors)
    low, high = sensors.direction(np.array(sensors.range))
    for seed in range(5):
        S = random_moments(np.random.default_rng(seed), rank)
        found = Arrival(sensors).readout("mode", None, statistics_of(S, 50.0), 1.0)
        x, power, noise = naive.maximum(S, steer, np.linspace(max(low, -np.pi), min(high, np.pi), 400))
        np.testing.assert_allclose((found.power, found.noise), (power, noise), rtol=1e-8)
        assert abs(found.direction - x) < 1e-6 or abs(abs(found.direction - x) - 2.0 * np.pi) < 1e-6
        np.testing.assert_allclose(found.steering[0] + 1j * found.steering[1], steer(found.direction), rtol=1e-12)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sensors", [LINEAR, UNEVEN], ids=["linear", "uneven"])
def test_no_optimiser_finds_better(sensors, seed):
    steer = steering_of(sensors)
    low, high = sensors.direction(np.array(sensors.range))
    S = random_moments(np.random.default_rng(seed), 10)
    found = Arrival(sensors).readout("mode", None, statistics_of(S), 1.0)
    ours = naive.likelihood(S, steer, found.direction, found.power, found.noise)

    def cost(theta, S=S):
        return -naive.likelihood(S, steer, theta[0], np.exp(theta[1]), np.exp(theta[2]))

    ends = [
        minimize(cost, [x, 0.0, 0.0], method="L-BFGS-B", bounds=[(low, high), (-20.0, 5.0), (-5.0, 5.0)])
        for x in np.linspace(low, high, 7)
    ]
    best = min(ends, key=lambda end: end.fun)
    assert -1e-9 < ours + best.fun < 1e-4
    np.testing.assert_allclose((found.power, found.noise), np.exp(best.x[1:]), rtol=5e-3)


def test_of_two_lobes_the_higher_is_found():
    """With two sources of nearly equal power, between grid points or on them, the peak is never that of the weaker one."""
    sensors = LinearSensors(8, 0.5)
    fine = sensors.vectors(np.linspace(-np.pi, np.pi, 1000))
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x = np.sort(rng.uniform(-np.pi, np.pi, 2))
        vectors = sensors.vectors(x)
        S = (vectors.T * [1.0, 1.0 + rng.uniform(-0.02, 0.02)]) @ vectors.conj() + 0.1 * np.eye(8)
        peak = sensors.peak(S.real.copy(), S.imag.copy())
        heights = ((fine @ S.T) * fine.conj()).sum(axis=1).real
        a = sensors.vectors(np.array([peak]))[0]
        assert (a.conj() @ S @ a).real > heights.max() * (1.0 - 1e-12)


def test_given_sensors_find_what_linear_ones_do_to_the_last_digits():
    given = GivenSensors(M, lambda x: np.exp(1j * np.outer(x, np.arange(M))), np.array([-np.pi, np.pi]))
    for seed in range(20):
        S = random_moments(np.random.default_rng(seed), 30)
        parts = S.real.copy(), S.imag.copy()
        assert abs(given.peak(*parts) - LINEAR.peak(*parts)) < 1e-9
    np.testing.assert_allclose(given.steered(0.4), LINEAR.steered(0.4), rtol=1e-7, atol=1e-7)


def test_no_source_where_none_of_its_directions_has_more_than_the_noise():
    beam = GivenSensors(2, lambda x: np.outer(np.exp(1j * x), [1.0, 1.0]), np.array([-1.0, 1.0]))
    found = Arrival(beam).readout("mode", None, statistics_of(np.array([[2.0, -1.5], [-1.5, 4.0]], dtype=complex)), 1.0)
    assert (found.power, found.noise) == (0.0, 3.0)


def test_divergence_of_two_models():
    one, other = (statistics_of(random_moments(np.random.default_rng(seed), 9), 100.0) for seed in (0, 1))
    model = Arrival(LINEAR)
    G, H = (
        naive.covariance(p.steering[0] + 1j * p.steering[1], p.power, p.noise)
        for p in (model.readout("mode", None, one, 1.0), model.readout("mode", None, other, 1.0))
    )
    expected = np.trace(np.linalg.solve(G, H) + np.linalg.solve(H, G)).real - 2 * M
    np.testing.assert_allclose(model.contrast(None, one, other), [expected], rtol=1e-9)
    np.testing.assert_allclose(model.contrast(None, one, one), [0.0], atol=1e-9)


def test_sensors_that_are_all_heard_have_no_noise_filled_in():
    """Sums of weights in two orders differ by rounding, so the power of missing sensors could come out negative."""
    sensors = LinearSensors(M, 0.5)
    parameters = ArrivalParameters(0.0, 0.0, 1.0, *sensors.steered(0.0))
    for seed in range(40):
        weights = np.random.default_rng(seed).random(9)
        totals = Arrival(sensors).summarize(parameters, Batch(np.zeros((9, M), dtype=complex), weights)).statistics
        assert (np.diagonal(totals.real) >= 0.0).all()
