"""Hints after a mistake in the arguments of a command: its form, or `--set` for a parameter of a model."""

from __future__ import annotations

from typing import Any


def usage_hint(error: object) -> str:
    """Return what helps after this error, as the end of its sentence; empty if nothing is known to help."""
    context: Any = getattr(error, "ctx", None)
    if context is None:
        return ""
    parameters = context.command.params
    if type(error).__name__ == "MissingParameter":
        wanted = [
            str(one.metavar) + ("..." if one.nargs == -1 else "") for one in parameters if one.param_type_name == "argument"
        ]
        return f": the form is {' '.join([context.command_path, *wanted])}"
    if type(error).__name__ == "NoSuchOption" and any("--set" in one.opts for one in parameters):
        name = str(getattr(error, "option_name", "")).lstrip("-").replace("-", "_")
        return f"; a parameter of the model is set by --set {name}=VALUE"
    return ""
