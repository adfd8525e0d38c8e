"""Report pages: headline, summary, odd rows first, informative columns, distinct colours, numbered arrows."""

import re
import warnings
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from every_model import NAMES, learned, stream_of

import headwater as hw
from headwater.core.chunk import Chunk
from headwater.diagnostics.component_description import GaussianComponents
from headwater.diagnostics.description import Matrix
from headwater.diagnostics.text_width import cut_to_width, text_width
from headwater.plotting.column_pair import telling_pair
from headwater.reports.colors import LEAST_DISTANCE, _distances, color_components, page_palette
from headwater.reports.course import count_cut_off, fence, limit_height, running_medians
from headwater.reports.drawings import transition_graph
from headwater.reports.headline import name_data
from headwater.reports.reading import USUAL_SCORES, ScoreSample, summarize_data

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


def headline_of(html):
    return re.search(r"<h1>(.*?)</h1>", html)[1], re.search(r'<p class="summary">(.*?)</p>', html)[1]


def write_rows(path, rows):
    lines = [",".join(["id", *NAMES]), *(f"car {at},{a},{b},{c}" for at, (a, b, c) in enumerate(rows))]
    path.write_text("\n".join(lines))
    return path


# The headline and the summary


def test_the_headline_is_the_name_of_the_data(tmp_path):
    path = write_rows(tmp_path / "cars.2024.csv", stream_of("gaussian")[0].X)
    model = hw.GaussianMixture(2, random_state=0).partial_fit(hw.stream(path, exclude=["id"]))
    assert headline_of(hw.report(model, path))[0] == "cars"
    assert headline_of(hw.report(model, hw.stream(path, like=model)))[0] == "cars"
    assert headline_of(hw.report(model, hw.stream(path, like=model), title="Used cars"))[0] == "Used cars"
    assert headline_of(hw.report(model, source="s3://bucket/days/monday.parquet"))[0] == "monday"
    assert headline_of(hw.report(model))[0] == "100 rows"


def test_several_files_are_named_by_their_folder(tmp_path):
    (tmp_path / "days").mkdir()
    for day in ("monday", "tuesday"):
        write_rows(tmp_path / "days" / f"{day}.csv", stream_of("gaussian")[0].X)
    assert name_data(hw.stream(str(tmp_path / "days" / "*.csv")), None) == "days (2 files)"
    assert name_data(np.zeros((3, 2)), None) is None and name_data(None, "a.csv, b.csv") == "a.csv, b.csv"


def test_the_summary_says_what_was_found_what_is_odd_and_what_to_do():
    X = np.concatenate([chunk.X for chunk in stream_of("gaussian")])
    X[123] = [0.0, 0.0, 1000.0]
    summary = headline_of(hw.report(learned("gaussian"), Chunk(X, NAMES)))[1]
    assert re.fullmatch(
        r"GaussianMixture found 2 components in 500 rows of 3 columns; the largest is component \d, with \d+\.\d%\. "
        r"Of 500 rows, 1 is odd; the oddest is row 123, because of age \(1000\)\. Nothing needs action\.",
        summary,
    )
    assert "None of the 500 rows is odd." in headline_of(hw.report(learned("gaussian"), stream_of("gaussian")))[1]
    warming = hw.GaussianMixture(2, random_state=0).partial_fit(X[:50])
    assert "The warm-up is not over" in headline_of(hw.report(warming))[1]
    assert "with a vocabulary of 6 words" in headline_of(hw.report(learned("topics")))[1]
    assert "DirectionOfArrival learned from 500 snapshots of 4 sensors: angle" in headline_of(hw.report(learned("arrival")))[1]


# Odd rows


def test_odd_rows_come_first_and_have_the_columns_that_were_kept(tmp_path):
    rows = np.concatenate([chunk.X for chunk in stream_of("gaussian")])
    rows[77] = [300.0, 0.0, 0.0]
    path = write_rows(tmp_path / "cars.csv", rows)
    model = hw.GaussianMixture(2, warm_up=60, random_state=0).partial_fit(hw.stream(path, exclude=["id"]))
    html = hw.report(model, hw.stream(path, like=model, keep=["id"]))
    assert html.index('id="odd"') < html.index('id="learned"')
    assert re.search(r'<th scope="row">77</th><td class="kept" data-name="id">car 77</td>', html)
    assert html.count('class="kept"') == html.count('<th scope="row">', html.index('id="odd"'), html.index('id="learned"')) == 4
    usual = hw.report(model, Chunk(rows[:70], NAMES))
    assert usual.index('id="odd"') > usual.index('id="sure"') and 'class="kept"' not in usual


