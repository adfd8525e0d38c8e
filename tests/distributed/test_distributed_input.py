"""Invalid data and settings of fits on a cluster."""

import warnings

import dask
import dask.array
import dask.bag
import dask.dataframe
import numpy as np
import pandas
import pytest
from cluster_fits import Died, assert_equal_to_rounding, files, fit, learned_before, small, table, write_parquet
from cluster_models import SIZES, at_hand, model_of, on_cluster
from dask.delayed import delayed
from every_model import stream_of

import headwater as hw
from headwater.distributed.parts import Part, read_plan_like, sample_part
from headwater.estimators.model_file import read, save, to_bytes


def spoilt(change, number=1):
    """Return an array of three partitions, one of them changed."""
    parts = [chunk.X for chunk in stream_of("gaussian", (40, 30, 50))]
    parts[number] = change(parts[number])
    blocks = [dask.array.from_delayed(delayed(part), (np.nan, 3), float) for part in parts]
    return dask.array.concatenate(blocks, allow_unknown_chunksizes=True)


def with_infinity(rows):
    rows = rows.copy()
    rows[3, 1] = np.inf
    return rows


NONSENSE = {
    "an array at hand": (lambda: np.zeros((9, 2)), {}, TypeError, "data must be names of files or a collection of Dask"),
    "no files": (lambda: [], {}, ValueError, "data must name at least one file, got none"),
    "a pattern of nothing": (lambda: "nowhere/*.parquet", {}, FileNotFoundError, "nowhere.* matches no file"),
    "an empty array": (lambda: dask.array.zeros((0, 3)), {}, ValueError, "the data has no rows"),
    "one row": (lambda: small()[:1], {}, ValueError, "at least 2 rows, one for each component, got 1"),
    "text": (
        lambda: table(np.zeros((40, 2)), word=np.array(["one", "two"] * 20)),
        {}, ValueError, "word",
    ),
    "no such column": (lambda: table(np.zeros((40, 2))), {"weight": "mass"}, ValueError, "mass"),
    "no such option": (lambda: table(np.zeros((40, 2))), {"wieght": "a"}, TypeError, "wieght"),
    "options of an array": (small, {"columns": ["a"]}, ValueError, "columns is for files, dataframes and bags"),
    "numbers in a bag": (lambda: dask.bag.from_sequence([1, 2, 3]), {}, TypeError, "must hold texts, .*, got 1"),
    "weights at hand": (small, {"sample_weight": np.ones(80)}, ValueError, "sample_weight must be a dask array"),
    "a target for nobody": (small, {"y": small()[:, 0]}, ValueError, "GaussianMixture does not learn from y"),
    "rounds": (small, {"rounds": 0}, ValueError, "rounds must be a whole number of at least 1 or 'auto', got 0"),
    "passes": (small, {"passes": 0}, ValueError, "passes must be a whole number of at least 1 or 'auto', got 0"),
    "part_rows": (small, {"part_rows": True}, ValueError, "part_rows must be a whole number of at least 1, got True"),
    "unreadable": (small, {"unreadable": "ignore"}, ValueError, "unreadable must be 'refuse' or 'leave out', got 'ignore'"),
    "open": (small, {"vocabulary": "open"}, ValueError, "vocabulary='open' follows the order of one stream"),
    "shuffle": (small, {"shuffle": 100}, ValueError, "shuffle mixes the rows of one stream"),
}  # fmt: skip


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_is_refused_in_a_sentence(clusters, case):
    make, given, error, sentence = NONSENSE[case]
    model = learned_before()
    before = to_bytes(model)
    with pytest.raises(error, match=sentence):
        fit(clusters, model, make(), **given)
    assert to_bytes(model) == before


