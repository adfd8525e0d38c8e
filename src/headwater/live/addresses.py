"""Sources and sinks by the texts that name them on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headwater.core.validation import one_line
from headwater.live.learner import Notice
from headwater.live.sinks.line_sink import LineSink
from headwater.live.sinks.parquet_sink import ParquetSink
from headwater.live.sinks.sink import Sink
from headwater.live.sources.followed_files import ENDINGS, FollowedFiles, followed
from headwater.live.sources.source import Source
from headwater.live.sources.standard_input import StandardInput

# By scheme: module and class, whose instances are made of the address and of what is told to the journal.
SOURCES = {
    "redis": ("sources.redis_stream", "RedisStream"),
    "rediss": ("sources.redis_stream", "RedisStream"),
    "kafka": ("sources.kafka_topic", "KafkaTopic"),
    "mqtt": ("sources.mqtt_topic", "MqttTopic"),
    "mqtts": ("sources.mqtt_topic", "MqttTopic"),
}
SINKS = {
    "webhook": ("sinks.webhook_sink", "WebhookSink"),
    "redis": ("sinks.redis_sink", "RedisSink"),
    "rediss": ("sinks.redis_sink", "RedisSink"),
    "kafka": ("sinks.kafka_sink", "KafkaSink"),
    "mqtt": ("sinks.mqtt_sink", "MqttSink"),
    "mqtts": ("sinks.mqtt_sink", "MqttSink"),
}
LINE_ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv"}


def _silent(kind: str, **parts: object) -> None:
    """Tell nobody."""


def open_source(text: str, follow: bool = False, notice: Notice = _silent, owner: str = "") -> Source:
    """Return the source that a text names: ``-``, a file or folder, or an address such as ``redis://host/stream``.

    What a broker keeps for its reader is kept for the `owner`, such as a folder of snapshots.
    """
    if text == "-":
        return StandardInput()
    scheme = _scheme(text)
    if scheme in SOURCES:
        source: Source = _load(SOURCES[scheme])(text, notice)
        source.owner = owner
        return source
    if scheme:
        raise ValueError(f"a source must be -, a file, a folder, or an address of {_listed(SOURCES)}, got {one_line(text, 80)}")
    path = Path(text)
    if path.is_file() and not path.name.lower().endswith((*ENDINGS, ".log", ".txt")):
        raise ValueError(f"{text} must be CSV or JSON lines ({', '.join(ENDINGS)}) to be followed: score it by headwater score")
    return FollowedFiles(path, follow)


def open_sink(text: str, fields: Sequence[str] = (), notice: Notice = _silent) -> Sink:
    """Return the sink that a text names: ``-`` or ``csv:-``, a file, or an address such as ``webhook:https://host/path``."""
    if text in ("-", "csv:-", "jsonl:-"):
        return LineSink(None, "csv" if text == "csv:-" else "jsonl", fields)
    scheme = _scheme(text)
    if scheme in SINKS:
        sink: Sink = _load(SINKS[scheme])(text, notice)
        return sink
    path = Path(text)
    if not scheme and path.suffix.lower() == ".parquet":
        return ParquetSink(path, fields)
    if not scheme and path.suffix.lower() in LINE_ENDINGS:
        return LineSink(path, LINE_ENDINGS[path.suffix.lower()], fields)
    raise ValueError(
        f"a sink must be -, csv:-, a file that ends with {', '.join(LINE_ENDINGS)}, a folder that ends with .parquet, or an "
        f"address of {_listed(SINKS)}, got {one_line(text, 80)}"
    )


def refuse_loops(sources: Sequence[str], sinks: Sequence[str]) -> None:
    """Refuse sinks whose answers would come back as events."""
    for source in sources:
        for sink in sinks:
            if source == "-" or sink.endswith("-"):
                continue
            if _scheme(source) or _scheme(sink):
                loops = source.partition("?")[0] == sink.partition("?")[0]
            else:
                loops = followed(Path(source), Path(sink))
            if loops:
                raise ValueError(
                    f"answers in {one_line(sink, 80)} would be read as events of {one_line(source, 80)}: name another sink"
                )


def _scheme(text: str) -> str:
    """The scheme of an address; empty for a file, whose drive may have one letter."""
    if text.lower().startswith("webhook:"):
        return "webhook"
    scheme = urlsplit(text).scheme if "://" in text else ""
    return scheme if len(scheme) > 1 else ""


def _load(home: tuple[str, str]) -> Callable[..., Any]:
    module, name = home
    try:
        found: Callable[..., Any] = getattr(import_module(f"headwater.live.{module}"), name)
    except ImportError as error:
        raise ImportError(f"this address needs the extra packages of headwater[live]: {error}") from error
    return found


def _listed(homes: Mapping[str, tuple[str, str]]) -> str:
    return ", ".join(f"{scheme}:" for scheme in homes)
