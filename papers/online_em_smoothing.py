"""What happens if a chain of hidden states is smoothed with a limited memory or a fixed lag: two approximations that paper 002
warns of, in plain compiled code. The library has neither: it carries the recursion of Cappé's algorithm, or smooths blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import headwater as hw
from headwater.core.statistics import Array
from headwater.kernels._jit import kernel
from pages.results import Figures
from papers.online_em_scale import Scale

TOURS = 10  # of the recursion over the sequence
LAGS = (0, 1, 2, 5, 10, 50)
WHOLE = 100  # rows on both sides that are as good as all
RIGHT, LAPLACE, DWELL = "the model is right", "Laplace noise", "states last 8 to 12 and 4 to 6 rows"
LAWS = (RIGHT, LAPLACE, DWELL)
KINDS = {"limited memory": True, "fixed lag": False}
MEANS, TRANSITIONS = np.array([0.0, 1.5]), np.array([[0.95, 0.05], [0.1, 0.9]])


@dataclass(frozen=True)
class Chain:
    """Two hidden states and normal noise."""

    transitions: Array
    means: Array
    variances: Array

    @property
    def vector(self) -> Array:
        """What is compared: both chances to stay, means and variances."""
        return np.concatenate([self.transitions.diagonal(), self.means, self.variances])


TRUTH = Chain(TRANSITIONS, MEANS, np.ones(2))
STARTS = (TRUTH, Chain(np.array([[0.7, 0.3], [0.3, 0.7]]), np.array([-0.5, 2.0]), np.full(2, 1.5)))


def drawn(law: str, rows: int, seed: int) -> Array:
    """A sequence. Dwell times of a Markov chain are geometric; those of the third law are not."""
    rng = np.random.default_rng(np.random.SeedSequence((2, 11, seed)))
    lengths = np.empty((rows, 2), dtype=np.int64)
    for state in range(2):
        lowest, highest = ((8, 12), (4, 6))[state]
        stay = TRANSITIONS[state, state]
        lengths[:, state] = (
            rng.integers(lowest, highest + 1, size=rows) if law == DWELL else rng.geometric(1.0 - stay, size=rows)
        )
    states = np.repeat(np.tile([0, 1], rows), lengths.ravel())[:rows]
    noise = rng.laplace(size=rows) / math.sqrt(2.0) if law == LAPLACE else rng.normal(size=rows)
    return MEANS[states] + noise


@kernel
def stationary(transitions):
    law = np.full(transitions.shape[0], 1.0 / transitions.shape[0])
    for _ in range(2000):
        law = law @ transitions
    return law


@kernel
def lagged_statistics(y, transitions, means, variances, lag, memory):
    """Mean over t of E[s(X_{t-1}, X_t, Y_t) | Y_{t-memory:t+lag}]: (K, K) pairs, (3, K) counts, firsts and squares.

    A negative memory is an endless one (the filter). Rows that have no whole window are left out.
    """
    states, n = len(means), len(y)
    density = np.empty((n, states))
    for t in range(n):
        for k in range(states):
            density[t, k] = math.exp(-0.5 * (y[t] - means[k]) ** 2 / variances[k]) / math.sqrt(variances[k]) + 1e-300
    law = stationary(transitions)
    pairs, moments = np.zeros((states, states)), np.zeros((3, states))
    before, after, work, joint = law.copy(), np.ones(states), np.empty(states), np.empty((states, states))
    used = 0
    for t in range(n - lag):
        if memory >= 0:
            if t < memory:
                continue
            before[:] = law
            for s in range(t - memory, t):  # P(X_{t-1} | Y_{t-memory:t-1}), from the stationary law of X_{t-memory}
                total = 0.0
                for k in range(states):
                    if s > t - memory:
                        value = 0.0
                        for i in range(states):
                            value += before[i] * transitions[i, k]
                    else:
                        value = law[k]
                    work[k] = value * density[s, k]
                    total += work[k]
                for k in range(states):
                    before[k] = work[k] / total
        after[:] = 1.0
        for s in range(t + lag, t, -1):
            total = 0.0
            for i in range(states):
                value = 0.0
                for k in range(states):
                    value += transitions[i, k] * density[s, k] * after[k]
                work[i] = value
                total += value
            for i in range(states):
                after[i] = work[i] / total
        total = 0.0
        for i in range(states):
            for k in range(states):
                joint[i, k] = before[i] * transitions[i, k] * density[t, k] * after[k]
                total += joint[i, k]
        for k in range(states):
            share = 0.0
            for i in range(states):
                pairs[i, k] += joint[i, k] / total
                share += joint[i, k] / total
            moments[0, k] += share
            moments[1, k] += share * y[t]
            moments[2, k] += share * y[t] * y[t]
        used += 1
        if memory < 0:
            total = 0.0
            for k in range(states):
                value = 0.0
                for i in range(states):
                    value += before[i] * transitions[i, k]
                work[k] = value * density[t, k]
                total += work[k]
            for k in range(states):
                before[k] = work[k] / total
    return pairs / used, moments / used


def fixed_point(y: Array, start: Chain, lag: int, memory: int, most: int, near: float) -> tuple[Chain, int]:
    """Where M-steps from these statistics end, and after how many."""
    chain = start
    for turn in range(1, most + 1):
        pairs, (count, first, square) = lagged_statistics(y, chain.transitions, chain.means, chain.variances, lag, memory)
        means = first / count
        after = Chain(pairs / pairs.sum(axis=1, keepdims=True), means, np.maximum(square / count - means**2, 1e-6))
        moved = float(np.abs(after.vector - chain.vector).max())
        chain = after
        if moved < near:
            return chain, turn
    return chain, most


def recursive(y: Array, start: Chain) -> Chain:
    """Where Cappé's recursion ends, by the library: n^-0.6, averaged, the sequence again and again."""
    model = hw.GaussianHMM(
        2,
        algorithm=hw.OnlineEM(decay=0.6, offset=0.0, batch_size=1, average_exponent=1.0),
        warm_up=50,
        init_params="",
        n_threads=1,
        random_state=0,
    )
    model.startprob_, model.transmat_ = np.full(2, 0.5), start.transitions
    model.means_, model.covars_ = start.means[:, None], start.variances[:, None]
    for _ in range(TOURS):
        model.partial_fit(y[:, None])
    return Chain(model.transmat_, model.means_.ravel(), model.covars_.ravel())