def test_odd_values_are_shown_beside_what_the_other_columns_expect():
    rng = np.random.default_rng(0)
    speed = rng.normal(size=2000)
    rows = np.column_stack([speed, 2.0 * speed + 0.1 * rng.normal(size=2000), rng.normal(size=2000)])
    model = hw.GaussianMixture(1).fit(Chunk(rows, ("speed", "flow", "load")))
    odd = np.vstack([rows[:60], [[1.0, 2.0, 8.0]]])
    html = hw.report(model, Chunk(odd, ("speed", "flow", "load")))
    assert re.search(r"load <b>8</b> expected −1\.\d+ to 1\.\d+<small>\+8", html)
    assert "their 90 percent range given the other columns" in html
    together = summarize_data(model, Chunk(np.array([[6.0, 12.0, 0.0]]), ("speed", "flow", "load")), 1).odd[0]
    assert {value.name for value in together.why[:2]} == {"speed", "flow"}  # both are far off, and agree with each other


def test_kept_columns_are_text_and_whole_sequences_have_none():
    chunk = stream_of("gaussian")[0]
    kept = {"id": pa.array([f"<u>{at}" * 60 for at in range(100)]), "at": pa.array([None] * 100), "x": pa.array([0.1] * 100)}
    chunk = Chunk(chunk.X, chunk.columns, kept=kept)
    found = summarize_data(learned("gaussian"), [chunk], 3)
    assert all(len(one.kept["id"]) == 120 and one.kept["at"] == "" and one.kept["x"] == "0.1" for one in found.odd)
    assert "<u>" not in hw.report(learned("gaussian"), [chunk])
    clicks = stream_of("markov")[0]
    clicks = Chunk(clicks.X, lengths=clicks.lengths, schema=clicks.schema, kept={"id": pa.array(range(len(clicks.X)))})
    assert summarize_data(learned("markov"), [clicks], 2).odd[0].kept == {}


@pytest.mark.parametrize("width", [1, 2, 10])
def test_rows_of_the_model_itself_are_hardly_ever_called_odd(width):
    rng = np.random.default_rng(width)
    found = 0
    for _ in range(200):
        sample = ScoreSample()
        for _ in range(4):
            sample.take(-0.5 * (rng.normal(size=(2500, width)) ** 2).sum(axis=1))
        found += int((sample.lowest < sample.odd_threshold()).sum())
    assert found <= {1: 80, 2: 25, 10: 5}[width]  # of two million rows; 0.05 in each of 200 data sets are expected at width 2


def test_five_percent_of_odd_rows_do_not_hide_each_other():
    rng = np.random.default_rng(0)
    scores = -0.5 * (rng.normal(size=(2000, 3)) ** 2).sum(axis=1)
    scores[:80] -= 60.0
    sample = ScoreSample()
    sample.take(scores)
    assert int((sample.lowest < sample.odd_threshold()).sum()) == 80


def test_the_threshold_needs_rows_and_bounded_memory():
    sample = ScoreSample()
    sample.take(np.arange(20.0))
    assert sample.odd_threshold() == -np.inf
    for _ in range(50):
        sample.take(np.zeros(1000))
    assert len(sample.kept) <= USUAL_SCORES + 1 and sample.odd_threshold() == -np.inf  # no spread, no tail
    whole, parts = ScoreSample(), ScoreSample()
    scores = np.random.default_rng(0).normal(size=20_000)
    whole.take(scores)
    for start in range(0, 20_000, 777):
        parts.take(scores[start : start + 777])
    np.testing.assert_array_equal(whole.lowest, parts.lowest)
    np.testing.assert_array_equal(whole.kept, parts.kept)


# Columns of the scatter plot


def gaussians(means, deviations, weights=None):
    means, deviations = np.asarray(means, dtype=float), np.asarray(deviations, dtype=float)
    covariances = np.stack([np.diag(one**2) for one in deviations])
    shares = np.full(len(means), 1.0 / len(means)) if weights is None else np.asarray(weights)
    return GaussianComponents(shares, means, covariances, [f"x{at}" for at in range(means.shape[1])])


def test_the_scatter_takes_columns_that_tell_components_apart():
    means = [[0, 0, 0, 0], [0, 6, 0, 0], [0, 0, 6, 0], [0, 6, 6, 0]]
    assert telling_pair(gaussians(means, np.ones((4, 4)))) == (1, 2)
    # Two columns with the same information count as one: in the pair (0, 1), two components coincide.
    means = [[0, 0, 0], [9, 9, 0], [9, 9, 4]]
    assert telling_pair(gaussians(means, np.ones((3, 3)))) in ((0, 2), (1, 2))


def test_the_scatter_avoids_columns_in_which_components_are_lines():
    means, deviations = [[0, 0, 1], [9, 3, 2], [18, 6, 1]], [[1e-4, 1, 1]] * 3
    assert telling_pair(gaussians(means, deviations)) == (1, 2)
    deviations = [[1e-4, 1e-4, 1]] * 3  # only one is left: the pair is still a pair
    assert 2 in telling_pair(gaussians(means, deviations))


# Colours


