"""python -m papers.data [DIRECTORY]: compare the data sets of a directory with those that the pages were measured on."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pages.page import data_directory
from papers.data.digest import compare


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m papers.data", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=data_directory(), help="default: HEADWATER_DATA")
    directory = parser.parse_args(argv).directory
    if directory is None:
        parser.error("name a directory, or let HEADWATER_DATA name one")
    found = compare(directory)
    for file, state in found.items():
        print(f"{state:<8} {file}")
    return 1 if "differs" in found.values() else 0


if __name__ == "__main__":
    sys.exit(main())
