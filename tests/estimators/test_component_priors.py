"""Priors of which each component has its own, against a recursion in NumPy and against a common prior."""

import numpy as np
import pytest

import headwater as hw
from headwater.checks import check_laws
from tests.naive import own_priors as naive

ALPHA = np.array([2.0, 5.0])
MEANS = np.array([[0.0, 1.0], [3.0, -1.0]])
PRECISIONS, DOFS = np.array([0.5, 4.0]), np.array([4.0, 9.0])
SCALES = np.array([[[5.0, 1.0], [1.0, 3.0]], [[9.0, -2.0], [-2.0, 20.0]]])
OWN = {"mean_prior": MEANS, "mean_precision_prior": PRECISIONS, "degrees_of_freedom_prior": DOFS}


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return MEANS[rng.integers(2, size=n)] + rng.normal(size=(n, 2)) * [1.0, 1.5]


def scales_of(kind):
    return {"full": SCALES, "diag": np.diagonal(SCALES, axis1=1, axis2=2), "spherical": np.array([4.0, 12.0])}[kind]


def mixture(kind="full", **options):
    given = {"covariance_prior": scales_of(kind), **OWN, "weight_concentration_prior": ALPHA, "random_state": 0}
    return hw.GaussianMixture(2, **{"covariance_type": kind, "warm_up": 60, **given, **options})


def test_the_recursion_is_that_of_the_papers():
    """Bayesian online EM from the prior itself, row by row."""
    X = rows_of(120)
    factor = np.linalg.inv(SCALES / DOFS[:, None, None])
    model = mixture(
        algorithm=hw.BayesianOnlineEM(batch_size=1), warm_up=0, start_weight=1e-9,
        weights_init=ALPHA / ALPHA.sum(), means_init=MEANS, precisions_init=factor,
    ).partial_fit(X)  # fmt: skip
    weights, means, covariances = naive.learn(X, ALPHA, MEANS, PRECISIONS, DOFS, SCALES)
    np.testing.assert_allclose(model.weights_, weights, rtol=1e-6)
    np.testing.assert_allclose(model.means_, means, rtol=1e-6)
    np.testing.assert_allclose(model.covariances_, covariances, rtol=1e-6)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
