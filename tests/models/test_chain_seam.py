"""The recursion of chains goes on from the warm-up as if it had begun with its first row, beside a few lines of NumPy."""

import numpy as np
import pytest

import headwater as hw
from headwater.models import chain_seam

K, WAIT = 3, 120
TRANSITIONS = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.2, 0.2, 0.6]])
MEANS = np.array([-1.0, 0.5, 2.0])


def sequence(rows, seed=0):
    rng = np.random.default_rng(seed)
    states = [0]
    for _ in range(rows - 1):
        states.append(int(rng.choice(K, p=TRANSITIONS[states[-1]])))
    return rng.normal(MEANS[states])[:, None]


def held_recursion(x, start, transitions, means, variances):
    """Paper 002 at held parameters with steps 1/n: filter, and rho(state) of first states, passages and counts."""
    density = np.exp(-0.5 * (x[:, None] - means) ** 2 / variances) / np.sqrt(variances)
    phi = start * density[0] / (start @ density[0])
    first, steps, count = np.eye(K), np.zeros((K, K, K)), np.eye(K)  # the last axis is the state of the newest row
    for n, g in enumerate(density[1:], 2):
        back = phi[:, None] * transitions / (phi @ transitions)
        first = (1 - 1 / n) * first @ back
        steps = (1 - 1 / n) * steps @ back
        for k in range(K):
            steps[:, k, k] += back[:, k] / n
        count = (1 - 1 / n) * count @ back + np.eye(K) / n
        phi = (phi @ transitions) * g
        phi /= phi.sum()
    return phi, first, steps, count


@pytest.fixture
def begun(monkeypatch):
    """A model after its warm-up, with the parameters that its E-step was at."""
    seen = []
    own = chain_seam._apart
    monkeypatch.setattr(chain_seam, "_apart", lambda model, at, *rest: seen.append(at) or own(model, at, *rest))
    X = sequence(WAIT)
    return (
        X,
        hw.GaussianHMM(K, algorithm="online-em", covariance_type="diag", warm_up=WAIT, random_state=0).partial_fit(X),
        seen,
    )


def test_statistics_given_the_last_state_are_those_of_the_recursion(begun):
    X, model, (parameters,) = begun
    state = model._runtime.state
    given, mean, left = state.unfolded.carry.apart[0]
    chain = state.model
    logs = chain.log_densities_of(parameters, X)
    assert left == 0.0
    first, second = (np.linalg.lstsq(np.stack([X[:, 0] ** 2, X[:, 0], np.ones(len(X))], 1), logs, rcond=None)[0])[:2]
    variances = -0.5 / first
    phi, start, steps, count = held_recursion(X[:, 0], parameters.start, parameters.transitions, second * variances, variances)
    np.testing.assert_allclose(state.unfolded.carry.filters[0], phi, rtol=1e-8)
    for at in range(K):
        found = chain._unflat(given[at], 1)
        np.testing.assert_allclose(found.start, start[:, at], atol=1e-5 / WAIT)
        np.testing.assert_allclose(found.steps, steps[..., at], atol=2e-4)
        np.testing.assert_allclose(found.emissions.count, count[:, at], atol=2e-4)
    np.testing.assert_allclose(mean, phi @ given)


@pytest.mark.parametrize("kind", ["diag", "full", "tied"])
def test_a_file_after_the_warm_up_goes_on_to_the_same_numbers(kind, tmp_path):
    X = sequence(300, 1)
    model = hw.GaussianHMM(K, algorithm="online-em", covariance_type=kind, warm_up=WAIT, random_state=0)
    model.partial_fit(X[:WAIT]).save(tmp_path / "model.hw")
    again = hw.load(tmp_path / "model.hw").partial_fit(X[WAIT:])
    np.testing.assert_array_equal(again.means_, model.partial_fit(X[WAIT:]).means_)


def test_only_sequences_that_may_go_on_are_carried():
    X = sequence(WAIT, 2)
    model = hw.GaussianHMM(K, algorithm="online-em", warm_up=WAIT, random_state=0)
    model.partial_fit(X, lengths=[40, WAIT - 40])
    carry = model._runtime.state.unfolded.carry
    assert len(carry.apart) == 1 and set(carry.apart) == set(carry.filters)  # the last: its rest may be in the next batch


def test_a_complete_sequence_that_the_warm_up_cuts_goes_on_like_an_open_one():
    X = sequence(WAIT + 60, 2)
    one, other = (hw.GaussianHMM(K, algorithm="online-em", warm_up=WAIT, random_state=0) for _ in range(2))
    one.partial_fit(X, lengths=[WAIT + 60])
    other.partial_fit(X).close()
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-12)
    np.testing.assert_allclose(one.transmat_, other.transmat_, rtol=1e-12)
