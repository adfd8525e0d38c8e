"""Random sequences of calls: after each, the model can be saved and loaded, and continues as if it had not been."""

import logging

import call_sequences
import odd_rows
import pytest

import headwater as hw
from headwater.core.algorithms import ALGORITHMS

SEEDS = range(40, 42)  # of each estimator with its default algorithm
MANY = range(100, 110)  # and of each with every algorithm
EVERY_ALGORITHM = (*ALGORITHMS, hw.Auto(batch_size=20), hw.OnlineEM(batch_size=20))


@pytest.fixture(autouse=True)
def quiet():
    """Silence the warning that a parameter set by hand is overwritten."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("kind", odd_rows.CHUNKS, ids=lambda kind: kind.__name__)
def test_any_calls_leave_a_model_that_can_be_saved(kind):
    assert sum(call_sequences.run(kind, "auto", seed) for seed in SEEDS) > 12


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", EVERY_ALGORITHM, ids=str)
@pytest.mark.parametrize("kind", odd_rows.CHUNKS, ids=lambda kind: kind.__name__)
def test_any_calls_of_any_algorithm_leave_a_model_that_can_be_saved(kind, algorithm):
    for seed in MANY:
        call_sequences.run(kind, algorithm, seed)
