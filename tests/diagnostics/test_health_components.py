"""Findings of health about components: dead, starved, duplicated, collapsed, flat."""

import numpy as np
import pytest
from every_model import stream_of

import headwater as hw
from headwater.diagnostics.health import Evidence
from headwater.diagnostics.health_checks import component_findings
from headwater.diagnostics.health_counts import ChainChecks, CountChecks
from headwater.diagnostics.health_gaussian import GaussianChecks
from headwater.diagnostics.health_regression import RegressionChecks
from headwater.diagnostics.health_signals import SpectrumChecks

ROWS = np.random.default_rng(0).normal(size=(600, 2))


def kinds(health):
    return [one.kind for one in health.findings]


def test_dead_and_starved_components():
    rng = np.random.default_rng(0)
    model = hw.GaussianMixture(2, weights_init=[1.0, 0.0], means_init=[[0.0], [1e6]], random_state=0, max_iter=0)
    (dead,) = model.fit(np.arange(20.0)[:, None]).health_.findings
    assert (dead.kind, dead.components, dead.action) == ("dead", (1,), False)
    assert dead.sentence.startswith(
        "Component 1 has almost no weight: fewer than one of 20 effective rows went to it; prune() removes it"
    )
    far = np.append(ROWS, [[60.0, 60.0]] * 3, axis=0)
    found = hw.GaussianMixture(2, random_state=0).fit(far).health_
    (starved,) = found.of_kind("starved")
    assert not starved.action and starved.numbers == {"fed": pytest.approx(3.0), "needs": 5.0}
    assert "was learned from 3 effective rows, but has 5 parameters: its values are partly chance." in starved.sentence
    far = np.append(rng.normal(size=(200, 4)), [[60.0] * 4] * 3, axis=0)
    (famished,) = hw.GaussianMixture(2, random_state=0).fit(far).health_.of_kind("starved")
    assert famished.action and "but has 14 parameters: its values are mostly the prior, or chance." in famished.sentence
    warming = hw.GaussianMixture(2, random_state=0).partial_fit(far[-6:]).health_
    assert warming.warming and warming.ok and warming.of_kind("starved")


def test_many_starved_components_are_one_finding():
    rng = np.random.default_rng(0)
    found = hw.GaussianMixture(5, random_state=0).fit(rng.normal(size=(40, 6))).health_
    (starved,) = found.of_kind("starved")
    assert len(starved.components) > 3 and "have too little data" in starved.sentence


def test_starved_counts_and_topics():
    rng = np.random.default_rng(0)
    rows = rng.poisson(0.02, size=(60, 500)).astype(float) + np.eye(60, 500)
    for model in (hw.MultinomialMixture(2, random_state=0), hw.LatentDirichletAllocation(2, random_state=0, max_iter=2)):
        assert model.fit(rows).health_.of_kind("starved"), model
        assert not model.fit(rng.poisson(5.0, size=(60, 20)).astype(float)).health_.of_kind("starved"), model


def test_lopsided_weights():
    rng = np.random.default_rng(0)
    rows = np.append(rng.normal(size=(3000, 1)), rng.normal(size=(20, 1)) + 40.0, axis=0)
    (found,) = hw.GaussianMixture(2, random_state=0).fit(rows).health_.findings
    assert (found.kind, found.action) == (
        "lopsided",
        False,
    ) and "99.3% of the weight: the other hardly counts" in found.sentence


def gaussians(means, covariances, rows=None, floor=0.0):
    means, covariances = np.asarray(means, dtype=float), np.asarray(covariances, dtype=float)
    rows = np.full(len(means), 1000.0) if rows is None else np.asarray(rows, dtype=float)
    matrix = covariances.ndim == 3 or (covariances.ndim == 2 and covariances.shape != means.shape)
    return GaussianChecks(rows, means, covariances, matrix, ["a", "b"], 5.0, floor)


def found_by(signs, **options):
    return component_findings(Evidence(signs.rows, checks=lambda: signs, **options))


