"""Sources and sinks of brokers, with real ones: what is sent arrives once, from any position, and after a restart."""

import json
import threading
import time

import pytest
from live.brokers import certificate, kafka_cluster, mosquitto, redis_server

from headwater.live.addresses import open_sink, open_source
from headwater.live.broker_address import parse_address

redis = pytest.importorskip("redis", reason="an extra of headwater")
PATIENCE = 30.0


def answers(first, number):
    return [{"event": place, "score": 0.5} for place in range(first, first + number)]


def collect(source, number):
    """The numbers of so many events, and the place after them."""
    found, places, end = [], {}, time.monotonic() + PATIENCE
    while len(found) < number and time.monotonic() < end:
        events = source.fetch(0.2)
        for event in events:
            assert not event.problem, event
            found.append(event.fields["event"])
            if event.place is not None:
                places |= dict([event.place])
        source.answered(events, [{}] * len(events)) if events else None
    return found, places


def deliver(sink, found):
    sink.write(found)
    sink.flush()


def round_trip(address, journal):
    """Answers that a sink sends are events of a source, which goes on from its position."""
    sink, source = open_sink(address, (), journal), open_source(address, notice=journal)
    source.seek({})
    deliver(sink, answers(0, 5))
    found, places = collect(source, 5)
    assert sorted(found) == [0, 1, 2, 3, 4]  # partitions of Kafka have no common order
    deliver(sink, answers(5, 3))
    source.close()
    again = open_source(address, notice=journal)
    again.seek(json.loads(json.dumps(places)))
    assert sorted(collect(again, 3)[0]) == [5, 6, 7]
    assert again.fetch(0.05) == () or list(again.fetch(0.05)) == []
    assert again.lag() in (0.0, None, 3.0, 8.0)
    again.close()
    sink.close()
    return places


class Journal(list):
    def __call__(self, kind, **parts):
        self.append((kind, parts))

    def kinds(self):
        return [kind for kind, _ in self]


def test_entries_of_redis(tmp_path):
    journal = Journal()
    with redis_server(tmp_path) as server:
        address = f"redis://127.0.0.1:{server.port}/events"
        places = round_trip(address, journal)
        assert places["stream"][1] == 5 and journal == []
        client = redis.Redis(port=server.port)
        client.xadd("flat", {"heat": "1.5", "load": "-2"})
        client.xadd("flat", {"heat": b"\xff\xfe", "load": "1"})
        source = open_source(f"redis://127.0.0.1:{server.port}/flat")
        source.seek({})
        one, other = source.fetch(0.2)
        assert one.fields == {"heat": "1.5", "load": "-2"} and "UTF-8" in other.problem
        later = open_source(f"redis://127.0.0.1:{server.port}/flat?from=end")
        assert list(later.fetch(0.05)) == []


def test_entries_that_were_deleted_or_replaced_are_told(tmp_path):
    journal = Journal()
    with redis_server(tmp_path) as server:
        client = redis.Redis(port=server.port)
        entries = [client.xadd("s", {"a": place}) for place in range(10)]
        client.xtrim("s", maxlen=4, approximate=False)
        source = open_source(f"redis://127.0.0.1:{server.port}/s", notice=journal)
        source.seek({"stream": [entries[2].decode(), 3]})
        assert [event.fields["a"] for event in source.fetch(0.2)] == ["6", "7", "8", "9"]
        assert journal.kinds() == ["gap"]
        other = open_source(f"redis://127.0.0.1:{server.port}/s")
        other.seek({"stream": ["99999999999999-0", 3]})
        with pytest.raises(ValueError, match="another stream now"):
            other.fetch(0.1)


def test_what_a_redis_refuses_for_good_is_a_sentence(tmp_path):
    with redis_server(tmp_path) as server:
        redis.Redis(port=server.port).set("events", "text")
        address = f"redis://127.0.0.1:{server.port}/events"
        for said in ("WRONGTYPE", "invalid username-password pair"):
            sink, source = open_sink(address, (), Journal()), open_source(address, notice=Journal())
            source.seek({})
            with pytest.raises(ValueError, match=f"redis://127.0.0.1:{server.port}/events: the server says: .*({said})"):
                source.fetch(0.1)
            with pytest.raises(ValueError, match=f"the server says: .*({said})"):
                deliver(sink, answers(0, 1))
            address = address.replace("127", "ghost:wrong@127", 1)


def test_a_redis_that_comes_back_is_read_on(tmp_path):
    journal = Journal()
    with redis_server(tmp_path) as server:
        address = f"redis://127.0.0.1:{server.port}/s"
        source, sink = open_source(address, notice=journal), open_sink(address, (), journal)
        source.seek({})
        deliver(sink, answers(0, 3))
        assert collect(source, 3)[0] == [0, 1, 2]
        server.kill()
        assert source.fetch(0.1) == ()
        writer = threading.Thread(target=deliver, args=(sink, answers(3, 4)))
        writer.start()
        time.sleep(0.5)
        server.start()
        assert collect(source, 4)[0] == [3, 4, 5, 6]
        writer.join()
        source.close()
        sink.close()
    assert {"retry", "reached"} <= set(journal.kinds())


def test_messages_of_kafka():
    journal = Journal()
    with kafka_cluster() as (_, hosts):
        places = round_trip(f"kafka://{hosts}/events?topic.metadata.refresh.interval.ms=200", journal)
        assert sum(places.values()) == 5
        source = open_source(f"kafka://{hosts}/events", notice=journal)
        source.seek(dict.fromkeys(places, 10**6))
        with pytest.raises(ValueError, match="another topic now"):
            for _ in range(100):
                source.fetch(0.1)
        source.close()
        with pytest.raises(ValueError, match="must be an offset"):
            open_source(f"kafka://{hosts}/events").seek({"0": "x"})


