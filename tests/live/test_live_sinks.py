"""Sinks: what is delivered stays, what is not is tried again or said."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pyarrow.parquet as parquet
import pytest

from headwater.live import backoff
from headwater.live.addresses import open_sink
from headwater.live.sinks import parquet_sink
from headwater.live.sinks.sink import Undelivered


@pytest.fixture
def receiver(monkeypatch):
    """A server that answers with the statuses it is given, then 200; and what it got."""
    monkeypatch.setattr(backoff, "FIRST_SECONDS", 0.01)
    got, statuses = [], []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = statuses.pop(0) if statuses else 200
            if status == 200:
                got.append((body, self.headers.get("Authorization")))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://elsewhere.invalid/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *parts):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"webhook:http://127.0.0.1:{server.server_port}/secret-path", got, statuses
        server.shutdown()
        thread.join()


def test_a_webhook_gets_answers_and_is_asked_again(receiver, monkeypatch):
    address, got, statuses = receiver
    said = []
    monkeypatch.setenv("HEADWATER_WEBHOOK_TOKEN", "token")
    sink = open_sink(address, (), lambda kind, **parts: said.append((kind, parts)))
    statuses += [503, 429]
    sink.write([{"event": 1, "odd": True}])
    assert got == [({"answers": [{"event": 1, "odd": True}]}, "Bearer token")]
    assert [kind for kind, _ in said] == ["retry", "retry", "reached"]
    assert "secret-path" not in str(said)
    for status in (400, 302):
        statuses += [status]
        sink.write([{"event": 2}])
        assert said[-1][0] == "rejected" and said[-1][1]["status"] == status
    sink.write([{"event": place} for place in range(1100)])
    assert [len(body["answers"]) for body, _ in got[1:]] == [500, 500, 100]


def test_a_webhook_that_is_away_lets_the_process_stop():
    sink = open_sink("webhook:http://127.0.0.1:9/x", (), lambda kind, **parts: None)
    end = time.monotonic() + 0.5
    sink.stopping = lambda: time.monotonic() > end
    with pytest.raises(Undelivered):
        sink.write([{"event": 1}])


@pytest.mark.parametrize("text", ["webhook:ftp://host/x", "webhook:", "webhook:/x"])
def test_webhooks_that_make_no_sense_are_refused(text):
    with pytest.raises(ValueError, match="a webhook must be"):
        open_sink(text)


def answer(place):
    return {"event": place, "id": place, "score": 0.5 * place, "odd": None, "reasons": [{"column": "a", "value": 1.0}]}


def test_parquet_files_hold_all_answers_after_any_end(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_sink, "FILE_ANSWERS", 10)
    path = tmp_path / "answers.parquet"
    first = open_sink(str(path), ("id",))
    for place in range(13):
        first.write([answer(place)])
        first.flush()
    first._file.close()  # the process is killed
    with (path / parquet_sink.PENDING).open("ab") as file:
        file.write(b'{"event": 13, "sc')
    second = open_sink(str(path), ("id",))
    second.write([answer(13), {"error": "bad", "raw": "?", "id": [1]}])
    second.flush()
    second.close()
    assert sorted(one.name for one in path.iterdir()) == ["part-00000000.parquet", "part-00000001.parquet"]
    found = parquet.read_table(path).to_pylist()
    assert [one["event"] for one in found] == [*range(14), None]
    assert found[3]["id"] == "3" and json.loads(found[3]["reasons"]) == [{"column": "a", "value": 1.0}]
    assert found[-1]["error"] == "bad" and found[-1]["id"] == "[1]"


def test_a_file_is_no_folder_of_parquet(tmp_path):
    (tmp_path / "a.parquet").write_text("x")
    with pytest.raises(ValueError, match="is a file, and answers go to a folder"):
        open_sink(str(tmp_path / "a.parquet"))
