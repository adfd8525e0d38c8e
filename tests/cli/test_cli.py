import errno
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import headwater as hw
from headwater import datasets, registry
from headwater.cli import main
from headwater.cli.app import app
from headwater.cli.support import output_files, signals, tables
from headwater.cli.support.command import EXAMPLES
from headwater.cli.support.display import print_description
from headwater.estimators.base import StreamingEstimator
from headwater.io import temporary_copies

COMMANDS = (
    "fit", "score", "groups", "label", "watch", "serve", "impute", "predict", "forecast", "inspect", "sample", "merge", "diff",
    "compare", "report", "convert", "compile", "demo", "version",
)  # fmt: skip


def said(capsys):
    """Return the one sentence on standard error."""
    out, err = capsys.readouterr()
    assert err.startswith("headwater: ") and err.count("\n") == 1 and err.endswith(".\n"), err
    assert out == ""
    return err


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a directory with a table, a model of it, and some files that are neither."""
    place = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 2)) + 6.0 * rng.integers(2, size=(400, 1))
    lines = [f"{one:.4f},{other:.4f},r{number}" for number, (one, other) in enumerate(rows)]
    (place / "a.csv").write_text("\n".join(["a,b,id", *lines]) + "\n")
    (place / "empty.csv").write_text("")
    (place / "headed.csv").write_text("a,b,id\n")
    (place / "noise.csv").write_bytes(rng.integers(0, 256, size=5000, dtype=np.uint8).tobytes())
    (place / "other.csv").write_text("c,d\n1,2\n3,4\n")
    (place / "days").mkdir()
    (place / "days" / "d.csv").write_text("a,b\n1,2\n")
    for name in ("t.txt", "t.seq"):
        (place / name).write_text("a b a c\nb b c a\n")
    (place / "text.hw").write_text("this is no model\n")
    assert main(["fit", "gaussian", str(place / "a.csv"), "--exclude", "id", "-k", "2", "-o", str(place / "m.hw"), "-q"]) == 0
    batch = ["fit", "gaussian", str(place / "a.csv"), "--exclude", "id", "--algorithm", "em", "-o", str(place / "batch.hw")]
    assert main(batch) == 0
    return place


@pytest.fixture
def there(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    capsys.readouterr()
    return place


# Help


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(command, capsys):
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "Examples:" in out and f"headwater {command} " in out.replace("headwater version\n", "headwater version ")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_screen(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*command.split(), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 80
    assert main([*command.split(), "-h"]) == 0
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize("command", COMMANDS)
def test_all_options_are_explained_by_help_all(command, capsys, monkeypatch):
    from typer.main import get_command

    monkeypatch.setenv("COLUMNS", "80")
    options = [one for one in get_command(app).commands[command].params if one.param_type_name == "option" and not one.hidden]
    assert main([command, "--help-all"]) == 0
    everything = capsys.readouterr().out
    assert main([command, "--help"]) == 0
    short = capsys.readouterr().out
    for option in options:
        name = max([*option.opts, *option.secondary_opts], key=len)
        assert re.search(rf"^  .*{name}( [^ ]+)?(  +\S|$)", everything, re.MULTILINE), name  # with an explanation
        assert name in short
    assert all(line in everything for line in EXAMPLES[command])
    assert max(map(len, everything.splitlines())) <= 80


def test_help_names_every_command_and_every_model(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f" {command} " in out for command in COMMANDS)
    assert main(["fit", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert all(word in out for word in registry.MODELS)


def test_examples_are_commands_that_make_sense():
    from typer.main import get_command

    known = get_command(app).commands
    assert set(EXAMPLES) == set(COMMANDS) == set(known)
    for lines in EXAMPLES.values():
        for line in lines:
            assert len(line) <= 76, line
            commands = line.split(" # ")[0].strip()
            if commands.startswith("#"):
                continue
            _, *words = shlex.split(commands[commands.index("headwater") :].split(" | ")[0])
            known[words[0]].make_context(words[0], words[1:])  # which is parsed and not run


def test_help_loads_nothing_that_takes_long():
    code = "import sys; from headwater.cli import main; main(['fit', '--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert not loaded & {"numpy", "scipy", "numba", "sklearn", "pyarrow", "matplotlib", "dask", "distributed"}


def test_completion_knows_the_models(monkeypatch, capsys):
    shell = {"_HEADWATER_COMPLETE": "complete_bash", "COMP_WORDS": "headwater fit g", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "headwater"], env={**os.environ, **shell}, capture_output=True, text=True, check=False
    )
    assert "gaussian" in done.stdout


# The registry


def test_every_estimator_has_a_word():
    kinds = {name for name in hw.__all__ if isinstance(getattr(hw, name), type)}
    estimators = {name for name in kinds if issubclass(getattr(hw, name), StreamingEstimator)}
    assert {entry.name for entry in registry.MODELS.values()} == estimators
    for word, entry in registry.MODELS.items():
        assert entry.kind.__name__ == entry.name and registry.word_of(entry.kind()) == word


def test_data_that_ships_has_a_licence():
    assert datasets.path("digits").stat().st_size < 100_000
    assert "Redistribution and use" in datasets.licence("digits")
    with pytest.raises(ValueError, match="name must be one of 'digits', got 'iris'"):
        datasets.path("iris")


# Messages of commands


def test_versions(capsys):
    assert main(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["headwater"] == hw.__version__
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{hw.__version__}\n"


def test_demo_tells_where_the_file_is(capsys):
    assert main(["demo", "--file"]) == 0
    assert capsys.readouterr().out == f"{datasets.path('digits')}\n"


def test_a_report_is_a_page(there, tmp_path, capsys):
    assert main(["report", "m.hw", "a.csv", "-o", str(tmp_path / "r.html"), "--title", "Odd & even", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == (tmp_path / "r.html").stat().st_size
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Odd &amp; even" in page and "headwater fit gaussian" in page


def test_inspect_shows_what_was_learned(there, capsys):
    assert main(["inspect", "m.hw"]) == 0
    told = capsys.readouterr().out
    assert "2 components: 400 rows of 2 columns" in told
    assert told.splitlines() == [line.rstrip() for line in told.splitlines()]
    assert main(["inspect", "m.hw", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == 400 and len(told["components"]) == 2 and told["held_out"]["rows"] == 0


def test_probabilities_that_are_high_are_shown(capsys):
    chain = hw.CategoricalHMM(2, init_params="", random_state=0)
    chain.startprob_, chain.transmat_ = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]])
    chain.emissionprob_ = np.array([[0.96, 0.01, 0.01, 0.01, 0.01], [0.1, 0.2, 0.2, 0.2, 0.3]])
    print_description(chain.partial_fit(chain.sample(300, random_state=0)[0]))
    told = capsys.readouterr().out.splitlines()
    row = next(line for line in told if line.split()[:1] == ["0"])
    assert re.search(r"average, 0 0\.9\d*, ", row)


NONSENSE = {
    "no such command": (["fot"], 2, "Did you mean 'fit'"),
    "no such option": (["fit", "gaussian", "a.csv", "--kay", "3"], 2, "--kay"),
    "parameter as option": (["fit", "gaussian", "a.csv", "--tol", "1"], 2, "is set by --set tol=VALUE"),
    "no argument": (["fit"], 2, "Missing argument 'MODEL'"),
    "no model": (["fit", "a.csv"], 2, "Missing argument 'DATA': the form is headwater fit MODEL DATA..."),
    "unknown model": (["fit", "gausian", "a.csv"], 2, "did you mean 'gaussian'?"),
    "k = 0": (["fit", "gaussian", "a.csv", "-k", "0"], 2, "-k must be auto or an integer of at least 1, got '0'"),
    "negative k": (["fit", "gaussian", "a.csv", "-k", "-3"], 2, "got '-3'"),
    "k in words": (["fit", "gaussian", "a.csv", "-k", "many"], 2, "got 'many'"),
    "passes": (["fit", "gaussian", "a.csv", "--passes", "0"], 2, "--passes must be auto or an integer"),
    "unknown parameter": (["fit", "gaussian", "a.csv", "--set", "covarance_type=diag"], 2, "did you mean 'covariance_type'?"),
    "no equals": (["fit", "gaussian", "a.csv", "--set", "tol"], 2, "--set takes name=value, got 'tol'"),
    "set twice": (["fit", "gaussian", "a.csv", "-k", "2", "--set", "n_components=3"], 2, "n_components is given twice"),
    "bad value": (
        ["fit", "gaussian", "a.csv", "--exclude", "id", "--set", "covariance_type=odd"],
        2,
        "--set covariance_type must",
    ),
    "unknown algorithm": (
        ["fit", "gaussian", "a.csv", "--exclude", "id", "--algorithm", "magic"],
        2,
        "--algorithm must be one of",
    ),
    "illegal algorithm": (
        ["fit", "lda", "a.csv", "--exclude", "id", "--algorithm", "moment-matching"],
        2,
        "cannot be learned by",
    ),
    "algorithm's parameter": (["fit", "gaussian", "a.csv", "--set", "algorithm.speed=3"], 2, "has no parameter 'speed'"),
    "half-life": (["fit", "gaussian", "a.csv", "--exclude", "id", "--half-life", "-1"], 2, "--half-life must be"),
    "missing file": (["fit", "gaussian", "nowhere.csv"], 1, "nowhere.csv"),
    "empty file": (["fit", "gaussian", "empty.csv"], 1, "empty.csv"),
    "no rows": (["fit", "gaussian", "headed.csv", "--exclude", "id"], 1, "headed.csv"),
    "noise": (["fit", "gaussian", "noise.csv"], 1, "noise.csv"),
    "text in a column": (["fit", "gaussian", "a.csv"], 1, "use --categories one-hot, --categories drop, or --exclude"),
    "unknown column": (["fit", "gaussian", "a.csv", "--columns", "a,z"], 1, "'z'"),
    "unknown format": (["fit", "gaussian", "a.csv", "--format", "xls"], 2, "--format must be one of"),
    "unknown policy": (["fit", "gaussian", "a.csv", "--missing", "guess"], 2, "--missing must be one of"),
    "unknown reading": (["fit", "gaussian", "a.csv", "--read", "speed=3"], 2, "speed"),
    "target for none": (["fit", "gaussian", "a.csv", "--exclude", "id", "--target", "a"], 2, "gaussian does not take --target"),
    "counts for none": (["fit", "gaussian", "t.txt"], 2, "gaussian does not learn from sparse rows; multinomial and lda do"),
    "words for chains": (["fit", "markov", "t.txt"], 2, "--format sequences makes sequences of lines"),
    "symbols for none": (["fit", "hmm", "t.seq"], 2, "does not learn from sequences of symbols; markov and categorical-hmm do"),
    "columns of lines": (["fit", "markov", "t.seq", "--weight", "w"], 1, "so that --weight names none"),
    "half-life of words": (
        ["fit", "gaussian", "a.csv", "--half-life", "long"],
        2,
        "--half-life must be auto or a number of rows",
    ),
    "half-life of passes": (["fit", "gaussian", "a.csv", "--half-life", "9", "--passes", "3"], 2, "leave out --half-life or"),
    "no target": (["fit", "regression", "a.csv", "--exclude", "id"], 2, "regression needs --target"),
    "data as output": (["fit", "gaussian", "a.csv", "-o", "a.csv"], 2, "would replace a.csv, which is read"),
    "data as scores": (["score", "m.hw", "./a.csv", "-o", "a.csv"], 2, "would replace a.csv"),
    "data as report": (["report", "m.hw", "a.csv", "-o", "a.csv"], 2, "would replace a.csv"),
    "model as report": (["report", "m.hw", "-o", "m.hw"], 2, "would replace m.hw"),
    "glob as table": (["convert", "a*.csv", "-o", "a.csv"], 2, "would replace a.csv"),
    "folder as table": (["convert", "days", "-o", "days/d.csv"], 2, "would replace days/d.csv"),
    "model as drawn": (["sample", "m.hw", "-o", "m.hw", "--output-format", "csv"], 2, "would replace m.hw"),
    "part as merged": (["merge", "m.hw", "batch.hw", "-o", "m.hw"], 2, "would replace m.hw"),
    "data as picture": (["compare", "gaussian", "a.csv", "--picture", "a.csv"], 2, "--picture a.csv would replace a.csv"),
    "model as checkpoint": (["fit", "m.hw", "a.csv", "--checkpoint", "m.hw"], 2, "--checkpoint m.hw would replace m.hw"),
    "two outputs": (["fit", "gaussian", "a.csv", "-o", "n.hw", "--report", "./n.hw"], 2, "both write to n.hw"),
    "no directory": (["fit", "gaussian", "a.csv", "-o", "nowhere/m.hw"], 1, "there is no directory"),
    "output is a directory": (["fit", "gaussian", "a.csv", "-o", "."], 1, "is a directory"),
    "output is a device": (["fit", "gaussian", "a.csv", "--exclude", "id", "-o", "/dev/null"], 1, "is no regular file"),
    "a batch goes on": (["fit", "batch.hw", "a.csv"], 1, "cannot continue: learn it anew"),
    "columns of a model": (["score", "m.hw", "a.csv", "--columns", "a"], 2, "leave out --columns"),
    "image shape": (["report", "m.hw", "--image-shape", "square"], 2, "got 'square'"),
    "text as model": (["inspect", "text.hw"], 1, "text.hw"),
    "table as model": (["inspect", "a.csv"], 1, "a.csv"),
    "missing model": (["inspect", "nowhere.hw"], 1, "nowhere.hw"),
    "directory as model": (["inspect", "."], 1, "is a directory"),
    "text goes on": (["fit", "text.hw", "a.csv"], 1, "text.hw"),
    "k goes on": (["fit", "m.hw", "a.csv", "-k", "3"], 2, "-k cannot be given to a model that continues learning"),
    "wrong columns": (["score", "m.hw", "other.csv"], 1, "'a', 'b'"),
    "rate": (["score", "m.hw", "a.csv", "--rate", "2"], 2, "--rate"),
    "rate and threshold": (["score", "m.hw", "a.csv", "--rate", "0.1", "--threshold", "-3"], 2, "give one of them"),
    "only odd": (["score", "m.hw", "a.csv", "--only-odd"], 2, "--only-odd needs --rate or --threshold"),
    "against": (["score", "m.hw", "a.csv", "--rate", "0.1", "--against", "all"], 2, "got 'all'"),
    "shuffled scores": (["score", "m.hw", "a.csv", "--shuffle", "9"], 2, "leave out --shuffle"),
    "keep nothing": (["score", "m.hw", "a.csv", "--keep", "z"], 1, "--keep names 'z'"),
    "unknown ending": (["score", "m.hw", "a.csv", "-o", "s.xls"], 2, "must end in one of"),
    "output format": (["score", "m.hw", "a.csv", "--output-format", "xls"], 2, "got 'xls'"),
    "shuffled report": (["report", "m.hw", "a.csv", "--shuffle", "9"], 2, "leave out --shuffle"),
    "threshold": (["score", "m.hw", "a.csv", "--threshold", "nan"], 2, "--threshold must be a number"),
    "k of none": (["fit", "arrival", "a.csv", "-k", "2"], 2, "arrival takes no -k"),
    "new words for none": (["fit", "multinomial", "t.txt", "--vocabulary", "open"], 2, "cannot take up new words"),
    "no length": (["sample", "m.hw", "--length", "5"], 2, "no --length"),
    "data to sample": (["sample", "m.hw", "a.csv"], 2, "without any data"),
    "one model twice": (["merge", "m.hw", "m.hw"], 1, "count"),
    "merge text": (["merge", "m.hw", "text.hw"], 1, "text.hw"),
    "compare standard input": (["compare", "gaussian", "-"], 2, "can be read once"),
    "compare by none": (["compare", "gaussian", "a.csv", "--algorithms", "scvb0"], 2, "got 'scvb0'"),
    "model to a table": (["convert", "m.hw", "-o", "m.parquet"], 2, "to a name that ends in .json, got m.parquet"),
    "convert to nothing": (["convert", "a.csv", "-o", "a.xls"], 2, "must end in one of"),
    "array to a terminal": (["convert", "a.csv", "--output-format", "npy"], 2, "name it by -o"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_gets_one_sentence_and_an_exit_code(name, there, capsys):
    arguments, code, words = NONSENSE[name]
    before = sorted((path.name, path.stat().st_mtime_ns) for path in there.iterdir())
    assert main(arguments) == code
    assert words in said(capsys)
    assert sorted((path.name, path.stat().st_mtime_ns) for path in there.iterdir()) == before


def test_a_place_that_is_read_only(there, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    assert main(["fit", "gaussian", "a.csv", "--exclude", "id", "-o", str(tmp_path / "m.hw")]) == 1
    assert "read-only" in said(capsys)


def test_a_disk_that_is_full(there, tmp_path, capsys, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["score", "m.hw", "a.csv", "-o", str(tmp_path / "s.csv")]) == 1
    assert "s.csv cannot be written: No space left on device" in said(capsys)
    assert main(["fit", "gaussian", "a.csv", "--exclude", "id", "-o", str(tmp_path / "m.hw")]) == 1
    assert "No space left on device" in said(capsys)
    assert not list(tmp_path.iterdir())


def test_a_defect_says_that_it_is_one_and_debug_shows_the_trace(there, capsys, monkeypatch):
    def broken(self):
        raise KeyError("weights")

    monkeypatch.setattr(hw.GaussianMixture, "describe", broken)
    assert main(["inspect", "m.hw"]) == 1
    assert "unexpected KeyError: 'weights' (run again with --debug for the traceback)" in said(capsys)
    assert main(["inspect", "m.hw", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupted_command_leaves_no_half_file(there, tmp_path, capsys, monkeypatch):
    def interrupted(self, X):
        raise KeyboardInterrupt

    monkeypatch.setattr(hw.GaussianMixture, "score_samples", interrupted)
    assert main(["score", "m.hw", "a.csv", "-o", str(tmp_path / "s.csv")]) == 130
    assert said(capsys) == "headwater: interrupted.\n"
    assert not list(tmp_path.iterdir())


def test_whoever_stops_reading_is_not_told_off(there, capsys, monkeypatch):
    def gone(self, columns):
        raise BrokenPipeError

    monkeypatch.setattr(tables._Arrow, "write", gone)
    assert main(["score", "m.hw", "a.csv"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_a_pipe_that_ends_early(there, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(hw.__file__).parent.parent))
    command = f"{sys.executable} -m headwater score m.hw a.csv --chunk-rows 8 | head -n 2"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith("row,score,cluster\n")
    for arguments in ("inspect m.hw", "fit --help"):
        command = f"set -o pipefail; {sys.executable} -u -m headwater {arguments} | head -c 1"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stderr == ""


def test_what_is_half_written_goes_when_the_process_is_stopped(there, tmp_path, monkeypatch):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    spool = tmp_path / "spool"
    spool.write_text("copied")
    monkeypatch.setattr(temporary_copies, "_copies", {str(spool)})
    before = [signal.getsignal(number) for number in signals.SIGNALS]
    try:
        with output_files.write_atomically(tmp_path / "[s].csv") as place, signals.remove_parts_on_stop(tmp_path / "[m].hw"):
            place.write_text("half")
            (tmp_path / ".[m].hw.abc.part").write_text("half")
            (tmp_path / ".m.hw.abc.part").write_text("of somebody else")
            signals._stop(signal.SIGTERM, None)
            assert [path.name for path in tmp_path.iterdir()] == [".m.hw.abc.part"] and ended == [143]
            place.write_text("whole")
    finally:
        for number, handler in zip(signals.SIGNALS, before, strict=True):
            signal.signal(number, handler)
    assert (tmp_path / "[s].csv").read_text() == "whole"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.1, 0.3, 0.6, 1.0, 1.5])
def test_a_signal_stops_a_process_wherever_it_is(seconds, there, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(hw.__file__).parent.parent))
    command = [sys.executable, "-m", "headwater", "fit", "gaussian", "-", "--format", "csv", "-k", "auto"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        time.sleep(seconds)
        running.terminate()
        assert running.wait(timeout=60) in (143, -signal.SIGTERM)  # the latter before Python has started
        assert running.stderr.read() == b""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_half_file(number, code, there, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(hw.__file__).parent.parent))
    os.mkfifo(tmp_path / "endless.csv")
    arguments = ["score", "m.hw", str(tmp_path / "endless.csv"), "-o", str(tmp_path / "s.csv"), "--format", "csv"]
    command = [sys.executable, "-m", "headwater", *arguments]
    # Tests that run in the background of a shell ignore Ctrl-C, and so would the command.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, preexec_fn=heard) as running, open(tmp_path / "endless.csv", "w") as pipe:
        pipe.write("a,b\n" + "1.0,2.0\n" * 200_000)
        pipe.flush()
        for _ in range(600):
            if list(tmp_path.glob(".s.csv.*")):
                break
            time.sleep(0.1)
        assert list(tmp_path.glob(".s.csv.*")), "it never began to write"
        running.send_signal(number)
        assert running.wait(timeout=60) == code
    assert sorted(path.name for path in tmp_path.iterdir()) == ["endless.csv"]


def test_a_terminal_is_not_told_what_to_do_by_names(capsys):
    from headwater.cli.support.display import print_table
    from headwater.cli.support.failures import print_message

    print_table("t", ["a\x1b[31m"], [["[red]b\x07"]])
    print_message("it has \x1b[2J")
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "[red]b" in said.out


def test_a_full_disk_is_said_of_what_is_written(tmp_path, monkeypatch, capsys):
    """The sentence names the file, standard output, or the temporary copy that some formats need; the data can be read."""
    import gzip

    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    np.save(tmp_path / "x.npy", np.ones((50, 2)))
    (tmp_path / "x.npy.gz").write_bytes(gzip.compress((tmp_path / "x.npy").read_bytes()))
    for form in ("csv", "jsonl", "parquet", "arrow"):
        assert main(["convert", str(tmp_path / "x.npy"), "-o", str(full), "--output-format", form]) == 1
        assert capsys.readouterr().err == "headwater: /dev/full cannot be written: No space left on device.\n"

    def short(*anything, **options):
        raise OSError("4200 requested and 3056 written")  # all that NumPy says

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", short)
        assert main(["convert", str(tmp_path / "x.npy"), "-o", str(tmp_path / "y.npy")]) == 1
    sentence = f"headwater: {tmp_path / 'y.npy'} cannot be written: the disk took only a part of it, and may be full.\n"
    assert capsys.readouterr().err == sentence

    def no_room(self, *anything):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(sys.stdout, "flush", lambda: no_room(None), raising=False)
        assert main(["convert", str(tmp_path / "x.npy")]) == 1
    assert capsys.readouterr().err == "headwater: standard output cannot be written: No space left on device.\n"
    handle = os.open(full, os.O_WRONLY)
    monkeypatch.setattr("tempfile.mkstemp", lambda **options: (handle, str(tmp_path / "copy")))
    assert main(["convert", str(tmp_path / "x.npy.gz"), "-o", str(tmp_path / "y.csv")]) == 1
    assert capsys.readouterr().err == (
        f"headwater: a copy of {tmp_path / 'x.npy.gz'}, {tmp_path / 'copy'}, cannot be written: No space left on device; "
        f"TMPDIR can name another place.\n"
    )


def test_a_report_is_named_after_the_data_and_shows_kept_columns(there, capsys):
    assert main(["report", "m.hw", "a.csv", "--keep", "id", "-o", "page.html"]) == 0
    page = (there / "page.html").read_text(encoding="utf-8")
    assert "<h1>a</h1>" in page and 'class="kept" data-name="id"' in page
    assert main(["report", "m.hw", "-o", "page.html"]) == 0
    assert "<h1>m</h1>" in (there / "page.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["report", "m.hw", "--keep", "id", "-o", "page.html"]) == 2
    assert "--keep names columns of the data, and no data is given" in capsys.readouterr().err
