"""GMMHMM: against hmmlearn at equal parameters and in passes of EM, streams, forecasts, and sentences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import headwater as hw
from headwater.families.gaussian import Gaussian
from headwater.families.gaussian_records import GaussianPrior
from headwater.families.tied_groups import TiedGroups

LENGTHS = [150, 1, 49, 100]
START, STEPS = np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.2, 0.8]])
WEIGHTS = np.array([[0.3, 0.7], [0.5, 0.5]])
MEANS = np.array([[[0.0, 0.0], [3.0, 1.0]], [[8.0, -2.0], [8.0, 4.0]]])
COVARS = {
    "diag": np.array([[[1.0, 0.5], [0.7, 1.0]], [[1.0, 1.0], [2.0, 0.3]]]),
    "spherical": np.array([[1.0, 0.6], [0.8, 1.5]]),
    "full": np.tile(np.array([[1.0, 0.3], [0.3, 0.8]]), (2, 2, 1, 1)),
    "tied": np.array([[[1.0, 0.3], [0.3, 0.8]], [[0.6, -0.2], [-0.2, 1.4]]]),
}


def grouped_stream(rows, seed=0, gaps=False):
    rng = np.random.default_rng(seed)
    states = np.cumsum(rng.random(rows) > 0.9) % 2
    members = (rng.random(rows) >= WEIGHTS[states, 0]).astype(int)
    X = MEANS[states, members] + 0.8 * rng.normal(size=(rows, 2))
    if gaps:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X


def by_hand(kind=hw.GMMHMM, covariance_type="diag", **options):
    model = kind(2, n_mix=2, covariance_type=covariance_type, init_params="", random_state=0, **options)
    model.startprob_, model.transmat_ = START, STEPS
    model.weights_, model.means_, model.covars_ = WEIGHTS, MEANS, COVARS[covariance_type]
    return model


@pytest.mark.parametrize("kind", COVARS)
def test_answers_are_those_of_hmmlearn(kind):
    peer_kind = pytest.importorskip("hmmlearn.hmm").GMMHMM
    X = grouped_stream(300, 3)
    ours, peer = by_hand(covariance_type=kind), by_hand(peer_kind, kind)
    peer.n_features = 2
    assert ours.score(X, lengths=LENGTHS) == pytest.approx(peer.score(X, LENGTHS), rel=1e-10)
    assert_allclose(ours.predict_proba(X, LENGTHS), peer.predict_proba(X, LENGTHS), atol=1e-9)
    assert_array_equal(ours.predict(X, LENGTHS), peer.predict(X, LENGTHS))


def test_a_pass_of_em_is_that_of_plain_loops():
    X = grouped_stream(200, 4)
    model = by_hand(algorithm="em", n_iter=1, tol=0.0, min_covar=0.0)
    states = by_hand().predict_proba(X)
    joint = np.log(WEIGHTS) + np.array(
        [[stats.norm.logpdf(X, MEANS[k, m], np.sqrt(COVARS["diag"][k, m])).sum(axis=1) for m in range(2)] for k in range(2)]
    ).transpose(2, 0, 1)
    shares = np.exp(joint - joint.max(axis=2, keepdims=True))
    shares *= (states / shares.sum(axis=2))[:, :, None]
    rows = shares.sum(axis=0)
    model.fit(X)
    assert_allclose(model.weights_, rows / rows.sum(axis=1, keepdims=True), rtol=1e-8)
    assert_allclose(model.means_, np.einsum("nkm,nd->kmd", shares, X) / rows[:, :, None], rtol=1e-8)


@pytest.mark.parametrize("kind", ["tied", "full"])
def test_passes_of_em_end_where_those_of_hmmlearn_do(kind):
    """On the way they differ: hmmlearn measures covariances about the means of the pass before."""
    peer_kind = pytest.importorskip("hmmlearn.hmm").GMMHMM
    X = grouped_stream(300, 8)
    for passes, names in ((1, ("weights_", "means_")), (300, ("weights_", "means_", "covars_"))):
        ours = by_hand(covariance_type=kind, algorithm="em", n_iter=passes, tol=0.0, min_covar=0.0).fit(X, lengths=LENGTHS)
        peer = by_hand(peer_kind, kind, n_iter=passes, tol=-np.inf).fit(X, LENGTHS)
        for name in (*names, "transmat_", "startprob_"):
            assert_allclose(getattr(ours, name), getattr(peer, name), rtol=1e-6, atol=1e-6)


PRIORS = {
    "full": {"covars_prior": np.array([[20.0, 4.0], [4.0, 30.0]]), "covars_weight": 12.0},
    "tied": {"covars_prior": np.array([[20.0, 4.0], [4.0, 30.0]]), "covars_weight": 12.0},
    "diag": {"covars_prior": 8.0, "covars_weight": 15.0},
    "spherical": {"covars_prior": 8.0, "covars_weight": 15.0},
}


@pytest.mark.parametrize("parts", ["both", *(pytest.param(one, marks=pytest.mark.slow) for one in ("means", "covars"))])
@pytest.mark.parametrize("kind", PRIORS)
def test_priors_are_those_of_hmmlearn(kind, parts):
    peer_kind = pytest.importorskip("hmmlearn.hmm").GMMHMM
    priors = {"means_prior": 2.0, "means_weight": 25.0, "weights_prior": 6.0}
    if kind == "spherical":
        priors |= PRIORS[kind]  # hmmlearn's default is not flat
    priors = {"means": priors, "covars": PRIORS[kind], "both": priors | PRIORS[kind]}[parts]
    X = grouped_stream(300, 8)
    ours = by_hand(covariance_type=kind, algorithm="em", n_iter=100, tol=0.0, min_covar=0.0, **priors).fit(X, lengths=LENGTHS)
    peer = by_hand(peer_kind, kind, n_iter=100, tol=-np.inf, **priors).fit(X, LENGTHS)
    for name in ("weights_", "means_", "covars_", "transmat_"):
        assert_allclose(getattr(ours, name), getattr(peer, name), rtol=1e-5, atol=1e-5)
    history = np.array(ours.monitor_.history)
    assert (np.diff(history) > -1e-6 * np.abs(history[:-1])).all()


@pytest.mark.parametrize("kind", PRIORS)
def test_priors_hold_in_streams_merges_and_files(kind, tmp_path):
    strong = {"means_prior": [50.0, -50.0], "means_weight": 1e7, **PRIORS[kind]}
    model = hw.GMMHMM(2, n_mix=2, covariance_type=kind, warm_up=300, random_state=0, **strong)
    model.partial_fit(grouped_stream(600, 1))
    assert_allclose(model.means_, np.tile([50.0, -50.0], (2, 2, 1)), rtol=1e-3)
    merged = hw.merge([model.branch().partial_fit(grouped_stream(100, seed)) for seed in (2, 3)])
    merged.save(tmp_path / "model.hw")
    assert_array_equal(hw.load(tmp_path / "model.hw").covars_, merged.covars_)


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [
        (
            "diag",
            {"means_prior": [1.0, 2.0, 3.0], "means_weight": 1.0},
            "means_prior must be a number, or one for each of the 2",
        ),
        ("diag", {"means_weight": -1.0}, "means_weight"),
        ("full", {"covars_prior": 3.0}, r"covars_prior must have shape \(2, 2\) where covariances are matrices, got \(\)"),
        ("tied", {"covars_prior": -np.eye(2)}, "covars_prior must be symmetric and positive definite"),
        ("full", {"covars_weight": -5.0}, "covars_weight must be a number greater than -5, got -5.0"),
        ("diag", {"covars_prior": -2.0}, "covars_prior must be a number greater than -2, got -2.0"),
        ("diag", {"covars_weight": 0.0}, "covars_weight must be positive for covariance_type 'diag', got 0"),
        ("spherical", {"covars_weight": [1.0, 2.0]}, "covars_weight must be one number for covariance_type 'spherical'"),
        ("diag", {"covars_weight": "much"}, "covars_weight"),
    ],
)
def test_priors_that_are_none_are_refused(kind, given, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        hw.GMMHMM(2, n_mix=2, covariance_type=kind, **given).fit(grouped_stream(50))


@pytest.mark.parametrize("algorithm", ["auto", "em", "vb", "online-vb"])
def test_a_state_has_one_tied_covariance(algorithm, tmp_path):
    rng = np.random.default_rng(9)
    states = np.arange(4000) // 50 % 2
    roots = np.linalg.cholesky(COVARS["tied"])
    X = MEANS[states, rng.integers(2, size=4000)] + np.einsum("nij,nj->ni", roots[states], rng.normal(size=(4000, 2)))
    model = hw.GMMHMM(2, n_mix=2, covariance_type="tied", algorithm=algorithm, random_state=0).fit(X)
    order = np.argsort(model.means_[:, :, 0].sum(axis=1))
    assert model.covars_.shape == (2, 2, 2)
    assert_allclose(model.covars_[order], COVARS["tied"], atol=0.12)
    model.save(tmp_path / "model.hw")
    assert_array_equal(hw.load(tmp_path / "model.hw").covars_, model.covars_)
    assert "covariance_type='tied'" in repr(model) and model.bic(X) < hw.GMMHMM(2, random_state=0).fit(X).bic(X)


@pytest.mark.parametrize("name", ["mode", "mean", "expect_log"])
def test_a_tied_readout_is_that_of_each_group_alone(name):
    rng = np.random.default_rng(10)
    family = TiedGroups(4, "full", group=2)
    shares = rng.dirichlet(np.ones(4), 300)
    rows = rng.normal(size=(300, 2)) + 3.0 * shares[:, :2]
    prior = GaussianPrior(np.zeros(2), np.ones(2), 0.5, 6.0, np.array([[2.0, 0.4], [0.4, 1.0]]), 0.0)
    plain = Gaussian(4, "full")
    totals = plain.collect(plain.blank_parameters(np.zeros(2)), rows, shares)
    found, known = family.readout(name, prior, totals), family.belief(prior, totals)
    for group in (slice(0, 2), slice(2, 4)):
        counts, sums = shares[:, group].sum(axis=0), shares[:, group].T @ rows
        means = (0.5 * prior.mean + sums) / (0.5 + counts)[:, None]
        apart = rows[:, None] - means
        scale = prior.scale + np.einsum("nk,nki,nkj->ij", shares[:, group], apart, apart)
        scale = scale + 0.5 * np.einsum("ki,kj->ij", means - prior.mean, means - prior.mean)
        rate = counts.sum() + 6.0 - (1.0 if name == "mode" else 0.0)  # d + 1 - 2 members beyond the mode
        assert_allclose(family.means(found)[group], means, rtol=1e-10)
        assert_allclose(family.covariances(found)[group], np.tile(scale / rate, (2, 1, 1)), rtol=1e-9)
        assert_allclose(known.scale[group], np.tile(scale, (2, 1, 1)), rtol=1e-9)
    assert family.n_parameters(2) == 4 * 2 + 2 * 3


@pytest.mark.parametrize("algorithm", ["auto", hw.OnlineEM(batch_size=100), "online-vb"])
@pytest.mark.parametrize("gaps", [False, True])
def test_streams_find_the_groups(algorithm, gaps):
    model = hw.GMMHMM(2, n_mix=2, covariance_type="diag", algorithm=algorithm, warm_up=600, random_state=0)
    for chunk in np.array_split(grouped_stream(3000, 5, gaps), 5):
        model.partial_fit(chunk)
    found = model.means_.reshape(-1, 2)
    for mean in MEANS.reshape(-1, 2):
        assert np.abs(found - mean).max(axis=1).min() < 0.35
    assert_allclose(np.sort(np.diag(model.transmat_)), [0.9, 0.9], atol=0.04)


def test_passes_never_lower_the_likelihood():
    X, scores = grouped_stream(300, 6, gaps=True), []
    model = hw.GMMHMM(3, n_mix=2, covariance_type="full", algorithm="em", n_iter=20, tol=0.0, random_state=0).fit(X)
    scores = np.array(model.monitor_.history)
    assert (np.diff(scores) > -1e-6 * np.abs(scores[:-1])).all()


def test_forecasts_are_mixtures_of_all_members():
    model, past = by_hand(), grouped_stream(50, 7)
    ahead, states = model.forecast(2, past), model.next_state_proba(X=past)
    weights = (states[:, None] * WEIGHTS).ravel()
    means, variances = MEANS.reshape(-1, 2), COVARS["diag"].reshape(-1, 2)
    assert_allclose(ahead.state_proba[0], states, rtol=1e-12)
    assert_allclose(ahead.mean[0], weights @ means, rtol=1e-10)
    assert_allclose(ahead.variance[0], weights @ (variances + means**2) - (weights @ means) ** 2, rtol=1e-9)
    low = ahead.quantile(0.1)[0, 0]
    assert weights @ stats.norm.cdf(low, means[:, 0], np.sqrt(variances[:, 0])) == pytest.approx(0.1, abs=1e-6)
    assert_allclose(ahead.sample(4000, random_state=0).mean(axis=0), ahead.mean, atol=0.25)


def test_merged_saved_and_sampled(tmp_path):
    base = hw.GMMHMM(2, n_mix=2, warm_up=600, random_state=0).partial_fit(grouped_stream(1000, 1))
    parts = [base.branch().partial_fit(grouped_stream(500, seed)) for seed in (2, 3)]
    merged = hw.merge(parts)
    assert merged.n_samples_seen_ == 2000
    merged.save(tmp_path / "model.hw")
    read = hw.load(tmp_path / "model.hw")
    assert_array_equal(read.means_, merged.means_)
    assert_allclose(read.partial_fit(grouped_stream(200)).means_, merged.partial_fit(grouped_stream(200)).means_, rtol=1e-12)
    X, states = by_hand().sample(3000, random_state=0)
    assert_allclose(X[states == 1].mean(axis=0), WEIGHTS[1] @ MEANS[1], atol=0.3)


def test_sentences():
    model = hw.GMMHMM(2, n_mix=2)
    with pytest.raises(ValueError, match="weights_ must hold probabilities that sum to 1"):
        model.weights_ = [[0.5, 0.6], [0.5, 0.5]]
    with pytest.raises(ValueError, match="params must name all of 'mcw', which are learned together"):
        hw.GMMHMM(2, n_mix=2, params="stm").fit(grouped_stream(50))
    with pytest.raises(ValueError, match="covariance_type"):
        hw.GMMHMM(2, n_mix=2, covariance_type="same").fit(grouped_stream(50))
    with pytest.raises(ValueError, match="covars_ must have"):
        hw.GMMHMM(2, n_mix=2, covariance_type="tied").covars_ = COVARS["full"]
    with pytest.raises(ValueError, match="covars_ must be symmetric and positive definite"):
        hw.GMMHMM(2, n_mix=2, covariance_type="tied").covars_ = -COVARS["tied"]
    with pytest.raises(ValueError, match="lengths must add up to the 50 rows of X, got 40"):
        model.fit(grouped_stream(50), lengths=[40])
