"""Every law, for every model and every algorithm, from one table."""

import law_table
import numpy as np
import pytest
from begun_models import BEGUN_MODELS
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from law_rows import SparseFed, rows, rows_for
from law_table import (
    ANALYSER_MODELS,
    ARRIVAL_MODELS,
    BACKGROUND_MODELS,
    BAYESIAN_MODELS,
    CHAIN_MODELS,
    COLUMN_MODELS,
    COUNT_MODELS,
    COUNTED_CHAINS,
    DIRECTION_MODELS,
    GAP_MODELS,
    GAP_REGRESSIONS,
    GAPPED_CHAINS,
    GROUPED_CHAINS,
    HEALING_MODELS,
    LASTING_CHAINS,
    MIXED_CHAINS,
    MODELS,
    NOISE_MODELS,
    OFTEN_HEALING,
    PLAIN_GAP_MODELS,
    REGRESSION_MODELS,
    ROUNDED_MODELS,
    SPECTRA_MODELS,
    STARTED_CHAINS,
    STUDENT_MODELS,
    SWITCHING_CHAINS,
    TOPIC_MODELS,
    is_matching,
)  # fmt: skip
from sklearn.base import clone

import headwater as hw
from headwater.checks import (
    LAWS,
    STREAM_LAWS,
    applicable_laws,
    bad_input_is_refused,
    check_laws,
    memory_is_flat,
    the_state_is_finite,
)


def chain_laws(model):
    """Return the laws for chains. Rows have no weights, and the sum of two streams is not the stream of both.

    test_hidden_markov_passes.py tests that passes never lower the likelihood. Blocks of "auto" are longer than these streams.
    """
    laws = LAWS if model.algorithm in ("em", "vb") else (*LAWS, *STREAM_LAWS)
    symbols = isinstance(model, hw.CategoricalHMM)
    left_out = [bad_input_is_refused] * symbols + [memory_is_flat] * (model.algorithm == "auto")
    return [law for law in laws if law not in left_out]


def name(model, law):
    kind, parts = getattr(model, "covariance_type", type(model).__name__), getattr(model, "parts", 1)
    return f"{kind}-{model.algorithm}-{model.half_life}-{parts}-{law.__name__}"


def is_set(algorithm):
    """Return whether an algorithm has settings. They belong to the loop and not to a family, so one case of each is enough."""
    return not isinstance(algorithm, str) and not is_matching(algorithm)


# One algorithm of each kind: all rows at once, row by row, in batches, by draws, and by moments.
EVERY_WAY = ("auto", "em", "vb", "boem", "online-vb", "simulated-em", "moment-matching")


def comes_as_it_is(model):
    """Return whether nothing but the algorithm of a model is set: then every law is tested, and otherwise some of them."""
    usual = isinstance(model.algorithm, str) and model.half_life is None and getattr(model, "parts", 1) == 1
    kind, scaled = getattr(model, "covariance_type", "full"), getattr(model, "scale_columns", False)
    return usual and kind == "full" and not scaled and getattr(model, "n_components", 1) != "auto"


def is_told_by_full(model):
    """Return whether full covariances cover a case: other kinds are tested with every algorithm at its defaults.

    Spherical covariances share the kernels of diagonal ones, so they are tested with one algorithm of each kind.
    """
    rare = model.covariance_type == "spherical" and isinstance(model.algorithm, str) and model.algorithm not in EVERY_WAY
    return rare or (model.covariance_type != "full" and is_set(model.algorithm))


def is_told_by_sparse(model):
    """Return whether sparse rows cover a case: they test the settings. A Markov chain, a multinomial, needs fewer cases."""
    settings = is_set(model.algorithm) and not isinstance(model, SparseFed)
    rare = model.half_life is not None or (model.parts == 1 and model.algorithm not in EVERY_WAY)
    return settings or (isinstance(model, hw.MarkovMixture) and rare)


