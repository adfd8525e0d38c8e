"""PoissonHMM: against hmmlearn at equal parameters, its own tests with the class swapped, and sentences."""

import numpy as np
import pytest
from chain_models import count_stream
from numpy.testing import assert_allclose

import headwater as hw

LENGTHS = [200, 1, 99, 100]
START, STEPS = np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.4, 0.6]])
RATES = np.array([[3.1, 1.4], [1.6, 5.3]])


def by_hand(kind=hw.PoissonHMM, rates=RATES, **options):
    model = kind(2, init_params="", random_state=0, **options)
    model.startprob_, model.transmat_, model.lambdas_ = START, STEPS, rates
    return model


def test_answers_are_those_of_hmmlearn():
    peer_kind = pytest.importorskip("hmmlearn.hmm").PoissonHMM
    X = count_stream(400, 3)
    ours, peer = by_hand(), by_hand(peer_kind)
    X = X.astype(int)
    assert ours.score(X, lengths=LENGTHS) == pytest.approx(peer.score(X, LENGTHS), rel=1e-12)
    assert_allclose(ours.predict_proba(X, LENGTHS), peer.predict_proba(X, LENGTHS), atol=1e-10)
    np.testing.assert_array_equal(ours.predict(X, LENGTHS), peer.predict(X, LENGTHS))
    assert ours.aic(X, LENGTHS) == pytest.approx(peer.aic(X, LENGTHS), rel=1e-12)


def test_passes_of_em_are_those_of_hmmlearn():
    peer_kind = pytest.importorskip("hmmlearn.hmm").PoissonHMM
    X = count_stream(400, 3).astype(int)
    ours = by_hand(algorithm="em", n_iter=4, tol=0.0).fit(X, lengths=LENGTHS)
    peer = by_hand(peer_kind, n_iter=4, tol=-np.inf)
    peer.fit(X, LENGTHS)
    assert_allclose(ours.lambdas_, peer.lambdas_, rtol=1e-10)
    assert_allclose(ours.transmat_, peer.transmat_, rtol=1e-10)


def test_a_prior_is_events_in_rows():
    X = count_stream(300, 1)
    model = hw.PoissonHMM(1, lambdas_prior=6.0, lambdas_weight=2.0, random_state=0, n_iter=50, tol=1e-12).fit(X)
    assert_allclose(model.lambdas_[0], (6.0 + X.sum(axis=0)) / (2.0 + len(X)), rtol=1e-9)
    flat = hw.PoissonHMM(1, lambdas_prior=0.0, lambdas_weight=0.0, random_state=0).fit(X)
    assert_allclose(flat.lambdas_[0], X.mean(axis=0), rtol=1e-9)


def test_missing_counts_are_left_out():
    model, X = by_hand(), count_stream(60, 2, gaps=True)
    column = by_hand(rates=RATES[:, :1])
    X[:, 1] = np.nan
    assert model.score(X) == pytest.approx(column.score(X[:, :1]), rel=1e-12)
    assert model.score_steps(X)[np.isnan(X[:, 0])].tolist() == [0.0] * int(np.isnan(X[:, 0]).sum())


@pytest.mark.parametrize("algorithm", ["auto", "online-em", "soem", "boem", "online-vb"])
def test_streams_find_the_rates(algorithm):
    model, X = hw.PoissonHMM(2, algorithm=algorithm, random_state=0), count_stream(8000, 5)
    for chunk in np.array_split(X, 7):
        model.partial_fit(chunk)
    order = np.argsort(model.lambdas_[:, 0])
    assert_allclose(model.lambdas_[order], [[1.0, 6.0], [5.0, 2.0]], atol=0.2)
    assert_allclose(np.diag(model.transmat_), 0.9, atol=0.03)


def test_merged_halves_learned_all_rows():
    rows, base = count_stream(6000, 6), hw.PoissonHMM(2, random_state=0).partial_fit(count_stream(2000, 5))
    one, other = base.branch().partial_fit(rows[:3000]), base.branch().partial_fit(rows[3000:])
    merged = hw.merge([one, other])
    assert merged.n_samples_seen_ == 8000
    assert_allclose(np.sort(merged.lambdas_[:, 0]), [1.0, 5.0], atol=0.25)


