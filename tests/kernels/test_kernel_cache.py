"""Files of compiled kernels: damaged and read-only files, changed sources, and processes that start together."""

import errno
import importlib.util
import json
import logging
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from headwater.kernels import _cache, _helpers
from headwater.kernels._jit import COMPILING_ANEW, helper, kernel, routine
from headwater.kernels._lock import FileLock

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
    """Return a function that loads the kernel as in a new process."""
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

    monkeypatch.setattr(_cache, "_reported", set())
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
    assert _cache.cache_directory(lonely) is None
    from numba.core import event

    for listener in list(event._registered["numba:compile"]):
        if type(listener).__name__ == "Announcer":
            monkeypatch.setattr(listener, "announced", False)
    with caplog.at_level(logging.WARNING, "headwater"):
        assert lonely(1.0) == 2.0
    assert [record.getMessage() for record in caplog.records] == [COMPILING_ANEW]


# Processes that start at once

TOTALS = """
import json, sys, time
from pathlib import Path
import numpy as np
from totals import total
Path(sys.argv[1]).touch()
while len(list(Path(sys.argv[1]).parent.glob("*.ready"))) < int(sys.argv[2]):
    time.sleep(0.01)
sums = [total(np.ones(4, dtype)) for dtype in (np.float64, np.float32)]
print(json.dumps([sums, sum(total.stats.cache_hits.values()), sum(total.stats.cache_misses.values())]))
"""


