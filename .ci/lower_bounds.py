"""Print the oldest release that pyproject.toml allows of each dependency, a pin a line: `python .ci/lower_bounds.py plot test`.

The names are the extras whose dependencies are wanted beside those of the package itself. Dependencies of dependencies are not
pinned: the installer takes the newest that suit the pins.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<extras>\[[\w,.-]+\])?>=(?P<version>[\w.]+)")


def lower_bounds(extras: list[str]) -> list[str]:
    """Return `name[extras]==version` for every dependency of the package and of the named extras."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    pins = {}
    for line in wanted:
        found = REQUIREMENT.fullmatch(line)
        if found is None:
            raise SystemExit(f"pyproject.toml asks for {line!r}, but lower bounds need name>=version")
        pins[found["name"]] = f"{found['name']}{found['extras'] or ''}=={found['version']}"
    return sorted(pins.values())


if __name__ == "__main__":
    print("\n".join(lower_bounds(sys.argv[1:])))
