"""The slow twin of Bayesian moment matching: Bayes' theorem by draws, the matched moments, laws of a step."""

import numpy as np
import pytest
from moment_beliefs import (
    PAIRS,
    assert_same_belief,
    column,
    kinds,
    mapped,
    natural,
    pairs,
    some_belief,
    some_map,
    torn,
)
from naive import moments as slow
from naive.moments import RULES
from scipy import stats

# The twin: its posterior is Bayes' theorem, by draws

DRAWS = 5_000


def draw(kind, belief, size, rng):
    """Weights (n, K), means (n, K, d), and precisions (n, K, d, d) or, but for full, (n, K, d)."""
    weights = rng.dirichlet(belief.a, size)
    means, precisions = [], []
    width = belief.means.shape[1]
    for mean, kappa, nu, V in zip(*belief[1:], strict=True):
        if kind == "full":
            L = stats.wishart(nu, np.linalg.inv(V)).rvs(size, random_state=rng).reshape(size, width, width)
            root = np.linalg.cholesky(np.linalg.inv(kappa * L))
            means.append(mean + (root @ rng.normal(size=(size, width, 1)))[..., 0])
        else:
            if kind == "diag":
                L = rng.gamma(nu / 2, 2 / V, (size, width))
            else:
                L = np.repeat(rng.gamma(nu * width / 2, 2 / V.sum(), (size, 1)), width, axis=1)
            means.append(mean + rng.normal(size=(size, width)) / np.sqrt(kappa * L))
        precisions.append(L)
    return weights, np.stack(means, axis=1), np.stack(precisions, axis=1)


def drawn_moments(kind, weights, means, precisions):
    """Return the moments of the twin, for each draw."""
    out = {"w": weights, "sum w^2": (weights**2).sum(axis=1), "log w": np.log(weights), "L": precisions}
    if kind == "full":
        out["L mu"] = np.einsum("nkij,nkj->nki", precisions, means)
        out["mu L mu"] = np.einsum("nki,nkij,nkj->nk", means, precisions, means)
        out["L L"] = np.einsum("nkij,nklm->nkijlm", precisions, precisions)
        return out | {"log L": np.linalg.slogdet(precisions)[1]}
    out["L mu"] = precisions * means
    out["mu L mu"] = precisions * means**2
    if kind == "spherical":
        out |= {"L": precisions[..., 0], "mu L mu": out["mu L mu"].sum(axis=2)}
    return out | {"L L": out["L"] ** 2, "log L": np.log(out["L"])}


def log_likelihoods(kind, means, precisions, x):
    """(n, K) log N(x; mu, inverse(L)) of every draw."""
    centred = x - means
    if kind == "full":
        return 0.5 * (
            np.linalg.slogdet(precisions)[1]
            - np.einsum("nki,nkij,nkj->nk", centred, precisions, centred)
            - len(x) * np.log(2 * np.pi)
        )
    return 0.5 * (np.log(precisions / (2 * np.pi)) - precisions * centred**2).sum(axis=2)


def assert_drawn(found, wanted, trust, errors=5.5):
    """Weighted averages of draws, within so many standard errors."""
    for name, values in found.items():
        mean = np.tensordot(trust, values, 1) / trust.sum()
        error = np.sqrt(np.tensordot(trust**2, (values - mean) ** 2, 1)) / trust.sum()
        size = np.abs(wanted[name]).max()
        assert (np.abs(mean - wanted[name]) <= errors * error + 1e-12).all(), name
        assert (error <= 0.2 * size + 0.02).all(), name