@pytest.mark.parametrize(
    "algorithm", ["auto", "em", "vb", "online-em", hw.OnlineVB(batch_size=1), hw.QuasiBayes(batch_size=50)]
)
def test_equal_priors_of_components_are_a_common_prior(kind, algorithm):
    X, scale = rows_of(400), scales_of(kind)[0]
    given = {"mean_prior": [1.0, 0.0], "mean_precision_prior": 2.0, "degrees_of_freedom_prior": 6.0, "covariance_prior": scale}
    start = {"means_init": MEANS, "weights_init": [0.5, 0.5], "weight_concentration_prior": 2.0, "algorithm": algorithm}
    own = {name: np.stack([np.asarray(value)] * 2) for name, value in given.items()} | {
        "weight_concentration_prior": [2.0, 2.0]
    }
    one, two = (mixture(kind, **start | prior).fit(X) for prior in (given, own))
    np.testing.assert_allclose(one.means_, two.means_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(one.covariances_, two.covariances_, rtol=1e-7)
    np.testing.assert_allclose(one.weights_, two.weights_, rtol=1e-7)
    ends = [model.credible_intervals(method="mean-field").means for model in (one, two)]
    np.testing.assert_allclose(*ends, rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_passes_of_variational_bayes_never_lower_the_bound(kind):
    bounds = [mixture(kind, algorithm="vb", tol=0.0, max_iter=n).fit(rows_of(80)).lower_bound_ for n in range(1, 12)]
    assert np.all(np.diff(bounds) > -1e-10) and bounds[-1] > bounds[0]


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_the_belief_is_the_prior_of_each_component_and_its_rows(kind):
    model = mixture(kind, warm_up=60).partial_fit(rows_of(2000))
    counts = model.weight_concentration_ - ALPHA
    np.testing.assert_allclose(model.mean_precision_, PRECISIONS + counts)
    np.testing.assert_allclose(model.degrees_of_freedom_, DOFS + counts)
    strong = mixture(kind, mean_precision_prior=[1e9, 1e-3]).fit(rows_of(2000))
    np.testing.assert_allclose(strong.means_[0], MEANS[0], atol=1e-4)
    assert np.abs(strong.means_[1] - MEANS[1]).max() > 1e-3


@pytest.mark.parametrize("options", [{}, {"covariance_type": "diag"}, {"algorithm": "vb", "covariance_type": "spherical"}])
def test_laws(options):
    kind = options.get("covariance_type", "full")
    check_laws(mixture(kind, **{name: value for name, value in options.items() if name != "covariance_type"}), rows_of(400))


def test_files_merges_and_pruning(tmp_path):
    model = mixture().partial_fit(rows_of(500))
    model.save(tmp_path / "model.hw")
    again = hw.load(tmp_path / "model.hw")
    one, two = (each.partial_fit(rows_of(300, seed)).means_ for each, seed in ((model, 1), (again, 1)))
    np.testing.assert_array_equal(one, two)
    start = mixture().partial_fit(rows_of(200))
    parts = [start.branch().partial_fit(rows_of(300, seed)) for seed in (1, 2)]
    assert hw.merge(parts).n_samples_seen_ == 800
    small = mixture(weight_concentration_prior=[50.0, 1.0]).fit(rows_of(30)).prune(0.3)
    assert (
        small.n_components == 1 and np.shape(small.mean_prior) == (1, 2) and small.weight_concentration_prior.tolist() == [50.0]
    )
    small.partial_fit(rows_of(100))


@pytest.mark.parametrize("kind", [hw.MultinomialMixture, hw.PoissonMixture])
def test_weights_of_other_mixtures_have_priors_of_their_own(kind):
    rows = np.random.default_rng(0).poisson([[1.0, 5.0], [6.0, 2.0]], size=(400, 2, 2)).reshape(-1, 2)
    one = kind(2, weight_concentration_prior=[3.0, 3.0], random_state=0).fit(rows)
    two = kind(2, weight_concentration_prior=3.0, random_state=0).fit(rows)
    np.testing.assert_array_equal(one.weights_, two.weights_)
    heavy = kind(2, weight_concentration_prior=[1e6, 1.0], random_state=0).fit(rows)
    assert heavy.weights_[0] > 0.99


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weight_concentration_prior": [1.0, 2.0, 3.0]}, r"weight_concentration_prior' should have the shape of \(2,\)"),
        ({"weight_concentration_prior": [1.0, -2.0]}, "weight_concentration_prior must be positive, got -2"),
        ({"mean_precision_prior": [1.0]}, r"mean_precision_prior' should have the shape of \(2,\)"),
        ({"degrees_of_freedom_prior": [0.5, 5.0]}, "degrees_of_freedom_prior must be greater than 1 for 2 columns, got 0.5"),
        ({"covariance_prior": -SCALES}, "covariance_prior must be symmetric and positive definite"),
        (
            {"covariance_type": "tied", "covariance_prior": None},
            "mean_prior must be that of all components with covariance_type='tied'",
        ),
        ({"scale_columns": True}, "scale_columns must be False where mean_prior says something of each component"),
        ({"resolution": "auto"}, "resolution must be None where mean_prior says something of each component"),
        (
            {"n_components": "auto"},
            "n_components must be a number where weight_concentration_prior says something of each component",
        ),
        ({"algorithm": "moment-matching"}, "cannot be learned by 'moment-matching'"),
    ],
)
def test_what_makes_no_sense_is_refused(options, words):
    model = mixture().set_params(**options)
    with pytest.raises(ValueError, match=words) as told:
        model.partial_fit(rows_of(100))
    assert "\n" not in str(told.value) and not model._has_state()
