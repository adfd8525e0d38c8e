"""Chains of counts learned step by step, against the recursion in plain loops."""

import numpy as np
import pytest
from naive import chains as naive_chains
from naive import columns as naive_columns
from scipy.special import digamma, gammaln

from headwater.core.batch import Batch
from headwater.families.poisson import GammaPrior, Poisson, PoissonStatistics
from headwater.models.chain_records import ChainPrior, ChainStatistics
from headwater.models.hidden_markov import HiddenMarkov

K, D = 3, 2


class CountRows:
    """The statistics of a row given its state, and the densities of a belief."""

    def __init__(self, prior):
        self.prior = prior

    def statistic(self, x, state, n_states):
        count, exposure, events = np.zeros(n_states), np.zeros((n_states, len(x))), np.zeros((n_states, len(x)))
        count[state] = 1.0
        for column, value in enumerate(x):
            if not np.isnan(value):
                exposure[state, column] = 1.0
                events[state, column] = value
        return count, exposure, events

    def log_densities(self, name, totals, x):
        shape, rate = self.prior.shape + totals[2], self.prior.rate + totals[1]
        if name != "expect_log":
            return naive_columns.poisson(shape / rate, x[None], [1.0])[0]
        found = np.zeros(len(shape))
        for k in range(len(shape)):
            for j, value in enumerate(x):
                if not np.isnan(value):
                    expected = digamma(shape[k, j]) - np.log(rate[k, j])
                    found[k] += value * expected - shape[k, j] / rate[k, j] - gammaln(value + 1.0)
        return found


@pytest.mark.parametrize("name", ["mode", "mean", "expect_log"])
@pytest.mark.parametrize("shape", ["one", "complete", "interleaved"])
def test_sweep_of_counts_equals_the_naive_recursion(name, shape):
    rng = np.random.default_rng(3)
    X = rng.poisson([2.0, 5.0], size=(30, D)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[[4, 17]] = np.nan
    sequences = {
        "one": np.zeros(30, dtype=np.int64),
        "complete": np.repeat([-1, -10, -11, -13], [9, 1, 2, 18]),
        "interleaved": rng.integers(3, size=30),
    }[shape]
    emissions = GammaPrior(rng.uniform(1.0, 4.0, (K, D)), rng.uniform(0.5, 1.5, (K, D)))
    start, steps = rng.uniform(1.0, 2.0, K), rng.uniform(1.0, 2.0, (K, K))
    prior = ChainPrior(start, steps, np.minimum(start, 1.0), np.minimum(steps, 1.0), emissions)
    dense = [rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K * K)).reshape(K, K)]
    dense += [rng.dirichlet(np.ones(K)), rng.uniform(0.1, 0.4, (K, D)), rng.uniform(0.1, 2.0, (K, D))]
    held = ChainStatistics(np.zeros(1), dense[0].copy(), dense[1].copy(), PoissonStatistics.of(*map(np.copy, dense[2:])))
    gains, scores, rule = rng.uniform(0.01, 1.0, 30), np.empty(30), (np.arange(30) + 3.0) ** -0.6
    found, moved, n_eff, carry = HiddenMarkov(K, Poisson(K)).sweep_open(
        name, prior, held, held, 20.0, Batch(X, sequences=sequences), rule, gains, scores, None
    )
    wanted, average, wanted_n_eff, wanted_scores, filters = naive_chains.cappe(
        name, prior, CountRows(emissions), X, sequences.tolist(), rule, dense, 20.0, gains
    )
    for one, arrays in ((found, wanted), (moved, average)):
        parts = (one.start, one.steps, one.emissions.count, one.emissions.exposure, one.emissions.events)
        for part, array in zip(parts, arrays, strict=True):
            np.testing.assert_allclose(part, array, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9, atol=1e-11)
    assert n_eff == pytest.approx(wanted_n_eff, rel=1e-12)
    for number, states in carry.filters.items():
        np.testing.assert_allclose(states, filters[number], rtol=1e-9)
