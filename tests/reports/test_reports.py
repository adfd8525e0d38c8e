"""Reports: one self-contained page, for every model and any names."""

import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from every_model import KINDS, NAMES, learned, stream_of
from markupsafe import Markup
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

import headwater as hw
from headwater.core.chunk import Chunk
from headwater.diagnostics.numbers import format_interval, format_number, format_percent, format_with_spread
from headwater.reports import cards, context, course, reading, series

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

SECTIONS = ["learned", "course", "health", "sure", "odd", "reproduce"]
ODD_FIRST = ["odd", "learned", "course", "health", "sure", "reproduce"]  # if rows are odd
VOID = {"meta", "link", "img", "br", "hr", "path", "use", "circle", "polyline", "polygon"}


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out the figures of pages, which are slow."""
    for room in (cards, context, course, series):
        monkeypatch.setattr(
            room, "figure", lambda draw, label, name, size=None: Markup("<svg aria-label='{}'></svg>").format(label)
        )


class Page(HTMLParser):
    """Tags of a page, in order, and whether each is closed."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.ids, self.errors = [], [], [], []
        self.feed(html)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def watched(kind):
    monitor = hw.Monitor(KINDS[kind][0]())
    for chunk in stream_of(kind):
        monitor.learn(chunk)
    return monitor.model


@pytest.mark.parametrize("kind", [kind if kind == "gaussian" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS])
def test_a_page_stands_alone(kind):
    model = watched(kind)
    before = model._state
    html = hw.report(model, stream_of(kind), title="What it is", command="headwater fit")
    assert model._state is before
    page = Page(html)
    sections = [attributes["id"] for attributes in page.named("section")]
    assert sections in (SECTIONS, ODD_FIRST)
    assert len(page.ids) == len(set(page.ids))
    assert not page.named("script") and not page.named("link")
    assert all(one["src"].startswith("data:image/png;base64,") and one["alt"] for one in page.named("img"))
    assert all(one.get("aria-label") for one in page.named("svg"))
    references = re.findall(r'(?:href|src)="(?!#|data:)([^"]*)"|url\((?!#)([^)]*)\)', html)
    assert references == []
    assert "#010203" not in html and "#070809" not in html
    assert len(html) < 500_000
    assert html == hw.report(model, stream_of(kind), title="What it is", command="headwater fit")
    shown = len(re.findall(r'<th scope="row">\d+</th>', html[html.index('id="odd"') :]))
    assert shown == 10 if sections == SECTIONS else 4 <= shown <= 10
    assert not re.search(r"\bnan\b", re.sub(r"base64,[^\"]*", "", html), re.IGNORECASE)


def test_words_of_the_data_are_no_html(tmp_path):
    evil = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "$a$ & {{ 7 * 7 }}"]
    chunks = [Chunk(chunk.X, evil) for chunk in stream_of("gaussian")]
    model = KINDS["gaussian"][0]()
    for chunk in chunks:
        model.partial_fit(chunk)
    path = tmp_path / "page.html"
    html = hw.report(model, chunks, path, title="<b>", command="rm -rf </pre>", source="<i>")
    assert path.read_text(encoding="utf-8") == html
    assert list(tmp_path.iterdir()) == [path]
    page = Page(html)
    assert not page.named("script")
    assert "<h1>&lt;b&gt;</h1>" in html and "rm -rf &lt;/pre&gt;" in html and "&lt;i&gt;" in html
    assert all("onerror" not in attributes for _, attributes in page.tags)
    assert "alert(1)&lt;/script&gt;" in html and "{{ 7 * 7 }}" in html and "49" not in re.findall(r"\$a\$ &amp; (\S+)", html)


def test_symbols_and_words_may_be_evil_too(undrawn):
    for kind, symbols in (("markov", ["<script>", "</svg><script>", "'\">"]), ("symbols", ["<u>"] * 4)):
        schema, model = {"symbols": symbols}, KINDS[kind][0]()
        chunks = [Chunk(one.X, lengths=one.lengths, schema=schema) for one in stream_of(kind)]
        for chunk in chunks:
            model.partial_fit(**chunk)
        page = Page(hw.report(model, chunks))
        assert not page.named("script") and not page.named("u")
    counts = stream_of("topics")[0].X
    topics = hw.LatentDirichletAllocation(2, random_state=0).partial_fit(Chunk(counts, [f"<script>{at}" for at in range(6)]))
    assert not Page(hw.report(topics, [Chunk(counts, topics.feature_names_in_)])).named("script")


