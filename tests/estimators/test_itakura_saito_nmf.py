"""Itakura-Saito NMF: recovery, the steps of EM, and invalid input."""

import pickle

import numpy as np
import pytest
from naive import spectra as naive
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from sklearn.base import clone

import headwater as hw
from headwater.checks import check_estimator
from headwater.core.batch import Batch
from headwater.core.contracts import Inference
from headwater.models.spectra import Spectra
from headwater.models.spectra_records import SpectraParameters, SpectraStatistics

SHAPE = 2.0


def bumps(k, bins):
    at = np.arange(bins)
    centres = (np.arange(k)[:, None] + 0.5) * bins / k
    return np.exp(-0.5 * ((at - centres) / (0.25 * bins / k)) ** 2) + 0.02


def frames(n, k=3, bins=24, seed=0):
    return naive.simulate(bumps(k, bins), SHAPE, 1.0, n, np.random.default_rng(seed))


def cosines(found, true):
    found, true = (table / np.linalg.norm(table, axis=1, keepdims=True) for table in (found, true))
    table = found @ true.T
    return table[linear_sum_assignment(-table)]


@pytest.fixture(scope="module")
def fitted():
    return hw.ItakuraSaitoNMF(3, random_state=0).partial_fit(frames(2000)[0])


# What is recovered


@pytest.mark.parametrize(("algorithm", "rows"), [("auto", 2000), ("simulated-em", 4000)])
def test_components_are_recovered_in_a_stream(algorithm, rows):
    Y, weights = frames(rows, seed=1)
    model = hw.ItakuraSaitoNMF(3, random_state=1, algorithm=algorithm)
    for chunk in np.array_split(Y, 9):
        model.partial_fit(chunk)
    assert cosines(model.components_, bumps(3, 24)).min() > 0.97
    assert model.weight_shape_ == pytest.approx(SHAPE, rel=0.25)
    assert model.divergence(Y) < 0.58
    order = linear_sum_assignment(-model.components_ @ bumps(3, 24).T)[1]
    logs = np.log(model.transform(Y[:500])), np.log(weights[:500])
    for k in range(3):
        assert np.corrcoef(logs[0][:, k], logs[1][:, order[k]])[0, 1] > 0.8


@pytest.mark.parametrize(
    "sampler", [{"sampler": "gibbs"}, {"kappa": 2.0, "burn_in": 20, "n_samples": 5}, {"rao_blackwell": False}]
)
def test_other_samplers_recover_them(sampler):
    Y, _ = frames(800, seed=2)
    model = hw.ItakuraSaitoNMF(3, random_state=0, algorithm=hw.SimulatedEM(batch_size=10, **sampler)).fit(Y)
    assert cosines(model.components_, bumps(3, 24)).min() > 0.9
    assert np.isnan(model.acceptance_rate_) if sampler.get("sampler") == "gibbs" else 0.1 < model.acceptance_rate_ < 0.95


def test_fit_makes_passes_until_the_score_settles():
    Y, _ = frames(600, seed=3)
    model = hw.ItakuraSaitoNMF(3, random_state=0).fit(Y)
    assert model.converged_
    assert 2 < model.n_iter_ < 20
    assert model.lower_bounds_[-1] > model.lower_bounds_[0]
    assert model.n_samples_seen_ == 600
    assert cosines(model.components_, bumps(3, 24)).min() > 0.93


# The steps of EM


def parameters_of(theta, shape):
    return SpectraParameters(theta, theta.mean(axis=1), np.array([shape]), np.zeros(1))


def test_plain_steps_are_those_of_the_paper():
    """The stream equals theta <- (1 - g) theta + g E|c|^2 / h, with an E-step by a sum over a grid (001, eq. A8)."""
    rng = np.random.default_rng(4)
    Y, _ = naive.simulate(rng.gamma(0.7, size=(2, 4)) + 0.05, 2.5, 1.0, 90, rng)
    algorithm = hw.SimulatedEM(batch_size=30, burn_in=10, n_samples=400, average=False)
    model = hw.ItakuraSaitoNMF(2, weight_shape=2.5, algorithm=algorithm, warm_up=30, random_state=0).partial_fit(Y[:30])
    theta = model._state.parameters.powers
    model.partial_fit(Y[30:])
    for t, batch in enumerate((Y[30:60], Y[60:]), start=2):
        step = (t + 2.0) ** -0.6
        mean = np.mean([naive.posterior_means(y, theta, 2.5, 1.0, points=150)[3] for y in batch], axis=0)
        theta = (1.0 - step) * theta + step * mean
    np.testing.assert_allclose(model._state.parameters.powers, theta, rtol=0.02)


