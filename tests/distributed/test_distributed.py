"""headwater.distributed.fit gives the result of `fit`, whatever the workers and the order of their work."""

import warnings
from functools import wraps

import dask
import dask.array
import dask.bag
import dask.dataframe
import numpy as np
import pandas
import pytest
from cluster_fits import assert_equal_to_rounding, fit, learned_before, short, table
from cluster_models import EXACT, KINDS, ONE_PASS, SIZES, assert_same, at_hand, delayed_at_random, model_of, on_cluster
from every_model import stream_of
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from headwater.distributed import tasks
from headwater.distributed.messages import Message
from headwater.io.files import container

# Exact passes


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
@pytest.mark.parametrize(("kind", "word"), short(EXACT, [("gaussian", "em"), ("markov", "vb"), ("symbols", "em")]))
def test_exact_passes_are_those_of_fit(clusters, kind, word):
    data, given = on_cluster(kind)
    found = fit(clusters, model_of(kind, word, max_iter=5), data, **given)
    wanted = model_of(kind, word, max_iter=5).fit(**at_hand(kind))
    assert_equal_to_rounding(found, wanted)


@pytest.mark.parametrize("word", ["em", "auto"])
def test_passes_that_are_auto_go_on_until_they_converge(clusters, word):
    data, given = on_cluster("gaussian")
    found = fit(clusters, model_of("gaussian", word, max_iter=1, tol=1e-7), data, passes="auto", **given)
    assert found.converged_ and found.n_iter_ > found.max_iter == 1


def test_exact_passes_take_weights(clusters):
    rows = np.concatenate([chunk.X for chunk in stream_of("gaussian", SIZES)])
    weights = np.random.default_rng(1).integers(0, 3, size=len(rows)).astype(float)
    cuts = (SIZES, (3,))
    data, weighed = dask.array.from_array(rows, chunks=cuts), dask.array.from_array(weights, chunks=100)  # is cut like the rows
    given = {"init_params": "random", "max_iter": 4}
    with pytest.warns(ConvergenceWarning):
        found = fit(clusters, model_of("gaussian", "em", **given), data, sample_weight=weighed)
    with pytest.warns(ConvergenceWarning):
        assert_equal_to_rounding(found, model_of("gaussian", "em", **given).fit(rows, sample_weight=weights))
    with pytest.raises(ValueError, match="sample_weight must have a value for each of the"):
        fit(clusters, model_of("gaussian", "em"), data, sample_weight=weighed[:-1])


@pytest.mark.parametrize("word", ["em", "vb"])
def test_exact_passes_take_labels_and_weights_of_a_table(clusters, word):
    rows = np.concatenate([chunk.X for chunk in stream_of("gaussian", SIZES)])
    labels = np.where(np.arange(len(rows)) % 9 == 0, (rows[:, 2] < 30.0).astype(int), -1)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=len(rows))
    frame = table(rows, label=labels, weight=weights)
    found = fit(clusters, model_of("gaussian", word), frame, label="label", weight="weight")
    wanted = model_of("gaussian", word).fit(rows, labels=labels, sample_weight=weights)
    assert list(found.feature_names_in_) == list("abc")
    assert_equal_to_rounding(found, wanted)


@pytest.mark.parametrize("word", ["em", "vb"])
def test_exact_passes_take_sequences_by_their_key(clusters, tmp_path, word):
    chunks = stream_of("chain", (50, 40, 60, 30))
    lengths = []
    for at, (chunk, share) in enumerate(zip(chunks, (20, 40, 25, 17), strict=True)):
        size = len(chunk.X)
        names = np.where(np.arange(size) < share, f"{at}-first", f"{at}-second")
        lengths += [share, size - share] if share < size else [size]
        frame = pandas.DataFrame({"a": chunk.X[:, 0], "b": chunk.X[:, 1], "name": names})
        frame.to_parquet(tmp_path / f"part{at}.parquet")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Best performing initialization did not converge")
        found = fit(clusters, model_of("chain", word, max_iter=4), str(tmp_path / "*.parquet"), key="name")
        wanted = model_of("chain", word, max_iter=4).fit(np.concatenate([chunk.X for chunk in chunks]), lengths=lengths)
    assert_equal_to_rounding(found, wanted)


