"""Bayesian moment matching: the slow twin against Bayes' theorem, then the library against the twin.

The twin is `naive_moments`. It is held to draws from the posterior, to the moments it claims to match, and to the laws that the
step must obey. The library's sweep must then do what the twin does, and stay sane where rows are not.
"""

import itertools

import numpy as np
import pytest
from naive import moments as slow
from naive.moments import KINDS, RULES, Belief
from scipy import stats

import headwater as hw
from headwater.checks import the_state_is_finite
from headwater.core.state import Batch
from headwater.families import gaussian_records as records
from headwater.families.gaussian import Gaussian
from headwater.kernels import gaussian_rank_one as rank_one
from headwater.models.mixture import Mixture, MixturePrior

PAIRS = list(itertools.product(RULES, RULES))
kinds = pytest.mark.parametrize("kind", KINDS)
pairs = pytest.mark.parametrize("projection", PAIRS, ids=[" and ".join(pair) for pair in PAIRS])


def some_belief(kind, n_components, width, rng, spread=1.5):
    """A belief like one after some tens of rows, of components that overlap."""
    shape = (n_components, width) if kind == "diag" else (n_components,)
    nu = rng.gamma(4.0, 4.0, shape) + (width + 3 if kind == "full" else 4)
    covariance = rng.gamma(4.0, 0.25, (n_components, width)) + 0.1
    if kind == "full":
        roots = rng.normal(size=(n_components, width, 3 * width))
        V = nu[:, None, None] * (roots @ np.swapaxes(roots, 1, 2) / (3 * width))
    else:
        V = covariance * (nu if kind == "diag" else nu[:, None])
    kappa = rng.gamma(3.0, 3.0, shape) + 0.2
    return Belief(rng.gamma(3.0, 2.0, n_components) + 0.2, spread * rng.normal(size=(n_components, width)), kappa, nu, V)


def comparable(kind, belief):
    """Of a spherical component only the sum of V is believed."""
    if kind != "spherical":
        return belief
    return belief._replace(V=np.broadcast_to(belief.V.mean(axis=1)[:, None], belief.V.shape))


def assert_same_belief(kind, found, wanted, rtol, lost=0.0):
    """Means are compared in their standard deviations, V in its largest entry; `lost` is forgiven in V besides."""
    found, wanted = comparable(kind, found), comparable(kind, wanted)
    for name in ("a", "kappa", "nu"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=rtol, err_msg=name)
    variances = np.diagonal(wanted.V, axis1=1, axis2=2) if kind == "full" else wanted.V
    deviations = np.sqrt(variances / (wanted.nu if kind == "diag" else wanted.nu[:, None]))
    assert np.abs((found.means - wanted.means) / (deviations + np.abs(wanted.means))).max() < rtol
    for mine, theirs in zip(found.V, wanted.V, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max() + lost, err_msg="V")


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
    """What the twin calls moments, of each draw."""
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


@kinds
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("label, weight", [(-1, 1.0), (0, 0.6)], ids=["one row", "labelled, of weight 0.6"])
def test_posterior_is_that_of_bayes(kind, width, n_components, label, weight):
    """Draws from the belief, weighted by their likelihood (that of row and label to the power of the weight)."""
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


# The twin: what is matched is matched


def matched(kind, projection):
    """Names of the moments that a projection keeps; tr(...) is a scalar made of them."""
    weights = ["w", "sum w^2"] if projection[0] == "second-moments" else ["log w"]
    dof = {"kl": "log L", "second-moments": "tr(C L C L)" if kind == "full" else "L L"}[projection[1]]
    return [*weights, "L", "L mu", "mu L mu", dof]


def with_trace(kind, moments):
    if kind == "full":
        inverse = np.linalg.inv(moments["L"])
        moments["tr(C L C L)"] = np.einsum("aij,akl,ajkli->a", inverse, inverse, moments["L L"])
    return moments


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
            if name == "tr(C L C L)":  # what exceeds its least value, d, is what counts
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
    """A far row that may be of either of two components leaves little certainty; E[L] is matched nevertheless."""
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


def torn(kind, width, distance=1e5):
    """Two components that mirror each other, and a far row in the mirror."""
    first = np.eye(width)[0]
    shape = (2, width) if kind == "diag" else (2,)
    V = 200 * (np.array([np.eye(width)] * 2) if kind == "full" else np.ones((2, width)))
    belief = Belief(np.array([20.0, 20.0]), np.array([-first, first]), np.full(shape, 150.0), np.full(shape, 200.0), V)
    return belief, (distance * np.eye(width)[-1] if width > 1 else np.zeros(1))


