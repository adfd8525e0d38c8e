"""The server: answers, exactly once; and what strangers may try."""

import json
import socket
import time
from urllib.parse import urlsplit

import numpy as np
import pytest
from live.live_models import events, learned_model
from live.live_server import server

import headwater as hw
from headwater.live.http.limits import Limits
from headwater.live.http.server import ServerSettings

pytest.importorskip("starlette", reason="an extra of headwater")
TOKEN = "0123456789abcdef-token"


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("live") / "m.hw"
    learned_model().save(path)
    return path


@pytest.fixture(scope="module")
def frozen(model_file):
    """A server that learns nothing, with small limits."""
    limits = Limits(body_bytes=20_000, rows=50, body_seconds=0.5, header_seconds=0.5, header_bytes=8192)
    with server(hw.load(model_file), limits=limits) as (client, service):
        yield client, service


def test_events_are_answered_and_learned_once(model_file, tmp_path):
    found = events(300)
    with server(hw.load(model_file), tmp_path, id_field="id") as (client, service):
        answers = []
        for begin in range(0, 300, 30):
            for _ in range(2):  # the answer to the first was lost
                answers += client.post("/events", json={"rows": found[begin : begin + 30]}).json()["answers"]
        lines = "".join(json.dumps(one) + "\n" for one in found[:5]).encode()
        again = client.post("/events", content=lines, headers={"content-type": "application/x-ndjson"}).json()["answers"]
    assert [one["double"] for one in again] == [True] * 5
    assert sorted(one["id"] for one in answers if "double" not in one) == list(range(300))
    assert [one["event"] for one in answers if "double" not in one] == list(range(1, 301))
    saved = hw.load(tmp_path / "snapshot.hw")
    assert saved.n_samples_seen_ == 2000 + 300 - 300 % 64  # the rest waits for its block, in the same file
    assert service.engine.counts.doubles == 305


def test_scores_are_those_of_the_model_and_learn_nothing(frozen, model_file):
    client, service = frozen
    X = np.array([[0.0, 0.0, 0.0], [40.0, 0.0, 0.0]])
    told = client.post("/score", json={"rows": [dict(zip("abc", row, strict=True)) for row in X.tolist()]}).json()["answers"]
    model = hw.load(model_file)
    del model.feature_names_in_
    np.testing.assert_allclose([one["score"] for one in told], model.score_samples(X))
    assert [one["odd"] for one in told] == [False, True] and told[1]["reasons"][0]["column"] == "a"
    assert service.engine.events == 0


def test_the_model_is_given_without_rows_and_models_are_merged_once(model_file, tmp_path):
    edge = hw.load(model_file).branch().partial_fit(hw.stream(_table(events(500, seed=3)), like=None))
    edge.save(tmp_path / "edge.hw")
    data = (tmp_path / "edge.hw").read_bytes()
    send = {"content": data, "headers": {"content-type": "application/octet-stream"}}
    with server(hw.load(model_file), tmp_path / "state") as (client, _):
        (tmp_path / "got.hw").write_bytes(client.get("/model").content)
        assert client.post("/merge", **send).json() == {"merged": True}
        assert client.post("/merge", **send).json()["double"] is True
        bad = client.post("/merge", content=data[:-9], headers=send["headers"])
        assert bad.status_code == 422 and "the model" in bad.json()["error"]
        (tmp_path / "rows.hw").write_bytes(client.get("/model?raw_rows=true").content)
    got = hw.load(tmp_path / "got.hw")
    assert got.n_samples_seen_ == 2000 and not got.holds_rows_ and hw.load(tmp_path / "rows.hw").holds_rows_
    assert hw.load(tmp_path / "state" / "snapshot.hw").n_samples_seen_ == 2500


def _table(found):
    import pandas as pd

    return pd.DataFrame(found)[["a", "b", "c"]]


def test_metrics_health_and_description(frozen):
    client, _ = frozen
    client.post("/events", json={"rows": [*events(9), {"a": "x"}]})
    told = client.get("/metrics").text
    assert "headwater_events_total 9.0" in told and "headwater_refused_events_total 1.0" in told
    assert 'headwater_score_bucket{le="+Inf"} 9.0' in told
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/openapi.json").json()["paths"]["/events"]["post"]["requestBody"]["required"]


def test_the_page_is_told_what_happens(frozen):
    client, _ = frozen
    with client.stream("GET", "/look") as answer:
        lines = answer.iter_lines()
        kinds = [next(lines), json.loads(next(lines).removeprefix("data: ")), next(lines), next(lines), next(lines)]
    assert kinds[0] == "event: course" and kinds[1]["points"]
    now = json.loads(kinds[4].removeprefix("data: "))
    assert now["columns"] == ["a", "b", "c"] and len(now["rates"]) == 120
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"] and "<script src" in page.text


# Strangers