def test_the_oddest_rows_are_found_in_any_cut():
    X = np.concatenate([chunk.X for chunk in stream_of("gaussian")])
    X[123] = [0.0, 0.0, 1000.0]
    X[77, 0] = -40.0
    model = learned("gaussian")
    oddness = model.anomaly_score(Chunk(X, NAMES))
    worst = np.argsort(-oddness, kind="stable")[:5]
    for size in (500, 37):
        chunks = (Chunk(X[at : at + size], NAMES) for at in range(0, 500, size))
        found = reading.summarize_data(model, chunks, 5)
        assert [one.row for one in found.odd] == worst.tolist()
        np.testing.assert_allclose([one.anomaly_score for one in found.odd], oddness[worst])
        assert found.rows == 500 and found.by_anomaly_score
        assert found.score == pytest.approx(model.score(Chunk(X, NAMES)))
    assert found.odd[0].why[0].name == "age" and found.odd[0].why[0].standing > 100.0
    assert {one.row: one.why[0].name for one in found.odd}[77] == "length"
    assert found.odd[0].values == ("length: 0", "weight: 0", "age: 1000")


def test_documents_are_odd_by_the_score_of_a_word():
    model, documents = learned("topics"), np.array([[60.0, 50.0, 40.0, 0.0, 0.0, 0.0], [0, 0, 2, 2, 0, 0], [0] * 6])
    chunk = Chunk(csr_array(documents), [f"word{at}" for at in range(6)])
    found, scores = reading.summarize_data(model, chunk, 3), model.score_samples(chunk)
    assert [one.row for one in found.odd] == [1, 0]  # documents without words have no rank
    assert [one.size for one in found.odd] == [4.0, 150.0] and found.odd[0].score == pytest.approx(scores[1])
    assert found.odd[1].ranked == pytest.approx(scores[0] / 150.0) and found.score == pytest.approx(scores.mean())


def test_rows_that_are_drawn_are_few_and_evenly_spaced(monkeypatch):
    monkeypatch.setattr(reading, "DRAWN_ROWS", 50)
    sizes = (100, 70, 130, 200)
    found = reading.summarize_data(learned("gaussian"), stream_of("gaussian", sizes), 1).sample
    whole = np.concatenate([chunk.X for chunk in stream_of("gaussian", sizes)])
    np.testing.assert_array_equal(found, whole[::16])


def test_sequences_go_on_from_chunk_to_chunk():
    rows = stream_of("chain", (60,))[0]
    model = learned("chain")
    whole = model.score_steps(rows)
    found = reading.summarize_data(model, [Chunk(rows.X[:25], rows.columns), Chunk(rows.X[25:], rows.columns)], 60)
    np.testing.assert_allclose([one.score for one in found.odd], np.sort(whole))
    keyed = Chunk(np.repeat(rows.X, 2, axis=0), rows.columns, key=np.tile(["a", "b"], 60))
    np.testing.assert_allclose([one.score for one in reading.summarize_data(model, keyed, 120).odd][::2], np.sort(whole))


def test_columns_that_look_like_pixels_are_images(undrawn):
    rng = np.random.default_rng(0)
    X = rng.poisson(3.0, size=(300, 36)).astype(float)
    model = hw.GaussianMixture(2, covariance_type="diag", random_state=0).partial_fit(X)
    assert len(Page(hw.report(model)).named("img")) == 2
    assert len(Page(hw.report(model, X, odd_rows=3, image_shape=(4, 9))).named("img")) == 5
    names = [f"column {chr(97 + at % 26)}{at}" for at in range(36)]
    model = hw.GaussianMixture(2, covariance_type="diag", random_state=0).partial_fit(Chunk(X, names))
    assert not Page(hw.report(model)).named("img")
    with pytest.raises(ValueError, match="must have 36 pixels"):
        hw.report(model, image_shape=(5, 5))


def test_a_page_says_what_is_not_there(undrawn):
    model = hw.GaussianMixture(2, random_state=0).partial_fit(stream_of("gaussian")[0])
    html = hw.report(model)
    assert "holds 100 raw rows" in html and "still in the warm-up" in html and "Pass data to the report" in html
    assert "no scores of rows from before they were learned" in hw.report(learned("gaussian"))
    html = hw.report(hw.GaussianMixture(2, random_state=0).fit(stream_of("gaussian")[0]))
    assert "passes over all rows" in html and "holds no raw rows" in html


def test_sparse_frames_and_single_arrays_are_data(undrawn):
    pandas = pytest.importorskip("pandas")
    X = stream_of("gaussian")[0].X
    frame = pandas.DataFrame(X, columns=list(NAMES))
    model = hw.GaussianMixture(2, random_state=0).partial_fit(frame)
    assert "mean score of these 100 rows" in hw.report(model, frame)
    counts = csr_array(np.eye(6) * 3.0)
    assert "mean score of these 6 rows" in hw.report(learned("multinomial"), Chunk(counts, [f"word{at}" for at in range(6)]))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"model": "gaussian"}, "model must be a headwater model, got str"),
        ({"data": 3}, "data must be rows, or an iterable of chunks of them, got int"),
        ({"odd_rows": 0}, "odd_rows must be a whole number of at least 1, got 0"),
        ({"components": 0}, "components must be a whole number"),
        ({"level": 2.0}, "level must lie between 0 and 1"),
    ],
)
def test_bad_arguments_are_refused(arguments, sentence, tmp_path):
    model = arguments.pop("model", None) or learned("gaussian")
    path = tmp_path / "page.html"
    with pytest.raises((TypeError, ValueError), match=sentence):
        hw.report(model, path=path, **arguments)
    assert not path.exists()


