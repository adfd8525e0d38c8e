"""A start that counts as rows, without a warm-up: every recursion equals a few lines of NumPy from the same start and prior."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import headwater as hw
from tests.naive import chains, gaussian, given_starts, topics

K, D, ROWS = 3, 2, 40.0
WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
COVARIANCE = np.array([[1.0, 0.3], [0.3, 0.5]])
ALPHA = 1.5
PRIOR_MEAN, KAPPA, NU = np.array([0.5, -0.5]), 0.7, 5.0
RATE = {"decay": 0.6, "offset": 5.0}
NAMES = {"boem": "mean", "online-vb": "expect_log", "quasi-bayes": "predictive", "soem": "mode", "online-em": "mode"}
TOPICS = np.array([[5.0, 4.0, 3.0, 1.0, 1.0], [1.0, 1.0, 2.0, 4.0, 5.0], [2.0, 1.0, 2.0, 1.0, 9.0]])
TOPICS /= TOPICS.sum(axis=1, keepdims=True)
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def algorithm_of(word):
    return {"soem": hw.SatoEM(**RATE), "online-em": hw.OnlineEM(batch_size=1, **RATE)}.get(word, word)


def steps_of(word, n):
    times = np.arange(1, n + 1)
    return (times + RATE["offset"]) ** -RATE["decay"] if NAMES[word] == "mode" else 1.0 / (ROWS + times)


def in_pieces(model, *arrays):
    for at, end in ((0, 1), (1, 8), (8, len(arrays[0]))):
        model.partial_fit(*(array[at:end] for array in arrays))
    return model


def gaussian_rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return MEANS[rng.choice(K, size=n, p=WEIGHTS)] + rng.normal(size=(n, D))


def of_kind(kind, matrix):
    return {"full": np.tile(matrix, (K, 1, 1)), "tied": matrix, "diag": np.tile(np.diag(matrix), (K, 1))}.get(
        kind, np.full(K, matrix[0, 0])
    )


def gaussian_case(kind):
    """The covariance of the start (K, d, d), precisions of the kind, the user's prior covariance, and the twin's scale."""
    own = {"diag": np.diag(np.diag(COVARIANCE)), "spherical": np.eye(D)}.get(kind, COVARIANCE)
    precisions = of_kind(kind, np.linalg.inv(own))
    given = {"diag": np.array([2.0, 3.0]), "spherical": 2.0}.get(kind, np.array([[2.0, 0.4], [0.4, 3.0]]))
    return np.tile(own, (K, 1, 1)), precisions, given, np.full(D, 2.0) if kind == "spherical" else given


def gaussian_model(kind, word, **changes):
    _, precisions, scale, _ = gaussian_case(kind)
    options = {"weights_init": WEIGHTS, "means_init": MEANS, "precisions_init": precisions, "start_weight": ROWS, "warm_up": 0}
    options |= {"weight_concentration_prior": ALPHA, "mean_prior": PRIOR_MEAN, "mean_precision_prior": KAPPA}
    options |= {"degrees_of_freedom_prior": NU, "covariance_prior": scale, "random_state": 0}
    return hw.GaussianMixture(K, covariance_type=kind, algorithm=algorithm_of(word), **(options | changes))


def gaussian_twin(kind):
    covariances, _, _, scale = gaussian_case(kind)
    start = given_starts.gaussian_moments(kind, WEIGHTS, MEANS, covariances)
    return given_starts.gaussian_prior(PRIOR_MEAN, KAPPA, NU, scale), start


@pytest.mark.parametrize("kind", gaussian.KINDS)
@pytest.mark.parametrize("word", NAMES)
def test_gaussians(kind, word):
    rows = gaussian_rows()
    found = in_pieces(gaussian_model(kind, word), rows)
    prior, start = gaussian_twin(kind)
    concentration, n = np.full(K, ALPHA), len(rows)
    gains = np.minimum(1.0, (1.0 + hw.OnlineEM().average_exponent) / np.arange(1, n + 1))
    last, average, n_eff, _ = gaussian.sweep(
        NAMES[word], kind, prior, concentration, start, ROWS, rows, steps_of(word, n), gains
    )
    count, first, second = (n * part for part in average) if word == "online-em" else (n_eff * part for part in last)
    name = "mode" if NAMES[word] == "mode" else "mean"
    believed = gaussian.belief(kind, prior, count, first, second)
    np.testing.assert_allclose(found.weights_, np.exp(gaussian.log_weights(name, concentration + count)), **CLOSE)
    np.testing.assert_allclose(found.means_, believed.means, **CLOSE)
    wanted = gaussian.covariances(name, kind, believed, 0.0)
    matrices = {"full": wanted, "tied": wanted[0], "diag": np.diagonal(wanted, axis1=1, axis2=2)}.get(kind, wanted[:, 0, 0])
    np.testing.assert_allclose(found.covariances_, matrices, **CLOSE)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_moment_matching(kind):
    rows = gaussian_rows(25)
    found = in_pieces(gaussian_model(kind, "moment-matching"), rows)
    prior, start = gaussian_twin(kind)
    wanted = given_starts.matched(kind, prior, np.full(K, ALPHA), start, ROWS, rows)
    np.testing.assert_allclose(found.weight_concentration_, wanted.a, rtol=1e-9)
    np.testing.assert_allclose(found.means_, wanted.means, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.mean_precision_, wanted.kappa, rtol=1e-9)
    np.testing.assert_allclose(found.degrees_of_freedom_, wanted.nu, rtol=1e-9)


@pytest.mark.parametrize("word", [word for word in NAMES if word != "online-em"])  # whose average is compared above
def test_counts(word):
    rng, beta, length = np.random.default_rng(1), 1.3, 9
    rows = np.array([rng.multinomial(length, TOPICS[k]) for k in rng.choice(K, size=50, p=WEIGHTS)]).astype(float)
    found = hw.MultinomialMixture(
        K, algorithm=algorithm_of(word), warm_up=0, probabilities_init=TOPICS, weights_init=WEIGHTS, start_weight=ROWS,
        weight_concentration_prior=ALPHA, probability_concentration_prior=beta,
    )  # fmt: skip
    found = in_pieces(found, rows)
    start = given_starts.counts_per_row(WEIGHTS, TOPICS, length)
    prior = np.full((5, K), beta)
    alpha, table = given_starts.multinomial_stream(
        NAMES[word], prior, 1.0, np.full(K, ALPHA), start, ROWS, rows, steps_of(word, len(rows))
    )
    np.testing.assert_allclose(found.weight_concentration_, alpha, **CLOSE)
    np.testing.assert_allclose(found.probability_concentration_, table.T, **CLOSE)


@pytest.mark.parametrize("word", ["boem", "online-vb", "soem"])
def test_markov_chains(word):
    rng, size, length, prior = np.random.default_rng(2), 2, 6, 1.4
    start, steps = np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[[0.9, 0.1], [0.3, 0.7]], [[0.2, 0.8], [0.6, 0.4]]])
    sequences = rng.integers(size, size=(30, length))
    found = hw.MarkovMixture(
        2, algorithm=algorithm_of(word), startprob_init=start, transmat_init=steps, start_weight=ROWS, warm_up=0,
        startprob_prior=prior, transmat_prior=prior, n_symbols=size,
    )  # fmt: skip
    found.partial_fit([list(one) for one in sequences[:4]]).partial_fit([list(one) for one in sequences[4:]])
    rows = np.zeros((len(sequences), size + size * size))
    for row, one in zip(rows, sequences, strict=True):
        row[one[0]] = 1.0
        for before, after in pairwise(one):
            row[size + before * size + after] += 1.0
    groups = np.repeat(np.arange(size + 1), size)
    begun = given_starts.chain_table(np.full(2, 0.5), start, steps, length)
    (count, table), _, n_eff, _ = given_starts.multinomial.sweep(
        NAMES[word], np.full((6, 2), prior), 1.0, np.ones(2), begun, ROWS, rows, steps_of(word, len(rows)), groups=groups
    )
    np.testing.assert_allclose(found.weight_concentration_, 1.0 + n_eff * count, **CLOSE)
    believed = (prior + n_eff * table).T
    np.testing.assert_allclose(found.startprob_concentration_, believed[:, :size], **CLOSE)
    np.testing.assert_allclose(found.transmat_concentration_.reshape(2, -1), believed[:, size:], **CLOSE)


def test_regressions():
    rng = np.random.default_rng(3)
    coef, level, noise = np.array([[1.0, -1.0], [-1.0, 2.0]]), np.array([0.5, -0.5]), np.array([0.2, 0.4])
    X = rng.normal(size=(60, 2)) + 1.0
    y = (X * coef[rng.integers(2, size=60)]).sum(axis=1) + 0.5 * rng.normal(size=60)
    found = hw.RegressionMixture(
        2, algorithm="boem", coef_init=coef, intercept_init=level, noise_variance_init=noise, start_weight=ROWS, warm_up=0,
        weight_concentration_prior=ALPHA, coef_precision_prior=0.5, degrees_of_freedom_prior=4.0, noise_variance_prior=0.3,
    )  # fmt: skip
    found = in_pieces(found, X, y)
    weights, centre = np.full(2, 0.5), X[0]
    middle = weights @ (coef @ centre + level)
    start = given_starts.regression_moments(weights, coef, coef @ centre + level - middle, noise, np.zeros(2), np.ones(2))
    prior = (0.5 * np.eye(3), np.zeros(3), 4.0, 4.0 * 0.3)
    wanted = given_starts.regression_boem(prior, np.full(2, ALPHA), start, ROWS, X - centre, y - middle)
    for k, (beta, variance) in enumerate(wanted):
        np.testing.assert_allclose(found.coef_[k], beta[1:], **CLOSE)
        np.testing.assert_allclose(found.intercept_[k], beta[0] + middle - beta[1:] @ centre, **CLOSE)
        np.testing.assert_allclose(found.noise_variance_[k], variance, **CLOSE)


def hidden_chain(model, **emissions):
    model.startprob_, model.transmat_ = [0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]]
    for name, value in emissions.items():
        setattr(model, name, value)
    return model


def chain_twin(rows, X, emissions):
    """Cappé's recursion from the given chain; the prior has 2 for every first state and transition."""
    first, transitions = np.array([0.6, 0.4]), np.array([[0.8, 0.2], [0.3, 0.7]])
    prior = SimpleNamespace(
        start=np.full(2, 2.0), start_shift=np.ones(2), steps=np.full((2, 2), 2.0), steps_shift=np.ones((2, 2))
    )
    often = given_starts.stationary(transitions)
    mean = [first / ROWS, often[:, None] * transitions, *emissions(often)]
    steps = (np.arange(1, len(X) + 1) + RATE["offset"]) ** -RATE["decay"]
    found, _, n_eff, _, _ = chains.cappe("mode", prior, rows, X, np.zeros(len(X), dtype=int), steps, mean, ROWS)
    start, moves = (n_eff * part for part in found[:2])
    return (
        chains.dirichlet("mode", prior.start, 1.0, start),
        chains.dirichlet("mode", prior.steps, 1.0, moves),
        [n_eff * part for part in found[2:]],
    )


