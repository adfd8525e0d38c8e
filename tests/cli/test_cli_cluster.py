import io
import json
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import headwater as hw
import headwater.distributed
from headwater.cli import main
from headwater.cli.support import progress
from headwater.cli.support.options import MessageOptions
from headwater.cli.support.provenance import record_command, this_command
from headwater.diagnostics.distributed_report import DistributedReport, Round
from headwater.distributed import clusters
from headwater.distributed.job import UnreadError
from headwater.distributed.messages import Unread
from headwater.distributed.progress import Step


def rows(number, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(number, 2)) + 6.0 * rng.integers(2, size=(number, 1))


def said(capsys):
    """Return the one sentence on standard error."""
    out, err = capsys.readouterr()
    assert err.startswith("headwater: ") and err.count("\n") == 1 and err.endswith(".\n"), err
    assert out == ""
    return err


COST = DistributedReport(2, (Round("learning", 2, 300, -3.0, 10, 10, 10, 20, 0.5),), workers=4)


@pytest.fixture
def asked(monkeypatch):
    """Record what a cluster was asked for; every call learns from the same rows."""
    asked = {}

    @contextmanager
    def connect(where, security=None):
        asked.update(where=where, security=security)
        yield "client"

    def fit(model, data, **options):
        asked.update(options, data=data)
        options["watch"](Step("learning", 1, 1, 1, 2, 150, -3.0))
        model.partial_fit(rows(300))
        model.distributed_report_ = COST
        return model

    monkeypatch.setattr(headwater.distributed, "connect", connect)
    monkeypatch.setattr(headwater.distributed, "fit", fit)
    return asked


def test_a_cluster_is_asked_for_what_the_options_say(asked, capsys, tmp_path):
    options = ["--rounds", "3", "--part-rows", "1000", "--leave-out-unreadable", "--passes", "auto", "--columns", "a,b"]
    kept = ["--checkpoint", str(tmp_path / "c"), "--weight", "w", "--read", "header=true"]
    assert main(["fit", "gaussian", "there/*.csv", "-k", "2", "--cluster", "tcp://boss:8786", *options, *kept]) == 0
    assert asked["where"] == "tcp://boss:8786" and asked["security"] is None and asked["client"] == "client"
    assert asked["data"] == "there/*.csv" and not asked["go_on"]
    assert asked["rounds"] == 3 and asked["part_rows"] == 1000 and asked["unreadable"] == "leave out"
    assert asked["passes"] == "auto" and asked["checkpoint"] == tmp_path / "c"
    assert asked["columns"] == ["a", "b"] and asked["weight"] == "w" and asked["header"] is True


def test_what_is_not_said_is_left_to_the_library(asked, capsys):
    assert main(["fit", "gaussian", "a.csv", "b.csv", "-k", "2", "--cluster", "local"]) == 0
    left = {"rounds": "auto", "passes": None, "checkpoint": None, "part_rows": None, "unreadable": "refuse", "go_on": False}
    assert {name: asked[name] for name in left} == left and asked["data"] == ["a.csv", "b.csv"]
    assert set(asked) == {*left, "where", "security", "client", "watch", "data", "missing"}


def test_columns_of_a_table_are_passed_on_as_they_are(asked, capsys):
    assert main(["fit", "mixed", "a.csv", "-k", "2", "--cluster", "local"]) == 0
    assert asked["categories"] == "keep"


