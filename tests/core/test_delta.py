"""Deltas: what states of one base have learned. They add up, are sparse for large vocabularies, and have a byte format."""

from dataclasses import astuple, replace

import every_model
import numpy as np
import pytest
from naive import deltas as twin
from scipy.sparse import csr_array

import headwater as hw
from headwater.core.delta import Delta
from headwater.core.loop import finalize
from headwater.core.merge import combine, delta_of, grow
from headwater.core.records import arrays_of
from headwater.core.state import Summary
from headwater.families.table import Table
from headwater.io.files import container
from headwater.io.files.messages import from_bytes, to_bytes
from headwater.io.files.records import Damaged, Writer

WIDTH, K = 2000, 3


def documents(n, first, last, seed):
    """Return rows of twelve words each, all from one range."""
    words = np.random.default_rng(seed).integers(first, last, size=12 * n)
    rows = csr_array((np.ones(12 * n), (np.repeat(np.arange(n), 12), words)), shape=(n, WIDTH))
    rows.sum_duplicates()
    return rows


def branches(model, n=4, rows=300):
    """Return branches of a model with many words. Each has learned documents of forty words since."""
    base = model.partial_fit(documents(400, 0, WIDTH, 0))
    return [base.branch().partial_fit(documents(rows, 40 * part, 40 * part + 40, 1 + part)) for part in range(n)]


def deltas_of(models):
    return [delta_of(model._learner.plan, model._state) for model in models]


def sent(delta, learner):
    return from_bytes(to_bytes(delta), learner, type(delta))


def assert_merged(state, parts, rtol=1e-10):
    """Check that a grown state equals dense arithmetic on the finalized parts."""
    statistics, average, progress = twin.merged(parts)
    np.testing.assert_allclose(astuple(state.progress), astuple(progress), rtol=1e-12)
    for found, wanted in ((state.statistics, statistics), (state.records.get("average"), average)):
        assert (found is None) == (wanted is None)
        for name, array in (wanted or {}).items():
            here = np.asarray(found.to_arrays()[name])
            np.testing.assert_allclose(here, array, rtol=rtol, atol=1e-14 * np.abs(array).max(), err_msg=name)


COUNTS = [
    hw.LatentDirichletAllocation(K, random_state=0, warm_up=200),
    hw.LatentDirichletAllocation(K, random_state=0, warm_up=200, half_life=150.0),
    hw.MultinomialMixture(K, random_state=0, warm_up=200),
    hw.MultinomialMixture(K, random_state=0, warm_up=200, algorithm="soem"),
    hw.MultinomialMixture(K, random_state=0, warm_up=200, algorithm=hw.OnlineEM(batch_size=1)),
    hw.MultinomialMixture(K, random_state=0, warm_up=200, algorithm=hw.OnlineEM(batch_size=4), parts=2),
]


@pytest.mark.parametrize("model", COUNTS, ids=lambda model: f"{type(model).__name__}-{model.algorithm}-{model.half_life}")
def test_words_that_no_row_had_are_not_sent(model):
    models = branches(model)
    learner, deltas = models[0]._learner, deltas_of(models)
    dense = 8 * WIDTH * K
    for part, delta in enumerate(deltas):
        held = np.arange(40 * part, 40 * part + 40)
        np.testing.assert_array_equal(np.sort(delta.statistics.table.words()), held)
        if delta.average is not None:
            np.testing.assert_array_equal(np.sort(delta.average.table.words()), held)
        assert len(to_bytes(delta)) < 0.2 * dense
    a, b, c, d = (sent(delta, learner) for delta in deltas)
    assert len((a + b).statistics.table.words()) == 80
    settled = [finalize(model._learner.plan, model._state) for model in models]
    for total in ((a + b) + (c + d), d + (b + (a + c))):
        state, repaired = grow(learner.plan, settled[0], sent(total, learner))
        assert repaired == ()
        assert_merged(state, settled)


