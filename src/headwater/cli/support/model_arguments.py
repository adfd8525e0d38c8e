"""Models on the command line: a word that names a kind, or a file that holds one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headwater.cli.support import provenance
from headwater.cli.support.failures import usage_error
from headwater.registry import MODELS, companions_of, find, takes_sparse_rows, takes_symbols, word_of

# What belongs to the rows of a chunk, and how it is asked for.
COMPANIONS = {"y": "--target", "sample_weight": "--weight", "labels": "--label", "key": "--key", "lengths": "sequences"}


def load(path: Path) -> Any:
    """Return the model that a file holds."""
    return load_with_commands(path)[0]


def load_with_commands(path: Path) -> tuple[Any, list[str]]:
    """Return the model that a file holds, and the commands that learned it."""
    if path.is_dir():
        raise IsADirectoryError(f"a model is a file, and {path} is a directory")
    if not path.exists():
        raise FileNotFoundError(f"there is no model file {path}")
    return provenance.read_model(path)


def is_model_file(text: str) -> bool:
    """Whether a text names a model file, and not a kind of models."""
    return text not in MODELS and (Path(text).suffix == ".hw" or Path(text).exists())


def entry_of(word: str) -> Any:
    """Return the kind of models that a word names, or refuse the word as a mistake in the command."""
    try:
        return find(word)
    except ValueError as error:
        raise usage_error(str(error)) from None


def file_digest(path: Path) -> str:
    """Return what tells one file from another."""
    if not path.is_file():  # a pipe would be waited for
        raise OSError(f"{path} is no regular file, and should be a model file")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_companions(model: Any, chunk: Any) -> None:
    """Refuse data that comes with what the model cannot learn from, or without what it must have."""
    kind = type(model)
    for name, there, taken_by in (
        ("sparse rows", hasattr(chunk.X, "tocsr"), takes_sparse_rows),
        ("sequences of symbols", chunk.lengths is not None and chunk.X.ndim == 1, takes_symbols),
    ):
        if there and not taken_by(kind):
            others = " and ".join(one.word for one in MODELS.values() if taken_by(one.kind))
            lines = takes_symbols(kind) and (chunk.schema or {}).get("kind") == "text"
            instead = ", and --format sequences makes sequences of lines" if lines else ""
            raise usage_error(f"{word_of(model)} does not learn from {name}; {others} do{instead}")
    word = word_of(model)
    check_accepted(model, [name for name in chunk.keys() if name != "X"])  # noqa: SIM118
    if kind._target_columns and chunk.y is None:
        raise usage_error(f"{word} needs --target, the column that it is to foretell")
    if kind._takes_sequences and chunk.lengths is None:
        raise usage_error(f"{word} learns from sequences: name the column that tells them apart by --key")


def check_accepted(model: Any, names: Iterable[str]) -> None:
    """Refuse what a model cannot learn from, by the names that it has in a chunk."""
    taken = companions_of(type(model))
    for name in names:
        if name not in taken:
            raise usage_error(f"{word_of(model)} does not take {COMPANIONS[name]}")
