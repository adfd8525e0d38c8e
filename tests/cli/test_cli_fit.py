import io
import json
import subprocess
import sys

import numpy as np
import pytest

import headwater as hw
from headwater.cli import main
from headwater.cli.support import model_arguments, progress
from headwater.cli.support.model_arguments import ModelSettings, make_model
from headwater.cli.support.options import MessageOptions
from headwater.core import compile
from headwater.core.chunk import Chunk
from headwater.estimators.describers import describer
from headwater.io import row_collection
from headwater.io.readers import delimited_head
from headwater.io.recipes.tables import whole_sequences
from headwater.registry import MODELS


def rows(number, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(number, 2)) + 6.0 * rng.integers(2, size=(number, 1))


@pytest.fixture
def data(tmp_path):
    np.save(tmp_path / "a.npy", rows(300))
    return str(tmp_path / "a.npy")


def fitted(arguments, tmp_path, capsys):
    capsys.readouterr()
    assert main(["fit", *arguments, "-o", str(tmp_path / "m.hw")]) == 0
    capsys.readouterr()
    return hw.load(tmp_path / "m.hw")


def test_a_stream_is_what_partial_fit_makes_of_it(data, tmp_path, capsys):
    found = fitted(["gaussian", data, "-k", "2", "--seed", "5", "--chunk-rows", "64"], tmp_path, capsys)
    wanted = hw.GaussianMixture(2, random_state=5).partial_fit(rows(300))
    np.testing.assert_array_equal(found.means_, wanted.means_)


def test_parameters_come_from_options_and_from_set(data, tmp_path, capsys):
    asked = ["--algorithm", "online-em", "--half-life", "1e4", "--set", "covariance_type=diag", "--set", "warm_up=50"]
    found = fitted(["gaussian", data, "-k", "2", *asked, "--set", "algorithm.decay=0.7"], tmp_path, capsys)
    assert found.covariance_type == "diag" and found.warm_up == 50 and found.half_life == 1e4
    assert found.algorithm == hw.OnlineEM(decay=0.7)


def test_an_open_vocabulary_is_open_in_the_model_too(tmp_path, capsys):
    (tmp_path / "t.txt").write_text("a b a\n" * 30 + "c d a\n" * 30)
    asked = ["lda", str(tmp_path / "t.txt"), "-k", "2", "--vocabulary", "open", "--chunk-rows", "20"]
    assert sorted(fitted(asked, tmp_path, capsys).feature_names_in_) == ["a", "b", "c", "d"]


def test_parameters_may_be_as_wide_as_the_data(tmp_path, capsys):
    np.save(tmp_path / "wide.npy", np.column_stack([rows(300), rows(300, seed=1)[:, 0]]))
    asked = ["gaussian", str(tmp_path / "wide.npy"), "-k", "2", "--set", "means_init=[[0,0,0],[6,6,6]]"]
    assert fitted(asked, tmp_path, capsys).means_.shape == (2, 3)


@pytest.mark.parametrize("asked", [["--passes", "auto"], ["--algorithm", "em"], ["--passes", "3"]])
def test_more_passes_are_what_fit_makes_of_it(asked, data, tmp_path, capsys):
    found = fitted(["gaussian", data, "-k", "2", *asked], tmp_path, capsys)
    algorithm = "em" if "em" in asked else "auto"
    wanted = hw.GaussianMixture(2, random_state=0, algorithm=algorithm, max_iter=3 if "3" in asked else 100).fit(rows(300))
    np.testing.assert_array_equal(found.means_, wanted.means_)
    assert found.n_samples_seen_ == 300


def test_passes_of_a_named_online_algorithm_stream_again(data, tmp_path, capsys):
    found = fitted(["gaussian", data, "-k", "2", "--algorithm", "online-em", "--passes", "2"], tmp_path, capsys)
    wanted = hw.GaussianMixture(2, random_state=0, algorithm="online-em").partial_fit(rows(300)).partial_fit(rows(300))
    np.testing.assert_array_equal(found.means_, wanted.means_)


