"""E-steps of documents without draws: mean-field, and collapsed. Arguments are those of topics.py."""

import math

import numpy as np

from headwater.kernels._jit import kernel
from headwater.kernels.fastmath import digamma, exp, log
from headwater.kernels.lanes import called_gather_rows
from headwater.kernels.topics import add_tables, end_document, most_entries


@kernel
def mean_field_documents(
    indptr, local, data, start, stop, topics, alpha, iterations, tol, weights, target, count, tables, scores, proportions
):
    """Mean-field variational Bayes of the proportions (Hoffman, Blei and Bach, 2010).

    Scores are lower bounds of the documents' log-likelihoods at these topics (or at exp(E[log]) of them). `spread` is
    exp(E[log proportions]) up to a factor, which keeps it from vanishing in all topics at once.
    """
    n_topics, most = alpha.size, most_entries(indptr, start, stop)
    ratios, mixed = np.empty(most), np.empty(most)
    gamma, spread, sums, means = np.empty(n_topics), np.empty(n_topics), np.empty(n_topics), np.empty(n_topics)
    logs = np.empty(n_topics)
    total_alpha, constant = 0.0, 0.0
    for k in range(n_topics):
        total_alpha += alpha[k]
        constant -= math.lgamma(alpha[k])
    constant += math.lgamma(total_alpha)
    every = np.empty(most, dtype=np.int32)
    for j in range(most):
        every[j] = j
    rows = np.empty((most, n_topics))
    score = 0.0
    for i in range(start, stop):
        begin, end = indptr[i], indptr[i + 1]
        size = end - begin
        row_weight = weights[i] if weights.size else 1.0
        length = 0.0
        for j in range(size):
            length += data[begin + j]
            for k in range(n_topics):
                rows[j, k] = topics[local[begin + j], k]
        for k in range(n_topics):
            gamma[k] = alpha[k] + length / n_topics
        done, peak = False, 0.0
        for turn in range(iterations + 1):
            peak = -np.inf
            for k in range(n_topics):
                logs[k] = digamma(gamma[k])
                peak = max(peak, logs[k])
            for k in range(n_topics):
                spread[k] = exp(logs[k] - peak)
                sums[k] = 0.0
            for j in range(size):
                total = 1e-300
                for k in range(n_topics):
                    total += rows[j, k] * spread[k]
                mixed[j] = total
            if done or turn == iterations:
                break
            for j in range(size):
                ratios[j] = data[begin + j] / mixed[j]
            called_gather_rows(rows, every, ratios, 0, size, sums)
            change = 0.0
            for k in range(n_topics):
                change += abs(alpha[k] + spread[k] * sums[k] - gamma[k])
            for k in range(n_topics):
                gamma[k] = alpha[k] + spread[k] * sums[k]
            done = change <= tol * length
        shift = digamma(total_alpha + length)
        likelihood = length * (peak - shift)
        for j in range(size):
            likelihood += data[begin + j] * log(mixed[j])
        bound = likelihood + constant - math.lgamma(total_alpha + length)
        for k in range(n_topics):
            bound += (alpha[k] - gamma[k]) * (logs[k] - shift) + math.lgamma(gamma[k])
        for k in range(n_topics):
            means[k] = gamma[k] - alpha[k]
        score += row_weight * bound
        if scores.size:
            scores[i] = bound
        if target.size:
            for j in range(size):
                gain = row_weight * data[begin + j] / mixed[j]
                word = local[begin + j]
                for k in range(n_topics):
                    target[word, k] += gain * rows[j, k] * spread[k]
        if tables.size:
            add_tables(means, length, row_weight, alpha, total_alpha, tables)
        end_document(means, length, row_weight, alpha, total_alpha, i, count, proportions)
    return score


@kernel
def collapsed_documents(indptr, local, data, start, stop, topics, alpha, burn_in, weights, target, count, tables, proportions):
    """Stochastic collapsed variational Bayes, zeroth order (Foulds et al., 2013): the local step for documents.

    Each entry moves the expected tokens of the topics by a step (10 + t)^-0.9; those of the last sweep are learned from. The
    score is that of the words given what was known of the document when they came.
    """
    n_topics = alpha.size
    held, shares = np.empty(n_topics), np.empty(n_topics)
    total_alpha = 0.0
    for k in range(n_topics):
        total_alpha += alpha[k]
    score = 0.0
    for i in range(start, stop):
        begin, end = indptr[i], indptr[i + 1]
        row_weight = weights[i] if weights.size else 1.0
        length, step = 0.0, 0.0
        for j in range(begin, end):
            length += data[j]
        for k in range(n_topics):
            held[k] = length * alpha[k] / total_alpha
        for sweep in range(burn_in + 1):
            for j in range(begin, end):
                word, total = local[j], 1e-300
                for k in range(n_topics):
                    shares[k] = topics[word, k] * (held[k] + alpha[k])
                for k in range(n_topics):
                    total += shares[k]
                step += 1.0
                keep = (1.0 - (10.0 + step) ** -0.9) ** data[j]
                gain = (1.0 - keep) * length / total
                for k in range(n_topics):
                    held[k] = keep * held[k] + gain * shares[k]
                if sweep == burn_in:
                    score += row_weight * data[j] * log(total / (length + total_alpha))
                    if target.size:
                        gain = row_weight * data[j] / total
                        for k in range(n_topics):
                            target[word, k] += gain * shares[k]
        if tables.size:
            add_tables(held, length, row_weight, alpha, total_alpha, tables)
        end_document(held, length, row_weight, alpha, total_alpha, i, count, proportions)
    return score
