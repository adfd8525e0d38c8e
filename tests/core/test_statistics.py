"""The algebra of statistics: they add, shrink and move towards one another, and a run of equal folds is a mean."""

from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest

from headwater.core.state import Summary
from headwater.core.statistics import Array, Statistics


@dataclass(frozen=True)
class Pair(Statistics):
    vector: Array
    table: Array


def random_pair(seed):
    rng = np.random.default_rng(seed)
    return Pair(rng.uniform(size=1), rng.normal(size=3), rng.normal(size=(2, 2)))


def assert_same(one, other, rtol=1e-13):
    for name, array in one.to_arrays().items():
        np.testing.assert_allclose(array, getattr(other, name), rtol=rtol, atol=1e-14, err_msg=name)


A, B, C = map(random_pair, range(3))


def test_addition_is_commutative_associative_and_has_an_identity():
    assert_same(A + B, B + A, rtol=0.0)
    assert_same((A + B) + C, A + (B + C))
    assert_same(A + A.zeros_like(), A, rtol=0.0)
    assert_same((A + B) - B, A)
    assert not any(array.any() for array in A.zeros_like().to_arrays().values())


def test_scaling_distributes():
    assert_same((A + B).scaled(3.0), A.scaled(3.0) + B.scaled(3.0))
    assert_same(A.scaled(2.0).scaled(0.5), A, rtol=0.0)
    assert_same(A.scaled(2.0), A + A, rtol=0.0)


def test_toward_starts_here_and_ends_there():
    assert_same(A.toward(B, 0.0), A, rtol=0.0)
    assert_same(A.toward(B, 1.0), B, rtol=0.0)
    assert_same(A.toward(A, 0.37), A)


@pytest.mark.parametrize("step", [1e-9, 0.25, 0.9])
def test_toward_is_the_convex_combination_and_keeps_the_complement(step):
    assert_same(A.toward(B, step), A + (B - A).scaled(step))
    assert_same(A.toward(B, step), B.toward(A, 1.0 - step))


def test_partial_steps_compose():
    g = 0.3
    half = 1.0 - (1.0 - g) ** 0.5
    assert_same(A.toward(B, half).toward(B, half), A.toward(B, g))


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_equal_folds_of_pieces_are_the_mean_of_all_rows(order):
    pieces = [Summary(random_pair(10 + i), rows=size, size=size) for i, size in enumerate((3.0, 1.0, 10.0, 0.5))]
    folded, mass = pieces[order[0]].mean, pieces[order[0]].size
    for index in order[1:]:
        mass += pieces[index].size
        folded = folded.toward(pieces[index].mean, pieces[index].size / mass)
    total = sum((piece.statistics for piece in pieces[1:]), start=pieces[0].statistics)
    assert_same(folded, Summary(total, size=14.5).mean)


def test_the_share_of_the_base_is_folded_like_any_statistic():
    held = Pair(np.ones(1), np.zeros(3), np.zeros((2, 2)))
    fresh = held.zeros_like()
    for step in (0.5, 0.1, 0.2):
        held = held.toward(fresh, step)
    assert held.from_base == pytest.approx(0.5 * 0.9 * 0.8)


def test_results_share_no_memory_and_operands_are_not_changed():
    before = A.copy()
    results = [A + B, A - B, A.scaled(1.0), A.toward(B, 0.0), A.copy(), A.zeros_like()]
    for result in results:
        assert type(result) is Pair
        for name, array in result.to_arrays().items():
            assert not np.shares_memory(array, getattr(A, name))
            array[...] = np.nan
    assert_same(A, before, rtol=0.0)
    assert A.to_arrays()["vector"] is A.vector


def test_fields_cannot_be_replaced():
    with pytest.raises(FrozenInstanceError):
        A.vector = np.zeros(3)
