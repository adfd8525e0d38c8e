"""Every method of every model that takes rows also takes `hw.stream(...)`."""

from inspect import signature

import numpy as np
import pyarrow as pa
import pytest
from every_model import KINDS
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

import headwater as hw
from headwater.diagnostics.history import History
from headwater.estimators.base import StreamingEstimator

ROWS = 400
ONE_OF_A_KIND = ["gaussian", "multinomial", "markov", "regression", "topics", "spectra", "chain", "symbols", "arrival"]


def chunk_of(kind):
    return KINDS[kind][1](ROWS, np.random.default_rng(0))


def stream_of(kind, chunk, rows=96):
    """Return the rows of a chunk as a stream of several chunks."""
    if kind == "markov":
        names = np.array(chunk.schema["symbols"])
        lines = [" ".join(names[one]) for one in np.asarray(chunk.X).reshape(ROWS, -1)]
        return hw.stream(lines, format="sequences", symbols=names.tolist(), chunk_rows=rows)
    if chunk.y is not None:
        table = pa.table({**dict(zip(chunk.columns, chunk.X.T, strict=True)), "y": chunk.y})
        return hw.stream(table, target="y", chunk_rows=rows)
    if chunk.columns is not None and not hasattr(chunk.X, "tocsr"):
        return hw.stream(pa.table(dict(zip(chunk.columns, chunk.X.T, strict=True))), chunk_rows=rows)
    return hw.stream(chunk.X, chunk_rows=rows)


def assert_alike(one, other):
    if isinstance(one, tuple):
        for part, counterpart in zip(one, other, strict=True):
            assert_alike(part, counterpart)
    elif isinstance(one, hw.Conditional | hw.Explanation):
        for name in ("weights", "mean", "variance") if isinstance(one, hw.Conditional) else ("tail", "surprise", "expected"):
            assert_alike(getattr(one, name), getattr(other, name))
    elif isinstance(one, hw.ReasonTable):
        assert one.keys() == other.keys()
        for name in one.keys():  # noqa: SIM118
            same = np.testing.assert_array_equal if one[name].dtype.kind in "OU" else assert_alike
            same(one[name], other[name])
    else:
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def methods_of(model):
    """Names of the public methods that take X as the rows they are about; rows beside something else are named."""
    found = [name for name in dir(model) if not name.startswith("_") and callable(getattr(type(model), name, None))]
    taken = {name: signature(getattr(type(model), name)).parameters.get("X") for name in found}
    return [name for name, X in taken.items() if X is not None and X.kind is not X.KEYWORD_ONLY]


def given_to(model, name, chunk):
    taken = signature(getattr(model, name)).parameters
    return {one: chunk[one] for one in chunk.keys() if one in taken}  # noqa: SIM118


@pytest.mark.parametrize("kind", ONE_OF_A_KIND)
def test_answers_of_a_stream_are_those_of_its_rows(kind):
    chunk = chunk_of(kind)
    if kind in ("multinomial", "topics"):
        chunk = type(chunk)(csr_array(chunk.X))  # a sparse matrix has no names
    model = KINDS[kind][0]().partial_fit(**chunk)
    learn = (
        "fit",
        "warm",
        "partial_fit",
        "update",
        "inverse_transform",
        "forecast",
        "calibrate",
        "decide_next",
        "label_anomalies",
    )
    asked = [name for name in methods_of(model) if not name.startswith(learn)]
    assert "score_samples" in asked
    if hasattr(model, "calibrate"):
        model.calibrate(stream_of(kind, chunk))
    for name in asked:
        beside = {"rate": 0.1} if name == "decide" else {}
        found = getattr(model, name)(stream_of(kind, chunk), **beside)
        assert_alike(found, getattr(model, name)(**given_to(model, name, chunk), **beside))


@pytest.mark.parametrize("kind", ONE_OF_A_KIND)
def test_a_stream_is_learned_as_its_chunks_are(kind):
    chunk = chunk_of(kind)
    one, other, scored = (KINDS[kind][0]() for _ in range(3))
    assert one.partial_fit(stream_of(kind, chunk)) is one
    for part in stream_of(kind, chunk):
        other.partial_fit(**part)
    scores = scored.update(stream_of(kind, chunk))
    assert one.n_samples_seen_ == other.n_samples_seen_ == scored.n_samples_seen_ == ROWS
    assert scores.shape == (ROWS,)
    name = "score_steps" if hasattr(one, "score_steps") else "score_samples"
    rows = given_to(one, name, next(iter(stream_of(kind, chunk))))
    np.testing.assert_array_equal(getattr(one, name)(**rows), getattr(other, name)(**rows))
    monitor = hw.Monitor(KINDS[kind][0]())
    watched = monitor.learn(stream_of(kind, chunk))
    np.testing.assert_array_equal(getattr(watched, name)(**rows), getattr(one, name)(**rows))
    assert watched.history_.seen == ROWS


