"""Addresses of brokers, such as ``kafka://one:9092,two:9092/topic?from=end``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

STARTS = ("begin", "end")  # of a stream that is read for the first time


@dataclass(frozen=True)
class BrokerAddress:
    """Where a broker is, who asks it, and for which of its streams.

    Examples
    --------
    >>> from headwater.live.broker_address import parse_address
    >>> found = parse_address("redis://me:secret@db:6380/events?from=end", ("from",))
    >>> found.hosts, found.stream, found.options
    ('db:6380', 'events', {'from': 'end'})
    >>> found.name  # without what is secret
    'redis://db:6380/events'
    """

    scheme: str
    hosts: str  # host and port, or several of them with commas
    stream: str
    user: str | None
    password: str | None
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        """The address as it is shown and saved: without user, password and options."""
        return f"{self.scheme}://{self.hosts}/{self.stream}"

    @property
    def from_end(self) -> bool:
        """Whether a stream that is read for the first time begins with what comes next."""
        return self.options.get("from") == "end"

    def host_and_port(self, port: int) -> tuple[str, int]:
        """Return the host and its port; `port` if none is named."""
        found = urlsplit(f"//{self.hosts}")
        try:
            return found.hostname or "localhost", found.port or port
        except ValueError as error:
            raise ValueError(f"{self.name} must name a host and a port: {error}") from None


def parse_address(text: str, options: Sequence[str], free: str = "") -> BrokerAddress:
    """Return the parts of an address; `options` it may have, and others whose names contain `free`."""
    parts = urlsplit(text, allow_fragments=False)  # topics of MQTT may have a #
    who, _, hosts = parts.netloc.rpartition("@")
    user, _, password = who.partition(":")
    stream = unquote(parts.path.removeprefix("/"))
    if not hosts or not stream:
        raise ValueError(f"an address of {parts.scheme} must be {parts.scheme}://HOST[:PORT]/NAME, got {_shown(text, who)}")
    found = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in found:
        if name not in options and not (free and free in name):
            raise ValueError(f"{parts.scheme}://{hosts}/{stream} has the option {name!r}; there are {', '.join(options)}")
    if found.get("from", "begin") not in STARTS:
        raise ValueError(f"from must be {' or '.join(STARTS)}, got {found['from']!r}")
    return BrokerAddress(parts.scheme, hosts, stream, unquote(user) or None, unquote(password) or None, found)


def _shown(text: str, who: str) -> str:
    return text.replace(f"{who}@", "") if who else text
