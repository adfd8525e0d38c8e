"""Settings that are changed in mid-stream: in whole streams, in shards and in files."""

import numpy as np
import pytest
from every_model import KINDS, stream_of
from sklearn.base import clone

import headwater as hw
from headwater.core.records import arrays_of

RNG = np.random.default_rng(0)
X = np.where(RNG.random((600, 1)) < 0.5, 0.0, 4.0) + RNG.normal(size=(600, 2))
DOCUMENTS = RNG.poisson(0.8, size=(400, 12)).astype(float) + np.eye(12)[RNG.integers(12, size=400)]


@pytest.mark.parametrize("change", [{"reservoir": 0}, {"algorithm": "boem"}, {"algorithm": "online-em"}], ids=str)
@pytest.mark.parametrize("rows", [20, 30, 300])
def test_shards_stop_their_search_with_the_stream(change, rows, tmp_path):
    model = hw.GaussianMixture(2, warm_up=60, random_state=0, parts=3).partial_fit(X[:300])
    model.set_params(**change).partial_fit(X[300 : 300 + rows])
    model.save(tmp_path / "model.hw")
    loaded = hw.load(tmp_path / "model.hw")
    np.testing.assert_array_equal(loaded.means_, model.means_)
    assert loaded.n_samples_seen_ == 300 + rows


def test_settings_of_a_model_hold_from_the_next_row_on():
    def learned(**change):
        model = hw.LatentDirichletAllocation(2, warm_up=60, random_state=0).partial_fit(DOCUMENTS[:200])
        return model.set_params(**change).partial_fit(DOCUMENTS[200:])

    np.testing.assert_array_equal(learned().doc_topic_prior_, np.full(2, 0.5))
    assert not np.array_equal(learned(doc_topic_prior="learn").doc_topic_prior_, np.full(2, 0.5))


def test_a_lag_holds_from_the_next_row_on():
    def scores(**change):
        model = hw.GaussianHMM(2, warm_up=120, random_state=0, algorithm=hw.OnlineEM(batch_size=30)).partial_fit(X[:300])
        return model.set_params(**change).update(X[300:])

    assert not np.array_equal(scores(), scores(lag=3))


def test_rows_are_counted_whatever_parameters_are_set():
    model = hw.GaussianHMM("auto", warm_up=500, random_state=0).partial_fit(X[:90]).set_params(half_life=-1)
    assert model.n_samples_seen_ == 90 and model.holds_rows_


ONLINE = ("auto", "soem", "boem", "online-em", "simulated-em", "online-vb", "quasi-bayes")


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("other", ONLINE)
def test_moment_matching_neither_begins_nor_ends_in_mid_stream(other, parts):
    for change in ((other, "moment-matching"), ("moment-matching", other)):
        made = hw.GaussianMixture(2, algorithm=change[0], warm_up=60, random_state=0, parts=parts)
        model, twin = made.partial_fit(X[:200]), clone(made).partial_fit(X[:200])
        with pytest.raises(ValueError, match=f"algorithm cannot change from '{change[0]}' to '{change[1]}' once learning"):
            model.set_params(algorithm=change[1]).partial_fit(X[200:])
        with pytest.raises(ValueError, match="algorithm cannot change"):
            model.learn_one(X[200])
        assert model.n_samples_seen_ == 200
        model.set_params(algorithm=change[0]).partial_fit(X[200:])
        np.testing.assert_array_equal(model.means_, twin.partial_fit(X[200:]).means_)
    waiting = hw.GaussianMixture(2, algorithm=other, warm_up=60, random_state=0, parts=parts).partial_fit(X[:40])
    waiting.set_params(algorithm="moment-matching").partial_fit(X[40:200])
    begun = hw.GaussianMixture(2, algorithm="moment-matching", warm_up=60, random_state=0, parts=parts).partial_fit(X[:200])
    np.testing.assert_array_equal(waiting.means_, begun.means_)


PRIORS = {
    "gaussian": {
        "weight_concentration_prior": 2.0, "mean_prior": np.zeros(3), "mean_precision_prior": 2.0, "reg_covar": 1.0,
        "degrees_of_freedom_prior": 9.0, "covariance_prior": np.eye(3),
        "resolution": 0.5,
    },
    "multinomial": {"weight_concentration_prior": 2.0, "probability_concentration_prior": 2.0},
    "markov": {"weight_concentration_prior": 2.0, "startprob_prior": 2.0, "transmat_prior": 2.0},
    "regression": {
        "weight_concentration_prior": 2.0, "coef_prior": np.zeros(2), "coef_precision_prior": 2.0, "reg_covar": 1.0,
        "reg_noise": 1.0, "degrees_of_freedom_prior": 9.0, "noise_variance_prior": 1.0,
    },
    "topics": {"doc_topic_prior": 2.0, "topic_word_prior": 2.0},
    "spectra": {"component_prior": 2.0},
    "chain": {
        "startprob_prior": 2.0, "transmat_prior": 2.0, "mean_prior": np.zeros(2), "mean_precision_prior": 2.0,
        "degrees_of_freedom_prior": 9.0, "covariance_prior": np.ones(2), "min_covar": 1.0,
    },
    "symbols": {"startprob_prior": 2.0, "transmat_prior": 2.0, "emissionprob_prior": 2.0},
}  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, priors in PRIORS.items() for name in priors])
def test_a_prior_is_that_of_the_start(kind, name):
    first, *others = stream_of(kind, (40, 100, 30))
    model = KINDS[kind][0]().partial_fit(**first)
    before = getattr(model, name)
    model.set_params(**{name: PRIORS[kind][name]}).partial_fit(**others[0])  # which takes the value in the warm-up
    with pytest.raises(ValueError, match=f"{name} cannot change from .* once learning has started"):
        model.set_params(**{name: before}).partial_fit(**others[1])
    assert model.n_samples_seen_ == 140


