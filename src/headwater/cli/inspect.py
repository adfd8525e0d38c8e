"""headwater inspect."""

from __future__ import annotations

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.display import print_description, print_json
from headwater.cli.support.model_arguments import load_with_commands
from headwater.cli.support.options import MessageOptions, ModelFile

EXAMPLES = """
headwater inspect trades.hw
headwater inspect trades.hw --json | jq '.components[0]'
"""


def inspect(model: ModelFile, messages: MessageOptions) -> None:
    """Show what a model has learned, and its health.

    Components come with their weights, their most distinctive values and credible intervals.
    """
    learned, commands = load_with_commands(model)
    if messages.json:
        history = getattr(learned, "history_", None)
        held_out = None
        if history is not None:
            each = {"perplexity": history.late_perplexity} if type(learned)._traits.measure else {}
            held_out = {"score": history.late_score, "rows": history.late_scored, **each}
            if not each and history.late_parts[3]:
                names = ("usual_score", "usual_rows", "impossible_score", "impossible_rows")
                held_out |= dict(zip(names, history.late_parts, strict=True))
        health = learned.health_.to_dict()
        print_json({**learned.describe().to_dict(), "health": health, "held_out": held_out, "commands": commands})
        return
    print_description(learned)
    for command in commands:
        print(f"Made by: {command}")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, inspect, examples=EXAMPLES)
