"""Slow twin of merging states of one base: dense arrays, one state after the other."""

import numpy as np

from headwater.core.state import Progress


def dense(statistics):
    """Arrays by name; a table as a matrix."""
    return {name: np.asarray(value) for name, value in statistics.to_arrays().items()}


def merged(states):
    """Return statistics, average and progress of what finalized states have learned since their common base."""
    base = states[0].base
    counts = [state.progress.n_eff for state in states]
    shares = [
        min(count * state.statistics.from_base[0], base.progress.n_eff) for count, state in zip(counts, states, strict=True)
    ]
    n_eff = min(shares) + sum(counts) - sum(shares)
    own, each = dense(base.statistics), [dense(state.statistics) for state in states]
    statistics = {
        name: (
            min(shares) * own[name]
            + sum(count * one[name] - share * own[name] for one, count, share in zip(each, counts, shares, strict=True))
        )
        / n_eff
        for name in own
    }
    statistics["from_base"] = np.array([min(shares) / n_eff])
    average = None
    if "average" in base.records:
        weights = [state.progress.weight_seen - base.progress.weight_seen for state in states]
        averages = [dense(state.records["average"]) for state in states]
        average = {name: np.average([one[name] for one in averages], axis=0, weights=weights) for name in own}

    def added(pick):
        return pick(base.progress) + sum(pick(state.progress) - pick(base.progress) for state in states)

    progress = Progress(
        added(lambda one: one.rows_seen),
        added(lambda one: one.weight_seen),
        added(lambda one: one.folds),
        n_eff * min(state.progress.mass / state.progress.n_eff for state in states),
        n_eff,
    )
    return statistics, average, progress
