"""MultinomialMixture by its public methods: learning, pruning, sampling and merging."""

import copy

import numpy as np
import pytest
from count_models import (
    ADDING,
    ONLINE,
    SPARSE,
    TOPICS,
    K,
    V,
    X,
    assert_close,
    assert_sound,
    content,
    docs,
    error_to,
    given,
    mixture,
    unconverged,
)
from naive import multinomial as naive
from scipy import sparse, special

import headwater as hw
from headwater.core import loop
from headwater.core.batch import Batch
from headwater.core.steps import fold

# Paper 000


@pytest.mark.parametrize("estimate", ["mean", "mode"])
@pytest.mark.parametrize("strength", [2.0, 60.0])
def test_bayesian_online_em_is_the_printed_recursion(estimate, strength):
    phi = np.random.default_rng(1).dirichlet(np.ones(V), K)
    beta = strength * phi + (1.0 if estimate == "mode" else 0.0)
    model = hw.MultinomialMixture(
        K, algorithm=hw.BayesianOnlineEM(estimate), probability_concentration_prior=beta, probabilities_init=phi,
        weights_init=np.full(K, 1 / K), warm_up=1,
    )  # fmt: skip
    rows = docs(60, length=4)[0]
    for row, (weights, probabilities) in zip(rows, naive.boem(np.ones(K), beta.T, rows, estimate), strict=True):
        model.partial_fit(row[None])
        np.testing.assert_allclose(model.weights_, weights, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.probabilities_.T, probabilities, rtol=1e-9, atol=1e-12)


@pytest.mark.covering("algorithm")
@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_what_was_simulated_is_recovered(algorithm, way):
    rows, _ = docs(6000, length=40)
    model = mixture(algorithm, warm_up="auto")
    getattr(model, way)(sparse.csr_array(rows))
    assert error_to(model) < 0.02
    assert_sound(model, rows[:50])
    np.testing.assert_allclose(np.sort(model.weights_), [1 / 6, 2 / 6, 3 / 6], atol=0.03)


# Passes


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (1.3, 1.7)])
def test_em_from_given_parameters_is_the_naive_one_number_for_number(weighted, alpha, beta):
    rng, start, rows = np.random.default_rng(2), given(), X[:100]
    sample_weight = rng.uniform(0.2, 3.0, len(rows)) if weighted else None
    priors = {"weight_concentration_prior": alpha, "probability_concentration_prior": beta}
    with unconverged():
        model = mixture("em", max_iter=7, tol=0.0, **priors, **start).fit(SPARSE[:100], sample_weight=sample_weight)
    weights, phi, bounds = start["weights_init"], start["probabilities_init"].T, []
    for _ in range(8):
        before = special.xlogy(alpha - 1, weights).sum() + special.xlogy(beta - 1, phi).sum()
        last = weights, phi
        weights, phi, score = naive.em_pass(weights, phi, rows, alpha, beta, sample_weight)
        bounds.append((score + before) / (len(rows) if sample_weight is None else sample_weight.sum()))
    np.testing.assert_allclose(model.weights_, last[0], rtol=1e-9)
    np.testing.assert_allclose(model.probabilities_.T, last[1], rtol=1e-8, atol=1e-14)
    np.testing.assert_allclose(model.lower_bounds_, bounds[1:], rtol=1e-11)


@pytest.mark.covering("algorithm", "length")
@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("prior", [None, 1.0, 1.5])
@pytest.mark.parametrize(("algorithm", "length"), [("em", 3), ("em", 25), ("em", 2000), ("vb", 3), ("vb", 25), ("vb", 2000)])
def test_no_pass_loses(k, prior, algorithm, length):
    rows, _ = docs(150, length=length)
    with unconverged():
        model = mixture(algorithm, k, probability_concentration_prior=prior, max_iter=40, tol=0.0).fit(rows)
    assert np.diff(model.lower_bounds_).min() > -1e-9 * abs(model.lower_bounds_[0])
    assert_sound(model, rows)


@pytest.mark.parametrize("share", [1e-3, 1e-12, 1e-50, 1e-200])
def test_a_component_that_dies_stays_dead(share):
    # Under maximum likelihood the count of the third component fades.
    rng = np.random.default_rng(3)
    rows = rng.multinomial(40, TOPICS[rng.integers(2, size=200)]).astype(float)
    away = np.where(np.arange(V) == 0, 1.0, 1e-3)
    start = {"probabilities_init": np.vstack([TOPICS[:2], away / away.sum()]), "weights_init": [0.5, 0.5 - share, share]}
    with unconverged():
        model = mixture("em", probability_concentration_prior=1.0, max_iter=10, tol=0.0, **start).fit(rows)
    assert np.diff(model.lower_bounds_).min() > -1e-9
    assert max(model.lower_bounds_) < 0.0
    np.testing.assert_allclose(model.probabilities_.sum(axis=1), 1.0)