def test_what_does_not_fit_in_memory_is_refused(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(row_collection, "available_memory", lambda: 1000)
    assert main(["fit", "gaussian", data, "-k", "2", "--passes", "auto", "--chunk-rows", "64"]) == 1
    said = capsys.readouterr().err
    assert "does not fit in memory" in said and "--passes 1 learns from a stream" in said and said.count("\n") == 1


def test_without_output_the_model_is_shown(data, tmp_path, capsys):
    assert main(["fit", "gaussian", data, "-k", "2"]) == 0
    out, err = capsys.readouterr()
    assert "2 components: 300 rows of 2 columns seen" in out and "Saved" not in out and err == ""
    assert main(["fit", "gaussian", data, "-k", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] is None


def test_the_same_command_writes_the_same_file(data, tmp_path, capsys):
    for name in ("a.hw", "b.hw"):
        assert main(["fit", "gaussian", data, "-k", "2", "--set", "warm_up=50", "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.hw").read_bytes() == (tmp_path / "b.hw").read_bytes()


def test_raw_rows_may_be_left_out(data, tmp_path, capsys):
    chain = ["hmm", data, "-k", "2", "--set", "warm_up=50"]  # rows of a chain are learned when later rows have come
    assert fitted(chain, tmp_path, capsys).holds_rows_
    assert not fitted([*chain, "--no-raw-rows"], tmp_path, capsys).holds_rows_
    assert main(["fit", *chain, "--no-raw-rows", "-o", str(tmp_path / "m.hw")]) == 0
    assert "raw row" not in capsys.readouterr().out


def test_models_merge(data, tmp_path, capsys):
    np.save(tmp_path / "b.npy", rows(200, seed=1))
    parts = []
    for name in ("a", "b"):
        parts.append(str(tmp_path / f"{name}.hw"))
        assert main(["fit", "gaussian", str(tmp_path / f"{name}.npy"), "-k", "2", "-o", parts[-1]]) == 0
    capsys.readouterr()
    assert main(["merge", *parts, "-o", str(tmp_path / "both.hw")]) == 0
    assert "2 models merged, 500 rows in all" in capsys.readouterr().out
    assert hw.load(tmp_path / "both.hw").n_samples_seen_ == 500
    assert main(["merge", *parts, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 500


def test_standard_input_is_learned(monkeypatch, capsys):
    text = "\n".join(["a,b", *(f"{one:.4f},{other:.4f}" for one, other in rows(100))])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["fit", "gaussian", "-", "--format", "csv", "-k", "2", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["rows"] == 100 and err == ""


def test_standard_input_is_read_once(monkeypatch, capsys, tmp_path):
    for asked in (["--passes", "2", "--algorithm", "online-em"], ["--checkpoint", str(tmp_path / "c")]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n3,4\n")))
        assert main(["fit", "gaussian", "-", "--format", "csv", "-k", "2", *asked]) == 2
        assert "standard input cannot" in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_of_its_own_does_without_pandas():
    text = "\n".join(["a,b", *(f"{one:.4f},{other:.4f}" for one, other in rows(100))])
    code = "import sys; from headwater.cli import main; code = main(); print('pandas' in sys.modules, code, file=sys.stderr)"
    command = [sys.executable, "-c", code, "fit", "gaussian", "-", "--format", "csv", "-k", "2", "--json"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"] == 100 and done.stderr.split() == ["False", "0"]


def test_the_commands_that_made_a_model_are_kept(data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "gaussian", "a.npy", "-k", "2", "-o", "m.hw", "-q", "--checkpoint=c"]) == 0
    assert main(["fit", "m.hw", "a.npy", "-o", "n.hw", "--json"]) == 0
    capsys.readouterr()
    assert main(["inspect", "n.hw", "--json"]) == 0
    wanted = ["headwater fit gaussian a.npy -k 2", "headwater fit m.hw a.npy"]
    assert json.loads(capsys.readouterr().out)["commands"] == wanted


# Parts


def test_rows_with_keys_become_sequences():
    chunk = Chunk(np.arange(5.0)[:, None], key=np.array(["b", "a", "b", "a", "b"]))
    sorted_ = row_collection.by_sequence(chunk)
    assert sorted_.X.ravel().tolist() == [0, 2, 4, 1, 3] and sorted_.lengths.tolist() == [3, 2] and sorted_.key is None


def test_sequences_are_whole_however_they_are_cut():
    X, key = np.arange(12.0)[:, None], np.repeat(["a", "b", "c", "d"], [1, 6, 2, 3])
    for size in range(1, 13):
        cut = [Chunk(X[at : at + size], key=key[at : at + size], start=at) for at in range(0, 12, size)]
        whole = list(whole_sequences(hw.MarkovMixture(), cut))
        assert np.concatenate([chunk.X for chunk in whole]).ravel().tolist() == list(range(12))
        assert np.concatenate([chunk.lengths for chunk in whole]).tolist() == [1, 6, 2, 3]
        assert [chunk.start for chunk in whole] == np.cumsum([0, *map(len, whole[:-1])]).tolist()
        assert np.concatenate([chunk.kept["key"] for chunk in whole]).tolist() == ["a", "b", "c", "d"]


def test_sequences_that_come_apart_are_refused():
    chunk = Chunk(np.zeros((3, 1)), key=np.array(["a", "b", "a"]))
    with pytest.raises(ValueError, match="rows of the sequence 'a' are not together"):
        list(whole_sequences(hw.MarkovMixture(), [chunk]))


def test_chunks_are_put_together_with_what_belongs_to_them():
    from scipy import sparse

    one = Chunk(sparse.csr_array([[1.0, 0.0]]), sample_weight=np.array([2.0]))
    wider = Chunk(sparse.csr_array([[0.0, 0.0, 3.0]]), sample_weight=np.array([1.0]), start=1)
    both = row_collection.concatenate_chunks([one, wider])
    assert both.X.toarray().tolist() == [[1, 0, 0], [0, 0, 3]] and both.sample_weight.tolist() == [2, 1] and both.start == 0


def test_progress_is_for_terminals(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with progress.progress_bar(MessageOptions(), "learning", 1000) as watch:
        watch(500, -2.5)
    told = shown.getvalue()
    assert "learning" in told and "500 rows" in told and "rows/s" in told and "held-out score -2.500" in told and "left" in told
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.progress_bar(MessageOptions(), "learning", 1000) as watch:
        watch(500)
    assert sys.stderr.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.progress_bar(MessageOptions(quiet=True), "learning", 1000) as watch:
        watch(500)
    assert sys.stderr.getvalue() == ""


# How many components, and how many passes


def test_a_model_that_leaves_components_empty_needs_a_number(data, capsys):
    assert main(["fit", "bayesian", data]) == 2
    assert "bayesian needs -k" in capsys.readouterr().err


@pytest.mark.parametrize("word", [word for word in MODELS if MODELS[word].kind._traits.finds_number])
def test_the_number_of_components_is_found_if_none_is_given(word):
    """For every model that can find it."""
    made, _ = make_model(MODELS[word], ModelSettings())
    assert made.get_params().get("n_components", "auto") == "auto"
    if "n_components" in made.get_params():
        assert make_model(MODELS[word], ModelSettings(k="3"))[0].n_components == 3
        assert make_model(MODELS[word], ModelSettings(given=["n_components=3"]))[0].n_components == 3


def test_a_half_life_may_be_found_by_itself():
    assert make_model(MODELS["gaussian"], ModelSettings(k="2", half_life="auto"))[0].half_life == "auto"
    assert make_model(MODELS["gaussian"], ModelSettings(k="2", half_life="1e4"))[0].half_life == 1e4


def test_a_default_that_cannot_be_is_explained(data, capsys):
    assert main(["fit", "gaussian", data, "--half-life", "100", "--set", "means_init=[[0,0],[1,1]]"]) != 0
    assert main(["fit", "gaussian", data, "--set", "half_life=auto"]) == 2
    assert "got 'auto' twice; -k gives the number of components" in capsys.readouterr().err


def test_a_file_that_is_smaller_than_the_warm_up_is_learned_all_the_same(data, tmp_path, capsys):
    assert main(["fit", "gaussian", data, "-o", str(tmp_path / "m.hw")]) == 0
    out = capsys.readouterr().out
    assert "2 components: 300 rows" in out and "not over" not in out and "raw row" not in out
    learned = hw.load(tmp_path / "m.hw")
    assert learned.n_components_ == 2 and not learned.holds_rows_
    assert main(["inspect", str(tmp_path / "m.hw")]) == 0
    assert "not over" not in capsys.readouterr().out
    assert main(["fit", str(tmp_path / "m.hw"), data, "-o", str(tmp_path / "more.hw")]) == 0
    assert hw.load(tmp_path / "more.hw").n_samples_seen_ == 600


def chain_file(path, n):
    rng = np.random.default_rng(3)
    states = np.repeat(rng.integers(0, 3, n // 20 + 1), 20)[:n]
    np.save(path, (6.0 * states + rng.normal(size=n))[:, None])
    return str(path)


def test_a_race_is_held_on_the_rows_there_are(tmp_path, capsys):
    assert main(["fit", "hmm", chain_file(tmp_path / "c.npy", 300), "-k", "auto", "-o", str(tmp_path / "m.hw")]) == 0
    out = capsys.readouterr().out
    assert "3 states: 300 rows" in out and "3 was the best of 1, 2, 3," in out and "not over" not in out
    assert main(["fit", "hmm", chain_file(tmp_path / "d.npy", 30), "-k", "auto"]) == 0
    assert "by the data: 30 rows are too few to compare several, so it is 1." in capsys.readouterr().out


@pytest.mark.parametrize("given", [["--set", "n_iter=1"], ["--algorithm", "em"]])
def test_passes_go_on_until_the_model_converges(given, tmp_path, capsys):
    passes = [] if "em" in given else ["--passes", "auto"]
    learned = fitted(["hmm", chain_file(tmp_path / "c.npy", 400), "-k", "3", *given, *passes], tmp_path, capsys)
    assert learned.converged_ and learned.n_iter_ > 1
    assert learned.n_iter == (1 if "n_iter=1" in given else 10)


def test_passes_that_were_asked_for_are_made(tmp_path, capsys):
    path = chain_file(tmp_path / "c.npy", 400)
    assert fitted(["hmm", path, "-k", "3", "--algorithm", "em", "--set", "n_iter=2"], tmp_path, capsys).n_iter_ <= 2


def count_calls(monkeypatch, module, name, counts):
    function = getattr(module, name)

    def counted(*given, **options):
        counts[name] = counts.get(name, 0) + 1
        return function(*given, **options)

    monkeypatch.setattr(module, name, counted)


@pytest.mark.parametrize("shuffle", [[], ["--shuffle", "100"]])
def test_data_is_looked_at_once_and_health_is_computed_once(shuffle, tmp_path, monkeypatch, capsys):
    np.savetxt(tmp_path / "a.csv", rows(300), delimiter=",", header="a,b", comments="")
    counts = {}
    count_calls(monkeypatch, delimited_head, "_guess_delimiter", counts)
    count_calls(monkeypatch, model_arguments, "make_provisional_learner", counts)
    count_calls(monkeypatch, describer, "judge_health", counts)
    asked = ["fit", "gaussian", "-k", "2", str(tmp_path / "a.csv"), "-o", str(tmp_path / "m.hw"), *shuffle]
    assert main([*asked, "--report", str(tmp_path / "r.html")]) == 0
    assert counts == {"_guess_delimiter": 1, "make_provisional_learner": 1, "judge_health": 1}
    counts.clear()
    assert main(["inspect", str(tmp_path / "m.hw"), "--json"]) == 0
    assert counts == {"judge_health": 1}
    counts.clear()
    asked = [str(tmp_path / "m.hw"), str(tmp_path / "a.csv"), "--rate", "0.1", "--against", "data"]
    assert main(["score", *asked, "-o", str(tmp_path / "s.csv")]) == 0
    assert counts == {"_guess_delimiter": 1}


def test_the_learner_of_the_data_is_built_and_compiled_once(tmp_path, monkeypatch, capsys):
    np.savetxt(tmp_path / "a.csv", np.column_stack([rows(300), rows(300, seed=1)[:, 0]]), delimiter=",")
    described, compiled = [], []
    describe, compile_one = hw.GaussianMixture._described, compile.compile_plan

    def counted_description(model, width):
        described.append(width)
        return describe(model, width)

    def counted_compilation(learner):
        compiled.append(learner.width)
        return compile_one(learner)

    monkeypatch.setattr(hw.GaussianMixture, "_described", counted_description)
    monkeypatch.setattr(compile, "compile_plan", counted_compilation)
    assert main(["fit", "gaussian", "-k", "2", str(tmp_path / "a.csv"), "-o", str(tmp_path / "m.hw")]) == 0
    assert described == compiled == [2, 3]  # parameters are checked before data is read, by a learner of two columns


def test_health_is_computed_again_when_the_model_has_changed():
    model = hw.GaussianMixture(2, random_state=0).partial_fit(rows(3000))
    before = model.health_
    assert model.health_ is before
    model.history_ = hw.History()
    assert model.health_ is not before
    before = model.health_
    assert model.partial_fit(rows(10)).health_ is not before and model.health_.rows == 3010


def test_steps_of_rounded_columns_are_found(data, tmp_path, capsys):
    whole = np.column_stack([rows(300)[:, 0].round(), rows(300)[:, 1]])
    np.save(tmp_path / "whole.npy", whole)
    asked = ["gaussian", str(tmp_path / "whole.npy"), "-k", "2"]
    assert fitted(asked, tmp_path, capsys).resolution_.tolist() == [1.0, 0.0]
    assert fitted([*asked, "--resolution", "none"], tmp_path, capsys).resolution is None
    assert fitted([*asked, "--resolution", "1,0.5"], tmp_path, capsys).resolution_.tolist() == [1.0, 0.5]
    assert fitted([*asked, "--resolution", "2"], tmp_path, capsys).resolution_.tolist() == [2.0, 2.0]
    assert fitted([*asked, "--algorithm", "moment-matching"], tmp_path, capsys).resolution is None
    assert fitted(["mixed", *asked[1:], "--resolution", "none"], tmp_path, capsys).resolution is None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["gaussian", "--resolution", "fine"], "--resolution must be auto, none, a number"),
        (["gaussian", "--resolution", "1", "--set", "resolution=2"], "resolution is given twice"),
        (["poisson", "--resolution", "1"], "poisson takes no --resolution"),
    ],
)
def test_what_is_no_resolution_is_refused(asked, said, data, capsys):
    assert main(["fit", asked[0], data, *asked[1:]]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "wanted"), [("categorical-hmm", "symbols that are numbered from 0"), ("poisson-hmm", "numbers")]
)
def test_chains_say_which_of_them_takes_words(word, wanted, tmp_path, capsys):
    path = tmp_path / "sky.csv"
    path.write_text("sky\n" + "sun\nrain\nrain\n" * 40)
    assert main(["fit", word, str(path), "-k", "2"]) != 0
    said = capsys.readouterr().err
    assert f"{word} learns from {wanted}, and {path} holds words in column 'sky': use mixed-hmm, which takes words" in said
    assert main(["fit", "mixed-hmm", str(path), "-k", "2"]) == 0
