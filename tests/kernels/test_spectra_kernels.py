"""The kernels of power spectra against naive twins, sums over grids and the joint distribution."""

import math

import numpy as np
import pytest
from naive import spectra as naive
from scipy import optimize, stats

from headwater.kernels import spectra as kernels
from headwater.kernels.random import begin_stream, normal, uniform
from headwater.kernels.spectra_mode import LEAST_CURVATURE, map_weights
from headwater.kernels.spectra_scores import marginal_scores, row_scores

NO_ROW, NO_TABLE = np.empty(0), np.empty((0, 0))
SHAPE, SCALE = 2.5, 1.3
samplers = pytest.mark.parametrize("sampler", ["informed", "walk", "gibbs"])


def draw(sampler, Y, theta, *, shape=SHAPE, scale=SCALE, burn_in=50, n_samples=50, rao_blackwell=True, key=3, first=0,
         start=0, stop=None, weights=NO_ROW, target=NO_TABLE, shares=NO_TABLE, wiener=NO_TABLE, moments=NO_TABLE,
         means=NO_TABLE, accepted=NO_ROW):  # fmt: skip
    head = (Y, start, len(Y) if stop is None else stop, theta, shape, scale)
    # The key has the type that models use, since another type needs seconds of compilation.
    draws = (burn_in, n_samples, rao_blackwell, np.uint64(key), first + np.arange(len(Y)))
    tail = (*draws, weights, target, shares, wiener, moments, means)
    if sampler == "gibbs":
        kernels.draw_weights_gibbs(*head, *tail)
    else:
        kernels.draw_weights_metropolis(*head, 0.0 if sampler == "informed" else 0.7, *tail, accepted)


def spectra(k, bins, rng):
    return rng.gamma(0.7, size=(k, bins)) + 0.05


def state_of(seed):
    state = np.empty(1, np.uint64)
    begin_stream(state, np.uint64(seed), 0)
    return state


class Room:
    """The work arrays of a sampler before its first draw for a row."""

    def __init__(self, theta, power, shape=SHAPE, scale=SCALE):
        k, bins = theta.shape
        self.v, self.moved, self.part = np.empty(bins), np.empty(bins), np.empty((k, bins))
        self.proposal, self.steps, self.now = np.empty(k), np.empty(k), np.empty(1)
        self.factor = np.zeros((k, k))
        mode = np.empty(k)
        kernels.level_weights(theta, power, shape, scale, self.v, mode)
        for _ in range(3):
            kernels.score_step(theta, power, shape, scale, self.v, self.part, self.factor, self.steps, mode)
        kernels.information(theta, mode, self.v, shape, scale, self.part, self.factor)
        kernels.walking_steps(self.factor, self.steps)
        self.mode, self.centre = mode, np.log(mode)

    def at(self, theta, power, h):
        kernels.mix(theta, h, self.v)
        self.now[0] = kernels.log_density(power, self.v)


# Densities


@pytest.mark.parametrize("bins", [1, 2, 7, 64])
@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_row_scores(k, bins):
    rng = np.random.default_rng(k)
    theta = spectra(k, bins, rng)
    Y, h = naive.simulate(theta, SHAPE, SCALE, 5, rng)
    scores = np.zeros(5)
    row_scores(Y, 1, 5, theta, h, scores)
    expected = [naive.row_score(y, theta, g) for y, g in zip(Y[1:], h[1:], strict=True)]
    np.testing.assert_allclose(scores, [0.0, *expected], rtol=1e-12)


def test_ratio_of_a_step_is_that_of_the_target():
    rng = np.random.default_rng(0)
    theta = spectra(3, 6, rng)
    Y, H = naive.simulate(theta, SHAPE, SCALE, 20, rng)
    moved = np.empty(6)
    for y, h in zip(Y, H, strict=True):
        new = h.copy()
        new[1] *= math.exp(rng.normal())
        change = kernels.log_density_moved(y, h @ theta, theta[1], new[1] - h[1], moved) - naive.row_score(y, theta, h)
        expected = naive.log_target(y, theta, new, SHAPE, SCALE) - naive.log_target(y, theta, h, SHAPE, SCALE)
        assert kernels.log_ratio(change, SHAPE, SCALE, h[1], new[1]) == pytest.approx(expected, abs=1e-9)
        np.testing.assert_allclose(moved, new @ theta)


