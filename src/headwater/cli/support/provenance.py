"""The commands that learned a model, stored in its file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.cli.support.signals import remove_parts_on_stop

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator


RECORD = "commands"
# Options that name files; they change nothing in the model.
DESTINATION_OPTIONS = {"-o", "--output", "--checkpoint", "--checkpoint-rows", "--checkpoint-seconds", "--report"}
DESTINATION_OPTIONS |= {"--tls-ca-file", "--tls-cert", "--tls-key"}
# Learning on a cluster changes the model, but the choice of the cluster does not: the record says "local".
CLUSTER_OPTION = "--cluster"
# Flags that change only what is printed.
MESSAGE_FLAGS = {"--json", "--quiet", "-q", "--debug"}

_arguments: list[str] = []


def record_command(arguments: Sequence[str]) -> None:
    """Record the arguments of this process's command."""
    _arguments[:] = arguments


def this_command() -> str:
    """Return the command of this process, without options that change nothing in the model."""
    kept: list[str] = []
    skip = False
    for argument in _arguments:
        name, equals, _ = argument.partition("=")
        if skip:
            skip = False
        elif name in DESTINATION_OPTIONS or name == CLUSTER_OPTION:
            skip = not equals
            kept.extend((CLUSTER_OPTION, "local") if name == CLUSTER_OPTION else ())
        elif argument not in MESSAGE_FLAGS:
            kept.append(argument)
    return shlex.join(["headwater", *kept])


def read_model(path: Path) -> tuple[StreamingEstimator, list[str]]:
    """Return the model in a file, and the commands that learned it."""
    from headwater.estimators.model_file import read as read_file

    model, extra = read_file(path)
    known = extra.get(RECORD) if isinstance(extra, dict) else None
    return model, [str(command) for command in known] if isinstance(known, list) else []


def write_model(model: StreamingEstimator, path: Path, commands: Sequence[str], raw_rows: bool = True) -> None:
    """Write a model to a file, with the commands that learned it."""
    from headwater.estimators.model_file import save

    with remove_parts_on_stop(path):
        save(model, path, raw_rows=raw_rows, extra={RECORD: list(commands)})
