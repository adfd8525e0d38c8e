"""How a function becomes a command: its parameters, and the fields of its option records, become options."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import MISSING, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from headwater.cli.support.failures import report_failure, usage_error
from headwater.cli.support.help_text import HELP_ALL, CommandHelp, command_class, help_all_option
from headwater.cli.support.output_files import refuse_to_replace

# The examples in the help of each command, and the first sentence of it, by its name.
EXAMPLES: dict[str, tuple[str, ...]] = {}
ABOUT: dict[str, str] = {}


def add_command(
    app: typer.Typer, function: Callable[..., None], *, examples: str, name: str | None = None, in_place: Sequence[str] = ()
) -> None:
    """Add a function to the commands. A parameter whose type is a dataclass stands for one option per field.

    Options that are paths are outputs, and may not name a file that an argument names; `in_place` names an argument and an
    option that may be the same file.
    """
    hints = get_type_hints(function, include_extras=True)
    parameters: list[Parameter] = []
    records: dict[str, type] = {}
    for parameter in signature(function).parameters.values():
        kind = hints[parameter.name]
        if hasattr(kind, "__dataclass_fields__"):
            records[parameter.name] = kind
            parameters.extend(_option_parameters(kind))
        else:
            parameters.append(parameter.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY))

    called = name or function.__name__
    words = "\n\n".join(" ".join(part.split()) for part in (function.__doc__ or "").split("\n\n"))
    found = CommandHelp(called, words, examples, tuple(parameters))

    @functools.wraps(function)
    def run(**given: object) -> None:
        given.pop(HELP_ALL, None)
        _refuse_name_clashes(parameters, given, in_place)
        quiet = given.get("quiet", False)
        made = {
            record: kind(**{field.name: given.pop(field.name) for field in fields(kind)}) for record, kind in records.items()
        }
        try:
            with _silence_library() if quiet else nullcontext():
                function(**given, **made)
        except (KeyboardInterrupt, BrokenPipeError) as error:  # typer would handle them in its own way
            raise typer.Exit(report_failure(error, debug=False)) from None

    options = [*parameters, help_all_option(found)]
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in options}
    del run.__wrapped__
    EXAMPLES[called] = tuple(line for line in examples.strip().splitlines() if line)
    ABOUT[called] = words.split("\n\n")[0].split(". ")[0].rstrip(".") + "."
    app.command(called, help=words, cls=command_class(found))(run)


@contextmanager
def _silence_library() -> Iterator[None]:
    """Silence the notes of the library about compiling kernels."""
    logger = logging.getLogger("headwater")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _option_parameters(record: type) -> list[Parameter]:
    hints = get_type_hints(record, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(record)
    ]


def _refuse_name_clashes(parameters: Sequence[Parameter], given: Mapping[str, object], in_place: Sequence[str]) -> None:
    """Refuse an output that is an input or another output."""
    found = {parameter.name: parameter.annotation.__metadata__[0] for parameter in parameters}
    inputs = {name: _to_list(given[name]) for name, one in found.items() if isinstance(one, ArgumentInfo)}
    values = ((name, given[name]) for name, one in found.items() if isinstance(one, OptionInfo))
    outputs = {name: value for name, value in values if isinstance(value, Path)}
    seen: dict[Path, str] = {}
    for name, output in outputs.items():
        option = (found[name].param_decls or (f"--{name}",))[0]
        other = seen.setdefault(output.resolve(), option)
        if other != option:
            raise usage_error(f"{other} and {option} both write to {output}: choose another name for one of them")
        read = [one for argument, ones in inputs.items() if not {argument, name} <= set(in_place) for one in ones]
        refuse_to_replace(option, output, read)


def _to_list(value: object) -> list[str]:
    if value is None:
        return []
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]
