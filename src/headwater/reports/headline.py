"""The top of a page: the name of the data, and sentences that sum up what was found."""

from __future__ import annotations

import re
from os import PathLike, fspath
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from headwater.diagnostics.numbers import format_number, format_percent

if TYPE_CHECKING:
    from headwater.diagnostics.description import Description
    from headwater.diagnostics.health import Health
    from headwater.reports.reading import Data, DataSummary, OddRow


def name_data(data: Data | None, source: str | None) -> str | None:
    """Return the name of the data: that of its file or folder, or what the user calls it; None if it has none."""
    if isinstance(data, str | PathLike):
        return _stem(fspath(data))
    files = [str(one.name) for one in getattr(data, "files", ()) if getattr(one, "path", None)]
    if len(files) == 1:
        return _stem(files[0])
    if files:
        folders = {PurePosixPath(one.replace("\\", "/")).parent.name for one in files}
        folder = folders.pop() if len(folders) == 1 else ""
        return f"{folder or _stem(files[0]) + ' and others'} ({len(files):,} files)"
    return _stem(source) if source and ", " not in source else source or None


def _stem(path: str) -> str:
    """The name of a file without its folders and endings."""
    name = PurePosixPath(path.replace("\\", "/").rstrip("/")).name
    return re.sub(r"(\.[A-Za-z0-9]{1,8})+$", "", name) or name or path


def summarize_page(found: Description, health: Health, reading: DataSummary | None) -> list[str]:
    """Return sentences: what the model is, what is odd, and whether something is to be done."""
    return [_learned_sentence(found), *_odd_sentences(found, reading), _health_sentence(health)]


def _count(number: int, many: str) -> str:
    return f"{number:,} {many[:-1] if number == 1 and many.endswith('s') else many}"


def _learned_sentence(found: Description) -> str:
    seen = f"{_count(found.rows, found.unit)}{_width_phrase(found)}"
    number = len(found.components) + found.left_out
    if number:
        largest = found.components[0]
        most = (
            f"; the largest is {found.component} {largest.label}, with {format_percent(largest.weight)}" if number > 1 else ""
        )
        return f"{found.model} found {_count(number, found.component + 's')} in {seen}{most}."
    facts = f": {found.facts[0].name} {format_number(found.facts[0].value)}" if found.facts else ""
    return f"{found.model} learned from {seen}{facts}."


def _width_phrase(found: Description) -> str:
    if not found.columns:
        return ""
    width = _count(found.columns, found.width)
    return {"words": f" with a vocabulary of {width}", "symbols": f" over {width}"}.get(found.width, f" of {width}")


def _odd_sentences(found: Description, reading: DataSummary | None) -> list[str]:
    if reading is None or reading.rows < 2:
        return []
    if not reading.odd_number:
        return [f"None of the {reading.rows:,} {found.unit} is odd."]
    number, oddest = f"{'at least ' * reading.odd_number_is_least}{reading.odd_number:,}", reading.odd[0]
    are = "is" if reading.odd_number == 1 else "are"
    one = found.unit[:-1] if found.unit.endswith("s") else found.unit
    return [f"Of {reading.rows:,} {found.unit}, {number} {are} odd; the oddest is {one} {oddest.row:,}{_reason(oddest)}."]


def _reason(odd: OddRow) -> str:
    if not odd.why:
        return ""
    first = odd.why[0]
    return f", because of {first.name} ({format_number(first.value)})"


def _health_sentence(health: Health) -> str:
    if health.warming:
        return "The warm-up is not over, so all of this is provisional."
    number = len(health.actions)
    if not number:
        return "Nothing needs action."
    return f"{number} finding{'s' * (number != 1)} need{'s' * (number == 1)} action: see “Health”."