@pytest.mark.covering("kind", "label")
@kinds
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("label, weight", [(-1, 1.0), (0, 0.6)], ids=["one row", "labelled, of weight 0.6"])
def test_posterior_is_that_of_bayes(kind, width, n_components, label, weight):
    """The posterior mean of draws from the belief, weighted by the likelihood of row and label to the power of the weight."""
    rng = np.random.default_rng([width, n_components])
    belief = some_belief(kind, n_components, width, rng, spread=0.7)
    x = rng.normal(size=width)
    p, terms, score = slow.posterior(kind, belief, x, weight, label)
    weights, means, precisions = draw(kind, belief, DRAWS, rng)
    joint = weights * np.exp(log_likelihoods(kind, means, precisions, x))
    likelihood = joint.sum(axis=1) if label < 0 else joint[:, label]
    assert abs(likelihood.mean() - np.exp(score)) < 5 * likelihood.std() / np.sqrt(len(likelihood))
    wanted = slow.mixed(p, [slow.moments(kind, term) for term in terms])
    assert_drawn(drawn_moments(kind, weights, means, precisions), wanted, likelihood**weight)


@kinds
@pytest.mark.parametrize("weight", [1.0, 0.3, 4.0])
def test_learning_a_row_adds_it_in_natural_parameters(kind, weight):
    rng = np.random.default_rng(2)
    belief = some_belief(kind, 3, 3, rng)
    x = 2 * rng.normal(size=3)
    after = slow.learned(kind, belief, x, weight, 1)
    known = np.eye(3)[1]
    for name in ("a", "kappa", "nu"):
        added = (getattr(after, name) - getattr(belief, name)).reshape(3, -1)
        np.testing.assert_allclose(added, weight * known[:, None] * np.ones(added.shape[1]), atol=1e-12, err_msg=name)
    first = column(after.kappa) * after.means - column(belief.kappa) * belief.means
    np.testing.assert_allclose(first, weight * np.outer(known, x), atol=1e-12)
    square = np.outer(x, x) if kind == "full" else x**2
    second = natural(kind, after.means, column(after.kappa), after.V) - natural(
        kind, belief.means, column(belief.kappa), belief.V
    )
    np.testing.assert_allclose(second, weight * np.multiply.outer(known, square), atol=1e-11)


@pytest.mark.covering("kind", "n_components")
@kinds
@pytest.mark.parametrize("width", [1, 2, *(pytest.param(width, marks=pytest.mark.slow) for width in (3, 4)), 5])
@pytest.mark.parametrize("n_components", [1, 2, 3, 4])
def test_projection_keeps_the_moments_of_draws_from_the_posterior(kind, width, n_components):
    rng = np.random.default_rng([width, n_components, 1])
    belief = some_belief(kind, n_components, width, rng)
    x = rng.normal(size=width)
    p, terms, _ = slow.posterior(kind, belief, x, weight=2.5)
    parts = [draw(kind, term, count, rng) for term, count in zip(terms, rng.multinomial(DRAWS, p), strict=True) if count]
    found = drawn_moments(kind, *(np.concatenate(part) for part in zip(*parts, strict=True)))
    for projection in PAIRS:
        after, _ = slow.step(kind, belief, x, 2.5, projection=projection)
        wanted = slow.moments(kind, after)
        kept = [name for name in matched(kind, projection) if name in found]
        assert_drawn({name: found[name] for name in kept}, wanted, np.ones(DRAWS))


# The twin: matched moments


def matched(kind, projection):
    """Return the names of the moments that a projection keeps; tr(...) is a scalar function of them."""
    weights = ["w", "sum w^2"] if projection[0] == "second-moments" else ["log w"]
    dof = {"kl": "log L", "second-moments": "tr(C L C L)" if kind == "full" else "L L"}[projection[1]]
    return [*weights, "L", "L mu", "mu L mu", dof]


def with_trace(kind, moments):
    if kind == "full":
        inverse = np.linalg.inv(moments["L"])
        moments["tr(C L C L)"] = np.einsum("aij,akl,ajkli->a", inverse, inverse, moments["L L"])
    return moments