# Laws of a step


def some_map(kind, width, rng):
    """A linear map under which the kind of belief is closed, and a shift."""
    if kind == "diag":
        matrix = np.diag(rng.choice([-1.0, 1.0], width) * np.exp(rng.normal(size=width)))
    elif kind == "spherical":
        matrix = np.exp(rng.normal()) * np.linalg.qr(rng.normal(size=(width, width)))[0]
    else:
        matrix = rng.normal(size=(width, width)) + 2 * np.eye(width)
    return matrix, rng.normal(size=width)


def mapped(kind, belief, matrix, shift):
    if kind == "full":
        V = matrix @ belief.V @ matrix.T
    elif kind == "diag":
        V = belief.V * np.diag(matrix) ** 2
    else:
        V = belief.V * np.abs(np.linalg.det(matrix)) ** (2 / len(matrix))
    return belief._replace(means=belief.means @ matrix.T + shift, V=V)


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


# The library: its sweep is the twin's steps

N_EFF = 40.0


def some_prior(kind, n_components, width, rng, dof=None):
    scale = rng.uniform(0.5, 2.0, width)
    if kind == "spherical":
        scale[:] = scale.mean()
    elif kind == "full":
        roots = rng.normal(size=(width, 3 * width))
        scale = roots @ roots.T / (3 * width)
    dof = (width + 1.4 if kind == "full" else 2.6) if dof is None else dof
    components = records.GaussianPrior(rng.normal(size=width), 0.3 * rng.normal(size=width), 0.4, dof, scale, 0.0)
    return MixturePrior(rng.uniform(0.4, 2.0, n_components), components)


def natural(kind, mean, kappa, V):
    """V + kappa m m', or column by column."""
    if kind == "full":
        return V + np.reshape(kappa, (-1, 1, 1)) * mean[..., :, None] * mean[..., None, :]
    return V + kappa * mean**2


def column(array):
    """(K, 1) of (K,); (K, d) as it is."""
    return array.reshape(len(array), -1)


def held(kind, prior, belief, n_eff=N_EFF, from_base=0.9):
    """Statistics that with the prior make this belief, whose means are about the origin."""
    own = prior.components
    kappa, nu = column(belief.kappa), column(belief.nu)
    second = natural(kind, belief.means, kappa, belief.V) - natural(kind, own.mean, own.mean_precision, own.scale)
    totals = (
        belief.a - prior.concentration,
        kappa * belief.means - own.mean_precision * own.mean,
        np.tril(second) if kind == "full" else second,
        kappa - own.mean_precision,
        nu - own.dof,
    )
    return records.MomentStatistics(np.array([from_base]), *(total / n_eff for total in totals))


def believed(kind, prior, statistics, n_eff):
    """The belief of prior + n_eff * statistics, means about the origin."""
    own = prior.components
    kappa = own.mean_precision + n_eff * statistics.mean_count
    nu = own.dof + n_eff * statistics.dof_count
    means = (own.mean_precision * own.mean + n_eff * statistics.first) / kappa
    second = statistics.second
    if kind == "full":
        second = second + np.swapaxes(np.tril(second, -1), 1, 2)
    V = natural(kind, own.mean, own.mean_precision, own.scale) + n_eff * second
    V = V - natural(kind, means, kappa, np.zeros(()))
    flat = slice(None) if kind == "diag" else (slice(None), 0)
    return Belief(prior.concentration + n_eff * statistics.count, means, kappa[flat], nu[flat], V)


def equal_steps(n_eff, rows, weights=None):
    weights = np.ones(rows) if weights is None else weights
    return weights / (n_eff + np.cumsum(weights))


def sweep(kind, prior, statistics, X, weights=None, labels=None, projection=PAIRS[0], n_eff=N_EFF, steps=None):
    """Run the library's sweep, with steps that weigh all rows equally by default. Returns statistics, n_eff and scores."""
    n_components = len(prior.concentration)
    batch = Batch(
        np.ascontiguousarray(X),
        np.empty(0) if weights is None else weights,
        np.empty(0, dtype=np.int64) if labels is None else labels,
    )
    steps = equal_steps(n_eff, len(X), weights) if steps is None else steps
    scores = np.full(len(X), np.nan)
    after, average, n_eff = Mixture(n_components, Gaussian(n_components, kind)).sweep(
        "match_moments", prior, statistics, None, n_eff, batch, steps, np.empty(0), scores,
        projection=projection,
    )  # fmt: skip
    assert average is None
    return after, n_eff, scores