@pytest.mark.parametrize("kind", ONE_OF_A_KIND)
def test_a_stream_is_fitted_as_its_rows_are(kind):
    chunk = chunk_of(kind)
    for name in ("fit", "fit_predict", "fit_transform", "warm_start_from"):
        one, other = KINDS[kind][0](), KINDS[kind][0]()
        if name not in methods_of(one):
            continue
        found = getattr(one, name)(stream_of(kind, chunk))
        expected = getattr(other, name)(**given_to(other, name, chunk))
        assert one.n_samples_seen_ == other.n_samples_seen_ == ROWS
        if found is not one:
            assert_alike(found, expected)


@pytest.mark.parametrize("kind", ONE_OF_A_KIND)
def test_every_method_that_takes_rows_takes_streams(kind):
    model = KINDS[kind][0]()
    others = {"inverse_transform"}  # takes weights, not rows
    assert {name for name in methods_of(model) if not hasattr(getattr(model, name), "takes_streams")} <= others


def test_a_forecast_goes_on_from_the_end_of_a_stream():
    chunk = chunk_of("chain")
    model = KINDS["chain"][0]().partial_fit(**chunk)
    after_chunks, after_rows = (model.forecast(3, X=stream_of("chain", chunk, rows)).mean for rows in (96, ROWS))
    np.testing.assert_allclose(after_chunks, after_rows, rtol=1e-12)


def test_a_stream_that_breaks_off_leaves_the_model_as_it_was(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{a:.6f},{b:.6f}" for a, b in np.random.default_rng(0).normal(size=(300, 2))]
    path.write_text("\n".join(["a,b", *lines[:250], "1,", *lines[250:]]))
    model = hw.GaussianMixture(2, warm_up=60, random_state=0)
    with pytest.raises(ValueError, match=r"rows\.csv"):
        model.partial_fit(hw.stream(path, chunk_rows=100))
    assert not hasattr(model, "n_features_in_") and not model._has_state()
    waiting = hw.GaussianMixture(2, warm_up=1000, random_state=0).partial_fit(hw.stream(path, missing="drop"))
    with pytest.raises(ValueError, match=r"rows\.csv"):  # rows that wait for the end of the warm-up are unchanged, too
        waiting.partial_fit(hw.stream(path, chunk_rows=100))
    assert waiting.n_samples_seen_ == 300 and len(waiting._state.buffer.batch()) == 300
    model.partial_fit(hw.stream(path, chunk_rows=100, missing="drop"))
    rows = pa.table({"a": [0.0, 1.0], "b": [0.5, -1.0]}).to_pandas()
    scores, seen = model.score_samples(rows), model.n_samples_seen_
    monitor = hw.Monitor(model)
    for learn in (model.partial_fit, model.update, monitor.learn):
        with pytest.raises(ValueError, match=r"rows\.csv"):
            learn(hw.stream(path, chunk_rows=100))
        assert model.n_samples_seen_ == seen
        np.testing.assert_array_equal(model.score_samples(rows), scores)
    assert monitor.history.seen == History().seen and not hasattr(model, "history_")


def test_what_belongs_to_the_rows_of_a_stream_is_not_lost():
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=300), "b": rng.normal(size=300), "w": rng.random(300) + 0.5})
    one = hw.GaussianMixture(2, warm_up=60, random_state=0).partial_fit(hw.stream(table, weight="w", chunk_rows=100))
    other = hw.GaussianMixture(2, warm_up=60, random_state=0)
    X, w = np.column_stack([table["a"], table["b"]]), table["w"].to_numpy()
    other.partial_fit(X, sample_weight=w)
    np.testing.assert_allclose(one.score_samples(hw.stream(table, weight="w")), other.score_samples(X), rtol=1e-9)
    with pytest.raises(ValueError, match=r"comes with sample_weight, which GaussianHMM\.partial_fit does not take"):
        hw.GaussianHMM(2).partial_fit(hw.stream(table, weight="w"))
    keyed = pa.table({"a": rng.normal(size=60), "sensor": np.arange(60) % 3})
    chain = hw.GaussianHMM(2, warm_up=30, random_state=0).partial_fit(hw.stream(keyed, key="sensor"))
    assert len(chain.open_sequences_) == 3
    with pytest.raises(ValueError, match=r"have keys, and GaussianHMM\.predict takes sequences one after the other"):
        chain.predict(hw.stream(keyed, key="sensor"))


