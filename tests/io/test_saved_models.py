"""Models of a few calls whose files were once refused, or continued differently."""

import made_up_files
import numpy as np
import pytest

import headwater as hw
from headwater.core.records import fingerprint
from headwater.estimators import model_file
from headwater.io.files import container
from headwater.io.files.records import Damaged, tables_of

RNG = np.random.default_rng(0)
DOCUMENTS = RNG.poisson(3.0, size=(150, 4)).astype(float) + 1.0


def loaded(model):
    return model_file.from_bytes(model_file.to_bytes(model))


def test_one_component_of_many_can_be_saved():
    """The component has few of the learned rows."""
    X = 20.0 * np.repeat(np.arange(20), 20)[:, None] + RNG.normal(size=(400, 2))
    pruned = hw.GaussianMixture(20, random_state=0).fit(X).prune(0.9)
    assert loaded(pruned).weights_.tolist() == [1.0]
    assert loaded(pruned.partial_fit(X[:50])).n_samples_seen_ == 450


@pytest.mark.parametrize("kind", ["multinomial", "markov", "gaussian"])
def test_a_model_is_pruned_with_the_prior_that_it_was_learned_with(kind):
    """A prior that was set since may have another shape. It is refused when learning continues, as in the unpruned model."""
    name, value = {
        "multinomial": ("probability_concentration_prior", np.linspace(0.1, 2.0, 6)),
        "markov": ("transmat_prior", 3.0),
        "gaussian": ("algorithm", "moment-matching"),
    }[kind]
    model = made_up_files.learned(kind, {}).set_params(**{name: value})
    pruned = model.prune(0.05)
    again = loaded(pruned)
    np.testing.assert_array_equal(again.weights_, pruned.weights_)
    for one in (pruned, again):
        assert one.get_params()[name] is value or np.array_equal(one.get_params()[name], value)
        with pytest.raises(ValueError, match=f"{name} cannot change"):
            one.partial_fit(**made_up_files.every_model.stream_of(kind, (20,), 7)[0])


def test_components_that_statistics_hold_are_not_pruned():
    """A fit reports parameters one step ahead of the statistics: here all rows change their component in this step."""
    rows = np.random.default_rng(0).normal(size=(70, 4))
    model = hw.MultinomialMixture(2, random_state=0, warm_up=60, warm_start=True).partial_fit(np.abs(np.round(rows, 1)) + 0.1)
    model.partial_fit(np.full((2, 4), 1e30)).fit(np.full((70, 4), 1e30))
    pruned = model.prune(0.05)
    assert loaded(pruned).n_samples_seen_ == 70
    assert pruned._state.statistics.count.sum() > 0.5


def test_tables_are_saved_with_their_factor():
    """A table with another factor gives scores that differ in the last digits."""
    model = hw.MultinomialMixture(1, random_state=0, warm_up=60, algorithm=hw.Auto(batch_size=20))
    model.partial_fit(1e9 + DOCUMENTS)
    branch = model.branch().branch()
    for one in (branch, loaded(branch)):
        assert [table.factor for table in tables_of(one._state.parameters)] == [
            table.factor for table in tables_of(branch._state.parameters)
        ]
    scores = [one.learn_one(np.array([5.0, 0.2, 1.4, 0.6]))._state.unfolded.summary.score for one in (loaded(branch), branch)]
    assert scores[0] == scores[1]


def test_words_that_rounding_leaves_in_an_empty_component_are_no_damage():
    for seed in (2, 5):
        rng = np.random.default_rng(seed)
        model = hw.MultinomialMixture(2, random_state=0, warm_up=60, algorithm=hw.Auto(batch_size=20))
        for most in (1e-3, None):
            X = np.minimum(1e99 * np.abs(rng.normal(size=(70, 4)).clip(-5, 5)), 1e30)
            model.partial_fit(X, sample_weight=most and most * rng.random(70))
        assert loaded(model).n_samples_seen_ == 140


def test_heavy_sequences_can_be_merged():
    """With heavy rows, the rounding of a sum of counts, which fell below zero, is larger than the prior."""
    models = [hw.MarkovMixture(2, n_symbols=4, warm_up=60, random_state=0, half_life="auto") for _ in range(2)]
    models[0].partial_fit(np.zeros((1, 4), dtype=int))
    start = models[0].branch().partial_fit(np.zeros((7, 4), dtype=int), sample_weight=np.full(7, 1e20))
    merged = hw.merge([start, models[1].partial_fit(np.zeros((70, 4), dtype=int))])
    assert loaded(merged).n_samples_seen_ == 78
    assert (merged._state.statistics.length >= 0.0).all()


@pytest.mark.parametrize("parts", [1, 2])
def test_a_stream_whose_reservoir_is_about_to_be_full_goes_on_as_if_it_had_not_been_saved(parts):
    """Saving sorts the latest rows into the reservoir: whether all rows have room must not depend on it."""
    rng = np.random.default_rng(0)
    model = hw.GaussianMixture(2, warm_up=60, random_state=0, reservoir=100, parts=parts, algorithm=hw.Auto(batch_size=20))
    model.partial_fit(rng.normal(size=(72, 4)))
    again = loaded(model)
    for rows in (70, 70, 100):
        chunk = 5.0 + rng.normal(size=(rows, 4))
        model.partial_fit(chunk)
        again.partial_fit(chunk)
        assert fingerprint(again._state, size=16) == fingerprint(model._state, size=16)


def test_statistics_are_those_that_their_algorithm_keeps():
    """Other algorithms have no such masses."""
    for situation, other in (("gaussian", "moment-matching"), ("matched", "boem")):
        header, arrays = made_up_files.file_of(situation)
        header["parameters"]["algorithm"] = other
        with pytest.raises(Damaged, match="cannot be read"):
            model_file.from_bytes(container.to_bytes(header, arrays))


@pytest.mark.parametrize(
    "make", [hw.GaussianMixture, lambda k, **options: hw.GaussianMixture(k, covariance_type="diag", parts=2, **options)]
)
def test_rows_beyond_all_reach_of_the_components_are_learned_and_saved(make):
    """Their scores are as low as kernels make them, and lower than any sum that could be squared."""
    near, far = 1e-60 * RNG.normal(size=(150, 3)), 1e99 * RNG.normal(size=(40, 3)).clip(-5.0, 5.0)
    model = make(2, warm_up=60, random_state=0).partial_fit(near)
    for rows in (far[:7], far[7:], near):
        assert loaded(model.partial_fit(rows)).n_samples_seen_ == model.n_samples_seen_
        assert np.isfinite(model.means_).all()


@pytest.mark.parametrize("kind", [hw.GaussianMixture, hw.MixedMixture])
def test_models_of_rows_with_gaps_and_without_are_merged_and_saved(kind):
    """Columns that were all there are read out in one form, and those with gaps in another."""
    rows = np.column_stack([RNG.normal(size=(120, 2)) + 6.0 * RNG.integers(0, 2, size=(120, 1))])
    gapped = np.where(RNG.random(rows.shape) < 0.2, np.nan, rows)
    for first, second in ((rows, gapped), (gapped, rows)):
        parts = [kind(2, covariance_type="diag", warm_up=60, random_state=0).partial_fit(X) for X in (first, second)]
        for merged in (
            hw.merge(parts),
            hw.merge([parts[0].branch().partial_fit(first), parts[0].branch().partial_fit(second)]),
        ):
            again = loaded(merged)
            np.testing.assert_array_equal(
                again.partial_fit(rows).means_ if hasattr(merged, "means_") else again.weights_,
                merged.partial_fit(rows).means_ if hasattr(merged, "means_") else merged.weights_,
            )
