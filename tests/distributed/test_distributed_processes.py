"""Workers and clients in processes of their own: killed, slow, late, with TLS; and their memory."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from contextlib import contextmanager
from uuid import uuid4

import dask
import numpy as np
import psutil
import pyarrow as pa
import pytest
from cluster_models import assert_same
from distributed import Client, LocalCluster
from every_model import KINDS, stream_of
from pyarrow.parquet import ParquetWriter
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from headwater.distributed import dask_engine

pytestmark = pytest.mark.slow

PARTS, ROWS = 12, 30_000
WAYS = {"one pass": {"algorithm": "online-em"}, "exact": {"algorithm": "em", "init_params": "random", "max_iter": 6}}


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Return files that take some time to learn."""
    folder = tmp_path_factory.mktemp("days")
    for number, chunk in enumerate(stream_of("gaussian", (ROWS,) * PARTS)):
        np.save(folder / f"{number:02d}.npy", chunk.X)
    return str(folder / "*.npy")


@contextmanager
def scheduler(security=None):
    """Return a client of a scheduler without workers."""
    options = {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}, "silence_logs": 50}
    with LocalCluster(n_workers=0, security=security, **options) as cluster, Client(cluster, security=security) as client:
        yield client


def until(there):
    """Wait until a condition holds that other processes bring about."""
    end = time.monotonic() + 120
    while not there():
        assert time.monotonic() < end
        time.sleep(0.01)


@contextmanager
def workers(client, number, nanny=False, options=()):
    """Start worker processes, with or without a nanny that replaces those that die."""
    address = client.scheduler.address
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", *options]
    command += ["--nanny" if nanny else "--no-nanny", "--death-timeout", "60", "--name"]
    names = [uuid4().hex for _ in range(number)]  # a count would include workers whose death was not noticed yet
    running = [subprocess.Popen([*command, name], stderr=subprocess.DEVNULL) for name in names]
    try:
        until(lambda: {*names} <= {one["name"] for one in client.scheduler_info(n_workers=-1)["workers"].values()})
        yield running
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def learned(way, data, client, **given):
    model = hw.GaussianMixture(6, random_state=0, tol=1e-12, **WAYS[way])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return hw.distributed.fit(model, data, client=client, part_rows=ROWS, rounds=3, **given)


@pytest.fixture(scope="module")
def undisturbed(days):
    """Return the result of an undisturbed run on one worker."""
    with scheduler() as client, workers(client, 1):
        return {way: learned(way, days, client) for way in WAYS}


class Once:
    """Calls a function in the middle of the second round, in a separate thread."""

    def __init__(self, act):
        self.act, self.thread = act, None

    def __call__(self, step):
        if self.thread is None and step.stage in ("learning", "passing") and step.round == 2:
            self.thread = threading.Thread(target=self.act)
            self.thread.start()

    def over(self):
        assert self.thread is not None, "there was no second round"
        self.thread.join()


def killed(process_id):
    os.kill(process_id, signal.SIGKILL)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("nanny", [False, True], ids=["alone", "nanny"])
def test_a_worker_that_is_killed_changes_nothing(days, undisturbed, way, nanny):
    with scheduler() as client, workers(client, 2, nanny):
        victim = next(iter(client.run(os.getpid).values()))
        watch = Once(lambda: killed(victim))
        found = learned(way, days, client, watch=watch)
        watch.over()
        assert not psutil.pid_exists(victim) or psutil.Process(victim).status() == psutil.STATUS_ZOMBIE
        if nanny:
            client.wait_for_workers(2, timeout=60)
            assert victim not in client.run(os.getpid).values()
    assert_same(found, undisturbed[way])


