"""headwater serve."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Unpack

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.failures import print_message, usage_error
from headwater.cli.support.live_options import FURTHER, LiveMessages, LiveOptions, check_rate
from headwater.cli.support.model_arguments import file_digest, load_with_commands
from headwater.cli.support.options import OptionRules, option
from headwater.cli.support.output_files import check_output
from headwater.cli.support.provenance import this_command, write_model
from headwater.cli.support.signals import defer_stop

EXAMPLES = """
headwater serve plant.hw --learn --rate 0.001     # http://127.0.0.1:8400/
headwater serve plant.hw --source logs/ --follow --alarm odd.jsonl
headwater serve plant.hw --host 0.0.0.0 --token-file token.txt
headwater serve --config live.toml
"""
TOKEN_VARIABLE = "HEADWATER_TOKEN"
TOKEN_CHARACTERS = 16  # at least

ModelFile = Annotated[str | None, typer.Argument(help="Model file to begin with.", metavar="MODEL.hw", show_default=False)]


def _option(flag: str, text: str, **rules: Unpack[OptionRules]) -> object:
    return option(flag, text=text, panel="Server", **rules)


@dataclass(frozen=True)
class ServerOptions:
    """Where the server listens, and who may ask."""

    host: Annotated[str | None, _option("--host", "Address to listen at (127.0.0.1).")] = None
    port: Annotated[int | None, _option("--port", "Port to listen at (8400); 0 for a free one.", min=0, max=65535)] = None
    token_file: Annotated[
        str | None,
        _option("--token-file", f"File with the token that requests must have; or {TOKEN_VARIABLE} in the environment."),
    ] = None
    certificate: Annotated[str | None, _option("--certificate", "File with the certificate for TLS.")] = None
    key_file: Annotated[str | None, _option("--key-file", "File with the key of the certificate.")] = None
    source: Annotated[list[str], _option("--source", "Further sources of events, as of headwater watch.")] = ()  # type: ignore[assignment]
    follow: Annotated[bool | None, _option("--follow", "Wait for lines and files that are added to them.")] = None


def serve(options: LiveOptions, server: ServerOptions, messages: LiveMessages, file: ModelFile = None) -> None:
    """Answer events that come by HTTP: is each odd, and why?

    POST /events takes {"rows": [...]} or JSON lines; the page at / shows what happens, /openapi.json describes the rest. With
    --learn each event is learned, too, exactly once, even if the process ends in between.
    """
    try:
        from headwater.live.http.server import ServerSettings
        from headwater.live.http.server import serve as run_server
        from headwater.live.http.service import Service
    except ImportError as error:
        raise ImportError(f"headwater serve needs the extra packages of headwater[live]: {error}") from None
    from headwater.live.addresses import open_source, refuse_loops
    from headwater.live.engine import Engine
    from headwater.live.journal import Journal

    options, more = options.completed(FURTHER)
    given = {name: value for name, value in more.items() if getattr(server, name) in (None, (), [])}
    server = replace(server, **given)  # type: ignore[arg-type]
    if file is not None:
        if options.model is not None and options.config is None:
            raise usage_error("name the model once: as an argument, or by -m")
        options = replace(options, model=file)
    options.check()
    settings = ServerSettings(
        server.host or "127.0.0.1",
        8400 if server.port is None else server.port,
        _token(server.token_file),
        server.certificate,
        server.key_file,
    )
    if options.output is not None:
        check_output(options.output)
    assert options.model is not None
    found, commands = load_with_commands(Path(options.model))
    if note := check_rate(found, options):
        print_message(note)
    journal = Journal(messages.quiet)
    refuse_loops(server.source, options.all_sinks)
    sources = [open_source(text, bool(server.follow), journal, options.owner) for text in server.source]
    engine = Engine(found, options.settings(file_digest(Path(options.model))), journal)
    sys.setswitchinterval(0.001)  # seconds: answers wait no longer than that for the learner
    service = Service(engine, sources, options.outlets(journal, otherwise=()), journal)
    with defer_stop() as stop:
        run_server(service, settings, journal, lambda: stop is not None and stop.requested)
        if options.output is not None:
            write_model(engine.learner.model, options.output, [*commands, this_command()])


def _token(path: str | None) -> str | None:
    """Return the token; one that can be guessed is refused."""
    found = Path(path).read_text(encoding="utf-8").strip() if path is not None else os.environ.get(TOKEN_VARIABLE, "").strip()
    if not found and path is None:
        return None
    if len(found) < TOKEN_CHARACTERS or not found.isascii():
        raise ValueError(f"a token must have at least {TOKEN_CHARACTERS} characters of ASCII, so that nobody guesses it")
    return found


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, serve, examples=EXAMPLES)
