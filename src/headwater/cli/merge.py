"""headwater merge."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.display import print_description, print_json
from headwater.cli.support.model_arguments import load_with_commands
from headwater.cli.support.options import MessageOptions, Output
from headwater.cli.support.output_files import check_output
from headwater.cli.support.provenance import this_command, write_model

EXAMPLES = """
headwater merge mon.hw tue.hw wed.hw -o week.hw
headwater merge parts/*.hw -o all.hw --json
"""

Models = Annotated[list[Path], typer.Argument(help="Model files.", metavar="MODEL.hw", show_default=False)]


def merge(models: Models, messages: MessageOptions, output: Output = None) -> None:
    """Merge models that learned from different data.

    What they share is counted once. Components of models without a common start are matched.
    """
    import headwater

    check_output(output)
    for place, path in enumerate(models):
        if path.exists() and any(other.exists() and path.samefile(other) for other in models[:place]):
            raise ValueError(f"models must be different models, got {path} twice: its rows would count twice")
    parts = [load_with_commands(path) for path in models]
    with warnings.catch_warnings():  # the merge report has them
        warnings.simplefilter("ignore", UserWarning)
        merged = headwater.merge([model for model, _ in parts])
    if output is not None:
        write_model(merged, output, [*(command for _, commands in parts for command in commands), this_command()])
    if messages.json:
        written = None if output is None else str(output)
        print_json({"output": written, "report": str(merged.merge_report_).splitlines(), **merged.describe().to_dict()})
        return
    print_description(merged)
    if output is not None:
        print(f"Saved in {output}.")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, merge, examples=EXAMPLES)
