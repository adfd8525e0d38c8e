import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy import special

from headwater.kernels import _jit, fastmath


# cache=False: numba would keep these loops when only fastmath.py has changed.
def loop_of(function):
    @_jit.kernel(cache=False)
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    return loop


exp_all, log_all, digamma_all = map(loop_of, (fastmath.exp, fastmath.log, fastmath.digamma))


@_jit.kernel(cache=False)
def log_sum_exp(x):
    """Call the helpers between sums that the flag reassoc may reorder."""
    largest = -np.inf
    for i in range(x.size):
        largest = max(largest, x[i])
    if largest == -np.inf:
        return largest
    total = 0.0
    for i in range(x.size):
        total += fastmath.exp(x[i] - largest)
    return largest + fastmath.log(total)


def over(loop_all, x):
    x = np.asarray(x, dtype=float)
    out = np.empty_like(x)
    loop_all(x, out)
    return out


def relative_error(found, wanted):
    return float(np.max(np.abs(found - wanted) / np.abs(wanted)))


@pytest.mark.parametrize(("low", "high"), [(-708.0, 709.0), (-40.0, 1.0), (-1.0, 1.0), (-1e-8, 1e-8)])
def test_exp_is_accurate(low, high):
    x = np.random.default_rng(0).uniform(low, high, 200_000)
    assert relative_error(over(exp_all, x), np.exp(x.astype(np.longdouble))) < 3e-16


def test_exp_at_its_edges():
    assert fastmath.exp(0.0) == fastmath.exp(-0.0) == 1.0
    assert (over(exp_all, [-708.0000001, -745.0, -1e9, -1e308, -np.inf]) == 0.0).all()
    for highest in (709.5, 1e9, math.inf):
        assert fastmath.exp(highest) == fastmath.exp(709.0) == pytest.approx(math.exp(709.0), rel=3e-16)
    # The ends of the reduced interval, where rounding may go either way.
    x = (np.arange(-1000, 1000) + 0.5) * math.log(2.0)
    x = np.concatenate([x, np.nextafter(x, -np.inf), np.nextafter(x, np.inf)])
    assert relative_error(over(exp_all, x), np.exp(x.astype(np.longdouble))) < 3e-16


def test_nan_stays_nan():
    quiet_with_payload = np.array([0x7FF80000000007A2], dtype=np.uint64).view(np.float64)
    for nan in (math.nan, -math.nan, float(quiet_with_payload[0])):
        for loop_all in (exp_all, log_all, digamma_all):
            assert np.isnan(over(loop_all, np.full(9, nan))).all()


@pytest.mark.parametrize(("low", "high"), [(-708.0, 709.0), (-1.0, 1.0), (-1e-3, 1e-3), (-1e-12, 1e-12)])
def test_log_is_accurate(low, high):
    x = np.exp(np.random.default_rng(1).uniform(low, high, 200_000))
    x = x[x != 1.0]
    assert relative_error(over(log_all, x), np.log(x.astype(np.longdouble))) < 4e-16


def test_log_at_its_edges():
    assert over(log_all, [1.0, np.inf]).tolist() == [0.0, np.inf]
    limits = np.finfo(float)
    for x in (limits.tiny, limits.max, math.sqrt(0.5), math.sqrt(2.0), 1.0 + limits.eps, 1.0 - limits.epsneg):
        assert fastmath.log(x) == pytest.approx(math.log(x), rel=4e-16)
    floor = over(log_all, [0.0, 5e-324, 1e-310, 2e-308])
    assert ((floor > -709.1) & (floor < -708.3)).all()
    assert 0.0 * fastmath.log(0.0) == 0.0


def test_digamma_is_accurate():
    rng = np.random.default_rng(2)
    x = np.concatenate([np.exp(rng.uniform(math.log(1e-6), math.log(1e8), 200_000)), np.arange(1.0, 2000.0)])
    near_root = np.abs(x - 1.4616321449683622) < 0.1
    found, wanted = over(digamma_all, x), special.digamma(x)
    assert np.max(np.abs(found - wanted)[near_root]) < 4e-15
    assert relative_error(found[~near_root], wanted[~near_root]) < 2e-14