def test_a_model_and_a_client_must_be_such(clusters):
    with pytest.raises(TypeError, match="model must be a headwater model, got str"):
        fit(clusters, "gaussian", small())
    with pytest.raises(TypeError, match="client must be a client or a cluster of Dask, or the address of one, got int"):
        hw.distributed.fit(hw.GaussianMixture(2), small(), client=3)
    with pytest.raises(ValueError, match="a cluster must be 'local'"):
        hw.distributed.fit(hw.GaussianMixture(2), small(), client="here")
    with pytest.raises(ValueError, match="half_life forgets in the order of one stream"):
        fit(clusters, hw.GaussianMixture(2, half_life=9.0), small())


def test_files_may_be_empty(clusters, tmp_path):
    files(tmp_path, write_parquet, 3)
    write_parquet(tmp_path / "part-1.parquet", np.empty((0, 3)))
    write_parquet(tmp_path / "part9.parquet", np.empty((0, 3)))
    assert fit(clusters, model_of("gaussian", "auto"), str(tmp_path / "part*")).n_samples_seen_ == sum(SIZES[:3])


def test_partitions_may_be_empty(clusters):
    parts = [chunk.X for chunk in stream_of("gaussian", (40, 30, 50))]
    data = dask.array.concatenate([dask.array.zeros((0, 3)), small(), dask.array.zeros((0, 3)), small()])
    assert fit(clusters, model_of("gaussian", "auto"), data).n_samples_seen_ == 160
    frames = [pandas.DataFrame(rows, columns=list("abc")) for rows in (parts[0][:0], parts[0], parts[1][:0], parts[2])]
    frame = dask.dataframe.from_delayed([delayed(one) for one in frames], meta=frames[0])
    assert fit(clusters, model_of("gaussian", "auto"), frame).n_samples_seen_ == 90
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Best performing initialization did not converge")
        assert fit(clusters, model_of("gaussian", "em"), frame).n_samples_seen_ == 90


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (with_infinity, "infinity"),
        (lambda rows: rows[:, :2], "2 features|2 columns"),
        (lambda rows: rows[:, 0], "two dimensions"),
    ],
    ids=["infinity", "narrow", "flat"],
)
@pytest.mark.parametrize("number", [1, 2])
def test_a_partition_that_makes_no_sense_is_named(clusters, change, sentence, number):
    for word in ("auto", "em"):
        with pytest.raises(hw.distributed.UnreadError, match=sentence) as error:
            fit(clusters, model_of("gaussian", word), spoilt(change, number))
        assert f"partition {number} of the array" in str(error.value)
        assert len(error.value.unread) == 1
        if word == "auto":
            assert error.value.model.n_samples_seen_ == 120 - (40, 30, 50)[number]


MADE_UP = (
    lambda more: more.pop("key"),
    lambda more: more.update(key=-5),
    lambda more: more.update(key=10**49),
    lambda more: more.update(unread=[[10**9, "a", "b"]]),
    lambda more: more.update(unread=[[1]]),
    lambda more: more.update(trace=None),
    lambda more: more.update(runs=10**9),
    lambda more: more.update(again={"x": 2**60}),
    lambda more: more.update(report={}),
    lambda more: more.update(converged="yes"),
)


def test_a_checkpoint_that_was_made_up_is_refused_in_a_sentence(clusters, mortal, tmp_path):
    kept, data = tmp_path / "kept.hw", small()
    mortal[0] = 1
    with pytest.raises(Died):
        fit(clusters, model_of("gaussian", "auto"), data, checkpoint=kept, rounds=2)
    mortal[0] = None
    sound = kept.read_bytes()
    for change in MADE_UP:
        kept.write_bytes(sound)
        model, extra = read(kept)
        change(extra["checkpoint"]["more"])
        save(model, kept, extra=extra)
        with pytest.raises(ValueError, match="is damaged: it does not say what the run had done"):
            fit(clusters, model_of("gaussian", "auto"), data, checkpoint=kept, rounds=2)