def test_every_prior_is_refused_or_known_to_work():
    works = {"weight_shape", "weight_scale"}  # a setting of the topic model, not of its components
    for kind, priors in PRIORS.items():
        traits = KINDS[kind][0]()._traits
        assert set(priors) == {*traits.prior_parameters, *traits.floor_parameters}
        others = {"half_life", "lag", "vocabulary", *traits.shape_parameters, *works}
        assert set(priors) == set(traits.merge_parameters) - others


def test_passes_take_another_floor_but_no_other_prior():
    model = hw.GaussianMixture(2, random_state=0, warm_start=True).fit(X)
    assert (model.set_params(reg_covar=1.0).fit(X).covariances_[:, 0, 0] > 1.0).all()
    with pytest.raises(ValueError, match=r"mean_precision_prior cannot change from None to 5\.0 once"):
        model.set_params(mean_precision_prior=5.0).fit(X)
    model.set_params(warm_start=False).fit(X)


def test_a_reservoir_becomes_as_large_as_it_is_to_be():
    def kept(model):
        return len(model._runtime.state.records["reservoir"])

    model = hw.GaussianMixture(2, warm_up=60, random_state=0).partial_fit(X[:300])
    assert kept(model.set_params(reservoir=100).partial_fit(X[300:310])) == 100
    small = hw.GaussianMixture(2, warm_up=60, random_state=0, reservoir=100).partial_fit(X[:310])
    found, wanted = (one._runtime.state.records["reservoir"] for one in (model, small))
    np.testing.assert_array_equal(found.batch.X, wanted.batch.X)  # as if the reservoir had always been so small
    assert 100 < kept(model.set_params(reservoir=200).partial_fit(X[310:400])) < 200
    assert model._runtime.state.records["reservoir"].ranks.max() < found.limit  # rows that were dropped do not come back


CHANGES = {
    "gaussian": {"weight_concentration_prior": 50.0},
    "multinomial": {"probability_concentration_prior": 50.0},
    "markov": {"transmat_prior": 50.0},
    "regression": {"noise_variance_prior": 50.0},
    "topics": {"topic_word_prior": 50.0},
    "chain": {"transmat_prior": 50.0},
    "symbols": {"transmat_prior": 50.0},
}


@pytest.mark.parametrize("n_components", [2, "auto"])
@pytest.mark.parametrize("kind", CHANGES)
def test_what_was_read_in_the_warm_up_does_not_outlive_a_setting(kind, n_components):
    chunk, later = stream_of(kind, (35, 5))

    def learned(read):
        model = KINDS[kind][0]().set_params(n_components=n_components, warm_up=300).partial_fit(**chunk)
        if read:
            model._reader.quick_parameters()
        return model.set_params(**CHANGES[kind]).partial_fit(**later)._reader.quick_parameters()

    wanted, found = (list(arrays_of(learned(read))) for read in (False, True))
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_settings_hold_from_the_next_row_on_where_rows_wait_for_a_race():
    def scores(*reads):
        model = hw.GaussianHMM("auto", warm_up=500, random_state=0).partial_fit(X[:40])
        found = [model.score_samples(X[:5])[0] for _ in reads[:1]]
        model.set_params(transmat_prior=1e4)
        return [*found, model.score_samples(X[:5])[0]]

    assert scores(1)[-1] == scores()[-1] == scores(1)[0]
    model = hw.GaussianHMM("auto", warm_up=500, random_state=0).partial_fit(X[:40]).set_params(half_life=-1.0)
    assert np.isfinite(model.score_samples(X[:5])[0])


@pytest.mark.covering("kind")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_threads", ["auto", 0, 1.5, True])
def test_a_number_of_threads_is_checked_by_who_learns_and_by_who_answers(kind, n_threads):
    chunk = stream_of(kind, (100,))[0]
    with pytest.raises(ValueError, match="n_threads"):
        KINDS[kind][0]().set_params(n_threads=n_threads).partial_fit(**chunk)
    model = KINDS[kind][0]().partial_fit(**chunk).set_params(n_threads=n_threads)
    answers = {"X": chunk["X"]} | ({} if chunk.lengths is None else {"lengths": chunk.lengths})
    answers |= {"y": chunk["y"]} if model._traits.chained and model._traits.target_columns else {}
    for name in ("score_samples", "predict_proba", "transform", "predict", "perplexity"):
        if hasattr(model, name) and not (kind == "regression" and name in ("score_samples", "predict")):
            with pytest.raises(ValueError, match="n_threads must be None, for all cores, or an integer of at least 1, got"):
                getattr(model, name)(**answers)


def test_the_first_rows_of_a_reservoir_may_all_propose():
    """Without rows that judge there is no search."""
    model = hw.GaussianMixture(1, warm_up=60, random_state=0).fit(X[:100]).set_params(half_life="auto")
    for row in X[100:112]:
        assert np.isfinite(model.partial_fit(row[None]).means_).all()
