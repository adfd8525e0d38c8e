"""Models that a user can make by few calls, whose files were refused or went on otherwise than they."""

import made_up_files
import numpy as np
import pytest

import headwater as hw
from headwater.estimators import model_file
from headwater.io.files import container
from headwater.io.files.records import Damaged, tables_of

RNG = np.random.default_rng(0)
DOCUMENTS = RNG.poisson(3.0, size=(150, 4)).astype(float) + 1.0


def loaded(model):
    return model_file.from_bytes(model_file.to_bytes(model))


def test_one_component_of_many_can_be_saved():
    """It has few of the rows that were learned."""
    X = 20.0 * np.repeat(np.arange(20), 20)[:, None] + RNG.normal(size=(400, 2))
    pruned = hw.GaussianMixture(20, random_state=0).fit(X).prune(0.9)
    assert loaded(pruned).weights_.tolist() == [1.0]
    assert loaded(pruned.partial_fit(X[:50])).n_samples_seen_ == 450


@pytest.mark.parametrize("kind", ["multinomial", "markov", "gaussian"])
def test_a_model_is_pruned_with_the_prior_that_it_was_learned_with(kind):
    """A prior that was set since has another shape, perhaps, and is refused when learning goes on, as in the whole model."""
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
    """Passes of a fit report parameters that are one step ahead of the statistics: here all rows change their component."""
    rows = np.random.default_rng(0).normal(size=(70, 4))
    model = hw.MultinomialMixture(2, random_state=0, warm_up=60, warm_start=True).partial_fit(np.abs(np.round(rows, 1)) + 0.1)
    model.partial_fit(np.full((2, 4), 1e30)).fit(np.full((70, 4), 1e30))
    pruned = model.prune(0.05)
    assert loaded(pruned).n_samples_seen_ == 70
    assert pruned._state.statistics.count.sum() > 0.5


def test_tables_are_saved_with_their_factor():
    """A table that is the same but for its factor makes scores whose last digits differ."""
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
    model = hw.MultinomialMixture(2, random_state=0, warm_up=60, algorithm=hw.Auto(batch_size=20))
    model.partial_fit(np.full((70, 4), 1e30), sample_weight=1e-3 * np.random.default_rng(0).random(70))
    model.partial_fit(np.full((70, 4), 1e30))
    assert loaded(model).n_samples_seen_ == 140


def test_statistics_are_those_that_their_algorithm_keeps():
    """Learning would ask for masses that the others do not have."""
    for situation, other in (("gaussian", "moment-matching"), ("matched", "boem")):
        header, arrays = made_up_files.file_of(situation)
        header["parameters"]["algorithm"] = other
        with pytest.raises(Damaged, match="cannot be read"):
            model_file.from_bytes(container.to_bytes(header, arrays))
