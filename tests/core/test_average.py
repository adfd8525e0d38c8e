"""The running average of statistics: weights n^a beside a few lines of NumPy, its variance, files, parts and merges."""

import numpy as np
import pytest

import headwater as hw
from headwater.core.average import AVERAGE, average_gains, share_of_average
from headwater.core.learner import Learner
from headwater.core.state import Progress
from headwater.families.gaussian import Gaussian
from headwater.io.files import container
from headwater.models.mixture import Mixture

WAIT, BATCH, DECAY, OFFSET = 60, 20, 0.6, 2.0
TRUTH = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])


def documents(rows, seed=0):
    rng = np.random.default_rng(seed)
    chosen = rng.integers(2, size=rows)
    return np.stack([rng.multinomial(8, TRUTH[k]) for k in chosen]).astype(float)


def naive_online_em(X, start, weights, exponent):
    """Paper 002 in batches for a mixture of multinomials without a prior: S += g (E[s] - S), and the average of S with
    weight n^exponent for row n."""

    def expected(rows, theta, weights):
        joint = weights * np.exp(rows @ np.log(theta).T)
        r = joint / joint.sum(axis=1, keepdims=True)
        return r.mean(axis=0), r.T @ rows / len(rows)

    def maximum(count, table):
        return table / table.sum(axis=1, keepdims=True), count / count.sum()

    S = expected(X[:WAIT], start, weights)
    mean, (theta, weights) = S, maximum(*S)
    for t, at in enumerate(range(WAIT, len(X), BATCH)):
        found = expected(X[at : at + BATCH], theta, weights)
        step = (t + 1 + WAIT / BATCH + OFFSET) ** -DECAY
        S = tuple((1 - step) * old + step * new for old, new in zip(S, found, strict=True))
        gain = min(1.0, (1.0 + exponent) * BATCH / (at + BATCH))
        mean = tuple((1 - gain) * old + gain * new for old, new in zip(mean, S, strict=True))
        theta, weights = maximum(*S)
    return maximum(*mean)


def online(exponent=0.25, **settings):
    return hw.OnlineEM(decay=DECAY, offset=OFFSET, batch_size=BATCH, average_exponent=exponent, **settings)


def learner(algorithm=None, **settings):
    start = {"probabilities_init": np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), "weights_init": [0.5, 0.5]}
    return hw.MultinomialMixture(
        2,
        algorithm=algorithm or online(),
        warm_up=WAIT,
        probability_concentration_prior=1.0,
        random_state=0,
        **start,
        **settings,
    )


@pytest.mark.parametrize("exponent", [0.0, 0.25, 1.0, 3.0])
def test_averages_are_those_of_a_few_lines_of_numpy(exponent):
    X = documents(400)
    model = learner(online(exponent)).partial_fit(X)
    theta, weights = naive_online_em(X, learner().probabilities_init, np.array([0.5, 0.5]), exponent)
    np.testing.assert_allclose(model.probabilities_, theta, rtol=1e-7)
    np.testing.assert_allclose(model.weights_, weights, rtol=1e-7)


@pytest.mark.parametrize("exponent", [0.0, 0.25, 1.0])
def test_the_variance_of_an_average_is_what_its_docstring_says(exponent):
    plan = Learner(Mixture(2, Gaussian(2, "full")), hw.OnlineEM(average_exponent=exponent), 2).plan
    gains = average_gains(plan, Progress(0, 0.0, 0.0, 0.0, 0.0), np.ones(4000))
    left = np.append(np.cumprod((1.0 - gains)[::-1])[::-1][1:], 1.0)
    weights = gains * left
    assert weights.sum() == pytest.approx(1.0)
    wanted = (1.0 + exponent) ** 2 / (1.0 + 2.0 * exponent)
    assert len(weights) * (weights**2).sum() == pytest.approx(wanted, rel=2e-3)
    halves = weights[1999] / weights[3999]
    assert halves == pytest.approx(0.5**exponent, rel=1e-3)
    before, after = (Progress(n, float(n), 0.0, 0.0, 0.0) for n in (1000, 4000))
    assert share_of_average(plan, before, after) == pytest.approx(np.prod(1.0 - gains[1000:]), rel=2e-3)


def test_online_em_averages_so_by_default_and_chains_as_before():
    assert hw.OnlineEM().average_exponent == 0.25 and hw.SimulatedEM().average_exponent == 1.0
    assert hw.GaussianHMM(2)._make_learner(2).algorithm.average_exponent == 1.0
    assert hw.GaussianHMM(2, algorithm="online-em")._make_learner(2).algorithm.average_exponent == 1.0


@pytest.mark.parametrize("wrong", [-0.1, np.nan, 11, "1", True, None])
def test_an_exponent_is_a_number_from_0_to_10(wrong):
    with pytest.raises(ValueError, match="average_exponent must be a number from 0 to 10"):
        hw.OnlineEM(average_exponent=wrong)


@pytest.mark.parametrize("settings", [{}, {"parts": 2}])
def test_a_file_goes_on_as_if_it_had_never_stopped(tmp_path, settings):
    X = documents(400)
    model = learner(online(0.5), **settings).partial_fit(X[:230])
    model.save(tmp_path / "model.hw")
    again = hw.load(tmp_path / "model.hw")
    assert again.algorithm == online(0.5)
    for one in (model, again):
        one.partial_fit(X[230:])
    np.testing.assert_array_equal(again.probabilities_, model.probabilities_)


@pytest.mark.parametrize("algorithm", ["online-em", online(1.0)])
def test_files_from_before_the_exponent_go_on_as_they_would_have(tmp_path, algorithm):
    X = documents(900)
    model = learner(hw.OnlineEM(average_exponent=1.0) if algorithm == "online-em" else algorithm).partial_fit(X[:330])
    model.save(tmp_path / "model.hw")
    header, arrays = container.read(tmp_path / "model.hw")
    del header["average_exponent"], header["parameters"]["algorithm"]["average_exponent"]
    if algorithm == "online-em":
        header["parameters"]["algorithm"] = "online-em"
    container.write(tmp_path / "older.hw", header, arrays)
    again = hw.load(tmp_path / "older.hw")
    again.save(tmp_path / "again.hw")
    for one in (again, hw.load(tmp_path / "again.hw")):
        np.testing.assert_array_equal(one.probabilities_, model.probabilities_)
        one.partial_fit(X[330:])
    np.testing.assert_array_equal(again.probabilities_, model.partial_fit(X[330:]).probabilities_)


def test_parts_of_equal_size_average_to_what_they_have_seen():
    X = documents(600)
    base = learner().partial_fit(X[:200])
    parts = [base.branch().partial_fit(X[200:400]), base.branch().partial_fit(X[400:])]
    one, other = hw.merge(parts), hw.merge(parts[::-1])
    np.testing.assert_allclose(one.probabilities_, other.probabilities_, rtol=1e-12)
    means = [part._runtime.state.records[AVERAGE].count for part in parts]
    np.testing.assert_allclose(one._runtime.state.records[AVERAGE].count, np.mean(means, axis=0), rtol=1e-9)
