"""Reports in a real browser: nothing overflows on a phone, nothing complains, nothing is asked of the network."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest
from every_model import KINDS, stream_of

import headwater as hw

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]

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
  parent.postMessage({scroll: root.scrollWidth, inner: innerWidth, wide, sections,
    requests: performance.getEntriesByType("resource").filter((one) => !one.name.startsWith("data:")).length}, "*");
})</script>"""
FRAME = """<!DOCTYPE html><title>frame</title>
<iframe src="measured.html" style="width:{width}px;height:3000px;border:0"></iframe>
<script>addEventListener("message", (event) => {{ const out = document.createElement("pre"); out.id = "found";
  out.textContent = JSON.stringify(event.data); document.body.append(out); }})</script>"""


def browse(path, tmp_path):
    """The page as the browser has it in the end, and what it wrote to the console."""
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
    # Its own policy forbids all requests, and a browser that had to enforce it would say so.
    dom, console = browse(path, tmp_path)
    assert console == []
    assert dom.count("<section") == 6
    measured = re.sub(r"<meta http-equiv[^>]*>", "", html).replace("</body>", MEASURE + "</body>")
    (tmp_path / "measured.html").write_text(measured, encoding="utf-8")
    for width in (1280, 390):
        frame = tmp_path / f"frame{width}.html"
        frame.write_text(FRAME.format(width=width), encoding="utf-8")
        dom, console = browse(frame, tmp_path)
        found = json.loads(unescape(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1]))
        assert console == []
        assert found["inner"] == width and found["scroll"] <= width
        assert found["wide"] == []
        assert found["requests"] == 0
        assert [name for name, _ in found["sections"]] == ["learned", "course", "health", "sure", "odd", "reproduce"]
        assert all(height > 40.0 for _, height in found["sections"])
