import dask
import pytest
from cluster_fits import Died
from distributed import Client

from headwater.checkpoints import Checkpoint

# Heartbeats of many workers must not keep the process busy.
QUIET = {
    "distributed.admin.system-monitor.interval": "1h",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.host-cpu": False,
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1h",
}


@pytest.fixture(scope="module")
def clusters():
    """Return clients of clusters with this many workers, in this process."""
    opened = {}

    def of(workers):
        if workers not in opened:
            with dask.config.set(QUIET):
                opened[workers] = Client(
                    processes=False,
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address=":0",
                    worker_dashboard_address=None,
                    set_as_default=False,
                )
        return opened[workers]

    yield of
    for client in opened.values():
        client.close()
        client.cluster.close()


@pytest.fixture
def mortal(monkeypatch):
    """Let the client die after it has written this many checkpoints; None means never."""
    write = Checkpoint.write
    left = [None]

    def written(*given, **named):
        write(*given, **named)
        if left[0] is not None:
            left[0] -= 1
            if left[0] == 0:
                raise Died

    monkeypatch.setattr(Checkpoint, "write", written)
    return left
