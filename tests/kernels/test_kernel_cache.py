"""Files of compiled kernels that are damaged, or cannot be written."""

import errno
import importlib.util
import logging

import numpy as np
import pytest

from headwater.kernels import _cache
from headwater.kernels._jit import COMPILING_ANEW, kernel

SOURCE = """
from headwater.kernels._jit import kernel

@kernel
def total(x):
    s = 0.0
    for i in range(x.size):
        s += x[i]
    return s
"""


@pytest.fixture
def total(tmp_path):
    """Return a function that loads the kernel as a new process would."""
    path = tmp_path / "totals.py"
    path.write_text(SOURCE)

    def load():
        spec = importlib.util.spec_from_file_location("totals", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.total

    assert load()(np.ones(3)) == 3.0
    return load


def hits(dispatcher):
    return sum(dispatcher.stats.cache_hits.values())


DAMAGES = {
    "empty": lambda data: b"",
    "cut short": lambda data: data[: len(data) // 2],
    "garbage": lambda data: np.random.default_rng(0).bytes(len(data)),
    "one byte changed": lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 255]) + data[len(data) // 2 + 1 :],
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_file_is_compiled_anew_and_replaced(ending, damage, total, tmp_path):
    (file,) = tmp_path.rglob(f"*.{ending}")
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    anew = total()
    assert anew(np.ones(4)) == 4.0 and hits(anew) == 0
    after = total()
    assert after(np.ones(5)) == 5.0 and hits(after) == 1


def test_kernels_that_cannot_be_written_are_used_and_it_is_said_once(total, tmp_path, monkeypatch, caplog):
    for file in tmp_path.rglob("*.nb?"):
        file.unlink()

    def full(*anything):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_cache, "_told", set())
    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile._open_for_write", full)
    with caplog.at_level(logging.WARNING, "headwater"):
        for _ in range(2):
            assert total()(np.ones(3)) == 3.0
    said = [record.getMessage() for record in caplog.records if "compiled again" in record.getMessage()]
    assert said == [
        f"headwater cannot keep its compiled kernels in {tmp_path / '__pycache__'} (No space left on device): they are "
        f"compiled again at the next start."
    ]


def test_without_a_directory_nobody_is_promised_a_cache(caplog, monkeypatch):
    from numba.core.caching import CacheImpl

    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    lonely = kernel(lambda x: x + 1.0)
    assert not _cache.is_kept(lonely)
    from numba.core import event

    for listener in list(event._registered["numba:compile"]):
        if type(listener).__name__ == "Announcer":
            monkeypatch.setattr(listener, "announced", False)
    with caplog.at_level(logging.WARNING, "headwater"):
        assert lonely(1.0) == 2.0
    assert [record.getMessage() for record in caplog.records] == [COMPILING_ANEW]
