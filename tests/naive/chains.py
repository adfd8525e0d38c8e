"""Slow, obvious twins for hidden Markov chains: all paths, recursions in logarithms, plain loops.

`logs` are log-densities (T, K) of the rows of one sequence under each state, 0 where a row is missing. `before` are the states
(K,) of the row before the first, for a sequence that goes on; without it a sequence begins at `start`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from scipy.special import logsumexp, psi

from naive import gaussian as naive


def safe_log(values):
    with np.errstate(divide="ignore"):
        return np.log(values)


@dataclass
class Answer:
    """Log-likelihood, states (T, K), passages (K, K), states that it began in (K,); and, of an enumeration, the best path."""

    score: float
    states: np.ndarray
    steps: np.ndarray
    first: np.ndarray
    path: tuple[int, ...] = ()
    best: float = -np.inf
    ties: int = 1


# All paths


def enumerate_paths(start, transitions, logs, before=None):
    """Enumerate all K^T paths (K^(T+1) for a sequence that continues), and add up their probabilities."""
    length, n_states = logs.shape
    log_start, log_steps = safe_log(start), safe_log(transitions)
    paths, weights = [], []
    for path in product(range(n_states), repeat=length + (before is not None)):
        own = path if before is None else path[1:]
        weight = log_start[path[0]] if before is None else safe_log(before)[path[0]]
        for one, other in pairwise(path):
            weight += log_steps[one, other]
        for t, state in enumerate(own):
            weight += logs[t, state]
        paths.append(path)
        weights.append(weight)
    weights = np.array(weights)
    score = logsumexp(weights)
    states, steps, first = np.zeros((length, n_states)), np.zeros((n_states, n_states)), np.zeros(n_states)
    for path, share in zip(paths, np.exp(weights - score), strict=True):
        for one, other in pairwise(path):
            steps[one, other] += share
        for t, state in enumerate(path if before is None else path[1:]):
            states[t, state] += share
        if before is None:
            first[path[0]] += share
    best = weights.max()
    return Answer(score, states, steps, first, paths[int(weights.argmax())], best, int((weights > best - 1e-9).sum()))


def path_weight(start, transitions, logs, path):
    """Log-probability of one path with the rows."""
    weight = safe_log(start)[path[0]] + logs[0, path[0]]
    for t in range(1, len(path)):
        weight += safe_log(transitions)[path[t - 1], path[t]] + logs[t, path[t]]
    return weight


# The textbook, in logarithms


def forward(start, transitions, logs, before=None):
    """Log of p(rows up to t, state at t), one row at a time."""
    log_steps = safe_log(transitions)
    alpha = np.empty_like(logs)
    for t in range(len(logs)):
        if t == 0:
            ahead = safe_log(start if before is None else before @ transitions)
        else:
            ahead = logsumexp(alpha[t - 1][:, None] + log_steps, axis=0)
        alpha[t] = ahead + logs[t]
    return alpha


def forward_backward(start, transitions, logs, before=None, counted=None):
    """States of all rows; passages and beginnings of the `counted` first rows; score of each row given those before it."""
    length, n_states = logs.shape
    counted = length if counted is None else counted
    alpha, log_steps = forward(start, transitions, logs, before), safe_log(transitions)
    beta = np.zeros_like(logs)
    for t in range(length - 2, -1, -1):
        beta[t] = logsumexp(log_steps + logs[t + 1] + beta[t + 1], axis=1)
    score = logsumexp(alpha[-1])
    states = np.exp(alpha + beta - score)
    steps, first = np.zeros((n_states, n_states)), np.zeros(n_states)
    for t in range(counted):
        if t > 0:
            steps += np.exp(alpha[t - 1][:, None] + log_steps + logs[t] + beta[t] - score)
        elif before is None:
            first += states[0]
        else:
            steps += np.exp(safe_log(before)[:, None] + log_steps + logs[0] + beta[0] - score)
    totals = logsumexp(alpha, axis=1)
    filters = np.exp(alpha - totals[:, None])
    return Answer(score, states, steps, first), filters, np.diff(totals, prepend=0.0)


# Emissions: the statistics of a row given its state, and the densities of a belief


@dataclass
class GaussianRows:
    kind: str
    prior: object

    def statistic(self, x, state, n_states):
        """Count, first and second moments of one row that came from this state."""
        return naive.totals(self.kind, (x - self.prior.origin)[None], np.eye(n_states)[[state]])

    def log_densities(self, name, totals, x):
        believed = naive.belief(self.kind, self.prior, *totals)
        return naive.log_densities(name, self.kind, believed, self.prior.floor, (x - self.prior.origin)[None])[0]


@dataclass
class SymbolRows:
    """`beta` and `shift` are (V, K)."""

    beta: np.ndarray
    shift: np.ndarray

    def statistic(self, x, state, n_states):
        table = np.zeros((len(self.beta), n_states))
        table[int(x[0]), state] = 1.0
        return np.eye(n_states)[state], table

    def log_densities(self, name, totals, x):
        return safe_log(dirichlet(name, self.beta.T, self.shift.T, totals[1].T))[:, int(x[0])]


def dirichlet(name, prior, shift, counts):
    """Mode, mean or exp E[log] of Dirichlet beliefs in the last axis."""
    if name == "mode":
        belief = prior - shift + counts
        return belief / belief.sum(axis=-1, keepdims=True)
    belief = prior + counts
    total = belief.sum(axis=-1, keepdims=True)
    return np.exp(psi(belief) - psi(total)) if name == "expect_log" else belief / total


# Cappé's recursion (equations.md, A7; paper 002)


def cappe(name, prior, rows, X, sequences, steps, mean, n_eff, gains=None, filters=None, fixed=None):
    """Learn row by row. `mean` is a list of arrays: start (K,), steps (K, K), and those of the emissions.

    The statistics of each sequence are kept apart, rho[s][q][..., k] given its state k now. `base` holds all that came before:
    the statistics of other sequences do not depend on the state of this one. Rows of NaN pass time. `fixed` are parameters
    (start, transitions, function of a row) that are never refreshed. Returns mean, average, n_eff, scores and the filters.
    """
    n_states = len(mean[0])
    base = [np.array(part) for part in mean]
    average = [np.array(part) for part in mean]
    rho, phi, scores = {}, dict(filters or {}), np.empty(len(X))
    for number in phi:
        rho[number] = [np.zeros((*part.shape, n_states)) for part in mean]
    for t, (x, s, g) in enumerate(zip(X, sequences, steps, strict=True)):
        totals = [n_eff * part for part in mean]
        if fixed is None:
            start = dirichlet(name, prior.start, prior.start_shift, totals[0])
            transitions = dirichlet(name, prior.steps, prior.steps_shift, totals[1])
        else:
            start, transitions = fixed[:2]
        missing = np.isnan(x).all()
        if missing:
            densities, level = np.ones(n_states), 0.0
        else:
            logs = rows.log_densities(name, totals[2:], x) if fixed is None else fixed[2](x)
            level = logs.max()
            densities = np.exp(logs - level)
        fresh = s not in phi
        if fresh:
            rho[s] = [np.zeros((*part.shape, n_states)) for part in mean]
            ahead = start
        else:
            ahead = phi[s] @ transitions
            back = np.array([[phi[s][i] * transitions[i, k] / ahead[k] for k in range(n_states)] for i in range(n_states)])
        joint = ahead * densities
        scores[t] = 0.0 if missing else level + np.log(joint.sum())
        for number, own in rho.items():
            for q, part in enumerate(own):
                if number != s or fresh:
                    own[q] = (1 - g) * part
                    continue
                after = np.zeros_like(part)
                for k in range(n_states):
                    for i in range(n_states):
                        after[..., k] += (1 - g) * part[..., i] * back[i, k]
                own[q] = after
        for k in range(n_states):
            if fresh:
                rho[s][0][k, k] += g
            else:
                for i in range(n_states):
                    rho[s][1][i, k, k] += g * back[i, k]
            if not missing:
                for q, part in enumerate(rows.statistic(x, k, n_states)):
                    rho[s][2 + q][..., k] += g * part
        phi[s] = joint / joint.sum()
        base = [(1 - g) * part for part in base]
        mean = [part + sum(own[q] @ phi[number] for number, own in rho.items()) for q, part in enumerate(base)]
        if gains is not None:
            average = [old + gains[t] * (new - old) for old, new in zip(average, mean, strict=True)]
        n_eff = 1 / ((1 - g) ** 2 / n_eff + g**2)
    return mean, average, n_eff, scores, phi


# Blocks


def log_densities(kind, emissions, X):
    """(T, K) log-densities of parameters that are ready for the kernels; 0 for rows that are missing. kind None: symbols."""
    missing = np.isnan(X[:, 0])
    known = np.where(missing[:, None], 0.0, X)
    if kind is None:
        logs = emissions.logs[known[:, 0].astype(int)]
    else:
        logs = naive.log_joint(kind, emissions, np.zeros(len(emissions.offset)), known)
    return np.where(missing[:, None], 0.0, logs)


def expected(kind, parameters, X, sequences, rows=None, filters=None):
    """Totals of the first `rows` rows given all of them (start, steps, those of the emissions), the score and the filters."""
    rows = len(X) if rows is None else rows
    n_states, filters = len(parameters.start), dict(filters or {})
    logs = log_densities(kind, parameters.emissions, X)
    start, steps, states = np.zeros(n_states), np.zeros((n_states, n_states)), np.zeros((len(X), n_states))
    score = 0.0
    for number in dict.fromkeys(sequences.tolist()):
        places = np.flatnonzero(sequences == number)
        counted = int((places < rows).sum())
        if not counted:
            continue
        answer, filtered, scores = forward_backward(
            parameters.start, parameters.transitions, logs[places], filters.get(number), counted
        )
        start, steps = start + answer.first, steps + answer.steps
        states[places] = answer.states
        score += scores[:counted].sum()
        filters[number] = filtered[counted - 1]
    seen = (np.arange(len(X)) < rows) & ~np.isnan(X[:, 0])
    if kind is None:
        table = np.zeros((parameters.emissions.logs.shape[0], n_states))
        for x, share in zip(X[seen, 0].astype(int), states[seen], strict=True):
            table[x] += share
        emissions = (states[seen].sum(axis=0), table)
    else:
        emissions = naive.totals(kind, X[seen] - parameters.emissions.origin, states[seen])
    return [start, steps, *emissions], score, filters


def blocks(plan, kind, state, X, sequences, filters=None):
    """Run block after block, each with its rows of look-ahead; the steps and the readout are those of the library.

    Yields the mean statistics of each fold, the parameters after it and the rows that are left.
    """
    model, size = plan.model, plan.batch_rows(plan.model)
    mean, progress, parameters = flat_parts(kind, state.statistics), state.progress, state.parameters
    filters = dict(filters or {})
    at = 0
    while len(X) - at >= size + model.lag:
        window = slice(at, at + size + model.lag)
        totals, _, filters = expected(kind, parameters, X[window], sequences[window], size, filters)
        step = float(plan.schedule(model)(progress, np.array([float(size)]), size)[0])
        mean = [(1 - step) * old + step * new / size for old, new in zip(mean, totals, strict=True)]
        progress = progress.after(size, float(size), step, 1.0)
        parameters = yield mean, progress, at + size
        at += size


def flat_parts(kind, statistics):
    """The arrays of chain statistics: start, steps, count, and first and second moments, or the table of symbols."""
    emissions = statistics.emissions
    if kind is None:
        return [statistics.start, statistics.steps, emissions.count, np.asarray(emissions.table)]
    second = emissions.second
    if kind in ("full", "tied"):
        second = second + np.swapaxes(np.tril(second, -1), -1, -2)
    return [statistics.start, statistics.steps, emissions.count, emissions.first, second]
