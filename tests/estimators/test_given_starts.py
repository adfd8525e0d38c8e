"""A given start is the start of every algorithm, however few rows the warm-up has."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import headwater as hw

WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
DEVIATIONS = np.array([1.0, 0.5])
PROBABILITIES = np.array([[5.0, 4.0, 3.0, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 3.0, 4.0, 5.0], [2.0, 0.2, 2.0, 0.2, 2.0, 0.2]])
PROBABILITIES /= PROBABILITIES.sum(axis=1, keepdims=True)
COEF, INTERCEPT = np.array([[1.0, 0.0], [0.0, -1.0], [2.0, 2.0]]), np.array([0.0, 3.0, -10.0])
STEPS = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9]])
EMISSIONS = np.array([[0.8, 0.1, 0.05, 0.05], [0.1, 0.8, 0.05, 0.05], [0.05, 0.05, 0.1, 0.8]])

STREAMING = ("auto", "online-vb", "boem", "soem", "online-em", "quasi-bayes")
CHAINED = ("auto", "online-vb", "boem", "soem", "online-em")
KINDS = ("full", "tied", "diag", "spherical")


def components(n, seed=0):
    return np.random.default_rng(seed).choice(3, size=n, p=WEIGHTS)


def gaussian_rows(n=3000, seed=0):
    rng = np.random.default_rng(seed + 100)
    return MEANS[components(n, seed)] + rng.normal(size=(n, 2)) * DEVIATIONS


def precisions(kind):
    own = np.diag(DEVIATIONS**-2.0)
    return {"full": np.tile(own, (3, 1, 1)), "tied": own, "diag": np.tile(np.diag(own), (3, 1)), "spherical": np.full(3, 2.0)}[
        kind
    ]


def streamed(model, *arrays, size=50):
    for at in range(0, arrays[0].shape[0], size):
        model.partial_fit(*(array[at : at + size] for array in arrays))
    return model


def gaussian(kind, algorithm, **given):
    return hw.GaussianMixture(3, covariance_type=kind, algorithm=algorithm, random_state=0, warm_up=1, **given)


@pytest.mark.covering("kind", "algorithm")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", [*STREAMING, "moment-matching"])
@pytest.mark.parametrize("whole", [True, False])
def test_gaussians(kind, algorithm, whole):
    if (kind, algorithm) == ("tied", "moment-matching"):
        pytest.skip("moment matching has no tied covariance")
    slow = algorithm == "online-em" and not whole  # averages with weights n^0.25 forget a rough start as n^-1.25
    rows, given = gaussian_rows(6000 if slow else 3000), {"means_init": MEANS}
    if whole:
        given |= {"weights_init": WEIGHTS, "precisions_init": precisions(kind)}
    first = gaussian(kind, algorithm, **given).partial_fit(rows[:1])
    np.testing.assert_allclose(first.means_, MEANS, atol=0.5)
    assert first.n_samples_seen_ == 1
    if whole:
        np.testing.assert_allclose(first.weights_, WEIGHTS, atol=0.1)
        spread = np.broadcast_to(first._describer.variances(), (3, 2))
        wanted = np.full((3, 2), 0.5) if kind == "spherical" else np.tile(DEVIATIONS**2, (3, 1))
        np.testing.assert_allclose(spread, wanted, rtol=0.6)
    best = hw.GaussianMixture(3, covariance_type=kind, algorithm="em", means_init=MEANS).fit(rows)
    found = streamed(gaussian(kind, algorithm, **given), rows)
    assert found.n_samples_seen_ == len(rows)
    np.testing.assert_allclose(found.means_, best.means_, atol=0.5)
    assert found.score(rows) > best.score(rows) - 0.1


@pytest.mark.parametrize("algorithm", ["moment-matching", "online-em", "auto"])
def test_units_and_origin_do_not_matter(algorithm):
    rows = gaussian_rows(300)
    one = streamed(gaussian("full", algorithm, means_init=MEANS), rows)
    units, origin = np.array([1e-3, 1e4]), np.array([1e5, -3.0])
    other = streamed(gaussian("full", algorithm, means_init=MEANS * units + origin), rows * units + origin)
    np.testing.assert_allclose((other.means_ - origin) / units, one.means_, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_scaled_columns(kind):
    rows = gaussian_rows(400)
    model = gaussian(kind, "online-vb", means_init=MEANS, scale_columns=True)
    np.testing.assert_allclose(streamed(model, rows).means_, MEANS, atol=0.5)


def test_one_component_and_one_column():
    rows = np.random.default_rng(0).normal(3.0, 2.0, size=(400, 1))
    model = hw.GaussianMixture(1, algorithm="boem", warm_up=1, means_init=[[3.0]], precisions_init=[[[0.25]]])
    assert abs(streamed(model, rows).means_[0, 0] - 3.0) < 0.5


def test_a_long_warm_up_holds_the_start_by_itself():
    """With the usual number of rows there are no pseudo-rows: the statistics are those of the rows."""
    rows = gaussian_rows(3000)
    model = hw.GaussianMixture(3, algorithm="boem", means_init=MEANS).partial_fit(rows)
    assert model._state.base.progress.weight_seen == model._state.base.progress.rows_seen == 2000


def test_rest_is_found_near_the_given_means():
    """Covariances and weights belong to the means with the same index, whatever the order of k-means."""
    rng = np.random.default_rng(1)
    rows = np.vstack([rng.normal(0.0, 0.1, size=(400, 2)), rng.normal(9.0, 2.0, size=(100, 2))])
    for order in ([0, 1], [1, 0]):
        model = hw.GaussianMixture(2, means_init=np.array([[0.0, 0.0], [9.0, 9.0]])[order], max_iter=0).fit(rows)
        np.testing.assert_allclose(model.weights_, np.array([0.8, 0.2])[order], atol=0.01)
        assert model.covariances_[order.index(0)].max() < 0.1


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("algorithm", STREAMING)
def test_counts(algorithm, sparse):
    rng = np.random.default_rng(5)
    rows = np.array([rng.multinomial(20, PROBABILITIES[k]) for k in components(600)]).astype(float)
    rows = csr_array(rows) if sparse else rows

    def made():
        return hw.MultinomialMixture(3, algorithm=algorithm, warm_up=1, probabilities_init=PROBABILITIES, random_state=0)

    np.testing.assert_allclose(made().partial_fit(rows[:1]).probabilities_, PROBABILITIES, atol=0.1)
    np.testing.assert_allclose(streamed(made(), rows).probabilities_, PROBABILITIES, atol=0.06)


@pytest.mark.parametrize("gating", ["fixed", "input"])
@pytest.mark.parametrize("algorithm", STREAMING)
def test_regressions(algorithm, gating):
    rng, own = np.random.default_rng(6), components(800)
    X = rng.normal(size=(800, 2)) * 3.0 + 5.0
    y = (X * COEF[own]).sum(axis=1) + INTERCEPT[own] + 0.3 * rng.normal(size=800)

    def made():
        given = {"coef_init": COEF, "intercept_init": INTERCEPT}
        return hw.RegressionMixture(3, gating=gating, algorithm=algorithm, warm_up=1, random_state=0, **given)

    np.testing.assert_allclose(made().partial_fit(X[:1], y[:1]).coef_, COEF, atol=0.2)
    np.testing.assert_allclose(streamed(made(), X, y).coef_, COEF, atol=0.4)


def chain(n=1000):
    rng, states = np.random.default_rng(7), [0]
    for _ in range(n - 1):
        states.append(rng.choice(3, p=STEPS[states[-1]]))
    return np.array(states), rng


@pytest.mark.covering("kind", "algorithm")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", CHAINED)
@pytest.mark.parametrize("init_params", ["", "stc"])
def test_chains_of_gaussians(algorithm, kind, init_params):
    states, rng = chain()
    rows = MEANS[states] + rng.normal(size=(len(states), 2))
    model = hw.GaussianHMM(3, covariance_type=kind, algorithm=algorithm, warm_up=1, init_params=init_params, random_state=0)
    model.means_ = MEANS
    if not init_params:
        model.startprob_, model.transmat_ = np.full(3, 1.0 / 3.0), STEPS
        model.covars_ = {"full": np.tile(np.eye(2), (3, 1, 1)), "tied": np.eye(2), "diag": np.ones((3, 2))}.get(
            kind, np.ones(3)
        )
    model.partial_fit(rows[:1])
    np.testing.assert_allclose(model.means_, MEANS, atol=0.5)
    np.testing.assert_allclose(streamed(model, rows[1:]).means_, MEANS, atol=0.5)


@pytest.mark.parametrize("algorithm", CHAINED)
def test_chains_of_symbols(algorithm):
    states, rng = chain()
    rows = np.array([rng.choice(4, p=EMISSIONS[k]) for k in states], dtype=float)[:, None]
    model = hw.CategoricalHMM(3, algorithm=algorithm, warm_up=1, init_params="", random_state=0)
    model.startprob_, model.transmat_, model.emissionprob_ = np.full(3, 1.0 / 3.0), STEPS, EMISSIONS
    model.partial_fit(rows[:1])
    np.testing.assert_allclose(model.emissionprob_, EMISSIONS, atol=0.15)
    np.testing.assert_allclose(streamed(model, rows[1:]).emissionprob_, EMISSIONS, atol=0.15)
    np.testing.assert_allclose(model.transmat_, STEPS, atol=0.15)


def test_branches_share_a_given_start():
    rows = gaussian_rows(600)
    start = hw.GaussianMixture(3, algorithm="boem", means_init=MEANS).warm_start_from(rows[:3])
    parts = [start.branch().partial_fit(rows[at::2]) for at in (3, 4)]
    merged = hw.merge(parts)
    assert merged.n_samples_seen_ == 3 + sum(len(rows[at::2]) for at in (3, 4))
    np.testing.assert_allclose(merged.means_, MEANS, atol=0.5)


def test_a_given_start_is_saved_in_mid_stream(tmp_path):
    rows = gaussian_rows(300)
    model = gaussian("full", "moment-matching", means_init=MEANS).partial_fit(rows[:20])
    model.save(tmp_path / "model")
    again = hw.load(tmp_path / "model")
    np.testing.assert_array_equal(again.partial_fit(rows[20:]).means_, model.partial_fit(rows[20:]).means_)
