"""Help that fits a screen: the options most people need, then the names of the others; `--help-all` explains these, too."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from textwrap import wrap
from types import NoneType
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo, OptionInfo

WIDEST_LINE = 100  # columns of text that are easy to read, however wide the terminal is
NAME_COLUMNS = 26  # of options; longer ones get a line of their own
MESSAGES = "Messages"  # the panel that comes last
HELP_ALL = "help_all"  # the parameter of --help-all, which no command sees
PLACEHOLDERS = {Path: "FILE", int: "N", float: "X", str: "TEXT"}  # of values, by type


@dataclass(frozen=True)
class CommandHelp:
    """The parts of the help of a command. Examples after an empty line are shown by `--help-all` only."""

    name: str
    words: str
    examples: str
    parameters: Sequence[Parameter]

    @property
    def has_more(self) -> bool:
        """Whether some options or examples are left out of the short help."""
        return "\n\n" in self.examples.strip() or any(panel for panel in self._options())

    def text(self, everything: bool = False, width: int | None = None) -> str:
        """Return the help: the short one, or everything."""
        width = width or min(WIDEST_LINE, shutil.get_terminal_size().columns)
        arguments = [(_placeholder(one, info), info) for one, info in self._infos() if isinstance(info, ArgumentInfo)]
        usage = " ".join(["Usage: headwater", self.name, "[OPTIONS]", *(name for name, _ in arguments)])
        lines = [usage, ""]
        for part in self.words.split("\n\n"):
            lines += [*wrap(part, width), ""]
        shown = self.examples.strip() if everything else self.examples.strip().split("\n\n")[0]
        lines += ["Examples:", *(f"  {line}" for line in shown.splitlines() if line), ""]
        if arguments:
            lines += ["Arguments:", *_table([(name.strip("[]."), info.help or "") for name, info in arguments], width), ""]
        panels = self._options()
        rest = "Show this message." if everything or not self.has_more else "Show this message; --help-all shows all options."
        lines += ["Options:", *_table([*panels.pop("", []), ("-h, --help", rest)], width)]
        if everything:
            for panel, rows in panels.items():
                lines += ["", f"{panel}:", *_table(rows, width)]
        elif panels:
            lines += ["", f"More options, which headwater {self.name} --help-all explains:"]
            lines += _table([(panel, " ".join(_long_name(name) for name, _ in rows)) for panel, rows in panels.items()], width)
        return "\n".join(lines)

    def _infos(self) -> list[tuple[Parameter, OptionInfo | ArgumentInfo]]:
        return [(one, one.annotation.__metadata__[0]) for one in self.parameters]

    def _options(self) -> dict[str, list[tuple[str, str]]]:
        """Names and explanations of options, by panel; the common options have no panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter, info in self._infos():
            if isinstance(info, OptionInfo) and not info.hidden:
                panels.setdefault(info.rich_help_panel or "", []).append(_explain(parameter, info))
        order = sorted(panels, key=lambda one: (one != "", one == MESSAGES))  # others as they come
        return {name: panels[name] for name in order}


def _kinds(parameter: Parameter) -> list[type]:
    """The types that a parameter may have."""
    given = parameter.annotation.__origin__
    return [one for one in get_args(given) or (given,) if one is not NoneType]


def _explain(parameter: Parameter, info: OptionInfo) -> tuple[str, str]:
    """The names of an option with a placeholder of its value, and its explanation with its default."""
    kinds = _kinds(parameter)
    given = [info.default, *(info.param_decls or ())]  # typer takes the first name for a default, at first
    names = [name for one in given if isinstance(one, str) and one.startswith("-") for name in one.split("/")]
    value = "" if bool in kinds else info.metavar or PLACEHOLDERS.get(kinds[0], "TEXT")
    default = info.show_default
    if default is True and parameter.default not in (None, (), Parameter.empty):
        default = str(parameter.default)
    text = (info.help or "") + (f" [default: {default}]" if isinstance(default, str) and bool not in kinds else "")
    return f"{', '.join(sorted(names, key=len))} {value}".rstrip(), text


def _long_name(names: str) -> str:
    """The longest of the names of an option: "--quiet" of "-q, --quiet"."""
    return max(names.replace(",", " ").split(), key=lambda one: (one.startswith("--"), len(one)))


def _placeholder(parameter: Parameter, info: ArgumentInfo) -> str:
    """The placeholder of an argument in the usage; dots mean that there may be several."""
    name = str(info.metavar)
    return name if name.endswith("...") or "list" not in str(parameter.annotation.__origin__) else f"{name}..."


def _table(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Return two columns, the second of which is folded."""
    left = min(NAME_COLUMNS, max(len(name) for name, _ in rows))
    lines = []
    for name, text in rows:
        parts = wrap(text, width - left - 4, break_on_hyphens=False) or [""]
        if len(name) > left:
            lines.append(f"  {name}")
            name = ""
        lines += [f"  {(name if at == 0 else '').ljust(left)}  {part}".rstrip() for at, part in enumerate(parts)]
    return lines


def command_class(found: CommandHelp) -> type[TyperCommand]:
    """Return a class of commands whose help is this one."""

    class Command(TyperCommand):
        def format_help(self, ctx: object, formatter: Any) -> None:
            formatter.write(found.text() + "\n")

    return Command


def help_all_option(found: CommandHelp) -> Parameter:
    """Return the option `--help-all`, which prints everything and ends the command."""

    def show(wanted: bool) -> None:
        if wanted:
            print(found.text(everything=True))
            raise typer.Exit(0)

    option = typer.Option("--help-all", is_eager=True, callback=show, hidden=True, show_default=False)
    return Parameter(HELP_ALL, Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option])


def group_class(words: str, examples: str, after: str, about: Mapping[str, str]) -> type[TyperGroup]:
    """Return a class of groups of commands, whose help says what each command is about."""

    class Group(TyperGroup):
        def format_help(self, ctx: object, formatter: Any) -> None:
            width = min(WIDEST_LINE, shutil.get_terminal_size().columns)
            lines = ["Usage: headwater COMMAND [OPTIONS] ...", "", *wrap(words, width), "", "Examples:"]
            lines += [
                *(f"  {line}" for line in examples.strip().splitlines()),
                "",
                "Commands:",
                *_table([*about.items()], width),
            ]
            options = [
                ("--version", "Print the version."),
                ("--install-completion", "Teach your shell to complete commands."),
                ("--show-completion", "Print the script that it installs."),
                ("-h, --help", "Show this message."),
            ]
            formatter.write("\n".join([*lines, "", "Options:", *_table(options, width), "", after]) + "\n")

    return Group
