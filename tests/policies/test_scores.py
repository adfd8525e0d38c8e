"""Sketches of scores: counts on a grid, a tail beyond them, and what merging and forgetting do to both."""

import numpy as np
import pytest
from scipy.stats import genpareto

import headwater as hw
from headwater.policies.score_sketch import BINS, ScoreSketch, merge_sketches, pareto_of


def sketch_of(scores, **grid):
    blank = ScoreSketch.on_grid_of(scores) if not grid else ScoreSketch(**grid, at_base=np.zeros(BINS), since=np.zeros(BINS))
    return blank.add(scores, np.ones(len(scores)))


def slow_pvalues(sketch, scores, uniforms):
    """(1 + rows above, some of the ties among them) / (1 + all rows), score by score."""
    found = []
    for score, u in zip(scores, uniforms, strict=True):
        at = int(sketch.places(np.array([score]))[0])
        above = sum(sketch.counts[bin] for bin in range(at + 1, BINS))
        found.append((above + u * (sketch.counts[at] + 1.0)) / (sketch.rows + 1.0))
    return np.array(found)


@pytest.fixture(scope="module")
def draws():
    return np.random.default_rng(0).gamma(2.0, 3.0, size=(3, 4000))


def test_pvalues_are_ranks_with_ties_broken_at_random(draws):
    sketch, uniforms = sketch_of(draws[0]), np.random.default_rng(1).random(200)
    near = draws[1][draws[1] < np.quantile(draws[0], 0.98)][:200]
    np.testing.assert_allclose(sketch.pvalues(near, uniforms), slow_pvalues(sketch, near, uniforms), rtol=1e-12)


