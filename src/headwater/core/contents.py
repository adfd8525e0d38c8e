"""What a state holds, by the names under which model files keep it and in an order that digests depend on."""

from __future__ import annotations

from dataclasses import replace

from headwater.core.state import Progress, State, Stream, WarmUp

# Records of policies that have their own part of a file, by the names of these parts. Others go by the policies' names.
FILE_NAMES = {
    "reported": "fit_result", "average": "average", "reservoir": "reservoir", "healing": "refinement", "drift": "drift",
}  # fmt: skip


def contents(state: State) -> dict[str, object]:
    """Return everything that a state holds; missing parts are None, or empty."""
    if isinstance(state, WarmUp):
        return {"key": state.key, "buffer": state.buffer if state.rows else None, "progress": Progress()}
    records = {name: state.records.get(record) for name, record in FILE_NAMES.items()}
    unfolded, base = state.unfolded, state.base
    return {
        "key": state.key,
        "base": (base.prior, base.statistics, base.records.get("average"), base.progress, base.records.get("growth")),
        "parameters": state.parameters,
        "reported": records.pop("reported"),
        "statistics": state.statistics,
        "average": records.pop("average"),
        "pending": getattr(unfolded, "summary", None),
        "progress": folded_progress(state),
        "parts": tuple(tuple(contents(shard).values()) for shard in getattr(unfolded, "streams", ())),
        "carry": getattr(unfolded, "carry", None),
        "waiting": getattr(unfolded, "waiting", ()),
        **records,
        **other_records(state),
    }


def other_records(stream: Stream) -> dict[str, object]:
    """Return the records without their own part of a file, by the names of their policies."""
    return {name: stream.records[name] for name in sorted(stream.records) if name not in FILE_NAMES.values()}


def folded_progress(stream: Stream) -> Progress:
    """Return the progress of a stream, including the rows that its shards have seen."""
    if not hasattr(stream.unfolded, "streams"):
        return stream.progress
    return replace(stream.progress, rows_seen=stream.rows)
