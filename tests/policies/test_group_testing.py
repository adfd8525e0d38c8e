"""Groups and windows of rows: p-values that are right for independent rows, and find what is odd."""

import inspect

import every_model
import numpy as np
import pytest
from scipy.stats import chi2, combine_pvalues

import headwater as hw
from headwater.policies.group_testing import judge_groups


def slow_groups(scores, pvalues, groups, window, known, uniforms):
    """The definition, window by window and row by row."""
    found = []
    for name in np.unique(groups):
        own = np.flatnonzero(groups == name)
        for begin in range(0, len(own), window):
            rows, past, peers = own[begin : begin + window], own[:begin], np.flatnonzero(groups != name)

            def joined(ps, compared, rows=rows):
                if compared < max(20, 2 * len(rows)):
                    return np.nan
                wider = np.sqrt(1.0 + len(rows) / compared)
                total = combine_pvalues(ps).statistic
                return chi2.sf((total + 2 * len(rows) * (wider - 1.0)) / wider, 2 * len(rows))

            def against(others, rows=rows):
                return [
                    (np.sum(scores[others] > scores[i]) + uniforms[i] * (np.sum(scores[others] == scores[i]) + 1.0))
                    / (len(others) + 1.0)
                    for i in rows
                ]

            line = name, rows[0], len(rows), joined(pvalues[rows], known), joined(against(past), len(past))
            found.append((*line, joined(against(peers), len(peers))))
    return sorted(found, key=lambda line: line[3])


def test_lines_are_their_definition():
    rng = np.random.default_rng(0)
    scores, pvalues, groups, uniforms = rng.normal(size=200), rng.random(200), rng.integers(4, size=200), rng.random(200)
    lines = judge_groups(scores, pvalues, groups, 15, 500.0, uniforms)
    wanted = list(zip(*slow_groups(scores, pvalues, groups, 15, 500.0, uniforms), strict=True))
    for name, values in zip(("group", "first", "rows", "pvalue", "pvalue_past", "pvalue_peers"), wanted, strict=True):
        np.testing.assert_allclose(lines[name], values, rtol=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_pvalues_are_right_for_independent_rows(ties):
    rng, found = np.random.default_rng(0), {"pvalue": [], "pvalue_past": [], "pvalue_peers": []}
    for _ in range(200):  # of 20 rows, against their past of 40 and more: p-values near 0.01 are a little too small
        known, scores = rng.normal(size=1000), rng.normal(size=400)
        known, scores = (known.round(1), scores.round(1)) if ties else (known, scores)
        uniforms = rng.random(400)
        at = np.sort(known)
        low, high = (np.searchsorted(at, scores, side) for side in ("left", "right"))
        pvalues = (1000 - high + uniforms * (high - low + 1.0)) / 1001.0
        lines = judge_groups(scores, pvalues, rng.integers(5, size=400), 20, 1000.0, uniforms)
        for name, values in found.items():
            values.append(lines[name])
    for name, values in found.items():
        drawn = np.concatenate(values)
        drawn = drawn[~np.isnan(drawn)]
        assert len(drawn) > 2000
        for level in (0.01, 0.05, 0.2):
            assert np.mean(drawn <= level) == pytest.approx(level, rel=0.35 if level < 0.02 else 0.12), (name, level)


def test_what_changed_is_found_where_it_changed():
    rng = np.random.default_rng(0)
    model = hw.GaussianMixture(1, random_state=0).partial_fit(rng.normal(size=(5000, 2)))
    rows, hosts = rng.normal(size=(2000, 2)), np.tile(np.array(["a", "b", "c", "d"]), 500)
    rows[(hosts == "c") & (np.arange(2000) >= 1600)] *= 1.4  # its last 100 rows
    table = model.anomaly_groups(rows, hosts, window=100)
    assert table["group"][0] == "c" and table["first"][0] == 1602 and len(table) == 20
    for name in ("pvalue", "pvalue_past", "pvalue_peers"):
        assert table[name][0] < 1e-4
    whole = model.anomaly_groups(rows, hosts)
    assert whole["group"][0] == "c" and whole.keys() == ["group", "first", "rows", "score", "pvalue", "pvalue_peers"]
    windows = model.anomaly_groups(rows, window=400)
    assert windows["first"][0] == 1600 and windows.keys() == ["first", "rows", "score", "pvalue", "pvalue_past"]


@pytest.mark.parametrize("kind", ["gaussian", "markov", "regression", "mixed", "multinomial"])
def test_models_with_pvalues_judge_groups(kind):
    model, chunk = every_model.learned(kind), every_model.stream_of(kind)[0]
    taken = inspect.signature(model.anomaly_score).parameters
    given = {name: chunk[name] for name in ("X", "y", "lengths") if name in taken and name in chunk.keys()}  # noqa: SIM118
    table = model.anomaly_groups(groups=np.arange(100) % 3, **given)
    assert len(table) == 3 and (table["pvalue"] > 0.0).all() and table["rows"].sum() == 100


def test_nonsense_is_refused():
    rng = np.random.default_rng(0)
    model, rows = hw.GaussianMixture(1).partial_fit(rng.normal(size=(3000, 2))), rng.normal(size=(10, 2))
    for options, words in (
        ({"groups": ["a"]}, "groups must have a value for each of the 10 rows"),
        ({"groups": [np.nan, *range(9)]}, "got NaN"),
        ({"groups": [None, *"abcdefghi"]}, "got a missing value"),
        ({"window": 0}, "window must be a positive number of rows, got 0"),
        ({"window": 2.5}, "window must be a positive number of rows"),
    ):
        with pytest.raises(ValueError, match=words):
            model.anomaly_groups(rows, **options)
    assert len(model.anomaly_groups(rows, [1, "b"] * 5)) == 2
    assert np.isnan(model.anomaly_groups(rows, np.arange(10) // 5, window=5)["pvalue_peers"]).all()
    assert (model.anomaly_groups(np.full((3, 2), 1e99))["pvalue"] >= 0.0).all()


def test_rows_that_say_nothing_are_not_counted():
    rows = np.random.default_rng(0).normal(size=(300, 2))
    model = hw.GaussianMixture(1, random_state=0).fit(np.where(np.arange(600).reshape(300, 2) % 7, rows, np.nan))
    rows[:100], rows[150] = np.nan, np.nan
    table = model.anomaly_groups(rows, np.repeat(["a", "b", "c"], 100))
    assert dict(zip(table["group"], table["rows"], strict=True)) == {"b": 99, "c": 100}
