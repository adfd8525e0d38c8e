"""headwater compile."""

import json
import os
import pickle
import re
import subprocess
import sys

import pytest

from headwater import registry
from headwater.cli import main
from headwater.cli.support import kernel_fits

UNUSED = """
import sys, warnings
warnings.simplefilter("ignore")
from headwater.cli.support.kernel_fits import FITS, run_fits
from headwater.kernels.compile_counts import unused_kernels
for word in FITS:
    run_fits(word)
sys.exit(", ".join(unused_kernels()) or 0)
"""


def run(capsys, *arguments):
    assert main(["compile", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def machine_code(folder):
    """Return the object code in a folder, by file, without the addresses that Numba puts into names."""

    def objects(value):
        if isinstance(value, bytes):
            return [] if value.startswith(b"BC") else [re.sub(b"array_expr_0x[0-9a-f]+", b"array_expr", value)]
        return [found for one in value for found in objects(one)] if isinstance(value, tuple) else []

    return {file.name: objects(pickle.loads(file.read_bytes())) for file in folder.rglob("*.nbc")}


@pytest.mark.slow
def test_kernels_are_compiled_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "one"))
    first = json.loads(run(capsys, "markov", "--json"))
    (directory,) = first["directories"]
    (record,) = first["models"]
    assert directory.startswith(str(tmp_path / "one"))
    assert record["model"] == "markov" and record["compiled"] == first["compiled"] > 0 and record["found"] == 0
    files = machine_code(tmp_path / "one")
    assert len(files) == first["compiled"] and all(max(map(len, found)) > 1000 for found in files.values())
    assert run(capsys, "MarkovMixture").startswith("markov: 0 kernels compiled in ")


@pytest.mark.slow
def test_two_installations_have_the_same_machine_code(tmp_path, monkeypatch, capsys):
    for name, seed in (("one", "3"), ("two", "17")):  # whatever the seed of the caller is
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / name))
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        lines = run(capsys, "markov", "markov", "--again").splitlines()
        assert len(lines) == 2 and lines[1].startswith(f"kept in {tmp_path / name}")
    assert machine_code(tmp_path / "one") == machine_code(tmp_path / "two")


def test_quiet_prints_only_where_kernels_are(monkeypatch, capsys):
    records = [{**RECORD, "directories": ["here"]}]
    monkeypatch.setattr("headwater.cli.compile.run_small_fits", lambda words, again: iter(records))
    assert run(capsys, "--quiet") == "kept in here\n"
    assert run(capsys) == "hmm: 1 kernel compiled in 2.0 s, 3 found\nkept in here\n"


RECORD = {"model": "hmm", "compiled": 1, "found": 3, "seconds": 2.0, "directories": []}


def test_all_models_are_compiled_if_none_is_named(monkeypatch, capsys):
    asked = []

    def note(words, again):
        asked.append((list(words), again))
        return iter([{**RECORD, "directories": ["here"]}])

    monkeypatch.setattr("headwater.cli.compile.run_small_fits", note)
    run(capsys)
    run(capsys, "nmf", "hmm", "ItakuraSaitoNMF", "--again")
    assert asked == [(list(registry.MODELS), False), (["nmf", "hmm"], True)]
    assert list(kernel_fits.FITS) == list(registry.MODELS)


def test_what_cannot_be_done_is_said(monkeypatch, capsys):
    assert main(["compile", "gausian"]) == 2
    assert "did you mean 'gaussian'?" in capsys.readouterr().err
    monkeypatch.setattr("headwater.cli.compile.run_small_fits", lambda words, again: iter([RECORD]))
    assert main(["compile"]) == 1
    assert "no directory to keep compiled kernels in: NUMBA_CACHE_DIR can name one" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setenv("PYTHONPATH", os.devnull)
    monkeypatch.setattr(sys, "executable", "/bin/false" if os.path.exists("/bin/false") else sys.executable)
    assert main(["compile", "hmm"]) == 1
    assert "the process that compiles ended with code 1" in capsys.readouterr().err


def test_kernels_that_cannot_be_kept_are_not_compiled_one_after_another(monkeypatch, capsys):
    def fits(words, again):
        yield RECORD | {"compiled": 1, "directories": []}
        pytest.fail("the next model was compiled")

    monkeypatch.setattr("headwater.cli.compile.run_small_fits", fits)
    assert main(["compile"]) == 1
    assert "no directory to keep compiled kernels in: NUMBA_CACHE_DIR can name one" in capsys.readouterr().err


@pytest.mark.slow
def test_small_fits_call_every_kernel(tmp_path):
    environ = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", UNUSED], env=environ, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-500:]