def test_divergences_of_gaussians_are_those_of_their_densities():
    means, rng = np.random.default_rng(0).normal(size=(3, 2)), np.random.default_rng(1)
    factors = rng.normal(size=(3, 2, 2))
    full = factors @ np.swapaxes(factors, 1, 2) + 0.3 * np.eye(2)
    for covariances, whole in (
        (full, full), (full[0], np.tile(full[0], (3, 1, 1))), (rng.uniform(1.0, 2.0, (3, 2)), None),
        (np.arange(1.0, 4.0), None),
    ):  # fmt: skip
        if whole is None:
            whole = np.array([np.diag(np.broadcast_to(one, 2)) for one in covariances])
        apart, doubt = gaussians(means, covariances).divergences()
        assert not doubt.any()
        for a in range(3):
            for b in range(3):
                gap = means[a] - means[b]
                one, two = np.linalg.inv(whole[a]), np.linalg.inv(whole[b])
                wanted = 0.5 * (np.trace(one @ whole[b] + two @ whole[a]) - 4.0 + gap @ (one + two) @ gap)
                np.testing.assert_allclose(apart[a, b], wanted, atol=1e-9)


def test_doubles():
    near, far = [[0.0, 0.0], [0.2, 0.0], [9.0, 9.0]], [[0.0, 0.0], [1.0, 0.0], [9.0, 9.0]]
    for covariances in (np.tile(np.eye(2), (3, 1, 1)), np.ones((3, 2)), np.ones(3)):
        (found,) = found_by(gaussians(near, covariances))
        assert (found.kind, found.components, found.action) == ("duplicated", (0, 1), False)
        assert found.numbers["apart"] == pytest.approx(0.04) and found.numbers["weight"] == pytest.approx(2 / 3)
        assert not found_by(gaussians(far, covariances))
    assert not found_by(gaussians(near[:2], [np.eye(2), 4.0 * np.eye(2)]))
    units = gaussians(np.array(near) * [1e6, 1e-6], np.tile(np.diag([1e12, 1e-12]), (3, 1, 1)))
    assert [one.components for one in found_by(units)] == [(0, 1)]
    fitted = hw.GaussianMixture(2, means_init=[[0.0, 0.0], [0.01, 0.0]], random_state=0, max_iter=0).fit(ROWS)
    assert kinds(fitted.health_) == ["duplicated"] and fitted.health_.ok


def test_dead_or_starved_components_are_no_doubles():
    assert [one.kind for one in found_by(gaussians([[0.0, 0.0]] * 2, np.ones((2, 2)), rows=[1000.0, 0.1]))] == ["dead"]
    assert found_by(gaussians([[0.0, 0.0]] * 2, np.ones((2, 2)), rows=[1000.0, 3.0]))[0].kind == "starved"


def test_thin_components_have_collapsed():
    means = [[0.0, 0.0], [3.0, 3.0], [6.0, 0.0]]
    thin = np.tile(np.eye(2), (3, 1, 1))
    thin[1] = [[1.0, 1.0], [1.0, 1.0 + 1e-8]]
    (found,) = found_by(gaussians(means, thin))
    assert (found.kind, found.components, found.action) == ("collapsed", (1,), True) and " in a and b, " in found.sentence
    diagonal = np.ones((3, 2))
    diagonal[2, 1] = 1e-8
    (found,) = found_by(gaussians(means, diagonal))
    assert found.components == (2,) and found.numbers["deviation"] == pytest.approx(1e-4) and " in b, " in found.sentence
    diagonal[2, 1] = 1e-3  # a thirtieth of the usual deviation is no collapse, unless it is the floor
    assert not found_by(gaussians(means, diagonal))
    assert [one.kind for one in found_by(gaussians(means, diagonal, floor=1e-3))] == ["collapsed"]
    diagonal[2] = 1e12  # a wide or distant column does not change what is said of the others
    assert not found_by(gaussians(means, diagonal, rows=[1000.0, 1000.0, 500.0]))


