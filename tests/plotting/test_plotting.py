import sys
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from every_model import learned, stream_of
from matplotlib import pyplot
from matplotlib.patches import Ellipse

import headwater as hw
from headwater import DirectionOfArrival, GaussianMixture, RegressionMixture, plotting
from headwater.core.chunk import Chunk


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(400, 3)) * [1.0, 2.0, 0.5] + np.repeat([[0.0], [6.0]], 200, axis=0)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_ellipses_of_every_covariance_type(rows, covariance_type):
    model = GaussianMixture(2, covariance_type=covariance_type, random_state=0).fit(rows)
    ax = plotting.ellipses(model, rows, columns=(2, 1))
    assert len(ax.patches) == 4
    assert len(ax.collections) == 1
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column 2", "column 1")
    assert {patch.center for patch in ax.patches} == {(float(mean[2]), float(mean[1])) for mean in model.means_}
    ax.figure.canvas.draw()


def test_ellipse_is_where_the_mahalanobis_distance_is_one_or_two():
    covariance = np.array([[2.0, 0.9, 0.1], [0.9, 1.0, 0.0], [0.1, 0.0, 3.0]])
    truth = SimpleNamespace(
        weights_=np.ones(1), means_=np.array([[1.0, -2.0, 0.0]]), covariances_=covariance[None], covariance_type="full"
    )
    ax = plotting.ellipses(truth)
    precision = np.linalg.inv(covariance[:2, :2])
    for patch, sigmas in zip(ax.patches, (2.0, 1.0), strict=True):
        assert isinstance(patch, Ellipse)
        centred = patch.get_patch_transform().transform(patch.get_path().vertices[::3]) - truth.means_[0, :2]
        distances = np.sqrt(np.einsum("ni,ij,nj->n", centred, precision, centred))
        np.testing.assert_allclose(distances, sigmas, rtol=2e-3)  # matplotlib draws circles with Bezier curves


def test_ellipses_can_be_a_selection_of_outlines_on_axes_that_exist(rows):
    model = GaussianMixture(3, random_state=0).fit(rows)
    _, ax = pyplot.subplots()
    assert plotting.ellipses(model, ax=ax, components=[2], color="black", filled=False, label="truth") is ax
    assert ax.get_legend_handles_labels()[1] == ["truth"]
    assert len(ax.patches) == 2


def test_ellipses_name_the_columns_of_a_frame(rows):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=["a", "b", "c"])
    ax = plotting.ellipses(GaussianMixture(1).fit(frame), frame)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")


def test_many_rows_are_thinned(rows):
    many = np.tile(rows, (100, 1))
    ax = plotting.ellipses(GaussianMixture(1).fit(rows), many)
    assert len(ax.collections[0].get_offsets()) <= plotting.MOST_ROWS


def test_scores_and_weights_return_axes_and_choose_the_scale():
    rows = [10, 100, 1000]
    ax = plotting.scores({"rows": rows, "scores": [-3.0, -2.0, -1.9]}, label="held out")
    assert ax.get_xscale() == "log"
    assert ax.get_legend_handles_labels()[1] == ["held out"]
    assert plotting.scores({"rows": [5, 6], "scores": [-1.0, -1.0]}, ax=ax) is ax
    ax = plotting.weights({"rows": [1, 2, 3], "weights": np.full((3, 4), 0.25)})
    assert ax.get_xscale() == "linear"
    assert len(ax.collections) == 4
    ax.figure.canvas.draw()


def test_a_beam_is_highest_where_the_source_is():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(500, 7, 2)).view(np.complex128)[..., 0]
    X = draws[:, :1] * np.exp(0.7j * np.arange(6)) + draws[:, 1:]
    model = DirectionOfArrival(random_state=0).fit(X)
    ax = plotting.beam(model, label="at night")
    curve, line = ax.lines
    angles, decibels = curve.get_data()
    assert decibels.max() == 0.0
    assert abs(angles[decibels.argmax()] - np.degrees(model.angle_)) < 0.2
    assert line.get_xdata()[0] == np.degrees(model.angle_)
    assert ax.get_legend_handles_labels()[1] == ["at night"]

    def steering(angles):
        return np.exp(1j * np.outer(angles, np.arange(6)))

    own = DirectionOfArrival(steering=steering, angles=(0.0, 1.0), random_state=0).fit(X)
    assert plotting.beam(own, [0.5, 0.7, 0.9], ax) is ax
    assert (ax.get_xlabel(), len(ax.lines[2].get_xdata())) == ("angle", 3)
    ax.figure.canvas.draw()


def test_traces_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="must have 'scores', got 'rows'"):
        plotting.scores({"rows": [1, 2]})
    with pytest.raises(ValueError, match="must be equally long"):
        plotting.scores({"rows": [1, 2], "scores": [1.0]})
    with pytest.raises(ValueError, match="one line per entry"):
        plotting.weights({"rows": [1, 2], "weights": [0.5, 0.5]})


def test_without_matplotlib_one_sentence_says_what_to_install(monkeypatch, rows):
    model = GaussianMixture(1).fit(rows)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'headwater\[plot\]'"):
        plotting.ellipses(model)


def test_regressions_are_lines_through_what_is_held(rows):
    X, y = rows[:, :2], rows @ [1.0, -2.0, 0.5]
    model = RegressionMixture(2, random_state=0).fit(X, y)
    ax = plotting.regressions(model, X, y, column=1, color="black")
    assert len(ax.lines) == 2 and len(ax.collections) == 3
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column 1", "target")
    for k, line in enumerate(ax.lines):
        points = np.column_stack([np.full(2, X[:, 0].mean()), line.get_xdata()])
        np.testing.assert_allclose(line.get_ydata(), model.predict_component_means(points)[:, k])
    assert len(plotting.regressions(model).lines) == 2
    ax.figure.canvas.draw()


