"""The live page in a browser, while events come: what it shows, no messages on the console, no overflow on a phone."""

import threading

import numpy as np
import pandas as pd
import pytest
from live.browser import CHROMIUM, tab
from live.live_server import server

import headwater as hw

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]

HOSTILE = "<img src=x onerror=alert(1)>"
MEASURE = """new Promise((say) => {
  const look = () => {
    if (document.querySelectorAll(".chart svg").length < 4 || document.querySelectorAll(".event").length < 2) {
      setTimeout(look, 100);
      return;
    }
    const wide = [...document.querySelectorAll("body *")].filter((one) => !one.closest("svg")
      && one.getBoundingClientRect().right > innerWidth + 0.5).map((one) => one.outerHTML.slice(0, 80));
    say({wide, scroll: document.documentElement.scrollWidth, inner: innerWidth,
      images: document.images.length, text: document.body.innerText,
      bars: [...document.querySelectorAll(".bar")].filter((one) => one.getAttribute("height") > 0).length,
      outside: performance.getEntriesByType("resource").filter((one) => !one.name.startsWith(location.origin)).length});
  };
  look();
})"""


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_shows_a_stream(tmp_path, width):
    rng = np.random.default_rng(0)
    columns = [HOSTILE, "usual", "a_long_name_" * 6]
    model = hw.GaussianMixture(2, random_state=0, warm_up=500)
    monitor = hw.Monitor(model, timed=False)
    for _ in range(3):
        monitor.learn(pd.DataFrame(rng.normal(size=(700, 3)), columns=columns))
    stop = threading.Event()

    def feed(client):
        while not stop.wait(0.05):
            rows = rng.normal(size=(20, 3))
            rows[0] += 30.0 * (rng.random() < 0.3)
            found = [{**dict(zip(columns, row, strict=True)), "machine": HOSTILE} for row in rows.tolist()]
            client.post("/events", json={"rows": [*found, {HOSTILE: HOSTILE}]})

    with server(model, tmp_path / "state", kept_fields=("machine",)) as (client, _):
        thread = threading.Thread(target=feed, args=(client,))
        thread.start()
        try:
            with tab(str(client.base_url), width, tmp_path / "profile") as page:
                found = page.value(MEASURE)
                messages = page.messages
        finally:
            stop.set()
            thread.join()
    assert messages == []
    assert found["inner"] == width and found["scroll"] <= width and found["wide"] == []
    assert found["images"] == 0 and HOSTILE in found["text"] and found["outside"] == 0
    assert found["bars"] > 3
    assert "live, learning" in found["text"] and "must be a number" in found["text"]