@pytest.mark.parametrize("prior", [None, 1.0, 2.5])
def test_passes_climb_the_log_posterior(prior):
    found, rows = [], docs(300, length=4)[0]
    for passes in (1, 2, 5, 9):
        with unconverged():
            model = mixture("em", probability_concentration_prior=prior, max_iter=passes, tol=0.0, **given()).fit(rows)
        found.append((model.lower_bound_ * len(rows), model.log_posterior(rows)))
    bounds, posteriors = np.array(found).T
    assert np.diff(posteriors).min() > 0.0
    np.testing.assert_allclose(np.diff(posteriors), np.diff(bounds), rtol=1e-8)
    if prior == 1.0:
        likelihood = model.score_samples(rows).sum()
        constant = special.gammaln(K) + K * special.gammaln(V)  # the uniform densities of weights and probabilities
        assert posteriors[-1] == pytest.approx(likelihood + constant, rel=1e-12)


def test_scores_are_log_probabilities_of_counts_in_order():
    model = mixture("em").fit(X)
    joint = naive.log_joint(np.log(model.weights_), np.log(model.probabilities_.T), X[:20])
    resp, scores = naive.responsibilities(joint)
    np.testing.assert_allclose(model.score_samples(X[:20]), scores, rtol=1e-11)
    np.testing.assert_allclose(model.predict_proba(X[:20]), resp, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(model.predict(SPARSE[:20]), resp.argmax(axis=1))
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())


def test_predictive_scores_are_polyas():
    model = mixture("boem").partial_fit(X)
    belief, alpha = model.probability_concentration_.T, model.weight_concentration_
    joint = naive.polya(belief, X[:20]) + np.log(alpha / alpha.sum())
    for rows in (X[:20], SPARSE[:20]):
        np.testing.assert_allclose(model.predictive_score_samples(rows), special.logsumexp(joint, axis=1), rtol=1e-9)


# Online algorithms converge to the optimum of batch EM


def residual(model, rows):
    """Return how far one pass of EM moves the parameters."""
    weights, phi, _ = naive.em_pass(model.weights_, model.probabilities_.T, rows)
    return max(np.abs(weights - model.weights_).max(), np.abs(phi.T - model.probabilities_).max())


@pytest.mark.parametrize(
    "algorithm",
    [hw.BayesianOnlineEM(), hw.BayesianOnlineEM("mode"), hw.SatoEM(), hw.OnlineEM(batch_size=20), hw.OnlineEM(batch_size=1)],
    ids=["boem", "boem, mode", "soem", "online-em", "online-em, row by row"],
)
def test_online_algorithms_converge_to_the_fixed_point_of_em(algorithm):
    # The prior loses weight as the same rows come again, each time in another order.
    rng, rows = np.random.default_rng(4), docs(60, seed=5, length=12)[0]
    prior = 1.0 if algorithm != hw.BayesianOnlineEM() else 0.01
    with unconverged():
        em = mixture("em", probability_concentration_prior=1.0, max_iter=500, tol=0.0, **given()).fit(rows)
    assert residual(em, rows) < 1e-6
    model = mixture(algorithm, probability_concentration_prior=prior, **given(warm_up=60)).partial_fit(rows)
    left = []
    for passes in (4, 16, 24):
        for _ in range(passes):
            model.partial_fit(rng.permutation(rows))
        left.append(residual(model, rows))
    assert left[2] < 0.5 * left[0]
    assert left[2] < 0.01
    np.testing.assert_allclose(model.weights_, em.weights_, atol=0.02)
    np.testing.assert_allclose(model.probabilities_, em.probabilities_, atol=0.02)


@pytest.mark.parametrize(("size", "form"), [(1, np.asarray), (1, sparse.csr_array), (2, sparse.csr_array)])
def test_averages_stay_sound_however_long_the_stream(size, form):
    model = mixture(hw.OnlineEM(batch_size=size), warm_up=50)
    rows = docs(5000 * size, length=6)[0]
    model.partial_fit(form(rows))
    _, statistics, _ = model._proper_belief()
    np.testing.assert_allclose(np.asarray(statistics.table).sum(axis=0), statistics.length[0], rtol=1e-8)
    assert_sound(model, rows[:20])


@pytest.mark.parametrize("warm_up", [1, 2, 7])
@pytest.mark.parametrize("size", [1, 3, "auto"])
def test_averages_are_sound_from_the_first_row_on(warm_up, size):
    model = mixture(hw.OnlineEM(batch_size=size), warm_up=warm_up)
    for at in range(0, 12, 3):
        model.partial_fit(SPARSE[at : at + 3])
        assert_sound(model, X[:20])