CHAIN = {"algorithm": hw.SatoEM(batch_size=1, **RATE), "init_params": "", "warm_up": 0, "start_weight": ROWS}
CHAIN |= {"startprob_prior": 2.0, "transmat_prior": 2.0}


def test_hidden_chains_of_gaussians():
    X, scale, means = gaussian_rows(40), np.array([2.0, 3.0]), MEANS[1:]
    options = {
        "mean_prior": PRIOR_MEAN,
        "mean_precision_prior": KAPPA,
        "degrees_of_freedom_prior": NU,
        "covariance_prior": scale,
    }
    model = hidden_chain(hw.GaussianHMM(2, "diag", **CHAIN, **options), means_=means, covars_=np.ones((2, 2)))
    found = in_pieces(model, X)
    prior = given_starts.gaussian_prior(PRIOR_MEAN, KAPPA, NU, scale)

    def emissions(often):
        return given_starts.gaussian_moments("diag", often, means, np.tile(np.eye(2), (2, 1, 1)))

    start, transitions, totals = chain_twin(chains.GaussianRows("diag", prior), X, emissions)
    believed = gaussian.belief("diag", prior, *totals)
    np.testing.assert_allclose(found.startprob_, start, **CLOSE)
    np.testing.assert_allclose(found.transmat_, transitions, **CLOSE)
    np.testing.assert_allclose(found.means_, believed.means, **CLOSE)
    np.testing.assert_allclose(found.covars_, gaussian.covariances("mode", "diag", believed, 0.0), **CLOSE)