def test_draws_do_not_bias_the_scale_and_the_mode_does():
    """At the truth the statistic has the mean of the truth; with modes in place of draws, spectra grow."""
    theta = bumps(2, 6)
    Y, _ = naive.simulate(theta, SHAPE, 1.0, 4000, np.random.default_rng(5))
    model, truth = Spectra(2, SHAPE), parameters_of(theta, SHAPE)
    inference = Inference("simulated", "metropolis", 5, 5, 0.0)
    summary = model.summarize(truth, Batch(Y), inference=inference)
    assert (summary.mean.parts / theta).mean() == pytest.approx(1.0, abs=0.02)
    guessed = model.mode(truth, Batch(Y), likelihood=False)
    mean = np.mean([naive.statistic(y, theta, h) for y, h in zip(Y, guessed, strict=True)], axis=0)
    assert (mean / theta).mean() > 1.1


def test_the_longer_step_stays_at_the_truth():
    theta = 3.0 * bumps(2, 6)
    Y, _ = naive.simulate(theta, SHAPE, 1.0, 6000, np.random.default_rng(6))
    model = Spectra(2)
    prior, _ = model.first(Batch(Y), np.random.default_rng(0))
    inference = Inference("simulated", "metropolis", 5, 5, 0.0)
    summary = model.summarize(parameters_of(theta, SHAPE), Batch(Y), inference=inference)
    for name in ("surrogate", "mode"):
        found = model.readout(name, prior, summary.mean, summary.size)
        np.testing.assert_allclose(found.powers, theta, rtol=0.15)
        assert found.shape[0] == pytest.approx(SHAPE, rel=0.1)


@pytest.mark.parametrize("name", ["mode", "surrogate"])
def test_priors_are_rows(name):
    """The mode is (S + b'/n) / (1 + (a' + 1)/n); where rows carry no information, both readouts are the prior."""
    Y, _ = frames(300)
    model = Spectra(3, SHAPE, prior_rows=4.0)
    prior, parameters = model.first(Batch(Y), np.random.default_rng(0))
    mean = model.summarize(parameters, Batch(Y), inference=Inference("simulated", "metropolis", 1, 1, 0.0)).mean
    expected = prior.scale * np.tile(prior.spectrum, (3, 1))
    np.testing.assert_allclose(model.readout(name, prior, mean, 1e-6).powers, expected, rtol=1e-3)
    if name == "mode":
        shape, scale, n = 3.0, 4.0 * prior.scale * prior.spectrum, 300.0
        found = model.readout(name, prior, mean, n).powers
        np.testing.assert_allclose(found, (mean.parts + scale / n) / (1.0 + (shape + 1.0) / n))
    free = Spectra(3, SHAPE).readout(name, prior, mean, 1e12).powers
    np.testing.assert_allclose(model.readout(name, prior, mean, 1e12).powers, free, rtol=1e-6)


def test_the_shape_is_that_of_the_variance():
    for shape in (0.15, 0.5, 1.0, 3.0, 20.0):
        logs = -np.log(np.random.default_rng(0).gamma(shape, size=(200_000, 2)))
        moments = np.stack([logs.mean(axis=0), (logs**2).mean(axis=0)])
        statistics = SpectraStatistics(np.ones(1), *np.ones((3, 2, 4)), moments, np.ones(1), np.zeros(1))
        assert Spectra(2)._learned_shape(statistics, 2e5) == pytest.approx(shape, rel=0.02)


# Laws


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn():
    check_estimator(hw.ItakuraSaitoNMF(2, max_iter=3), frames(120, bins=4)[0])


def test_branches_merge():
    Y, _ = frames(3000, seed=8)
    base = hw.ItakuraSaitoNMF(3, random_state=0).partial_fit(Y[:500])
    parts = [base.branch().partial_fit(Y[500 + part :: 3]) for part in range(3)]
    whole = hw.merge(parts)
    assert whole.n_samples_seen_ == sum(part.n_samples_seen_ - 500 for part in parts) + 500
    assert cosines(whole.components_, bumps(3, 24)).min() > 0.97
    assert whole.score(Y) > np.mean([part.score(Y) for part in parts]) - 0.05