def swept(kind, prior, belief, X, weights=None, labels=None, projection=PAIRS[0]):
    """The same from belief to belief. Returns the belief and scores."""
    after, n_eff, scores = sweep(kind, prior, held(kind, prior, belief), X, weights, labels, projection)
    return believed(kind, prior, after, n_eff), scores


def rows_near(belief, rows, rng, origin=0.0):
    """Rows about the means of a belief."""
    n_components, width = belief.means.shape
    return origin + belief.means[rng.integers(0, n_components, rows)] + rng.normal(size=(rows, width))


@kinds
@pairs
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("labelled", [False, True], ids=["", "labels"])
def test_sweep_equals_the_steps_of_the_twin(kind, projection, weighted, labelled):
    rng = np.random.default_rng(7)
    rows, n_components = 20, 3
    prior = some_prior(kind, n_components, 2, rng)
    belief = some_belief(kind, n_components, 2, rng)
    X = rows_near(belief, rows, rng, prior.components.origin)
    weights = rng.uniform(0.2, 3.0, rows) if weighted else None
    labels = rng.choice([-1, -1, 0, 1, 2], rows) if labelled else None
    start = held(kind, prior, belief)
    before = start.copy()
    after, n_eff, scores = sweep(kind, prior, start, X, weights, labels, projection)
    own = prior.components
    wanted, wanted_scores = slow.steps(kind, belief, X - own.origin, weights, labels, projection, own.dof)
    assert_same_belief(kind, believed(kind, prior, after, n_eff), wanted, rtol=1e-7)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-7)
    assert n_eff == pytest.approx(N_EFF + (rows if weights is None else weights.sum()), rel=1e-12)
    share = 0.9 * np.prod(1.0 - equal_steps(N_EFF, rows, weights))
    np.testing.assert_allclose(after.from_base, [share], rtol=1e-10)
    for name, array in before.to_arrays().items():
        np.testing.assert_array_equal(getattr(start, name), array, err_msg=name)


@kinds
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n_components", [1, 2, 3, 4])
def test_one_step_from_many_beliefs(kind, width, n_components):
    rng = np.random.default_rng([8, width, n_components])
    for projection in PAIRS:
        prior = some_prior(kind, n_components, width, rng)
        belief = some_belief(kind, n_components, width, rng)
        x = 1.5 * rng.normal(size=width)
        weights = rng.uniform(0.1, 4.0, 1)
        found, scores = swept(kind, prior, belief, (x + prior.components.origin)[None], weights, projection=projection)
        wanted, score = slow.step(kind, belief, x, weights[0], -1, projection, prior.components.dof)
        assert_same_belief(kind, found, wanted, rtol=1e-7)
        np.testing.assert_allclose(scores, [score], rtol=1e-8, atol=1e-10)


@kinds
@pairs
@pytest.mark.parametrize("n_components", [1, 3])
def test_known_components_give_the_textbook_belief(kind, projection, n_components):
    """One component, or a label for every row: nothing to project, and no order of the rows."""
    rng = np.random.default_rng(9)
    rows, width = 50, 3
    prior = some_prior(kind, n_components, width, rng)
    belief = some_belief(kind, n_components, width, rng)
    X = rows_near(belief, rows, rng, prior.components.origin)
    weights = rng.uniform(0.2, 3.0, rows)
    labels = rng.integers(0, n_components, rows) if n_components > 1 else None
    found, _ = swept(kind, prior, belief, X, weights, labels, projection)
    mass = weights * (np.eye(n_components)[labels] if labels is not None else np.ones((rows, 1))).T  # (K, n)
    start = held(kind, prior, belief)
    Y = X - prior.components.origin
    second = np.einsum("kn,ni,nj->kij", mass, Y, Y)
    second = np.tril(second) if kind == "full" else np.diagonal(second, axis1=1, axis2=2)
    counts = mass.sum(axis=1)
    totals = (counts, mass @ Y, second, counts[:, None], counts[:, None])
    names = ("count", "first", "second", "mean_count", "dof_count")
    sums = [N_EFF * getattr(start, name) + total for name, total in zip(names, totals, strict=True)]
    wanted = believed(kind, prior, records.MomentStatistics(np.zeros(1), *sums), 1.0)
    assert_same_belief(kind, found, wanted, rtol=1e-9)