@pytest.mark.covering("kind", "projection")
@kinds
@pairs
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
def test_projection_has_the_moments_of_the_posterior(kind, projection, width):
    rng = np.random.default_rng(width)
    for n_components, weight, label in [(1, 1.0, -1), (2, 1.0, -1), (3, 0.3, -1), (4, 4.0, -1), (3, 1.5, 2)]:
        belief = some_belief(kind, n_components, width, rng)
        x = rng.normal(size=width)
        p, terms, score = slow.posterior(kind, belief, x, weight, label)
        wanted = with_trace(kind, slow.mixed(p, [slow.moments(kind, term) for term in terms]))
        after, same = slow.step(kind, belief, x, weight, label, projection, nu0=width - 0.9)
        assert same == score
        found = with_trace(kind, slow.moments(kind, after))
        for name in matched(kind, projection):
            if name == "tr(C L C L)":  # compared is the excess over the least value, d
                found[name], wanted[name] = found[name] - width, wanted[name] - width
            scale = np.abs(wanted[name]).max() if name != "log w" else 1.0
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-9, atol=1e-9 * scale, err_msg=name)
        if n_components == 1:
            assert after.a == belief.a + weight


@kinds
@pairs
def test_one_component_or_a_label_is_the_conjugate_update(kind, projection):
    rng = np.random.default_rng(3)
    for n_components, label in [(1, -1), (1, 0), (3, 1)]:
        belief = some_belief(kind, n_components, 3, rng)
        x = 2 * rng.normal(size=3)
        after, _ = slow.step(kind, belief, x, 1.7, label, projection)
        assert_same_belief(kind, after, slow.learned(kind, belief, x, 1.7, max(label, 0)), rtol=1e-9)


@kinds
@pytest.mark.parametrize("width", [1, 2, 3])
def test_twin_rounds_little_where_rows_are_sane(kind, width):
    rng = np.random.default_rng(4)
    belief = some_belief(kind, 3, width, rng)
    x = rng.normal(size=width)
    exact, _ = slow.step(kind, belief, x, 1.3, exact=True)
    assert_same_belief(kind, slow.step(kind, belief, x, 1.3)[0], exact, rtol=1e-10)


@kinds
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("nu0", [2.5, 30.0])
def test_degrees_of_freedom_have_a_floor(kind, rule, nu0):
    """A distant row that may be of either of two components leaves a vague belief; E[L] is still matched."""
    belief, x = torn(kind, 2)
    p, terms, _ = slow.posterior(kind, belief, x)
    np.testing.assert_allclose(p, 0.5)
    after, _ = slow.step(kind, belief, x, projection=(rule, rule), nu0=nu0)
    wanted = slow.mixed(p, [slow.moments(kind, term) for term in terms])
    for name in ("L", "L mu", "mu L mu"):
        np.testing.assert_allclose(slow.moments(kind, after)[name], wanted[name], rtol=1e-8, atol=1e-8)
    floor = min(nu0, {"full": 3.01, "diag": 2.01, "spherical": 1.005}[kind])
    assert after.nu.min() >= floor
    if rule == "kl":
        assert after.nu.min() == pytest.approx(floor)


# Laws of a step


@kinds
@pairs
@pytest.mark.parametrize("width", [1, 2, 4])
def test_step_does_not_depend_on_coordinates(kind, projection, width):
    rng = np.random.default_rng([5, width])
    belief = some_belief(kind, 3, width, rng)
    x = rng.normal(size=width)
    matrix, shift = some_map(kind, width, rng)
    after, score = slow.step(kind, belief, x, 1.4, projection=projection)
    there, score_there = slow.step(kind, mapped(kind, belief, matrix, shift), matrix @ x + shift, 1.4, projection=projection)
    assert_same_belief(kind, there, mapped(kind, after, matrix, shift), rtol=1e-8)
    assert score_there == pytest.approx(score - np.linalg.slogdet(matrix)[1], abs=1e-10)


@pairs
def test_step_of_one_column_is_the_same_for_all_kinds(projection):
    rng = np.random.default_rng(6)
    diag = some_belief("diag", 3, 1, rng)
    flat = diag._replace(kappa=diag.kappa[:, 0], nu=diag.nu[:, 0])
    x = rng.normal(size=1)
    wanted, score = slow.step("diag", diag, x, 0.8, projection=projection)
    for kind, start in [("spherical", flat), ("full", flat._replace(V=flat.V[:, :, None]))]:
        found, same = slow.step(kind, start, x, 0.8, projection=projection)
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine.ravel(), theirs.ravel(), rtol=1e-10)
        assert same == pytest.approx(score, rel=1e-12)
