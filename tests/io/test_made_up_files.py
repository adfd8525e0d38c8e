"""Every saved file can be loaded. Any other file is refused, or its model answers, learns, merges and can be saved."""

import os
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import every_model
import made_up_files
import numpy as np
import odd_rows
import pytest
from odd_rows import CHUNKS, blank

import headwater as hw
from headwater.checkpoints import Checkpoint, Position
from headwater.core.algorithms import ALGORITHMS
from headwater.core.batch import Batch, join_batches
from headwater.diagnostics.history import COMPRESSION_SCORES, History, compress_scores
from headwater.estimators import model_file
from headwater.estimators.parameters import parameter_names
from headwater.io.files import container
from headwater.io.files.records import Damaged

RNG = np.random.default_rng(0)


def remade(header, arrays, name, array):
    return container.to_bytes(header, {**arrays, name: array})


# Saved files can be loaded


def test_scores_that_are_equal_can_be_kept():
    """Because of rounding, the mean of equal numbers may differ from them."""
    for scores in (
        np.repeat([-1.1, -3.3, -0.7], 3 * COMPRESSION_SCORES),
        np.full(5 * COMPRESSION_SCORES, -np.pi),
        np.full(9000, -1e-300),
    ):
        history = History().after(scores, 0, len(scores))
        assert np.array_equal(History.from_dict(history.to_dict()).usual[0], history.usual[0])
        kept, rows = compress_scores(np.sort(scores), np.ones(len(scores)))
        assert (np.diff(kept) >= 0.0).all() and rows.sum() == len(scores)


def test_histories_whose_means_fall_by_rounding_can_be_read():
    """Earlier versions wrote such files; they are corrected."""
    found = History().after(np.full(2 * COMPRESSION_SCORES, -1.0), 0, 2 * COMPRESSION_SCORES).to_dict()
    scores = found["windows"][1]["scores"] or found["windows"][0]["scores"]
    scores[1] -= 1e-15
    assert (np.diff(History.from_dict(found).usual[0]) >= 0.0).all()
    scores[1] -= 1e-3
    with pytest.raises(ValueError, match="must rise"):
        History.from_dict(found)


def test_histories_have_numbers_only():
    scores = np.array([-1e308, -1e308, np.nan, -np.inf, -1.0] * 40)
    history = History().after(scores, 0, 200).with_weights(np.array([np.nan, 0.5]), 1.0, 1.0)
    again = History.from_dict(history.to_dict())
    assert again.to_dict() == history.to_dict()
    assert np.isfinite(again.late_score)


def test_rows_with_and_without_weights_are_joined():
    one, other = Batch(np.zeros((2, 1)), np.array([2.0, 3.0])), Batch(np.ones((3, 1)), labels=np.array([0, 1, 0]))
    both = join_batches([one, other])
    assert both.weights.tolist() == [2.0, 3.0, 1.0, 1.0, 1.0]
    assert both.labels.tolist() == [-1, -1, 0, 1, 0]


def test_a_race_that_goes_on_can_be_loaded():
    """Rows of its warm-up have weights, and later rows have none."""
    model = made_up_files.SITUATIONS["race"][1]()
    for chunk in every_model.stream_of("chain", (90, 50), 7):
        model.partial_fit(**chunk)
        again = model_file.from_bytes(model_file.to_bytes(model))
        assert again.race_.running == model.race_.running


def test_drawn_topics_may_have_words_and_no_documents():
    """Shares of topics are counts of draws, and counts of words are expectations."""
    documents = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], size=60).astype(float)
    for row in ([0.0, 20.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 20.0]):
        model = hw.LatentDirichletAllocation(2, warm_up=60, random_state=0, algorithm=hw.SimulatedEM(batch_size=20))
        model.partial_fit(documents).partial_fit(np.array([row]))
        assert model_file.from_bytes(model_file.to_bytes(model)).n_samples_seen_ == 61


def test_a_stream_that_begins_to_watch_for_drift_can_be_loaded():
    """It has no kept rows yet, and so no expected score."""
    model = hw.GaussianMixture(2, warm_up=60, random_state=0).partial_fit(rows_of("rounded", 100))
    model = model_file.from_bytes(container.to_bytes(*model_file.pack(model, raw_rows=False))).set_params(half_life="auto")
    for _ in range(3):
        model = model_file.from_bytes(model_file.to_bytes(model.partial_fit(rows_of("rounded", 20))))
    assert model.n_samples_seen_ == 160