def test_strangers_are_matched():
    Y, _ = frames(3000, seed=9)
    one, other = (hw.ItakuraSaitoNMF(3, random_state=seed).partial_fit(Y[seed::2]) for seed in (0, 1))
    both = hw.merge([one, other])
    match = both.merge_report_.matches[0]
    assert not match.distant and not match.ambiguous
    np.testing.assert_array_equal(
        match.components if both.merge_report_.reference == 0 else np.argsort(match.components),
        linear_sum_assignment(-one.components_ @ other.components_.T)[1],
    )
    assert cosines(both.components_, bumps(3, 24)).min() > 0.97


def test_threads_change_nothing_where_rows_are_wide():
    Y, _ = naive.simulate(bumps(8, 512), SHAPE, 1.0, 260, np.random.default_rng(18))
    one, two = (hw.ItakuraSaitoNMF(8, random_state=0, n_threads=threads).partial_fit(Y) for threads in (1, 2))
    assert len(one._model._cuts(20, 512, one._learner.plan.inference)) > 1
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.score_samples(Y[:40]), two.score_samples(Y[:40]))


def test_weights_count():
    Y, _ = frames(600, seed=10)
    weights = np.where(np.arange(600) % 2, 1.0, 0.0)
    plain = hw.ItakuraSaitoNMF(3, random_state=0, warm_up=100).partial_fit(Y[1::2])
    weighted = hw.ItakuraSaitoNMF(3, random_state=0, warm_up=100).partial_fit(Y, sample_weight=weights)
    np.testing.assert_array_equal(plain.components_, weighted.components_)
    heavy = hw.ItakuraSaitoNMF(3, random_state=0, warm_up=100).partial_fit(Y, sample_weight=2.0)
    assert heavy._read().stream.progress.weight_seen == 1200.0


# Units, zeros and silence


@pytest.mark.covering
@pytest.mark.parametrize("algorithm", ["auto", "simulated-em"])
@pytest.mark.parametrize("factor", [1e-12, 1e12, 1e-60, 1e60])
def test_units_change_nothing(algorithm, factor):
    Y, _ = frames(400, seed=11)
    one, other = (hw.ItakuraSaitoNMF(3, random_state=0, algorithm=algorithm).fit(X) for X in (Y, factor * Y))
    np.testing.assert_allclose(other.components_, one.components_, rtol=1e-6)
    np.testing.assert_allclose(other.weight_scale_, factor * one.weight_scale_, rtol=1e-6)
    assert other.n_iter_ == one.n_iter_
    assert other.divergence(factor * Y) == pytest.approx(one.divergence(Y))
    scores, others = one.score_samples(Y), other.score_samples(factor * Y)
    np.testing.assert_allclose(scores - others, 24.0 * np.log(factor), rtol=1e-6)
    np.testing.assert_allclose(other.transform(factor * Y), factor * one.transform(Y), rtol=1e-6)


@pytest.mark.parametrize("algorithm", ["auto", "simulated-em"])
def test_zeros_and_silence(algorithm):
    Y, _ = frames(1000, seed=12)
    Y[::3] = 0.0
    Y[:, 5] = 0.0
    Y[1::7, 11] = 0.0
    model = hw.ItakuraSaitoNMF(3, random_state=0, algorithm=algorithm).partial_fit(Y)
    others = np.delete(np.arange(24), [5, 11])
    assert cosines(model.components_[:, others], bumps(3, 24)[:, others]).min() > 0.9
    for answer in (model.transform(Y), model.score_samples(Y), model.separate(Y), model.divergence(Y)):
        assert np.isfinite(answer).all()


def test_nothing_but_silence_and_then_sound():
    Y, _ = frames(3000, seed=13)
    model = hw.ItakuraSaitoNMF(3, random_state=0).partial_fit(np.zeros((2000, 24)))
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.transform(Y[:5])).all()
    model.partial_fit(Y)
    assert model.divergence(Y) < 0.62


@pytest.mark.parametrize("weight", ["nan", "inf", "negative"])
def test_bad_rows_change_nothing(fitted, weight):
    model = pickle.loads(pickle.dumps(fitted))
    bad = frames(4)[0]
    bad[2, 3] = {"nan": np.nan, "inf": np.inf, "negative": -1.0}[weight]
    with pytest.raises(ValueError, match="row 2") as caught:
        model.partial_fit(bad)
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(model.components_, fitted.components_)


@pytest.mark.parametrize(
    "settings",
    [{"weight_shape": 0.0}, {"weight_shape": "auto"}, {"weight_scale": -1.0}, {"component_prior": -1.0}, {"algorithm": "vb"}],
    ids=str,
)
def test_bad_parameters_are_refused(settings):
    with pytest.raises(ValueError):
        hw.ItakuraSaitoNMF(2, **settings).fit(frames(50)[0])