@pytest.mark.parametrize("size", [1, 2])
def test_averages_keep_what_the_statistics_forget(size):
    # Rows of small weight take whole steps until the total weight reaches one row.
    rows = docs(10, length=3)[0]
    model = mixture(hw.OnlineEM(offset=0.0, batch_size=size), 2, warm_up=2)
    model.partial_fit(sparse.csr_array(rows), sample_weight=np.full(10, 0.01))
    _, statistics, _ = model._proper_belief()
    np.testing.assert_allclose(np.asarray(statistics.table).sum(axis=0), statistics.length[0], rtol=1e-10)
    assert_sound(model, rows)


# Steps of size 1


@pytest.mark.parametrize("algorithm", ["boem", "soem", "online-vb", "quasi-bayes", hw.OnlineEM(batch_size=1)])
@pytest.mark.parametrize("weight", [1.0, 1e15, 1e25])
def test_a_heavy_row_goes_where_it_belongs(algorithm, weight):
    model = mixture(algorithm).partial_fit(X[:200])
    owner = int(model.predict(X[200:201])[0])
    assert model.predict_proba(X[200:201])[0, owner] > 0.99
    model.partial_fit(X[200:201], sample_weight=[weight])
    assert_sound(model, X)
    if weight > 1.0:
        assert model.weights_[owner] > 0.99


@pytest.mark.covering("algorithm")
@pytest.mark.parametrize("algorithm", ["auto", "boem", "soem", "online-em", hw.OnlineEM(batch_size=1), "online-vb"])
@pytest.mark.parametrize("half_life", [0.01, 1.0, 30.0])
def test_the_shortest_memory_is_that_of_the_loop(algorithm, half_life):
    model = mixture(algorithm, half_life=half_life, reservoir=0).partial_fit(X[:100])
    plan, state = model._learner.plan, model._read().stream
    for at in range(100, 150):
        batch = Batch(X[at : at + 1])
        state = fold(plan, state, plan.model.summarize(state.parameters, batch))
        model._runtime = model._runtime.with_state(loop.advance(plan, model._read().stream, batch)[0])
        found = loop.finalize(plan, model._state).statistics.count
        np.testing.assert_allclose(found, state.statistics.count, rtol=1e-7, atol=1e-12)
    assert_sound(model, X)


def test_a_half_life_forgets():
    other = np.roll(TOPICS, 5, axis=1)
    long, short = mixture("boem"), mixture("boem", half_life=300.0)
    for model in (long, short):
        for topics in (TOPICS, other):
            rows, kinds = docs(2000, topics=topics)
            model.partial_fit(rows, labels=kinds)
    assert error_to(short, other) < 0.05 < 0.1 < error_to(long, other)
    assert short.weight_concentration_.sum() < 1000 < long.weight_concentration_.sum()


# Fewer components


@pytest.mark.parametrize("algorithm", ONLINE)
def test_empty_components_are_pruned(algorithm):
    far = np.zeros((2, V + 1))
    far[:, V] = 1.0
    rows = np.hstack([X, np.zeros((400, 1))])
    start = np.vstack([np.hstack([TOPICS, np.zeros((K, 1))]), far])
    model = mixture(algorithm, K + 2, probabilities_init=start, weights_init=np.full(K + 2, 0.2)).partial_fit(rows)
    assert model.n_active_ == K
    pruned = model.prune()
    assert pruned.n_components == K and model.n_components == K + 2
    np.testing.assert_allclose(pruned.probabilities_, model.probabilities_[:K], rtol=1e-9)
    assert_sound(pruned.partial_fit(rows), rows)
    assert pruned.n_samples_seen_ == 800
    with unconverged():
        assert_sound(pruned.fit(rows), rows)


@pytest.mark.parametrize("shape", [(), (V,), (K, V)])
def test_a_model_with_any_prior_is_pruned(shape):
    model = mixture("boem", probability_concentration_prior=np.full(shape, 0.5)).partial_fit(X)
    pruned = model.prune(min_weight=0.25)
    kept = model.weights_ >= 0.25
    assert pruned.n_components == kept.sum() == 2
    np.testing.assert_allclose(pruned.probabilities_, model.probabilities_[kept], rtol=1e-9)
    assert_sound(pruned.partial_fit(X), X)


# Samples