def test_a_density_is_highest_at_the_mean_of_the_heaviest():
    truth = SimpleNamespace(
        weights_=np.array([0.9, 0.1]), means_=np.array([[1.0, 9.0, -2.0], [4.0, 9.0, 1.0]]),
        covariances_=np.array([0.04, 0.25]), covariance_type="spherical", feature_names_in_=["a", "b", "c"],
    )  # fmt: skip
    ax = plotting.density(truth, columns=(0, 2), levels=4)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "c")
    contours = ax.collections[0]
    assert len(contours.levels) == 4
    highest = contours.get_paths()[-1].vertices
    np.testing.assert_allclose(highest.mean(axis=0), [1.0, -2.0], atol=0.05)
    np.testing.assert_allclose(contours.levels[-1] * 2.0, 0.9 / (2.0 * np.pi * 0.04), rtol=0.02)
    assert plotting.density(truth, truth.means_, columns=(0, 2), ax=ax) is ax


def test_histories_are_drawn_as_they_are():
    monitor = hw.Monitor(hw.GaussianMixture(2, warm_up=60, random_state=0))
    for chunk in stream_of("gaussian", (100,) * 5):
        monitor.learn(chunk)
    history = monitor.history
    (line,) = plotting.scores(history).lines
    np.testing.assert_array_equal(line.get_xdata(), history.rows)
    ax = plotting.weights(history)
    known = ~np.isnan(history.weights[:, 0])
    assert 2 < known.sum() < len(history.points)
    assert set(ax.collections[0].get_paths()[0].vertices[:, 0]) == set(history.rows[known])


@pytest.mark.parametrize("kind", ["multinomial", "topics", "regression", "chain"])
def test_bars_are_the_values_of_a_component(kind):
    model = learned(kind)
    found = model.describe()
    ax = plotting.words(model, found.components[1].index, most=3)
    values = found.components[1].values[:3]
    assert [patch.get_width() for patch in ax.patches] == [value.value for value in values]
    assert [label.get_text() for label in ax.get_yticklabels()] == [value.name for value in values]
    assert ax.yaxis_inverted()
    with pytest.raises(ValueError, match="component must be one of those described"):
        plotting.words(found, 99)


def test_words_are_short_and_no_mathematics():
    counts = stream_of("multinomial")[0]
    names = ["$x$", "a" * 50, "c", "d", "e", "f"]
    model = hw.MultinomialMixture(1, random_state=0).partial_fit(Chunk(counts.X, names))
    ax = plotting.words(model)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert r"\$x\$" in labels and max(map(len, labels)) == 28
    ax.figure.canvas.draw()


def test_spectra_are_decibels():
    model = learned("spectra")
    ax = plotting.spectra(model)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), 10.0 * np.log10(model.components_[1]))
    frames = np.array([[1.0, 10.0, 0.0], [100.0, 1.0, 1.0]])
    picture = plotting.spectrogram(frames, ax).images[0].get_array()
    np.testing.assert_allclose(picture, [[0.0, 20.0], [10.0, 0.0], [-60.0, 0.0]], atol=1e-9)


def test_transitions_of_states_and_of_symbols():
    model = learned("chain")
    ax = plotting.transitions(model)
    np.testing.assert_allclose(ax.images[0].get_array(), model.transmat_)
    assert {text.get_text() for text in ax.texts} == {f"{value:.2f}" for value in model.transmat_.ravel() if value >= 0.005}
    mixture = learned("markov")
    ax = plotting.transitions(mixture, component=1)
    np.testing.assert_allclose(ax.images[0].get_array(), mixture.transmat_[1])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["home", "shop", "pay"]
    with pytest.raises(ValueError, match="must have a transition matrix of component 7, got none"):
        plotting.transitions(mixture, 7)


def test_images_of_components():
    X = np.random.default_rng(0).normal(size=(300, 6))
    model = GaussianMixture(3, covariance_type="diag", random_state=0, max_iter=0).fit(X)
    ax = plotting.images(model, (2, 3), most=2)
    sheet = ax.images[0].get_array()
    heaviest = np.argsort(-model.weights_, kind="stable")
    mean = model.means_[heaviest[0]].reshape(2, 3)
    np.testing.assert_allclose(sheet[:2, :3], (mean - mean.min()) / (mean.max() - mean.min()))
    assert [text.get_text() for text in ax.texts] == [str(k) for k in heaviest[:2]]
    with pytest.raises(ValueError, match="6 columns make no square image"):
        plotting.images(model)
    with pytest.raises(ValueError, match="must have 6 pixels, one for each column, got 4 x 2"):
        plotting.images(model, (4, 2))
    with pytest.raises(ValueError, match="components of DirectionOfArrival are no images"):
        plotting.images(learned("arrival"))


def test_intervals_are_those_of_the_belief(rows):
    model = GaussianMixture(2, random_state=0).fit(rows)
    known = model.credible_intervals(0.9, method="mean-field")
    order = np.argsort(-model.weights_, kind="stable")
    for value, wanted in ((None, known.weights), ("x1", known.means[:, 1])):
        ax = plotting.intervals(model, value)
        found = [line.get_xdata() for line in ax.lines[::2]]
        np.testing.assert_allclose(found, wanted[order])
    with pytest.raises(ValueError, match="CategoricalHMM has no credible intervals of 'how often'"):
        plotting.intervals(learned("symbols"))