def test_merged_models_of_one_component_can_be_loaded():
    """No other assignment is possible, so its cost is infinite."""
    parts = [hw.GaussianMixture(1, warm_up=50, random_state=seed).partial_fit(RNG.normal(size=(90, 2))) for seed in (0, 1)]
    report = model_file.from_bytes(model_file.to_bytes(hw.merge(parts))).merge_report_
    assert report.matches[0].margin.tolist() == [np.inf]


def rows_of(data, n, width=4):
    return odd_rows.ROWS[data](n, width, RNG)


def assert_saved_models_load(kind, algorithm, data, **options):
    """Check files at every stage of a stream: whole, without raw rows, merged, and from a checkpoint."""
    model = blank(kind, algorithm, **options)
    X = rows_of(data, 300)
    monitor = hw.Monitor(model)
    try:
        if not ALGORITHMS[algorithm].online:
            saved = [model_file.to_bytes(model.fit(**CHUNKS[kind](X)))]
        else:
            saved = [
                model_file.to_bytes(monitor.learn(**CHUNKS[kind](X[part])))
                for part in (slice(50), slice(50, 150), slice(150, 300))
            ]
            model = monitor.model
    except ValueError as error:
        assert "cannot be learned by" in str(error), error
        return
    for bytes_ in (*saved, container.to_bytes(*model_file.pack(model, raw_rows=False))):
        again = model_file.from_bytes(bytes_)
    assert again.n_samples_seen_ == model.n_samples_seen_
    if ALGORITHMS[algorithm].online:
        other = blank(kind, algorithm, **options).set_params(random_state=1).partial_fit(**CHUNKS[kind](rows_of(data, 280)))
        model_file.from_bytes(model_file.to_bytes(hw.merge([model, other])))


@pytest.mark.covering("kind")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CHUNKS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("data", ["ties", "constant", "huge", "tiny"])
def test_whatever_was_saved_can_be_loaded(kind, data):
    with np.errstate(all="ignore"):
        assert_saved_models_load(kind, "auto", data)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [hw.RegressionHMM, hw.AutoregressiveHMM], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("algorithm", "data"),
    [
        ("em", "zero"),
        ("em", "collinear"),
        ("em", "outliers"),
        ("vb", "outliers"),
        ("online-em", "tiny"),
        ("online-em", "constant"),
    ],
)
def test_regressions_on_collinear_rows_can_be_saved_and_loaded(kind, algorithm, data):
    """Their normal equations are singular, or as good as singular."""
    with np.errstate(all="ignore"):
        assert_saved_models_load(kind, algorithm, data)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", ["auto", "online-em", "em"])
def test_factors_of_rows_of_two_sizes_can_be_saved_and_loaded(algorithm):
    rows = 1e-60 * np.random.default_rng(0).normal(size=(200, 4))
    rows[[3, 90, 150]] *= 1e159
    options = {"covariance_type": "factor", "n_factors": 1, "random_state": 0, "algorithm": algorithm}
    model = hw.GaussianMixture(2, warm_up=60, **options)
    with np.errstate(all="ignore"):
        learn = model.partial_fit if ALGORITHMS[algorithm].online else model.fit
        again = model_file.from_bytes(model_file.to_bytes(learn(rows)))
    assert np.isfinite(again.means_).all()


def test_a_refined_stream_that_was_saved_without_its_rows_can_be_loaded():
    """Statistics that were restated from a few rows with ties may be impossible for any rows."""
    rows = np.round(np.random.default_rng(92).normal(size=(300, 4)))
    model = hw.GaussianMixture(2, warm_up=60, random_state=0, reservoir=100)
    for part in (slice(50), slice(50, 150), slice(150, 300)):
        model.partial_fit(rows[part])
    again = model_file.from_bytes(container.to_bytes(*model_file.pack(model, raw_rows=False)))
    assert again.n_samples_seen_ == 300


@pytest.mark.parametrize("kind", [hw.GaussianMixture, hw.RegressionMixture, hw.BayesianGaussianMixture])
def test_models_of_squares_that_are_too_small_can_be_loaded(kind):
    """The products of such squares with light weights are zero, while those of the values are not."""
    rows = 1e-120 * RNG.normal(size=(70, 4))
    for learn in ("partial_fit", "fit", "warm_start_from"):
        model = getattr(blank(kind, "auto"), learn)(**CHUNKS[kind](rows), sample_weight=np.full(70, 1e-100))
        assert model_file.from_bytes(model_file.to_bytes(model)).n_features_in_ == model.n_features_in_