def test_digamma_at_its_edges():
    assert fastmath.digamma(1.4616321449683622) == pytest.approx(0.0, abs=1e-15)
    assert fastmath.digamma(1.0) == pytest.approx(-0.5772156649015329, rel=1e-14)
    assert fastmath.digamma(0.0) == -math.inf
    assert fastmath.digamma(1e-300) == pytest.approx(-1e300, rel=1e-15)
    for x in (1e29, 2e30, 1e49, 1e52, 1e62, 1e100, 1e149):
        assert fastmath.digamma(x) == pytest.approx(math.log(x), rel=1e-15)


def test_a_caller_that_reassociates_breaks_nothing():
    rng = np.random.default_rng(4)
    for scale in (1e-3, 1.0, 30.0, 300.0):
        x = scale * rng.normal(size=1003)
        assert log_sum_exp(x) == pytest.approx(special.logsumexp(x), rel=1e-14)
    assert log_sum_exp(np.array([-np.inf, 2.0, -np.inf])) == 2.0
    assert log_sum_exp(np.full(7, -np.inf)) == -np.inf
    assert np.isnan(log_sum_exp(np.array([0.0, np.nan, 1.0])))


@pytest.mark.parametrize("loop_all", [exp_all, log_all, digamma_all])
def test_loops_are_vectorised(loop_all):
    over(loop_all, np.ones(4))
    (generated,) = loop_all.inspect_llvm().values()
    assert re.search(r"fmul [a-z ]*<\d+ x double>", generated)


def test_compilation_is_announced_once_and_only_with_a_cold_cache(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from numba import njit\nfrom headwater.kernels._jit import kernel\n"
        "@njit\ndef theirs(x):\n    return x - 1.0\n"
        "@kernel\ndef first(x):\n    return x + 1.0\n"
        "@kernel(inline='never')\ndef second(x):\n    return x + 2.0\n"
        "theirs(1.0)\nprint('ready', flush=True)\nprint(first(1.0), second(1.0))\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}

    def run():
        command = [sys.executable, "-W", "error", str(program)]
        return subprocess.check_output(command, env=environment, stderr=subprocess.STDOUT, text=True).splitlines()

    assert run() == ["ready", _jit.COMPILING, "2.0 3.0"]
    assert run() == ["ready", "2.0 3.0"]


def test_a_kernel_without_a_place_to_cache_still_compiles():
    namespace = {}
    exec("def double(x):\n    return 2.0 * x", namespace)  # no file, hence no cache
    assert _jit.kernel(namespace["double"])(1.5) == 3.0


def test_gamma_ratios_are_accurate():
    for x in np.geomspace(5e-3, 300.0, 40):
        for rise in (0.5, 1.5, 5.0, 12.5, 45.5):
            wanted = special.gammaln(x + rise) - special.gammaln(x)
            assert fastmath.log_gamma_ratio(x, rise) == pytest.approx(
                wanted, rel=1e-13, abs=1e-13 * max(1.0, abs(special.gammaln(x + rise)))
            )
        assert 0.5 * np.log(fastmath.squared_gamma_ratio(x)) == pytest.approx(
            special.gammaln(x + 0.5) - special.gammaln(x), rel=1e-12, abs=1e-12
        )


def test_gamma_ratios_keep_their_digits_far_out():
    """Gamma(x + 1) = x Gamma(x) holds where differences of the logarithms have no correct digit."""
    for x in np.geomspace(10.0, 1e15, 40):
        assert fastmath.log_gamma_ratio(x, 1.0) == pytest.approx(np.log(x), rel=1e-14)
        assert fastmath.log_gamma_ratio(x, 5.0) == pytest.approx(np.log(x + np.arange(5.0)).sum(), rel=1e-14)
        assert fastmath.squared_gamma_ratio(x) * fastmath.squared_gamma_ratio(x + 0.5) == pytest.approx(x * x, rel=1e-13)


def test_gamma_ratios_of_huge_numbers_are_numbers():
    """For large x, log Gamma is x (log x - 1)."""
    for x in np.geomspace(1e15, 1e120, 50):
        for rise in x * np.array([1e-12, 1e-3, 0.05, 0.07, 1.0]):
            if rise < 1e50:
                share = rise / x
                wanted = rise * (np.log(x) - 1.0) + x * (1.0 + share) * np.log1p(share)
                assert fastmath.log_gamma_ratio(x, rise) == pytest.approx(wanted, rel=1e-13)
        assert fastmath.log_gamma_ratio(0.1, min(x, 1e49)) == pytest.approx(special.gammaln(min(x, 1e49)), rel=1e-13)
