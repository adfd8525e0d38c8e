"""Vocabularies that grow while topics are learned."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from topic_models import K, V, X, assert_close, assert_same, assert_sound, content, one_sentence, small

import headwater as hw
from headwater.core.records import arrays_of
from headwater.estimators import estimator_core


def widths(*cuts, open_rows=X):
    """Return chunks of growing width, and all of their rows at full width."""
    chunks, begin = [], 0
    for end, width in cuts:
        chunks.append(open_rows[begin:end, :width])
        begin = end
    return chunks


def padded(chunks, width):
    return np.vstack([np.pad(chunk, ((0, 0), (0, width - chunk.shape[1]))) for chunk in chunks])


def statistics_of(model):
    return model._read().stream.statistics


CUTS = {
    "in warm-up": [(40, 5), (70, 9), (400, 12)],
    "after it": [(120, 6), (200, 9), (400, 12)],
    "in a batch": [(125, 6), (140, 8), (155, 12), (400, 12)],
    "narrower": [(120, 9), (180, 5), (250, 12), (300, 1), (400, 12)],
}


@pytest.mark.covering("algorithm", "stored")
@pytest.mark.parametrize("algorithm", ["auto", "simulated-em", "online-vb", "scvb0"])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("stored", [False, True])
def test_a_vocabulary_that_grows_ends_where_one_that_was_known_does(algorithm, cut, stored):
    chunks = widths(*CUTS[cut])
    model = small(algorithm, vocabulary="open")
    for chunk in chunks:
        model = pickle.loads(pickle.dumps(model.partial_fit(chunk))) if stored else model.partial_fit(chunk)
    rows = padded(chunks, V)
    known = small(algorithm, vocabulary="open").partial_fit(rows[:1]).partial_fit(rows[1:])
    assert model.n_features_in_ == V and model.n_samples_seen_ == 400
    assert model.topics_.shape == (K, V)
    assert_sound(model, rows[:20])
    total = statistics_of(model).length.sum()
    assert total == pytest.approx(np.asarray(statistics_of(model).table).sum())
    if cut == "in warm-up":  # no parameters were read out under a narrower prior
        assert_same(model, known)
    else:
        assert model.perplexity(rows) == pytest.approx(known.perplexity(rows), rel=0.2)


def test_topics_of_a_growing_vocabulary_differ_by_the_prior_alone():
    # With one topic the E-step is certain, so statistics do not depend on the columns known at the time.
    chunks = widths((125, 6), (140, 8), (400, 12))
    grown = small(k=1, vocabulary="open", topic_word_prior=0.5)
    for chunk in chunks:
        grown.partial_fit(chunk)
    known = small(k=1, topic_word_prior=0.5).partial_fit(padded(chunks, V))
    for left, right in zip(arrays_of(statistics_of(grown)), arrays_of(statistics_of(known)), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(grown.topics_, known.topics_, rtol=1e-9)
    narrow = small(k=1, vocabulary="open", topic_word_prior=0.5).partial_fit(chunks[0])
    wide = small(k=1, topic_word_prior=0.5).partial_fit(padded(chunks[:1], V))
    np.testing.assert_allclose(narrow.topics_ * (1.0 - wide.topics_[:, 6:].sum()), wide.topics_[:, :6], rtol=1e-9)


def test_wider_rows_can_be_read_and_change_nothing():
    model = small(vocabulary="open").partial_fit(X[:, :8])
    before, narrow = content(model), model.transform(X[:5, :8])
    assert model.transform(X).shape == (400, K)
    np.testing.assert_allclose(model.transform(X).sum(axis=1), 1.0)
    assert np.isfinite(model.score_samples(X)).all() and np.isfinite(model.perplexity(X))
    assert model.n_features_in_ == 8 and content(model) == before
    np.testing.assert_array_equal(model.transform(X[:5, :8]), narrow)
    np.testing.assert_allclose(model.transform(np.pad(X[:5, :8], ((0, 0), (0, 4)))), narrow, atol=1e-3)  # a wider prior
    np.testing.assert_array_equal(model.transform(X[:5, :3]), model.transform(np.pad(X[:5, :3], ((0, 0), (0, 5)))))


ONE_ROW = """
import numpy as np, headwater as hw
model = hw.LatentDirichletAllocation(2, vocabulary="open", warm_up=5, random_state=0).partial_fit(np.ones((20, 4)))
wide = np.zeros(3_000_000)
wide[[0, -1]] = 2.0, 1.0
assert np.isfinite(model.score_one(wide))
assert abs(model.transform_one(wide).sum() - 1.0) < 1e-9
assert np.isfinite(model.update(np.tile(wide, (2, 1)), sample_weight=[0.0, 1.0])).all()
named = hw.LatentDirichletAllocation(2, vocabulary="open", warm_up=5, random_state=0)
for _ in range(10):
    named.learn_one({"a": 1, "b": 2})
