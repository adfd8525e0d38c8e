"""The page of paper 002: the small mixture against the library, smoothing against enumeration, verdicts, and a tiny run."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from page_checks import complete, results_with, sketched

pytest.importorskip("papers", reason="run from the root of the repository")

import headwater as hw
from pages.__main__ import measure
from pages.render import PICTURE, write
from papers import online_em_array as array
from papers import online_em_averaging as averaging
from papers import online_em_blocks as blocks
from papers import online_em_chains as chains
from papers import online_em_exponents as exponents
from papers import online_em_gradient as gradient
from papers import online_em_limit as limit
from papers import online_em_normals as normals
from papers import online_em_pictures as pictures
from papers import online_em_pictures_chains as pictures_chains
from papers import online_em_smoothing as smoothing
from papers import online_em_values as values
from papers.online_em import PAGE, QUICK

TINY = replace(QUICK, copies=2, few=1, rows=400, marks=4, passes=3, chain=200, sizes=(100, 200))


# The small mixture


def log_density(theta, y):
    return np.log(limit.mixture_density(np.asarray(theta), y))


def test_information_is_the_curvature_of_the_likelihood():
    y = np.linspace(-12.0, 14.0, 20_001)
    mass = limit.mixture_density(normals.TRUTH, y) * (y[1] - y[0])
    complete, observed = normals.information(normals.TRUTH)
    step = 1e-3 * np.eye(4)
    curved = [
        [
            sum(a * b * mass @ log_density(normals.TRUTH + a * p + b * q, y) for a in (1, -1) for b in (1, -1)) / 4e-6
            for q in step
        ]
        for p in step
    ]
    np.testing.assert_allclose(-np.array(curved), observed, atol=2e-4)
    assert np.linalg.eigvalsh(complete - observed).min() > -1e-9
    assert 0.0 < normals.speeds(normals.TRUTH)[0] < 0.1 and normals.speeds(normals.APART)[0] > 0.5
    assert normals.loss(normals.TRUTH[[0, 2, 1, 3]] * [1, 1, 1, 1] + [0.4, 0, 0, 0], normals.TRUTH, 10) == pytest.approx(0.0)


@pytest.mark.parametrize(("average", "kind"), [(False, normals.LAST), (True, normals.GROWING)])
def test_the_library_learns_what_the_plain_code_does(average, kind):
    y = normals.drawn(normals.TRUTH, 3000, 1)
    found = normals.online_em(y, normals.START, 0.7, 0.0, 20, 20, np.array([3000]))[0, kind]
    model = normals.library(0.7, average=average).partial_fit(y[:, None])
    np.testing.assert_allclose(normals.parameters(model), found, rtol=1e-6)


def test_averages_are_means_over_the_rows():
    y = normals.drawn(normals.TRUTH, 60, 2)
    every = np.arange(1, 61)
    found = normals.online_em(y, normals.START, 0.6, 0.0, 20, 30, every)
    np.testing.assert_allclose(found[-1, normals.THETA], found[30:, normals.LAST].mean(axis=0))
    np.testing.assert_allclose(found[30, normals.STATISTICS], found[30, normals.LAST])


def test_passes_of_em_never_lower_the_likelihood_and_end_where_the_library_ends():
    y = normals.drawn(normals.TRUTH, 400, 3)
    path = normals.batch_em(y, normals.FAR, 40)
    assert np.diff([log_density(theta, y).mean() for theta in path]).min() > -1e-12
    weight, first, second, variance = normals.FAR
    model = hw.GaussianMixture(
        2, covariance_type="tied", algorithm="em", weights_init=[weight, 1.0 - weight], means_init=[[first], [second]],
        precisions_init=[[1.0 / variance]], max_iter=400, tol=1e-12, reg_covar=0.0,
    ).fit(y[:, None])  # fmt: skip
    np.testing.assert_allclose(normals.batch_em(y, normals.FAR, 2000)[-1], normals.parameters(model), atol=1e-4)


def test_incremental_em_is_online_em_for_one_tour():
    y = normals.drawn(normals.TRUTH, 100, 4)
    order = np.concatenate([np.arange(100), np.arange(100)])
    found = normals.incremental_em(y, normals.START, order, 20, np.array([100, 200]))
    online = normals.online_em(y[order], normals.START, 1.0, 0.0, 20, 20, np.array([100, 200]))[:, normals.LAST]
    np.testing.assert_allclose(found[0], online[0], rtol=1e-12)
    assert np.abs(found[1] - online[1]).max() > 1e-3


# Titterington


@pytest.mark.parametrize("by_precision", [False, True])
def test_titterington_divides_the_gradient_by_the_complete_information(by_precision):
    y = normals.drawn(normals.TRUTH, 31, 5)
    found, _ = gradient.titterington(y, normals.START, 0.6, 30, np.array([30, 31]), by_precision)
    before, after = found

    def coordinates(theta):
        return np.array([*theta[:3], 1.0 / theta[3] if by_precision else theta[3]])

    def score(point):
        return log_density([*point[:3], 1.0 / point[3] if by_precision else point[3]], y[30])

    weight, variance, point = before[0], before[3], coordinates(before)
    last = 1.0 / (2.0 * point[3] ** 2)
    complete = np.array([1.0 / (weight * (1.0 - weight)), weight / variance, (1.0 - weight) / variance, last])
    slope = [(score(point + step) - score(point - step)) / 2e-6 for step in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(coordinates(after), point + 31.0**-0.6 * np.array(slope) / complete, rtol=1e-6)


def test_a_gradient_leaves_the_parameter_space_and_online_em_does_not():
    truth = np.array([0.05, 0.0, 4.0, 1.0])
    y, start = normals.drawn(truth, 3000, 6), np.array([*truth, 1.0])
    row, _ = gradient.own_variances(y, start, 0.6, 100, True)
    stays, lowest = gradient.own_variances(y, start, 0.6, 100, False)
    assert row > 100 and stays == 0 and lowest > 0.0


# Limits


def test_the_limiting_recursion_falls_to_a_stationary_point():
    for law in limit.LAWS[:2]:
        nodes, weights = limit.quadrature(law)
        assert weights.sum() == pytest.approx(1.0, abs=1e-4)
        assert law.drawn(4000, 1).mean() == pytest.approx(float(weights @ nodes), abs=0.15)
    figures = limit.limit_set(limit.LAWS[1], replace(TINY, passes=30))
    assert figures["rise"] < limit.EPSILON and figures["gradient"] < 1e-3 * figures["gradient_start"]


# Chains


def enumerated(y, chain, lag, memory):
    """Return E-steps by a sum over all paths of states in each window."""
    law = smoothing.stationary(chain.transitions)
    pairs, counts, used = np.zeros((2, 2)), np.zeros(2), 0
    for t in range(max(memory, 0), len(y) - lag):
        window = range(t - memory if memory >= 0 else 0, t + lag + 1)
        total, held = 0.0, np.zeros((2, 2))
        for states in product((0, 1), repeat=len(window) + 1):
            weight = law[states[0]]
            for place, s in enumerate(window):
                before, now = states[place], states[place + 1]
                variance = chain.variances[now]
                weight *= chain.transitions[before, now] * np.exp(-0.5 * (y[s] - chain.means[now]) ** 2 / variance)
                weight /= np.sqrt(variance)
            at = t - window[0] + 1
            held[states[at - 1], states[at]] += weight
            total += weight
        pairs, counts, used = pairs + held / total, counts + held.sum(axis=0) / total, used + 1
    return pairs / used, counts / used


@pytest.mark.parametrize(("lag", "memory"), [(0, 0), (1, 1), (2, 1), (0, -1), (2, -1)])
def test_lagged_statistics_are_sums_over_paths(lag, memory):
    y = np.random.default_rng(0).normal(size=6)
    chain = smoothing.STARTS[1]
    pairs, moments = smoothing.lagged_statistics(y, chain.transitions, chain.means, chain.variances, lag, memory)
    wanted, counts = enumerated(y, chain, lag, memory)
    np.testing.assert_allclose(pairs, wanted, rtol=1e-10)
    np.testing.assert_allclose(moments[0], counts, rtol=1e-10)


def test_sequences_have_the_passages_they_should():
    lengths = np.diff(np.flatnonzero(np.diff(chains.states_of(chains.TRANSITIONS, np.random.default_rng(0).random(20_000)))))
    assert lengths.mean() == pytest.approx(7.5, abs=0.7)
    for law in smoothing.LAWS:
        y = smoothing.drawn(law, 20_000, 0)
        assert y.mean() == pytest.approx(0.5, abs=0.06) and len(y) == 20_000
    symbols = chains.drawn(chains.CATEGORICAL, 500, 0)
    assert symbols.shape == (500, 1) and {*symbols.ravel().tolist()} <= {0, 1, 2, 3, 4}


def test_errors_do_not_depend_on_the_order_of_states():
    order = [2, 0, 1]
    model = hw.GaussianHMM(3)
    model.transmat_, model.means_ = chains.TRANSITIONS[np.ix_(order, order)], chains.MEANS[order][:, None]
    assert chains.errors(chains.GAUSSIAN, model) == (0.0, 0.0)


# Regressions and arrays


def test_information_about_regressions_is_less_than_of_complete_rows():
    for case, truth in exponents.TRUTHS.items():
        complete, observed = exponents.informations(case)
        assert np.linalg.eigvalsh(complete - observed).min() > -1e-8
        weight = truth[0]
        wanted = [1.0 / (weight * (1.0 - weight)), weight / truth[5], weight / truth[5]]
        np.testing.assert_allclose(complete.diagonal()[:3], wanted, rtol=1e-6)
    x, y = exponents.drawn(exponents.APART, 4000, 0)
    model = hw.RegressionMixture(2, algorithm="em", random_state=0).fit(x, y)
    assert exponents.loss("apart", exponents.parameters(model), 4000) < 5.0


def test_information_of_arrays_is_the_curvature_of_the_divergence():
    def covariance(theta):
        a = array.steering(theta[0])
        return theta[1] * np.outer(a, a.conj()) + theta[2] * np.eye(array.SENSORS)

    step, total = np.array([1e-3, 2e-3, -1e-3]), 0.0
    for pattern in product((False, True), repeat=array.SENSORS):
        seen = np.flatnonzero(pattern)
        if seen.size:
            here, there = (covariance(theta)[np.ix_(seen, seen)] for theta in (array.TRUTH, array.TRUTH + step))
            ratio = np.linalg.solve(there, here)
            share = (1.0 - array.MISSING) ** seen.size * array.MISSING ** (array.SENSORS - seen.size)
            total += share * (np.trace(ratio).real - seen.size - np.linalg.slogdet(ratio)[1])
    assert total == pytest.approx(0.5 * step @ array.information() @ step, rel=0.01)
    assert np.isnan(array.drawn(2000, 0)).mean() == pytest.approx(array.MISSING, abs=0.02)


# Verdicts and the command


def test_verdicts_follow_the_figures():
    def size(rows, batch, online):
        return {"rows": rows, "passes": 50, "batch": {"rmse": batch}, "online": {"rmse": online}}

    def records(last):
        passes = {f"passes/{rows}": {"rows": rows, "settled": rows // 100} for rows in (500, 8000)}
        sets = passes | {"sizes/500": size(500, 1.0, 1.5), "sizes/8000": size(8000, last, 1.0)}
        return values.records(results_with(PAGE, records=sets))["verdict"]

    assert (records(4.0), records(1.0)) == ("holds", "does not hold")

    def law(rise, slope, end):
        one = {"rise": rise, "gradient": slope, "gradient_start": 1.0, "divergences": [1.0], "least": 0.0, "rows": [10, 99],
               "online": [1.0, end]}  # fmt: skip
        found = values.limiting(results_with(PAGE, limit={"a": one}))
        return [found[name] for name in ("falls", "stops", "comes")]

    assert law(0.0, 1e-9, 0.01) == ["holds"] * 3
    assert law(1e-3, 1e-2, 0.5) == ["does not hold", "nearly holds", "does not hold for every law"]


def test_verdicts_on_steps_and_blocks_follow_the_figures():
    def steps(case, start, last):
        return {"case": case, "start": start, "rows": 9, "decays": [0.6, 0.8, 1.0], "speeds": [0.3], "last": [9.0, 3.0, last],
                "averaged": [1.0, 1.1, 4.0]}  # fmt: skip

    def verdicts(poor, good):
        sets = [
            steps(case, start, last)
            for start, lasts in ((exponents.GOOD, good), (exponents.POOR, poor))
            for case, last in zip(exponents.TRUTHS, lasts, strict=True)
        ]
        found = values.steps(results_with(PAGE, exponents={f"{one['case']}/{one['start']}": one for one in sets}))
        return [found[name] for name in ("no_harmonic", "harmonic_after_good", "robust")]

    assert verdicts([9.0, 9.0], [1.0, 1.0]) == ["holds"] * 3
    assert verdicts([9.0, 1.0], [9.0, 1.0])[:2] == ["holds in part", "holds where little is missing"]

    for large, verdict in ((0.9, "holds"), (0.1, "does not hold")):
        sets = {
            f"{line}/{size}": {"line": line, "size": size, "kept": large if size >= 100 else 0.0,
                               "away": [1.0 if size < 100 else 0.5]}
            for line in blocks.LINES for size in blocks.SIZES
        }  # fmt: skip
        found = values.rare(results_with(PAGE, blocks=sets))
        assert (found["helps"], found["larger"]) == (verdict, "holds")


def test_theory_of_the_last_iterate():
    fast = np.array([0.8, 1.0])
    assert averaging.unaveraged(0.6)(fast, 100_000) == pytest.approx(0.45 * 100.0)
    assert averaging.unaveraged(1.0)(fast, 10) == pytest.approx((0.64 / 0.6 + 1.0) / 2.0)
    assert averaging.unaveraged(1.0)(np.array([0.1, 1.0]), 10) is None


def test_a_rare_component_is_scored_by_the_truth():
    rows = blocks.drawn(4000, 0)
    assert blocks.true_score(rows) > hw.GaussianMixture(3, random_state=0).fit(rows[:500]).score(rows)


@pytest.mark.slow
def test_a_tiny_run_of_every_part(tmp_path, monkeypatch):
    for module in (pictures, pictures_chains):
        monkeypatch.setattr(module, "drawing", sketched)
    results = PAGE.results(tmp_path, TINY)
    measure(PAGE, results, results.begin([*PAGE.parts]), TINY, None)
    write(PAGE, results, tmp_path)
    told = complete((tmp_path / "online_em.md").read_text())
    names = PICTURE.findall(told)
    assert len(names) == len(PAGE.parts) and all((tmp_path / f"{name}.png").is_file() for name in names)
    stored = json.loads((tmp_path / "online_em.json").read_text())
    assert stored["pending"] == [] and set(stored["figures"]) == set(PAGE.parts)