def is_often_gapped(model):
    """Return whether a case with gaps runs by default: one covariance for each kind of algorithm."""
    often = {("full", "em"), ("tied", "online-em"), ("diag", "vb"), ("spherical", "auto")}
    return (model.covariance_type, model.algorithm) in often


def made(cases):
    """Return the cases of which tests are made: without slow ones, if they would be left out."""
    return cases if law_table.WITH_SLOW else [case for case in cases if not case.marks]


ALL, IN_TURN, SLOW = "all laws", "every third law", "no law by default"
TURNS = 3


def kind_of(model):
    """Return the public class of a model; subclasses in the table differ only in the rows that they are given."""
    return next(kind for kind in type(model).__mro__ if kind.__module__.startswith("headwater."))


def law_cases(models, share, laws_of=applicable_laws):
    """Return one case for each model and each of its laws; `share` says from a number and a model which run by default.

    Of models in turn, each is tested by every third law, beginning with another law than the one before, so that each law is
    tested on a third of them. If no model of a kind meets a law in this way, the first one that is in turn does.
    """
    pairs = [(number, model, place, law) for number, model in enumerate(models) for place, law in enumerate(laws_of(model))]
    shares = [share(number, model) for number, model in enumerate(models)]
    turns = np.cumsum([some == IN_TURN for some in shares])
    runs = {(number, place) for number, _, place, _ in pairs if shares[number] == ALL}
    runs |= {(n, place) for n, _, place, _ in pairs if shares[n] == IN_TURN and (turns[n] + place) % TURNS == 0}
    met = {(kind_of(model), law) for number, model, place, law in pairs if (number, place) in runs}
    for number, model, place, law in pairs:
        if shares[number] == IN_TURN and (kind_of(model), law) not in met:
            met.add((kind_of(model), law))
            runs.add((number, place))
    return [
        pytest.param(model, law, id=f"{number}-{name(model, law)}", marks=() if (number, place) in runs else pytest.mark.slow)
        for number, model, place, law in pairs
    ]


def in_turn(*, all_laws=(), third=()):
    """Return a share that goes by the number of a model in its table."""
    return lambda number, model: ALL if number in all_laws else IN_TURN if number in third else SLOW


def settings_in_turn(left_out=lambda model: False):
    """Return a share: all laws for models with nothing set, every third for the others, none for those that are left out."""
    return lambda number, model: SLOW if left_out(model) else ALL if comes_as_it_is(model) else IN_TURN


def share_of_columns(number, model):
    """Return the share of a mixture of columns: all laws for one of each family and kind of columns with nothing set."""
    if model.algorithm not in ("auto", "em", "vb"):
        return SLOW
    first = model.algorithm == "auto" and getattr(model, "exposure", None) is None
    if isinstance(model, hw.MixedMixture):  # one with searches, and one of skewed columns
        first = first and (model.reservoir == "auto" or "lognormal" in (model.columns or {}).values())
    return ALL if first else IN_TURN


def share_of_counts(number, model):
    """Return the share of a model of counts; sparse rows are the same counts in another layout, and are tested in turn."""
    if is_told_by_sparse(model):
        return SLOW
    return ALL if comes_as_it_is(model) and not isinstance(model, SparseFed) else IN_TURN