def test_walk_decides_as_its_twin():
    rng = np.random.default_rng(1)
    theta = spectra(3, 5, rng)
    Y, H = naive.simulate(theta, SHAPE, SCALE, 200, rng)
    total = 0
    for seed, (y, h) in enumerate(zip(Y, H, strict=True)):
        room, state, expected, accepted = Room(theta, y), state_of(seed), h.copy(), 0
        for k in range(3):
            proposal = expected.copy()
            proposal[k] *= math.exp(room.steps[k] * normal(state))
            ratio = naive.log_target(y, theta, proposal, SHAPE, SCALE) - naive.log_target(y, theta, expected, SHAPE, SCALE)
            if math.log(uniform(state)) < ratio:
                expected, accepted = proposal, accepted + 1
        moves = kernels.walk(theta, y, SHAPE, SCALE, room.steps, state_of(seed), room.v, room.moved, h, room.now)
        assert moves == accepted
        np.testing.assert_allclose(h, expected, rtol=1e-12)
        np.testing.assert_allclose(room.v, h @ theta, rtol=1e-12)
        assert room.now[0] == pytest.approx(naive.row_score(y, theta, h), abs=1e-9)
        total += moves
    assert 150 < total < 450


def test_leap_decides_as_its_twin():
    rng = np.random.default_rng(2)
    theta = spectra(3, 8, rng)
    Y, H = naive.simulate(theta, SHAPE, SCALE, 200, rng)
    total = 0
    for seed, (y, h) in enumerate(zip(Y, H, strict=True)):
        room, state = Room(theta, y), state_of(seed)
        room.at(theta, y, h)
        precision = naive.information(theta, room.mode, SHAPE, SCALE, LEAST_CURVATURE)
        root = np.linalg.cholesky(precision)
        np.testing.assert_allclose(np.tril(room.factor), root, rtol=1e-9, atol=1e-12)
        z = np.array([normal(state) for _ in range(3)])
        chi_squared = -2.0 * sum(math.log(uniform(state)) for _ in range(kernels.TAIL // 2))
        proposal = np.exp(room.centre + np.linalg.solve(root.T, z) * math.sqrt(kernels.TAIL / chi_squared))
        ratio = 0.0
        for g, sign in ((proposal, 1.0), (h, -1.0)):
            ratio += sign * naive.log_target(y, theta, g, SHAPE, SCALE)
            ratio -= sign * naive.proposal_log_density(np.log(g), room.centre, precision, kernels.TAIL)
        expected = proposal if math.log(uniform(state)) < ratio else h.copy()
        total += kernels.leap(
            theta, y, SHAPE, SCALE, room.centre, room.factor, state_of(seed), room.proposal, room.moved, room.v, h, room.now
        )
        np.testing.assert_allclose(h, expected, rtol=1e-9)
        assert room.now[0] == pytest.approx(naive.row_score(y, theta, h), abs=1e-9)
    assert 80 < total < 200


# Posterior means


@pytest.mark.covering("sampler", "rao_blackwell")
@samplers
@pytest.mark.parametrize("rao_blackwell", [True, False])
@pytest.mark.parametrize(("k", "bins"), [(1, 3), (2, 4)])
def test_posterior_means_are_those_of_a_grid(sampler, rao_blackwell, k, bins):
    rng = np.random.default_rng(10 * k)
    theta = spectra(k, bins, rng)
    y = np.append(naive.simulate(theta, SHAPE, SCALE, 1, rng)[0][0, :-1], 0.0)
    copies = 40  # of one row; each has its own stream
    Y = np.tile(y, (copies, 1))
    target, shares, moments = np.zeros((copies, k, bins)), np.zeros((copies, k, bins)), np.zeros((copies, 2, k))
    means = np.empty((copies, k))
    for i in range(copies):
        draw(sampler, Y, theta, start=i, stop=i + 1, burn_in=60, n_samples=500, rao_blackwell=rao_blackwell,
             target=target[i], shares=shares[i], moments=moments[i], means=means)  # fmt: skip
    h, log_h, squared, s, G = naive.posterior_means(y, theta, SHAPE, SCALE)
    for found, expected in ((means, h), (moments[:, 0], log_h), (moments[:, 1], squared), (target, s), (shares, G)):
        error = found.std(axis=0, ddof=1) / math.sqrt(copies)
        assert np.all(np.abs(found.mean(axis=0) - expected) < 5.0 * error + 1e-9)
        assert np.all(error < 0.03 * np.abs(expected) + 0.03)


@samplers
def test_joint_distribution(sampler):
    """Geweke: alternating draws of rows given weights and weights given rows must keep the prior; a wrong exponent fails."""
    rng = np.random.default_rng(5)
    theta = spectra(2, 3, rng)
    steps = np.full(2, 0.7)
    noise = rng.exponential(size=(8000, 3))

    def deviations(shape):
        state, h, drawn = state_of(1), np.full(2, 0.5), np.empty((2, 2))
        log_h = np.empty((len(noise), 2))
        for t, e in enumerate(noise):
            y = (h @ theta) * e
            room = Room(theta, y, shape)
            room.at(theta, y, h)
            if sampler == "gibbs":
                kernels.alternate(theta, y, shape, SCALE, state, drawn, room.part, room.v, h)
            elif sampler == "walk":
                kernels.walk(theta, y, shape, SCALE, steps, state, room.v, room.moved, h, room.now)
            else:
                kernels.leap(
                    theta, y, shape, SCALE, room.centre, room.factor, state, room.proposal, room.moved, room.v, h, room.now
                )
                kernels.walk(theta, y, shape, SCALE, room.steps, state, room.v, room.moved, h, room.now)
            log_h[t] = np.log(h)
        prior = stats.invgamma(SHAPE, scale=SCALE)
        expected = [prior.expect(np.log), prior.expect(lambda x: np.log(x) ** 2), prior.expect(lambda x: 1.0 / x)]
        out = []
        for values, mean in zip((log_h, log_h**2, np.exp(-log_h)), expected, strict=True):
            blocks = values.reshape(40, -1, 2).mean(axis=1)  # of 200 steps: nearly independent
            out.append((blocks.mean(axis=0) - mean) / (blocks.std(axis=0, ddof=1) / math.sqrt(40)))
        return np.abs(out)

    assert deviations(SHAPE).max() < 4.5
    assert deviations(SHAPE + 1.0).max() > 8.0


@pytest.mark.parametrize(("k", "bins"), [(1, 3), (2, 4)])
def test_marginal_scores_are_those_of_a_grid(k, bins):
    rng = np.random.default_rng(20 * k)
    theta = spectra(k, bins, rng)
    Y = naive.simulate(theta, SHAPE, SCALE, 5, rng)[0]
    Y[4] = 0.0
    for y in Y:
        scores = np.empty(40)
        marginal_scores(np.tile(y, (40, 1)), 0, 40, theta, SHAPE, SCALE, 1000, 3, np.arange(40), scores)
        assert scores.std() < 0.1
        assert scores.mean() == pytest.approx(naive.marginal_score(y, theta, SHAPE, SCALE), abs=0.02)


# Laws


@samplers
@pytest.mark.parametrize("rao_blackwell", [True, False])
def test_cuts_change_nothing(sampler, rao_blackwell):
    rng = np.random.default_rng(6)
    theta = spectra(5, 21, rng)
    Y = naive.simulate(theta, SHAPE, SCALE, 9, rng)[0]
    weights = rng.uniform(0.0, 3.0, 9)

    def answers():
        return {"target": np.zeros((5, 21)), "shares": np.zeros((5, 21)), "moments": np.zeros((2, 5))}

    settings = {"burn_in": 2, "n_samples": 19, "rao_blackwell": rao_blackwell}
    whole, slabs, parts = answers(), answers(), answers()
    means, means_slabs, means_parts = np.zeros((9, 5)), np.zeros((9, 5)), np.zeros((9, 5))
    draw(sampler, Y, theta, weights=weights, first=100, means=means, **settings, **whole)
    for start, stop in ((0, 4), (4, 9)):
        draw(sampler, Y, theta, weights=weights, first=100, start=start, stop=stop, means=means_slabs, **settings, **slabs)
        cut = slice(start, stop)
        draw(sampler, Y[cut], theta, weights=weights[cut], first=100 + start, means=means_parts[cut], **settings, **parts)
    for name, table in whole.items():
        np.testing.assert_array_equal(table, slabs[name])
        np.testing.assert_array_equal(table, parts[name])
    np.testing.assert_array_equal(means, means_slabs)
    np.testing.assert_array_equal(means, means_parts)


@samplers
def test_weights_and_keys(sampler):
    rng = np.random.default_rng(7)
    theta = spectra(3, 8, rng)
    Y = naive.simulate(theta, SHAPE, SCALE, 4, rng)[0]
    each = np.zeros((4, 3, 8))
    for i in range(4):
        draw(sampler, Y, theta, start=i, stop=i + 1, target=each[i])
    weighted, other = np.zeros((3, 8)), np.zeros((3, 8))
    weights = np.array([0.0, 2.0, 0.5, 1.0])
    draw(sampler, Y, theta, weights=weights, target=weighted)
    np.testing.assert_allclose(weighted, np.tensordot(weights, each, 1), rtol=1e-12)
    draw(sampler, Y, theta, key=4, weights=weights, target=other)
    assert np.abs(other - weighted).max() > 1e-6


@samplers
@pytest.mark.parametrize("rao_blackwell", [True, False])
def test_zeros(sampler, rao_blackwell):
    rng = np.random.default_rng(8)
    theta = spectra(3, 6, rng)
    theta[0, 2] = 0.0
    theta[:, 4] = 0.0
    theta[2] = 0.0
    Y = naive.simulate(spectra(3, 6, rng), SHAPE, SCALE, 4, rng)[0]
    Y[1] = 0.0
    Y[2, 1] = 0.0
    Y[3] *= 1e12
    target, shares, moments, means = np.zeros((3, 6)), np.zeros((3, 6)), np.zeros((2, 3)), np.empty((4, 3))
    draw(sampler, Y, theta, rao_blackwell=rao_blackwell, target=target, shares=shares, moments=moments, means=means)
    for table in (target, shares, moments, means):
        assert np.isfinite(table).all()
    assert np.all(target >= 0.0)
    assert np.all(target[theta == 0.0] == 0.0)
    assert np.all(means > 0.0)
    # Rows carry no information about the weight of a zero spectrum: its posterior is the prior.
    draw(sampler, Y[:1], theta, n_samples=8000, means=means)
    assert means[0, 2] == pytest.approx(SCALE / (SHAPE - 1.0), rel=0.35)


@samplers
def test_statistic_and_shares_of_one_draw(sampler):
    """Both are also used for the accelerated step."""
    rng = np.random.default_rng(9)
    theta = spectra(3, 5, rng)
    Y = naive.simulate(theta, SHAPE, SCALE, 1, rng)[0]
    target, shares, wiener = np.zeros((3, 5)), np.zeros((3, 5)), np.zeros((3, 5))
    moments, means = np.zeros((2, 3)), np.empty((1, 3))
    draw(sampler, Y, theta, n_samples=1, target=target, shares=shares, wiener=wiener, moments=moments, means=means)
    h = means[0]
    v = h @ theta
    np.testing.assert_allclose(target, naive.statistic(Y[0], theta, h))
    np.testing.assert_allclose(shares, naive.shares(theta, h))
    np.testing.assert_allclose(moments, [np.log(h), np.log(h) ** 2])
    np.testing.assert_allclose(wiener, theta**2 * h[:, None] * Y[0] / v**2)
    np.testing.assert_allclose(target, wiener + theta * (1.0 - shares))
    np.testing.assert_allclose(shares / theta, h[:, None] / v)


def test_accepted_counts_proposals():
    rng = np.random.default_rng(11)
    theta = spectra(3, 30, rng)
    Y = naive.simulate(theta, SHAPE, SCALE, 20, rng)[0]
    for sampler, most in (("informed", 4 * 100), ("walk", 3 * 100)):
        accepted = np.full(20, -1.0)
        draw(sampler, Y, theta, accepted=accepted, stop=19)
        assert np.all((accepted[:19] > 0.1 * most) & (accepted[:19] < 0.95 * most))
        assert accepted[19] == -1.0


# The mode


@pytest.mark.parametrize(("shape", "scale"), [(SHAPE, SCALE), (0.3, 0.01), (-1.0, 0.0)])
def test_ascent_never_loses_and_ends_at_the_mode(shape, scale):
    rng = np.random.default_rng(12)
    theta = spectra(3, 12, rng)
    Y = naive.simulate(theta, SHAPE, SCALE, 6, rng)[0]
    Y[0, 3] = 0.0
    h, last = np.empty((6, 3)), np.full(6, -np.inf)
    for iterations in (0, 1, 2, 3, 5, 10, 30, 100, 3000):
        map_weights(Y, 0, 6, theta, shape, scale, iterations, 0.0, h)
        now = np.array([naive.map_objective(y, theta, g, shape, scale) for y, g in zip(Y, h, strict=True)])
        assert np.all(now >= last - 1e-9 * np.abs(now))
        last = now
    for y, g, reached in zip(Y, h, last, strict=True):
        best = optimize.minimize(
            lambda u, y=y: -naive.map_objective(y, theta, np.exp(u), shape, scale),
            np.log(g) + 0.1,
            bounds=[(-60.0, 60.0)] * 3,
        )
        assert reached >= -best.fun - 1e-4


def test_ascent_stops_at_its_tolerance():
    rng = np.random.default_rng(13)
    theta = spectra(3, 12, rng)
    Y = naive.simulate(theta, SHAPE, SCALE, 4, rng)[0]
    few, many = np.empty((4, 3)), np.empty((4, 3))
    map_weights(Y, 0, 4, theta, SHAPE, SCALE, 10_000, 1e-9, few)
    map_weights(Y, 0, 4, theta, SHAPE, SCALE, 10_000, 0.0, many)
    np.testing.assert_allclose(few, many, rtol=1e-6)
    zeros = np.empty((1, 3))
    map_weights(np.zeros((1, 12)), 0, 1, theta, -1.0, 0.0, 10, 0.0, zeros)
    assert np.all(zeros <= 1e-149)