def test_sentences():
    model = hw.PoissonHMM(2, random_state=0)
    with pytest.raises(ValueError, match="Negative values in data passed to PoissonHMM: X holds -1"):
        model.fit([[1.0], [-1.0], [2.0]])
    with pytest.raises(ValueError, match="lambdas_prior must come with lambdas_weight"):
        hw.PoissonHMM(2, lambdas_prior=1.0).fit(count_stream(50))
    with pytest.raises(ValueError, match="lambdas_ must hold rates, which are not negative, got -1"):
        model.lambdas_ = [[1.0], [-1.0]]
    with pytest.raises(ValueError, match="lengths must add up to the 50 rows of X, got 40"):
        model.fit(count_stream(50), lengths=[40])
    assert not model.__sklearn_is_fitted__()


# hmmlearn's own tests (hmmlearn/tests/test_poisson_hmm.py), with the class swapped


class TestOfHmmlearn:
    n_components = 2
    n_features = 3

    def new_hmm(self, impl):
        h = hw.PoissonHMM(self.n_components, implementation=impl, random_state=0)
        h.startprob_ = np.array([0.6, 0.4])
        h.transmat_ = np.array([[0.7, 0.3], [0.4, 0.6]])
        h.lambdas_ = np.array([[3.1, 1.4, 4.5], [1.6, 5.3, 0.1]])
        return h

    @pytest.mark.parametrize("implementation", ["scaling", "log"])
    def test_attributes(self, implementation):
        h = self.new_hmm(implementation)
        with pytest.raises(ValueError, match="lambdas_ must have shape"):
            h.lambdas_ = []
        with pytest.raises(ValueError, match="lambdas_ must have shape"):
            h.lambdas_ = np.zeros((self.n_components - 2, self.n_features))

    @pytest.mark.parametrize("implementation", ["scaling", "log"])
    def test_score_samples(self, implementation, n_samples=1000):
        h = self.new_hmm(implementation)
        X, state_sequence = h.sample(n_samples)
        assert X.ndim == 2
        assert len(X) == len(state_sequence) == n_samples
        _, posteriors = h.score_samples(X)
        assert posteriors.shape == (n_samples, self.n_components)
        assert_allclose(posteriors.sum(axis=1), np.ones(n_samples))

    @pytest.mark.parametrize("implementation", ["scaling", "log"])
    @pytest.mark.parametrize("params", ["stl", "l"])
    def test_fit(self, implementation, params, n_iter=5):
        """The library has no private `_init`, and parameters are set before learning: both tests of hmmlearn are this one."""
        lengths = np.array([10] * 10)
        X, _ = self.new_hmm(implementation).sample(lengths.sum())
        rng = np.random.RandomState(0)
        h = hw.PoissonHMM(self.n_components, params=params, implementation=implementation, random_state=0)
        h.startprob_ = rng.dirichlet(np.ones(self.n_components))
        h.transmat_ = rng.dirichlet(np.ones(self.n_components), self.n_components)
        h.lambdas_ = rng.gamma(shape=2, size=(self.n_components, self.n_features))
        h.n_iter = 1
        h.init_params = ""
        log_likelihoods = np.empty(n_iter)
        for i in range(n_iter):
            h.fit(X, lengths=lengths)
            log_likelihoods[i] = h.score(X, lengths=lengths)
        assert np.diff(log_likelihoods).max() > np.finfo(float).eps ** 0.5

    @pytest.mark.parametrize("implementation", ["scaling", "log"])
    def test_criterion(self, implementation):
        random_state = np.random.RandomState(412)
        X, _ = self.new_hmm(implementation).sample(2000, random_state=random_state)
        for n in (2, 3, 4):
            h = hw.PoissonHMM(n, n_iter=500, random_state=random_state, implementation=implementation).fit(X)
            assert h.aic(X) > 0
            assert h.bic(X) > 0
