"""The rounding step of columns, found from their distinct values."""

import numpy as np
import pytest

from headwater.core.gapped_rows import GappedRows
from headwater.families import column_steps
from headwater.families.column_steps import check_resolution, find_step, find_steps

rng = np.random.default_rng(0)
x = 10.0 * rng.normal(size=1000)
whole = x.round()
ROUNDED = {
    "whole": (whole, 1.0), "tenths": (x.round(1), 0.1), "cents": (np.exp(rng.normal(5, 3, 1000)).round(2), 0.01),
    "halves": ((2 * x).round() / 2, 0.5), "quarters": ((4 * x).round() / 4, 0.25), "fives": (5 * whole, 5.0),
    "standardised": ((whole - whole.mean()) / whole.std(), 1 / whole.std()), "inches": (2.54 * whole, 2.54),
    "bytes": (rng.integers(0, 256, 1000) / 255, 1 / 255), "flag": ((x > 0) * 1.0, 1.0), "0 and 100": ((x > 0) * 100.0, 100.0),
    "piles": (np.clip((50 + 5 * x).round(1), 0, 100), 0.1), "seconds": (1.7e9 + rng.integers(0, 10**6, 1000), 1.0),
    "single precision": (x.round(1).astype(np.float32).astype(float), 0.1),
    "large, single precision": ((1000 + x).round(2).astype(np.float32).astype(float), 0.01),
    "with a mean": (np.append(np.abs(whole), 29.6991176), 1.0), "small": (whole * 1e-9, 1e-9),
    "few": (np.array([0.0, 3, 5]), 1.0),
}  # fmt: skip
SMOOTH = {
    "normal": x, "single": x.astype(np.float32).astype(float), "large": 1e9 * x, "piles": np.clip(50 + 5 * x, 0, 100),
    "logs": np.log1p(np.abs(whole)), "mostly 0": np.maximum(x, 0), "constant": np.ones(9), "one": np.array([3.0]),
    "none": np.empty(0),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDED)
def test_a_step_is_found(name):
    values, step = ROUNDED[name]
    assert find_step(values) == pytest.approx(step, rel=1e-6)
    copies = np.repeat(rng.permutation(values), 3)  # ties and order do not matter
    assert find_step(copies) == find_step(values)


@pytest.mark.parametrize("name", SMOOTH)
def test_there_is_no_step(name):
    assert find_step(SMOOTH[name]) == 0.0


@pytest.mark.parametrize("draw", [np.random.Generator.normal, np.random.Generator.random, np.random.Generator.exponential])
def test_few_values_have_no_step_by_chance(draw):
    found = [find_step(draw(np.random.default_rng(seed), size=seed % 11 + 2)) for seed in range(300)]
    found += [find_step(draw(np.random.default_rng(seed), size=seed % 11 + 2).astype("f") * 1.0) for seed in range(300)]
    assert not any(found)


def test_gaps_are_no_values():
    rows = np.column_stack([whole, x])
    rows[::3] = np.nan
    np.testing.assert_array_equal(find_steps(GappedRows.of(rows)), [1.0, 0.0])


def test_what_is_no_resolution_is_refused():
    assert check_resolution(None, 2) is None and check_resolution("auto", 2) == "auto"
    np.testing.assert_array_equal(check_resolution(0.5, 2), [0.5, 0.5])
    for wrong, sentence in (
        ("fine", "resolution must be None, 'auto'"), (-1.0, "or more, got -1.0"), (np.inf, "or more, got inf"),
        ([1.0], r"one for each of 2 columns, got shape \(1,\)"), (["a", "b"], "resolution must hold numbers"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=sentence):
            check_resolution(wrong, 2)


def test_columns_of_next_to_nothing_have_no_step():
    for size in (1e-290, 1e-303, 1e-307):
        assert find_step(x[:30] * size) == 0.0


def one_step_after_another(values, precision):
    """The coarsest round step by a plain loop over the steps that there are."""
    size, reach = np.abs(values).max(), values[-1] - values[0]
    for power in range(int(np.ceil(np.log10(reach))), int(np.floor(np.log10(1e-9 * reach))) - 1, -1):
        for mantissa in (5.0, 2.5, 2.0, 1.0):
            step = mantissa * 10.0**power if power >= 0 else mantissa / 10.0**-power
            slack = 1e-6 + precision * size / step
            off = sum(abs(one / step - np.round(one / step)) > slack for one in values)
            on = len(values) - off
            if slack > 0.05:
                return 0.0
            if on >= 0.95 * len(values) and -on * np.log(2.0 * slack) - off * np.log(len(values)) > 20.0:
                return step if step <= reach else 0.0
    return 0.0


@pytest.mark.parametrize("n", [3, 40, 700])
def test_steps_are_those_that_a_loop_finds(n):
    rng = np.random.default_rng(n)
    for at in range(12):
        values = np.round(rng.normal(size=n) * 10.0 ** rng.integers(1, 4), int(rng.integers(0, 6)))
        values[: n // 30] += 1e-7 * (at % 2)
        values = np.unique(values * (0.05 if at % 3 else 1.0))
        for precision in (2e-15, 1.2e-7):
            assert column_steps._find_round_step(values, precision) == one_step_after_another(values, precision)