def test_no_passes_are_those_of_fit(clusters):
    data, given = on_cluster("gaussian")
    model = model_of("gaussian", "em", max_iter=0)
    assert_equal_to_rounding(
        fit(clusters, model, data, **given), model_of("gaussian", "em", max_iter=0).fit(**at_hand("gaussian"))
    )


def test_what_users_have_set_stays(clusters):
    model = model_of("gaussian", "auto")
    model.note = "mine"
    assert fit(clusters, model, small()).note == "mine"


def test_rows_of_a_sample_come_once(tmp_path):
    rows = np.arange(9000.0).reshape(3000, 3)
    path = tmp_path / "rows.npy"
    np.save(path, rows)
    part = Part(0, str(path), str(path), 0, 3000)
    read_plan = read_plan_like("files", hw.stream(str(path)), {})
    for wanted in (100, 1000, 2900, 9000):
        found = sample_part(hw.GaussianMixture(2), part, None, read_plan, wanted, 8, 0)
        assert len(np.unique(found.X[:, 0])) == len(found) >= min(wanted, 3000)


def test_a_partition_whose_rows_do_not_count_is_no_fault(clusters):
    rows = np.concatenate([chunk.X for chunk in stream_of("gaussian", SIZES)])
    weights = np.ones(len(rows))
    weights[: SIZES[0]] = 0.0
    cut = dask.array.from_array(rows, chunks=(SIZES, (3,))), dask.array.from_array(weights, chunks=(SIZES,))
    found = fit(clusters, model_of("gaussian", "em", max_iter=0), cut[0], sample_weight=cut[1])
    assert_equal_to_rounding(found, model_of("gaussian", "em", max_iter=0).fit(rows, sample_weight=weights))
    assert fit(clusters, model_of("gaussian", "auto"), cut[0], sample_weight=cut[1]).n_samples_seen_ == len(rows) - SIZES[0]


def test_exact_passes_know_where_sequences_of_parts_begin(clusters):
    """States overlap and all rows are in the sample, so joining the sequences of two parts would change the result."""
    rng = np.random.default_rng(0)
    sizes = (160, 90, 120)
    rows = rng.normal(size=(sum(sizes), 2)) + 1.5 * (np.arange(sum(sizes)) // 7 % 2)[:, None]
    given = {"algorithm": "em", "n_iter": 3, "tol": 0.0, "random_state": 0}
    found = fit(clusters, hw.GaussianHMM(2, **given), dask.array.from_array(rows, chunks=(sizes, 2)))
    wanted = hw.GaussianHMM(2, **given).fit(rows, lengths=sizes)
    np.testing.assert_allclose(found.lower_bounds_, wanted.lower_bounds_, rtol=1e-12)


@pytest.mark.parametrize("word", ["em", "vb"])
def test_a_warm_start_goes_on_as_fit_does(clusters, word):
    data, given = on_cluster("gaussian")
    models = [model_of("gaussian", word, warm_start=True, max_iter=2, tol=1e-12, init_params="random") for _ in range(2)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Best performing initialization did not converge")
        for _ in range(2):
            fit(clusters, models[0], data, **given)
            models[1].fit(**at_hand("gaussian"))
    assert_equal_to_rounding(*models)


@pytest.mark.parametrize("word", ["auto", "em"])
def test_rows_with_gaps_are_learned_on_a_cluster(clusters, word):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 3)) + 8.0 * rng.integers(2, size=(2000, 1))
    gapped = np.where(rng.random(rows.shape) < 0.2, np.nan, rows)
    gapped[:, 0] = rows[:, 0]
    model = hw.GaussianMixture(2, covariance_type="diag", algorithm=word, random_state=0)
    found = fit(clusters, model, dask.array.from_array(gapped, chunks=(500, 3)))
    assert found.n_samples_seen_ == 2000 and found.mean_precision_.shape == (2, 3)
    np.testing.assert_allclose(np.sort(found.means_[:, 1]), [0.0, 8.0], atol=0.2)
    assert "gaps" in {finding.kind for finding in found.health_.findings}
