"""Arrays that may not be written to are read by the kernels that read others, and no model writes to them."""

import every_model
import numpy as np
import pytest

from headwater.core.records import arrays_of
from headwater.kernels._jit import kernel


@kernel
def total(x, parts):
    found = parts[1]
    for i in range(x.size):
        found += x[i] * parts[0][i]
    return found


def locked(array):
    found = array.copy()
    found.flags.writeable = False
    return found


def test_a_kernel_is_compiled_once_for_both():
    x = np.arange(4.0)
    for one in (x, locked(x)):
        for other in (x, locked(x)):
            for _ in range(2):
                assert total(one, (other, 1.0)) == 15.0
    assert len(total.signatures) == 1


def test_other_types_are_compiled_for_themselves():
    x = np.arange(4)
    assert total(locked(x), (locked(x), 1.0)) == total(x.astype(np.float32), (x, 1.0)) == 15.0


@pytest.mark.parametrize("kind", every_model.KINDS)
def test_a_state_that_may_not_be_written_to_is_learned_from_and_stays_as_it_is(kind):
    chunks = every_model.stream_of(kind)
    one, other = (every_model.learned(kind, (100, 70)) for _ in range(2))
    held = [array for array in arrays_of(one._state, dense=False) if isinstance(array, np.ndarray)]
    before = [array.copy() for array in held]
    for array in held:
        array.flags.writeable = False
    if isinstance(chunks[2].X, np.ndarray):
        chunks[2].X.flags.writeable = False
    for model in (one, other):
        model.partial_fit(**chunks[2]).score_samples(**chunks[2])
    for array, was in zip(held, before, strict=True):
        np.testing.assert_array_equal(array, was)
    for left, right in zip(arrays_of(one._state), arrays_of(other._state), strict=True):
        np.testing.assert_array_equal(left, right)
