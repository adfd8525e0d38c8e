"""headwater compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, TypedDict

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.display import print_json
from headwater.cli.support.failures import usage_error
from headwater.cli.support.options import MessageOptions

EXAMPLES = """
headwater compile                   # all kernels, for an image or CI
headwater compile gaussian hmm      # those of two models
headwater compile --again --json    # replace what is there already
"""

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[MODEL]...", help="Models, by their words: all if none is named.", show_default=False),
]
Again = Annotated[bool, typer.Option("--again", help="Compile what is there already, too, and replace it.")]

NO_DIRECTORY = "there is no directory to keep compiled kernels in: NUMBA_CACHE_DIR can name one"


def compile_kernels(messages: MessageOptions, models: Words = None, again: Again = False) -> None:
    """Compile kernels before the first fit, for images and CI.

    Kernels are compiled when they are first used, and kept beside the package, or where NUMBA_CACHE_DIR says. This command uses
    all of them once. It fixes the seed of Python's hashes, on which the order of sums in compiled code depends: installations
    that were compiled by it, with the same versions on the same kind of processor, give the same bits.
    """
    words = _words(models or [])
    records = []
    for record in run_small_fits(words, again):
        if record["compiled"] and not record["directories"]:
            raise OSError(NO_DIRECTORY)
        records.append(record)
        if not (messages.json or messages.quiet):
            print(f"{record['model']}: {_count(record['compiled'])} compiled in {record['seconds']:.1f} s{_found(record)}")
    directories = sorted({directory for record in records for directory in record["directories"]})
    if not directories:
        raise OSError(NO_DIRECTORY)
    if messages.json:
        shown = [{name: value for name, value in record.items() if name != "directories"} for record in records]
        print_json({"directories": directories, "compiled": sum(record["compiled"] for record in records), "models": shown})
    else:
        print(f"kept in {', '.join(directories)}")


class Compiled(TypedDict):
    """What the small fit of a model has compiled."""

    model: str
    compiled: int
    found: int
    seconds: float
    directories: list[str]


def run_small_fits(words: Sequence[str], again: bool) -> Iterator[Compiled]:
    """Run small fits of models in a process whose hashes are fixed; yield what each has compiled."""
    from headwater.kernels._cache import COMPILE_ANEW

    environ = {**os.environ, "PYTHONHASHSEED": "0", **({COMPILE_ANEW: "1"} if again else {})}
    command = [sys.executable, "-m", "headwater.cli.support.kernel_fits", *words]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            for line in process.stdout:
                yield json.loads(line)
        except GeneratorExit:
            process.terminate()
            raise
        said = process.stderr.read().strip().splitlines()
    if process.returncode:
        raise OSError(f"the process that compiles ended with code {process.returncode}: {said[-1] if said else 'no word'}")


def _words(given: Sequence[str]) -> list[str]:
    from headwater.registry import MODELS, find

    try:
        return list(dict.fromkeys(find(one).word for one in given)) or list(MODELS)
    except ValueError as error:
        raise usage_error(str(error)) from None


def _count(number: int) -> str:
    return "1 kernel" if number == 1 else f"{number} kernels"


def _found(record: Compiled) -> str:
    return f", {record['found']} found" if record["found"] else ""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, compile_kernels, examples=EXAMPLES, name="compile")
