"""Refinement: estimates from the reservoir, moves and their acceptance, and what users see."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import headwater as hw
from headwater.core.batch import Batch
from headwater.core.contracts import StartSettings
from headwater.core.plan import MOST_BLOCKS
from headwater.families.components import find_near, find_supported
from headwater.families.gaussian import Gaussian
from headwater.families.multinomial import Multinomial
from headwater.models.extrapolation import climb_rows
from headwater.models.mixture import Mixture
from headwater.policies import refinement, refinement_record, search_policy
from headwater.policies.control_variate import ControlVariate, correct
from headwater.policies.search_context import compare_scores
from headwater.policies.split_merge import Move, Removal, Split, View, apply_move, find_removals, find_split

CENTRES = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 6.0]])


def drawn(rows, seed=0, centres=CENTRES):
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(centres), size=rows)
    return centres[labels] + rng.normal(size=(rows, 2)), labels


@pytest.fixture(scope="module")
def begun():
    """Return a mixture of four components, its prior, and parameters near a fit."""
    model = Mixture(4, Gaussian(4))
    start = model.start(Batch(drawn(800)[0]), 0, StartSettings())
    return model, start.prior, start.parameters


def parameters_of(model, prior, rows, labels):
    """Return parameters of given groups."""
    shares = np.eye(model.n_components)[labels]
    totals = model.zeros(rows.shape[1])
    blank = model.readout("mode", prior, totals, 1.0)
    _, totals = model.family.estep(blank.components, np.zeros(model.n_components), Batch(rows), totals,
                                   responsibilities=shares, given=True)  # fmt: skip
    return model.readout("mode", prior, totals, 1.0), totals.scaled(1.0 / len(rows))


def density(model, parameters, rows):
    """Return densities of components times their weights, by a slow computation."""
    means, covariances = model.family.means(parameters.components), model.family.covariances(parameters.components)
    weights = np.exp(parameters.log_weights)
    return np.stack(
        [w * multivariate_normal(m, c).pdf(rows) for w, m, c in zip(weights, means, covariances, strict=True)], axis=1
    )


def test_kept_rows_tell_all_if_all_are_kept(begun):
    model, prior, reference = begun
    rows, labels = drawn(600, 1)
    other, _ = parameters_of(model, prior, rows[:300], labels[:300])
    at_reference, at_other = (model.summarize(one, Batch(rows)).mean for one in (reference, other))
    told = correct(model, prior, 600.0, at_other, at_reference - model.summarize(reference, Batch(rows)).mean, 600)
    for name in ("count", "first", "second"):
        np.testing.assert_allclose(getattr(told, name), getattr(at_other, name), rtol=1e-12, atol=1e-12)


def test_kept_rows_tell_the_difference_better_than_the_whole(begun):
    model, prior, reference = begun
    rows, _ = drawn(40_000, 2)
    groups = model.posterior(reference, Batch(rows[:4000])).argmax(axis=1)
    near, _ = parameters_of(model, prior, rows[:4000], groups)
    exact, before = (model.summarize(one, Batch(rows)).mean for one in (near, reference))
    kept = Batch(rows[::40])
    at_near, at_reference = (model.summarize(one, kept).mean for one in (near, reference))
    told = correct(model, prior, 40_000.0, at_near, before - at_reference, 1000)

    def off(statistics):
        return np.abs(statistics.second - exact.second).max()

    assert off(told) < 0.05 * off(at_near)


def test_what_no_rows_could_say_is_mended(begun):
    model, prior, reference = begun
    kept = model.summarize(reference, Batch(drawn(400, 3)[0])).mean
    wrong = kept.zeros_like().writable()
    wrong.second[1] -= 10.0 * kept.second[1]
    told = correct(model, prior, 400.0, kept, wrong, 400)
    np.testing.assert_allclose(told.second, kept.second, rtol=1e-12)
    assert np.isfinite(model.log_likelihood(model.readout("mode", prior, told, 400.0), Batch(drawn(10)[0]))).all()


@pytest.mark.parametrize("rows, factor", [(40, 6.0), (100_000, 2.9)])
def test_chance_is_no_reason_to_mend(rows, factor):
    width = 8
    known = np.cov(np.random.default_rng(0).normal(size=(2 * width, width)), rowvar=False)[None]
    values, vectors = np.linalg.eigh(known[0])
    off = (vectors * values * np.where(np.arange(width) == 3, factor, 1.0)) @ vectors.T
    enough = np.array([float(rows)])
    assert find_near(off[None], known, enough).all()
    assert find_near(known / factor, known, enough).all()
    assert not find_near(off[None] * 20.0, known, enough).any()
    assert not find_near(known - 2.0 * values[0] * np.eye(width), known, enough).any()  # not positive definite
    assert find_near(np.full((1, width), factor), np.ones((1, width)), enough).all()
    assert not find_near(np.full((1, width), -1.0), np.ones((1, width)), enough).any()
    counts = np.array([30.0])
    assert find_supported(counts, counts, np.array([4.0])).all() and not find_supported(-counts, counts, np.array([4.0])).any()
    assert not find_supported(3.0 * counts, counts, np.array([1000.0])).any()


def test_rows_of_a_rare_component_are_believed(begun):
    """All rows determine it well, and the reservoir hardly does: the estimate must follow all rows."""
    model, prior, reference = begun
    rows, labels = drawn(40_000, 22)
    rows = rows[(labels != 1) | (np.arange(40_000) % 50 == 0)]
    before = model.summarize(reference, Batch(rows)).mean
    kept = Batch(rows[:: len(rows) // 600])
    at_reference = model.summarize(reference, kept).mean
    told = correct(model, prior, float(len(rows)), at_reference, before - at_reference, len(kept))
    np.testing.assert_allclose(told.second, before.second, rtol=1e-9, atol=1e-12)
    assert np.abs(at_reference.second - before.second).max() > 0.01


def test_counts_that_are_mended_keep_those_of_each_word():
    model = Mixture(2, Multinomial(2))
    rows = np.random.default_rng(0).poisson(1.0, size=(60, 5)).astype(float)
    start = model.start(Batch(rows), 0, StartSettings())
    kept = model.summarize(start.parameters, Batch(rows)).mean
    move = model.recombine(kept, np.array([[-3.0, 0.0], [3.0, 0.0]]))
    told = correct(model, start.prior, 60.0, kept, move, 60)
    words = np.asarray(told.table)
    assert (words >= 0.0).all()
    np.testing.assert_allclose(words.sum(axis=1), np.asarray(kept.table).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(words.sum(axis=0), told.length[0], rtol=1e-12)


def test_long_steps_climb_as_high_as_many_short_ones(begun):
    model, prior, reference = begun
    rows = Batch(drawn(1500, 4, 0.3 * CENTRES)[0])  # components overlap, so EM is slow
    kept = ControlVariate(model, "mode", prior, rows, 1500.0)
    statistics = model.summarize(reference, rows).mean
    slow = statistics
    for _ in range(60):
        slow, score = kept.look(kept.parameters(slow))
    fast = climb_rows(kept, statistics, 60)
    assert fast.passes <= 60
    assert fast.score > score - 1e-6
    np.testing.assert_allclose(fast.statistics.count, kept.look(fast.parameters)[0].count, rtol=1e-12)


def view_of(model, prior, parameters, rows):
    return View.of(model, "mode", prior, parameters, Batch(rows), "kmeans", 1)


def wrong_start(rows, labels):
    """Return parameters with two components on one cluster, and one component on two clusters."""
    groups = np.array([0, 1, 2, 2])[labels].copy()
    groups[np.flatnonzero(labels == 0)[::2]] = 3
    return groups


def test_mergers_are_rated_as_the_whole_density_is(begun):
    model, prior, _ = begun
    rows, labels = drawn(500, 5)
    parameters, statistics = parameters_of(model, prior, rows, wrong_start(rows, labels))
    view = view_of(model, prior, parameters, rows)
    parts = density(model, parameters, rows)
    np.testing.assert_allclose(view.scores, np.log(parts.sum(axis=1)), rtol=1e-9)
    for fall in find_removals(view, statistics, 500.0, frozenset()):
        if len(fall.components) == 1:
            (k,) = fall.components
            weights = np.exp(parameters.log_weights)
            left = np.delete(parts, k, axis=1).sum(axis=1) / (1.0 - view.shares[k])
            assert weights.sum() == pytest.approx(1.0)
            expected = np.mean(np.log(np.maximum(left, 1e-12 * parts.sum(axis=1) / (1.0 - view.shares[k]))) - view.scores)
        else:
            i, j = fall.components
            matrix = np.eye(4)
            matrix[i, j], matrix[j, j] = 1.0, 0.0
            merged = model.readout("mode", prior, model.recombine(statistics, matrix), 500.0)
            one = density(model, merged, rows)[:, i]
            rest = np.delete(parts, [i, j], axis=1).sum(axis=1)
            touched = (parts[:, i] + parts[:, j]) / parts.sum(axis=1) > 1e-3
            floor = 1e-12 * parts.sum(axis=1)
            expected = np.sum((np.log(np.maximum(rest, floor) + one) - view.scores)[touched]) / len(rows)
        assert fall.gain == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_a_split_parts_two_clusters_and_gains_what_it_says(begun):
    model, prior, _ = begun
    rows, labels = drawn(800, 6)
    parameters, statistics = parameters_of(model, prior, rows, wrong_start(rows, labels))
    view = view_of(model, prior, parameters, rows)
    found = find_split(view, 2, np.random.default_rng(0))
    assert found is not None
    centres = found.statistics.first / found.statistics.count[:, None] + prior.components.origin
    distances = np.linalg.norm(centres[:, None] - CENTRES[2:], axis=2)
    assert sorted(distances.argmin(axis=1)) == [0, 1] and distances.min(axis=1).max() < 0.3
    move = Move(found, Removal((0, 3), 0.0), found.gain)
    after = apply_move(model, statistics, move)
    assert after.count.sum() == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(after.first[0], statistics.first[0] + statistics.first[3], rtol=1e-12)
    better = model.readout("mode", prior, after, 800.0)
    assert model.log_likelihood(better, Batch(rows)).mean() > view.scores.mean() + 0.5 * found.gain > view.scores.mean()


def test_a_component_of_few_rows_is_not_split(begun):
    model, prior, _ = begun
    rows, labels = drawn(400, 7)
    parameters, _ = parameters_of(model, prior, rows[:20], labels[:20])
    view = view_of(model, prior, parameters, rows[:20])
    assert find_split(view, 0, np.random.default_rng(0)) is None


def test_verdicts_are_paired_and_weighted():
    rng = np.random.default_rng(0)
    before = rng.normal(size=400)
    after = before + 0.1 + 0.5 * rng.normal(size=400)
    weights = rng.integers(1, 3, size=400).astype(float)
    verdict = compare_scores(after, before, weights)
    difference = after - before
    mean = np.average(difference, weights=weights)
    assert verdict.gain == pytest.approx(mean)
    assert verdict.z == pytest.approx(mean / (np.sqrt((weights**2 * (difference - mean) ** 2).sum()) / weights.sum()))
    assert compare_scores(np.full(3, np.nan), np.zeros(3), np.ones(3)).z == -np.inf


def streamed(rows, chunk=1000, **parameters):
    model = hw.GaussianMixture(4, random_state=0, **parameters)
    for at in range(0, len(rows), chunk):
        model.partial_fit(rows[at : at + chunk])
    return model


def test_a_bad_start_is_left():
    rows, _ = drawn(6000, 8)
    bad = np.array([[0.0, 0.0], [0.1, 0.1], [6.0, 0.0], [3.0, 6.0]])
    held_out = drawn(3000, 9)[0]
    stuck = streamed(rows, means_init=bad, warm_up=500, reservoir=0).score(held_out)
    model = streamed(rows, means_init=bad, warm_up=500)
    assert model.score(held_out) > stuck + 0.1
    state = model._read().stream
    assert state.records["refinement"].moves >= 1
    assert {tuple(centre) for centre in (6.0 * np.round(model.means_ / 6.0)).tolist()} == {tuple(c) for c in CENTRES.tolist()}


def test_a_sorted_stream_is_as_good_as_a_mixed_one():
    rows, labels = drawn(8000, 10)
    held_out = drawn(3000, 11)[0]
    order = np.argsort(labels, kind="stable")
    mixed = streamed(rows).score(held_out)
    healed = streamed(rows[order]).score(held_out)
    plain = streamed(rows[order], reservoir=0).score(held_out)
    assert plain < mixed - 0.1
    assert healed > mixed - 0.01


@pytest.mark.parametrize("covariance_type", ["tied", "diag", "spherical"])
def test_every_kind_of_covariance_heals(covariance_type):
    rows, labels = drawn(6000, 12)
    order = np.argsort(labels, kind="stable")
    model = streamed(rows[order], covariance_type=covariance_type)
    assert model.score(drawn(2000, 13)[0]) > streamed(rows, covariance_type=covariance_type).score(drawn(2000, 13)[0]) - 0.02


def test_reading_on_the_way_changes_no_answer():
    rows, labels = drawn(5000, 14)
    rows = rows[np.argsort(labels, kind="stable")]
    model = hw.GaussianMixture(4, random_state=0)
    for at in range(0, 5000, 500):
        model.partial_fit(rows[at : at + 500])
        model.means_, model.score(rows[:10])
    np.testing.assert_array_equal(model.means_, streamed(rows, 500).means_)


def test_one_row_calls_never_wait(monkeypatch):
    rows = drawn(3500, 15)[0]
    model = streamed(rows, warm_up=500)
    monkeypatch.setattr(search_policy, "refine", lambda *_: pytest.fail("a one-row call has healed"))
    model.score_one(rows[0])
    model.learn_one(rows[0])
    model.predict_one(rows[0])


def test_without_a_reservoir_no_row_is_kept(tmp_path):
    rows = drawn(4000, 16)[0]
    assert not streamed(rows, reservoir=0).holds_rows_
    model = streamed(rows, reservoir=300)
    assert model.holds_rows_ and len(model._state.records["reservoir"]) == 300
    model.save(tmp_path / "without.hw", raw_rows=False)
    bare = hw.load(tmp_path / "without.hw")
    assert not bare.holds_rows_
    np.testing.assert_allclose(bare.means_, model.means_, rtol=1e-9)
    assert not hw.GaussianMixture(4, random_state=0).fit(rows).holds_rows_


def test_healing_costs_what_it_may():
    model = streamed(drawn(30_000, 17)[0], reservoir=1000, warm_up=300)
    spent, state = model._state.records["refinement"].spent, model._state
    assert (
        0.0 < spent <= refinement_record.START_LOOKS * 1000 + refinement_record.STREAM_LOOKS * (state.rows - 1000) + 12.0 * 1000
    )


def test_surprise_is_more_than_chance():
    known = refinement_record.Refinement(rows=1000, expected=-3.0, deviation=1.0)
    assert known.after(-3.01 * 500, 500.0).surprise == 0.0
    assert known.after(-3.5 * 20, 20.0).surprise == 0.0  # too few rows to decide
    assert known.after(-3.5 * 500, 500.0).surprise == pytest.approx(0.5)


def test_streams_that_healed_apart_are_merged():
    rows, _ = drawn(12_000, 18)
    base = hw.GaussianMixture(4, random_state=0).partial_fit(rows[:3000])
    parts = [base.branch().partial_fit(rows[3000 + 3000 * at : 6000 + 3000 * at]) for at in range(3)]
    merged = hw.merge(parts)
    assert merged.n_samples_seen_ == 12_000
    whole = streamed(rows)
    held_out = drawn(4000, 19)[0]
    assert merged.score(held_out) == pytest.approx(whole.score(held_out), abs=2e-3)
    assert len(merged._state.records["reservoir"]) == 12_000  # each row once
    apart = hw.merge([streamed(rows[:6000]), streamed(rows[6000:])])
    assert apart.score(held_out) == pytest.approx(whole.score(held_out), abs=2e-3)


def test_labels_of_models_that_learned_apart_name_other_components():
    rows, labels = drawn(4000, 27)
    named = np.where(np.arange(4000) % 10 == 0, labels, -1)
    one = hw.GaussianMixture(4, random_state=0, warm_up=500).partial_fit(rows[:2000], labels=named[:2000])
    turned = np.where(named >= 0, (named + 1) % 4, -1)
    other = hw.GaussianMixture(4, random_state=1, warm_up=500).partial_fit(rows[2000:], labels=turned[2000:])
    merged = hw.merge([one, other])
    assert merged.score(rows) > max(one.score(rows), other.score(rows)) - 1e-3
    kept = merged._state.records["reservoir"].batch
    said = kept.labels >= 0
    np.testing.assert_array_equal(merged.predict(kept.X[said]), kept.labels[said])


def test_components_that_labels_name_stay_where_they_are():
    rows, labels = drawn(6000, 20)
    named = np.where(np.random.default_rng(1).random(6000) < 0.05, labels, -1)
    model = hw.GaussianMixture(4, random_state=0, warm_up=500)
    for at in range(0, 6000, 1000):
        model.partial_fit(rows[at : at + 1000], labels=named[at : at + 1000])
    np.testing.assert_allclose(model.means_, CENTRES, atol=0.2)


@pytest.mark.parametrize("name", ["regression", "counts"])
def test_other_families_make_the_same_moves(name):
    rng = np.random.default_rng(2)
    if name == "regression":
        slopes, labels = np.array([-4.0, 0.0, 4.0]), np.sort(rng.integers(3, size=6000))
        X = rng.normal(size=(6000, 1))
        y = slopes[labels] * X[:, 0] + 0.3 * rng.normal(size=6000)
        healed, plain = (hw.RegressionMixture(3, random_state=0, reservoir=rows) for rows in ("auto", 0))
        for model in (healed, plain):
            for at in range(0, 6000, 1000):
                model.partial_fit(X[at : at + 1000], y[at : at + 1000])
        assert healed.score_samples(X, y).mean() > plain.score_samples(X, y).mean() + 0.1
        np.testing.assert_allclose(np.sort(healed.coef_.ravel()), slopes, atol=0.1)
    else:
        chances = np.repeat(np.eye(3) * 0.8 + 0.2 / 3.0, 4, axis=1) / 4.0
        labels = np.sort(rng.integers(3, size=6000))
        X = np.stack([rng.multinomial(20, chances[k] / chances[k].sum()) for k in labels]).astype(float)
        healed, plain = (hw.MultinomialMixture(3, random_state=0, reservoir=rows) for rows in ("auto", 0))
        for model in (healed, plain):
            for at in range(0, 6000, 1000):
                model.partial_fit(X[at : at + 1000])
        assert healed.score(X) > plain.score(X) + 0.1


def test_a_climb_ends_where_rows_that_judge_score_best():
    """Where components overlap, a climb on few reservoir rows would overfit."""
    rows, _ = drawn(60_000, 23, 0.25 * CENTRES)
    held_out = drawn(20_000, 24, 0.25 * CENTRES)[0]
    model = streamed(rows, 5000, reservoir=1500, warm_up=1000)
    plain = streamed(rows, 5000, reservoir=0, warm_up=1000)
    assert model.score(held_out) > plain.score(held_out) - 1e-3


def test_a_contest_that_found_nothing_is_not_repeated(monkeypatch):
    rows, _ = drawn(20_000, 25)
    model = streamed(rows, 1000, reservoir=2000, warm_up=500)
    known = model._state.records["refinement"]
    assert known.content and not known.surprise
    monkeypatch.setattr(refinement, "_try_moves", lambda *_: pytest.fail("a contest was held again"))
    model.means_  # noqa: B018
    later = replace(model._state.records["refinement"], expected=known.expected + 5.0).after(0.0, 0.0)
    patched = model._state.with_record("refinement", replace(later, score=-100.0 * 2000, weight=2000.0))
    model._runtime = model._runtime.with_state(patched)
    with pytest.raises(pytest.fail.Exception, match="held again"):
        model.partial_fit(rows[:3000]).means_  # noqa: B018


def test_batches_grow_while_parameters_stand_still():
    rows = drawn(200, 26)[0]
    model = streamed(rows, warm_up=100)
    own = model._runtime.learner.plan
    rows_of_batch = own.batch_rows(own.model)
    grown = replace(model._state, progress=replace(model._state.progress, rows_seen=10**9))
    assert own.fold_rows(grown) == MOST_BLOCKS * rows_of_batch
    assert own.fold_rows(grown.without("refinement")) == rows_of_batch == own.fold_rows(model._state)


def test_models_that_are_too_wide_stream_plainly():
    rows = np.random.default_rng(0).normal(size=(80, 3000))
    assert not hw.GaussianMixture(2, covariance_type="diag", warm_up=50, random_state=0).partial_fit(rows).holds_rows_
    assert hw.GaussianMixture(2, covariance_type="diag", warm_up=50, random_state=0).partial_fit(rows[:, :9]).holds_rows_


def test_moves_say_what_they_do():
    assert Move(Split(2, 0.1, None), Removal((0, 3), -0.05), 0.05).word == "split 2, merge 0 and 3"
    assert Move(Split(2, 0.1, None), Removal((1,), -0.05), 0.05).word == "split 2, give up 1"


def test_a_state_that_heals_no_more_goes_on_as_a_plain_stream():
    rows = drawn(4000, 21)[0]
    model = streamed(rows[:3000])
    model.set_params(reservoir=0)
    model.partial_fit(rows[3000:])
    assert not model.holds_rows_ and model.n_samples_seen_ == 4000
    assert "refinement" not in model._state.records


def test_components_of_two_widths_in_one_place_are_told_apart():
    """No line separates them: one is the core, and the other surrounds it."""
    rng = np.random.default_rng(28)
    labels = rng.integers(3, size=8000)
    rows = (
        rng.normal(size=(8000, 2)) * np.array([0.4, 3.0, 1.0])[labels][:, None] + np.array([[0, 0], [0, 0], [30.0, 0]])[labels]
    )
    bad = np.array([[0.0, 0.0], [30.0, 1.0], [30.0, -1.0]])
    for reservoir, many in (("auto", 1), (0, 2)):
        model = hw.GaussianMixture(3, means_init=bad, warm_up=500, reservoir=reservoir, random_state=0)
        for at in range(0, 8000, 1000):
            model.partial_fit(rows[at : at + 1000])
        assert (np.abs(model.means_[:, 0] - 30.0) < 3.0).sum() == many
