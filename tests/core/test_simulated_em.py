"""The simulated E-step: mixtures by draws, the variance and the prior of paper 001, and a model defined by the user."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import sparse, special, stats

import headwater as hw
from headwater.core.batch import Batch, drop_zeros
from headwater.core.contracts import EXACT, Inference, Sampler, Start
from headwater.core.learner import Learner
from headwater.core.lineage import root_stream
from headwater.core.loop import advance, branch, finalize, report
from headwater.core.merge import merge
from headwater.core.records import arrays_of
from headwater.core.state import WarmUp
from headwater.core.statistics import Statistics
from headwater.families.multinomial import Multinomial
from headwater.kernels.mixture import draw_components
from headwater.models.latent_factors import LatentFactors
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixturePrior
from headwater.models.topics import Topics

# Mixtures


def gaussian_rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + 1.5 * rng.integers(2, size=(n, 1))


def count_rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    phi = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    return np.array([rng.multinomial(4, phi[k]) for k in rng.integers(2, size=n)]).astype(float)


MODELS = {"gaussian": (hw.GaussianMixture, gaussian_rows), "multinomial": (hw.MultinomialMixture, count_rows)}
mixtures = pytest.mark.parametrize("kind", MODELS)


def drawn(m, rao_blackwell=False, key=0, first=0):
    return Inference("simulated", "independent", 0, m, 1.0, rao_blackwell, key, first)


def summaries(kind, inferences):
    """Return the mean statistics of one batch at fixed parameters, for each kind of E-step."""
    make, rows = MODELS[kind]
    model = make(2, random_state=0, warm_up=100, algorithm="online-em").partial_fit(rows())
    learner, state = model._learner, model._read().stream
    batch = Batch(model._checked(rows(seed=1)))
    found = [learner.model.summarize(state.parameters, batch, inference=inference) for inference in inferences]
    return [np.concatenate([np.ravel(array) for array in arrays_of(one.mean)]) for one in found], found


@mixtures
def test_draws_approach_the_exact_e_step(kind):
    sizes = (1, 16, 256)
    (exact, *found), totals = summaries(kind, [EXACT, *(drawn(m, key=key) for m in sizes for key in range(80))])
    errors = np.sqrt([np.mean((np.array(found[80 * i : 80 * i + 80]) - exact) ** 2) for i in range(3)])
    np.testing.assert_allclose(errors[:-1] / errors[1:], 4.0, rtol=0.2)
    mean, spread = np.mean(found[:80], axis=0), np.std(found[:80], axis=0, ddof=1) / np.sqrt(80)
    assert (np.abs(mean - exact) < 5.0 * spread + 1e-9).all()
    assert all(one.score == pytest.approx(totals[0].score) for one in totals)


@mixtures
def test_what_is_expected_of_the_draws_is_the_exact_e_step(kind):
    (exact, expected, raw), _ = summaries(kind, [EXACT, drawn(3, True), drawn(3)])
    np.testing.assert_array_equal(exact, expected)
    assert np.abs(raw - exact).max() > 1e-4


def test_rao_blackwellised_simulation_without_a_prior_is_online_em():
    steps = {"decay": 0.6, "offset": 2.0, "batch_size": 50}
    flat = {"probability_concentration_prior": 1.0, "weight_concentration_prior": 1.0, "random_state": 0, "warm_up": 100}
    one = hw.MultinomialMixture(2, algorithm=hw.SimulatedEM(**steps), **flat).partial_fit(count_rows())
    other = hw.MultinomialMixture(2, algorithm=hw.OnlineEM(**steps), **flat).partial_fit(count_rows())
    for left, right in zip(arrays_of(one._state.statistics), arrays_of(other._state.statistics), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12)


@mixtures
def test_raw_draws_learn_and_the_cut_changes_nothing(kind):
    make, rows = MODELS[kind]
    X = rows(3000)
    algorithm = hw.SimulatedEM(rao_blackwell=False, n_samples=2)
    whole, cut = (make(2, algorithm=algorithm, random_state=0, warm_up=200) for _ in range(2))
    whole.partial_fit(X)
    for begin in range(0, 3000, 701):
        cut.partial_fit(X[begin : begin + 701])
    np.testing.assert_allclose(whole.score_samples(X), cut.score_samples(X), rtol=1e-9)
    exact = make(2, algorithm="online-em", random_state=0, warm_up=200).partial_fit(X)
    assert whole.score(X) == pytest.approx(exact.score(X), abs=0.05)
    assert np.abs(whole.score_samples(X) - exact.score_samples(X)).max() > 1e-9


def test_labels_and_weights_of_drawn_rows():
    X, weights = count_rows(400), np.random.default_rng(2).uniform(0.0, 3.0, 400)
    labels = np.where(np.arange(400) % 2, -1, 0)
    algorithm = hw.SimulatedEM(rao_blackwell=False, n_samples=3)
    model = hw.MultinomialMixture(2, algorithm=algorithm, random_state=0, warm_up=50)
    model.partial_fit(X, sample_weight=weights, labels=labels)
    learner, state = model._learner, model._read().stream
    rows = Batch(X[:100], weights[:100], np.zeros(100, dtype=np.int64))
    found = learner.model.summarize(state.parameters, rows, inference=drawn(3))
    assert found.statistics.count.tolist() == pytest.approx([weights[:100].sum(), 0.0])
    assert found.size == pytest.approx(weights[:100].sum())


# Proposition 1 of paper 001


PHI = np.array([[0.9, 0.1], [0.25, 0.75]])
TRUE, BATCH, FOLDS, OFFSET = 0.4, 8, 30, 20.0


def weight_learner(m):
    """Return a mixture whose components are fixed by a very strong prior: only one weight is learned."""
    model = Mixture(2, Multinomial(2, 1e12 * PHI))
    draws = {"rao_blackwell": True} if m is None else {"rao_blackwell": False, "n_samples": m}
    algorithm = hw.SimulatedEM(decay=0.6, offset=OFFSET, batch_size=BATCH, average=False, **draws)
    return Learner(model, algorithm, 2, n_threads=1)


def weights_learned(m, runs):
    """Return the weight at the end of each stream; all streams start at the truth."""
    learner = weight_learner(m)
    prior = MixturePrior(np.ones(2), learner.model.family.make_prior(2))
    truth = learner.model.zeros(2)
    truth = replace(truth, count=np.array([TRUE, 1.0 - TRUE]))
    parameters = learner.model.readout("mode", prior, truth, 1e6)
    even = Batch(np.eye(2)[[0, 1]], np.array([TRUE, 1.0 - TRUE]) @ PHI)
    summary = learner.model.summarize(parameters, Batch(even.X, even.weights * BATCH))
    found = []
    for key in range(runs):
        rng = np.random.default_rng((key, 5))
        state = root_stream(learner.plan, key, Start(prior, parameters, summary))
        kinds = (rng.uniform(size=BATCH * FOLDS) > TRUE).astype(int)
        rows = np.eye(2)[(rng.uniform(size=BATCH * FOLDS) > PHI[kinds, 0]).astype(int)]
        state, _ = advance(learner.plan, state, Batch(rows))
        found.append(float(np.exp(report(learner.plan, state).log_weights[0])))
    return np.array(found)


@pytest.mark.parametrize("runs", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_the_variance_falls_with_the_number_of_draws_as_paper_001_says(runs):
    density = np.array([TRUE, 1.0 - TRUE]) @ PHI
    complete = 1.0 / (TRUE * (1.0 - TRUE))  # I_p
    observed = float(((PHI[0] - PHI[1]) ** 2 / density).sum())  # I_f
    steps = (np.arange(FOLDS) + 2.0 + OFFSET) ** -0.6
    variances, error = {}, 4.0 * np.sqrt(2.0 / runs)  # of a variance
    for m in (1, 4, None):
        found = weights_learned(m, runs)
        variances[m] = found.var(ddof=1)
        missing = (1.0 / observed - 1.0 / complete) / m if m else 0.0
        wanted = steps[-1] / BATCH * (1.0 / complete + missing) / 2.0  # eq. 4
        # The same, before the limit: a linear recursion about the truth.
        slope, now = observed / complete, 0.0
        noise = observed / complete**2 + ((1.0 - slope) / complete / m if m else 0.0)
        for step in steps:
            now = (1.0 - step * slope) ** 2 * now + step**2 * noise / BATCH
        assert abs(found.mean() - TRUE) < 5.0 * np.sqrt(now / runs) + 0.01
        assert variances[m] == pytest.approx(now, rel=error)
        assert now == pytest.approx(wanted, rel=0.2)
    assert variances[1] > variances[4] > variances[None]


# The prior of paper 001


def test_topics_are_counts_plus_prior_over_all_documents_seen():
    rng = np.random.default_rng(3)
    v, k, eta, size = 8, 3, 0.2, 16
    X = rng.multinomial(20, rng.dirichlet(np.full(k, 0.4), 100) @ rng.dirichlet(np.full(v, 0.3), k)).astype(float)
    algorithm = hw.SimulatedEM(batch_size=size, average=False, burn_in=3, n_samples=2)
    options = {"doc_topic_prior": 0.5, "topic_word_prior": eta, "random_state": 4, "warm_up": 20}
    model = hw.LatentDirichletAllocation(k, algorithm=algorithm, **options).partial_fit(X[:20])
    table, seen = np.asarray(model._state.statistics.table), 20
    folds, inner = 20 / size, Topics(k, eta, 0.5)
    for begin in range(20, 100, size):
        topics = (seen * table + eta) / (seen * table.sum(axis=0) + v * eta)
        np.testing.assert_allclose(model.topics_.T, topics, rtol=1e-9)
        inference = Inference("simulated", "gibbs", 3, 2, 1.0, True, key=4, first=begin)
        batch = Batch(drop_zeros(X[begin : begin + size]))
        totals = inner.summarize(inner.given(topics.T), batch, inference=inference).statistics.table
        folds += 1
        step = (folds + 2.0) ** -0.6
        table = (1.0 - step) * table + step * np.asarray(totals) / size
        seen += size
        model.partial_fit(X[begin : begin + size])
        np.testing.assert_allclose(np.asarray(model._state.statistics.table), table, rtol=1e-9, atol=1e-12)
    assert seen == model.n_samples_seen_ == 100
    np.testing.assert_allclose(model.components_.T, eta + 100 * table, rtol=1e-9)
    np.testing.assert_allclose(model.topics_.T, (100 * table + eta) / (100 * table.sum(axis=0) + v * eta), rtol=1e-9)


def test_the_prior_fades_with_documents_and_not_with_what_steps_leave_of_them():
    rng = np.random.default_rng(4)
    X = rng.poisson(1.0, (600, 5)).astype(float)
    algorithm = hw.SimulatedEM(batch_size=20, average=False)
    options = {"topic_word_prior": 30.0, "random_state": 0, "warm_up": 100}
    model = hw.LatentDirichletAllocation(1, algorithm=algorithm, **options).partial_fit(X)
    state = model._state
    assert state.progress.n_eff < 300.0
    table = np.asarray(state.statistics.table)
    np.testing.assert_allclose(model.components_.T, 30.0 + 600.0 * table, rtol=1e-12)


# A model defined by the user


@dataclass(frozen=True)
class PoissonStatistics(Statistics):
    weights: np.ndarray  # (K,)
    counts: np.ndarray  # (V, K)


@dataclass(frozen=True)
class PoissonFactors(LatentFactors):
    """Counts of column v are Poisson(sum_k theta_vk h_k), and h_k are Gamma(a, a)."""

    n_factors: int
    a: float = 0.5

    n_components = property(lambda self: self.n_factors)
    samplers = property(lambda self: {"gibbs": Sampler(10, 5)})

    def zeros(self, width):
        return PoissonStatistics(np.zeros(1), np.zeros(self.n_factors), np.zeros((width, self.n_factors)))

    def blank_prior(self, width):
        return 0.0

    def find_problem(self, record, width):
        return ""

    def first(self, batch, rng):
        mean = batch.X.mean(axis=0)[:, None] + 0.1
        return 0.01, mean * rng.gamma(5.0, 0.2, (batch.X.shape[1], self.n_factors)) / self.n_factors

    def readout(self, name, prior, statistics, count):
        return (count * statistics.counts + prior) / (count * statistics.weights + prior)

    def _drawn(self, theta, X, rng, burn_in, n_samples):
        h, counts, weights = np.ones((len(X), self.n_factors)), 0.0, 0.0
        for sweep in range(burn_in + n_samples):
            shares = theta * h[:, None]
            z = rng.multinomial(X.astype(int), shares / shares.sum(axis=2, keepdims=True))
            shape, rate = self.a + z.sum(axis=1), self.a + theta.sum(axis=0)
            h = rng.gamma(shape) / rate
            if sweep >= burn_in:
                counts, weights = counts + z / n_samples, weights + shape / rate / n_samples
        return counts, weights

    def estep(self, parameters, batch, totals, inference, n_threads):
        counts, weights = [], []
        for row in range(len(batch)):
            rng = np.random.default_rng((inference.key, inference.first + row))
            one, two = self._drawn(parameters, batch.X[row : row + 1], rng, inference.burn_in, inference.n_samples)
            counts.append(one[0]), weights.append(two[0])
        w = batch.row_weights
        found = PoissonStatistics(np.zeros(1), w @ np.array(weights), np.tensordot(w, np.array(counts), axes=1))
        return 0.0, totals + found

    def log_likelihood(self, parameters, batch, n_threads=None):
        h = np.random.default_rng(0).gamma(self.a, 1.0 / self.a, (300, self.n_factors))
        rates = h @ parameters.T
        joint = stats.poisson.logpmf(batch.X[:, None], rates).sum(axis=2)
        return special.logsumexp(joint, axis=1) - np.log(300)

    def posterior(self, parameters, batch, n_threads=None):
        return self._drawn(parameters, batch.X, np.random.default_rng(0), 10, 20)[1]

    def select_statistics(self, statistics, order):
        return replace(statistics, weights=statistics.weights[order], counts=statistics.counts[:, order])

    def separation(self, prior, totals, others):
        one, two = (self.readout("mode", prior, part, 1.0) for part in (totals, others))
        return np.abs(one[:, :, None] - two[:, None]).sum(axis=0)

    def contrast(self, prior, totals, others):
        return np.diagonal(self.separation(prior, totals, others))


THETA = np.array([[6.0, 0.2], [5.0, 0.5], [0.2, 7.0], [0.4, 4.0], [3.0, 3.0]])


def factor_rows(n, seed):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(0.5, 2.0, (n, 2)) @ THETA.T).astype(float)


def error_of(theta):
    return min(np.abs(theta[:, order] - THETA).max() for order in ([0, 1], [1, 0]))


@pytest.fixture(scope="module")
def factors():
    algorithm = hw.SimulatedEM(batch_size=40)
    learner = Learner(PoissonFactors(2), algorithm, 5, warm_up=80)
    state, _ = advance(learner.plan, WarmUp(7), Batch(factor_rows(1600, 6)))
    return learner, state


def test_a_model_of_ones_own_learns(factors):
    learner, state = factors
    theta = report(learner.plan, state)
    assert error_of(theta) < 0.8
    early = report(learner.plan, advance(learner.plan, WarmUp(7), Batch(factor_rows(80, 6)))[0])
    rows = Batch(factor_rows(200, 8))
    scores = [learner.model.log_likelihood(one, rows).mean() for one in (early, theta, THETA)]
    assert scores[0] < scores[1] + 0.02
    assert scores[1] == pytest.approx(scores[2], abs=0.2)
    assert learner.plan.inference == Inference("simulated", "gibbs", 10, 5)


def test_a_model_of_ones_own_learns_in_any_cut_and_is_settled_anywhere(factors):
    learner, _ = factors
    rows, state = factor_rows(1600, 6)[:200], WarmUp(7)
    for begin in range(0, 200, 33):
        state, _ = advance(learner.plan, state, Batch(rows[begin : begin + 33]))
        settled = finalize(learner.plan, state)
        assert settled.unfolded.summary is None and settled.progress.rows_seen == state.rows
    together, _ = advance(learner.plan, WarmUp(7), Batch(rows))
    np.testing.assert_allclose(report(learner.plan, state), report(learner.plan, together), rtol=1e-9)


def test_branches_of_a_model_of_ones_own_merge(factors):
    learner, state = factors
    base = branch(learner.plan, state)
    parts = [advance(learner.plan, base, Batch(factor_rows(400, seed)))[0] for seed in (9, 10)]
    merged = merge(learner.plan, parts)
    assert merged.progress.rows_seen == 2400
    assert error_of(report(learner.plan, merged)) < 0.8
    for left, right in zip(arrays_of(merged), arrays_of(merge(learner.plan, parts[::-1])), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-9)


def test_a_model_of_ones_own_learns_in_parts(factors):
    learner, _ = factors
    state, _ = advance(replace(learner, shards=2).plan, WarmUp(7), Batch(factor_rows(800, 6)))
    assert error_of(report(replace(learner, shards=2).plan, state)) < 1.5


# Errors


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (hw.LatentDirichletAllocation(2, algorithm="em"), "cannot be learned by 'em': use one of 'auto', "),
        (hw.LatentDirichletAllocation(2, algorithm=hw.BatchEM()), "'simulated-em', 'scvb0', 'online-vb'"),
        (hw.LatentDirichletAllocation(2, algorithm="moment-matching"), "cannot be learned by 'moment-matching'"),
        (hw.LatentDirichletAllocation(2, algorithm="gibbs"), "algorithm must be one of 'auto', 'boem', 'simulated-em'"),
        (hw.GaussianMixture(2, algorithm="scvb0"), "cannot be learned by 'scvb0': use one of 'auto', 'em', "),
        (hw.MultinomialMixture(2, algorithm=hw.CollapsedVB()), "cannot be learned by CollapsedVB"),
        (hw.GaussianMixture(2, algorithm=hw.SimulatedEM(sampler="metropolis")), "one of 'independent', got 'metropolis'"),
        (hw.MultinomialMixture(2, algorithm=hw.SimulatedEM(sampler="gibbs")), "one of 'independent', got 'gibbs'"),
        (hw.LatentDirichletAllocation(2, algorithm=hw.SimulatedEM(sampler="independent")), "one of 'gibbs', 'metropolis', got"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "update", "learn_one"])
def test_what_does_not_fit_is_refused_in_one_sentence(model, words, method):
    rows = np.random.default_rng(0).poisson(3.0, (30, 3)).astype(float)
    with pytest.raises(ValueError, match=words) as caught:
        getattr(model, method)(rows[0] if method == "learn_one" else rows)
    assert "\n" not in str(caught.value)
    assert not model._has_state()


@pytest.mark.parametrize(
    "options",
    [
        {"burn_in": -1}, {"burn_in": 1.5}, {"burn_in": True}, {"n_samples": 0}, {"n_samples": "many"}, {"kappa": 0.0},
        {"kappa": np.inf}, {"kappa": "sharp"}, {"kappa": np.nan}, {"decay": 0.0}, {"decay": 2.0}, {"offset": -1.0},
        {"batch_size": 0}, {"batch_size": "large"},
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))) as caught:
        hw.SimulatedEM(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("burn_in", [-1, 2.5, None, "some"])
def test_settings_of_collapsed_inference_that_make_no_sense_are_refused(burn_in):
    with pytest.raises(ValueError, match="burn_in"):
        hw.CollapsedVB(burn_in=burn_in)


def test_samplers_of_topics():
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.multinomial(30, rng.dirichlet(np.ones(2), 400) @ rng.dirichlet(np.full(6, 0.3), 2)))
    for sampler in ("gibbs", "metropolis"):
        for rao_blackwell in (True, False):
            algorithm = hw.SimulatedEM(sampler=sampler, rao_blackwell=rao_blackwell, n_samples=3, burn_in=20, batch_size=50)
            model = hw.LatentDirichletAllocation(2, algorithm=algorithm, random_state=0).partial_fit(X)
            np.testing.assert_allclose(model.topics_.sum(axis=1), 1.0)
            rate = model.acceptance_rate_
            assert 0.0 < rate < 1.0 if sampler == "metropolis" else np.isnan(rate)


def test_components_are_drawn_as_often_as_they_are_probable():
    shares = np.tile([0.5, 0.2, 0.3, 0.0], (300, 1))
    draw_components(shares, 40, np.uint64(3), 7)
    counts = 40.0 * shares
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert not shares[:, 3].any()
    assert stats.chisquare(counts.sum(axis=0)[:3], 12000.0 * np.array([0.5, 0.2, 0.3])).pvalue > 1e-3
    again = np.tile([0.5, 0.2, 0.3, 0.0], (100, 1))
    draw_components(again, 40, np.uint64(3), 107)  # rows 100 to 199 by themselves
    np.testing.assert_array_equal(again, shares[100:200])