def test_hidden_chains_of_symbols():
    X = np.random.default_rng(4).integers(3, size=(40, 1))
    given = np.array([[0.8, 0.1, 0.1], [0.1, 0.3, 0.6]])
    model = hidden_chain(hw.CategoricalHMM(2, emissionprob_prior=1.5, **CHAIN), emissionprob_=given)
    found = in_pieces(model, X)
    rows = chains.SymbolRows(np.full((3, 2), 1.5), np.ones((3, 2)))
    start, transitions, totals = chain_twin(rows, X.astype(float), lambda often: (often, (often[:, None] * given).T))
    np.testing.assert_allclose(found.transmat_, transitions, **CLOSE)
    np.testing.assert_allclose(found.startprob_, start, **CLOSE)
    np.testing.assert_allclose(found.emissionprob_, chains.dirichlet("mode", 1.5, 1.0, totals[1].T), **CLOSE)


def documents(n=60, length=20):
    rng = np.random.default_rng(5)
    return np.array([rng.multinomial(length, rng.dirichlet(np.ones(K)) @ TOPICS) for _ in range(n)]).astype(float)


def topic_model(algorithm, **options):
    prior = {"doc_topic_prior": 0.5, "topic_word_prior": 0.2, "random_state": 0}
    return hw.LatentDirichletAllocation(
        K, algorithm=algorithm, components_init=7.0 * TOPICS, start_weight=ROWS, warm_up=0, **prior, **options
    )


