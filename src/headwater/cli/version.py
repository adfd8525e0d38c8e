"""headwater version."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.display import print_json
from headwater.cli.support.options import MessageOptions

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "pyarrow", "safetensors", "typer", "rich", "matplotlib")


def versions() -> dict[str, str]:
    """Return the versions of headwater, of Python and of the packages that results depend on."""
    import headwater

    found = {"headwater": headwater.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version_of(package)
        except PackageNotFoundError:
            continue
    return found


def version(messages: MessageOptions) -> None:
    """Print the versions of headwater and of the packages it uses."""
    found = versions()
    if messages.json:
        print_json(found)
        return
    for name, number in found.items():
        print(f"{name} {number}")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, version, examples="headwater version\nheadwater version --json")
