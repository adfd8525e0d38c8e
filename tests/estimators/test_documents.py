"""Documents as texts: lists, arrays and series of strings, in every method of a count model that takes rows."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from topic_models import content, one_sentence

import headwater as hw

RIVER, MARKET = ("River", "water", "boat", "fish"), ("market", "price", "Trade", "bank")


def _documents(n, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(MARKET if at % 2 else RIVER, 8)) + "." for at in range(n)]


TEXTS = _documents(240)
LATER = _documents(40, seed=1)
COUNTS = np.array([[3.0, 1.0, 0.0, 2.0], [0.0, 1.0, 4.0, 1.0]] * 60)
FORMS = {
    "list": list,
    "tuple": tuple,
    "objects": lambda texts: np.array(texts, dtype=object),
    "strings": np.array,
    "pandas": pd.Series,
    "pandas category": lambda texts: pd.Series(texts, dtype="category"),
    "polars": pl.Series,
    "arrow": pa.array,
}
MODELS = {
    "fixed": lambda: hw.LatentDirichletAllocation(2, warm_up=60, random_state=0),
    "open": lambda: hw.LatentDirichletAllocation(2, warm_up=60, random_state=0, vocabulary="open"),
    "auto": lambda: hw.LatentDirichletAllocation("auto", warm_up=60, random_state=0),
    "mixture": lambda: hw.MultinomialMixture(2, warm_up=60, random_state=0),
}
# Models that search for their number of components take longer.
each = pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind == "auto")) for kind in MODELS])
topics = pytest.mark.parametrize("kind", ["fixed", "open"])


def counts_of(texts, **options):
    (chunk,) = hw.stream(texts, format="text", **options)
    return chunk


@pytest.mark.covering
@each
@pytest.mark.parametrize("form", FORMS)
def test_texts_are_learned_as_the_chunks_of_a_stream_are(kind, form):
    texts = FORMS[form](TEXTS)
    model, other = MODELS[kind]().partial_fit(texts), MODELS[kind]()
    other.partial_fit(counts_of(TEXTS, vocabulary="open" if kind == "open" else "first"))
    assert content(model) == content(other)
    assert model.schema_ == other.schema_
    assert list(model.feature_names_in_) == list(other.feature_names_in_) and "river" in model.feature_names_in_
    for later in (FORMS[form](LATER), counts_of(LATER, like=other, vocabulary="known")):
        np.testing.assert_array_equal(model.score_samples(later), other.score_samples(counts_of(LATER, like=other)))


@topics
def test_every_method_takes_texts(kind):
    model, chunk = MODELS[kind]().partial_fit(TEXTS[:120]), None
    chunk = counts_of(LATER, like=model)
    for name in ("transform", "score_samples", "score", "perplexity"):
        np.testing.assert_array_equal(getattr(model, name)(LATER), getattr(model, name)(chunk), err_msg=name)
    assert hw.completion_perplexity(model, LATER) == hw.completion_perplexity(model, chunk) < 8.0
    np.testing.assert_array_equal(model.transform_one(LATER[0]), model.transform_one(chunk.X[[0]].toarray()[0]))
    assert model.score_one(LATER[0]) == model.score_one(chunk.X[[0]].toarray()[0])
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.update(LATER), other.update(counts_of(LATER, like=other)))
    weights = np.arange(40) % 3.0
    np.testing.assert_array_equal(
        model.update(LATER, sample_weight=weights), other.update(counts_of(LATER, like=other), sample_weight=weights)
    )
    model.learn_one(LATER[0])
    assert model.n_samples_seen_ == other.n_samples_seen_ + 1
    assert MODELS[kind]().fit(TEXTS).transform(LATER).shape == (40, 2)
    assert MODELS[kind]().fit_transform(TEXTS).shape == (240, 2)
    assert MODELS[kind]().warm_start_from(TEXTS).transform(LATER).shape == (40, 2)
    monitor = hw.Monitor(MODELS[kind]())
    monitor.learn(TEXTS)
    assert monitor.learn(LATER).n_samples_seen_ == 280


def test_a_mixture_of_counts_takes_texts():
    model = MODELS["mixture"]().partial_fit(TEXTS)
    river, market = model.predict(["a boat on the river", "The PRICE of trade"])
    assert river != market and model.predict_one("fish water") == river
    assert model.learn_one("boat boat").n_samples_seen_ == 241
    assert list(MODELS["mixture"]().fit_predict(TEXTS)[:2]) in ([0, 1], [1, 0])


def test_an_open_vocabulary_learns_new_words_and_leaves_them_out_of_what_it_is_asked():
    model = MODELS["open"]().partial_fit(TEXTS)
    known = model.n_features_in_
    np.testing.assert_array_equal(model.transform(["river delta"]), model.transform(["river"]))
    assert model.n_features_in_ == known
    model.partial_fit(["the delta of a river"])
    assert list(model.feature_names_in_[known:]) == ["the", "delta", "of", "a"] and model.n_features_in_ == known + 4
    model.learn_one("an estuary")
    assert list(model.feature_names_in_[known + 4 :]) == ["an", "estuary"]
    model.set_params(warm_start=True).fit([*TEXTS, "one ford"])
    assert list(model.feature_names_in_[-2:]) == ["one", "ford"] and len(model.feature_names_in_) == model.n_features_in_


def test_a_fixed_vocabulary_has_the_words_of_the_first_call():
    model = MODELS["fixed"]().partial_fit(TEXTS)
    known = list(model.feature_names_in_)
    model.partial_fit(["the delta of a river"])
    assert list(model.feature_names_in_) == known and model.n_samples_seen_ == 241
    assert "delta" in model.fit(["the delta of a river", "market prices"]).feature_names_in_


@each
def test_the_vocabulary_goes_with_the_model(tmp_path, kind):
    model = MODELS[kind]().partial_fit(TEXTS)
    model.save(tmp_path / "model.hw")
    for again in (hw.load(tmp_path / "model.hw"), pickle.loads(pickle.dumps(model))):
        assert list(again.feature_names_in_) == list(model.feature_names_in_)
        np.testing.assert_array_equal(again.score_samples(LATER), model.score_samples(LATER))
        again.partial_fit(LATER)
        assert again.n_samples_seen_ == 280
    parts = [model.branch().partial_fit(LATER[:20]), model.branch().partial_fit(LATER[20:])]
    merged = hw.merge(parts)
    assert merged.n_samples_seen_ == 280 and np.isfinite(merged.score_samples(LATER)).all()
    fresh = clone(merged)
    assert not hasattr(fresh, "feature_names_in_") and not hasattr(fresh, "schema_")
    assert "stream" in fresh.partial_fit(["a stream of words"] * 3).feature_names_in_


def test_texts_go_on_in_the_way_of_the_stream_that_was_learned():
    model = hw.LatentDirichletAllocation(2, warm_up=60, random_state=0)
    model.partial_fit(counts_of(TEXTS, lowercase=False, stop_words=["fish"]))
    assert "River" in model.feature_names_in_ and "fish" not in model.feature_names_in_
    np.testing.assert_array_equal(model.transform(["River fish"]), model.transform(["River"]))
    assert not np.array_equal(model.transform(["River"]), model.transform(["river"]))
    hashed = hw.LatentDirichletAllocation(2, warm_up=60, random_state=0).partial_fit(counts_of(TEXTS, vocabulary=64))
    assert hashed.transform(LATER).shape == (40, 2) and hashed.n_features_in_ == 64


@pytest.mark.parametrize("name", ["partial_fit", "update", "transform", "score_samples", "score", "perplexity", "fit"])
@topics
def test_what_is_no_list_of_documents_is_refused_in_one_sentence(kind, name):
    wrong = {
        "must be a list of documents, got one str": "a single text",
        "document 1 is None": ["a text", None],
        "document 0 is nan": pd.Series([np.nan, "a text"]),
        "document 1 is \\[1, 2\\]": ["a text", [1, 2]],
        "document 0 is 1.0": np.array([1.0, "a text"], dtype=object),
        "which have to be decoded": ["a text", b"bytes"],
        "characters that are none": ["\udc80"],
    }
    model = MODELS[kind]().partial_fit(TEXTS[:120])
    before = content(model)
    for told, documents in wrong.items():
        with pytest.raises(ValueError, match=told) as caught:
            getattr(model, name)(documents)
        one_sentence(caught)
    assert content(model) == before
    fresh = MODELS[kind]()
    with pytest.raises((ValueError, TypeError)):
        getattr(fresh, name)(["a text", None])
    assert not hasattr(fresh, "feature_names_in_") and not hasattr(fresh, "schema_")


@each
def test_documents_without_a_word(kind):
    with pytest.raises(ValueError, match="must have words, since this model knows none, got 2 documents") as caught:
        MODELS[kind]().partial_fit(["", "..."])
    one_sentence(caught)
    model = MODELS[kind]().partial_fit([*TEXTS, ""])
    assert model.n_samples_seen_ == 241
    np.testing.assert_allclose(model.score_samples(["", "?"]), 0.0, atol=1e-12)


@each
def test_words_and_counts_are_not_mixed(kind):
    words = MODELS[kind]().partial_fit(TEXTS)
    before = content(words)
    width = words.n_features_in_
    for rows in (np.ones((3, width)), csr_array(np.ones((3, width))), np.ones((3, width)).tolist()):
        for name in ("partial_fit", "score_samples"):
            with pytest.raises(ValueError, match="must hold documents, or counts whose columns have names") as caught:
                getattr(words, name)(rows)
            one_sentence(caught)
    assert content(words) == before
    named = pd.DataFrame(np.ones((3, width)), columns=words.feature_names_in_)
    assert np.isfinite(words.score_samples(named)).all()
    counts = MODELS[kind]().partial_fit(COUNTS)
    before = content(counts)
    for name in ("partial_fit", "score_samples", "update"):
        with pytest.raises(ValueError, match=r"must hold counts, since this .* learned counts, got documents") as caught:
            getattr(counts, name)(TEXTS)
        one_sentence(caught)
    assert content(counts) == before
    assert counts.fit(TEXTS).n_features_in_ == 8


def test_the_completion_perplexity_of_topics_without_words_refuses_texts():
    with pytest.raises(ValueError, match="topics has no vocabulary") as caught:
        hw.completion_perplexity(np.ones((2, 8)), LATER)
    one_sentence(caught)
    model = MODELS["fixed"]().partial_fit(COUNTS)
    with pytest.raises(ValueError, match="learned counts, got documents"):
        hw.completion_perplexity(model, LATER)
    other = hw.stream(["quite other words here", "and four more words"], format="text")
    with pytest.raises(ValueError, match="the columns must be those"):
        hw.completion_perplexity(MODELS["fixed"]().partial_fit(["a b c d", "e f g"] * 50), other)


@pytest.mark.parametrize("kind", ["open", "mixture"])
def test_a_model_that_learned_a_mapping_can_be_saved(tmp_path, kind):
    model = MODELS[kind]().partial_fit(TEXTS).learn_one({"river": 2, "boat": 1})
    model.save(tmp_path / "model.hw")
    assert hw.load(tmp_path / "model.hw").n_samples_seen_ == 241


@pytest.mark.slow
def test_a_report_reads_texts():
    pytest.importorskip("jinja2")
    assert "river" in hw.report(MODELS["fixed"]().partial_fit(TEXTS), LATER)


def test_models_that_learned_other_words_are_not_merged():
    one, other = MODELS["open"]().partial_fit(TEXTS), MODELS["open"]().partial_fit(["a quite new text", *TEXTS])
    with pytest.raises(ValueError, match=r"the same columns in the same order, got '.*' and 'a' in place 0") as caught:
        hw.merge([one, other])
    one_sentence(caught)


@pytest.mark.parametrize("make", [hw.LatentDirichletAllocation, hw.MultinomialMixture])
def test_lists_of_words_and_no_documents_are_told_what_is_wanted(make):
    learned = make(2, warm_up=20, random_state=0).partial_fit(TEXTS)
    before = content(learned)
    for ask in (make(2).partial_fit, make(2).fit, learned.partial_fit, learned.update, learned.score_samples):
        for words in ([["river", "boat"], ["market"]], [("river", "boat"), ("market", "bank")]):
            with pytest.raises(ValueError, match=r"document 0 is a (list|tuple) of words: join them, ' '\.join\(words\)$"):
                ask(words)
        for none in ([], np.array([], dtype=object), pd.Series([], dtype=object)):
            with pytest.raises(ValueError, match=r"^X has 0 sample\(s\)"):
                ask(none)
        with pytest.raises(ValueError, match=r"but document 1 is .* \(DataFrame\)$") as caught:
            ask(["a river", pd.DataFrame({"a": [1, 2]})])
        one_sentence(caught)
    assert content(learned) == before
    with pytest.raises(ValueError, match=r"^X must hold numbers, got") as caught:
        make(2).partial_fit(pd.DataFrame({"text": ["a long\ntext " * 100]}, dtype=object))
    assert len(str(caught.value)) < 220
