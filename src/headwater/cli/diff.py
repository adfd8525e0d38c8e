"""headwater diff."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.display import print_json, replace_control_characters
from headwater.cli.support.model_arguments import load
from headwater.cli.support.options import MessageOptions

EXAMPLES = """
headwater diff last-week.hw this-week.hw
headwater diff berlin.hw paris.hw --json
"""

Before = Annotated[Path, typer.Argument(help="A model file.", metavar="BEFORE.hw", show_default=False)]
After = Annotated[Path, typer.Argument(help="Another one.", metavar="AFTER.hw", show_default=False)]


def diff(before: Before, after: After, messages: MessageOptions) -> None:
    """Compare two models: what has changed from one to the other.

    Components are matched. Weights, means, rates and categories are compared in standard errors.
    """
    import headwater

    found = headwater.compare_models(load(before), load(after))
    if messages.json:
        print_json(found.to_dict())
        return
    print("\n".join(replace_control_characters(line) for line in str(found).splitlines()))


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, diff, examples=EXAMPLES)
