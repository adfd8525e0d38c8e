"""E-step of K multinomials: sparse rows in, responsibilities, scores and statistics out.

Rows are in compressed form: row i has the values data[j] in the columns indices[j] for indptr[i] <= j < indptr[i + 1]. Tables
are word-major (V, K), so that a word's numbers lie side by side. Columns may fall into groups that are normalised apart, as the
transitions from each symbol are; `groups` (V,) names them, and is empty if there is one.
"""

import numpy as np

from headwater.kernels._jit import helper, kernel
from headwater.kernels.fastmath import digamma, exp, log, log_gamma_ratio
from headwater.kernels.lanes import gather_rows, scatter_rows
from headwater.kernels.mixture import EXPECT_LOG, MODE, PREDICTIVE, TINY

# A smaller share of a row is not written to the table.
NEGLIGIBLE = 1e-20
BLOCK = 64


@kernel
def word_table(code, slots, rows, factor, words, beta, shift, norm, groups, out):
    """Read the parameters of some words out of a belief: logarithms, less `norm`, or the belief itself if predictive.

    The belief about word w is beta + factor * its row; `shift` is what a mode takes off it. `beta` and `shift` are (1, 1),
    (V, 1) or (V, K).
    """
    n_components = out.shape[1]
    own_word, own_component = beta.shape[0] > 1, beta.shape[1] > 1
    flat = out.reshape(-1)
    for begin in range(0, words.size, BLOCK):  # in blocks that stay in the cache, and logarithms over all of a block
        end = min(begin + BLOCK, words.size)
        for u in range(begin, end):
            word = words[u]
            slot = slots[word]
            at = word if own_word else 0
            if own_component:
                for k in range(n_components):
                    out[u, k] = beta[at, k] - (shift[at, k] if code == MODE else 0.0)
            else:
                prior = beta[at, 0] - (shift[at, 0] if code == MODE else 0.0)
                for k in range(n_components):
                    out[u, k] = prior
            if slot:
                for k in range(n_components):
                    out[u, k] += factor * rows[slot - 1, k]
        if code == EXPECT_LOG:
            for t in range(begin * n_components, end * n_components):
                flat[t] = digamma(flat[t])
        elif code != PREDICTIVE:
            for t in range(begin * n_components, end * n_components):
                flat[t] = log(max(flat[t], TINY))
        if code != PREDICTIVE:
            for u in range(begin, end):
                group = groups[words[u]] if groups.size else 0
                for k in range(n_components):
                    out[u, k] -= norm[group, k]


@helper
def clamped_softmax(joint, label, shares):
    """Responsibilities from joint log-probabilities, and their log-sum; a label leaves one component."""
    n_components = joint.size
    if label >= 0:
        score = joint[label]
        for k in range(n_components):
            shares[k] = 0.0
        shares[label] = 1.0
        return score
    peak = joint[0]
    for k in range(n_components):
        peak = max(peak, joint[k])
    total = 0.0
    for k in range(n_components):
        shares[k] = exp(joint[k] - peak)
    for k in range(n_components):
        total += shares[k]
    inverse = 1.0 / total
    for k in range(n_components):
        shares[k] *= inverse
    return peak + log(total)


@helper
def spread_row(begin, end, local, data, shares, weight, target):
    """Add data * weight * shares to the rows of the target; the shares are multiplied by the weight."""
    n_components = shares.size
    alive = 0
    for k in range(n_components):
        alive += shares[k] > NEGLIGIBLE
    if 4 * alive <= n_components:
        for k in range(n_components):
            if shares[k] > NEGLIGIBLE:
                share = weight * shares[k]
                for j in range(begin, end):
                    target[local[j], k] += data[j] * share
    else:
        for k in range(n_components):
            shares[k] *= weight
        scatter_rows(target, local, data, begin, end, shares)