def test_topics_by_online_vb():
    X, alpha = documents(), np.full(K, 0.5)
    found = in_pieces(topic_model(hw.OnlineVB(batch_size=5, decay=0.7, offset=10.0)), X)
    start = given_starts.documents_per_row(TOPICS, alpha, X[0].sum())
    wanted = given_starts.topic_stream(
        "expect_log",
        lambda x, now: given_starts.mean_field(x, now, alpha),
        start,
        ROWS,
        0.2,
        X,
        5,
        lambda t: (t + 10.0) ** -0.7,
    )
    np.testing.assert_allclose(found.components_, wanted.T, **CLOSE)


def test_topics_by_collapsed_vb():
    X, alpha = documents(), np.full(K, 0.5)
    found = in_pieces(topic_model(hw.CollapsedVB(batch_size=5, burn_in=2)), X)

    def estep(x, now):
        words = np.flatnonzero(x)
        return topics.collapsed(words, x[words], now, alpha, 2)[1]

    start = given_starts.documents_per_row(TOPICS, alpha, X[0].sum())
    wanted = given_starts.topic_stream("mode", estep, start, ROWS, 0.2, X, 5, lambda t: (t + 2.0) ** -0.6)
    np.testing.assert_allclose(found.components_, wanted.T, **CLOSE)


