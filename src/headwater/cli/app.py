"""The application: its commands, and the handling of errors, warnings and signals around each of them."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress

import typer

from headwater.cli import (
    compare,
    compile,
    convert,
    demo,
    diff,
    fit,
    forecast,
    groups,
    impute,
    inspect,
    label,
    merge,
    predict,
    report,
    sample,
    score,
    serve,
    watch,
)
from headwater.cli import version as versions
from headwater.cli.support.advice import to_command_line_words
from headwater.cli.support.command import ABOUT
from headwater.cli.support.failures import (
    EXIT_USAGE,
    CommandError,
    error_sentence,
    output_is_silenced,
    print_message,
    report_failure,
    silence_output,
)
from headwater.cli.support.help_text import group_class
from headwater.cli.support.imports import skip_slow_imports
from headwater.cli.support.provenance import record_command
from headwater.cli.support.signals import clean_up, ignore_signals, install_handlers
from headwater.cli.support.usage_hints import usage_hint

WORDS = "Learn mixtures, hidden Markov models, topics and factors from streams: one pass, bounded memory, models that merge."
EXAMPLES = """
headwater fit gaussian trades.parquet -k 8 -o trades.hw
headwater inspect trades.hw
headwater score trades.hw new.csv --rate 0.01 -o scores.parquet
headwater report trades.hw trades.parquet -o trades.html
"""
AFTER = "Each command has its own examples: headwater fit --help"

COMMANDS = (
    fit, score, groups, label, watch, serve, impute, predict, forecast, inspect, sample, merge, diff, compare, report, convert,
    compile, demo, versions,
)  # fmt: skip

app = typer.Typer(
    name="headwater",
    help=WORDS,
    cls=group_class(WORDS, EXAMPLES, AFTER, ABOUT),
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
for module in COMMANDS:
    module.add_to(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from headwater import __version__

        print(__version__)
        raise typer.Exit(0)


@app.callback()
def _headwater(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", is_eager=True, callback=_print_version, show_default=False
    ),
) -> None:
    pass


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Without `argv` the process is ours, and is ended if the command failed."""
    if argv is not None:
        return run_command(list(argv))
    install_handlers()
    skip_slow_imports()
    code = run_command(sys.argv[1:])
    ignore_signals()
    if code != 0 or output_is_silenced():
        # Python would wait for threads that read a pipe without a writer.
        clean_up()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    return code


def run_command(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    debug = "--debug" in arguments
    record_command(arguments)
    with warnings.catch_warnings():
        _print_warnings_in_one_line()
        try:
            code = app(args=arguments, prog_name="headwater", standalone_mode=False)
            sys.stdout.flush()
        except CommandError as error:
            if type(error).__name__ == "NoArgsIsHelpError":
                print(error.format_message(), file=sys.stderr)
                return EXIT_USAGE
            print_message(f"{error_sentence(error).rstrip('.')}{usage_hint(error)} ({_help_of(error)})")
            return int(error.exit_code)
        except typer.Abort:
            return report_failure(KeyboardInterrupt(), debug)
        except SystemExit as stop:
            if stop.code == 1:  # how rich and typer exit when the reader of their output has gone
                silence_output()
                return 0
            return stop.code if isinstance(stop.code, int) else 0
        except BrokenPipeError:
            silence_output()
            return 0
        except (Exception, KeyboardInterrupt) as error:
            return report_failure(error, debug)
    return code if isinstance(code, int) else 0


def _help_of(error: object) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path if context is not None else 'headwater'} --help"


def _print_warnings_in_one_line() -> None:
    """Print warnings of the library as errors are printed."""

    def show(message: object, *rest: object, **more: object) -> None:
        print_message("note: " + to_command_line_words(" ".join(str(message).split())))

    warnings.showwarning = show
