"""GaussianHMM and CategoricalHMM: the answers of hmmlearn, passes that never lower the likelihood, extreme rows."""

import warnings

import numpy as np
import pytest
from chain_models import a_stream
from hidden_markov_models import (
    EMISSIONS,
    LENGTHS,
    MEANS,
    START,
    STEPS,
    SYMBOLS,
    X,
    by_hand,
    dense,
    every_kind,
    refused,
    set_by_hand,
    symbols_by_hand,
)
from naive import chains as naive_chains
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import headwater as hw

# hmmlearn


def peer(kind, n_iter, **options):
    from hmmlearn import hmm

    if kind is None:
        model = hmm.CategoricalHMM(2, init_params="", n_iter=n_iter, tol=-np.inf, **options)
        model.n_features = 4
        return set_by_hand(model)
    options = {"covars_prior": 0.0, "covars_weight": 1.0, **options}
    return set_by_hand(hmm.GaussianHMM(2, kind, init_params="", n_iter=n_iter, tol=-np.inf, **options), kind)


@pytest.mark.parametrize(  # hmmlearn is wrong for "c" without "m"
    "params", ["stmc", *(pytest.param(letters, marks=pytest.mark.slow) for letters in ("stm", "mc", "st"))]
)
@every_kind
def test_a_fit_is_hmmlearns(kind, params):
    theirs = peer(kind, 4, params=params).fit(X, LENGTHS)
    ours = by_hand(kind, n_iter=4, tol=0.0, min_covar=0.0, params=params).fit(X, LENGTHS)
    for name in ("startprob_", "transmat_", "means_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-7, atol=1e-9, err_msg=name)
    if kind == "spherical":  # for which hmmlearn's `covars_` has a wrong shape after a fit
        theirs._covars_ = theirs._covars_.reshape(2, -1)[:, 0]
    np.testing.assert_allclose(ours.covars_, theirs.covars_, rtol=1e-7, atol=1e-9)
    for lengths in (None, LENGTHS):
        assert ours.score(X, lengths) == pytest.approx(theirs.score(X, lengths), rel=1e-9)
        found, wanted = ours.score_samples(X, lengths), theirs.score_samples(X, lengths)
        assert found[0] == pytest.approx(wanted[0], rel=1e-9)
        np.testing.assert_allclose(found[1], wanted[1], atol=1e-7)
        for word in ("viterbi", "map"):
            found, wanted = ours.decode(X, lengths, algorithm=word), theirs.decode(X, lengths, algorithm=word)
            assert found[0] == pytest.approx(wanted[0], rel=1e-8)
            np.testing.assert_array_equal(found[1], wanted[1])
    np.testing.assert_allclose(ours.get_stationary_distribution(), theirs.get_stationary_distribution(), rtol=1e-6)
    assert ours.aic(X, LENGTHS) == pytest.approx(theirs.aic(X, LENGTHS), rel=1e-9)
    assert ours.bic(X, LENGTHS) == pytest.approx(theirs.bic(X, LENGTHS), rel=1e-9)


@every_kind
def test_covariances_are_learned_about_means_that_stay(kind):
    model = by_hand(kind)
    shares = model.predict_proba(X, LENGTHS)
    learned = by_hand(kind, params="c", n_iter=1, min_covar=0.0).fit(X, LENGTHS).covars_
    scatter = np.array([(X - m).T @ ((X - m) * share[:, None]) for m, share in zip(MEANS, shares.T, strict=True)])
    count = shares.sum(axis=0)[:, None, None]
    wanted = np.tile(scatter.sum(axis=0) / len(X), (2, 1, 1)) if kind == "tied" else scatter / count
    if kind in ("diag", "spherical"):
        wanted = wanted * np.eye(2)
    if kind == "spherical":
        wanted = np.trace(wanted, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(2)
    np.testing.assert_allclose(learned, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("priors", [{}, {"startprob_prior": 2.0, "transmat_prior": np.array([[1.5, 3.0], [1.0, 4.0]])}])
def test_a_fit_of_symbols_is_hmmlearns(priors):
    whole = SYMBOLS.astype(int)
    theirs = peer(None, 4, **priors).fit(whole, LENGTHS)
    ours = symbols_by_hand(n_iter=4, tol=0.0, emissionprob_prior=1.0, **priors).fit(whole, LENGTHS)
    for name in ("startprob_", "transmat_", "emissionprob_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-7, atol=1e-9, err_msg=name)
    assert ours.score(whole, LENGTHS) == pytest.approx(theirs.score(whole, LENGTHS), rel=1e-9)
    np.testing.assert_array_equal(ours.predict(whole, LENGTHS), theirs.predict(whole, LENGTHS))


def test_samples_have_hmmlearns_shapes():
    for model in (by_hand("full"), symbols_by_hand()):
        rows, states = model.sample(500, random_state=0)
        assert rows.shape == (500, 2 if isinstance(model, hw.GaussianHMM) else 1)
        assert states.shape == (500,)
        assert set(states) == {0, 1}
        again, _ = model.sample(500, random_state=0)
        np.testing.assert_array_equal(rows, again)
        assert model.sample(20, currstate=1)[1][0] == 1
        assert model.sample()[0].shape[0] == 1
        for wrong in (0, -1, 1.5, "a"):
            with pytest.raises(ValueError, match="at least one sample"):
                model.sample(wrong)
        with pytest.raises(ValueError, match="currstate"):
            model.sample(3, currstate=2)


def test_samples_come_from_the_chain():
    rows, states = symbols_by_hand().sample(60_000, random_state=1)
    pairs = np.bincount(2 * states[:-1] + states[1:], minlength=4).reshape(2, 2)
    np.testing.assert_allclose(pairs / pairs.sum(axis=1, keepdims=True), STEPS, atol=0.01)
    for state in range(2):
        found = np.bincount(rows[states == state, 0].astype(int), minlength=4) / (states == state).sum()
        np.testing.assert_allclose(found, EMISSIONS[state], atol=0.012)


# Passes


@pytest.mark.covering("kind", "algorithm")
@every_kind
@pytest.mark.parametrize(
    "priors",
    [
        {}, {"startprob_prior": 2.0, "transmat_prior": 1.0 + 4.0 * np.eye(3)},
        {"mean_precision_prior": 2.0, "covariance_prior": 1.5, "degrees_of_freedom_prior": 6.0},
    ],
    ids=["none", "chain", "emissions"],
)  # fmt: skip
@pytest.mark.parametrize("algorithm", ["em", "vb", pytest.param("auto", marks=pytest.mark.slow)])
def test_passes_never_lose(kind, priors, algorithm):
    if "covariance_prior" in priors:
        scale = priors["covariance_prior"]
        scale = scale * np.eye(2) if kind in ("full", "tied") else [scale, scale] if kind == "diag" else scale
        priors = {**priors, "covariance_prior": scale}
    rows = X.copy()
    rows[[0, 57, 58, 399]] = np.nan
    model = hw.GaussianHMM(3, kind, algorithm=algorithm, n_iter=30, tol=0.0, min_covar=0.0, random_state=0, **priors)
    model.fit(rows, LENGTHS)
    assert len(model.lower_bounds_) == 30
    assert np.diff(model.lower_bounds_).min() > -1e-10


@pytest.mark.parametrize("algorithm", ["em", "vb", "auto"])
@pytest.mark.parametrize("prior", [None, 1.0, 3.0])
def test_passes_over_symbols_never_lose(algorithm, prior):
    model = hw.CategoricalHMM(
        3, algorithm=algorithm, n_iter=30, tol=0.0, emissionprob_prior=prior, transmat_prior=prior, random_state=0
    )
    model.fit(SYMBOLS, LENGTHS)
    assert len(model.lower_bounds_) == 30
    assert np.diff(model.lower_bounds_).min() > -1e-10


def test_the_monitor_tells_how_a_fit_went():
    model = hw.GaussianHMM(2, "full", random_state=0, n_iter=50, tol=1e-3).fit(X, LENGTHS)
    assert model.monitor_.converged
    assert model.monitor_.iter == len(model.monitor_.history) == model.n_iter_ < 50
    assert model.monitor_.history[-1] == pytest.approx(model.score(X, LENGTHS), rel=1e-9)
    with pytest.raises(NotFittedError):
        _ = hw.GaussianHMM(2).partial_fit(X).monitor_


@every_kind
def test_a_fit_finds_the_chain(kind):
    rows, states = a_stream(4000, seed=8)
    path = hw.GaussianHMM(2, kind, random_state=0).fit(rows).predict(rows)
    assert max((path == states).mean(), (path != states).mean()) > 0.97


def test_missing_rows_are_passed_over():
    """A missing row only passes time: the likelihood is that of two transitions at once."""
    rows = X[:6].copy()
    rows[3] = np.nan
    model = by_hand("full")
    logs = np.column_stack([multivariate_normal(m, c).logpdf(X[:6]) for m, c in zip(MEANS, dense("full"), strict=True)])
    logs[3] = 0.0
    assert model.score(rows) == pytest.approx(naive_chains.enumerate_paths(START, STEPS, logs).score, rel=1e-12)
    assert model.score_steps(rows)[3] == pytest.approx(0.0, abs=1e-14)


# Extremes


@every_kind
def test_rows_far_from_zero_lose_no_digits(kind):
    near = hw.GaussianHMM(2, kind, random_state=0, min_covar=0.0).fit(X)
    far = hw.GaussianHMM(2, kind, random_state=0, min_covar=0.0).fit(X + 1e8)
    # Seeds that reach the same optimum differ in the order of their states, and rounding decides which of them is best.
    a, b = (np.argsort(model.means_[:, 0]) for model in (far, near))
    np.testing.assert_allclose(far.means_[a] - 1e8, near.means_[b], atol=1e-5)
    np.testing.assert_allclose(far.covars_[a], near.covars_[b], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(far.transmat_[np.ix_(a, a)], near.transmat_[np.ix_(b, b)], atol=1e-5)
    streamed = hw.GaussianHMM(2, kind, random_state=0, warm_up=100, algorithm="online-em").partial_fit(X + 1e8)
    alike = hw.GaussianHMM(2, kind, random_state=0, warm_up=100, algorithm="online-em").partial_fit(X)
    a, b = (np.argsort(model.means_[:, 0]) for model in (streamed, alike))
    np.testing.assert_allclose(streamed.means_[a] - 1e8, alike.means_[b], atol=1e-5)


@every_kind
@pytest.mark.parametrize(
    "algorithm", ["online-em", *(pytest.param(word, marks=pytest.mark.slow) for word in ("auto", "online-vb"))]
)
def test_degenerate_rows_leave_a_finite_model(kind, algorithm):
    constant = X.copy()
    constant[:, 1] = 3.0
    few = np.tile([[0.0, 1.0], [1.0, 0.0]], (100, 1))
    for rows, n_states in ((constant, 2), (few, 4), (np.full((60, 2), 7.0), 2), (X * 1e-150, 2), (X * 1e90, 2)):
        model = hw.GaussianHMM(n_states, kind, algorithm=algorithm, random_state=0, warm_up=40)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.partial_fit(rows)
            fitted = clone(model).fit(rows)
        for one in (model, fitted):
            assert np.isfinite(one.score(rows))
            assert np.isfinite(one.covars_).all()
            np.testing.assert_allclose(one.transmat_.sum(axis=1), 1.0)
            np.testing.assert_allclose(one.predict_proba(rows).sum(axis=1), 1.0)


@every_kind
def test_one_state_is_one_gaussian(kind):
    model = hw.GaussianHMM(1, kind, random_state=0, min_covar=0.0, algorithm="em").fit(X, LENGTHS)
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0), rtol=1e-10)
    covariance = np.cov(X.T, bias=True)
    wanted = {
        "full": covariance,
        "tied": covariance,
        "diag": np.diag(np.diag(covariance)),
        "spherical": np.trace(covariance) / 2 * np.eye(2),
    }
    np.testing.assert_allclose(model.covars_[0], wanted[kind], rtol=1e-8, atol=1e-10)
    assert model.transmat_.tolist() == [[1.0]]
    assert model.score(X) == pytest.approx(multivariate_normal(X.mean(axis=0), wanted[kind]).logpdf(X).sum(), rel=1e-10)


def test_outliers_do_not_break_the_chain():
    rows = X.copy()
    rows[::50] = 1e6
    model = by_hand("full")
    assert np.isfinite(model.score(rows))
    assert np.isfinite(model.predict_proba(rows)).all()
    streamed = hw.GaussianHMM(2, "full", random_state=0, warm_up=100, algorithm="online-em").partial_fit(X).partial_fit(rows)
    assert np.isfinite(streamed.score(rows))


def test_all_rows_missing_cannot_be_learned_from():
    for model in (hw.GaussianHMM(2), hw.CategoricalHMM(2, n_features=3)):
        width = 2 if isinstance(model, hw.GaussianHMM) else 1
        refused(lambda model=model, width=width: model.fit(np.full((10, width), np.nan)), "missing")
        assert not model._has_state()


def test_a_million_rows_do_not_underflow():
    check_long_chain(10**6)


@pytest.mark.slow
def test_ten_million_rows_do_not_underflow():
    check_long_chain(10**7)


def check_long_chain(rows):
    pattern = np.array([0.0, 1.0, 3.0, 2.0, 2.0])
    symbols = np.tile(pattern, rows // 5)
    model = symbols_by_hand()
    score = model.score(symbols)
    # The score of a periodic chain grows by the same amount in every period.
    short = model.score(np.tile(pattern, 400)) - model.score(np.tile(pattern, 399))
    assert score == pytest.approx(model.score(np.tile(pattern, 400)) + (rows // 5 - 400) * short, rel=1e-9)
    total, posteriors = model.score_samples(symbols)
    assert total == pytest.approx(score, rel=1e-12)
    np.testing.assert_allclose(posteriors[500_000:500_005], model.predict_proba(np.tile(pattern, 400))[1000:1005], rtol=1e-10)
    best, path = model.decode(symbols)
    assert np.isfinite(best)
    assert len(path) == rows