@pytest.mark.parametrize("name", every_model.KINDS)
def test_every_model_has_deltas_and_summaries_that_can_be_sent(name):
    chunks = every_model.stream_of(name)
    base = every_model.learned(name, (100, 70))
    models = [base.branch().partial_fit(**chunk) for chunk in chunks[2:]]
    learner, delta = models[0]._learner, deltas_of(models)[0]
    again = sent(delta, learner)
    assert again.lineage == delta.lineage
    for mine, theirs in zip(arrays_of(again), arrays_of(delta), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    settled = [finalize(model._learner.plan, model._state) for model in models]
    if not models[0]._traits.chained:  # statistics of chains hold those of the family
        assert_merged(combine(learner.plan, settled)[0], settled)
    summary = Summary(settled[0].statistics.scaled(7.0), 7, 7.5, -np.inf)
    again = sent(summary, learner)
    assert (again.rows, again.size, again.score) == (7, 7.5, -np.inf)
    for mine, theirs in zip(arrays_of(again), arrays_of(summary), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_what_was_learned_by_nobody_changes_nothing():
    model = every_model.learned("gaussian").branch()
    nothing = delta_of(model._learner.plan, model._state)
    assert nothing.empty
    assert grow(model._learner.plan, model._state, nothing + nothing) == (model._state, ())


def test_deltas_of_other_bases_are_refused():
    one, other = every_model.learned("gaussian", (100, 70)), every_model.learned("gaussian", (120, 70))
    first, second = deltas_of([one, other])
    with pytest.raises(ValueError, match="deltas must stand on one base"):
        first + second
    with pytest.raises(ValueError, match="a delta must stand on the base that it is added to"):
        grow(one._learner.plan, finalize(one._learner.plan, one._state), second)


# Tables


def random_table(rng, words):
    return Table.of_words(50, rng.permutation(50)[:words].astype(np.int32), rng.uniform(0.0, 5.0, (words, K)))


@pytest.mark.parametrize("seed", range(20))
def test_a_table_is_a_multiple_of_what_it_was_but_for_some_words(seed):
    rng = np.random.default_rng(seed)
    reference = float(rng.uniform(0.1, 9.0)) * random_table(rng, 30)
    table, touched = reference.rescaled(reference.factor), set()
    for _ in range(rng.integers(6)):
        words = rng.permutation(50)[: rng.integers(5)].astype(np.int32)
        table = float(rng.uniform(0.1, 1.0)) * table.plus(words, rng.uniform(0.1, 1.0, (len(words), K)), 0.3)
        touched |= set(words.tolist())
    multiple, words = table.since(reference)
    assert set(words.tolist()) == touched
    others = np.setdiff1d(np.arange(50), words)
    np.testing.assert_allclose(np.asarray(table)[others], multiple * np.asarray(reference)[others], rtol=1e-14)


def test_a_table_that_was_written_anew_shares_no_row():
    reference = random_table(np.random.default_rng(0), 30)
    table = (1e-120 * reference).plus(np.array([3], dtype=np.int32), np.ones((1, K)), 1.0)
    assert set(reference.words()) <= set(table.since(reference)[1])
    assert set(Table.zeros(50, K).since(reference)[1]) == set(reference.words())


def test_averages_of_long_steps_are_still_sparse():
    """An average that has outgrown its table is written anew. Words without counts then agree up to rounding."""
    model = hw.MultinomialMixture(K, random_state=0, warm_up=200, algorithm=hw.OnlineEM(batch_size=1, decay=0.51))
    base = model.partial_fit(documents(400, 0, WIDTH, 0))
    part = base.branch().partial_fit(documents(6000, 0, 40, 1))
    (delta,) = deltas_of([part])
    assert len(delta.average.table.words()) == 40
    settled = finalize(part._learner.plan, part._state)
    assert_merged(grow(part._learner.plan, settled, delta)[0], [settled])


def test_words_whose_average_is_something_else_are_sent():
    models = branches(hw.LatentDirichletAllocation(K, random_state=0, warm_up=200), 1)
    settled = finalize(models[0]._learner.plan, models[0]._state)
    average = settled.records["average"].table.plain().plus(np.array([1000, 1500], dtype=np.int32), np.ones((2, K)), 1e-3)
    changed = settled.with_record("average", replace(settled.records["average"], table=average))
    delta = delta_of(models[0]._learner.plan, changed)
    assert set(delta.average.table.words()) >= {*range(40), 1000, 1500}
    assert_merged(grow(models[0]._learner.plan, changed, delta)[0], [changed])


def test_numbers_whose_squares_are_beyond_all_numbers_make_sums_all_the_same():
    models = branches(hw.LatentDirichletAllocation(K, random_state=0, warm_up=200), 1)
    state = finalize(models[0]._learner.plan, models[0]._state)
    base, average = state.base, state.records["average"]
    huge = replace(base, statistics=base.statistics.scaled(1e200))
    huge = huge.with_record("average", base.records["average"].scaled(1e200))
    for part in (huge.records["average"], huge.statistics):
        part.from_base[...] = 1.0
    changed = replace(state, base=huge, statistics=state.statistics.scaled(1e200)).with_record("average", average.scaled(1e200))
    for part, own in ((changed.records["average"], average), (changed.statistics, state.statistics)):
        part.from_base[...] = own.from_base
    delta = delta_of(models[0]._learner.plan, changed)
    assert_merged(grow(models[0]._learner.plan, changed, delta)[0], [changed])


# Bytes


@pytest.fixture(scope="module")
def message():
    model = every_model.learned("topics", (100, 70)).branch().partial_fit(**every_model.stream_of("topics")[2])
    delta = delta_of(model._learner.plan, model._state)
    return delta, model._learner, to_bytes(delta)


@pytest.mark.parametrize("at", [0, 20, 1500, -1])
def test_a_byte_that_changed_is_noticed(message, at):
    _, learner, data = message
    for bad in (data[:at], data[: at % len(data)] + bytes([data[at] ^ 1]) + data[at % len(data) + 1 :]):
        with pytest.raises(Damaged, match=r"^the message"):
            from_bytes(bad, learner, Delta)


BAD = {
    "no number": ({"weight": "much"}, "weight"), "negative": ({"least": -1.0}, "negative"), "huge": ({"kept": 1e300}, "more"),
    "no part": ({"parts": 0}, "parts"), "half a row": ({"rows": 1.5}, "rows"), "no pace": ({"pace": 0.0}, "worth no row"),
    "no rows": ({"n_eff": -1e9}, "worth no row"), "a long name": ({"lineage": "x" * 99}, "too long"),
    "no statistics": ({"statistics": None}, "statistics"), "another part": ({"more": 1}, "other parts"),
    "another kind": ({"kind": "State"}, "of kind"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "sentence"), BAD.values(), ids=BAD)
def test_what_no_delta_holds_is_refused(message, changes, sentence):
    delta, learner, _ = message
    writer = Writer()
    tree = writer.write(delta, "sum") | changes
    with pytest.raises(Damaged, match=f"^the message cannot be read: .*{sentence}"):
        from_bytes(container.to_bytes({"sum": tree, "tables": writer.tables}, writer.arrays), learner, Delta)


def test_what_is_not_finite_is_refused(message):
    delta, learner, _ = message
    bad = replace(delta, statistics=replace(delta.statistics, length=delta.statistics.length * np.nan))
    with pytest.raises(Damaged, match="NaN"):
        sent(bad, learner)


def test_bytes_for_others_are_refused(message):
    delta, learner, data = message
    with pytest.raises(Damaged, match="of kind 'Delta', and should be 'Summary'"):
        from_bytes(data, learner, Summary)
    with pytest.raises(Damaged, match="of kind 'TopicStatistics'"):
        from_bytes(data, every_model.learned("gaussian", (100,))._learner, Delta)
    with pytest.raises(Damaged, match="should have"):
        from_bytes(data, replace(learner, width=7), Delta)
    with pytest.raises(Damaged, match="negative"):
        sent(Summary(delta.statistics.scaled(-1.0), 1, 1.0), learner)