CASES = law_cases(MODELS, settings_in_turn(is_told_by_full))
COUNT_CASES = law_cases(COUNT_MODELS, share_of_counts)
FACTOR_CASES = law_cases(
    TOPIC_MODELS + SPECTRA_MODELS,
    settings_in_turn(lambda model: model.half_life is not None or model.parts > 1),
)
COLUMN_CASES = law_cases(COLUMN_MODELS, share_of_columns)
ARRIVAL_CASES = law_cases(ARRIVAL_MODELS, settings_in_turn(lambda model: model.half_life is not None or model.parts > 1))
PLAIN_GAP_CASES = law_cases(PLAIN_GAP_MODELS, lambda number, model: ALL if is_often_gapped(model) else SLOW)
GAP_CASES = law_cases(GAP_MODELS, in_turn(all_laws=[0], third=[6]))
ROUNDED_CASES = law_cases(ROUNDED_MODELS, in_turn(all_laws=[0, 1]))
# These two know a density of rows, and would score them here with their errors.
WITHOUT_ERRORS = ("rows_are_drawn_from_the_density_that_scores_them", "modes_are_the_best_parameters")
NOISE_CASES = law_cases(
    NOISE_MODELS,
    in_turn(third=[0, 1]),
    lambda model: [law for law in applicable_laws(model) if law.__name__ not in WITHOUT_ERRORS],
)
HEALING_CASES = law_cases(HEALING_MODELS, in_turn(all_laws=[0], third=range(1, len(OFTEN_HEALING))))
DIRECTION_CASES = law_cases(DIRECTION_MODELS + ANALYSER_MODELS, in_turn(all_laws=[0, 14], third=[1, 2, 15, 16]))
HEAVY_CASES = law_cases(STUDENT_MODELS + BACKGROUND_MODELS, in_turn(all_laws=[0, 21], third=[2, 5, 16, 18, 22, 25, 39, 40]))
BAYESIAN_CASES = law_cases(BAYESIAN_MODELS, in_turn(all_laws=[0], third=[1, 2, 6]))
REGRESSION_CASES = law_cases(REGRESSION_MODELS, settings_in_turn(lambda model: is_set(model.algorithm)))
GAP_REGRESSION_CASES = law_cases(GAP_REGRESSIONS, in_turn(third=[0, 1]))
CHAIN_CASES = law_cases(CHAIN_MODELS, in_turn(all_laws=[1, 16], third=[5, 14]), chain_laws)
GAPPED_CHAIN_CASES = law_cases(GAPPED_CHAINS, in_turn(all_laws=[1], third=[4]), chain_laws)
COUNTED_CHAIN_CASES = law_cases(COUNTED_CHAINS, in_turn(all_laws=[1], third=[4, 11, 23]), chain_laws)
GROUPED_CHAIN_CASES = law_cases(GROUPED_CHAINS, in_turn(third=[1, 2, 6]), chain_laws)
LASTING_CHAIN_CASES = law_cases(LASTING_CHAINS, in_turn(third=[1, 2]), chain_laws)
MIXED_CHAIN_CASES = law_cases(MIXED_CHAINS, in_turn(third=[0, 3]), chain_laws)
SWITCHING_CASES = law_cases(SWITCHING_CHAINS, in_turn(all_laws=[1], third=[3, 13]), chain_laws)
STARTED_CASES = law_cases(STARTED_CHAINS, in_turn(all_laws=[1], third=[37]), chain_laws)
BEGUN_CASES = law_cases(
    BEGUN_MODELS,
    in_turn(third=range(len(BEGUN_MODELS))),
    lambda model: chain_laws(model) if model._traits.chained else applicable_laws(model),
)


