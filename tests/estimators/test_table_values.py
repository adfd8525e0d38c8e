"""Values that columns may and may not hold: gaps, negative counts, flags, nested values, large numbers; samples."""

import copy
import datetime
import warnings

import made_up_files
import numpy as np
import pandas as pd
import polars as pl
import pytest

import headwater as hw
from headwater.cli import main
from headwater.estimators import model_file
from headwater.io.files.records import Damaged


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    young = rng.random(n) < 0.4
    return pd.DataFrame({
        "age": np.where(young, rng.normal(25, 4, n), rng.normal(60, 6, n)),
        "pays": np.where(rng.random(n) < np.where(young, 0.9, 0.2), "card", "cash"),
        "owner": rng.random(n) < np.where(young, 0.1, 0.7),
        "visits": rng.poisson(np.where(young, 8, 2)),
    })  # fmt: skip


def with_gaps(rows, share, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(rows.shape) < share, np.nan, rows)


def counts(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(np.array([[1.0, 8.0, 3.0], [6.0, 2.0, 3.0]])[rng.integers(2, size=n)]).astype(float)


def flags(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    chance = np.array([[0.9, 0.2, 0.1], [0.1, 0.8, 0.9]])[rng.integers(2, size=n)]
    return (rng.random((n, 3)) < chance).astype(float)


COLUMN_MODELS = {
    "poisson": (hw.PoissonMixture, {}, counts(), "rates_", 0.25),
    "exposure": (hw.PoissonMixture, {"exposure": 3}, np.column_stack([counts(), np.full(1500, 2.0)]), "rates_", 0.15),
    "bernoulli": (hw.BernoulliMixture, {}, flags(), "probabilities_", 0.08),
}  # fmt: skip


@pytest.mark.covering("kind")
@pytest.mark.parametrize("algorithm", ["auto", "em", "vb", "online-em", "quasi-bayes"])
@pytest.mark.parametrize("kind", COLUMN_MODELS)
def test_gaps_are_left_out(kind, algorithm):
    make, options, rows, answer, close = COLUMN_MODELS[kind]
    gapped = rows.copy()
    gapped[:, :3] = with_gaps(rows[:, :3], 0.2)
    models = [make(2, random_state=0, algorithm=algorithm, **options) for _ in range(2)]
    for model, learned in zip(models, (rows, gapped), strict=True):
        (model.fit if algorithm in ("em", "vb") else model.partial_fit)(learned)
    complete, found = (np.sort(getattr(model, answer), axis=0) for model in models)
    np.testing.assert_allclose(found, complete, atol=close)
    empty = np.isnan(gapped[:, :3]).all(axis=1)
    assert models[1].n_samples_seen_ == np.count_nonzero(~empty) < len(rows)
    assert np.array_equal(np.abs(models[1].score_samples(gapped)) < 1e-12, empty)


@pytest.mark.parametrize("kind", COLUMN_MODELS)
def test_a_gap_has_evidence_one(kind):
    """The density of what is observed, summed over the missing column, is that of the row without it."""
    make, options, rows, *_ = COLUMN_MODELS[kind]
    model = make(2, random_state=0, **options).fit(rows)
    row = rows[:1].copy()
    values = np.arange(2.0 if kind == "bernoulli" else 80.0)
    every = np.repeat(row, len(values), axis=0)
    every[:, 1], row[:, 1] = values, np.nan
    assert model.score_samples(row)[0] == pytest.approx(np.logaddexp.reduce(model.score_samples(every)), rel=1e-9)
    by_row = model.score_one(row[0])
    assert by_row == pytest.approx(model.score_samples(row)[0], rel=1e-12)


@pytest.mark.parametrize("warm_up", ["auto", 10_000])
@pytest.mark.parametrize("kind", COLUMN_MODELS)
def test_rows_with_gaps_are_saved_and_learned_on(kind, warm_up):
    make, options, rows, answer, _ = COLUMN_MODELS[kind]
    gapped = rows.copy()
    gapped[:, :3] = with_gaps(rows[:, :3], 0.3)
    model = make(2, random_state=0, warm_up=warm_up, **options).partial_fit(gapped[:700])
    again = model_file.from_bytes(model_file.to_bytes(model))
    for one in (model, again):
        one.partial_fit(gapped[700:])
    np.testing.assert_array_equal(getattr(model, answer), getattr(again, answer))


def test_an_exposure_must_be_there():
    rows = np.array([[1.0, 2.0, np.nan], [2.0, 1.0, 1.0]])
    with pytest.raises(ValueError, match="exposure, must be positive, got a missing value"):
        hw.PoissonMixture(1, exposure=2).partial_fit(rows)


@pytest.mark.parametrize("exposure", ["days", "2"])
def test_the_command_line_names_the_exposure(exposure, tmp_path, capsys):
    table = pd.DataFrame(counts(300)[:, :2], columns=["calls", "mails"]).assign(days=2.0)
    table.to_csv(tmp_path / "events.csv", index=False)
    asked = ["fit", "poisson", str(tmp_path / "events.csv"), "-k", "2", "--set", f"exposure={exposure}"]
    assert main([*asked, "-o", str(tmp_path / "events.hw")]) == 0, capsys.readouterr().err
    assert hw.load(tmp_path / "events.hw").rates_.shape == (2, 2)


WRONG = {
    "negative counts": ({"visits": -1}, "column 'visits' is 'poisson' and holds -1: a count must not be negative"),
    "flags": ({"owner": 2}, "column 'owner' is 'bernoulli' and holds 2: a flag must be 0 or 1"),
    "lists": ({"pays": [[1, 2]] * 40}, "column 'pays' holds list"),
    "mappings": ({"pays": [{"a": 1}] * 40}, "column 'pays' holds struct"),
    "dates": ({"pays": datetime.date(2020, 1, 1)}, "column 'pays' holds date32"),
    "numbers for text": ({"pays": 3}, "column 'pays' held text before, and holds numbers now"),
    "no number": ({"age": "old"}, "column 'age' must hold numbers, got 'old'"),
    "no flag": ({"owner": "maybe"}, "column 'owner' must hold flags, which are 0 or 1, or booleans, got 'maybe'"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_values_are_refused_and_leave_the_model_as_it_was(wrong):
    changes, sentence = WRONG[wrong]
    model = hw.MixedMixture(2, columns={"visits": "poisson"}, random_state=0).partial_fit(people(300))
    before = model_file.to_bytes(model)
    table = people(40, 1).assign(**changes)
    for call in (model.partial_fit, model.score_samples):
        with pytest.raises(ValueError, match=sentence):
            call(table)
    assert model_file.to_bytes(model) == before


def test_text_that_is_no_unicode_is_refused():
    with pytest.raises(ValueError, match="column 'x1' holds text that is not valid Unicode"):
        hw.CategoricalMixture(2).partial_fit(np.array([["a", "\ud800", "b"]] * 40, dtype=object))


def test_names_of_columns_are_told_apart():
    table = people(100)
    with pytest.raises(ValueError, match="different names, got 'age' 2 times"):
        hw.MixedMixture(2).partial_fit(pd.concat([table, table], axis=1))
    with pytest.raises(ValueError, match="columns names True, which the data does not have"):
        hw.MixedMixture(2, columns={True: "gaussian"}).partial_fit(table)
    with pytest.raises(ValueError, match="says that 'visits' is 'poisson' and 'gaussian'"):
        hw.MixedMixture(2, columns={"visits": "poisson", 3: "gaussian"}).partial_fit(table)
    renamed = table.rename(columns={"visits": 17})
    assert hw.MixedMixture(2, columns={17: "poisson"}, random_state=0).partial_fit(renamed).columns_["17"] == "poisson"


def test_whole_numbers_that_a_float_cannot_tell_apart_are_no_categories():
    rows = np.array([[2**60, 1, 2], [2**60 + 1, 1, 1]] * 30)
    with pytest.raises(ValueError, match=f"holds {2**60}, too large to be exact as a float"):
        hw.CategoricalMixture(2).partial_fit(rows)
    large = hw.CategoricalMixture(2, random_state=0).partial_fit(rows * 1e20)
    assert large.categories_[0].tolist() == [2**60 * 1e20]  # and not as an integer, for which it is too large


def test_rows_of_a_table_without_a_value_change_nothing():
    table = people(400)
    empty = pd.DataFrame({name: [None] * 30 for name in table})
    model = hw.MixedMixture(2, columns={"visits": "poisson"}, random_state=0).partial_fit(table)
    before = model_file.to_bytes(model)
    assert np.abs(model.score_samples(empty)).max() < 1e-12
    assert model_file.to_bytes(model.partial_fit(empty)) == before
    mixed = pd.concat([empty.astype(object), table.astype(object)], ignore_index=True)
    weights = np.r_[np.full(30, 7.0), np.ones(400)]
    for learn in ("fit", "partial_fit"):
        models = [hw.MixedMixture(2, columns={"visits": "poisson"}, random_state=0) for _ in range(2)]
        getattr(models[0], learn)(table, sample_weight=np.ones(400))
        getattr(models[1], learn)(mixed, sample_weight=weights)
        assert models[1].n_samples_seen_ == 400
        np.testing.assert_array_equal(models[0].score_samples(table), models[1].score_samples(table))
        with pytest.raises(ValueError, match="at least one row with a value"):
            getattr(hw.CategoricalMixture(2), learn)(np.full((60, 3), np.nan))
    scores = hw.MixedMixture(2, columns={"visits": "poisson"}, random_state=0).fit(table).update(mixed)
    assert np.array_equal(scores == 0.0, np.arange(430) < 30)


def test_a_column_of_gaps_alone_may_have_categories_later():
    rows = people(60)[["pays", "owner"]]
    model = hw.CategoricalMixture(2, random_state=0).partial_fit(rows.assign(later=None))
    assert model.probabilities_[2].shape == (2, 0)
    assert model.partial_fit(rows.assign(later="c")).categories_[2].tolist() == ["c"]


def test_drawn_rows_hold_categories_and_flags_and_can_be_learned_from():
    model = hw.MixedMixture(2, columns={"visits": "poisson"}, random_state=0).fit(people(500))
    rows, components = model.sample(200)
    assert set(rows[:, 1]) == {"card", "cash"} and set(rows[:, 2]) == {True, False} and len(components) == 200
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows have no names
        assert np.isfinite(model.score_samples(rows)).all()
    numbers = hw.MixedMixture(2, columns={"visits": "poisson"}, random_state=0).fit(people(500)[["age", "visits"]])
    assert numbers.sample(5)[0].dtype == float


def test_frames_that_were_joined_are_read():
    """A text column of a joined frame has several Arrow chunks."""
    parts = [people(100, seed) for seed in range(3)]
    joined = pd.concat(parts, ignore_index=True)
    model = hw.MixedMixture(2, columns={"visits": "poisson"}, random_state=0).partial_fit(joined)
    pieces = hw.MixedMixture(2, columns={"visits": "poisson"}, random_state=0)
    for part in parts:
        pieces.partial_fit(part)
    np.testing.assert_allclose(model.score_samples(joined), pieces.score_samples(joined), rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "columns", "found"),
    [
        (hw.CategoricalMixture(2, random_state=0), ["pays", "owner"], True),
        (hw.CategoricalMixture(1, random_state=0), ["pays", "owner"], False),
        (hw.CategoricalMixture(2, random_state=0), ["pays", "owner", "visits"], False),
        (hw.BernoulliMixture(2, random_state=0), ["owner"], True),
        (hw.MixedMixture(2, random_state=0), ["pays", "owner"], True),
        (hw.MixedMixture(2, random_state=0), ["pays", "age"], False),
        (hw.PoissonMixture(2, random_state=0), ["visits"], False),
    ],
)
def test_health_says_that_few_columns_do_not_tell_classes_apart(model, columns, found):
    model.partial_fit(people(400)[columns])
    told = [finding for finding in model.health_.findings if finding.kind == "unidentified"]
    assert len(told) == found and all(finding.action and "at least 3 columns" in str(finding) for finding in told)


@pytest.mark.parametrize("situation", ["mixed", "mixed warm-up", "categories", "categories warm-up"])
def test_files_whose_columns_were_changed_are_refused(situation):
    header, arrays = made_up_files.file_of(situation)
    whole = header["results"].pop("_schema")
    shorter = {**whole, "kinds": whole["kinds"][:2], "codebook": copy.deepcopy(whole["codebook"])}
    if len(shorter["codebook"]["columns"]) == 3:
        shorter["codebook"]["columns"].pop(), shorter["codebook"]["levels"].pop()
    wider = copy.deepcopy(whole)
    wider["codebook"]["levels"][0]["values"] += [f"made up {number}" for number in range(300)]
    with pytest.raises(Damaged, match="says of 0 of 3 columns what they are"):
        model_file.unpack(header, arrays, {})
    for schema, sentence in ((shorter, "says of 2 of 3 columns"), (wider, "more categories of a column than max_categories")):
        header["results"]["_schema"] = schema
        with pytest.raises(Damaged, match=sentence):
            model_file.unpack(copy.deepcopy(header), arrays, {})
    header["results"]["_schema"] = whole
    assert model_file.unpack(header, arrays, {}).n_samples_seen_ == 160


@pytest.mark.parametrize("dtype", [float, object])
def test_masked_values_are_gaps(dtype):
    rng = np.random.default_rng(0)
    rows = (rng.integers(0, 3, size=(120, 3)) + 0.5).astype(dtype)
    masked = np.ma.masked_array(rows, mask=rng.random(rows.shape) < 0.2)
    gapped = np.where(masked.mask, np.nan if dtype is float else None, rows)
    kinds = {0: "gaussian", 1: "categorical", 2: "gaussian"}
    one, other = (hw.MixedMixture(2, columns=kinds, warm_up=60, random_state=0).partial_fit(X) for X in (masked, gapped))
    np.testing.assert_array_equal(one.weights_, other.weights_)
    np.testing.assert_array_equal(one.predict_proba(masked), one.predict_proba(gapped))
    np.testing.assert_array_equal(np.array(one.impute(masked), dtype=float), np.array(one.impute(gapped), dtype=float))


def test_frames_that_cannot_be_read_are_refused_by_models_of_tables():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    with pytest.raises(ValueError, match="X must have columns of different names, got 'a' 2 times"):
        hw.MixedMixture(1, warm_up=60).partial_fit(pd.concat([frame, frame[["a"]]], axis=1))
    with pytest.raises(TypeError, match="X is a polars LazyFrame, which holds no rows yet"):
        hw.MixedMixture(1, warm_up=60).partial_fit(pl.from_pandas(frame).lazy())


@pytest.mark.parametrize("make", [hw.MixedMixture, hw.MixedHMM])
def test_whole_numbers_that_no_float_holds_are_rounded_and_ids_left_out(make):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": np.arange(200) + 2**60, "hash": rng.integers(2**62, size=200), "a": rng.normal(size=200)})
    for table in (frame, pl.from_pandas(frame)):
        with pytest.warns(UserWarning, match="column 'id' is left out, since it numbers the rows"):
            model = make(1, random_state=0).fit(table)
        assert model.columns_ == {"id": "ignore", "hash": "gaussian", "a": "gaussian"}
        assert np.isfinite(model.score(table))
