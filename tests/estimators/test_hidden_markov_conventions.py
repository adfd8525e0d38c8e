"""Hidden Markov models: forecasts, and the conventions of hmmlearn and scikit-learn."""

import logging
import pickle

import numpy as np
import pytest
import sklearn
from left_right_chains import (
    ALGORITHMS,
    FIRST,
    GIVEN,
    KINDS,
    LENGTHS,
    MIDDLES,
    ROWS,
    SYMBOLS,
    chain,
    every_kind,
    left_right,
    set_by_hand,
)
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import headwater as hw

# Forecasts


def following(model, rows, lengths=None):
    states = model.predict_proba(rows, lengths)[-1]
    return states @ model.transmat_


@pytest.mark.covering("algorithm")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@every_kind
def test_after_a_fit_what_comes_next_follows_its_last_sequence(kind, algorithm, tmp_path):
    model, rows = chain(kind, algorithm=algorithm)
    model.fit(rows, lengths=LENGTHS)
    wanted = following(model, rows, LENGTHS)
    assert np.abs(wanted - model.startprob_).max() > 0.05
    model.save(tmp_path / "model.hw")
    for one in (model, hw.load(tmp_path / "model.hw"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(one.next_state_proba(), wanted, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(model.next_state_proba(X=rows[-LENGTHS[-1] :]), wanted, rtol=1e-9, atol=1e-14)
    other = rows[: LENGTHS[0] // 3]
    np.testing.assert_allclose(model.next_state_proba(X=other), following(model, other), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(model.next_state_proba("new"), model._position()[0].start, rtol=1e-9)
    for options in ({}, {"X": other}):
        states, found = model.next_state_proba(**options), model.next_distribution(**options)
        if kind == "symbols":
            np.testing.assert_allclose(found, states @ model.emissionprob_, rtol=1e-12)
        else:
            np.testing.assert_allclose(found[0], states @ model.means_, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(found[1], found[1].T)
    with pytest.raises(ValueError, match="give one of them"):
        model.next_state_proba("new", X=other)
    with pytest.raises(ValueError, match=r"X|symbol|column"):
        model.next_distribution(X=np.ones((3, 5)))


def test_what_comes_next_is_of_the_stream_once_it_goes_on():
    model, rows = chain("diag")
    model.fit(rows)
    np.testing.assert_allclose(model.branch().next_state_proba(), model.startprob_)  # whose sequences are closed
    model.partial_fit(rows[:30])
    states = model.filter(rows[:30], key="new")[-1]
    np.testing.assert_allclose(model.next_state_proba(), states @ model._position()[0].transitions, rtol=1e-9)
    model.close()
    np.testing.assert_allclose(model.next_state_proba(), model._position()[0].start)


@pytest.mark.parametrize("end", [[0.4, 0.4, 0.4], [0.5, 0.5], [1.5, -0.5, 0.0]])
def test_a_file_with_a_wrong_end_of_a_sequence_is_refused(end, tmp_path):
    model, rows = chain("diag")
    model.fit(rows)._end = np.array(end)
    model.save(tmp_path / "model.hw")
    with pytest.raises(ValueError, match=r"no probabilities|number of states"):
        hw.load(tmp_path / "model.hw")


def test_what_comes_next_can_be_asked_of_a_chain_set_by_hand():
    model = set_by_hand(hw.GaussianHMM(3), "stmc")
    np.testing.assert_array_equal(model.next_state_proba(), GIVEN["startprob_"])
    np.testing.assert_allclose(model.next_state_proba(X=ROWS[:7]), following(model, ROWS[:7]), rtol=1e-12)
    np.testing.assert_allclose(model.next_distribution(X=ROWS[:1])[0], following(model, ROWS[:1]) @ model.means_, rtol=1e-12)


# Conventions of hmmlearn and scikit-learn


def overwritten(caplog):
    """Return what was told, but for a line about kernels that are compiled."""
    return [found for record in caplog.records if "overwritten" in (found := record.getMessage())]


@every_kind
def test_a_parameter_that_is_overwritten_is_told_of(kind, caplog):
    model, rows = chain(kind)
    model.startprob_ = FIRST
    with caplog.at_level(logging.WARNING, "headwater"):
        model.fit(rows)
    assert "'startprob_' attribute is set, it will be overwritten" in caplog.text
    caplog.clear()
    model.fit(rows)
    assert not overwritten(caplog)
    for learn in (
        lambda model: model.partial_fit(rows),
        lambda model: model.warm_start_from(rows),
        lambda model: model.learn_one(rows[0]),
    ):
        caplog.clear()
        model, _ = chain(kind)
        learn(set_by_hand(model, "t"))
        assert ["transmat_" in one for one in overwritten(caplog)] == [True]
    caplog.clear()
    left_right(kind)[0].fit(rows)
    assert not overwritten(caplog)


@every_kind
def test_implementations_are_one_and_the_same(kind):
    fits = [chain(kind, implementation=word)[0].fit(chain(kind)[1]) for word in ("log", "scaling")]
    np.testing.assert_array_equal(fits[0].transmat_, fits[1].transmat_)
    with pytest.raises(ValueError, match="implementation"):
        chain(kind, implementation="fast")[0].fit(chain(kind)[1])


@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 1, 1, 1), (3, 2), (3, 2, 2)])
def test_variances_of_spheres_are_taken_in_hmmlearns_shapes(shape):
    model = hw.GaussianHMM(3, "spherical")
    variances = np.array([1.0, 2.0, 3.0])
    model.means_ = MIDDLES
    model.covars_ = (
        variances[:, None, None] * np.eye(2)
        if shape == (3, 2, 2)
        else np.broadcast_to(variances.reshape(3, *[1] * (len(shape) - 1)), shape)
    )
    np.testing.assert_array_equal(model.covars_, variances[:, None, None] * np.eye(2))


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("spherical", np.array([[1.0, 2.0]] * 3), "same in all columns"), ("spherical", np.ones((2, 2)), "shape"),
        ("spherical", np.tile(np.diag([1.0, 2.0]), (3, 1, 1)), "multiples of the identity"),
        ("diag", np.tile([[1.0, 0.5], [0.5, 1.0]], (3, 1, 1)), "diagonal"), ("diag", np.ones(3), "shape"),
        ("tied", np.arange(1.0, 4.0)[:, None, None] * np.eye(2), "same for all states"), ("full", np.ones((3, 2)), "shape"),
        ("spherical", [-1.0, 1.0, 1.0], "positive"), ("round", np.ones(3), "covariance_type"),
    ],
)  # fmt: skip
def test_covariances_of_another_kind_are_refused(kind, value, says):
    model = hw.GaussianHMM(3, kind)
    with pytest.raises(ValueError, match=says):
        model.covars_ = value


def test_covariances_have_a_matrix_for_each_state():
    for kind in KINDS:
        model = set_by_hand(hw.GaussianHMM(3, kind), "mc")
        np.testing.assert_array_equal(model.covars_, np.tile(2.0 * np.eye(2), (3, 1, 1)))
        again = hw.GaussianHMM(3, kind, init_params="stm", n_iter=0)
        again.covars_ = model.covars_
        np.testing.assert_allclose(again.fit(ROWS).covars_, model.covars_, rtol=1e-12)


def test_the_number_of_features_is_told():
    model = hw.GaussianHMM(3)
    assert not hasattr(model, "n_features")
    model.n_features = 2
    assert model.n_features == 2
    with pytest.raises(ValueError, match="n_features"):
        model.fit(ROWS[:, :1])
    assert model.fit(ROWS).n_features == 2
    assert set_by_hand(hw.GaussianHMM(3), "m").n_features == 2
    with pytest.raises(AttributeError, match="n_features"):
        model.n_features = 3
    with pytest.raises(ValueError, match="n_features"):
        hw.GaussianHMM(3).n_features = 0
    spheres = hw.GaussianHMM(3, "spherical")
    spheres.covars_, spheres.n_features = np.ones(3), 4
    assert spheres.covars_.shape == (3, 4, 4)


def test_the_number_of_symbols_is_told_and_the_parameter_stays(tmp_path):
    model = hw.CategoricalHMM(3, random_state=0)
    assert model.n_features is None
    for _ in range(2):
        model.partial_fit(SYMBOLS)
    assert model.n_features == 4
    assert model.get_params()["n_features"] is None
    assert clone(model).n_features is None
    assert hw.CategoricalHMM(3, n_features=6, random_state=0).fit(SYMBOLS).n_features == 6
    assert set_by_hand(hw.CategoricalHMM(3), "e").n_features == 4
    model.save(tmp_path / "model.hw")
    again = hw.load(tmp_path / "model.hw")
    assert (again.n_features, again.get_params()["n_features"]) == (4, None)
    assert repr(model) == repr(again)
    assert model.set_params(n_features=5).fit(SYMBOLS).n_features == 5


def pipeline(model):
    return Pipeline([("scale", StandardScaler()), ("hmm", model)])


def test_lengths_go_through_a_pipeline():
    scaled = StandardScaler().fit_transform(ROWS)
    wanted = hw.GaussianHMM(3, random_state=0).fit(scaled, lengths=LENGTHS)
    found = pipeline(hw.GaussianHMM(3, random_state=0)).fit(ROWS, hmm__lengths=LENGTHS)
    np.testing.assert_array_equal(found[-1].means_, wanted.means_)
    np.testing.assert_array_equal(found.predict(ROWS, lengths=LENGTHS), wanted.predict(scaled, LENGTHS))
    assert found.score(ROWS) == wanted.score(scaled)
    assert pipeline(hw.GaussianHMM(3, random_state=0)).fit(ROWS).score(ROWS) < 0.0


@pytest.mark.parametrize("kind", ["diag", "symbols"])
def test_lengths_are_routed_as_metadata(kind, tmp_path):
    model, rows = chain(kind)
    scaled = rows if kind == "symbols" else StandardScaler().fit_transform(rows)
    wanted = clone(model).fit(scaled, lengths=LENGTHS)
    with sklearn.config_context(enable_metadata_routing=True):
        for method in ("fit", "score", "predict", "predict_proba", "partial_fit"):
            getattr(model, f"set_{method}_request")(lengths=True)
        steps = [("hmm", model)] if kind == "symbols" else [("scale", StandardScaler()), ("hmm", model)]
        found = clone(Pipeline(steps)).fit(rows, lengths=LENGTHS)
        np.testing.assert_array_equal(found[-1].transmat_, wanted.transmat_)
        assert found.score(rows, lengths=LENGTHS) == wanted.score(scaled, LENGTHS)
        np.testing.assert_array_equal(found.predict(rows, lengths=LENGTHS), wanted.predict(scaled, LENGTHS))
        np.testing.assert_array_equal(found.predict_proba(rows, lengths=LENGTHS), wanted.predict_proba(scaled, LENGTHS))
    found[-1].save(tmp_path / "model.hw")
    assert hw.load(tmp_path / "model.hw").score(scaled, LENGTHS) == wanted.score(scaled, LENGTHS)


def test_the_target_of_a_stream_is_not_taken_for_lengths():
    frame = pytest.importorskip("pandas").DataFrame({"a": ROWS[:3, 0], "b": ROWS[:3, 1], "y": [1.0, 1.0, 1.0]})
    model = hw.GaussianHMM(2, random_state=0)
    with pytest.raises(ValueError, match=r"comes with y, which GaussianHMM\.fit does not take"):
        model.fit(hw.stream(frame, target="y"))
    model.fit(ROWS)
    assert model.score(hw.stream(frame, target="y")) == pytest.approx(model.score(ROWS[:3]))


def test_lengths_may_come_second_or_by_name_but_once():
    model = hw.GaussianHMM(3, random_state=0).fit(ROWS, LENGTHS)
    by_name = hw.GaussianHMM(3, random_state=0).fit(ROWS, lengths=LENGTHS)
    np.testing.assert_array_equal(model.means_, by_name.means_)
    assert model.score(ROWS, LENGTHS) == model.score(ROWS, lengths=LENGTHS) == model.score(ROWS, None, LENGTHS)
    for ask in (model.fit, model.score):
        with pytest.raises(ValueError, match="twice"):
            ask(ROWS, LENGTHS, LENGTHS)


@pytest.mark.parametrize("make", [hw.GaussianHMM, hw.CategoricalHMM])
def test_what_a_model_has_can_be_listed_whatever_its_number_of_states(make):
    model = make("auto", warm_up=20, random_state=0)
    assert "partial_fit" in dir(model)
    model.partial_fit(np.random.default_rng(0).integers(3, size=(60, 1)))
    assert "transmat_" in dir(model)


@pytest.mark.parametrize("number", ["auto", "two", None, 2.5])
def test_parameters_are_set_by_hand_for_a_number_of_states(number):
    with pytest.raises(ValueError, match=r"^n_components must be a number where parameters are set by hand, got .*[o5e]"):
        hw.GaussianHMM(number).startprob_ = [0.5, 0.5]


@pytest.mark.parametrize("make", [hw.GaussianHMM, hw.CategoricalHMM])
def test_negative_probabilities_are_called_so(make):
    with pytest.raises(ValueError, match=r"^startprob_ must hold probabilities, which are not negative, got -1$"):
        make(3).startprob_ = [-1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match=r"^transmat_ must hold probabilities that sum to 1, got sums \[1\.5, 1\.0\]$"):
        make(2).transmat_ = [[1.0, 0.5], [0.5, 0.5]]


def test_lengths_and_keys_that_make_no_sense_are_refused_in_one_line():
    rows = np.zeros((200, 1))
    with pytest.raises(ValueError, match=r"^lengths must be whole numbers of at least 1, got array") as caught:
        hw.GaussianHMM(2).fit(rows, np.zeros(200, dtype=int))
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=r"^key must be a string or a whole number") as caught:
        hw.GaussianHMM(2).fit(rows).next_state_proba(np.zeros((3, 3)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("covariance_type", ["diag", "full", "tied", "spherical"])
def test_covariances_can_be_given_read_only_and_are_answered_writeable(covariance_type):
    """`np.diag` and `np.broadcast_to` return arrays that cannot be written; what is answered is the user's own."""
    rows = np.random.default_rng(0).normal(size=(300, 3))
    found = hw.GaussianHMM(2, covariance_type=covariance_type, random_state=0).fit(rows).covars_
    found.flags.writeable = False
    model = hw.GaussianHMM(2, covariance_type=covariance_type, init_params="stm", random_state=0)
    model.covars_ = found
    model.fit(rows)
    answer = model.covars_
    assert answer.flags.writeable
    answer[...] = 7.0
    assert not np.array_equal(model.covars_, answer)