def short_stream(model):
    """Return a model with half of the warm-up, and rows for it and five batches of 40; a third of them also begins a stream.

    A search for the number of components has the full warm-up, since few rows find few components.
    """
    warm_up = model.warm_up if getattr(model, "n_components", 1) == "auto" else model.warm_up // 2
    return clone(model).set_params(warm_up=warm_up), rows_for(model)[: 9 * warm_up // 2].copy()


@pytest.mark.parametrize(("model", "law"), made(STARTED_CASES))
def test_law_of_chains_from_a_given_start(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(COUNTED_CHAIN_CASES))
def test_law_of_chains_of_counts(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(MIXED_CHAIN_CASES))
def test_law_of_chains_of_tables(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(LASTING_CHAIN_CASES))
def test_law_of_chains_with_durations(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(GROUPED_CHAIN_CASES))
def test_law_of_chains_of_groups(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(BEGUN_CASES))
def test_law_of_streams_without_a_warm_up(model, law):
    law(clone(model), rows_for(model)[:300].copy())


@pytest.mark.parametrize(("model", "law"), made(SWITCHING_CASES))
def test_law_of_switching_regressions(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(GAPPED_CHAIN_CASES))
def test_law_of_chains_with_gaps(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(COLUMN_CASES))
def test_law_of_columns(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(CASES))
def test_law(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(PLAIN_GAP_CASES))
def test_law_of_plain_gaps(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(GAP_CASES))
def test_law_of_gaps(model, law):
    law(clone(model), rows_for(model).copy())


@pytest.mark.parametrize(("model", "law"), made(ROUNDED_CASES))
def test_law_of_rounded_rows(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(NOISE_CASES))
def test_law_of_measured_rows(model, law):
    law(clone(model), rows_for(model).copy())


@pytest.mark.parametrize(("model", "law"), made(COUNT_CASES))
def test_law_of_counts(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(REGRESSION_CASES))
def test_law_of_regressions(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(GAP_REGRESSION_CASES))
def test_law_of_regressions_with_gaps(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(DIRECTION_CASES))
def test_law_of_directions_and_factor_analysers(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(BAYESIAN_CASES))
def test_law_of_bayesian_mixtures(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(HEAVY_CASES))
def test_law_of_heavy_tails(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(HEALING_CASES))
def test_law_of_healing(model, law):
    law(clone(model), rows_for(model).copy())


@pytest.mark.parametrize(("model", "law"), made(FACTOR_CASES))
def test_law_of_factors(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(ARRIVAL_CASES))
def test_law_of_arrivals(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), made(CHAIN_CASES))
def test_law_of_chains(model, law):
    law(*short_stream(model))


def tried(cases, by_default):
    """Models and laws of some cases."""
    return [case.values for case in cases if not (by_default and case.marks)]


@pytest.mark.parametrize(
    "cases", [CASES, COUNT_CASES, FACTOR_CASES, ARRIVAL_CASES, REGRESSION_CASES, COLUMN_CASES, HEAVY_CASES]
)
def test_every_law_is_tried_on_every_model_by_default(cases):
    each = [{(kind_of(model), law) for model, law in tried(cases, by_default)} for by_default in (False, True)]
    assert each[0] == each[1]


@pytest.mark.parametrize("cases", [CASES, COUNT_CASES, FACTOR_CASES, ARRIVAL_CASES, REGRESSION_CASES])
def test_every_law_is_tried_on_every_algorithm_by_default(cases):
    found = {(model.algorithm, law) for model, law in tried(cases, True) if comes_as_it_is(model)}
    assert found == {(model.algorithm, law) for model, law in tried(cases, False) if comes_as_it_is(model)}


def test_check_laws_runs_them_all():
    check_laws(hw.GaussianMixture(2, warm_up=50, random_state=0), rows())


finite = st.floats(-1e99, 1e99, allow_nan=False)


@pytest.mark.covering()
@settings(max_examples=25, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(3, 40), st.integers(1, 3)), elements=finite))
@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        (kind, algorithm)
        for kind in ("full", "tied", "diag", "spherical")
        for algorithm in ("auto", "online-em", "boem", "soem", "quasi-bayes", "moment-matching")
        if (kind, algorithm) != ("tied", "moment-matching")
    ],
)
def test_any_finite_rows_leave_a_finite_state(kind, algorithm, X):
    the_state_is_finite(hw.GaussianMixture(2, covariance_type=kind, algorithm=algorithm, warm_up=10, random_state=0), X)


@pytest.mark.covering()
@settings(max_examples=25, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(3, 40), st.integers(2, 4)), elements=finite))
@pytest.mark.parametrize(
    ("gating", "algorithm"),
    [("fixed", word) for word in ("auto", "em", "online-em", "boem", "soem", "quasi-bayes")] + [("input", "online-vb")],
)
def test_any_finite_targets_leave_a_finite_state(gating, algorithm, rows):
    model = hw.RegressionMixture(2, gating=gating, algorithm=algorithm, warm_up=10, random_state=0)
    the_state_is_finite(model, rows)