# Answers


@pytest.mark.parametrize("inference", ["mean", "map", "ml"])
def test_parts_sum_to_the_frames(fitted, inference):
    Y, _ = frames(50, seed=14)
    Y[3] = 0.0
    parts = fitted.separate(Y, inference)
    assert parts.shape == (3, 50, 24)
    np.testing.assert_allclose(parts.sum(axis=0), Y, rtol=1e-12)
    assert (parts >= 0.0).all()


def test_weights_make_the_frames_again(fitted):
    rng = np.random.default_rng(15)
    mean = 1.0 / rng.gamma(SHAPE, size=(40, 3)) @ fitted.components_
    again = fitted.inverse_transform(fitted.transform(mean, "ml"))
    np.testing.assert_allclose(again, mean, rtol=0.02)
    Y = mean * rng.exponential(size=mean.shape)
    for inference in ("mean", "map"):
        v = fitted.inverse_transform(fitted.transform(Y, inference))
        assert np.log(v / mean).std() < 0.5


def test_what_is_refused(fitted):
    with pytest.raises(ValueError, match="inference must be 'mean', 'map' or 'ml', got 'mode'"):
        fitted.transform(frames(2)[0], "mode")
    with pytest.raises(ValueError, match="a weight for each of the 3 components, got 2"):
        fitted.inverse_transform(np.ones((2, 2)))
    with pytest.raises(TypeError, match="dense rows"):
        fitted.transform(csr_array(np.ones((2, 24))))


def test_a_row_by_itself_gets_the_same_answer(fitted):
    Y, _ = frames(30, seed=16)
    np.testing.assert_array_equal(fitted.transform(Y)[7:9], fitted.transform(Y[7:9]))
    np.testing.assert_array_equal(fitted.score_samples(Y)[7:9], fitted.score_samples(Y[7:9]))
    np.testing.assert_allclose(fitted.transform_one(Y[7]), fitted.transform(Y[7:8])[0])
    assert fitted.score_one(Y[7]) == pytest.approx(fitted.score_samples(Y[7:8])[0])


def test_given_scales_are_units():
    Y, _ = frames(800, seed=17)
    learned = hw.ItakuraSaitoNMF(3, random_state=0).partial_fit(Y)
    given = hw.ItakuraSaitoNMF(3, weight_scale=5.0, random_state=0).partial_fit(Y)
    np.testing.assert_array_equal(given.weight_scale_, 5.0)
    np.testing.assert_allclose(learned.components_.mean(axis=1), 1.0)
    for model in (learned, given):
        np.testing.assert_allclose(
            model.weight_scale_[:, None] * model.components_, learned.weight_scale_[:, None] * learned.components_
        )
        np.testing.assert_allclose(
            model.inverse_transform(model.transform(Y[:9])), learned.inverse_transform(learned.transform(Y[:9]))
        )


def test_samples_are_like_the_rows(fitted):
    X, weights = fitted.sample(3000)
    assert X.shape == (3000, 24) and weights.shape == (3000, 3)
    logs = -np.log(weights)
    expected = 1.0 / np.random.default_rng(0).gamma(fitted.weight_shape_, size=100_000)
    assert logs.std(axis=0) == pytest.approx(np.full(3, np.log(expected).std()), rel=0.1)
    assert fitted.divergence(X) == pytest.approx(fitted.divergence(frames(2000)[0]), abs=0.02)


def test_the_display(fitted):
    assert "loudest bins" in repr(fitted)
    assert fitted._describer.shares().sum() == pytest.approx(1.0)
    assert "compon" in fitted._repr_html_inner()
    assert list(clone(fitted).fit(frames(60)[0]).get_feature_names_out()) == [f"itakurasaitonmf{k}" for k in range(3)]


def test_a_bin_that_wakes_up_after_learning():
    Y, _ = frames(400, seed=12)
    quiet = Y.copy()
    quiet[:, 2] = 0.0
    model = hw.ItakuraSaitoNMF(3, random_state=0).fit(quiet)
    np.testing.assert_allclose(model.separate(Y).sum(axis=0), Y, rtol=1e-9)
    assert model.divergence(Y) == pytest.approx(model.divergence(quiet))


@pytest.mark.parametrize("shape", [0.01, 0.0, 51.0])
def test_shapes_out_of_range_are_refused(shape):
    with pytest.raises(ValueError, match="weight_shape"):
        hw.ItakuraSaitoNMF(2, weight_shape=shape).fit(frames(50)[0])
