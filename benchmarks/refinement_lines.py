"""The lines of `refinement` in the table of all benchmarks, with what they have to reach."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.line import Line, Target, at_least, at_most, quotient
from benchmarks.refinement_cost import best, extra
from benchmarks.refinement_summary import CLOSE, PEERS, Summary, summaries

NATS = "nat/row"
DEFAULT = "default"


def set_lines(entries: Sequence[dict[str, Any]]) -> Iterator[Line]:
    """Lines of drawn sets; only the default has to reach something."""
    found = summaries(entries)
    peers = {name: each for (order, name), each in found.items() if order == PEERS}
    restarts = list(peers.values())[-1]
    theirs = "; ".join(f"{name} {each.mean_without_gains:.4f}, {each.close:.0%} of sets" for name, each in peers.items())
    for (order, name), each in found.items():
        if order == PEERS:
            continue
        judged, first = name == DEFAULT, order == "shuffled"
        target = at_most(0.003 if first else 0.01) if judged else None
        title = f"{order}, {name}"
        note = f"{described(each)}; {theirs}" if judged and first else described(each)
        yield Line(f"mean loss, {title}", each.mean_without_gains, restarts.mean_without_gains, NATS, None, target, note)
        if judged and first:
            yield Line(f"worst loss, {title}", each.worst, restarts.worst, NATS, None, at_most(0.02), "peer: n_init=10")
            shares, enough = (100.0 * each.close, 100.0 * restarts.close), Target("ours", ">=", 65.0)
            yield Line(f"sets within {CLOSE}, {title}", *shares, "%", None, enough, "peer: n_init=10")
        note = "CPU seconds of all sets, with the first reading; peer: one fit of scikit-learn each"
        ratio = quotient(each.one_fit, each.seconds)
        yield Line(f"time, {title}", each.seconds, each.one_fit, "s", ratio, at_least(1) if judged and first else None, note)


def described(each: Summary) -> str:
    return (
        f"{each.sets} sets, gains count as 0 (else {each.mean:.4f}); 90th percentile {each.ninetieth:.4f}, worst "
        f"{each.worst:.4f}, within {CLOSE}: {each.close:.0%}; against the polished best of 10 restarts"
    )


def real_lines(entries: Mapping[str, dict[str, Any] | None]) -> Iterator[Line]:
    """Lines of real sets: the default in the order of the file and shuffled, beside the best of ten restarts."""
    for name, entry in entries.items():
        if entry is None:
            yield Line(f"mean loss, {name}", math.nan, None, NATS, None, None, "not in the folder HEADWATER_DATA")
            continue
        size = f"{entry['rows']:,} rows, K{entry['n_components']} d{entry['width']}"
        for (order, way), each in summaries([entry]).items():
            if order != PEERS:
                note = f"{size}; worst of {each.sets}: {each.worst:.4f}; peer: n_init=10"
                yield Line(f"mean loss, {name}, {order}, {way}", each.mean, entry["peers"][-1]["loss"], NATS, None, None, note)


def cost_line(cost: dict[str, Any]) -> Line:
    """The default beside the plain stream, which is the peer."""
    plain, default = (best(cost["runs"][at]) for at in (0, -1))
    note = (
        f"{cost['rows']:,} rows, full K{cost['n_components']} d{cost['width']}; after the warm-up, with the first reading; "
        f"peer: the plain stream; extra cost {extra(cost):+.0%}"
    )
    return Line("a long stream, default", default, plain, "s", quotient(plain, default), at_least(1 / 1.15), note)