@kinds
@pairs
@pytest.mark.parametrize("rows", [1e4, 1e6])  # beyond, the twin itself rounds too much
@pytest.mark.parametrize("labelled", [False, True], ids=["", "label"])
def test_a_row_after_many_adds_what_it_should(kind, projection, rows, labelled):
    """Beliefs of many rows change little by one more, and it is the change that has to be right."""
    rng = np.random.default_rng(23)
    prior = some_prior(kind, 3, 2, rng)
    own = prior.components
    few = some_belief(kind, 3, 2, rng)
    start = Belief(few.a * rows / 20, few.means, few.kappa * rows / 50, few.nu * rows / 50, few.V * rows / 50)
    start = believed(kind, prior, held(kind, prior, start), N_EFF)  # as it is after rounding
    x = few.means.mean(axis=0)
    for weight in (1.0, 2.5):
        labels = np.array([1]) if labelled else None
        found, _ = swept(kind, prior, start, (x + own.origin)[None], np.array([weight]), labels, projection)
        if labelled:
            wanted = slow.learned(kind, start, x, weight, 1)
        else:
            wanted, _ = slow.step(kind, start, x, weight, -1, projection, own.dof)
        for name in ("a", "kappa", "nu"):
            before = getattr(start, name)
            np.testing.assert_allclose(getattr(found, name) - before, getattr(wanted, name) - before, atol=0.05, err_msg=name)


@kinds
@pairs
def test_steps_that_forget_fade_the_belief_towards_the_prior(kind, projection):
    """Larger steps: the row meets prior + keep * (belief - prior), in natural parameters, with responsibilities from before."""
    rng = np.random.default_rng(24)
    prior = some_prior(kind, 3, 2, rng)
    own = prior.components
    belief = some_belief(kind, 3, 2, rng)
    X = rows_near(belief, 15, rng, own.origin)
    weights = rng.uniform(0.3, 2.0, len(X))
    steps = np.linspace(0.15, 0.04, len(X))
    found, n_eff, scores = sweep(kind, prior, held(kind, prior, belief), X, weights, projection=projection, steps=steps)
    n_wanted, wanted_scores = N_EFF, []
    for x, weight, g in zip(X - own.origin, weights, steps, strict=True):
        p, score = slow.responsibilities(kind, belief, x)
        after = 1 / ((1 - g) ** 2 / n_wanted + g**2 / weight)
        faded = believed(kind, prior, held(kind, prior, belief, n_wanted), (1 - g) * after)
        terms = [slow.learned(kind, faded, x, g * after, j) for j in range(3)]
        belief = slow.project(kind, slow.mixed(p, [slow.moments(kind, term) for term in terms]), projection, own.dof)
        n_wanted = after
        wanted_scores.append(score)
    assert n_eff == pytest.approx(n_wanted, rel=1e-12)
    assert_same_belief(kind, believed(kind, prior, found, n_eff), belief, rtol=1e-7)
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-7)


@kinds
@pairs
def test_cut_of_the_rows_changes_nothing(kind, projection):
    rng = np.random.default_rng(10)
    prior = some_prior(kind, 3, 3, rng)
    belief = some_belief(kind, 3, 3, rng)
    X = rows_near(belief, 300, rng, prior.components.origin)
    whole, n_eff, scores = sweep(kind, prior, held(kind, prior, belief), X, projection=projection)
    parts, n_parts, part_scores = held(kind, prior, belief), N_EFF, []
    for part in np.split(X, [1, 2, 70, 71, 200]):
        parts, n_parts, fresh = sweep(kind, prior, parts, part, projection=projection, n_eff=n_parts)
        part_scores.append(fresh)
    assert_same_belief(kind, believed(kind, prior, parts, n_parts), believed(kind, prior, whole, n_eff), rtol=1e-9)
    np.testing.assert_allclose(np.concatenate(part_scores), scores, rtol=1e-9)