words = {f"w{i}": 1 for i in range(100_000)}
assert abs(named.transform_one(words).sum() - 1.0) < 1e-9 and np.isfinite(named.score_one(words))
assert named.n_features_in_ == 2
"""


@pytest.mark.slow
def test_one_row_calls_read_wider_rows():
    # In a separate process, since reading beyond the table may crash it.
    done = subprocess.run([sys.executable, "-c", ONE_ROW], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]


def test_words_that_come_on_the_way():
    rng, words = np.random.default_rng(4), [f"w{v}" for v in range(V)]
    model, seen = small(vocabulary="open"), []
    for row in X[:200]:
        items = {words[v]: row[v] for v in rng.permutation(np.flatnonzero(row))}
        seen += [word for word in items if word not in seen]
        model.learn_one(items)
    assert list(model.feature_names_in_) == seen and model.n_features_in_ == len(seen)
    assert model.components_.shape == (K, len(seen))
    columns = [words.index(word) for word in seen]
    arrays = small(vocabulary="open")
    for row in X[:200]:
        arrays.learn_one(row[columns])
    assert model.perplexity(X[:, columns]) == pytest.approx(arrays.perplexity(X[:, columns]), rel=0.1)
    assert seen[0] in repr(model) or seen[1] in repr(model)
    assert len(model.get_feature_names_out()) == K
    before = content(model)
    with pytest.raises((ValueError, TypeError)) as caught:
        model.learn_one({"w0": 1.0, "new": -2.0})
    one_sentence(caught)
    with pytest.raises((ValueError, TypeError)):
        model.learn_one({"w0": "many"})
    assert content(model) == before and list(model.feature_names_in_) == seen


def test_names_and_arrays_of_an_open_vocabulary_do_not_run_into_each_other():
    model = small(vocabulary="open", warm_up=3)
    for _ in range(4):
        model.learn_one({"a": 1, "b": 2})
    model.partial_fit(np.ones((5, 4)))
    assert model.n_features_in_ == 4
    with pytest.raises(ValueError) as caught:  # the model cannot know which columns these four are
        model.learn_one({"c": 3.0})
    one_sentence(caught)
    assert model.n_features_in_ == 4 and model.components_.shape == (K, 4)


def test_frames_of_an_open_vocabulary():
    frame = pd.DataFrame(X, columns=list("abcdefghijkl"))
    model = small(vocabulary="open").partial_fit(frame.iloc[:150, :7]).partial_fit(frame.iloc[150:])
    assert list(model.feature_names_in_) == list("abcdefghijkl")
    assert_sound(model, frame.iloc[:5])
    assert_sound(model, frame.iloc[:5, :3])
    with pytest.raises(ValueError, match="begin with those known") as caught:
        model.partial_fit(frame[list("bacdefghijkl")])
    one_sentence(caught)
    model.learn_one({"m": 2.0, "a": 1.0})
    assert model.n_features_in_ == 13 and model.feature_names_in_[-1] == "m"


def test_a_fixed_vocabulary_refuses_other_widths():
    model = small().partial_fit(X)
    before = content(model)
    for rows in (X[:5, :8], np.hstack([X[:5], X[:5]])):
        for method in (model.partial_fit, model.transform, model.score_samples, model.update):
            with pytest.raises(ValueError, match="features") as caught:
                method(rows)
            one_sentence(caught)
    assert content(model) == before


@pytest.mark.parametrize("share", [True, False], ids=["branches", "strangers"])
def test_models_of_different_widths_merge(share):
    base = small(vocabulary="open").partial_fit(X[:150, :8])
    if share:
        narrow, wide = base.branch().partial_fit(X[150:250, :8]), base.branch().partial_fit(X[250:])
    else:
        narrow, wide = base, small(vocabulary="open", random_state=1).partial_fit(X[150:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one, other = hw.merge([narrow, wide]), hw.merge([wide, narrow])
    assert one.n_features_in_ == other.n_features_in_ == V
    assert one.n_samples_seen_ == 400
    assert_close(one, other)
    assert_sound(one, X[:5])
    assert_sound(one.partial_fit(X), X[:5])


def test_branches_of_an_open_vocabulary_share_no_words():
    model = small(vocabulary="open")
    for _ in range(6):
        model.learn_one({"a": 1, "b": 2})
    branch = model.branch()
    branch.learn_one({"new": 1})
    model.learn_one({"other": 1})
    assert list(model.feature_names_in_) == ["a", "b", "other"] and model.n_features_in_ == 3
    assert list(branch.feature_names_in_) == ["a", "b", "new"]


def test_words_without_a_column_are_refused():
    model = small(vocabulary="open").partial_fit(X[:150])
    before = content(model)
    for ask in (model.learn_one, model.score_one, model.transform_one):
        with pytest.raises(ValueError, match="no name") as caught:
            ask({"foo": 3})
        one_sentence(caught)
    assert content(model) == before
    fresh = small(vocabulary="open")
    with pytest.raises(ValueError, match="at least one word"):
        fresh.learn_one({})
    assert not hasattr(fresh, "n_features_in_")


def test_names_may_be_fewer_than_columns():
    frame = pd.DataFrame(X[:150, :4], columns=list("abcd"))
    model = small(vocabulary="open").partial_fit(frame).partial_fit(X[:150])
    assert repr(model)
    with pytest.raises(ValueError, match="no name"):
        model.learn_one({"a": 1})


def test_a_wider_chunk_that_is_broken_off_changes_nothing(monkeypatch):
    frame = pd.DataFrame(X[:150, :4], columns=list("abcd"))
    model = small(vocabulary="open").partial_fit(frame)
    before = content(model)

    def broken(*_):
        raise MemoryError

    monkeypatch.setattr(estimator_core, "advance", broken)
    with pytest.raises(MemoryError):
        model.partial_fit(pd.DataFrame(X[:150, :6], columns=list("abcdef")))
    assert content(model) == before
    for bad in (np.full((3, 6), np.nan), -np.ones((3, 6))):
        with pytest.raises(ValueError):
            model.partial_fit(bad)
    assert content(model) == before


def test_fit_goes_on_with_narrower_and_with_wider_rows():
    model = small("auto", vocabulary="open", warm_start=True).fit(X[:, :8])
    model.fit(X[:, :6])
    assert model.n_features_in_ == 8 and model.n_samples_seen_ == 800
    model.fit(X)
    assert model.n_features_in_ == V and model.n_samples_seen_ == 1200


def test_settings_that_have_changed_since_do_not_change_what_is_read():
    model = small(vocabulary="open").partial_fit(X[:, :8])
    model.set_params(n_components=5)
    assert model.transform(X).shape == (400, K)
    assert model.get_feature_names_out().shape == (K,)