def test_pvalues_of_equal_scores_are_uniform():
    sketch = sketch_of(np.repeat([1.0, 2.0, 5.0], [500, 300, 200]))
    found = sketch.pvalues(np.repeat([1.0, 2.0, 5.0], [5000, 3000, 2000]), np.random.default_rng(0).random(10_000))
    np.testing.assert_allclose(np.quantile(found, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.01)


def test_the_tail_goes_on_where_counts_end(draws):
    sketch = sketch_of(draws[0])
    tail = sketch.tail()
    assert 15.0 < tail.share * sketch.rows < 25.0
    for rate in (0.5, 0.1, 0.01, 0.001, 1e-5, 1e-9):
        low, high = sketch.pvalues(np.full(2, sketch.threshold(rate)), np.array([0.0, 1.0]))  # ties among the rows of a bin
        assert low <= rate * 1.001 and rate <= high * 1.001
    exact = np.array([2.0, 4.0, 6.0]) * 10.0
    known = (1.0 + exact / 3.0) * np.exp(-exact / 3.0)
    assert np.all(np.abs(np.log(sketch.pvalues(exact, np.full(3, 0.5)) / known)) < [0.3, 1.5, 4.0])  # about two standard errors


@pytest.mark.parametrize("shape", [0.0, 0.2, 0.8])
def test_a_pareto_law_is_found(shape):
    draws = np.sort(genpareto.rvs(shape, scale=3.0, size=20_000, random_state=0))
    scale, found = pareto_of(draws, np.ones(len(draws)))
    assert scale == pytest.approx(3.0, rel=0.06)
    assert found == pytest.approx(shape, abs=0.04)
    some = np.repeat(draws[::10], 2)  # weights stand for rows
    np.testing.assert_allclose(pareto_of(some, np.ones(len(some))), pareto_of(draws[::10], np.full(2000, 2.0)), rtol=0.02)


def test_merging_has_neither_order_nor_tree(draws):
    parts = [sketch_of(one, origin=5.0, unit=2.0) for one in draws]
    whole = sketch_of(draws.ravel(), origin=5.0, unit=2.0)
    for order in ([0, 1, 2], [2, 0, 1]):
        a, b, c = (parts[at] for at in order)
        np.testing.assert_array_equal(merge_sketches([a, b, c], "", shared=False).counts, whole.counts)
        tree = merge_sketches([merge_sketches([a, b], "", shared=False), c], "", shared=False)
        np.testing.assert_array_equal(tree.counts, whole.counts)


def test_other_grids_are_joined_with_all_their_rows(draws):
    parts = [sketch_of(draws[0]), sketch_of(2.0 * draws[1] + 7.0)]
    merged = merge_sketches(parts, "", shared=False)
    assert merged.rows == pytest.approx(8000.0)
    both = np.concatenate([draws[0], 2.0 * draws[1] + 7.0])
    for rate in (0.5, 0.1, 0.02):
        assert np.mean(both > merged.threshold(rate)) == pytest.approx(rate, rel=0.05)


def stream(rows=30_000, seed=0):
    rng = np.random.default_rng(seed)
    return 6.0 * rng.integers(2, size=(rows, 1)) + rng.normal(size=(rows, 3))


@pytest.fixture(scope="module")
def learned():
    return hw.GaussianMixture(2, random_state=0).partial_fit(stream())


def test_the_promised_rate_is_held(learned):
    usual = stream(100_000, seed=1)
    pvalues = learned.anomaly_pvalue(usual)
    for rate, slack in ((0.1, 0.1), (0.01, 0.2), (0.001, 0.4)):
        assert np.mean(pvalues <= rate) == pytest.approx(rate, rel=slack)
        assert np.mean(learned.anomaly_score(usual) > learned.threshold(rate)) == pytest.approx(rate, rel=slack)
    np.testing.assert_array_equal(learned.decide(usual, rate=0.01), pvalues <= 0.01)


def test_branches_add_up_to_one_sketch():
    rows = stream(12_000)
    base = hw.GaussianMixture(2, random_state=0, warm_up=500).partial_fit(rows[:3000])
    parts = [base.branch().partial_fit(rows[3000 + 400 * at : 3400 + 400 * at]) for at in range(3)]
    sketches = [part._score_sketch() for part in parts]
    merged, other = hw.merge(parts)._score_sketch(), hw.merge([hw.merge(parts[:2]), parts[2]])._score_sketch()
    known = base._score_sketch().counts
    np.testing.assert_allclose(merged.counts, known + sum(one.counts - known for one in sketches), atol=1e-9)
    np.testing.assert_allclose(other.counts, merged.counts, atol=1e-9)
    assert merged.rows == pytest.approx(4200.0)


@pytest.mark.parametrize("options", [{}, {"parts": 2}, {"half_life": 3000.0}, {"algorithm": "online-em"}])
def test_cuts_and_files_change_nothing(options, tmp_path):
    rows = stream(7000)
    model = hw.GaussianMixture(2, random_state=0, warm_up=500, reservoir=0, **options)
    whole = hw.GaussianMixture(2, random_state=0, warm_up=500, reservoir=0, **options).partial_fit(rows)
    for begin, end in ((0, 620), (620, 700), (700, 703), (703, 4000), (4000, 7000)):
        model.partial_fit(rows[begin:end])
        if begin == 620:
            model.save(tmp_path / "model.hw")
            model = hw.load(tmp_path / "model.hw")
    np.testing.assert_allclose(model._score_sketch().counts, whole._score_sketch().counts, atol=1e-6)
    np.testing.assert_allclose(model.anomaly_pvalue(rows[:50]), whole.anomaly_pvalue(rows[:50]), rtol=1e-6)


def test_weights_are_copies():
    rows = stream(3000)
    model = hw.GaussianMixture(2, random_state=0, warm_up=500, reservoir=0).partial_fit(rows[:500])
    twice, heavy = (model.branch().partial_fit(rows[500:600], sample_weight=np.full(100, weight)) for weight in (1.0, 2.0))
    assert heavy._score_sketch().rows - twice._score_sketch().rows == pytest.approx(100.0)
    light = model.branch().partial_fit(rows[500:600], sample_weight=np.repeat([0.0, 1.0], 50))
    assert light._score_sketch().rows == pytest.approx(550.0)


def test_what_is_forgotten_fades():
    rows = np.concatenate([stream(8000), 40.0 * stream(8000)])
    kept, faded = (hw.GaussianMixture(2, random_state=0, half_life=life).partial_fit(rows) for life in (None, 1000.0))
    assert faded._score_sketch().rows < 2000.0 < 5000.0 < kept._score_sketch().rows