@kinds
@pairs
def test_sweep_does_not_depend_on_coordinates(kind, projection):
    rng = np.random.default_rng(11)
    width = 3
    prior = some_prior(kind, 3, width, rng)
    own = prior.components
    belief = some_belief(kind, 3, width, rng)
    X = rows_near(belief, 60, rng, own.origin)
    found, scores = swept(kind, prior, belief, X, projection=projection)
    matrix, shift = some_map(kind, width, rng)

    # Rows are matrix @ x + shift there, and the statistics are about another origin.
    origin = rng.normal(size=width)
    move = matrix @ own.origin + shift - origin
    imagined = Belief(prior.concentration[:1], own.mean[None], np.ones(1), np.ones(1), own.scale[None])
    imagined = mapped(kind, imagined, matrix, move)
    there = records.GaussianPrior(origin, imagined.means[0], own.mean_precision, own.dof, imagined.V[0], 0.0)
    found_there, scores_there = swept(
        kind, MixturePrior(prior.concentration, there), mapped(kind, belief, matrix, move), X @ matrix.T + shift,
        projection=projection,
    )  # fmt: skip
    assert_same_belief(kind, found_there, mapped(kind, found, matrix, move), rtol=1e-8)
    np.testing.assert_allclose(scores_there, scores - np.linalg.slogdet(matrix)[1], rtol=1e-8, atol=1e-9)


@kinds
@pairs
def test_order_of_the_components_changes_nothing(kind, projection):
    rng = np.random.default_rng(12)
    prior = some_prior(kind, 4, 2, rng)
    belief = some_belief(kind, 4, 2, rng)
    X = rows_near(belief, 60, rng, prior.components.origin)
    order = np.array([2, 0, 3, 1])
    found, scores = swept(kind, prior, belief, X, projection=projection)
    turned = MixturePrior(prior.concentration[order], prior.components)
    there, scores_there = swept(kind, turned, Belief(*(part[order] for part in belief)), X, projection=projection)
    assert_same_belief(kind, there, Belief(*(part[order] for part in found)), rtol=1e-9)
    np.testing.assert_allclose(scores_there, scores, rtol=1e-9)


@pairs
def test_sweep_of_one_column_is_the_same_for_all_kinds(projection):
    rng = np.random.default_rng(13)
    own = records.GaussianPrior(np.array([0.4]), np.array([0.1]), 0.4, 2.4, np.array([1.3]), 0.0)
    concentration = np.array([0.7, 1.0, 1.4])
    belief = some_belief("diag", 3, 1, rng)
    X = rows_near(belief, 200, rng, own.origin)
    weights = rng.uniform(0.2, 3.0, len(X))
    labels = rng.choice([-1, -1, -1, 0, 1, 2], len(X))
    wanted, wanted_scores = swept("diag", MixturePrior(concentration, own), belief, X, weights, labels, projection)
    flat = belief._replace(kappa=belief.kappa[:, 0], nu=belief.nu[:, 0])
    matrix = records.GaussianPrior(own.origin, own.mean, own.mean_precision, own.dof, own.scale[:, None], 0.0)
    for kind, start, prior in [("spherical", flat, own), ("full", flat._replace(V=flat.V[:, :, None]), matrix)]:
        found, scores = swept(kind, MixturePrior(concentration, prior), start, X, weights, labels, projection)
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine.ravel(), theirs.ravel(), rtol=1e-9)
        np.testing.assert_allclose(scores, wanted_scores, rtol=1e-9)


# The library, where a careless formula cancels: against the twin without rounding


def assert_near_exact(kind, prior, belief, x, rtol=1e-7):
    """One step from a belief; of V only as much is asked as second moments about the origin can hold."""
    found, scores = swept(kind, prior, belief, (x + prior.components.origin)[None])
    wanted, score = slow.step(kind, belief, x, nu0=prior.components.dof, exact=True)
    size = np.abs(natural(kind, wanted.means, column(wanted.kappa), wanted.V)).max()
    assert_same_belief(kind, found, wanted, rtol, lost=1e-14 * size)
    np.testing.assert_allclose(scores, [score], rtol=1e-9)