OPTIONS = ({"parts": 2}, {"half_life": 50.0}, {"reservoir": 100}, {"half_life": "auto"}, {"n_components": "auto"})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("algorithm", [*ALGORITHMS, *OPTIONS], ids=str)
@pytest.mark.parametrize("kind", CHUNKS, ids=lambda kind: kind.__name__)
def test_whatever_was_saved_by_any_algorithm_can_be_loaded(kind, algorithm):
    options = algorithm if isinstance(algorithm, dict) else {}
    names = set(parameter_names(kind))
    if not set(options) <= names or (options.get("half_life") == "auto" and "reservoir" not in names):
        pytest.skip("it has no such option")
    if kind is hw.BayesianGaussianMixture and "auto" in options.values():
        pytest.skip("its half-life and its number of components are numbers")
    if options.get("n_components") == "auto" and not kind._traits.finds_number:
        pytest.skip("its number of components is not found")
    with np.errstate(all="ignore"):
        for data in odd_rows.ROWS:
            try:
                assert_saved_models_load(kind, "auto" if options else algorithm, data, **options)
            except ValueError as error:
                assert "which 'auto' chose" in str(error), (data, error)  # rivals that differ in number are not merged


# Made-up files are refused or sound

FEW = 4  # changes to each file; there are many of them where tests may take long


@pytest.mark.parametrize("situation", made_up_files.SITUATIONS)
def test_made_up_files_are_refused_or_sound(situation):
    header, arrays = made_up_files.file_of(situation)
    kind = made_up_files.SITUATIONS[situation][0]
    assert not made_up_files.refused_or_sound(container.to_bytes(header, arrays), kind)
    seed = crc32(situation.encode()) % 1000 + 1500  # so that every kind of change is applied to some file
    refused = []
    for data in made_up_files.made_up(header, arrays, 10 * FEW, seed):
        refused.append(made_up_files.refused_or_sound(data, kind))
        if len(refused) >= FEW and any(refused):
            break
    assert any(refused)


@pytest.mark.slow
@pytest.mark.parametrize("situation", made_up_files.SITUATIONS)
def test_many_made_up_files_are_refused_or_sound(situation):
    """Each array is changed several times."""
    header, arrays = made_up_files.file_of(situation)
    for data in made_up_files.made_up(header, arrays, max(300, 6 * len(arrays)), 1):
        made_up_files.refused_or_sound(data, made_up_files.SITUATIONS[situation][0])


CHECKED = """
import sys
import made_up_files
for situation in (
    "markov", "markov warm-up", "multinomial", "words", "topics", "symbols", "symbols warm-up", "drift", "counted chain",
    "autoregressive", "switching", "bayesian",
):
    header, arrays = made_up_files.file_of(situation)
    whole = {name: array for name, array in arrays.items() if array.dtype.kind in "iu"}
    for name in sorted(whole):
        for number in (-1, 1000, 2**31 - 1):
            array = whole[name].copy()
            array.flat[: min(1, array.size)] = number if array.dtype.kind == "i" else 2**32 - 1
            data = made_up_files.container.to_bytes(header, {**arrays, name: array})
            made_up_files.refused_or_sound(data, made_up_files.SITUATIONS[situation][0])
    for data in made_up_files.made_up(header, arrays, 40, 2):
        made_up_files.refused_or_sound(data, made_up_files.SITUATIONS[situation][0])
print("sound")
"""


@pytest.mark.slow
def test_no_file_makes_a_kernel_leave_its_arrays(tmp_path):
    """All kernels check the bounds of all arrays here."""
    here = Path(__file__).parents[1]
    paths = os.pathsep.join([str(here), str(Path(hw.__file__).parents[1])])
    given = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": paths}
    run = subprocess.run(
        [sys.executable, "-c", CHECKED], env={**os.environ, **given}, capture_output=True, text=True, timeout=3000, check=False
    )
    assert run.stdout.endswith("sound\n"), run.stderr[-3000:]


