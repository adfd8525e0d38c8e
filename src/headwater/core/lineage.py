"""Lineage: streams whose base is one summary, all that was learned so far, or some of its components."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from headwater.core.average import AVERAGE
from headwater.core.contracts import SelectsComponents, Start
from headwater.core.fit_result import FIT_RESULT
from headwater.core.plan import Plan
from headwater.core.records import fingerprint
from headwater.core.state import Base, Progress, Stream
from headwater.core.statistics import Stats
from headwater.core.steps import refresh, to_kept_form
from headwater.core.values import Index, Records


def root_stream(plan: Plan, key: int, start: Start) -> Stream:
    """Return a stream whose base is one summary, and which has learned nothing since."""
    model = plan.model_for(plan, start.summary.statistics)
    statistics = to_kept_form(plan, model, start.summary.mean).copy()  # in the form that the base holds
    statistics.from_base[...] = 1.0
    size = start.summary.size
    # A given start has weight, but takes no time and is no row seen; where the prior is weighed against rows, it is worth some.
    seen = size - start.held
    weight = size if plan.algorithm.counts_rows else seen
    progress = Progress(start.summary.rows, weight, seen / plan.batch_rows(plan.model), size, size)
    base = Base(start.prior, statistics, progress, "", records=start.records)
    stream = Stream(key, model, base, statistics, start.parameters, progress, plan.step.nothing)
    for policy in plan.policies:
        stream = policy.at_base(plan, stream, start)
    return refresh(plan, _make_base(stream, start.prior, (), start.records))


def rebase(stream: Stream, ancestors: tuple[str, ...] = ()) -> Stream:
    """Return a finalized stream whose base is all that it has learned; the bases of others may be named as ancestors.

    Ancestors are kept so that a merge can refuse to count rows twice.
    """
    statistics, average = stream.statistics.copy(), stream.records.get(AVERAGE)
    statistics.from_base[...] = 1.0
    stream = replace(stream, statistics=statistics)
    if average is not None:
        average = average.copy()
        average.from_base[...] = 1.0
        stream = stream.with_record(AVERAGE, average)
    own = (*stream.base.ancestors, stream.base.lineage, *ancestors)
    return _make_base(stream, stream.base.prior, own, stream.base.records)


def _make_base(stream: Stream, prior: object, ancestors: tuple[str, ...], records: Records) -> Stream:
    """Return the stream on a base that holds what the stream does, and is named after it."""
    statistics, average = stream.statistics, stream.records.get(AVERAGE)
    lineage = fingerprint(stream.key, prior, statistics, stream.progress, size=8)
    before = tuple(dict.fromkeys(name for name in ancestors if name != lineage))
    held = statistics.copy()  # copies: what is learned next is written beside the base
    base = Base(prior, held, stream.progress, lineage, before, records)
    if average is not None:
        base = base.with_record(AVERAGE, held if average is statistics else average.copy())
    return replace(stream, base=base)


def select_components(after: Plan, stream: Stream, components: Index) -> Stream:
    """Return what a finalized stream has learned of some components, as a new base; `after` is the plan to continue with."""
    model = cast(SelectsComponents, stream.model)

    def select(statistics: Stats) -> Stats:
        chosen: Stats = model.select_statistics(statistics, components)
        return chosen

    reported, average = stream.records.get(FIT_RESULT), stream.records.get(AVERAGE)
    names = {policy.name for policy in after.policies if policy.outlives_components}
    others = {name: record for name, record in stream.records.items() if name in names}
    base = replace(stream.base, prior=model.select_prior(stream.base.prior, components), records={})
    kept = replace(
        stream,
        model=after.model_for(after, select(stream.statistics)),
        base=base,
        statistics=select(stream.statistics),
        records=others if average is None else {AVERAGE: select(average), **others},
        unfolded=after.step.nothing,
    )
    kept = refresh(after, rebase(kept))
    return kept.with_record(FIT_RESULT, None if reported is None else model.select_parameters(reported, components))
