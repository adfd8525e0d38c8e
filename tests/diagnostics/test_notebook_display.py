"""Models and results as text and in notebooks: short lines, and escaped HTML."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from every_model import KINDS, learned
from sklearn import config_context

import headwater as hw
from headwater.diagnostics import progress_bar
from headwater.diagnostics.display import html_curve
from headwater.diagnostics.distributed_report import DistributedReport

SAFE_TAGS = {"p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "strong", "pre", "svg", "polyline", "rect", "title"}
ATTACK = "<script>alert(1)</script>\x1b[31m"


class Tags(HTMLParser):
    """Collects the tags of a page, and those that are not closed."""

    def __init__(self, html):
        super().__init__()
        self.seen, self.open = set(), []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        assert not any(name.startswith("on") or name == "style" for name, _ in attributes)
        if tag != "polyline":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_html(shown):
    html = shown._repr_html_()
    tags = Tags(html)
    assert tags.seen <= SAFE_TAGS and not tags.open
    assert len(html) < 20_000
    return html


@pytest.mark.parametrize("kind", KINDS)
def test_a_description_is_readable_and_safe(kind):
    found = learned(kind).describe()
    text = str(found)
    assert text.splitlines()[0] == found.title
    assert max(map(len, text.splitlines())) <= 100
    check_html(found)
    check_html(learned(kind).health_)


@pytest.mark.parametrize("kind", KINDS)
def test_every_model_has_a_picture_in_notebooks(kind):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    model = learned(kind)
    html = model._repr_html_inner()
    assert "<svg" in html and ("<rect" in html or "<polyline" in html)
    bundle = model._repr_mimebundle_()  # the method that notebooks call
    assert bundle["text/html"].count("<svg") == html.count("<svg") and bundle["text/plain"] == repr(model)
    with config_context(display="text"):
        assert list(model._repr_mimebundle_()) == ["text/plain"]
    axes = hw.plotting.overview(model, ax=Figure().add_subplot())
    assert axes.has_data()


def test_an_unfitted_model_and_a_warm_up_have_no_picture():
    assert "<rect" not in hw.GaussianMixture(2)._repr_html_inner()
    assert "<rect" not in hw.GaussianMixture(2, random_state=0).partial_fit(np.eye(3))._repr_html_inner()
    with pytest.raises(ValueError, match="model must be a headwater model, got int"):
        hw.plotting.overview(3)


def test_an_outlier_does_not_flatten_a_small_curve():
    html = html_curve([-1e9, 1.0, 2.0, 3.0, 4.0], "scores")
    heights = [float(point.split(",")[1]) for point in html.split('points="')[1].split('"')[0].split()]
    assert heights[0] == max(heights) and heights[1] - heights[4] > 30.0 and "from 1 to 4" in html


# Progress


class Screen:
    """A display that records what it shows."""

    def __init__(self):
        self.shown, self.closed = [], False

    def show(self, share, text):
        self.shown.append((share, text))

    def close(self):
        self.closed = True


def test_a_monitor_shows_progress_where_it_is_seen(monkeypatch, tmp_path):
    screen = Screen()
    monkeypatch.setattr(progress_bar, "find_display", lambda: screen)
    monkeypatch.setattr(progress_bar, "SECONDS_BETWEEN", 0.0)
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(900, 2)))
    stream = hw.stream(tmp_path / "rows.npy", chunk_rows=300)
    model = hw.Monitor(hw.GaussianMixture(2, warm_up=300, random_state=0), progress=True).learn(stream)
    assert [round(share, 3) for share, _ in screen.shown] == [0.333, 0.667, 1.0, 1.0] and screen.closed
    assert screen.shown[-1][1].startswith("GaussianMixture: 900 rows, ") and "score -" in screen.shown[-1][1]
    plain = hw.Monitor(hw.GaussianMixture(2, warm_up=300, random_state=0)).learn(stream)
    np.testing.assert_array_equal(model.means_, plain.means_)
    with pytest.raises(ValueError), progress_bar.ProgressBar("fit") as bar:
        bar.update(3)
        raise ValueError
    assert screen.shown[-1][1].endswith("(stopped)")


def test_progress_is_silent_where_nobody_sees_it(capsys):
    assert progress_bar.find_display() is None
    with progress_bar.ProgressBar("fit") as bar:
        bar.update(10, 0.5, -1.0)
    assert capsys.readouterr() == ("", "")


def test_names_of_columns_are_cut_and_escaped():
    found = learned("gaussian").describe()
    values = tuple(replace(value, name=ATTACK * 9) for value in found.components[0].values)
    bad = replace(found, components=(replace(found.components[0], values=values, remark=ATTACK),), notes=(ATTACK * 20,))
    assert "\x1b" not in str(bad) and max(map(len, str(bad).splitlines())) <= 100
    html = check_html(bad)
    assert "\x1b" not in html and "&lt;script&gt;" in html


def test_probable_words_come_first():
    text = str(learned("topics").describe())
    for line in text.splitlines()[2:4]:
        assert float(line.split()[3].rstrip(",")) > 0.1


def test_components_that_do_not_fit_are_counted():
    found = learned("gaussian").describe()
    many = replace(found, components=found.components * 10)
    assert len(str(many).splitlines()) < 18 and "and 8 more" in str(many)


def test_results_have_html():
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    monitor = hw.Monitor(hw.GaussianMixture("auto", random_state=0))
    model = monitor.learn(rows)
    merged = hw.merge([model.branch().partial_fit(rows[:50]), model.branch().partial_fit(rows[50:])])
    for shown in (model.growth_, merged.merge_report_, DistributedReport(2, unread=(ATTACK,)), monitor, monitor.history):
        assert "<script" not in check_html(shown)
    assert repr(monitor).startswith("Monitor(GaussianMixture, History(3,000 rows")
    assert "<svg" in monitor.history._repr_html_() and "<svg" not in hw.History()._repr_html_()


def test_a_race_has_html():
    documents = np.random.default_rng(0).poisson(1.0, size=(400, 8)).astype(float)
    model = hw.LatentDirichletAllocation("auto", warm_up=100, random_state=0).partial_fit(documents)
    check_html(model.race_)


def test_credible_intervals_are_a_table():
    rows = np.random.default_rng(0).normal(size=(300, 6)) + 1e4
    frame = {name: rows[:, at] for at, name in enumerate(["speed", ATTACK * 9, "flow", "heat", "noise", "last"])}
    model = hw.GaussianMixture(2, random_state=0).partial_fit(pd.DataFrame(frame))
    found = model.credible_intervals(0.8)
    text = str(found)
    assert text.splitlines()[0] == "Central intervals that hold with probability 0.8"
    assert max(map(len, text.splitlines())) <= 100 and "\x1b" not in text and "and 2 more columns" in text
    low, high = text.split("speed ")[1].split(",")[0].split(" to ")
    np.testing.assert_allclose([float(low), float(high)], found.means[0, 0], atol=0.05 * np.ptp(found.means[0, 0]))
    html = check_html(found)
    assert "\x1b" not in html and "&lt;script&gt;" in html and "speed" in html


def test_credible_intervals_of_one_component_without_names():
    found = (
        hw.GaussianMixture(1, random_state=0).partial_fit(np.random.default_rng(0).normal(size=(300, 2))).credible_intervals()
    )
    assert "1 to 1" in str(found) and "x0 " in str(found) and "more" not in str(found)
    many = replace(found, weights=np.tile(found.weights, (20, 1)), means=np.tile(found.means, (20, 1, 1)), columns=())
    assert "and 8 more components" in str(many) and len(str(many).splitlines()) == 16
    check_html(many)