@pytest.mark.parametrize("place", [0, 1])
def test_open_sequences_whose_statistics_are_not_those_of_their_states_are_refused(place):
    """The next row would lead to impossible statistics, and the file saved then would be refused."""
    header, arrays = made_up_files.file_of("steps")
    name = f"state/carry/apart/0/{place}"
    array = arrays[name].copy()
    array.flat[12] = 1e150
    with pytest.raises(Damaged, match="statistics that no rows could have made"):
        model_file.from_bytes(remade(header, arrays, name, array))


@pytest.mark.parametrize("number", [-1, 1, 1000])
def test_groups_that_no_model_has_are_refused(number):
    """A kernel would use them as indices of its arrays."""
    header, arrays = made_up_files.file_of("markov")
    name = "state/parameters/components/groups"
    array = arrays[name].copy()
    array[0] = number
    with pytest.raises(Damaged, match="cannot be read"):
        model_file.from_bytes(remade(header, arrays, name, array))


def test_rows_that_are_kept_for_nothing_are_refused():
    """Learning needs the time of the next search, which such a file does not have."""
    header, arrays = made_up_files.file_of("gaussian")
    assert header["state"]["reservoir"] is not None
    header = {**header, "state": {**header["state"], "healing": None}}
    with pytest.raises(Damaged, match="does not say how"):
        model_file.from_bytes(container.to_bytes(header, arrays))


@pytest.mark.parametrize("kind", ["events", "flags", "gaussian", "background"])
@pytest.mark.parametrize("place", ["reservoir/sample/batch", "buffer"])
def test_kept_rows_without_a_value_are_refused(kind, place):
    """Rows that say nothing are left out when they are learned; a search on such rows alone would restate a base to nothing."""
    warm_up = 500 if place == "buffer" else 60
    header, arrays = made_up_files.packed(made_up_files.with_gaps_or_errors(kind, {"warm_up": warm_up}))
    name = f"state/{place}/X/values"
    for rows in (slice(None), slice(3, 4)):
        values = arrays[name].copy()
        values[rows] = np.nan
        with pytest.raises(Damaged, match="holds rows without a value, which no stream keeps"):
            model_file.from_bytes(remade(header, arrays, name, values))


@pytest.mark.parametrize("kind", ["autoregressive", "switching"])
def test_kept_rows_that_are_missing_in_part_are_refused(kind):
    """These models keep a row of which something is missing as missing, and their starts count on it."""
    header, arrays = made_up_files.file_of(f"{kind} warm-up")
    values = arrays["state/buffer/X"].copy()
    values[7, 0] = np.nan
    with pytest.raises(Damaged, match="holds rows that are missing in part"):
        model_file.from_bytes(remade(header, arrays, "state/buffer/X", values))


@pytest.mark.parametrize("shape", [(2, 2), (1, 3), (2,), (0, 2)])
def test_past_rows_of_another_shape_are_refused(shape):
    header, arrays = made_up_files.file_of("autoregressive")
    assert arrays["_pasts/0"].shape == (1, 2)
    with pytest.raises(Damaged, match=r"last rows of a sequence of shape .*, and should have \(1, 2\)"):
        model_file.from_bytes(remade(header, arrays, "_pasts/0", np.zeros(shape)))


def test_widths_that_no_number_of_symbols_makes_are_refused():
    """A kernel would read beyond the end of its groups."""
    header, arrays = made_up_files.file_of("markov warm-up")
    header |= {"width": header["width"] + 1, "results": {**header["results"], "n_features_in_": header["width"] + 1}}
    with pytest.raises(Damaged, match="first symbols and steps"):
        model_file.from_bytes(container.to_bytes(header, arrays))


NO_NUMBERS = (
    ("gaussian warm-up", "state/buffer/weights", 1e150),
    ("chain warm-up", "state/buffer/weights", 1e-320),
    ("mixed warm-up", "state/buffer/X", 1e150),
    ("topics", "state/base/prior/proportions", 1e150),
    ("arrival", "state/statistics/count", 0.0),
    ("averaged", "state/parts/0/statistics/from_base", 1e150),
    ("markov", "state/parameters/components/norm", -np.inf),
    ("regression", "state/parameters/components/power", 1e200),
    ("regression", "state/parameters/components/power", 1e-320),
    ("spherical", "state/statistics/count", 1e100),
    ("events", "state/base/statistics/count", 1e150),
    ("events", "state/parameters/components/rates", -1.0),
    ("flags", "state/parameters/components/log_ones", 1.0),
    ("factor", "state/parameters/components/unwhiten", 1e249),
    ("factor", "state/parameters/components/whiten", 1e100),
    ("factor", "state/parameters/components/offset", 1e9),
    ("factor online", "state/base/prior/components/origin", -1e150),
    ("switching", "state/base/prior/emissions/origin", 1e150),
    ("autoregressive", "state/base/prior/emissions/origin", 1e249),
    ("autoregressive", "state/base/prior/emissions/floor", 1e249),
    ("autoregressive", "_pasts/0", np.inf),
    ("autoregressive", "_pasts/0", 1e150),
    ("multinomial", "state/base/statistics/table/rows", 1e249),
    ("gated warm-up", "state/buffer/X", np.nan),
)


