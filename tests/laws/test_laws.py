"""Every law, for every model and every algorithm, from one table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from law_table import (
    ANALYSER_MODELS,
    ARRIVAL_MODELS,
    BACKGROUND_MODELS,
    CHAIN_MODELS,
    COLUMN_MODELS,
    COUNT_MODELS,
    DIRECTION_MODELS,
    GAP_MODELS,
    GAPPED_CHAINS,
    HEALING_MODELS,
    MODELS,
    OFTEN_HEALING,
    PLAIN_GAP_MODELS,
    REGRESSION_MODELS,
    ROUNDED_MODELS,
    SPECTRA_MODELS,
    STARTED_CHAINS,
    STUDENT_MODELS,
    TOPIC_MODELS,
    SparseFed,
    is_matching,
    rows,
    rows_for,
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


def told_by_full(model):
    """Return whether full covariances cover a case: other kinds are tested with every algorithm at its defaults.

    Spherical covariances share the kernels of diagonal ones, so they are tested with one algorithm of each kind.
    """
    rare = model.covariance_type == "spherical" and isinstance(model.algorithm, str) and model.algorithm not in EVERY_WAY
    return rare or (model.covariance_type != "full" and is_set(model.algorithm))


def told_by_sparse(model):
    """Return whether sparse rows cover a case: they test the settings. A Markov chain, a multinomial, needs fewer cases."""
    settings = is_set(model.algorithm) and not isinstance(model, SparseFed)
    rare = model.half_life is not None or (model.parts == 1 and model.algorithm not in EVERY_WAY)
    return settings or (isinstance(model, hw.MarkovMixture) and rare)


def varied(model):
    """Return whether a case has forgetting or parts, which belong to the loop and are tested on mixtures."""
    return model.half_life is not None or model.parts > 1


def often_gapped(model):
    """Return whether a case with gaps runs by default: one covariance for each kind of algorithm."""
    often = {("full", "em"), ("tied", "online-em"), ("diag", "vb"), ("spherical", "auto")}
    return (model.covariance_type, model.algorithm) in often


CASES = [
    pytest.param(model, law, id=name(model, law), marks=pytest.mark.slow if told_by_full(model) else ())
    for model in MODELS
    for law in applicable_laws(model)
]
COUNT_CASES = [
    pytest.param(model, law, id=name(model, law), marks=pytest.mark.slow if told_by_sparse(model) else ())
    for model in COUNT_MODELS
    for law in applicable_laws(model)
]
FACTOR_CASES = [
    pytest.param(model, law, id=f"{number}-{name(model, law)}", marks=pytest.mark.slow if varied(model) else ())
    for number, model in enumerate(TOPIC_MODELS + SPECTRA_MODELS)
    for law in applicable_laws(model)
]
COLUMN_CASES = [
    pytest.param(
        model, law, id=f"{number}-{name(model, law)}", marks=() if model.algorithm in ("auto", "vb") else pytest.mark.slow
    )
    for number, model in enumerate(COLUMN_MODELS)
    for law in applicable_laws(model)
]
ARRIVAL_CASES = [
    pytest.param(model, law, id=f"{number}-{name(model, law)}", marks=pytest.mark.slow if varied(model) else ())
    for number, model in enumerate(ARRIVAL_MODELS)
    for law in applicable_laws(model)
]


PLAIN_GAP_CASES = [
    pytest.param(model, law, id=name(model, law), marks=() if often_gapped(model) else pytest.mark.slow)
    for model in PLAIN_GAP_MODELS
    for law in applicable_laws(model)
]
GAP_CASES = [
    pytest.param(model, law, id=f"{number}-{name(model, law)}", marks=() if number in (0, 6) else pytest.mark.slow)
    for number, model in enumerate(GAP_MODELS)
    for law in applicable_laws(model)
]
ROUNDED_CASES = [
    pytest.param(model, law, id=f"{number}-{name(model, law)}", marks=() if number < 2 else pytest.mark.slow)
    for number, model in enumerate(ROUNDED_MODELS)
    for law in applicable_laws(model)
]
HEALING_CASES = [
    pytest.param(model, law, id=f"{number}-{name(model, law)}", marks=() if model in OFTEN_HEALING else pytest.mark.slow)
    for number, model in enumerate(HEALING_MODELS)
    for law in applicable_laws(model)
]
DIRECTION_CASES = [
    pytest.param(model, law, id=f"{number}-{name(model, law)}", marks=() if number % 14 < 3 else pytest.mark.slow)
    for number, model in enumerate(DIRECTION_MODELS + ANALYSER_MODELS)
    for law in applicable_laws(model)
]
HEAVY_OFTEN = (0, 2, 16, 18, 21, 22, 39, 40)
HEAVY_CASES = [
    pytest.param(model, law, id=f"{number}-{name(model, law)}", marks=() if number in HEAVY_OFTEN else pytest.mark.slow)
    for number, model in enumerate(STUDENT_MODELS + BACKGROUND_MODELS)
    for law in applicable_laws(model)
]
REGRESSION_CASES = [
    pytest.param(
        model, law, id=f"{model.gating}-{model.fit_intercept}-{name(model, law)}",
        marks=pytest.mark.slow if is_set(model.algorithm) else (),
    )
    for model in REGRESSION_MODELS
    for law in applicable_laws(model)
]  # fmt: skip
CHAIN_CASES = [
    pytest.param(model, law, id=f"{number}-{name(model, law)}", marks=() if number in (1, 5, 14, 16) else pytest.mark.slow)
    for number, model in enumerate(CHAIN_MODELS)
    for law in chain_laws(model)
]


GAPPED_CHAIN_CASES = [
    pytest.param(model, law, id=f"{number}-{name(model, law)}", marks=() if number in (1, 4) else pytest.mark.slow)
    for number, model in enumerate(GAPPED_CHAINS)
    for law in chain_laws(model)
]


STARTED_CASES = [
    pytest.param(model, law, id=f"{number}-{name(model, law)}", marks=() if number in (1, 37) else pytest.mark.slow)
    for number, model in enumerate(STARTED_CHAINS)
    for law in chain_laws(model)
]


def short_stream(model):
    """Return a model with half of the warm-up, and rows for it and five batches of 40; a third of them also begins a stream.

    A search for the number of components has the full warm-up, since few rows find few components.
    """
    warm_up = model.warm_up if getattr(model, "n_components", 1) == "auto" else model.warm_up // 2
    return clone(model).set_params(warm_up=warm_up), rows_for(model)[: 9 * warm_up // 2].copy()


@pytest.mark.parametrize(("model", "law"), STARTED_CASES)
def test_law_of_chains_from_a_given_start(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), GAPPED_CHAIN_CASES)
def test_law_of_chains_with_gaps(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), COLUMN_CASES)
def test_law_of_columns(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), CASES)
def test_law(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), PLAIN_GAP_CASES)
def test_law_of_plain_gaps(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), GAP_CASES)
def test_law_of_gaps(model, law):
    law(clone(model), rows_for(model).copy())


@pytest.mark.parametrize(("model", "law"), ROUNDED_CASES)
def test_law_of_rounded_rows(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), COUNT_CASES)
def test_law_of_counts(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), REGRESSION_CASES)
def test_law_of_regressions(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), DIRECTION_CASES)
def test_law_of_directions_and_factor_analysers(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), HEAVY_CASES)
def test_law_of_heavy_tails(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), HEALING_CASES)
def test_law_of_healing(model, law):
    law(clone(model), rows_for(model).copy())


@pytest.mark.parametrize(("model", "law"), FACTOR_CASES)
def test_law_of_factors(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), ARRIVAL_CASES)
def test_law_of_arrivals(model, law):
    law(*short_stream(model))


@pytest.mark.parametrize(("model", "law"), CHAIN_CASES)
def test_law_of_chains(model, law):
    law(*short_stream(model))


def test_check_laws_runs_them_all():
    check_laws(hw.GaussianMixture(2, warm_up=50, random_state=0), rows())


finite = st.floats(-1e99, 1e99, allow_nan=False)


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


@settings(max_examples=25, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(3, 40), st.integers(2, 4)), elements=finite))
@pytest.mark.parametrize(
    ("gating", "algorithm"),
    [("fixed", word) for word in ("auto", "em", "online-em", "boem", "soem", "quasi-bayes")] + [("input", "online-vb")],
)
def test_any_finite_targets_leave_a_finite_state(gating, algorithm, rows):
    model = hw.RegressionMixture(2, gating=gating, algorithm=algorithm, warm_up=10, random_state=0)
    the_state_is_finite(model, rows)
