"""Bayesian moment matching: the sweep of the library makes the steps of the slow twin."""

import numpy as np
import pytest
from moment_beliefs import PAIRS, assert_same_belief, column, kinds, mapped, natural, pairs, some_belief, some_map, torn
from naive import moments as slow
from naive.moments import Belief

import headwater as hw
from headwater.checks import the_state_is_finite
from headwater.core.batch import Batch
from headwater.families import gaussian_records as records
from headwater.families.gaussian import Gaussian
from headwater.kernels import gaussian_rank_one as rank_one
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixturePrior

# The library's sweep against the steps of the twin

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


def held(kind, prior, belief, n_eff=N_EFF, from_base=0.9):
    """Return statistics that make this belief together with the prior; its means are about the origin."""
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
    """Return the belief of prior + n_eff * statistics, with means about the origin."""
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
    """Run the sweep from a belief. Returns the belief and scores."""
    after, n_eff, scores = sweep(kind, prior, held(kind, prior, belief), X, weights, labels, projection)
    return believed(kind, prior, after, n_eff), scores


def rows_near(belief, rows, rng, origin=0.0):
    """Return rows about the means of a belief."""
    n_components, width = belief.means.shape
    return origin + belief.means[rng.integers(0, n_components, rows)] + rng.normal(size=(rows, width))


@pytest.mark.covering("kind", "projection")
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


@pytest.mark.covering
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
    """With one component, or a label for every row, nothing is projected, and the order of the rows does not matter."""
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
@pytest.mark.parametrize("rows", [1e4, 1e6])  # beyond this, the twin loses too many digits
@pytest.mark.parametrize("labelled", [False, True], ids=["", "label"])
def test_a_row_after_many_adds_what_it_should(kind, projection, rows, labelled):
    """One row changes a belief of many rows only a little, and this change must be accurate."""
    rng = np.random.default_rng(23)
    prior = some_prior(kind, 3, 2, rng)
    own = prior.components
    few = some_belief(kind, 3, 2, rng)
    start = Belief(few.a * rows / 20, few.means, few.kappa * rows / 50, few.nu * rows / 50, few.V * rows / 50)
    start = believed(kind, prior, held(kind, prior, start), N_EFF)  # after rounding
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
    """A larger step first moves the belief to prior + keep * (belief - prior), in natural parameters."""
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


# The library where plain formulas cancel, against the twin in exact fractions


def assert_near_exact(kind, prior, belief, x, rtol=1e-7):
    """Check one step from a belief; V need only have the digits that second moments about the origin can hold."""
    found, scores = swept(kind, prior, belief, (x + prior.components.origin)[None])
    wanted, score = slow.step(kind, belief, x, nu0=prior.components.dof, exact=True)
    size = np.abs(natural(kind, wanted.means, column(wanted.kappa), wanted.V)).max()
    assert_same_belief(kind, found, wanted, rtol, lost=1e-14 * size)
    np.testing.assert_allclose(scores, [score], rtol=1e-9)


@pytest.mark.covering("kind", "deviations")
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
    """A distant row of a component shrinks its precision, so even a small doubt decides the expected precision."""
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


# Long streams


@pytest.mark.slow
@kinds
@pytest.mark.parametrize(
    ("projection", "rows"),
    [(("second-moments", "kl"), 2_000_000), (("second-moments", "second-moments"), 10_000_000)],
    ids=["kl", "second"],
)
def test_long_sweep_does_not_drift(kind, projection, rows):
    """Millions of rows in one call, and in many calls (each starts from statistics), end at the belief of the twin."""
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
    """Components are so far apart that every row is certain: each of a million rows adds one to each mass."""
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
    """Nearly constant columns, and then a row 1e180 standard deviations away."""
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
    """Return U and w with inverse(V) = U' diag(w) U, padded, by NumPy."""
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
