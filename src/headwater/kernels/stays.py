"""Filter, smoother and best path of a chain of stays: K states, and D places in a stay of each, at a cost of K (K D) a row.

Place k D + r is state k with r rows left after this one. With r > 0 the next place is the one before it, for sure; from the
last row of a stay, r = 0, the chain passes to any place: `leave` (K, K D). Arrays are those of `kernels/chains.py`, of which
these are the same for any passages.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.chain_logs import condition_logs, log_sum
from headwater.kernels.chains import LEAST, add_log_scores, condition, part_of
from headwater.kernels.mixture import LOWEST


@helper
def pass_on(now, leave, chances):
    """Fill the places (K D,) of the next row, given those of this one."""
    n_states, places = leave.shape
    longest = places // n_states
    for j in range(places - 1):
        chances[j] = now[j + 1]
    for i in range(n_states):
        chances[(i + 1) * longest - 1] = 0.0
    for i in range(n_states):
        weight = now[i * longest]
        for j in range(places):
            chances[j] += weight * leave[i, j]


@kernel
def run_stay_filter(shares, logs, edges, known, filters, start, leave, ahead, scores):
    """Filter the rows, as `run_filter` does: `shares` become the places given all rows so far, `ahead` given those before."""
    n, places = shares.shape
    totals, now = np.empty(n), np.empty(places)
    for s in range(edges.size - 1):
        for t in range(edges[s], edges[s + 1]):
            if t > edges[s]:
                pass_on(now, leave, ahead[t])
            elif known[s]:
                pass_on(filters[s], leave, ahead[t])
            else:
                for j in range(places):
                    ahead[t, j] = start[j]
            totals[t] = condition(ahead[t], shares[t], logs[t] if logs.shape[0] else logs.ravel(), now)
            if math.isnan(totals[t]):
                return t
            for j in range(places):
                shares[t, j] = now[j]
    add_log_scores(totals, scores)
    return -1


@helper
def part_back(share, transition, chance, after):
    """The share of a place in a step; 0 where the step is impossible."""
    return part_of(share, transition, chance, after) if chance > 0.0 and transition > 0.0 else 0.0


@helper
def step_back_seldom(before, after, ahead, leave, steps, counts, back):
    """A step of `smooth_stays` for places that are so improbable that the inverse of their probability may be infinite."""
    n_states, places = leave.shape
    longest = places // n_states
    for j in range(places):
        back[j] = 0.0
        if j % longest:
            back[j] = part_back(before[j], 1.0, ahead[j - 1], after[j - 1])
            if counts:
                steps[j, j - 1] += back[j]
    for i in range(n_states):
        place, total = i * longest, 0.0
        for j in range(places):
            total += part_back(before[place], leave[i, j], ahead[j], after[j])
        if counts:
            for j in range(places):
                if leave[i, j] > 0.0:
                    steps[place, j] += part_back(before[place], leave[i, j], ahead[j], after[j]) / leave[i, j]
        back[place] = total


@helper
def step_back_stay(before, after, ahead, leave, ratio, steps, counts, back):
    """Fill the places `back` of a row, given the filter `before` of it and the places `after` of the next; count passages."""
    n_states, places = leave.shape
    longest = places // n_states
    seldom = False
    for j in range(places):
        seldom |= 0.0 < ahead[j] < LEAST
    if seldom:
        step_back_seldom(before, after, ahead, leave, steps, counts, back)
        return
    for j in range(places):
        ratio[j] = after[j] / ahead[j] if ahead[j] > 0.0 else 0.0
    for j in range(1, places):
        back[j] = before[j] * ratio[j - 1]
    for i in range(n_states):
        place, total = i * longest, 0.0
        for j in range(places):
            total += leave[i, j] * ratio[j]
        back[place] = before[place] * total
    if counts:
        for i in range(n_states):
            share = before[i * longest]
            for j in range(places):
                steps[i * longest, j] += share * ratio[j]
        for j in range(1, places):
            if j % longest:
                steps[j, j - 1] += back[j]


@kernel
def smooth_stays(shares, ahead, edges, known, filters, counted, leave, first, steps):
    """Smooth rows that were filtered, as `smooth` does; `steps` (K D, K D) wants to be multiplied by the transitions, too."""
    places = shares.shape[1]
    ratio, before, back = np.empty(places), np.empty(places), np.empty(places)
    for s in range(edges.size - 1):
        begin, end = edges[s], edges[s + 1]
        for j in range(places):
            before[j] = filters[s, j]
        if counted[s] > 0:
            for j in range(places):
                filters[s, j] = shares[begin + counted[s] - 1, j]
        for t in range(end - 1, begin, -1):
            step_back_stay(shares[t - 1], shares[t], ahead[t], leave, ratio, steps, t < begin + counted[s], back)
            for j in range(places):
                shares[t - 1, j] = back[j]
        if counted[s] > 0 and known[s]:
            step_back_stay(before, shares[begin], ahead[begin], leave, ratio, steps, True, back)
        elif counted[s] > 0:
            for j in range(places):
                first[j] += shares[begin, j]


@helper
def pass_on_logs(now, leave, terms, chances):
    """Fill the logarithms of the places (K D,) of the next row, given those of this one."""
    n_states, places = leave.shape
    longest = places // n_states
    for j in range(places):
        for i in range(n_states):
            terms[i] = now[i * longest] + leave[i, j]
        terms[n_states] = now[j + 1] if (j + 1) % longest else -np.inf
        chances[j] = log_sum(terms)


@kernel
def run_stay_log_filter(logs, edges, log_filters, log_start, leave, filtered, ahead, scores):
    """Filter rows with log-densities `logs` (n, K D), as `run_log_filter` does; `leave` holds logarithms."""
    places = logs.shape[1]
    terms, parts = np.empty(places), np.empty(leave.shape[0] + 1)
    for s in range(edges.size - 1):
        known = log_sum(log_filters[s]) > LOWEST
        for t in range(edges[s], edges[s + 1]):
            if t > edges[s]:
                pass_on_logs(filtered[t - 1], leave, parts, ahead[t])
            elif known:
                pass_on_logs(log_filters[s], leave, parts, ahead[t])
            else:
                for j in range(places):
                    ahead[t, j] = log_start[j]
            scores[t] = condition_logs(ahead[t], logs[t], terms, filtered[t])


@kernel
def smooth_stay_logs(filtered, ahead, edges, known, filters, counted, log_filters, leave, shares, first, steps):
    """Smooth rows that were filtered in logarithms, as `smooth_logs` does; `leave` holds logarithms."""
    n_states, places = leave.shape
    longest = places // n_states
    part = np.empty(n_states + 1)
    for s in range(edges.size - 1):
        begin, end = edges[s], edges[s + 1]
        if counted[s] > 0:
            for j in range(places):
                filters[s, j] = math.exp(filtered[begin + counted[s] - 1, j])
        for j in range(places):
            shares[end - 1, j] = math.exp(filtered[end - 1, j])
        for t in range(end - 1, begin - 1, -1):
            if t == begin and not known[s]:
                break
            before = log_filters[s] if t == begin else filtered[t - 1]
            if t > begin:
                for j in range(places):
                    shares[t - 1, j] = 0.0
            for j in range(places):
                if not (ahead[t, j] > LOWEST and shares[t, j] > 0.0):
                    continue
                total = 0.0  # 1, but for rounding of huge logarithms
                for i in range(n_states + 1):
                    value = -np.inf
                    if i < n_states:
                        value = before[i * longest] + leave[i, j] - ahead[t, j]
                    elif (j + 1) % longest:
                        value = before[j + 1] - ahead[t, j]
                    part[i] = math.exp(value) if value > LOWEST else 0.0
                for i in range(n_states + 1):
                    total += part[i]
                for i in range(n_states + 1):
                    part[i] *= shares[t, j] / total if total > 0.0 else 0.0
                if t > begin:
                    for i in range(n_states):
                        shares[t - 1, i * longest] += part[i]
                    if (j + 1) % longest:
                        shares[t - 1, j + 1] += part[n_states]
                if t < begin + counted[s]:
                    for i in range(n_states):
                        if part[i] > 0.0:
                            steps[i * longest, j] += part[i] / math.exp(leave[i, j])
                    if (j + 1) % longest:
                        steps[j + 1, j] += part[n_states]
        if counted[s] > 0 and not known[s]:
            for j in range(places):
                first[j] += shares[begin, j]


@kernel
def best_stays(logs, edges, log_start, leave, back, path):
    """Viterbi, as `best_path`: the most probable places of each sequence; `leave` holds logarithms, `back` is (n, K D)."""
    n_states, places = leave.shape
    longest = places // n_states
    now, after = np.empty(places), np.empty(places)
    total = 0.0
    for s in range(edges.size - 1):
        begin, end = edges[s], edges[s + 1]
        for j in range(places):
            now[j] = log_start[j] + logs[begin, j]
        for t in range(begin + 1, end):
            for j in range(places):
                best, place = now[0] + leave[0, j], 0
                for i in range(1, n_states):
                    value = now[i * longest] + leave[i, j]
                    if value > best:
                        best, place = value, i * longest
                if (j + 1) % longest and now[j + 1] > best:
                    best, place = now[j + 1], j + 1
                after[j] = best + logs[t, j]
                back[t, j] = place
            for j in range(places):
                now[j] = after[j]
        best, place = now[0], 0
        for j in range(1, places):
            if now[j] > best:
                best, place = now[j], j
        total += best
        for t in range(end - 1, begin - 1, -1):
            path[t] = place
            if t > begin:
                place = back[t, place]
    return total