@kernel
def estep_sparse(
    indptr, local, data, start, stop, table, log_weights, weights, labels, scores, responsibilities, given, count, target
):
    """Rows start..stop; `local` are the places of their words in `table` and `target`.

    Fills `scores` and `responsibilities`, and adds to `count` and `target`, where there is room; responsibilities that are
    `given` are taken as they are. Returns the weighted sum of the scores.
    """
    n_components = log_weights.size
    joint, shares = np.empty(n_components), np.empty(n_components)
    total = 0.0
    for i in range(start, stop):
        begin, end = indptr[i], indptr[i + 1]
        weight = weights[i] if weights.size else 1.0
        if given:
            for k in range(n_components):
                shares[k] = responsibilities[i, k]
        else:
            for k in range(n_components):
                joint[k] = log_weights[k]
            gather_rows(table, local, data, begin, end, joint)
            score = clamped_softmax(joint, labels[i] if labels.size else -1, shares)
            total += weight * score
            if scores.size:
                scores[i] = score
            if responsibilities.size:
                for k in range(n_components):
                    responsibilities[i, k] = shares[k]
        if count.size:
            for k in range(n_components):
                count[k] += weight * shares[k]
            spread_row(begin, end, local, data, shares, weight, target)
    return total


@helper
def polya_row(begin, end, indices, local, data, belief, totals, scale, length, groups, joint):
    """Add the log-probability of a row with the probabilities integrated out to `joint`; columns of a group lie together.

    The belief is that of the words at `local`, and totals + scale * length (G, K) its sum over each group.
    """
    n_components = joint.size
    words, group = 0.0, 0
    for j in range(begin, end):
        place, value = local[j], data[j]
        own = groups[indices[j]] if groups.size else 0
        if own != group:
            if words > 0.0:
                for k in range(n_components):
                    joint[k] -= log_gamma_ratio(totals[group, k] + scale * length[group, k], words)
            words, group = 0.0, own
        if value == 1.0:
            for k in range(n_components):
                joint[k] += log(belief[place, k])
        elif value > 0.0:
            for k in range(n_components):
                joint[k] += log_gamma_ratio(belief[place, k], value)
        words += value
    if words > 0.0:
        for k in range(n_components):
            joint[k] -= log_gamma_ratio(totals[group, k] + scale * length[group, k], words)


@kernel
def estep_polya(
    indptr, indices, local, data, start, stop, table, totals, groups, log_weights, weights, labels, scores,
    responsibilities, count, target,
):  # fmt: skip
    """The E-step under the predictive probabilities of a row (Pólya's urns)."""
    n_components = log_weights.size
    joint, shares = np.empty(n_components), np.empty(n_components)
    total = 0.0
    for i in range(start, stop):
        begin, end = indptr[i], indptr[i + 1]
        weight = weights[i] if weights.size else 1.0
        for k in range(n_components):
            joint[k] = log_weights[k]
        polya_row(begin, end, indices, local, data, table, totals, 0.0, totals, groups, joint)
        score = clamped_softmax(joint, labels[i] if labels.size else -1, shares)
        total += weight * score
        if scores.size:
            scores[i] = score
        if responsibilities.size:
            for k in range(n_components):
                responsibilities[i, k] = shares[k]
        if count.size:
            for k in range(n_components):
                count[k] += weight * shares[k]
            spread_row(begin, end, local, data, shares, weight, target)
    return total


@kernel
def softmax_rows(joint, weights, labels, scores, count):
    """Turn joint log-probabilities (n, K) into responsibilities in place, add them up, return the sum of the scores."""
    n_components = joint.shape[1]
    total = 0.0
    for i in range(joint.shape[0]):
        weight = weights[i] if weights.size else 1.0
        score = clamped_softmax(joint[i], labels[i] if labels.size else -1, joint[i])
        total += weight * score
        if scores.size:
            scores[i] = score
        if count.size:
            for k in range(n_components):
                count[k] += weight * joint[i, k]
    return total


@kernel
def group_sums(words, rows, groups, length):
    """Add the rows of the words to the sums of their groups."""
    for u in range(words.size):
        group = groups[words[u]] if groups.size else 0
        for k in range(rows.shape[1]):
            length[group, k] += rows[u, k]


@kernel
def rows_times(indptr, indices, data, matrix, out):
    """Add the product of sparse rows and a matrix to `out`."""
    for i in range(indptr.size - 1):
        gather_rows(matrix, indices, data, indptr[i], indptr[i + 1], out[i])


@kernel
def columns_times(indptr, indices, data, matrix, out):
    """Add the product of the transpose of sparse rows and a matrix to `out`."""
    for i in range(indptr.size - 1):
        scatter_rows(out, indices, data, indptr[i], indptr[i + 1], matrix[i])