def test_messages_of_mqtt(tmp_path):
    journal = Journal()
    with mosquitto(tmp_path) as server:
        root = f"mqtt://127.0.0.1:{server.port}/plant"
        source, sink = open_source(f"{root}/+/heat?client=one", notice=journal), open_sink(f"{root}/a/heat", (), journal)
        assert source.fetch(0.5) == ()  # which makes the session
        deliver(sink, answers(0, 3))
        events = []
        while len(events) < 3:
            events += source.fetch(1.0)
        assert [event.fields["event"] for event in events] == [0, 1, 2]
        assert events[0].fields["topic"] == "plant/a/heat"
        source.close()  # and acknowledges nothing
        again = open_source(f"{root}/+/heat?client=one", notice=journal)
        deliver(sink, answers(3, 2))
        assert collect(again, 5)[0] == [0, 1, 2, 3, 4]
        again.close()
        sink.close()


@pytest.mark.slow
def test_a_mosquitto_that_comes_back_is_read_on(tmp_path):
    journal = Journal()
    with mosquitto(tmp_path, saves=True) as server:
        address = f"mqtt://127.0.0.1:{server.port}/a"
        source, sink = open_source(address, notice=journal), open_sink(address, (), journal)
        assert source.fetch(0.5) == ()
        deliver(sink, answers(0, 3))
        assert collect(source, 3)[0] == [0, 1, 2]
        time.sleep(2.5)  # until the broker has saved the session
        server.kill()
        writer = threading.Thread(target=deliver, args=(sink, answers(3, 3)))
        writer.start()
        time.sleep(0.5)
        server.start()
        found = set()
        while found != {3, 4, 5}:
            found |= set(collect(source, 1)[0])
        writer.join()
        source.close()
        sink.close()


@pytest.mark.slow
def test_redis_over_tls(tmp_path, monkeypatch):
    authority, own, key = certificate(tmp_path)
    options = ("--tls-port", "{port}", "--port", "0", "--tls-auth-clients", "no", "--requirepass", "secret",
               "--tls-cert-file", own, "--tls-key-file", key, "--tls-ca-cert-file", authority)  # fmt: skip
    with redis_server(tmp_path, *options) as server:
        journal, address = Journal(), f"rediss://:secret@localhost:{server.port}/events"
        stranger = open_source(address, notice=journal)
        stranger.seek({})
        assert stranger.fetch(0.1) == ()
        assert "CERTIFICATE_VERIFY_FAILED" in str(journal)
        monkeypatch.setenv("SSL_CERT_FILE", authority)
        round_trip(address, Journal())


@pytest.mark.slow
def test_mqtt_over_tls(tmp_path, monkeypatch):
    authority, own, key = certificate(tmp_path)
    lines = f"cafile {authority}\ncertfile {own}\nkeyfile {key}\n"
    with mosquitto(tmp_path, lines=lines) as server:
        monkeypatch.setenv("SSL_CERT_FILE", authority)
        sink, source = (
            opened(f"mqtts://localhost:{server.port}/plant", notice=Journal())
            for opened in (lambda text, notice: open_sink(text, (), notice), open_source)
        )
        source.seek({})
        source.fetch(2.0)  # subscribes
        deliver(sink, answers(0, 5))
        assert sorted(collect(source, 5)[0]) == [0, 1, 2, 3, 4]
        source.close()
        sink.close()


@pytest.mark.parametrize(("text", "said"), [
    ("redis://host", "must be redis://HOST"),
    ("redis://me:secret@/x", "must be redis://HOST"),
    ("redis://host/s?form=end", "has the option 'form'; there are from, db"),
    ("redis://host/s?from=middle", "from must be begin or end"),
    ("redis://host/s?db=x", "db must be a number"),
    ("redis://host:port/s", "must name a host and a port"),
    ("mqtt://host/", "must be mqtt://HOST"),
    ("kafka://host/t?group=3", "has the option 'group'"),
    ("ftp://host/t", "a source must be -, a file, a folder, or an address of redis:"),
])  # fmt: skip
def test_addresses_that_make_no_sense_are_refused(text, said):
    with pytest.raises(ValueError) as error:
        open_source(text)
    assert said in str(error.value) and "secret" not in str(error.value)


def test_names_hold_no_secrets():
    found = parse_address("kafka://me:p%40ss@one:1,two:2/topic?sasl.mechanism=PLAIN&settings=a", ("settings",), free=".")
    assert found.name == "kafka://one:1,two:2/topic" and found.password == "p@ss"


def test_what_reads_a_topic_names_its_session():
    mqtt_client = pytest.importorskip("headwater.live.mqtt_client", reason="needs an extra of headwater")
    address = parse_address("mqtt://host/a", ("client",))

    def name(role):
        return mqtt_client.MqttConnection(address, None, role).client._client_id

    assert name("source one") == name("source one") != name("source two")


def test_a_name_that_another_process_has_is_told():
    mqtt_client = pytest.importorskip("headwater.live.mqtt_client", reason="needs an extra of headwater")
    connection = mqtt_client.MqttConnection(parse_address("mqtt://host/a", ("client",)), None, "source")
    taken = mqtt_client.ReasonCode(mqtt_client.PacketTypes.DISCONNECT, "Session taken over")
    connection.client.on_disconnect(connection.client, None, None, taken, None)
    with pytest.raises(ValueError, match="another process has the same name"):
        connection.check()