@pytest.mark.parametrize("word", ["em", hw.OnlineEM(batch_size=40)], ids=["em", "online-em"])
def test_what_was_set_beforehand_reaches_the_workers(clusters, word):
    def make():
        model = model_of("chain", word, init_params="mc", params="mc", **({"max_iter": 2} if word == "em" else {}))
        model.startprob_, model.transmat_ = [0.25, 0.75], [[0.9, 0.1], [0.2, 0.8]]
        return model

    data, _ = on_cluster("chain")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Best performing initialization did not converge")
        found = fit(clusters, make(), data)
        np.testing.assert_allclose(found.transmat_, [[0.9, 0.1], [0.2, 0.8]])
        if word == "em":
            assert_equal_to_rounding(found, make().fit(**at_hand("chain")))


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
@pytest.mark.parametrize(
    "word",
    ["em", pytest.param("vb", marks=pytest.mark.slow), "auto", hw.OnlineEM(batch_size=40)],
    ids=["em", "vb", "auto", "online-em"],
)
@pytest.mark.parametrize("kind", ["chain", pytest.param("symbols", marks=pytest.mark.slow)])
def test_what_is_impossible_beforehand_is_so_for_all_workers(clusters, kind, word):
    start, steps = np.array([1.0, 0.0]), np.array([[0.9, 0.1], [0.0, 1.0]])
    exact = word in ("em", "vb")

    def make():
        model = model_of(kind, word, init_params="mc" if kind == "chain" else "e", **({"max_iter": 2} if exact else {}))
        model.startprob_, model.transmat_ = start, steps
        return model

    def check(found, wanted):
        assert (found.startprob_[start == 0.0] == 0.0).all()
        assert (found.transmat_[steps == 0.0] == 0.0).all()
        if exact:
            assert_equal_to_rounding(found, wanted.fit(**at_hand(kind)))

    data, _ = on_cluster(kind)
    found, wanted = make(), make()
    check(fit(clusters, found, data), wanted)
    check(fit(clusters, found.set_params(init_params=""), data), wanted.set_params(init_params=""))  # which goes on


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
def test_the_best_of_several_starts_is_that_of_fit(clusters):
    data, _ = on_cluster("gaussian")
    given = {"n_components": 3, "n_init": 3, "init_params": "random", "max_iter": 2}
    found = fit(clusters, model_of("gaussian", "em", **given), data)
    assert_equal_to_rounding(found, model_of("gaussian", "em", **given).fit(**at_hand("gaussian")))


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
def test_passes_go_on_where_a_model_is(clusters):
    data, _ = on_cluster("gaussian")

    def make():
        model = model_of("gaussian", "em", n_components=3, init_params="random", max_iter=3, warm_start=True, tol=1e-12)
        return model.fit(**at_hand("gaussian"))

    found = fit(clusters, make(), data)
    wanted = make().fit(**at_hand("gaussian"))
    np.testing.assert_allclose(found.means_, wanted.means_, rtol=1e-6)
    np.testing.assert_allclose(found.lower_bounds_, wanted.lower_bounds_, rtol=1e-9)


# One pass


def assert_the_workers_do_not_matter(clusters, monkeypatch, kind, word, numbers):
    data, given = on_cluster(kind)
    first = fit(clusters, model_of(kind, word), data, 1, **given)
    assert first.distributed_report_.parts == len(SIZES)
    assert sum(one.rows for one in first.distributed_report_.rounds) == first.n_samples_seen_
    for name in ("learn_part", "add_messages"):
        monkeypatch.setattr(tasks, name, delayed_at_random(getattr(tasks, name)))
    for workers in numbers:
        assert_same(fit(clusters, model_of(kind, word), data, workers, **given), first)