@pytest.mark.parametrize(("situation", "name", "number"), NO_NUMBERS)
def test_files_that_would_answer_by_no_numbers_are_refused(situation, name, number):
    header, arrays = made_up_files.file_of(situation)
    with pytest.raises(Damaged):
        model_file.from_bytes(remade(header, arrays, name, np.full_like(arrays[name], number)))


# Files that would be refused only after learning, merging and saving.


def test_averages_whose_counts_disagree_are_refused():
    header, arrays = made_up_files.packed(made_up_files.learned("symbols", {"algorithm": hw.OnlineEM(batch_size=1)}))
    for place in ("average", "statistics"):
        name = f"state/{place}/emissions/count"
        with pytest.raises(Damaged, match="lengths that are not those of its counts"):
            model_file.from_bytes(remade(header, arrays, name, np.ones_like(arrays[name])))


@pytest.mark.parametrize("kind", ["topics", "multinomial", "markov"])
def test_tables_whose_counts_are_not_their_lengths_are_refused(kind):
    """So are tables of averages, which have two parts."""
    algorithm = hw.SimulatedEM(batch_size=20) if kind == "topics" else hw.OnlineEM(batch_size=20)
    header, arrays = made_up_files.packed(made_up_files.learned(kind, {"algorithm": algorithm}, (100, 60, 60)))
    for place in ("average", "statistics"):
        table = header["state"][place]["table"]
        for part in [table["table"], table["rest"]] if table["kind"] == "Blend" else [table]:
            kept = part["factor"]
            for factor in (2.0 * kept, 1e150):
                part["factor"] = factor
                with pytest.raises(Damaged, match=r"lengths that are not|counts more than|negative counts"):
                    model_file.from_bytes(container.to_bytes(header, arrays))
            part["factor"] = kept


@pytest.mark.parametrize("kind", ["gaussian", "multinomial", "regression"])
def test_parts_that_have_not_learned_all_rows_are_refused(kind):
    """The places of kept rows would lie outside of the stream."""
    header, arrays = made_up_files.packed(made_up_files.learned(kind, {"parts": 2}))
    assert header["state"]["reservoir"] is not None
    header["state"]["parts"][1]["pending"] = None
    with pytest.raises(Damaged, match="state has 160 rows, and its parts have"):
        model_file.from_bytes(container.to_bytes(header, arrays))


def test_files_whose_function_is_an_object_are_refused():
    header, arrays = made_up_files.file_of("arrival warm-up")
    header["parameters"]["steering"] = {"object": "Harmonic"}
    with pytest.raises(Damaged, match="steering is an object that is not known"):
        model_file.from_bytes(container.to_bytes(header, arrays))


@pytest.mark.parametrize("number", [True, 10**6, 10**9])
def test_files_with_more_components_than_anybody_could_start_are_refused(number):
    header, arrays = made_up_files.file_of("spectra warm-up")
    header["parameters"]["n_components"] = number
    with pytest.raises(Damaged, match="n_components"):
        model_file.from_bytes(container.to_bytes(header, arrays))


# Paths that are not files


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_pipes_and_devices_are_refused_at_once(tmp_path):
    pipe = tmp_path / "a.hw"
    os.mkfifo(pipe)
    for path in (pipe, Path(os.devnull)):
        with pytest.raises(OSError, match="is no regular file"):
            hw.load(path)
        with pytest.raises(OSError, match="is no regular file"):
            Checkpoint(path, {"a": 1}).resume()
    model = hw.GaussianMixture(1, warm_up=20, random_state=0).partial_fit(rows_of("ties", 40, 2))
    for write in (model.save, lambda path: Checkpoint(path, {"a": 1}).write(model, Position())):
        with pytest.raises(OSError, match="is no regular file"):
            write(pipe)