@kinds
@pytest.mark.parametrize("deviations", [1e2, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_step_of_an_outlier_is_exact(kind, deviations, n_components):
    rng = np.random.default_rng([14, n_components])
    prior = some_prior(kind, n_components, 3, rng, dof=4.01)
    belief = some_belief(kind, n_components, 3, rng)
    many = belief._replace(V=1000 * belief.V, nu=1000 * belief.nu, kappa=1000 * belief.kappa)
    for start in (belief, many):
        assert_near_exact(kind, prior, start, deviations * np.array([0.5, -0.7, 0.6]))


@kinds
@pytest.mark.parametrize("doubt", [1e-3, 1e-6, 1e-9])
def test_step_of_an_outlier_that_is_almost_certainly_of_one_component_is_exact(kind, doubt):
    """Far rows shrink the precision if they are of a component, so that even a little doubt decides what is expected of it."""
    rng = np.random.default_rng(15)
    prior = some_prior(kind, 2, 2, rng, dof=3.01)
    prior = MixturePrior(np.array([1.0, doubt]), prior.components)
    belief = some_belief(kind, 2, 2, rng)
    belief = Belief(*(np.stack([part[0], part[0]]) for part in belief))._replace(a=np.array([1.0, doubt]))
    assert_near_exact(kind, prior, belief, np.array([0.8, 0.6]) / np.sqrt(doubt), rtol=1e-6)


@kinds
@pytest.mark.parametrize("width", [2, 3])
def test_step_of_a_row_in_the_mirror_of_two_components_is_exact(kind, width):
    rng = np.random.default_rng(16)
    prior = some_prior(kind, 2, width, rng, dof=4.01)
    prior = MixturePrior(np.ones(2), prior.components)
    for distance in (0.0, 1.0, 1e3, 1e6, 1e8):
        belief, x = torn(kind, width, distance)
        assert_near_exact(kind, prior, belief, x)


@kinds
def test_step_of_a_row_at_a_mean_is_exact(kind):
    rng = np.random.default_rng(17)
    prior = some_prior(kind, 3, 3, rng)
    prior.components.origin[:] = 0.0
    belief = some_belief(kind, 3, 3, rng)
    assert_near_exact(kind, prior, belief, belief.means[1])


@kinds
@pairs
@pytest.mark.parametrize("nu0", [2.5, 30.0])
def test_sweep_floors_the_degrees_of_freedom(kind, projection, nu0):
    rng = np.random.default_rng(18)
    prior = some_prior(kind, 2, 2, rng, dof=nu0)
    prior = MixturePrior(np.ones(2), prior.components)
    belief, x = torn(kind, 2)
    X = np.tile(x + prior.components.origin, (5, 1))
    found, scores = swept(kind, prior, belief, X, projection=projection)
    floor = min(nu0, {"full": 3.01, "diag": 2.01, "spherical": 1.005}[kind])
    assert np.isfinite(scores).all()
    assert found.nu.min() >= floor * (1 - 1e-12)
    assert (found.a > 0).all()
    assert (found.kappa > 0).all()


# The estimator, on rows that are not sane

WIDTH, WARM_UP = 3, 600
CENTRES = np.array([[0.0, 0.0, 0.0], [4.0, 1.0, -1.0], [-2.0, 3.0, 2.0]])


def sane_rows(rows, rng):
    return CENTRES[rng.integers(0, len(CENTRES), rows)] + rng.normal(size=(rows, WIDTH))


def matching(kind, warm_up=WARM_UP, n_components=3, **settings):
    return hw.GaussianMixture(
        n_components, covariance_type=kind, algorithm="moment-matching", warm_up=warm_up, random_state=0, **settings
    )


def odd_rows(case, model, rng):
    """Rows for a model that has learned sane ones."""
    oblique = np.array([0.6, -0.64, 0.48])
    means = model.means_
    return {
        "outlier at 1e6": lambda: np.stack([1e6 * oblique, [0.0, 1e6, 0.0]]),
        "outlier at 1e8": lambda: np.stack([1e8 * oblique, [0.0, 0.0, -1e8]]),
        "outliers among others": lambda: np.concatenate([sane_rows(50, rng) * (1e6 if i % 2 else 1.0) for i in range(6)]),
        "between two components": lambda: np.tile((means[0] + means[1]) / 2, (100, 1)),
        "at a mean": lambda: np.concatenate([means, means]),
        "the same row": lambda: np.tile(means[0] + 0.3, (10_000, 1)),
        "the same far row": lambda: np.tile(means[0] + 1e3, (10_000, 1)),
        "alternating extremes": lambda: np.tile([1e6 * oblique, -1e6 * oblique], (500, 1)),
        "alternating components": lambda: np.tile([means[0], means[1]], (500, 1)),
    }[case]()


def assert_sane(model, X):
    """Everything that is believed is a belief, and everything that is answered is a number."""
    width = X.shape[1]
    for name, array in model._read().state.statistics.to_arrays().items():
        assert np.isfinite(array).all(), name
    for name in ("weights_", "means_", "covariances_", "precisions_cholesky_", "degrees_of_freedom_", "mean_precision_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert (model.weight_concentration_ > 0).all()
    assert (model.mean_precision_ > 0).all()
    if model.covariance_type == "full":
        assert (model.degrees_of_freedom_ > width - 1).all()
        np.linalg.cholesky(model.covariances_)
        assert (np.diagonal(model.precisions_cholesky_, axis1=1, axis2=2) > 0).all()
    else:
        assert (model.degrees_of_freedom_ > 0).all()
        assert (model.covariances_ > 0).all()
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.predictive_score_samples(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


ODD = ["outlier at 1e6", "outlier at 1e8", "outliers among others", "at a mean", "the same row", "the same far row"]
ODD += ["alternating extremes"]
ODD_PAIRS = ["between two components", "alternating components"]


@kinds
@pytest.mark.parametrize("case, n_components", [*itertools.product(ODD, [1, 3]), *itertools.product(ODD_PAIRS, [3])])
def test_odd_rows_leave_a_belief(kind, case, n_components):
    rng = np.random.default_rng(19)
    model = matching(kind, n_components=n_components).partial_fit(sane_rows(WARM_UP + 200, rng))
    X = odd_rows(case, model, rng)
    scores = model.update(X)
    assert np.isfinite(scores).all()
    assert_sane(model, X[:100])
    model.partial_fit(sane_rows(300, rng))
    assert_sane(model, sane_rows(20, rng))


@kinds
@pytest.mark.parametrize("case", ["constant column", "few values", "all the same", "columns that are copies"])
def test_degenerate_columns_leave_a_belief(kind, case):
    rng = np.random.default_rng(20)
    X = sane_rows(1000, rng)
    if case == "constant column":
        X[:, 1] = 7.5
    elif case == "few values":
        X = np.round(X)
    elif case == "all the same":
        X[:] = [1.0, -2.0, 0.1]
    else:
        X[:, 2] = X[:, 0]
    model = matching(kind, warm_up=200)
    for chunk in np.split(X, [200, 300, 301]):
        model.partial_fit(chunk)
        assert_sane(model, X[:50])
    assert np.isfinite(model.update(X[:50])).all()


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_tied_covariances_are_refused(learn):
    model = matching("tied", warm_up=50)
    with pytest.raises(ValueError, match="moment-matching") as caught:
        getattr(model, learn)(sane_rows(100, np.random.default_rng(21)))
    for word in ("'auto'", "'online-vb'", "'quasi-bayes'"):
        assert word in str(caught.value)


# Long streams


@pytest.mark.slow
@kinds
@pytest.mark.parametrize(
    ("projection", "rows"),
    [(("second-moments", "kl"), 2_000_000), (("second-moments", "second-moments"), 10_000_000)],
    ids=["kl", "second"],
)
def test_long_sweep_does_not_drift(kind, projection, rows):
    """Millions of rows in one call, in many calls (each starts from statistics alone), and the twin at the end."""
    rng = np.random.default_rng(22)
    last = 100
    prior = some_prior(kind, 3, 3, rng)
    belief = some_belief(kind, 3, 3, rng)
    X = rows_near(belief, rows, rng, prior.components.origin)
    start = held(kind, prior, belief)
    whole, n_whole, scores = sweep(kind, prior, start, X, projection=projection)
    parts, n_parts = start, N_EFF
    for part in np.split(X[:-last], np.arange(9_973, rows - last, 9_973)):
        parts, n_parts, _ = sweep(kind, prior, parts, part, projection=projection, n_eff=n_parts)
    before = believed(kind, prior, parts, n_parts)
    parts, n_parts, fresh = sweep(kind, prior, parts, X[-last:], projection=projection, n_eff=n_parts)
    assert_same_belief(kind, believed(kind, prior, whole, n_whole), believed(kind, prior, parts, n_parts), rtol=1e-6)
    np.testing.assert_allclose(scores[-last:], fresh, rtol=1e-8)
    own = prior.components
    wanted, wanted_scores = slow.steps(kind, before, X[-last:] - own.origin, projection=projection, nu0=own.dof)
    np.testing.assert_allclose(scores[-last:], wanted_scores, rtol=1e-7)
    assert_same_belief(kind, believed(kind, prior, whole, n_whole), wanted, rtol=1e-5)


@pytest.mark.slow
@kinds
@pairs
def test_long_sweep_of_known_rows_counts_them(kind, projection):
    """Components so far apart that every row is certain: each row adds one to everything, a million times."""
    rng = np.random.default_rng(25)
    prior = some_prior(kind, 3, 2, rng)
    belief = some_belief(kind, 3, 2, rng)
    belief = belief._replace(means=1000 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    components = rng.integers(0, 3, 1_000_000)
    X = prior.components.origin + belief.means[components] + rng.normal(size=(len(components), 2))
    found, _ = swept(kind, prior, belief, X, projection=projection)
    counts = np.bincount(components, minlength=3)
    for name in ("a", "kappa", "nu"):
        before, after = column(getattr(belief, name)), column(getattr(found, name))
        np.testing.assert_allclose(after - before, np.broadcast_to(counts[:, None], after.shape), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_rows_beyond_all_measure_leave_a_finite_state(kind):
    """Nearly constant columns, and then a row 1e180 of their deviations away."""
    rng = np.random.default_rng(5)
    for _ in range(25):
        X = np.zeros((16, 3))
        for _ in range(4):
            X[rng.integers(16), rng.integers(3)] = rng.normal() * 10.0 ** rng.uniform(-150.0, 98.0)
        the_state_is_finite(
            hw.GaussianMixture(2, covariance_type=kind, algorithm="moment-matching", warm_up=10, random_state=0), X
        )
    X = np.zeros((16, 3))
    X[0, 0], X[14, 0] = 5e-125, 3e55
    the_state_is_finite(hw.GaussianMixture(2, covariance_type=kind, algorithm="moment-matching", warm_up=10, random_state=0), X)


# Rank-one updates


def factored(V, wide):
    """U and w with inverse(V) = U' diag(w) U, padded, by NumPy."""
    root = np.linalg.inv(np.linalg.cholesky(V))
    factor = np.zeros((len(V), wide))
    factor[:, : len(V)] = root / np.diag(root)[:, None]
    return factor, np.diag(root) ** 2


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 10, 16, 17])
def test_rank_one_updates_are_those_of_a_fresh_factor(width):
    rng = np.random.default_rng(width)
    wide = -(-width // 4) * 4
    root = rng.normal(size=(width, 2 * width))
    V, D, s, t = root @ root.T, np.zeros(wide), 0.7, 1.9
    D[:width] = 3.0 * rng.normal(size=width)
    scale = np.zeros((width, wide))
    scale[:, :width] = V
    factor, pivots = np.zeros((width, wide)), np.empty(width)
    log_det = rank_one.refactor(scale, factor, pivots, np.empty(width))
    assert log_det == pytest.approx(np.linalg.slogdet(V)[1])
    for found, wanted in zip((factor, pivots), factored(V, wide), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    turned, solved = np.empty(width), np.empty(width)
    squared = rank_one.whiten_row(factor, pivots, D, turned)
    assert squared == pytest.approx(D[:width] @ np.linalg.solve(V, D[:width]))
    assert rank_one.update_factor(factor, pivots, turned, s, t, np.empty(wide)) == pytest.approx(1.0 + t * squared)
    rank_one.update_scale(scale, D, s, t)
    after = s * (V + t * np.outer(D, D)[:width, :width])
    np.testing.assert_allclose(np.tril(scale[:, :width]), np.tril(after), rtol=1e-12)
    for found, wanted in zip((factor, pivots), factored(after, wide), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-11)
    log_det = np.linalg.slogdet(after)[1]
    assert rank_one.drift(scale, factor, pivots, log_det, D, turned, solved) < 1e-12
    assert rank_one.drift(scale, factor, pivots, log_det + 1e-6, D, turned, solved) == pytest.approx(1e-6 / width, rel=1e-3)
    pivots[-1] *= 1.0 + 1e-6
    assert rank_one.drift(scale, factor, pivots, log_det, D, turned, solved) > 1e-9