def test_columns_that_say_nothing():
    whole = np.tile([[1.0, 1.0], [1.0, 1.0 + 1e-9]], (2, 1, 1))
    (found,) = found_by(gaussians([[0.0, 0.0], [5.0, 5.0]], whole))
    assert (found.kind, found.action) == ("flat", False) and "Columns a and b are almost linearly dependent" in found.sentence
    tiny = np.append(ROWS, ROWS + 9.0, axis=0) * 1e-4
    (found,) = hw.GaussianMixture(2, algorithm="em", random_state=0).fit(tiny).health_.of_kind("flat")
    assert found.action and "as wide in" in found.sentence and "reg_covar (1e-06)" in found.sentence
    assert hw.GaussianMixture(2, algorithm="em", random_state=0, scale_columns=True).fit(tiny).health_.ok
    assert hw.GaussianMixture(2, random_state=0).fit(tiny).health_.ok  # whose prior is in the scale of the rows


@pytest.mark.parametrize("scale_columns", [False, True])
@pytest.mark.parametrize("kind", ["spherical", "diag"])
@pytest.mark.parametrize("model", [hw.GaussianMixture, hw.GaussianHMM])
def test_a_constant_column_lowers_a_variance_that_all_columns_share(model, kind, scale_columns):
    rows = np.insert(ROWS, 1, 5.0, axis=1)
    made = model(1, covariance_type=kind, scale_columns=scale_columns, algorithm="em", random_state=0)
    (found,) = made.fit(rows).health_.of_kind("flat")
    assert found.sentence.startswith("Column x1 has one value in all rows and carries no information: ")
    assert ("it lowers the one variance that all columns" in found.sentence) == (kind == "spherical")
    assert ("scores there are decided by" in found.sentence) == (kind != "spherical")
    assert found.action == (not scale_columns)


def test_where_every_column_is_constant_the_floor_decides():
    for algorithm, floor in (("em", "decided by reg_covar (1e-06)"), ("auto", "decided by the prior")):
        model = hw.GaussianMixture(1, covariance_type="spherical", algorithm=algorithm).fit(np.full((600, 2), 5.0))
        found = model.health_.of_kind("flat")[0]
        assert "Columns x0 and x1 have one value" in found.sentence and floor in found.sentence


def counts(probabilities, words=1000.0, rows=100.0, **options):
    probabilities = np.asarray(probabilities, dtype=float)
    k, width = probabilities.shape
    names = [f"w{at}" for at in range(width)]
    return CountChecks(probabilities, np.full((1, k), words), np.full(k, rows), names, **options)


def test_counts():
    apart = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
    assert not found_by(counts(apart))
    found, doubt = counts(apart).divergences()
    assert found[0, 1] == pytest.approx(10.0 * 0.6 * np.log(2.5)) and found[0, 0] == pytest.approx(0.0, abs=1e-12)
    assert doubt[0, 1] == pytest.approx((3.0 + 3.0 * np.sqrt(6.0)) * 0.02)
    (double,) = found_by(counts([[0.5, 0.3, 0.2], [0.49, 0.31, 0.2]]))
    assert double.kind == "duplicated"
    (single,) = found_by(counts([[0.0, 0.9999, 0.0001], [0.4, 0.2, 0.4], [0.3, 0.0, 0.7]]))
    assert (single.kind, single.components, single.action) == ("collapsed", (0,), False)
    expected = "Component 0 has hardly any words but w1 (100% of its words): leave it out if it says nothing, or use fewer"
    assert single.sentence == f"{expected} components."
    grouped = counts([[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.1, 0.9]], groups=np.array([0, 0, 1, 1], dtype=np.int32))
    grouped = CountChecks(grouped.probabilities, np.full((2, 2), 500.0), grouped.rows, grouped.names, grouped.groups)
    assert grouped.divergences()[0][0, 1] == pytest.approx(5.0 * 0.4 * np.log(9.0))


