"""E-steps of documents whose words come from K topics: drawn by Gibbs or Metropolis-Hastings.

Topics are word-major (W, K): row w holds the probability of word w in each topic, for the words of these documents alone.
`alpha` (K,) are the Dirichlet parameters of a document's proportions. Every E-step adds to `target` (W, K) what it expects of
the tokens of each word in each topic, to `count` (K,) the shares of the topics, and to `tables` (K + 1,) what the prior of the
proportions is learned from: alpha_k (psi(n_k + alpha_k) - psi(alpha_k)), the expected number of tables that n_k guests sit at
in a Chinese restaurant, and psi(n + A) - psi(A). It fills `proportions` (n, K) if there is room, and returns a score.
"""

import math

import numpy as np

from headwater.kernels._jit import helper, kernel, routine
from headwater.kernels.fastmath import digamma, exp, log
from headwater.kernels.mixture import EXPECT_LOG
from headwater.kernels.random import begin_stream, log_gamma_variate, uniform

MOST_TOKENS = (
    2**13
)  # of one document that are drawn one by one; of a longer one each stands for several, so that none takes long
BLOCK = 32
LOWEST_LOG = -600.0  # so that a word that no topic has seen is not impossible in all of them


@kernel
def topic_table(code, slots, rows, factor, words, beta, norm, out):
    """Probabilities of some words, or exp(E[log]) of them, under the belief beta + factor * rows, whose log-sum is `norm`."""
    n_topics = out.shape[1]
    inverse = np.empty(n_topics)
    for k in range(n_topics):
        inverse[k] = exp(-norm[k])
    for u in range(words.size):
        slot = slots[words[u]]
        if slot:
            for k in range(n_topics):
                out[u, k] = beta + factor * rows[slot - 1, k]
        else:
            for k in range(n_topics):
                out[u, k] = beta
        if code == EXPECT_LOG:
            for k in range(n_topics):
                out[u, k] = exp(max(digamma(out[u, k]) - norm[k], LOWEST_LOG))
        else:
            for k in range(n_topics):
                out[u, k] *= inverse[k]


@routine
def add_tables(held, length, weight, alpha, total, tables):
    """Add what the prior is learned from: tables of each topic that holds something, and the rise of the whole."""
    for k in range(alpha.size):
        if held[k] > 0.0:
            tables[k] += weight * alpha[k] * (digamma(held[k] + alpha[k]) - digamma(alpha[k]))
    tables[alpha.size] += weight * (digamma(length + total) - digamma(total))


@routine
def tokens_of(begin, end, data, sizes, weights):
    """Cut the counts of a document into tokens: how many each entry has, and what one of them weighs. Returns their number."""
    total = 0.0
    for j in range(begin, end):
        total += math.ceil(data[j])
    scale = min(1.0, MOST_TOKENS / max(total, 1.0))
    number = 0
    for j in range(begin, end):
        size = max(1, int(math.ceil(data[j]) * scale)) if data[j] > 0.0 else 0
        sizes[j - begin] = size
        weights[j - begin] = data[j] / size if size else 0.0
        number += size
    return number


@helper
def clear(values):
    for k in range(values.size):
        values[k] = 0.0


@helper
def most_entries(indptr, start, stop):
    most = 0
    for i in range(start, stop):
        most = max(most, indptr[i + 1] - indptr[i])
    return most


@routine
def block_masses(topics, alpha, blocks):
    """Mass of alpha * topics of each word, up to the end of each block of topics."""
    n_topics = alpha.size
    for u in range(topics.shape[0]):
        total = 0.0
        for b in range(blocks.shape[1]):
            for k in range(b * BLOCK, min((b + 1) * BLOCK, n_topics)):
                total += alpha[k] * topics[u, k]
            blocks[u, b] = total


