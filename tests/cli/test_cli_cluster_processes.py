import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from test_cli_cluster import rows, said

from headwater.cli import main
from headwater.distributed import clusters
from headwater.kernels._jit import COMPILING

pytestmark = pytest.mark.slow


@pytest.fixture
def days(tmp_path):
    for number in range(8):
        np.save(tmp_path / f"{number}.npy", rows(20_000, seed=number))
    return tmp_path


def started(days, *options):
    """A command in a session of its own, as a terminal has one."""
    ask = ["fit", "gaussian", "*.npy", "-k", "12", "--set", "covariance_type=full", "--rounds", "4", *options]
    source = os.pathsep.join([str(Path(__file__).parents[2] / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "headwater", *ask],
        cwd=days,
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # the process that started the tests may ignore it
        text=True,
        start_new_session=True,
    )


def until(there, process):
    """Wait until a condition holds that another process brings about."""
    end = time.monotonic() + 120
    while not there():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.01)


def of_session(number):
    """Return the running processes of a session."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == number and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, ProcessLookupError):
            continue
    return found


def left_behind(number):
    """Return the processes of a session that do not end by themselves.

    The resource tracker of `multiprocessing` ends a moment after its process.
    """
    psutil.wait_procs(of_session(number), timeout=60)
    return of_session(number)


def finished(process):
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


@pytest.fixture
def whole(days):
    """Return the model file of an undisturbed run on one worker."""
    code, out, err = finished(started(days, "--cluster", "local:1", "-o", "whole.hw"))
    assert code == 0 and "by 1 worker." in out
    assert {*err.splitlines()} <= {COMPILING}  # which later runs do not print
    return (days / "whole.hw").read_bytes()


def test_a_worker_that_is_killed_changes_no_bit_and_says_nothing(days, whole):
    process = started(days, "--cluster", "local:2", "--checkpoint", "c", "-o", "m.hw")
    until((days / "c").exists, process)
    workers = [one for one in of_session(process.pid) if "spawn_main" in " ".join(one.cmdline())]
    assert len(workers) == 2
    workers[0].kill()
    code, _, err = finished(process)
    assert (code, err) == (0, "")
    assert (days / "m.hw").read_bytes() == whole
    assert not left_behind(process.pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_client_that_is_stopped_leaves_no_worker_and_goes_on_to_the_same_bits(number, days, whole):
    process = started(days, "--cluster", "local:2", "--checkpoint", "c", "-o", "m.hw")
    until((days / "c").exists, process)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    code, out, err = finished(process)
    assert out == "" and code == (-number if number == signal.SIGKILL else 128 + number)
    assert err == ("headwater: interrupted.\n" if number == signal.SIGINT else "")
    assert not left_behind(process.pid) and not (days / "m.hw").exists()
    assert finished(started(days, "--cluster", "local:1", "--checkpoint", "c", "-o", "m.hw"))[0] == 0
    assert (days / "m.hw").read_bytes() == whole


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_certificates_open_a_cluster_that_is_closed_to_others(tmp_path, capsys, monkeypatch):
    from distributed import LocalCluster

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(clusters, "WORKER_WAIT", 8.0)
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority",
        "req -newkey rsa:2048 -nodes -keyout own.key -out own.csr -subj /CN=own",
        "x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out own.pem -days 2",
        "req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -days 2 -subj /CN=other",
    ):
        subprocess.run(["openssl", *command.split()], check=True, capture_output=True)
    np.save("a.npy", rows(1000))
    security = clusters.tls("ca.pem", "own.pem", "own.key")
    options = {
        "processes": False,
        "protocol": "tls",
        "n_workers": 1,
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
    }
    ask = ["fit", "gaussian", str(tmp_path / "a.npy"), "-k", "2", "--json", "--cluster"]
    with LocalCluster(security=security, **options) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        own = ["--tls-ca-file", "ca.pem", "--tls-cert", "own.pem", "--tls-key", "own.key"]
        assert main([*ask, address, *own]) == 0
        assert json.loads(capsys.readouterr().out)["rows"] == 1000
        for others in ([], ["--tls-ca-file", "ca.pem", "--tls-cert", "other.pem", "--tls-key", "other.key"]):
            assert main([*ask, address, *others]) == 1
            assert f"no scheduler can be reached at {address}" in said(capsys)
    assert main([*ask, "local:1", *own]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 1000