def run_together(folder, number):
    """Run processes that make their first call at the same time; return the output of each."""
    (folder / "totals.py").write_text(SOURCE)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(Path(_cache.__file__).parents[2])])}
    environ["NUMBA_CACHE_DIR"] = str(folder / "cache")
    started = [
        subprocess.Popen(
            [sys.executable, "-c", TOTALS, str(folder / f"{index}.ready"), str(number)],
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(number)
    ]
    return [json.loads(process.communicate(timeout=300)[0]) for process in started]


def test_of_processes_that_start_at_once_one_compiles(tmp_path):
    found = run_together(tmp_path, 2)
    assert all(sums == [4.0, 4.0] for sums, _, _ in found)
    assert sum(misses for _, _, misses in found) == 2  # one for each type of numbers
    assert sum(hits for _, hits, _ in found) == 2 * 2 - 2
    assert not list(tmp_path.rglob("*.lock")) and not list(tmp_path.rglob("*.tmp.*"))


def test_code_of_two_signatures_that_are_written_at_once_has_two_names(total, tmp_path):
    (index,) = tmp_path.rglob("*.nbi")
    before = index.read_bytes()
    assert total()(np.ones(3, np.float32)) == 3.0
    index.write_bytes(before)  # as left by a process with the first signature only
    again = total()
    assert again(np.ones(3)) == 3.0 and again(np.ones(3, np.float32)) == 3.0
    assert hits(again) == 1  # the other signature is compiled again, and the code is never mixed up
    assert len(list(tmp_path.rglob("*.nbc"))) == 2


def test_a_lock_is_held_by_one_and_goes_to_the_next(tmp_path):
    first, second = (FileLock(str(tmp_path / "one.lock")) for _ in range(2))
    assert first.acquire() and not second.acquire(longest_wait=0.05)
    waiting = threading.Thread(target=second.acquire)
    waiting.start()
    first.release()
    waiting.join(timeout=60)
    assert not FileLock(str(tmp_path / "missing" / "one.lock")).acquire()
    second.release()
    second.release()  # twice is fine
    assert not list(tmp_path.iterdir())


def test_a_kernel_that_fails_to_compile_leaves_no_lock(tmp_path):
    (tmp_path / "failing.py").write_text(SOURCE.replace("s += x[i]", "s += x[i].name"))
    spec = importlib.util.spec_from_file_location("failing", tmp_path / "failing.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(Exception, match="name"):
        module.total(np.ones(3))
    assert not list(tmp_path.rglob("*.lock"))


# Where files are, and when they are out of date


def test_kernels_of_a_read_only_installation_are_used(total, tmp_path, monkeypatch):
    """Users who may not write there use the compiled kernels; missing kernels go to their own cache directory."""
    from numba.core.caching import CacheImpl, UserWideCacheLocator

    class InHome(UserWideCacheLocator):
        """Numba's choice where it cannot write beside the source."""

        def __init__(self, py_func, py_file):
            super().__init__(py_func, py_file)
            self._cache_path = str(tmp_path / "home")

    InHome.__name__ = UserWideCacheLocator.__name__
    monkeypatch.setattr(CacheImpl, "_locator_classes", [InHome])
    installed = total()
    assert installed(np.ones(3)) == 3.0 and hits(installed) == 1 and not list((tmp_path / "home").glob("*.nbc"))
    assert installed(np.ones(3, np.float32)) == 3.0 and hits(installed) == 1
    assert len(list((tmp_path / "home").glob("*.nbc"))) == 1
    assert _cache.cache_directory(installed) == str(tmp_path / "home")


def test_a_change_in_any_source_of_the_kernels_makes_files_old(total, tmp_path, monkeypatch):
    os.utime(tmp_path / "totals.py", (0, 0))  # a copy has other times, and the same kernels
    copied = total()
    assert copied(np.ones(3)) == 3.0 and hits(copied) == 1
    monkeypatch.setattr(_cache, "source_stamp", lambda source: "changed")
    changed = total()
    assert changed(np.ones(3)) == 3.0 and hits(changed) == 0


def test_stamps_depend_on_every_source(tmp_path, monkeypatch):
    monkeypatch.setattr(_cache, "__file__", str(tmp_path / "_cache.py"))
    stamps = set()
    for name, text in (("one.py", "a"), ("two.py", "b"), ("one.py", "c"), ("own.txt", "d")):
        (tmp_path / name).write_text(text)
        _cache.source_stamp.cache_clear()
        stamps.add(_cache.source_stamp(str(tmp_path / "own.txt")))
    _cache.source_stamp.cache_clear()
    assert len(stamps) == 4


def test_what_is_on_disk_can_be_compiled_anew(total, monkeypatch):
    monkeypatch.setenv(_cache.COMPILE_ANEW, "1")
    anew = total()
    assert anew(np.ones(3)) == 3.0 and hits(anew) == 0


# Helpers


@helper
def twice(x):
    return 2.0 * x


@kernel(cache=False)
def four_times(x):
    return twice(twice(x))


def test_helpers_have_no_code_of_their_own_until_python_calls_them():
    assert four_times(1.5) == 6.0
    assert not twice.overloads and len(twice.part.overloads) == 1
    assert twice(1.5) == 3.0 and len(twice.overloads) == 1


def test_helpers_are_compiled_as_kernels_where_numba_has_changed(monkeypatch):
    assert _helpers.compiler_options  # the Numba at hand has what helpers need
    monkeypatch.setattr("headwater.kernels._jit.compiler_options", {})
    plain = helper(lambda x: 3.0 * x)
    around = kernel(lambda x: plain(x) + 1.0)
    assert around(2.0) == 7.0


# Routines


@routine
def add_one(x):
    for i in range(x.size):
        x[i] += 1.0


@routine
def add_two(x):
    add_one(x)
    add_one(x)


@helper
def add_three(x):
    add_two(x)
    add_one(x)


@kernel(cache=False)
def add_six(x):
    add_three(x)
    add_one(x)
    add_two(x)


def test_a_kernel_has_one_copy_of_a_routine_which_nobody_else_can_see():
    x = np.zeros(3)
    add_six(x)
    assert (x == 6.0).all()
    (code,) = add_six.inspect_llvm().values()
    found = re.findall(r"define ([^\n]*)@", code)
    names = [name for name in re.findall(r"define [^\n]*@\"?([^\"( ]+)", code) if "add_" in name]
    defined = {part: [one for one in names if f"{part}B" in one] for part in ("add_one", "add_two", "add_three")}
    assert [len(one) for one in defined.values()] == [1, 1, 0]
    assert sum("internal" in one for one in found) == 2
    assert not add_one.overloads and len(add_one.part.overloads) == 1


def test_what_a_routine_raises_is_raised():
    @routine
    def take(x, i):
        if i >= x.size:
            raise IndexError("there are not so many")
        return x[i]

    @kernel(cache=False)
    def twice_taken(x, i):
        return take(x, i) + take(x, i)

    assert twice_taken(np.arange(3.0), 2) == 4.0
    with pytest.raises(IndexError, match="not so many"):
        twice_taken(np.arange(3.0), 3)


def test_routines_are_inlined_where_numba_has_changed(monkeypatch):
    for options in ("compiler_options", "routine_options", "kernel_options"):
        assert getattr(_helpers, options)
        monkeypatch.setattr(f"headwater.kernels._jit.{options}", {})
    plain = routine(lambda x: 3.0 * x)
    assert plain.part.targetoptions["forceinline"]
    assert kernel(lambda x: plain(x) + plain(1.0))(2.0) == 9.0


def test_garbage_is_collected_after_compiling():
    import gc

    assert gc.isenabled()
    assert kernel(lambda x: x + 2.0)(1.0) == 3.0 and gc.isenabled()
    gc.disable()
    try:
        assert kernel(lambda x: x + 3.0)(1.0) == 4.0 and not gc.isenabled()
    finally:
        gc.enable()
