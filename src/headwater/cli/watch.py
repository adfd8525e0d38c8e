"""headwater watch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.failures import print_message, usage_error
from headwater.cli.support.live_options import FURTHER, LiveMessages, LiveOptions, check_rate
from headwater.cli.support.model_arguments import file_digest, load_with_commands
from headwater.cli.support.output_files import check_output
from headwater.cli.support.provenance import this_command, write_model
from headwater.cli.support.signals import defer_stop

EXAMPLES = """
tail -F log.jsonl | headwater watch - -m trades.hw --rate 0.001
headwater watch logs/ --follow -m plant.hw --learn --rate 0.001
headwater watch new.csv -m plant.hw --learn -o learned.hw --sink out.csv
headwater watch --config live.toml
"""

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        help="Where events come from: - for standard input, a file or folder of CSV or JSON lines, or an address.",
        metavar="SOURCE...",
        show_default=False,
    ),
]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Wait for lines and files that are added.", show_default=False)]


def watch(options: LiveOptions, messages: LiveMessages, sources: Sources = None, follow: Follow = False) -> None:
    """Answer each event when it comes: is it odd, and why?

    With --learn each event is learned, too, exactly once, even if the process ends in between: the next one goes on where it
    was.
    """
    from headwater.live.addresses import open_source, refuse_loops
    from headwater.live.engine import Engine
    from headwater.live.journal import Journal
    from headwater.live.pump import Pump

    options, more = options.completed(FURTHER)
    options.check()
    texts = sources or list(more.get("source", ()))  # type: ignore[call-overload]
    if not texts:
        raise usage_error("name where events come from: - for standard input, a file, a folder or an address")
    if len(set(texts)) < len(texts):
        raise usage_error("a source can be named once")
    if options.output is not None:
        check_output(options.output)
    assert options.model is not None
    path = Path(options.model)
    model, commands = load_with_commands(path)
    if note := check_rate(model, options):
        print_message(note)
    journal = Journal(messages.quiet)
    refuse_loops(texts, options.all_sinks)
    settings = options.settings(file_digest(path))
    opened = [open_source(text, follow or bool(more.get("follow")), journal, options.owner) for text in texts]
    engine = Engine(model, settings, journal)
    sys.setswitchinterval(0.001)  # seconds: answers wait no longer than that for the learner
    pump = Pump(engine, opened, options.outlets(journal), journal)
    with defer_stop() as stop:
        pump.run(lambda: stop is not None and stop.requested)
        if options.output is not None:
            write_model(engine.learner.model, options.output, [*commands, this_command()])
    if stop is not None and stop.requested:
        raise typer.Exit(0)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, watch, examples=EXAMPLES)