def smoothing_set(law: str, scale: Scale) -> Figures:
    """Fixed points by lag, their distance to that of full smoothing, and whether two starts end in the same one."""
    y = drawn(law, scale.chain, 0)
    most, near = (300, 1e-5) if scale.chain >= 10_000 else (20, 1e-3)
    whole, steps = fixed_point(y, STARTS[0], WHOLE, -1, most, near)
    figures: Figures = {
        "law": law, "rows": scale.chain, "lags": [*LAGS], "whole": whole.vector.tolist(), "steps": steps,
        "truth": TRUTH.vector.tolist(), "most": most, "kinds": {}, "tours": TOURS,
        "recursive": [float(np.abs(recursive(y, start).vector - whole.vector).max()) for start in STARTS],
    }  # fmt: skip
    for kind, limited in KINDS.items():
        ends = [[fixed_point(y, start, lag, lag if limited else -1, most, near) for start in STARTS] for lag in LAGS]
        figures["kinds"][kind] = {
            "away": [float(np.abs(pair[1][0].vector - whole.vector).max()) for pair in ends],
            "from_truth": [float(np.abs(pair[0][0].vector - whole.vector).max()) for pair in ends],
            "apart": [float(np.abs(pair[0][0].vector - pair[1][0].vector).max()) for pair in ends],
            "steps": [pair[1][1] for pair in ends], "ends": [pair[1][0].vector.tolist() for pair in ends],
        }  # fmt: skip
    return figures
