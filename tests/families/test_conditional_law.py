"""The law of missing columns given observed ones: every pattern of gaps against blocks of the covariance matrix."""

from itertools import combinations, product

import numpy as np
import pytest
from naive import conditional as twin
from scipy import stats
from scipy.special import logsumexp

import headwater as hw
from headwater.families.capabilities import AnswersGaps
from headwater.families.entry_law import NormalEntries, StudentEntries
from headwater.families.entry_mixture import entry_log_density, entry_log_tail, entry_quantile
from headwater.families.gap_patterns import pattern_codes

KINDS = ("full", "tied", "diag", "spherical")
WIDTH = 4
PATTERNS = np.array(list(product([False, True], repeat=WIDTH)))


def learn(kind, scaled=False, rows=400):
    rng = np.random.default_rng(3)
    roots = rng.normal(size=(2, WIDTH, WIDTH))
    X = np.concatenate([rng.normal(size=(rows, WIDTH)) @ root + shift for root, shift in zip(roots, (5.0, 0.0), strict=True)])
    model = hw.GaussianMixture(2, covariance_type=kind, scale_columns=scaled, random_state=0).fit(X)
    return model, X[:: rows // 8][: len(PATTERNS)]


def parameters_of(model, predictive):
    mixture = model._model
    found = mixture.readout("predictive", *model._proper_belief()) if predictive else model._read().parameters
    return mixture.family, found


def matrices(kind, family, components):
    covariances = family.covariances(components)
    if kind == "tied":
        covariances = np.broadcast_to(covariances, (2, WIDTH, WIDTH))
    return [one if np.ndim(one) == 2 else np.diag(np.broadcast_to(one, WIDTH)) for one in covariances]


def student_of(model):
    """Return location, scale matrix and degrees of freedom of the predictive density of a full covariance, by the textbook."""
    belief = model._component_belief()
    dof = belief.dof - WIDTH + 1.0
    factor = (belief.mean_precision + 1.0) / (belief.mean_precision * dof)
    return belief.means, belief.scale * factor[:, None, None], dof


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_pattern_of_gaps_is_conditioned_as_blocks_of_the_covariance_say(kind, scaled):
    model, rows = learn(kind, scaled)
    family, parameters = parameters_of(model, False)
    assert isinstance(family, AnswersGaps)
    law = family.conditional(parameters.components, np.where(PATTERNS, np.nan, rows), PATTERNS)
    covariances, means = law.covariances(), family.means(parameters.components)
    other = rows[::-1]
    for i, gaps in enumerate(PATTERNS):
        m = np.flatnonzero(gaps)
        entries = law.entries(np.full(len(m), i), m)
        for k, matrix in enumerate(matrices(kind, family, parameters.components)):
            log, centre, scale, _ = twin.law_of(means[k], matrix, rows[i], gaps)
            np.testing.assert_allclose(law.log_marginal[i, k], log, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(covariances[i, k][np.ix_(m, m)], scale, rtol=1e-7, atol=1e-12)
            assert not covariances[i, k][~gaps].any()
            if len(m):
                np.testing.assert_allclose(entries.mean[:, k], centre, rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(entries.variance[:, k], np.diag(scale), rtol=1e-8)
                expected = twin.log_density(centre, scale, None, other[i, m])
                np.testing.assert_allclose(law.log_density(other)[i, k], expected, rtol=1e-8, atol=1e-8)


def test_the_predictive_law_is_that_of_students_t():
    model, rows = learn("full")
    family, parameters = parameters_of(model, True)
    law = family.conditional(parameters.components, rows, PATTERNS)
    means, scales, dofs = student_of(model)
    for i, gaps in enumerate(PATTERNS):
        m = np.flatnonzero(gaps)
        entries = law.entries(np.full(len(m), i), m)
        for k in range(2):
            log, centre, scale, dof = twin.law_of(means[k], scales[k], rows[i], gaps, dofs[k])
            np.testing.assert_allclose(law.log_marginal[i, k], log, rtol=1e-9, atol=1e-9)
            if len(m):
                np.testing.assert_allclose(entries.dof[:, k], dof)
                np.testing.assert_allclose(entries.mean[:, k], centre, rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(law.covariances()[i, k][np.ix_(m, m)], scale * dof / (dof - 2.0), rtol=1e-7)
                expected = twin.log_density(centre, scale, dof, rows[i, m])
                np.testing.assert_allclose(law.log_density(rows)[i, k], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("predictive", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_marginal_times_conditional_is_the_density(kind, predictive):
    model, rows = learn(kind, scaled=kind == "tied")
    family, parameters = parameters_of(model, predictive)
    law = family.conditional(parameters.components, rows, PATTERNS)
    whole = family.log_densities(parameters.components, rows)
    np.testing.assert_allclose(law.log_marginal + law.log_density(rows), whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("predictive", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_leaving_columns_out_is_conditioning_on_the_others(kind, predictive):
    model, rows = learn(kind)
    family, parameters = parameters_of(model, predictive)
    law = family.conditional(parameters.components, rows, PATTERNS)
    others, entries, at, columns = law.without_column()
    assert len(at) == (~PATTERNS).sum()
    hidden = PATTERNS[at].copy()
    hidden[np.arange(len(at)), columns] = True
    direct = family.conditional(parameters.components, rows[at], hidden)
    found = direct.entries(np.arange(len(at)), columns)
    np.testing.assert_allclose(others, direct.log_marginal, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(entries.mean, found.mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(entries.variance, found.variance, rtol=1e-7)
    rest, pair, far = law.without_pair()
    assert (far <= 0.0).all()
    for i, j in combinations(range(WIDTH), 2):
        both = np.flatnonzero(~PATTERNS[:, i] & ~PATTERNS[:, j])
        hidden = PATTERNS[both].copy()
        hidden[:, [i, j]] = True
        direct = family.conditional(parameters.components, rows[both], hidden)
        np.testing.assert_allclose(rest[both, :, i, j], direct.log_marginal, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(pair[both, :, i, j], law.log_marginal[both] - direct.log_marginal, rtol=1e-7, atol=1e-7)


def test_a_pair_is_as_far_off_as_draws_of_it():
    model, rows = learn("full")
    for predictive in (False, True):
        family, parameters = parameters_of(model, predictive)
        law = family.conditional(parameters.components, rows[:1], PATTERNS[:1])
        far = np.exp(law.without_pair()[2][0, :, 0, 1])
        hidden = np.array([[True, True, False, False]])
        number = 40_000
        given = family.conditional(
            parameters.components, np.repeat(rows[:1], number, axis=0), np.repeat(hidden, number, axis=0)
        )
        uniforms = np.random.default_rng(0).random((number, WIDTH + 1))
        for k in range(2):
            drawn = given.draw(np.full(number, k), uniforms)
            # Contours of a component are those of its density.
            share = np.mean(given.log_density(drawn)[:, k] <= given.log_density(rows[:1].repeat(number, axis=0))[:, k])
            assert abs(share - far[k]) < 4.5 * np.sqrt(0.25 / number)


def test_draws_have_the_moments_of_the_law():
    model, rows = learn("full")
    number, gaps = 60_000, np.array([[True, False, True, False]])
    for predictive in (False, True):
        family, parameters = parameters_of(model, predictive)
        repeated = [np.repeat(part, number, axis=0) for part in (rows[1:2], gaps)]
        law = family.conditional(parameters.components, *repeated)
        uniforms = np.random.default_rng(1).random((number, WIDTH + 1))
        for k in range(2):
            drawn = law.draw(np.full(number, k), uniforms)
            np.testing.assert_array_equal(drawn[:, 1::2], np.broadcast_to(rows[1, 1::2], (number, 2)))
            centre = law.entries(np.zeros(2, dtype=int), np.array([0, 2])).mean[:, k]
            covariance = law.covariances()[0, k][::2, ::2]
            spread = np.sqrt(np.diag(covariance))
            assert (np.abs(drawn[:, ::2].mean(axis=0) - centre) < 5.0 * spread / np.sqrt(number)).all()
            np.testing.assert_allclose(
                np.cov(drawn[:, ::2].T) / np.outer(spread, spread), covariance / np.outer(spread, spread), atol=0.03
            )


def test_quantiles_tails_and_densities_of_mixtures_of_entries():
    rng = np.random.default_rng(0)
    e, k = 500, 5
    centre, scale = 10.0 * rng.normal(size=(e, k)), np.exp(rng.normal(size=(e, k)))
    weights = rng.dirichlet(np.full(k, 0.2), size=e)
    weights[0] = np.eye(k)[2]
    values = 10.0 * rng.normal(size=e)
    for law, peer in (
        (NormalEntries(centre, scale), stats.norm(centre, scale)),
        (StudentEntries(centre, scale, np.full((e, k), 3.5)), stats.t(3.5, centre, scale)),
    ):
        for probability in (1e-4, 0.05, 0.5, 0.95):
            found = entry_quantile(law, weights, probability)
            np.testing.assert_allclose((weights * peer.cdf(found[:, None])).sum(axis=1), probability, rtol=1e-9)
        with np.errstate(divide="ignore"):
            expected = logsumexp(np.log(weights) + peer.logpdf(values[:, None]), axis=1)
        np.testing.assert_allclose(entry_log_density(law, weights, values), expected, rtol=1e-9)
        sides = [(weights * side(values[:, None])).sum(axis=1) for side in (peer.cdf, peer.sf)]
        np.testing.assert_allclose(
            np.exp(entry_log_tail(law, weights, values)), np.minimum(1.0, 2.0 * np.minimum(*sides)), rtol=1e-8
        )
    far = entry_log_tail(NormalEntries(np.zeros((1, 1)), np.ones((1, 1))), np.ones((1, 1)), np.array([60.0]))
    np.testing.assert_allclose(far, np.log(2.0) + stats.norm.logsf(60.0))


def test_steps_towards_a_mode_never_lose():
    rng = np.random.default_rng(0)
    for kind, predictive in product(("full", "diag"), (False, True)):
        model, rows = learn(kind)
        family, parameters = parameters_of(model, predictive)
        law = family.conditional(parameters.components, rows, PATTERNS)
        log_weights = parameters.log_weights + law.log_marginal
        now = start = rows + rng.normal(size=rows.shape)
        before = logsumexp(log_weights + law.log_density(now), axis=1)
        for _ in range(5):
            joint = log_weights + law.log_density(now)
            now = law.ascend(now, np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))
            after = logsumexp(log_weights + law.log_density(now), axis=1)
            assert (after >= before - 1e-9).all()
            before = after
        np.testing.assert_array_equal(now[~PATTERNS], start[~PATTERNS])


@pytest.mark.parametrize("more", [0, 60])
def test_patterns_are_numbered_by_how_many_columns_are_missing(more):
    whole = np.zeros((2 * len(PATTERNS), more), dtype=bool)
    codes = pattern_codes(np.hstack([np.concatenate([PATTERNS, PATTERNS[::-1]]), whole]))
    np.testing.assert_array_equal(codes[: len(PATTERNS)], codes[len(PATTERNS) :][::-1])
    assert len(np.unique(codes)) == len(PATTERNS)
    sizes = PATTERNS.sum(axis=1)
    assert (np.diff(sizes[np.argsort(codes[: len(PATTERNS)])]) >= 0).all()


def test_rows_of_one_pattern_and_of_many_agree():
    model, _ = learn("full")
    family, parameters = parameters_of(model, False)
    rows = np.random.default_rng(5).normal(size=(200, WIDTH))
    gaps = PATTERNS[np.random.default_rng(6).integers(3, 6, size=200)]
    together = family.conditional(parameters.components, rows, gaps)
    for i in (0, 50, 199):
        alone = family.conditional(parameters.components, rows[i : i + 1], gaps[i : i + 1])
        np.testing.assert_allclose(together.log_marginal[i], alone.log_marginal[0], rtol=1e-12)