@helper
def pick_smooth(u, word, topics, alpha, blocks):
    """The topic at which the running sum of alpha * topics of a word passes u: its block first, then within the block."""
    b, last = 0, blocks.shape[1] - 1
    while b < last and blocks[word, b] < u:
        b += 1
    total = blocks[word, b - 1] if b else 0.0
    k, end = b * BLOCK, min((b + 1) * BLOCK, alpha.size) - 1
    total += alpha[k] * topics[word, k]
    while k < end and total < u:
        k += 1
        total += alpha[k] * topics[word, k]
    return k


@kernel
def gibbs_documents(
    indptr, local, data, start, stop, topics, alpha, burn_in, n_samples, rao_blackwell, key, streams, weights, target, count,
    tables, proportions,
):  # fmt: skip
    """Collapsed Gibbs: the topic of each token given those of the others, at fixed topics.

    p(topic k) is proportional to topics[w, k] alpha_k + topics[w, k] n_k. The sum of the first part is known for each word, and
    the second is zero but for the topics that the document has: a draw costs as much as there are of those, however
    many topics there are, and is exact. So is the Rao-Blackwellised statistic: of the first part it is enough to remember its
    factor for each word; and so are the proportions, if they are wanted. `streams` (n,) are the places of the rows in the
    stream of random numbers. The score is that of each token given the others, in the last sweep.
    """
    n_topics, most = alpha.size, most_entries(indptr, start, stop)
    sizes, token_weights = np.empty(most, dtype=np.int64), np.empty(most)
    blocks = np.empty((topics.shape[0], (n_topics + BLOCK - 1) // BLOCK))
    block_masses(topics, alpha, blocks)
    end_block = blocks.shape[1] - 1
    total_alpha = 0.0
    for k in range(n_topics):
        total_alpha += alpha[k]
    entries, drawn = np.empty(64, dtype=np.int32), np.empty(64, dtype=np.int32)
    active, place, held = np.empty(n_topics, dtype=np.int32), np.empty(n_topics, dtype=np.int32), np.empty(n_topics)
    guests = np.empty(n_topics, dtype=np.int64)
    running, means = np.empty(n_topics), np.empty(n_topics)
    for k in range(n_topics):  # np.full and np.zeros would take half a second to compile
        place[k], guests[k], held[k], means[k] = -1, 0, 0.0, 0.0
    smooth, document = np.empty(topics.shape[0]), np.empty(most)
    clear(smooth)
    clear(document)
    state = np.empty(1, dtype=np.uint64)
    learning, reading = target.shape[0] > 0, proportions.shape[0] > 0
    score = 0.0
    for i in range(start, stop):
        begin_stream(state, key, streams[i])
        begin, end = indptr[i], indptr[i + 1]
        row_weight = weights[i] if weights.size else 1.0
        n_tokens = tokens_of(begin, end, data, sizes, token_weights)
        if n_tokens > entries.size:
            entries, drawn = np.empty(2 * n_tokens, dtype=np.int32), np.empty(2 * n_tokens, dtype=np.int32)
        length, t = 0.0, 0
        for j in range(end - begin):
            length += data[begin + j]
            for _ in range(sizes[j]):
                entries[t] = j
                drawn[t] = -1
                t += 1
        n_active = 0
        share = row_weight / n_samples
        for sweep in range(burn_in + n_samples + 1):  # the first one places the tokens, each given those before it
            kept = sweep > burn_in
            last = sweep == burn_in + n_samples
            for t in range(n_tokens):
                j = entries[t]
                word, weight, topic = local[begin + j], token_weights[j], drawn[t]
                if topic >= 0:
                    guests[topic] -= 1
                    held[topic] -= weight
                    if guests[topic] == 0:
                        held[topic] = 0.0
                        n_active -= 1
                        moved, spot = active[n_active], place[topic]
                        active[spot], place[moved], place[topic] = moved, spot, -1
                own = 0.0
                for a in range(n_active):
                    own += held[active[a]] * topics[word, active[a]]
                    running[a] = own
                total = own + blocks[word, end_block]
                u = uniform(state) * total
                if u < own:
                    a = 0
                    while running[a] < u:
                        a += 1
                    topic = active[a]
                else:
                    topic = pick_smooth(u - own, word, topics, alpha, blocks)
                if kept and learning:
                    if rao_blackwell:
                        gain, before = share * weight / total, 0.0
                        smooth[word] += gain
                        for a in range(n_active):
                            target[word, active[a]] += gain * (running[a] - before)
                            before = running[a]
                    else:
                        target[word, topic] += share * weight
                if kept and reading:
                    gain, before = weight / (total * n_samples), 0.0
                    document[j] += gain
                    for a in range(n_active):
                        means[active[a]] += gain * (running[a] - before)
                        before = running[a]
                if last:
                    score += row_weight * weight * log(total / (length - weight + total_alpha))
                if place[topic] < 0:
                    place[topic], active[n_active] = n_active, topic
                    n_active += 1
                guests[topic] += 1
                held[topic] += weight
                drawn[t] = topic
            if kept:
                for a in range(0 if reading else n_active):
                    means[active[a]] += held[active[a]] / n_samples
                if tables.size:
                    add_tables(held, length, share, alpha, total_alpha, tables)
        if reading:
            for j in range(end - begin):
                for k in range(n_topics):
                    means[k] += document[j] * alpha[k] * topics[local[begin + j], k]
                document[j] = 0.0
        end_document(means, length, row_weight, alpha, total_alpha, i, count, proportions)
        for a in range(n_active):
            topic = active[a]
            held[topic], guests[topic], place[topic] = 0.0, 0, -1
    if learning and rao_blackwell:
        for word in range(topics.shape[0]):
            for k in range(n_topics):
                target[word, k] += smooth[word] * alpha[k] * topics[word, k]
    return score


@routine
def end_document(means, length, weight, alpha, total, i, count, proportions):
    """Add the shares of the topics, fill in the proportions, and clear the expected tokens of each topic."""
    inverse = weight / length if length > 0.0 else 0.0
    for k in range(alpha.size):
        if count.size:
            count[k] += inverse * means[k]
        if proportions.size:
            proportions[i, k] = (means[k] + alpha[k]) / (length + total)
        means[k] = 0.0


@routine
def log_likelihoods(begin, end, local, topics, proportions, mixed):
    """Fill in the probability of every word of a document with these proportions."""
    n_topics = proportions.size
    for j in range(begin, end):
        total = 1e-300
        for k in range(n_topics):
            total += topics[local[j], k] * proportions[k]
        mixed[j - begin] = total


@routine
def log_likelihood_of(begin, end, data, mixed):
    total = 0.0
    for j in range(begin, end):
        total += data[j] * log(mixed[j - begin])
    return total


@routine
def log_dirichlet_step(kappa, current, log_current, proposed, log_proposed, alpha):
    """log of q(current | proposed) p(proposed) / (q(proposed | current) p(current)).

    q(x | y) is Dirichlet(kappa y + 1) and p Dirichlet(alpha): what paper 001 prints lacks the prior, and the right exponents.
    """
    total = 0.0
    for k in range(alpha.size):
        total += math.lgamma(kappa * current[k] + 1.0) - math.lgamma(kappa * proposed[k] + 1.0)
        total += kappa * proposed[k] * log_current[k] - kappa * current[k] * log_proposed[k]
        total += (alpha[k] - 1.0) * (log_proposed[k] - log_current[k])
    return total


@routine
def draw_dirichlet(state, kappa, center, drawn, log_drawn):
    """Draw from Dirichlet(kappa * center + 1), with its logarithms."""
    peak = -np.inf
    for k in range(center.size):
        log_drawn[k] = log_gamma_variate(state, kappa * center[k] + 1.0)
        peak = max(peak, log_drawn[k])
    total = 0.0
    for k in range(center.size):
        total += exp(log_drawn[k] - peak)
    norm = peak + log(total)
    for k in range(center.size):
        log_drawn[k] -= norm
        drawn[k] = exp(log_drawn[k])


@kernel
def metropolis_documents(
    indptr, local, data, start, stop, topics, alpha, burn_in, n_samples, rao_blackwell, kappa, key, streams, weights, target,
    count, tables, accepted, proportions,
):  # fmt: skip
    """Metropolis-Hastings on the proportions (paper 001, section 4.2): proposals are Dirichlet(kappa * proportions + 1).

    Adds the share of proposals that were accepted to `accepted`. The score is that of the words given the proportions.
    """
    n_topics, most = alpha.size, most_entries(indptr, start, stop)
    mixed, mixed_next = np.empty(most), np.empty(most)
    sizes, token_weights = np.empty(most, dtype=np.int64), np.empty(most)
    current, proposed, log_current, log_proposed = np.empty((4, n_topics))
    held, means = np.empty(n_topics), np.empty(n_topics)
    clear(means)
    state = np.empty(1, dtype=np.uint64)
    total_alpha = 0.0
    for k in range(n_topics):
        total_alpha += alpha[k]
    score = 0.0
    for i in range(start, stop):
        begin_stream(state, key, streams[i])
        begin, end = indptr[i], indptr[i + 1]
        row_weight = weights[i] if weights.size else 1.0
        share = row_weight / n_samples
        tokens_of(begin, end, data, sizes, token_weights)
        length = 0.0
        for j in range(begin, end):
            length += data[j]
        for k in range(n_topics):
            current[k] = 1.0 / n_topics
            log_current[k] = log(current[k])
        log_likelihoods(begin, end, local, topics, current, mixed)
        likelihood = log_likelihood_of(begin, end, data, mixed)
        for sweep in range(burn_in + n_samples):
            draw_dirichlet(state, kappa, current, proposed, log_proposed)
            log_likelihoods(begin, end, local, topics, proposed, mixed_next)
            likelihood_next = log_likelihood_of(begin, end, data, mixed_next)
            ratio = likelihood_next - likelihood
            ratio += log_dirichlet_step(kappa, current, log_current, proposed, log_proposed, alpha)
            if math.log(uniform(state)) < ratio:
                likelihood = likelihood_next
                for k in range(n_topics):
                    current[k], log_current[k] = proposed[k], log_proposed[k]
                for j in range(end - begin):
                    mixed[j] = mixed_next[j]
                if accepted.size:
                    accepted[0] += row_weight / (burn_in + n_samples)
            if sweep < burn_in:
                continue
            for k in range(n_topics):
                held[k] = 0.0
            for j in range(begin, end):
                word = local[j]
                if rao_blackwell:
                    gain = data[j] / mixed[j - begin]
                    for k in range(n_topics):
                        value = gain * topics[word, k] * current[k]
                        means[k] += value / n_samples
                        if target.size:
                            target[word, k] += share * value
                if tables.size or not rao_blackwell:  # the number of tables is not linear in the tokens
                    for _ in range(sizes[j - begin]):
                        u, total, topic = uniform(state) * mixed[j - begin], 0.0, -1
                        while topic < n_topics - 1 and total < u:
                            topic += 1
                            total += topics[word, topic] * current[topic]
                        held[topic] += token_weights[j - begin]
                        if target.size and not rao_blackwell:
                            target[word, topic] += share * token_weights[j - begin]
            if not rao_blackwell:
                for k in range(n_topics):
                    means[k] += held[k] / n_samples
            if tables.size:
                add_tables(held, length, share, alpha, total_alpha, tables)
            score += share * likelihood
        end_document(means, length, row_weight, alpha, total_alpha, i, count, proportions)
    return score


@kernel
def completed_score(indptr, local, data, start, stop, topics, proportions):
    """Sum of log-probabilities of the words, given the proportions of their documents."""
    score = 0.0
    for i in range(start, stop):
        for j in range(indptr[i], indptr[i + 1]):
            total = 1e-300
            for k in range(proportions.shape[1]):
                total += topics[local[j], k] * proportions[i, k]
            score += data[j] * log(total)
    return score