@pytest.mark.parametrize(("body", "kind", "status", "said"), [
    (b"{", "application/json", 400, "cannot be read as JSON"),
    (b"[" * 9000, "application/json", 400, "cannot be read as JSON"),
    (b'{"rows": ' + b'{"a":' * 3000 + b"1", "application/json", 400, "cannot be read as JSON"),
    (b"[1]", "application/json", 422, "must be an object such as"),
    (b'{"rows": []}', "application/json", 422, "no rows"),
    (json.dumps({"rows": [{}] * 51}).encode(), "application/json", 413, "at most 50 rows, and this one has 51"),
    (b" " * 20_001, "application/json", 413, "at most 20,000 bytes"),
    (b'{"rows": [{"a": 1}]}', "text/plain", 415, "the content type must be"),
    (b'{"rows": [{"a": 1}]}', "application/x-www-form-urlencoded", 415, "the content type must be"),
])  # fmt: skip
def test_bad_bodies_are_refused_in_a_sentence(frozen, body, kind, status, said):
    answer = frozen[0].post("/events", content=body, headers={"content-type": kind})
    assert answer.status_code == status and said in answer.json()["error"]


def test_deep_and_strange_rows_are_refused_one_by_one(frozen):
    deep = json.loads('{"a": ' + "[" * 400 + "]" * 400 + "}")
    rows = [deep, 3, None, [1, 2, 3], {"a": {"b": 1}}, {"a": "9" * 5000}, {"a": 10**30, "b": 0, "c": 0}]
    answers = frozen[0].post("/score", json={"rows": rows}).json()["answers"]
    assert all("error" in one for one in answers[:6]) and "score" in answers[6]


def test_a_body_without_a_length_is_limited_too(frozen):
    answer = frozen[0].post("/events", content=iter([b" " * 5000] * 10), headers={"content-type": "application/json"})
    assert answer.status_code == 413


def raw(client, data, pause=0.0, rest=b""):
    """Send bytes, and return all that comes back until the connection is closed."""
    address = urlsplit(str(client.base_url))
    with socket.create_connection((address.hostname, address.port), timeout=10.0) as connection:
        connection.sendall(data)
        if pause:
            time.sleep(pause)
        found = b""
        try:
            if rest:
                connection.sendall(rest)
            while part := connection.recv(65536):
                found += part
        except ConnectionError:
            pass
    return found


def test_slow_clients_are_let_go(frozen):
    client, _ = frozen
    began = time.monotonic()
    assert raw(client, b"POST /events HTTP/1.1\r\nHost: localhost\r\nX: ") == b""  # a header that never ends
    assert b" 408 " in raw(
        client,
        b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
        b"Connection: close\r\n\r\n{",
    )
    assert time.monotonic() - began < 8.0
    assert client.get("/health").status_code == 200


def test_floods_of_headers_are_refused(frozen):
    flood = b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 100) for n in range(500))
    assert b" 400 " in raw(frozen[0], flood)


@pytest.mark.parametrize("path", [
    "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/page.js/../../server.py", "/model?path=/etc/passwd",
    "/page/page.js", "/static/x", "/docs",
])  # fmt: skip
def test_paths_lead_to_no_files(frozen, path):
    told = raw(frozen[0], f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert b"root:" not in told and b"import " not in told
    assert b" 404 " in told.split(b"\r\n")[0] or path.startswith("/model")


def test_other_hosts_and_methods_are_refused(frozen):
    client, _ = frozen
    assert client.get("/model", headers={"host": "evil.example"}).status_code == 421
    assert client.get("/events").status_code == 405
    assert client.get("/model?raw_rows=maybe").status_code == 400


def test_a_token_is_needed_where_it_is_set(model_file):
    with server(hw.load(model_file), token=TOKEN) as (client, _):
        row = {"json": {"rows": events(1)}}
        assert client.post("/score", **row).status_code == 200
        assert client.get("/model", headers={"host": "other.example"}).status_code == 200
        for wrong in ("", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer é"):
            for path in ("/model", "/metrics", "/look"):
                answer = client.get(path, headers={"Authorization": wrong.encode()})
                assert answer.status_code == 401 and answer.json()["error"]
        assert client.get("/health", headers={"Authorization": ""}).status_code == 200


def test_other_addresses_need_a_token():
    with pytest.raises(ValueError, match="so it needs a token"):
        ServerSettings(host="0.0.0.0")
    assert ServerSettings(host="0.0.0.0", token=TOKEN).port == 8400
    with pytest.raises(ValueError, match="both a certificate and its key"):
        ServerSettings(certificate="a.pem")


def test_when_too_much_waits_requests_are_to_come_again(model_file, tmp_path, monkeypatch):
    monkeypatch.setattr("headwater.live.http.request_source.WAITING_EVENTS", 10)
    with server(hw.load(model_file), tmp_path) as (client, service):
        answer = client.post("/events", json={"rows": events(11)})
        assert answer.status_code == 429 and answer.headers["retry-after"] == "1"
        assert client.post("/events", json={"rows": events(10)}).status_code == 200
        assert service.engine.events == 10


def test_a_full_disk_is_answered_and_nothing_is_lost(model_file, tmp_path, monkeypatch):
    with server(hw.load(model_file), tmp_path, id_field="id") as (client, service):
        sync = service.engine.log.sync

        def full():
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(service.engine.log, "sync", full)
        answer = client.post("/events", json={"rows": events(3)})
        assert answer.status_code == 503 and "No space left" in answer.json()["error"]
        monkeypatch.setattr(service.engine.log, "sync", sync)
        answers = client.post("/events", json={"rows": events(3)}).json()["answers"]
        assert all("double" not in one for one in answers)
