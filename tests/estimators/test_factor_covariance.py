"""GaussianMixture with covariance_type="factor": learning, errors, files and merging."""

import numpy as np
import pytest
from sklearn.decomposition import FactorAnalysis

import headwater as hw
from headwater.checks import check_estimator

RNG = np.random.default_rng(1)
MEANS, LOADINGS = 3.0 * RNG.normal(size=(3, 20)), RNG.normal(size=(3, 20, 2))


def draw(rows):
    kinds = RNG.integers(3, size=rows)
    factors = np.einsum("nq,ndq->nd", RNG.normal(size=(rows, 2)), LOADINGS[kinds])
    return MEANS[kinds] + factors + 0.5 * RNG.normal(size=(rows, 20))


FEW, MANY, OTHER = draw(150), draw(2000), draw(1000)


def make(**options):
    return hw.GaussianMixture(3, covariance_type="factor", **{"n_factors": 2, "random_state": 0, **options})


@pytest.mark.parametrize("algorithm", ["auto", "em"])
def test_few_rows_of_low_rank_are_learned_better(algorithm):
    found = make(algorithm=algorithm).fit(FEW).score(OTHER)
    for kind in ("full", "diag"):
        assert found > hw.GaussianMixture(3, covariance_type=kind, random_state=0).fit(FEW).score(OTHER) + 1.0


@pytest.mark.parametrize("algorithm", ["auto", "online-em", hw.SatoEM(batch_size=200)])
def test_one_pass_is_as_good_as_em(algorithm):
    model = make(algorithm=algorithm, warm_up=500)
    for chunk in np.array_split(MANY, 7):
        model.partial_fit(chunk)
    assert model.score(OTHER) > make(algorithm="em").fit(MANY).score(OTHER) - 0.1


def test_one_component_has_the_likelihood_of_factor_analysis():
    model = hw.GaussianMixture(1, covariance_type="factor", n_factors=2, algorithm="em", tol=1e-9, max_iter=2000, reg_covar=0.0)
    peer = FactorAnalysis(2, tol=1e-10, max_iter=20000, svd_method="lapack").fit(FEW)
    assert model.fit(FEW).score(FEW) == pytest.approx(peer.score(FEW), abs=1e-5)
    assert model.score(OTHER) == pytest.approx(peer.score(OTHER), abs=1e-3)


def test_what_was_learned_has_its_shapes(tmp_path):
    model = make().partial_fit(MANY)
    assert model.loadings_.shape == (3, 20, 2) and model.noise_variances_.shape == (3, 20)
    wanted = model.loadings_ @ np.swapaxes(model.loadings_, 1, 2)
    np.testing.assert_allclose(model.covariances_ - wanted, [np.diag(noise) for noise in model.noise_variances_], atol=1e-9)
    np.testing.assert_allclose(model.precisions_ @ model.covariances_, np.tile(np.eye(20), (3, 1, 1)), atol=1e-6)
    model.save(tmp_path / "factors.hw")
    np.testing.assert_array_equal(hw.load(tmp_path / "factors.hw").score_samples(OTHER), model.score_samples(OTHER))
    assert "nothing is wrong" in str(model.health_) and len(model.describe().components) == 3
    rows, kinds = model.sample(6000)
    for k in range(3):
        spread = np.sqrt(np.diagonal(model.covariances_[k]).max() / 1500)
        np.testing.assert_allclose(rows[kinds == k].mean(axis=0), model.means_[k], atol=6.0 * spread)
    gaps = OTHER[:5].copy()
    gaps[:, 3] = np.nan
    filled = model.impute(gaps)
    assert np.abs(filled[:, 3] - OTHER[:5, 3]).max() < 2.5  # half a standard deviation of noise


def test_strangers_and_branches_are_merged():
    alone = make(random_state=5).partial_fit(MANY[1::2])
    merged = hw.merge([make().partial_fit(MANY[::2]), alone])
    assert merged.n_samples_seen_ == 2000 and merged.score(OTHER) > alone.score(OTHER)
    start = make().warm_start_from(MANY[:500])
    both = hw.merge([start.branch().partial_fit(MANY[500::2]), start.branch().partial_fit(MANY[501::2])])
    assert both.n_samples_seen_ == 2000 and both.score(OTHER) > alone.score(OTHER)


def test_it_grows_to_the_number_there_is():
    assert (
        hw.GaussianMixture("auto", covariance_type="factor", n_factors=2, random_state=0).partial_fit(MANY).n_components_ == 3
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [({"algorithm": word}, "cannot be learned by") for word in ("vb", "online-vb", "boem", "quasi-bayes", "moment-matching")]
    + [({"n_factors": 21}, "n_factors must not be more than the 20 columns"), ({"n_factors": 0}, "n_factors"),
       ({"scale_columns": True}, "scale_columns"), ({"means_init": MEANS}, "means_init must be None"),
       ({"covariance_prior": np.eye(20)}, "should have the shape"), ({"covariance_prior": -np.ones(20)}, "must be positive")],
)  # fmt: skip
def test_what_does_not_go_with_factors_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        make(**options).partial_fit(MANY)


def test_what_is_not_kept_is_not_there():
    model = make().partial_fit(FEW)
    assert not hasattr(model, "mean_precision_") and not hasattr(model, "degrees_of_freedom_")
    assert not hasattr(hw.GaussianMixture(2, random_state=0).fit(FEW), "loadings_")
    assert not hasattr(model, "predictive_score_samples")


def test_a_prior_holds_the_noise():
    model = make(covariance_prior=np.full(20, 500.0), degrees_of_freedom_prior=500.0, algorithm="em").fit(FEW)
    assert 0.6 < np.median(model.noise_variances_) < 1.1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_takes_it_for_an_estimator():
    check_estimator(hw.GaussianMixture(2, covariance_type="factor", n_factors=1, random_state=0))