@pytest.mark.parametrize(
    ("kind", "word", "nanny"),
    [("gaussian", "em", False), ("multinomial", "online-em", True), ("topics", "auto", False), ("chain", "em", True)],
)
@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
def test_a_worker_that_is_killed_at_any_moment_changes_nothing(tmp_path, kind, word, nanny):
    """From the first request, for its version, to the last result."""
    for number, chunk in enumerate(stream_of(kind, (2000,) * 6)):
        np.save(tmp_path / f"{number}.npy", chunk.X.toarray() if hasattr(chunk.X, "toarray") else chunk.X)

    def fit(client):
        model = KINDS[kind][0]().set_params(algorithm=word)
        return hw.distributed.fit(model, str(tmp_path / "*.npy"), client=client)

    with scheduler() as client, workers(client, 1):
        wanted = fit(client)
    for seconds in (0.1, 0.8):
        with scheduler() as client, workers(client, 2, nanny):
            victim = next(iter(client.run(os.getpid).values()))
            kill = threading.Timer(seconds, killed, [victim])
            kill.start()
            found = fit(client)
            kill.join()
        assert_same(found, wanted)


DIES_WHEN_ASKED = """
    import os, signal, sys

    class Mortal:
        def find_spec(self, name, path=None, target=None):
            if name == "headwater":
                os.kill(os.getpid(), signal.SIGKILL)

    sys.meta_path.insert(0, Mortal())
"""


@pytest.mark.parametrize("others", [1, 0])
def test_workers_that_die_when_they_are_asked_for_their_version(days, undisturbed, tmp_path, others):
    (tmp_path / "mortal.py").write_text(textwrap.dedent(DIES_WHEN_ASKED))
    mortal = ["--preload", str(tmp_path / "mortal.py")]
    with scheduler() as client, workers(client, others), workers(client, 1, options=mortal) as (victim,):
        late = []

        def come():
            victim.wait()
            late.append(workers(client, 1))
            late[0].__enter__()

        coming = threading.Thread(target=come)
        coming.start()
        try:
            found = learned("one pass", days, client)
        finally:
            coming.join()
            late[0].__exit__(None, None, None)
        assert victim.returncode == -signal.SIGKILL
    assert_same(found, undisturbed["one pass"])


@pytest.mark.parametrize("another", [True, False], ids=["another comes", "none comes"])
def test_the_last_worker_dies_with_the_result(days, undisturbed, another, monkeypatch):
    monkeypatch.setattr(dask_engine, "WORKER_WAIT", 60.0 if another else 3.0)
    monkeypatch.setattr(dask_engine, "WORKER_CHECK_INTERVAL", 1.0)
    with dask.config.set({"distributed.comm.timeouts.connect": "2s"}), scheduler() as client, workers(client, 1) as (first,):
        late = []

        def watch(step):
            if step.stage == "learning" and step.round == 2 and step.done == step.parts and first.poll() is None:
                first.kill()
                first.wait()
                if another:
                    late.append(workers(client, 1))
                    late[0].__enter__()

        try:
            if another:
                assert_same(learned("one pass", days, client, watch=watch), undisturbed["one pass"])
            else:
                with pytest.raises(hw.distributed.ClusterError, match="the cluster has had no workers for 3 seconds"):
                    learned("one pass", days, client, watch=watch)
        finally:
            for context in late:
                context.__exit__(None, None, None)


@pytest.mark.parametrize("early", [True, False], ids=["early", "late"])
def test_a_worker_of_another_version_learns_nothing(days, tmp_path, early):
    (tmp_path / "old.py").write_text("import headwater\n\nheadwater.__version__ = '0.0.1'\n")
    old = ["--preload", str(tmp_path / "old.py")]
    with scheduler() as client, workers(client, 1) as (first,):
        late = []

        def join(step):
            if not late and (early or step.stage == "learning"):
                late.append(workers(client, 1, options=old))
                late[0].__enter__()
                first.kill()

        if early:
            join(None)
        try:
            with pytest.raises(hw.distributed.ClusterError, match=f"must have headwater {hw.__version__}, .* 0.0.1"):
                learned("one pass", days, client, watch=join)
        finally:
            late[0].__exit__(None, None, None)