def test_a_stream_of_other_columns_is_refused():
    model = hw.LatentDirichletAllocation(2, warm_up=20, random_state=0).partial_fit(["a river of words", "more words"] * 20)
    with pytest.raises(ValueError, match="the columns must be those"):
        model.transform(hw.stream(["words of a stream"], format="text"))
    assert model.transform(hw.stream(["words of a stream"], format="text", like=model)).shape == (1, 2)
    assert hw.completion_perplexity(model, hw.stream(["more words of a river"] * 9, format="text", like=model)) > 1.0


def test_warnings_of_a_fit_point_at_who_called_it():
    rows = np.random.default_rng(0).normal(size=(200, 2))
    model = hw.GaussianMixture(3, max_iter=1, tol=0.0, algorithm="em", random_state=0)
    for X in (rows, hw.stream(rows)):
        with pytest.warns(UserWarning, match="did not converge") as caught:
            model.fit(X)
        assert caught[0].filename == __file__


def test_the_base_of_all_models_takes_streams():
    for name in ("fit", "partial_fit", "update", "warm_start_from"):
        assert hasattr(getattr(StreamingEstimator, name), "__wrapped__")


VISITS = ["home shop shop pay", "shop home", "pay pay home"] * 40
OTHER_VISITS = ["cart home", "home cart cart"] * 40
SEQUENTIAL = {
    "markov": lambda: hw.MarkovMixture(2, n_symbols=3, warm_up=60, random_state=0),
    "symbols": lambda: hw.CategoricalHMM(2, n_features=3, warm_up=60, random_state=0),
}


@pytest.mark.parametrize("kind", SEQUENTIAL)
def test_symbols_that_are_numbered_in_another_way_are_refused(kind):
    model = SEQUENTIAL[kind]().partial_fit(hw.stream(VISITS, format="sequences"))
    (some,) = hw.stream(["home pay"], format="sequences", like=model)
    expected = model.predict(**some)
    np.testing.assert_array_equal(model.predict(hw.stream(["home pay"], format="sequences", like=model)), expected)
    for name in ("predict", "score", "partial_fit", "update"):
        with pytest.raises(ValueError, match=r"must be numbered as .* learned them, got 'cart' where it has 'home'"):
            getattr(model, name)(hw.stream(OTHER_VISITS, format="sequences"))
    assert np.array_equal(model.predict(**some), expected)
    other = SEQUENTIAL[kind]().partial_fit(hw.stream(OTHER_VISITS, format="sequences"))
    with pytest.raises(ValueError, match="models must have one numbering of their symbols"):
        hw.merge([model, other])
    assert SEQUENTIAL[kind]().fit(hw.stream(OTHER_VISITS, format="sequences")).schema_["symbols"] == ["cart", "home"]


def test_sequences_of_texts_are_told_how_they_are_numbered():
    for wrong in (["home pay", "pay"], [["home", "pay"], ["pay"]], "home pay", [[0, "pay"]]):
        with pytest.raises(ValueError, match=r"must hold symbols as numbers 0, 1, ..., got the text .*format='sequences'"):
            hw.MarkovMixture(2).partial_fit(wrong)
    with pytest.raises(ValueError, match="must hold sequences of symbols, got a sparse matrix"):
        hw.MarkovMixture(2).partial_fit(hw.stream(VISITS, format="text"))


def test_what_belongs_to_rows_comes_with_the_stream_and_not_beside_it():
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=300), "b": rng.normal(size=300), "c": rng.random(300) + 0.5})
    rows = {"columns": ["a", "b"], "chunk_rows": 100}
    model = hw.GaussianMixture(2, warm_up=60, random_state=0).partial_fit(hw.stream(table, **rows))
    for size in (100, 300):  # as many as a chunk has rows (each chunk would use all of them), or as many as the stream has
        for name, values, by in (("sample_weight", np.ones(size), "weight"), ("labels", np.zeros(size, int), "label")):
            with pytest.raises(ValueError, match=rf"^{name} must come with the rows of the stream, .* {by}= names"):
                model.partial_fit(hw.stream(table, **rows), **{name: values})
        with pytest.raises(ValueError, match=r"^lengths must come with .* key= names, since GaussianHMM\.partial_fit takes"):
            hw.GaussianHMM(2).partial_fit(hw.stream(table, **rows), [size])
    assert model.n_samples_seen_ == 300
    chain = hw.GaussianHMM(2, random_state=0).partial_fit(hw.stream(table, **rows), key="sensor")
    assert (chain.open_sequences_, chain.n_samples_seen_) == (["sensor"], 300)
    lines = hw.RegressionMixture(2, random_state=0).fit(hw.stream(table, **rows), table["c"].to_numpy())
    with pytest.raises(ValueError, match=r"^y must come with .* target= names, since RegressionMixture\.score_samples"):
        lines.score_samples(hw.stream(table, **rows), table["c"].to_numpy())
    with pytest.raises(ValueError, match=r"^sample_weight must come with the rows of the stream"):
        hw.Monitor(model).learn(hw.stream(table, **rows), sample_weight=np.ones(100))


