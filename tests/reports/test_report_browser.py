"""Reports in a browser: no overflow on a phone, no messages on the console, no requests to the network."""

import json
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest
from every_model import KINDS, stream_of

import headwater as hw
from headwater.core.chunk import Chunk

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]

SECTIONS = ["learned", "course", "health", "sure", "odd", "reproduce"]
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--enable-logging=stderr", "--v=0",
    "--virtual-time-budget=5000",
)  # fmt: skip
MEASURE = """<script>addEventListener("load", () => {
  const root = document.documentElement;
  const wide = [...document.querySelectorAll("body *")].filter((one) => !one.closest(".scroll, svg")
    && one.getBoundingClientRect().right > innerWidth + 0.5).map((one) => one.outerHTML.slice(0, 80));
  const sections = [...document.querySelectorAll("section")].map((one) => [one.id, one.getBoundingClientRect().height]);
  const box = (one) => one.getBoundingClientRect();
  const cards = [...document.querySelectorAll(".card")];
  const lines = (one) => { const range = document.createRange(); range.selectNodeContents(one);
    return [...range.getClientRects()].filter((part) => part.width).map((part) => part.bottom); };
  const wrapped = [...document.querySelectorAll(".card .value, .numbers dd, .weight")].filter((one) => lines(one).length
    && Math.max(...lines(one)) - Math.min(...lines(one)) > 8).map((one) => one.textContent);
  const cut = [...document.querySelectorAll(".value")].filter((one) => one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.textContent);
  const axes = [...new Set(cards.flatMap((card) => [...card.querySelectorAll(".bar")].map((bar) =>
    Math.round(box(bar).left - box(card).left) + " " + Math.round(box(bar).width))))];
  const ends = [...new Set(cards.flatMap((card) => [...card.querySelectorAll(".value")].map((one) =>
    Math.round(box(card).right - box(one).right))))];
  const tops = {};
  for (const card of cards) (tops[Math.round(box(card).top)] ??= new Set()).add(Math.round(box(card).bottom));
  const ragged = Object.values(tops).filter((one) => one.size > 1).length;
  const hidden = [...document.querySelectorAll(".card th span")].filter((one) => one.scrollHeight > one.clientHeight + 2
    || one.scrollWidth > one.clientWidth + 2).map((one) => one.textContent);
  parent.postMessage({wrapped, cut, axes, ends, ragged, hidden, scroll: root.scrollWidth, inner: innerWidth, wide, sections,
    requests: performance.getEntriesByType("resource").filter((one) => !one.name.startsWith("data:")).length}, "*");
})</script>"""
FRAME = """<!DOCTYPE html><title>frame</title>
<iframe src="measured.html" style="width:{width}px;height:3000px;border:0"></iframe>
<script>addEventListener("message", (event) => {{ const out = document.createElement("pre"); out.id = "found";
  out.textContent = JSON.stringify(event.data); document.body.append(out); }})</script>"""


def measure(html, width, tmp_path):
    """Return the measures of a page at a width."""
    measured = re.sub(r"<meta http-equiv[^>]*>", "", html).replace("</body>", MEASURE + "</body>")
    (tmp_path / "measured.html").write_text(measured, encoding="utf-8")
    frame = tmp_path / f"frame{width}.html"
    frame.write_text(FRAME.format(width=width), encoding="utf-8")
    dom, console = browse(frame, tmp_path)
    assert console == []
    return json.loads(unescape(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1]))


def browse(path, tmp_path):
    """Return the final page in the browser, and the messages on its console."""
    command = [CHROMIUM, *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_in_a_browser(kind, tmp_path):
    monitor = hw.Monitor(KINDS[kind][0]())
    for chunk in stream_of(kind):
        monitor.learn(chunk)
    path = tmp_path / "page.html"
    html = hw.report(
        monitor.model, stream_of(kind), path, title="A name that is long " * 4, command="headwater fit " + "x" * 200
    )
    # The policy of the page forbids all requests, and the browser would report a blocked one.
    dom, console = browse(path, tmp_path)
    assert console == []
    assert dom.count("<section") == 6
    for width in (1280, 390):
        found = measure(html, width, tmp_path)
        assert found["inner"] == width and found["scroll"] <= width
        assert found["wide"] == []
        assert found["requests"] == 0
        assert sorted(name for name, _ in found["sections"]) == sorted(SECTIONS)
        assert all(height > 40.0 for _, height in found["sections"])
        check_cards(found)


def check_cards(found):
    """Check that cards of a row end together, bars begin at the same place, and no number is wrapped or cut."""
    assert found["wrapped"] == [] and found["cut"] == []
    assert found["ragged"] == 0
    assert len(found["axes"]) <= 1 and len(found["ends"]) <= 1


@pytest.mark.parametrize("width", [1280, 800, 390, 320])
@pytest.mark.parametrize("names", ["short", "long"])
def test_cards_are_aligned_and_names_are_whole(names, width, tmp_path):
    rng = np.random.default_rng(0)
    columns = {
        "short": ["a", "temperature", "x2", "price"],
        "long": ["温度センサーの平均値（摂氏）", "a_name_of_forty_letters_without_any_break", "Größe über alles", "y"],
    }[names]
    X = rng.normal(size=(600, 4)) * [1.0, 1e-4, 250.0, 3e6] + rng.integers(0, 5, size=(600, 1)) * [5.0, 1.0, 1e6, 1e12]
    model = hw.GaussianMixture(5, warm_up=500, random_state=0).partial_fit(Chunk(X, columns))
    found = measure(hw.report(model, Chunk(X, columns)), width, tmp_path)
    check_cards(found)
    assert found["hidden"] == []
    assert found["wide"] == [] and found["scroll"] <= width
