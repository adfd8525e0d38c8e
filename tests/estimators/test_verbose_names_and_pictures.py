"""Output of verbose, public names, pictures of models with nothing to draw, and constant columns."""

import re

import numpy as np
import pytest
from every_model import KINDS, learned, stream_of

import headwater as hw

ROWS = np.random.default_rng(0).normal(size=(300, 2)) + 6.0 * np.random.default_rng(1).integers(2, size=(300, 1))


# verbose


@pytest.mark.covering("kind")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verbose", [1, 2])
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_a_fit_tells_how_it_goes(kind, verbose, capsys):
    chunk = {**stream_of(kind, (200,))[0]}
    KINDS[kind][0]().fit(**chunk)
    assert capsys.readouterr().out == ""
    model = KINDS[kind][0]().set_params(verbose=verbose).fit(**chunk)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Initialization 0"
    assert any(re.match(r"  pass \d+\t objective -?\d", line) for line in lines)
    assert re.match(rf"Initialization (converged|did not converge) after {model.n_iter_} pass", lines[-1])
    assert ("time" in lines[-1]) == (verbose > 1)
    if verbose > 1 and model.n_iter_ > 1:
        assert "\t gain " in lines[-2]


def test_verbose_interval_and_several_starts(capsys):
    with pytest.warns(UserWarning, match="converge"):
        hw.GaussianMixture(2, algorithm="em", tol=0.0, max_iter=25, n_init=2, verbose=1, verbose_interval=10).fit(ROWS)
    lines = capsys.readouterr().out.splitlines()
    passes = [int(line.split()[1]) for line in lines if line.startswith("  pass")]
    assert passes[:2] == [10, 10] and passes[-2:] == [20, 25]  # a few passes of each, then the best goes on
    assert [line for line in lines if line.startswith("Initialization ")][:2] == ["Initialization 0", "Initialization 1"]


def test_verbose_changes_no_bit(capsys):
    one, other = (hw.GaussianMixture(2, random_state=0, verbose=verbose).fit(ROWS) for verbose in (0, 2))
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-12)
    assert capsys.readouterr().out


# Names


def test_the_package_shows_its_public_names_alone():
    assert [name for name in dir(hw) if not name.startswith("__")] == sorted(hw.__all__)
    assert all(hasattr(hw, name) for name in dir(hw))


# Pictures


CHAINS = {kind for kind, (make, _) in KINDS.items() if make()._traits.chained}
DRAWN = {
    "beam": {"arrival"},
    "density": {"gaussian", "bayesian", "sweeping", "parts", "chain", "background"},
    "ellipses": {"gaussian", "bayesian", "sweeping", "parts", "chain", "background"},
    "images": set(),
    "intervals": set(KINDS) - {"topics", "spectra", "arrival"} - CHAINS,
    "regressions": {"regression", "switching"},
    "scores": set(),
    "spectra": {"spectra", "topics"},
    "spectrogram": set(),
    "transitions": {"markov"} | CHAINS,
    "weights": set(),
    "words": set(KINDS) - {"arrival"},
}


@pytest.fixture(scope="module")
def models():
    return {kind: learned(kind) for kind in KINDS}


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_of_any_model_is_drawn_or_refused_in_a_sentence(name, models):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    plotting = pytest.importorskip("headwater.plotting")
    for kind, model in models.items():
        figures = len(pyplot.get_fignums())
        if kind in DRAWN[name]:
            assert getattr(plotting, name)(model).figure is not None
        else:
            with pytest.raises(ValueError, match=r"\w+") as told:
                getattr(plotting, name)(model)
            assert "\n" not in str(told.value) and "object has no attribute" not in str(told.value)
            if name not in ("images", "intervals", "transitions", "words"):
                assert len(pyplot.get_fignums()) == figures
        pyplot.close("all")


def test_scores_and_weights_of_a_model_that_was_watched():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from headwater import plotting

    model = KINDS["gaussian"][0]()
    monitor = hw.Monitor(model)
    for chunk in stream_of("gaussian", (100,) * 5):
        monitor.learn(chunk)
    for draw in (plotting.weights, plotting.scores):
        for trace in (model, monitor, monitor.history):
            assert draw(trace).get_xlabel() == "rows learned"
    pyplot.close("all")


def test_columns_that_a_picture_does_not_have():
    from headwater import plotting

    model = hw.GaussianMixture(1, random_state=0).fit(ROWS[:, :1])
    with pytest.raises(ValueError, match="columns must be two of the 1 columns"):
        plotting.ellipses(model)


# Constant columns


@pytest.mark.covering("kind", "algorithm")
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("algorithm", ["auto", "em", "vb", "online-em", "boem", "moment-matching"])
@pytest.mark.parametrize("value", [0.0, 7.0, -1e9])
def test_constant_columns_say_nothing(kind, algorithm, value):
    if (kind, algorithm) == ("tied", "moment-matching"):
        pytest.skip("moment matching has no tied covariance")
    rows = np.column_stack([ROWS, np.full(len(ROWS), value)])
    model = hw.GaussianMixture(2, covariance_type=kind, algorithm=algorithm, random_state=0, warm_up=100)
    found = (model.fit if algorithm in ("em", "vb") else model.partial_fit)(rows).health_
    assert [one.sentence.split(":")[0] for one in found.of_kind("flat")] == [
        "Column x2 has one value in all rows and carries no information"
    ]
    assert not found.of_kind("collapsed")
    varied = (model.fit if algorithm in ("em", "vb") else clone_of(model).partial_fit)(
        np.column_stack([ROWS, 1e6 + ROWS[:, 0]])
    )
    assert not any("one value" in one.sentence for one in varied.health_.findings)


def clone_of(model):
    return type(model)(**model.get_params())


def test_constant_columns_of_chains_and_scaled_columns():
    rows = np.column_stack([ROWS, np.full((len(ROWS), 2), 3.0)])
    for model in (
        hw.GaussianHMM(2, random_state=0, warm_up=100), hw.GaussianMixture(2, random_state=0, scale_columns=True, warm_up=100),
        hw.RegressionMixture(2, gating="input", random_state=0, warm_up=100),
    ):  # fmt: skip
        target = (rows[:, 0] + 0.1 * np.sin(rows[:, 1]),) if isinstance(model, hw.RegressionMixture) else ()
        told = [one.sentence for one in model.partial_fit(rows, *target).health_.of_kind("flat")]
        assert any(
            sentence.startswith("Columns x2 and x3 have one value in all rows and carry no information") for sentence in told
        )