def test_what_belongs_to_rows_is_given_once():
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=300), "w": rng.random(300) + 0.5, "k": np.arange(300) // 100})
    with pytest.raises(ValueError, match=r"^sample_weight must be given once, got it twice: by the stream and beside it"):
        hw.GaussianMixture(2).fit(hw.stream(table, columns=["a"], weight="w"), sample_weight=np.ones(300))
    with pytest.raises(ValueError, match=r"^y must be given once, got it twice"):
        hw.RegressionMixture(2).fit(hw.stream(table, columns=["a"], target="w"), np.ones(300))
    with pytest.raises(ValueError, match=r"^key must be given once, got it twice"):
        hw.GaussianHMM(2).partial_fit(hw.stream(table, columns=["a"], key="k"), key="sensor")


@pytest.mark.parametrize("kind", ["multinomial", "topics", "spectra"])
def test_rows_that_are_refused_are_found_in_the_stream(kind):
    X = np.array(chunk_of(kind).X.todense() if hasattr(chunk_of(kind).X, "todense") else chunk_of(kind).X)
    model = KINDS[kind][0]().partial_fit(X)
    wrong = X.copy()
    wrong[250, 0] = -1.0
    for name in ("partial_fit", "update", "score_samples"):
        place = r"^chunk from row 192 of the stream on: Negative values .* \(first in row 58\)"
        with pytest.raises(ValueError, match=place):
            getattr(model, name)(hw.stream(wrong, chunk_rows=96))
        with pytest.raises(ValueError, match=place):
            for chunk in hw.stream(wrong, chunk_rows=96):
                getattr(model, name)(**given_to(model, name, chunk))
    with pytest.raises(ValueError, match=r"^Negative values .* \(first in row 250\)"):
        model.fit(hw.stream(wrong, chunk_rows=96))


def test_a_column_of_symbols_without_key_is_one_sequence_or_refused():
    column = pa.table({"page": np.random.default_rng(0).integers(3, size=300), "visit": np.arange(300) // 10})
    model = hw.MarkovMixture(2, warm_up=20, random_state=0).partial_fit(hw.stream(column, key="visit", chunk_rows=64))
    assert model.n_samples_seen_ == 30
    assert model.predict(hw.stream(column, columns=["page"])).shape == (1,)
    for learn in (model.partial_fit, model.update, model.predict, hw.Monitor(model).learn):  # not one sequence for each chunk
        with pytest.raises(ValueError, match="one column of symbols and no key, so that all rows are one sequence"):
            learn(hw.stream(column, columns=["page"], chunk_rows=64))
    assert model.n_samples_seen_ == 30


def test_several_sequences_are_not_taken_for_one():
    model = SEQUENTIAL["symbols"]().partial_fit(hw.stream(VISITS, format="sequences"))
    one = hw.stream(["home shop"], format="sequences", like=model)
    assert (model.filter(one).shape, model.next_state_proba(X=one).shape) == ((2, 2), (2,))
    several = hw.stream(["home shop", "shop"], format="sequences", like=model)
    for name in ("filter", "next_state_proba", "next_distribution"):
        with pytest.raises(ValueError, match=rf"CategoricalHMM\.{name} takes the rows of one sequence, got a stream of 2"):
            getattr(model, name)(X=several)


class Doubled(hw.GaussianMixture):
    """A model that learns each row twice, and whose methods have no decorators."""

    def partial_fit(self, X, y=None, sample_weight=None, labels=None):
        return super().partial_fit(2.0 * np.asarray(X))

    def score_samples(self, X):
        return super().score_samples(2.0 * np.asarray(X))


def test_methods_of_a_subclass_take_streams_too(tmp_path):
    rows = np.random.default_rng(0).normal(size=(400, 2))
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    model = Doubled(2, random_state=0).partial_fit(hw.stream(path, chunk_rows=100))
    plain = hw.GaussianMixture(2, random_state=0)
    for part in np.split(2.0 * rows, 4):
        plain.partial_fit(part)
    assert_array_equal(model.means_, plain.means_)
    assert_array_equal(model.score_samples(hw.stream(path, chunk_rows=100)), plain.score_samples(2.0 * rows))
    assert model.partial_fit(rows) is model