def test_a_file_is_read_as_the_model_knows_it(tmp_path, undrawn):
    rows = stream_of("gaussian")[0].X
    lines = ["name,age,length,weight", *(f"a,{age},{length},{weight}" for length, weight, age in rows)]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    model = hw.GaussianMixture(2, warm_up=60, random_state=0)
    for chunk in hw.stream(tmp_path / "rows.csv", columns=NAMES):
        model.partial_fit(chunk)
    html = hw.report(model, tmp_path / "rows.csv")
    worst = int(np.argmin(model.score_samples(Chunk(rows, NAMES))))
    assert f'<th scope="row">{worst}</th>' in html
    assert "How the data was read" in html


def test_a_model_that_has_learned_nothing_has_no_report():
    with pytest.raises(NotFittedError, match="not fitted"):
        hw.report(hw.GaussianMixture(2))
    chain = hw.CategoricalHMM(2, init_params="")
    chain.startprob_, chain.transmat_, chain.emissionprob_ = [0.5, 0.5], np.full((2, 2), 0.5), np.full((2, 3), 1 / 3)
    with pytest.raises(NotFittedError, match="this CategoricalHMM has learned nothing that could be described"):
        hw.report(chain)


@pytest.mark.parametrize("name", ["jinja2", "matplotlib"])
def test_without_its_libraries_one_sentence_says_what_to_install(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install 'headwater\[plot\]'"):
        hw.report(learned("gaussian"))


def test_numbers_are_read():
    assert [format_number(value) for value in (0.123456, -12345.6, 1e12)] == ["0.1235", "−12,346", "1e+12"]
    assert format_number(float("nan")) == format_number(None) == "–"
    assert [format_percent(share) for share in (0.5, 0.01234, 1e-6, 0.0)] == ["50.0%", "1.23%", "< 0.01%", "0.0%"]
    assert format_with_spread(1016.6999, 6.4971) == ("1,016.70", "6.50")
    assert format_with_spread(4.4e-16, 0.3162) == ("0.000", "0.316")
    assert format_with_spread(1.0, None) == ("1", "")
    assert format_with_spread(1e9 + 5.0, 0.99, 2) == ("1,000,000,005.00", "0.99")
    assert format_with_spread(-0.001, 1.02, 2) == ("0.00", "1.02")
    assert format_with_spread(1.25e13, 2.5e11) == ("1.25e+13", "2.5e+11")
    assert format_with_spread(2.5e-8, 3e-9) == ("2.5e-08", "3e-09")
    assert format_with_spread(7.0, 1e-150) == ("7", "1e-150") and format_with_spread(7.0, 0.0) == ("7", "0")
    assert format_interval(999.991, 1000.012) == "999.991 to 1,000.012" and format_interval(None, 1.0) == ""


def broad(kind):
    """Return extreme models for a page, with rows for them."""
    rng = np.random.default_rng(0)
    if kind == "wide":
        X = rng.normal(size=(60, 20_000))
        return hw.GaussianMixture(2, covariance_type="diag", random_state=0, warm_up=50).partial_fit(X), X
    if kind == "many":
        X = rng.normal(size=(400, 2))
        return hw.GaussianMixture(60, covariance_type="spherical", random_state=0, warm_up=400, max_iter=0).partial_fit(X), X
    if kind == "single":
        X = rng.normal(size=(50, 1))
        return hw.GaussianMixture(1, random_state=0, warm_up=50).partial_fit(X), X
    if kind == "constant":
        X = np.column_stack([np.full(80, 7.0), rng.normal(size=80)])
        return hw.GaussianMixture(2, random_state=0, warm_up=50).partial_fit(X), X
    if kind == "words":
        X = csr_array((rng.random((40, 20_000)) < 0.001).astype(float))
        return hw.MultinomialMixture(2, random_state=0, warm_up=30).partial_fit(X), X
    if kind == "missing":
        X = stream_of("chain", (200,))[0].X
        X[50:60] = np.nan
        return hw.GaussianHMM(2, random_state=0, warm_up=60).partial_fit(X), X
    X = stream_of("topics", (40,))[0].X
    model = hw.LatentDirichletAllocation(2, vocabulary="open", random_state=0, warm_up=30)
    model.partial_fit(Chunk(X[:, :4], ["a", "b", "c", "d"])).partial_fit(X)
    return model, X


@pytest.mark.parametrize("kind", ["wide", "many", "single", "constant", "words", "missing", "open"])
def test_pages_at_the_edges(kind, undrawn):
    model, X = broad(kind)
    html = hw.report(model, X)
    Page(html)
    assert len(html) < 200_000
    assert not re.search(r"\bnan\b", html, re.IGNORECASE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wide", "many", "single", "constant", "words", "missing", "open"])
def test_pages_at_the_edges_with_their_figures(kind):
    model, X = broad(kind)
    Page(hw.report(model, X))
