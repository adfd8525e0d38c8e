"""The width of text on a screen."""

from __future__ import annotations

from unicodedata import combining, east_asian_width


def is_wide(letter: str) -> bool:
    """Whether a letter takes the room of two, as Chinese, Japanese and Korean ones do."""
    return east_asian_width(letter) in "WF"


def text_width(text: str) -> int:
    """Return the width of a text in letters of the Latin alphabet."""
    return sum(0 if combining(letter) else 2 if is_wide(letter) else 1 for letter in text)


def cut_to_width(text: str, most: int) -> str:
    """Return a text that is at most so wide; what is cut off is shown by an ellipsis."""
    if text_width(text) <= most:
        return text
    kept, width = "", 0
    for letter in text:
        width += text_width(letter)
        if width > most - 1:
            break
        kept += letter
    return kept.rstrip() + "…"