def test_neighbours_never_share_a_colour():
    rng = np.random.default_rng(0)
    palette = page_palette()
    apart = _distances(palette)
    assert len(set(palette)) == 24
    for number in (2, 9, 17, 40, 100):
        weights, places = rng.dirichlet(np.ones(number)).tolist(), rng.normal(size=(number, 2))
        stacked = list(range(min(number, 32)))
        colors = color_components(weights, stacked, places)
        order = np.argsort(-np.array(weights))
        for step in (1, 2, 3, 4):
            assert all(colors[a] != colors[b] for a, b in zip(order, order[step:], strict=False))
        assert all(colors[a] != colors[a + 1] for a in stacked[:-1])
        beside = [apart[palette.index(colors[a]), palette.index(colors[b])] for a, b in pairwise(order)]
        assert min(beside) >= 0.5 * LEAST_DISTANCE


def test_few_components_have_the_colours_of_all_pictures():
    from headwater.plotting import PALETTE

    assert color_components([0.2, 0.3, 0.1, 0.4]) == [one.lower() for one in PALETTE[:4]]


# Arrows


def test_every_arrow_of_a_chain_carries_its_number():
    sticky = Matrix("Transitions", ("state 0", "state 1"), ((0.996, 0.004), (0.0021, 0.9979)), (0.3, 0.7))
    graph = str(transition_graph(sticky, ["#000", "#111"]))
    assert graph.count("marker-end") == 4
    assert all(f">{number}</text>" in graph for number in ("1.00", "0.004", "0.0021"))
    rng = np.random.default_rng(0)
    values = rng.dirichlet(np.full(9, 0.4), size=9)
    crowded = Matrix("Transitions", tuple(f"state {k}" for k in range(9)), tuple(map(tuple, values)), tuple(np.full(9, 1 / 9)))
    graph = str(transition_graph(crowded, ["#000"] * 9))
    assert graph.count("marker-end") == len(re.findall(r"<text x=[^>]*>[0-9.]+</text>", graph))
    assert 9 < graph.count("marker-end") < 60


def test_long_names_of_states_stand_beside_their_circles():
    names = ("温度センサーの平均値", "shop", "a page with a very long name that goes on")
    graph = str(transition_graph(Matrix("Steps", names, ((0.2, 0.4, 0.4),) * 3, (0.3, 0.3, 0.4)), ["#000"] * 3))
    assert graph.count('class="node"') == 1 and graph.count('class="name"') == 2
    assert "<title>a page with a very long name that goes on</title>" in graph and ">温度センサーの平均値<" in graph


# Long words and wide letters


def test_wide_letters_count_twice():
    assert text_width("温度 a") == 6 and text_width("e\u0301") == 1
    assert cut_to_width("温度センサー", 7) == "温度セ…" and cut_to_width("short", 7) == "short"


def test_words_in_other_scripts_make_no_noise_and_are_kept():
    words = ["温度センサー", "Donaudampfschifffahrtsgesellschaft", "слово", "x", "y", "z"]
    chunks = [Chunk(chunk.X, words) for chunk in stream_of("topics")]
    model = hw.LatentDirichletAllocation(2, warm_up=60, random_state=0)
    for chunk in chunks:
        model.partial_fit(chunk)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        html = hw.report(model, chunks)
    assert "温度センサー</text>" in html and "\ue000" not in html  # in a figure, with the text alone
    assert 'class="cards stacked"' in html


# Curves


def test_one_early_outlier_does_not_flatten_a_curve():
    rng = np.random.default_rng(0)
    for number in (6, 20, 200):
        values = np.linspace(-4.0, -3.0, number) + 0.01 * rng.normal(size=number)
        values[0] = -1e6
        low, high = fence(values)
        assert -4.1 < low < high < -2.9
        assert "a point at -1e+06 lies outside" in count_cut_off(values)
        assert running_medians(values).min() > -4.1
    rise = -3.0 - 10.0 * np.exp(-np.arange(40) / 10.0)  # the steep start of a learning curve is no outlier
    assert fence(rise) == (rise.min(), rise.max()) and count_cut_off(rise) == ""


def test_the_height_of_a_figure_is_that_of_the_curve():
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    limit_height(axes, np.array([-1e9, -2.0, -1.5, -1.2, -1.1, -1.0]))
    assert axes.get_ylim() == pytest.approx((-2.05, -0.95))


def test_reasons_of_odd_rows_of_a_table_are_those_that_explain_gives():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    kinds = rng.integers(2, size=600)
    rows = pd.DataFrame({"heat": rng.normal(10.0 * kinds, 1.0), "state": np.where(kinds, "warm", "cold"), "id": np.arange(600)})
    model = hw.MixedMixture(2, columns={"id": "ignore"}, random_state=0).fit(rows)
    rows.loc[3, "heat"] = 60.0
    rows.loc[4] = [14.0, "cold", 4]
    far, mixed_up = summarize_data(model, rows, 2).odd
    reasons = model.explain(rows.iloc[3:5])
    assert (far.row, far.why[0].name, far.why[0].value, far.why[0].low) == (3, "heat", 60.0, reasons.low[0, 0])
    found = {value.name: value.value for value in mixed_up.why}
    assert found == {"heat": 14.0, "state": pytest.approx(reasons.tail[1, 1])}
    assert {(value.word, value.expected) for value in mixed_up.why if value.name == "state"} == {("cold", "warm")}
