"""Events of text: lines of CSV below a header, or of JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence

from headwater.io.recipes.column_choice import refuse_duplicate_names
from headwater.live.events import Event

LINE_BYTES = 2**20  # of one event; a longer line is refused
DEPTH_LIMIT = 32  # levels of nesting of an event
RAW_CHARACTERS = 1000
BOM = b"\xef\xbb\xbf"


def json_event(line: bytes | str, place: tuple[str, object] | None = None) -> Event:
    """Return the event of a line, which should be an object."""
    try:
        if len(line) > LINE_BYTES:
            raise ValueError(f"it has {len(line):,} bytes, and at most {LINE_BYTES:,} are read")
        found = DECODER.decode(line if isinstance(line, str) else line.decode("utf-8-sig" if line[:3] == BOM else "utf-8"))
        problem = "" if isinstance(found, dict) else "an event must be a JSON object with a value for each field"
    except (ValueError, RecursionError) as error:
        found, problem = {}, f"the event cannot be read as JSON: {error}"
    if problem:
        return Event({}, place, problem, _text(line))
    return Event(found, place)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


DECODER = json.JSONDecoder(parse_constant=_refuse_constant)  # made once: json.loads would make one for each line


def _text(line: bytes | str) -> str:
    return (line if isinstance(line, str) else line[: 4 * RAW_CHARACTERS].decode(errors="replace"))[:RAW_CHARACTERS]


class LineReader:
    """Makes events of lines: the first decides whether they are JSON, or CSV of which it is the header.

    Parameters
    ----------
    name : str
        Of what is read, for messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.header: list[str] | None = None
        self.delimiter = ","
        self.begun = False

    def begin(self, line: bytes) -> bool:
        """Look at the first line; return whether it is a header, and no event."""
        self.begun = True
        text = line.decode("utf-8-sig", errors="replace").strip()
        if text.startswith("{"):
            return False
        self.delimiter = max(",;\t|", key=text.count)
        self.header = [one.strip() for one in next(csv.reader([text], delimiter=self.delimiter))]
        refuse_duplicate_names(self.header, self.name)
        return True

    def events(self, lines: Sequence[bytes], places: Sequence[tuple[str, object] | None]) -> list[Event]:
        """Return the events of lines, each with the place after it; empty lines are none."""
        header = self.header
        if header is None:
            return [json_event(line, place) for line, place in zip(lines, places, strict=True) if line.strip()]
        found = []
        for line, place in zip(lines, places, strict=True):
            text = line.decode("utf-8", errors="replace").rstrip("\r\n")
            if not text:
                continue
            if len(line) > LINE_BYTES:
                found.append(
                    Event({}, place, f"the event has {len(line):,} bytes, and at most {LINE_BYTES:,} are read", _text(line))
                )
                continue
            try:
                values = (
                    text.split(self.delimiter)
                    if '"' not in text
                    else next(csv.reader([text], delimiter=self.delimiter, strict=True))
                )
            except csv.Error as error:
                found.append(Event({}, place, f"the line cannot be read as CSV: {error}", _text(line)))
                continue
            if len(values) != len(header):
                found.append(
                    Event({}, place, f"the line has {len(values)} values, and the header names {len(header)}", _text(line))
                )
                continue
            found.append(Event({name: value for name, value in zip(header, values, strict=True) if value != ""}, place))
        return found