def test_samples_of_one_thing_are_doubles_and_those_of_two_are_not():
    rng = np.random.default_rng(3)
    same = rng.dirichlet(np.ones(50))
    for one, other, wanted in ((same, same, True), (same, np.roll(same, 1), False)):
        tables = np.array([rng.multinomial(20_000, p) for p in (one, other)]) + 0.1
        signs = counts(tables / tables.sum(axis=1, keepdims=True), words=20_000.0, rows=200.0)
        assert bool(found_by(signs)) == wanted


def test_states_that_look_the_same_may_do_different_things():
    emissions = counts([[0.5, 0.5], [0.5, 0.5], [0.1, 0.9]], words=1000.0, rows=1000.0, word="state")
    alike = ChainChecks(emissions, np.array([[0.3, 0.3, 0.4], [0.1, 0.5, 0.4], [0.2, 0.2, 0.6]]), emissions.rows)
    different = ChainChecks(emissions, np.array([[0.9, 0.05, 0.05], [0.05, 0.05, 0.9], [0.2, 0.2, 0.6]]), emissions.rows)
    assert [one.components for one in found_by_chain(alike)] == [(0, 1)] and not found_by_chain(different)


def found_by_chain(signs):
    return component_findings(Evidence(signs.rows, "state", checks=lambda: signs))


def test_regressions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    exact = np.where(np.arange(300) % 2, X[:, 0], 3.0 - X[:, 1])
    found = hw.RegressionMixture(2, algorithm="em", random_state=0).fit(X, exact).health_
    assert found.of_kind("collapsed") and not found.ok and "without noise" in found.findings[0].sentence
    rows = np.full(2, 500.0)
    for coef, wanted in (([[0.0, 1.0], [0.0, 1.1]], True), ([[0.0, 1.0], [0.0, 2.0]], False)):
        signs = RegressionChecks(rows, np.array(coef), np.ones(2), np.eye(2), 2.0, 1e-6, 3.0)
        assert bool(found_by(signs)) == wanted
        gate = gaussians([[0.0, 0.0], [4.0, 0.0]], np.ones((2, 2)), rows=rows)
        assert not found_by(RegressionChecks(rows, np.array(coef), np.ones(2), np.eye(2), 2.0, 1e-6, 3.0, gate))
    gated = hw.RegressionMixture(2, random_state=0, gating="input").fit(X, exact + 0.1 * rng.normal(size=300))
    assert gated.health_.ok


def test_spectra():
    powers = np.array([[8.0, 4.0, 2.0, 1.0], [0.8, 0.4, 0.2, 0.11], [1.0, 2.0, 4.0, 8.0]])
    signs = SpectrumChecks(powers, list("abcd"))
    (double,) = component_findings(Evidence(np.full(3, 99.0), checks=lambda: signs))
    assert (double.kind, double.components) == ("duplicated", (0, 1))
    best = min(np.mean(c * powers[0] / powers[2] + powers[2] / powers[0] / c - 2.0) for c in np.geomspace(0.1, 10.0, 4001))
    assert signs.divergences()[0][0, 2] == pytest.approx(best, rel=1e-5)
    tone = SpectrumChecks(np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 1.0]]), list("abc"))
    (found,) = component_findings(Evidence(np.full(2, 99.0), checks=lambda: tone))
    assert found.kind == "collapsed" and not found.action and "bin b" in found.sentence


def test_directions():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(400, 4, 2)) @ [1.0, 1.0j]
    (found,) = hw.DirectionOfArrival(random_state=0).fit(noise).health_.findings
    assert found.kind == "unheard" and found.action
    heard = stream_of("arrival", (300,))[0].X.copy()
    assert not hw.DirectionOfArrival(random_state=0).fit(heard).health_.findings
    heard[1:, 3] = np.nan
    (found,) = hw.DirectionOfArrival(random_state=0).fit(heard).health_.findings
    assert found.kind == "unheard" and not found.action and found.numbers["sensor"] == 3.0