@pytest.mark.parametrize("kind", short(KINDS, ["gaussian", "topics", "chain", "regression"]))
def test_one_pass_does_not_depend_on_the_workers(clusters, kind, monkeypatch):
    assert_the_workers_do_not_matter(clusters, monkeypatch, kind, KINDS[kind][0]().algorithm, [7])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "word"), ONE_PASS)
def test_one_pass_does_not_depend_on_the_workers_by_any_algorithm(clusters, kind, word, monkeypatch):
    assert_the_workers_do_not_matter(clusters, monkeypatch, kind, word, [2, 7])


@pytest.mark.slow
def test_sixty_four_workers_find_what_one_does(clusters, monkeypatch):
    sizes = SIZES * 15
    data, _ = on_cluster("gaussian", sizes)
    first = fit(clusters, model_of("gaussian", "auto"), data, 1)
    exact = fit(clusters, model_of("gaussian", "em"), data, 1)
    for name in ("learn_part", "add_messages", "summarize_part"):
        monkeypatch.setattr(tasks, name, delayed_at_random(getattr(tasks, name)))
    assert_same(fit(clusters, model_of("gaussian", "auto"), data, 64), first)
    assert_same(fit(clusters, model_of("gaussian", "em"), data, 64), exact)


@pytest.mark.parametrize("word", short(["em", "auto"], ["auto"]))
def test_exact_passes_do_not_depend_on_the_workers(clusters, monkeypatch, word):
    data, _ = on_cluster("gaussian")
    given = {"passes": 3} if word == "auto" else {}
    first = fit(clusters, model_of("gaussian", word, tol=0.05), data, 1, **given)
    for name in ("summarize_part", "add_messages"):
        monkeypatch.setattr(tasks, name, delayed_at_random(getattr(tasks, name)))
    assert_same(fit(clusters, model_of("gaussian", word, tol=0.05), data, 7, **given), first)


def test_rounds_are_as_many_as_were_asked_for(clusters):
    data, _ = on_cluster("gaussian")
    for rounds, wanted in ((1, 1), (3, 3), (100, len(SIZES))):
        report = fit(clusters, model_of("gaussian", "auto"), data, rounds=rounds).distributed_report_
        assert len(report.rounds) == wanted
        assert sum(one.parts for one in report.rounds) == len(SIZES)
        assert sum(one.rows for one in report.rounds) == sum(SIZES)


def test_a_model_goes_on_from_what_it_knows(clusters):
    data, _ = on_cluster("gaussian")
    model = learned_before()
    again = fit(clusters, model, data, go_on=True)
    assert again is model
    assert model.n_samples_seen_ == 300 + sum(SIZES)
    assert_same(fit(clusters, learned_before(), data, 7, go_on=True), model)
    assert fit(clusters, learned_before(), data).n_samples_seen_ == sum(SIZES)


def test_messages_are_bytes_of_model_files(clusters, monkeypatch):
    seen = []

    def noted(function):
        @wraps(function)
        def note(*given):
            found = function(*given)
            seen.extend([*given, found])
            return found

        return note

    for name in ("sample_rows", "start_on_sample", "learn_part", "add_messages", "start_passes", "summarize_part"):
        monkeypatch.setattr(tasks, name, noted(getattr(tasks, name)))
    data, _ = on_cluster("gaussian", SIZES[:3])
    fit(clusters, model_of("gaussian", "auto"), data)
    fit(clusters, model_of("gaussian", "em"), data)
    models = [one for one in seen if isinstance(one, bytes)]
    assert models
    for one in [*models, *(message.data for message in seen if isinstance(message, Message) and message.data)]:
        container.from_bytes(one)  # or it is refused
    kinds = {type(one) for one in seen}
    assert not [kind for kind in kinds if issubclass(kind, BaseEstimator) or "State" in kind.__name__]
