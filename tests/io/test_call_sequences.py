"""Whatever calls a user makes: the model can be saved and loaded after each of them, and goes on as if it never had been."""

import logging

import call_sequences
import odd_rows
import pytest

import headwater as hw
from headwater.core.algorithms import ALGORITHMS

SEEDS = range(40, 43)  # of each estimator with its default algorithm
MANY = range(100, 110)  # and of each with every algorithm
EVERY_ALGORITHM = (*ALGORITHMS, hw.Auto(batch_size=20), hw.OnlineEM(batch_size=20))


@pytest.fixture(autouse=True)
def quiet():
    """What is set by hand may be overwritten, and says so."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("kind", odd_rows.CHUNKS, ids=lambda kind: kind.__name__)
def test_any_calls_leave_a_model_that_can_be_saved(kind):
    assert sum(call_sequences.run(kind, "auto", seed) for seed in SEEDS) > 20


# Open defects, which these seeds show: files that are refused, of moment matching since what is read out is NaN, and of
# DirectionOfArrival since a scatter is not positive definite; and a singular matrix. Strict: a mend must take them out.
OPEN = {
    (hw.GaussianMixture, "moment-matching"),
    (hw.RegressionMixture, "auto"),
    (hw.RegressionMixture, hw.Auto(batch_size=20)),
    *((hw.DirectionOfArrival, word) for word in ("auto", "em", "soem", "online-em")),
    *((hw.DirectionOfArrival, one) for one in (hw.Auto(batch_size=20), hw.OnlineEM(batch_size=20))),
}
EVERY_PAIR = [
    pytest.param(
        kind, algorithm, id=f"{kind.__name__}-{algorithm}",
        marks=pytest.mark.xfail(strict=True, reason="an open defect") if (kind, algorithm) in OPEN else (),
    )
    for kind in odd_rows.CHUNKS
    for algorithm in EVERY_ALGORITHM
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "algorithm"), EVERY_PAIR)
def test_any_calls_of_any_algorithm_leave_a_model_that_can_be_saved(kind, algorithm):
    for seed in MANY:
        call_sequences.run(kind, algorithm, seed)
