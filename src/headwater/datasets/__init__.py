"""Small real data that comes with headwater, to try things on.

digits
    1,797 images of handwritten digits, 8 x 8 pixels from 0 to 16 in 64 columns (r0c0 is the upper left corner), and the
    digit that was written, in the column "digit". By E. Alpaydin and C. Kaynak: the test part of "Optical Recognition of
    Handwritten Digits" of the UCI Machine Learning Repository. The file was made of the copy that scikit-learn distributes
    under the BSD 3-Clause licence, whose text is in LICENSE-digits.txt beside it; only names of columns were added.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["licence", "names", "path"]

_FILES = {"digits": ("digits.csv.gz", "LICENSE-digits.txt")}


def names() -> list[str]:
    """Return the names of the data that comes with headwater.

    Examples
    --------
    >>> from headwater import datasets
    >>> datasets.names()
    ['digits']
    """
    return list(_FILES)


def path(name: str = "digits") -> Path:
    """Return where a data file is.

    Parameters
    ----------
    name : str, default="digits"
        One of `names()`.

    Returns
    -------
    path : Path
        The file, which `headwater.stream` reads.

    Examples
    --------
    >>> import headwater as hw
    >>> from headwater import datasets
    >>> stream = hw.stream(datasets.path("digits"), target="digit")
    >>> sum(len(chunk) for chunk in stream)
    1797
    """
    return _here(name, 0)


def licence(name: str = "digits") -> str:
    """Return the licence of a data file.

    Parameters
    ----------
    name : str, default="digits"
        One of `names()`.

    Returns
    -------
    text : str
        The licence, in full.

    Examples
    --------
    >>> from headwater import datasets
    >>> "Redistribution" in datasets.licence("digits")
    True
    """
    return _here(name, 1).read_text(encoding="utf-8")


def _here(name: str, which: int) -> Path:
    if name not in _FILES:
        raise ValueError(f"name must be one of {', '.join(map(repr, _FILES))}, got {name!r}")
    return Path(__file__).parent / _FILES[name][which]