def test_a_start_of_topics_or_spectra_is_what_is_read_out():
    """Of a start that is worth many rows, the first row changes nothing that can be seen."""
    heavy = hw.SimulatedEM(decay=1.0, offset=1e9, average=False)
    model = hw.LatentDirichletAllocation(K, algorithm=heavy, components_init=TOPICS, start_weight=1e9, warm_up=0)
    np.testing.assert_allclose(model.partial_fit(documents(1)).topics_, TOPICS, atol=1e-7)
    model = hw.LatentDirichletAllocation(
        K, algorithm=heavy, components_init=TOPICS, start_weight=1e9, warm_up=0, doc_topic_prior="learn"
    )
    np.testing.assert_allclose(model.partial_fit(documents(1)).doc_topic_prior_, 1.0 / K, atol=1e-6)
    spectra = np.random.default_rng(6).gamma(1.0, size=(K, 8))
    for algorithm in (heavy, hw.SurrogateEM(decay=1.0, offset=1e9, average=False)):
        model = hw.ItakuraSaitoNMF(K, algorithm=algorithm, components_init=spectra, start_weight=1e9, warm_up=0)
        model.partial_fit(np.random.default_rng(7).exponential(size=(1, 8)))
        np.testing.assert_allclose(model.components_ * model.weight_scale_[:, None], spectra, rtol=1e-6)
        np.testing.assert_allclose(model.weight_shape_, 1.0, rtol=1e-6)
    model = hw.ItakuraSaitoNMF(K, components_init=spectra, weight_scale=5.0, start_weight=1e9, warm_up=0, algorithm=algorithm)
    np.testing.assert_allclose(model.partial_fit(np.ones((1, 8))).components_, spectra, rtol=1e-6)


@pytest.mark.parametrize("model", [hw.LatentDirichletAllocation, hw.ItakuraSaitoNMF])
def test_drawn_statistics_move_as_written(model):
    """S <- S + (t + 2)^-0.6 (s - S), and the mode of prior and S; the E-step, which draws, is the library's own."""
    X = documents() if model is hw.LatentDirichletAllocation else np.random.default_rng(8).exponential(size=(60, 5))
    options = {"algorithm": hw.SimulatedEM(batch_size=5, average=False), "start_weight": ROWS, "warm_up": 0, "random_state": 3}
    found = in_pieces(model(K, components_init=TOPICS, **options), X)
    learner, stream = found._learner, found._runtime.state
    start = learner.model.held_at(TOPICS, stream_rows(found, X[:1]))
    prior, statistics, seen = start[0], start[2], ROWS
    for t, at in enumerate(range(0, len(X), 5), start=1):
        now = learner.model.readout("mode", prior, statistics, seen)
        drawing = replace(learner.plan.inference, key=stream.key, first=at)
        summary = learner.model.summarize(now, stream_rows(found, X[at : at + 5]), inference=drawing)
        old, new = dense(statistics), dense(summary.mean)
        step = (t + 2.0) ** -0.6
        statistics, seen = statistics.toward(summary.mean, step), seen + 5.0
        for name, part in dense(statistics).items():
            np.testing.assert_allclose(part, old[name] + step * (new[name] - old[name]), **CLOSE)
    for name, part in dense(stream.statistics).items():
        np.testing.assert_allclose(part, dense(statistics)[name], **CLOSE)
    assert seen == stream.progress.weight_seen == ROWS + len(X)


def stream_rows(model, X):
    return model._rows(X)


def dense(statistics):
    return {name: np.asarray(part) for name, part in vars(statistics).items() if name != "from_base"}


# Refusals, files, and other ways in


