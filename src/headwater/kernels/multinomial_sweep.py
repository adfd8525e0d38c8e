"""Learning K multinomials row by row: E-step, fold and readout of every row in one kernel."""

import numpy as np

from headwater.kernels._jit import kernel
from headwater.kernels.fastmath import digamma, log
from headwater.kernels.mixture import EXPECT_LOG, MODE, PREDICTIVE, TINY, weights_readout
from headwater.kernels.multinomial import NEGLIGIBLE, clamped_softmax, polya_row


@kernel
def sweep_sparse(
    indptr, indices, data, weights, labels, code, concentration, beta, shift, prior_totals, floors, groups, steps, gains, n_eff,
    count, length, slots, rows, factor, average_count, average_length, rest_slots, rest, share, rest_factor, scores,
):  # fmt: skip
    """Fold every row; return n_eff, and the factors of the table, of its share in the average and of the rest.

    Statistics are means per row: `count` (K,), factor * `length` (G, K) and factor * `rows`. The average of the table is
    share * rows + rest_factor * rest, and there is one if there are `gains`; at a gain of 1 share and rest are 0. Every step is
    below 1.
    """
    n_components = count.size
    own_word, own_component = beta.shape[0] > 1, beta.shape[1] > 1
    log_weights, joint, shares = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    belief = np.empty((max(1, np.max(indptr[1:] - indptr[:-1])), n_components))
    places = np.arange(belief.shape[0])
    flat = belief.reshape(-1)
    for i in range(indptr.size - 1):
        begin, end = indptr[i], indptr[i + 1]
        # Readout
        for k in range(n_components):
            shares[k] = n_eff * count[k]
        weights_readout(code, concentration, shares, log_weights)
        scale = n_eff * factor
        for j in range(begin, end):
            word = indices[j]
            place, at = slots[word] - 1, word if own_word else 0
            for k in range(n_components):
                prior = beta[at, k if own_component else 0] - (shift[at, k if own_component else 0] if code == MODE else 0.0)
                belief[j - begin, k] = prior + scale * rows[place, k]
        # E-step
        for k in range(n_components):
            joint[k] = log_weights[k]
        if code == PREDICTIVE:
            polya_row(0, end - begin, indices[begin:], places, data[begin:], belief, prior_totals, scale, length, groups, joint)
        else:
            if code == EXPECT_LOG:
                for t in range((end - begin) * n_components):
                    flat[t] = digamma(flat[t])
            else:
                for t in range((end - begin) * n_components):
                    flat[t] = log(max(flat[t], TINY))
            for j in range(begin, end):
                value = data[j]
                for k in range(n_components):
                    joint[k] += value * belief[j - begin, k]
            last, total = -1, 0.0
            for j in range(begin, end + 1):
                group = (groups[indices[j]] if groups.size else 0) if j < end else -1
                if group != last:
                    if last >= 0:
                        for k in range(n_components):
                            sum_of_group = prior_totals[last, k] + scale * length[last, k]
                            if code == EXPECT_LOG:
                                joint[k] -= total * digamma(sum_of_group)
                            else:
                                joint[k] -= total * log(max(sum_of_group, floors[last, 0]))
                    last, total = group, 0.0
                if j < end:
                    total += data[j]
        scores[i] = clamped_softmax(joint, labels[i] if labels.size else -1, shares)
        # Fold
        step, weight = steps[i], weights[i] if weights.size else 1.0
        factor *= 1.0 - step
        gain = step / factor
        change = 0.0
        if gains.size:
            change = -share / rest_factor * gain
        for k in range(n_components):
            count[k] += step * (shares[k] - count[k])
        for j in range(begin, end):
            word, value = indices[j], data[j]
            place = slots[word] - 1
            group = groups[word] if groups.size else 0
            for k in range(n_components):
                if shares[k] > NEGLIGIBLE:
                    rows[place, k] += gain * value * shares[k]
                    length[group, k] += gain * value * shares[k]
            if gains.size:
                place = rest_slots[word] - 1
                for k in range(n_components):
                    if shares[k] > NEGLIGIBLE:
                        rest[place, k] += change * value * shares[k]
        if gains.size:
            share = (1.0 - gains[i]) * share + gains[i] * factor
            if gains[i] < 1.0:
                rest_factor *= 1.0 - gains[i]
            for k in range(n_components):
                average_count[k] += gains[i] * (count[k] - average_count[k])
            for g in range(length.shape[0]):
                for k in range(n_components):
                    average_length[g, k] += gains[i] * (factor * length[g, k] - average_length[g, k])
        n_eff = 1.0 / ((1.0 - step) ** 2 / n_eff + step**2 / weight)
    return n_eff, factor, share, rest_factor