def test_samples():
    model = mixture().fit(X)
    rows, kinds = model.sample(3000)
    assert rows.shape == (3000, V) and kinds.shape == (3000,) and (np.diff(kinds) >= 0).all()
    np.testing.assert_array_equal(rows.sum(axis=1), 25)
    np.testing.assert_array_equal(rows, np.round(rows))
    for k in range(K):
        assert np.mean(kinds == k) == pytest.approx(model.weights_[k], abs=0.04)
        np.testing.assert_allclose(rows[kinds == k].mean(axis=0) / 25, model.probabilities_[k], atol=0.02)
    np.testing.assert_array_equal(rows, model.sample(3000)[0])
    lengths = np.arange(50)
    np.testing.assert_array_equal(model.sample(50, length=lengths)[0].sum(axis=1), lengths)
    np.testing.assert_array_equal(model.sample(4, length=7)[0].sum(axis=1), 7)
    assert model.sample()[0].shape == (1, V)


@pytest.mark.parametrize("length", [-1, 2.5, [1, 2], "long", [[1]], True, np.nan])
def test_lengths_are_checked(length):
    with pytest.raises(ValueError, match="length must be a whole number"):
        mixture().fit(X).sample(3, length=length)


# Merging


@pytest.mark.parametrize("algorithm", ADDING)
def test_merging_branches_adds_their_counts(algorithm):
    base = mixture(algorithm, reservoir=0).partial_fit(SPARSE[:200])
    parts = [base.branch().partial_fit(SPARSE[200 + part :: 3]) for part in range(3)]
    before = [content(model) for model in (base, *parts)]
    merged = hw.merge(parts)
    for name in ("probability_concentration_", "weight_concentration_"):
        shared = getattr(base, name)
        wanted = shared + sum(getattr(part, name) - shared for part in parts)
        np.testing.assert_allclose(getattr(merged, name), wanted, rtol=1e-9)
    assert merged.n_samples_seen_ == 400
    unchanged = [content(model) for model in (base, *parts)] == before
    assert unchanged
    assert_sound(merged.partial_fit(X), X)


@pytest.mark.parametrize("algorithm", ONLINE)
@pytest.mark.parametrize("half_life", [None, 200.0])
def test_any_tree_of_branches_gives_one_model(algorithm, half_life):
    base = mixture(algorithm, half_life=half_life).partial_fit(SPARSE[:150])
    parts = [base.branch().partial_fit(SPARSE[150 + part :: 4]) for part in range(4)]
    whole = hw.merge(parts)
    for tree in (hw.merge(parts[::-1]), hw.merge([hw.merge(parts[:2]), hw.merge(parts[2:])])):
        assert_close(tree, whole, 1e-7)


@pytest.mark.parametrize("algorithm", ONLINE)
def test_models_that_learned_apart_are_matched(algorithm):
    rows, kinds = docs(1200, seed=9, length=60)
    models = []
    for part, order in enumerate(np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0]])):
        own = slice(part, None, 3)
        labels = np.where(np.arange(400) < 60, order[kinds[own]], -1)
        models.append(mixture(algorithm, random_state=part).partial_fit(rows[own], labels=labels))
    merged = hw.merge(models)
    reference = models[merged.merge_report_.reference]
    np.testing.assert_allclose(merged.probabilities_, reference.probabilities_, atol=0.05)
    assert error_to(merged) < 0.03
    assert merged.n_samples_seen_ == 1200
    assert len(merged.merge_report_.matches) == 2 and not merged.merge_report_.distant
    assert merged.weight_concentration_.sum() == pytest.approx(K + 1200, rel=1e-6 if algorithm in ADDING else 0.5)


def test_models_in_warm_up_lend_their_rows():
    early = mixture("boem").partial_fit(X[:30])
    late = mixture("boem", random_state=1).partial_fit(X[30:300])
    waiting = mixture("boem", random_state=2).partial_fit(SPARSE[300:340])
    merged = hw.merge([early, waiting, late])
    assert merged.n_samples_seen_ == 340
    assert_close(merged, copy.deepcopy(late).partial_fit(X[300:340]).partial_fit(X[:30]), 1e-7)
    both = hw.merge([early, waiting])
    assert both.n_samples_seen_ == 70
    assert_sound(both.partial_fit(X), X)


@pytest.mark.parametrize("algorithm", ONLINE)
def test_parts_count_every_row_once(algorithm):
    model = mixture(algorithm, parts=3)
    for at in range(0, 400, 37):
        model.partial_fit(SPARSE[at : at + 37])
    assert model.n_samples_seen_ == 400
    assert_sound(model, X)
    if algorithm in ADDING:
        assert model.weight_concentration_.sum() == pytest.approx(K + 400)
        wanted = X.sum() + K * V * 0.1
        assert model.probability_concentration_.sum() == pytest.approx(wanted)