def test_a_start_that_leaves_something_open_is_refused():
    rows, none = gaussian_rows(), {"warm_up": 0}
    with pytest.raises(ValueError, match="give means_init and precisions_init, or let warm_up be at least 1"):
        hw.GaussianMixture(K, **none).partial_fit(rows)
    with pytest.raises(ValueError, match="precisions_init must be given, got None"):
        hw.GaussianMixture(K, means_init=MEANS, **none).partial_fit(rows)
    with pytest.raises(ValueError, match="without one warm_up must be at least 1"):
        hw.BernoulliMixture(K, **none).partial_fit(rows > 0)
    with pytest.raises(ValueError, match="start_weight is of a start"):
        hw.GaussianMixture(K, start_weight=3.0).partial_fit(rows)
    with pytest.raises(ValueError, match="start_weight is of a start"):
        hw.LatentDirichletAllocation(K, start_weight=3.0).partial_fit(documents())
    with pytest.raises(ValueError, match="whose inputs no start describes"):
        hw.RegressionMixture(2, gating="input", coef_init=np.ones((2, 1)), **none).partial_fit(rows[:, :1], rows[:, 1])
    with pytest.raises(ValueError, match="noise_variance_init must be given"):
        hw.RegressionMixture(2, coef_init=np.ones((2, 1)), **none).partial_fit(rows[:, :1], rows[:, 1])
    with pytest.raises(ValueError, match="all parameters must be set"):
        model = hw.GaussianHMM(2, init_params="st", **none)
        model.means_ = MEANS[:2]
        model.partial_fit(rows)
    with pytest.raises(ValueError, match="startprob_init must come with transmat_init"):
        hw.MarkovMixture(1, startprob_init=[[0.5, 0.5]]).partial_fit([[0, 1]])
    with pytest.raises(ValueError, match="vocabulary='open'"):
        hw.LatentDirichletAllocation(K, components_init=TOPICS, vocabulary="open").partial_fit(documents())
    with pytest.raises(ValueError, match="not negative"):
        hw.ItakuraSaitoNMF(K, components_init=-TOPICS).partial_fit(documents())
    with pytest.raises(ValueError, match="n_components must be a number where components_init"):
        hw.ItakuraSaitoNMF("auto", components_init=TOPICS).partial_fit(documents())


@pytest.mark.parametrize("word", ["auto", "moment-matching", "boem"])
def test_a_stream_that_began_at_once_is_saved_merged_and_counted(word, tmp_path):
    rows = gaussian_rows(300)
    model = gaussian_model("full", word).partial_fit(rows[:1])
    model.save(tmp_path / "model")
    again = hw.load(tmp_path / "model")
    np.testing.assert_array_equal(again.partial_fit(rows[1:]).means_, model.partial_fit(rows[1:]).means_)
    assert model.n_samples_seen_ == len(rows)
    start = gaussian_model("full", word).partial_fit(rows[:1])
    merged = hw.merge([start.branch().partial_fit(rows[at::2]) for at in (1, 2)])
    assert merged.n_samples_seen_ == len(rows)
    np.testing.assert_allclose(merged.means_, MEANS, atol=0.6)


def test_more_weight_moves_less():
    rows = gaussian_rows(50) + 1.0
    moved = [
        np.abs(gaussian_model("full", "boem", start_weight=w).partial_fit(rows).means_ - MEANS).max() for w in (1, 50, 5000)
    ]
    assert moved[0] > moved[1] > moved[2]


def test_a_start_with_a_warm_up_counts_as_well():
    rows = gaussian_rows(500)
    model = gaussian_model("full", "boem", warm_up=100, start_weight=30.0).partial_fit(rows)
    assert model._runtime.state.base.progress.n_eff == pytest.approx(130.0)
    assert model.n_samples_seen_ == 500


@pytest.mark.parametrize("word", ["em", "vb", "auto"])
def test_passes_begin_at_the_start(word):
    rows = gaussian_rows(2500)
    found = gaussian_model("full", word).fit(rows)
    np.testing.assert_allclose(found.means_, MEANS, atol=0.3)
    for model in (hw.LatentDirichletAllocation(K, components_init=TOPICS, warm_up=0, doc_topic_prior=1.0, random_state=0),):
        assert np.abs(model.fit(documents(300)).topics_ - TOPICS).max() < 0.25
