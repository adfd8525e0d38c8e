"""A policy with a stored record needs no change elsewhere: it gives a blank record, and finds what is wrong with one."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import headwater as hw
from headwater.core.batch import Batch
from headwater.core.contents import contents
from headwater.core.loop import advance
from headwater.core.policy import Policy
from headwater.core.records import fingerprint
from headwater.io.files.records import Damaged, Reader, Writer
from headwater.io.files.state_reader import StateReader
from headwater.io.files.states import write_state


@dataclass(frozen=True)
class Seen:
    """Sum of the columns, and the rows that were summed."""

    total: np.ndarray
    rows: int


class SumPolicy(Policy):
    """Sums the rows of a stream."""

    name = "sum"

    def start(self, plan, stream, start, batch, counts):
        return stream.with_record(self.name, Seen(batch.X.sum(axis=0), len(batch)))

    def after_batch(self, plan, before, stream, part):
        known = stream.records[self.name]
        return stream.with_record(self.name, Seen(known.total + part.X.sum(axis=0), known.rows + len(part)))

    def blank_record(self, plan, stream):
        return Seen(np.zeros(plan.width), 0)

    def find_problem(self, plan, stream, record):
        return "" if record.rows == stream.rows else f"has {record.rows} rows, and should have {stream.rows}"


def learned():
    rows = np.random.default_rng(0).normal(size=(300, 2))
    model = hw.GaussianMixture(2, warm_up=100, algorithm="online-em", random_state=0).partial_fit(rows[:10])
    learner = model._learner.with_policy(SumPolicy())
    state, _ = advance(learner.plan, model._state, Batch(rows[10:]))
    return rows, learner, state


def test_a_record_is_written_and_read():
    rows, learner, state = learned()
    writer = Writer()
    tree = write_state(writer, learner, state, "state")
    found = StateReader(Reader(writer.arrays), learner).state(tree, "state")
    assert found.records["sum"].rows == 300
    np.testing.assert_allclose(found.records["sum"].total, rows.sum(axis=0), atol=1e-12)
    assert fingerprint(found, size=8) == fingerprint(state, size=8)
    assert "sum" in contents(state)
    more = Batch(rows)
    after, other = (advance(learner.plan, one, more)[0] for one in (found, state))
    assert fingerprint(after, size=8) == fingerprint(other, size=8) != fingerprint(found, size=8)


def test_a_record_that_cannot_be_is_refused():
    _, learner, state = learned()
    writer = Writer()
    wrong = state.with_record("sum", replace(state.records["sum"], rows=7))
    tree = write_state(writer, learner, wrong, "state")
    with pytest.raises(Damaged, match="state/records/sum has 7 rows, and should have 300"):
        StateReader(Reader(writer.arrays), learner).state(tree, "state")
    with pytest.raises(Damaged, match="has 'sum', of which this model knows nothing"):
        StateReader(Reader(writer.arrays), learner.without("sum")).state(tree, "state")


def test_files_of_streams_without_such_records_are_as_they_were():
    _, learner, state = learned()
    assert "records" not in write_state(Writer(), learner.without("sum"), state.without("sum", "scores"), "state")