def test_the_cost_is_told(asked, capsys, tmp_path):
    ask = ["fit", "gaussian", "a.csv", "-k", "2", "--cluster", "local", "-o", str(tmp_path / "m.hw")]
    assert main(ask) == 0
    out, err = capsys.readouterr()
    assert f"{COST}\nSaved in" in out and err == ""
    assert main([*ask, "--quiet"]) == 0
    assert "by 4 workers" not in capsys.readouterr().out
    assert main([*ask, "--json", "--no-raw-rows"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["cluster"]["workers"] == 4 and told["cluster"]["rounds"][0]["merged"] == 10 and told["rows"] == 300
    assert main(["inspect", str(tmp_path / "m.hw"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 300


def test_a_model_goes_on_learning_on_a_cluster(asked, capsys, tmp_path):
    np.save(tmp_path / "a.npy", rows(100))
    assert main(["fit", "gaussian", str(tmp_path / "a.npy"), "-k", "2", "-o", str(tmp_path / "m.hw")]) == 0
    assert main(["fit", str(tmp_path / "m.hw"), "b.npy", "--cluster", "local:2", "-o", str(tmp_path / "m.hw")]) == 0
    assert asked["go_on"] and asked["where"] == "local:2"
    assert hw.load(tmp_path / "m.hw").n_samples_seen_ == 400
    capsys.readouterr()
    assert main(["fit", str(tmp_path / "m.hw"), "b.npy", "--cluster", "local", "--columns", "a"]) == 2
    assert "the model knows what it was learned from: leave out --columns" in said(capsys)


def test_a_report_of_a_cluster_needs_no_rows(asked, capsys, monkeypatch, tmp_path):
    from headwater.cli import fit

    written = []
    monkeypatch.setattr(fit, "write_report", lambda *given: written.append(given))
    assert main(["fit", "gaussian", "there.csv", "-k", "2", "--cluster", "local", "--report", str(tmp_path / "r.html")]) == 0
    assert written[0][1] is None and written[0][2] == tmp_path / "r.html"


def test_what_could_be_read_is_not_lost(asked, capsys, monkeypatch, tmp_path):
    def fit(model, data, **options):
        raise UnreadError([Unread(1, "b.csv", "b.csv is empty")], model.partial_fit(rows(300)))

    monkeypatch.setattr(headwater.distributed, "fit", fit)
    ask = ["fit", "gaussian", "*.csv", "-k", "2", "--cluster", "local"]
    assert main(ask) == 1
    assert said(capsys) == "headwater: b.csv is empty.\n"
    assert main([*ask, "-o", str(tmp_path / "m.hw")]) == 1
    assert f"b.csv is empty; what was learned so far is saved in {tmp_path / 'm.hw'}" in said(capsys)
    assert hw.load(tmp_path / "m.hw").n_samples_seen_ == 300


NONSENSE = {
    "nowhere": (["--cluster", "nowhere"], "--cluster must be 'local', 'local:4' or an address such as 'tcp://host:8786', got"),
    "none": (["--cluster", ""], "--cluster must be 'local'"),
    "no workers": (["--cluster", "local:0"], "got 'local:0'"),
    "no number": (["--cluster", "local:x"], "got 'local:x'"),
    "many": (["--cluster", "local:" + "9" * 400], "--cluster must be"),
    "no rounds": (["--cluster", "local", "--rounds", "0"], "--rounds must be auto or an integer of at least 1, got '0'"),
    "words": (["--cluster", "local", "--rounds", "often"], "got 'often'"),
    "no rows": (["--cluster", "local", "--part-rows", "0"], "--part-rows"),
    "input": (["-", "--cluster", "local"], "workers of a cluster cannot read standard input"),
    "rows": (["--cluster", "local", "--checkpoint-rows", "9"], "after each round: leave out --checkpoint-rows"),
    "seconds": (["--cluster", "local", "--checkpoint-seconds", "9"], "after each round: leave out --checkpoint-seconds"),
    "target": (["--cluster", "local", "--target", "a"], "gaussian does not take --target"),
    "categories": (["--cluster", "local", "--categories", "odd"], "--categories must be one of"),
    "format": (["--cluster", "local", "--format", "odd"], "odd"),
    "read": (["--cluster", "local", "--read", "rounds=3"], "--read takes what headwater.stream does"),
    "half TLS": (["--cluster", "tls://a:1", "--tls-cert", "a.pem"], "TLS needs both --tls-ca-file and --tls-cert"),
    "key alone": (["--cluster", "tls://a:1", "--tls-key", "a.pem"], "TLS needs both --tls-ca-file and --tls-cert"),
    "TLS by TCP": (["--cluster", "tcp://a:1", "--tls-cert", "a", "--tls-ca-file", "b"], "begins with tls://, got 'tcp://a:1'"),
    **{
        option: ([option, *value], f"{option} is for many machines: name them by --cluster")
        for option, *value in (
            ("--rounds", "2"),
            ("--part-rows", "2"),
            ("--leave-out-unreadable",),
            ("--tls-ca-file", "a"),
            ("--tls-cert", "a"),
            ("--tls-key", "a"),
        )
    },
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_refused_before_a_cluster_is_asked(name, asked, capsys):
    arguments, wanted = NONSENSE[name]
    assert main(["fit", "gaussian", "a.csv", "-k", "2", *arguments]) == 2
    assert wanted in said(capsys) and asked == {}


def test_a_missing_library_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["fit", "gaussian", "a.csv", "-k", "2", "--cluster", "local"]) == 1
    assert said(capsys) == "headwater: many machines need Dask: pip install 'headwater[dask]'.\n"


def test_nobody_there_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(clusters, "WORKER_WAIT", 1.0)
    assert main(["fit", "gaussian", "a.csv", "-k", "2", "--cluster", "tcp://127.0.0.1:1"]) == 1
    assert "no scheduler can be reached at tcp://127.0.0.1:1" in said(capsys)


def test_certificates_that_are_none_are_one_sentence(capsys, tmp_path):
    ask = ["fit", "gaussian", "a.csv", "-k", "2", "--cluster", "tls://127.0.0.1:1", "--tls-ca-file", str(tmp_path / "ca.pem")]
    assert main([*ask, "--tls-cert", str(tmp_path / "cert.pem")]) == 1
    assert f"there is no {tmp_path / 'ca.pem'}" in said(capsys)
    for name in ("ca.pem", "cert.pem"):
        (tmp_path / name).write_text("nothing")
    assert main([*ask, "--tls-cert", str(tmp_path / "cert.pem")]) == 1
    assert "no certificates that go together" in said(capsys)


def test_the_command_that_is_kept_names_no_place():
    record_command(["fit", "gaussian", "a", "--cluster", "tls://boss:1", "--tls-key", "k", "--tls-cert=c", "--rounds", "2"])
    assert this_command() == "headwater fit gaussian a --cluster local --rounds 2"
    record_command(["fit", "gaussian", "a", "--cluster=local:4"])
    assert this_command() == "headwater fit gaussian a --cluster local"


def test_progress_shows_rounds_and_parts(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("COLUMNS", "200")
    with progress.cluster_progress_bar(MessageOptions(), "starting workers") as watch:
        watch(Step("looking", 0, 0, 0, 0, 0, None))
        watch(Step("learning", 2, 4, 3, 16, 30_000, -2.5))
    told = shown.getvalue()
    assert "learning, round 2 of 4" in told and "3 of 16 parts, 30,000 rows" in told and "score -2.500" in told
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.cluster_progress_bar(MessageOptions(quiet=True), "starting workers") as watch:
        watch(Step("learning", 2, 4, 3, 16, 30_000, -2.5))
    assert sys.stderr.getvalue() == ""


def test_a_fit_without_a_cluster_loads_nothing_of_dask():
    ask = [sys.executable, "-X", "importtime", "-m", "headwater", "fit", "gaussian", "nowhere.csv", "-k", "2"]
    loaded = {
        line.rpartition("|")[2].strip() for line in subprocess.run(ask, capture_output=True, text=True).stderr.splitlines()
    }
    assert "headwater.cli.support.stream_fit" in loaded and not {"dask", "distributed", "headwater.distributed"} & loaded


def test_workers_read_the_files(tmp_path, capsys):
    from distributed import LocalCluster

    for number in range(3):
        np.save(tmp_path / f"{number}.npy", rows(1000, seed=number))
    options = {
        "processes": False,
        "protocol": "tcp",
        "n_workers": 1,
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
    }
    with LocalCluster(**options) as cluster:
        ask = ["gaussian", str(tmp_path / "*.npy"), "-k", "2", "--set", "warm_up=200", "--cluster", cluster.scheduler_address]
        assert main(["fit", *ask, "--rounds", "2", "--json", "-o", str(tmp_path / "m.hw")]) == 0
        out, err = capsys.readouterr()
        told = json.loads(out)
        assert told["rows"] == 3000 and told["cluster"]["workers"] == 1 and len(told["cluster"]["rounds"]) == 2 and err == ""
        np.testing.assert_allclose(np.sort(hw.load(tmp_path / "m.hw").means_[:, 0]), [0, 6], atol=0.2)
        ask = ["fit", str(tmp_path / "m.hw"), str(tmp_path / "0.npy"), "--cluster", cluster.scheduler_address, "--json"]
        assert main(ask) == 0
        assert json.loads(capsys.readouterr().out)["rows"] == 4000
        (tmp_path / "1.npy").write_text("junk")
        assert main(["fit", "gaussian", str(tmp_path / "*.npy"), "-k", "2", "--cluster", cluster.scheduler_address]) == 1
        assert "1.npy" in said(capsys)