@pytest.mark.parametrize("way", WAYS)
def test_the_last_worker_dies_and_another_comes(days, undisturbed, way):
    with scheduler() as client, workers(client, 1) as (first,):
        late = []

        def act():
            first.kill()
            first.wait()
            until(lambda: not client.nthreads())
            context = workers(client, 1)
            context.__enter__()
            late.append(context)

        watch = Once(act)
        try:
            found = learned(way, days, client, watch=watch)
            watch.over()
        finally:
            for context in late:
                context.__exit__(None, None, None)
    assert_same(found, undisturbed[way])


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_that_is_slow_changes_nothing(days, undisturbed, way):
    with scheduler() as client, workers(client, 2):
        victim = next(iter(client.run(os.getpid).values()))

        def act():
            os.kill(victim, signal.SIGSTOP)
            time.sleep(3.0)
            os.kill(victim, signal.SIGCONT)

        watch = Once(act)
        found = learned(way, days, client, watch=watch)
        watch.over()
    assert_same(found, undisturbed[way])


SCRIPT = """
    import os, signal, sys
    sys.path[:0] = {path!r}
    from distributed import Client
    from test_distributed_processes import learned

    def die(step):
        if step.stage in ("learning", "passing") and step.round == 3 and step.done:
            os.kill(os.getpid(), signal.SIGKILL)

    with Client({address!r}) as client:
        learned({way!r}, {days!r}, client, checkpoint={kept!r}, watch=die)
"""


@pytest.mark.parametrize("way", WAYS)
def test_a_client_that_is_killed_is_gone_on_with(days, undisturbed, way, tmp_path):
    kept = str(tmp_path / "kept.hw")
    with scheduler() as client, workers(client, 2):
        address = client.scheduler.address
        script = textwrap.dedent(SCRIPT.format(path=sys.path, address=address, way=way, days=days, kept=kept))
        ended = subprocess.run([sys.executable, "-c", script], stderr=subprocess.DEVNULL, timeout=240)
        assert ended.returncode == -signal.SIGKILL
        steps = []
        found = learned(way, days, client, checkpoint=kept, watch=steps.append)
        assert "starting" not in [step.stage for step in steps]  # which need not be done again
    assert_same(found, undisturbed[way])


@pytest.fixture
def certificate(tmp_path):
    """Return a self-signed certificate and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    ask = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
    subprocess.run(["openssl", *ask.split(), "-keyout", key, "-out", cert], check=True, capture_output=True)
    return str(cert), str(key)


def test_a_cluster_behind_certificates(days, undisturbed, certificate):
    cert, key = certificate
    security = hw.distributed.tls(cert, cert, key)
    tls = ["--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key]
    with scheduler(security) as client, workers(client, 2, options=tls):
        address = client.scheduler.address
        assert address.startswith("tls://")
        with hw.distributed.connect(address, security=security) as connected:
            found = learned("one pass", days, connected)
        with pytest.raises(hw.distributed.ClusterError, match="it wants certificates"), hw.distributed.connect(address):
            pass
    assert_same(found, undisturbed["one pass"])


def most_memory(client):
    """Return the peak memory of the only worker in MB, by a function that workers can import."""
    resource = pytest.importorskip("resource")
    (usage,) = client.run(resource.getrusage, resource.RUSAGE_SELF).values()
    return usage.ru_maxrss / 1024


@pytest.mark.parametrize("way", WAYS)
def test_memory_of_a_worker_does_not_grow_with_the_parts(tmp_path, way):
    """Files of 24 MB and 240 MB: what a worker holds is a chunk of a few MB, and the statistics."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100_000, 30)) + 6.0 * rng.integers(2, size=(100_000, 1))
    table = pa.table({f"x{at}": column for at, column in enumerate(rows.T)})
    most = []
    for times in (1, 10):
        folder = tmp_path / str(times)
        folder.mkdir()
        with ParquetWriter(folder / "0.parquet", table.schema) as file:
            for _ in range(times):
                file.write_table(table, row_group_size=20_000)
        model = hw.GaussianMixture(3, covariance_type="diag", random_state=0, **{**WAYS[way], "max_iter": 2})
        with scheduler() as client, workers(client, 1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            hw.distributed.fit(model, str(folder / "*.parquet"), client=client, part_rows=times * len(rows))
            assert model.distributed_report_.parts == 1
            most.append(most_memory(client))
        shutil.rmtree(folder)
    assert most[1] < most[0] + 60.0, most
