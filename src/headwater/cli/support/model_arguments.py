"""Models on the command line: a word that names a kind, a file that holds one, and parameters by option or by --set."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.support import provenance
from headwater.cli.support.advice import OPTIONS
from headwater.cli.support.failures import usage_error
from headwater.registry import (
    MODELS,
    Entry,
    companions_of,
    find,
    make_provisional_learner,
    takes_sparse_rows,
    takes_symbols,
    word_of,
)

if TYPE_CHECKING:
    from headwater.core.algorithm import Algorithm
    from headwater.core.chunk import Chunk
    from headwater.estimators.base import StreamingEstimator

# Companions of the rows of a chunk, and their options.
COMPANIONS = {
    "y": "--target",
    "sample_weight": "--weight",
    "labels": "--label",
    "noise": "--standard-errors",
    "key": "--key",
    "lengths": "sequences",
}


# Files


def load(path: Path) -> StreamingEstimator:
    """Return the model in a file."""
    return load_with_commands(path)[0]


def load_with_commands(path: Path) -> tuple[StreamingEstimator, list[str]]:
    """Return the model in a file, and the commands that learned it."""
    if path.is_dir():
        raise IsADirectoryError(f"a model is a file, and {path} is a directory")
    if not path.exists():
        raise FileNotFoundError(f"there is no model file {path}")
    return provenance.read_model(path)


def is_model_file(text: str) -> bool:
    """Whether a text names a model file, and not a kind of model."""
    return text not in MODELS and (Path(text).suffix == ".hw" or Path(text).exists())


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a regular file."""
    if not path.is_file():  # reading a pipe would wait for its writer
        raise OSError(f"{path} is no regular file, and should be a model file")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Words and parameters


def complete_word(incomplete: str) -> list[tuple[str, str]]:
    """Return the words of models with this beginning and their descriptions, for the completion of a shell."""
    return [(word, entry.about) for word, entry in MODELS.items() if word.startswith(incomplete)]


def entry_of(word: str) -> Entry:
    """Return the kind of model that a word names, or refuse the word as a mistake in the command."""
    try:
        return find(word)
    except ValueError as error:
        raise usage_error(str(error)) from None


@dataclass(frozen=True)
class ModelSettings:
    """Options for the parameters of a new model."""

    k: Annotated[str | None, typer.Option("-k", metavar="K", help="Number of components, or auto.", show_default="auto")] = None
    half_life: Annotated[
        str | None,
        typer.Option("--half-life", metavar="ROWS", help="Rows after which a row counts half, or auto.", show_default=False),
    ] = None
    resolution: Annotated[
        str | None,
        typer.Option(
            "--resolution",
            metavar="STEP",
            help="Rounding step: auto, none, 0.01 or 1,0.01.",
            show_default="auto",
        ),
    ] = None
    given: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other parameter, such as covariance_type=diag.",
            show_default=False,
        ),
    ] = ()  # type: ignore[assignment]
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all random draws.")] = 0

    def given_options(self) -> list[str]:
        """Return the options that set a parameter, by their names on the command line."""
        found = {
            "-k": self.k,
            "--half-life": self.half_life,
            "--resolution": self.resolution,
            "--set": list(self.given) or None,
        }
        return [name for name, value in found.items() if value is not None]


def make_model(entry: Entry, settings: ModelSettings, algorithm: str | None = None) -> tuple[StreamingEstimator, Algorithm]:
    """Return an unfitted model with these settings, and the algorithm that will learn it.

    The parameters are checked here, before any data is read; what depends on the columns is checked with the first rows.
    """
    values = parse_assignments(settings.given)
    own = {name: value for name, value in values.items() if "." not in name}
    inner = {name.partition(".")[2]: value for name, value in values.items() if name.startswith("algorithm.")}
    half_life = parse_half_life(settings.half_life)
    asked = {"n_components": parse_component_count(settings.k), "algorithm": algorithm, "half_life": half_life}
    for name, value in asked.items():
        if value is not None and own.setdefault(name, value) is not value:
            raise usage_error(f"{name} is given twice, by an option and by --set")
    own.setdefault("random_state", settings.seed)
    known = list(signature(entry.kind).parameters)
    if settings.resolution is not None:
        if "resolution" in own:
            raise usage_error("resolution is given twice, by an option and by --set")
        if "resolution" not in known:
            raise usage_error(f"{entry.word} takes no {OPTIONS['resolution']}")
        own["resolution"] = parse_resolution(settings.resolution)
    finds_steps = "resolution" in known and "resolution" not in own
    chosen = "n_components" in own
    if not chosen and "n_components" in known:
        if not entry.kind._traits.finds_number:
            raise usage_error(f"{entry.word} needs -k: the most components that there may be, of which some may stay empty")
        own["n_components"] = "auto"
    for name, value in asked.items():
        if value is not None and name not in known:
            raise usage_error(f"{entry.word} takes no {OPTIONS[name]}")
    for name in [*own, *(name for name in values if "." in name and not name.startswith("algorithm."))]:
        if name not in known:
            raise usage_error(f"{entry.word} has no parameter {name!r}{_suggestion(name, known)}; it has {', '.join(known)}")
    if inner:
        own["algorithm"] = _make_algorithm(own.get("algorithm", "auto"), inner)
    model = entry.kind(**own)
    try:
        learner = make_provisional_learner(model)
        if finds_steps and not learner.plan.sweeps:  # rows one by one would take long
            model.set_params(resolution="auto")
        return model, learner.algorithm
    except (ValueError, TypeError) as error:
        raise usage_error(str(error) if chosen else f"{str(error).rstrip('.')}; -k gives the number of components") from None


def algorithm_of(model: StreamingEstimator) -> Algorithm:
    """Return the algorithm of a loaded model."""
    return model._learner.algorithm if model._has_state() else make_provisional_learner(model).algorithm


def parse_assignments(given: Sequence[str], option: str = "--set") -> dict[str, object]:
    """Return the names and values of some `name=value`."""
    values: dict[str, object] = {}
    for one in given:
        name, equals, text = one.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise usage_error(f"{option} takes name=value, got {one!r}")
        if name in values:
            raise usage_error(f"{option} gives {name} twice")
        values[name] = parse_value(text.strip())
    return values


def parse_value(text: str) -> object:
    """Return the value that a text stands for: as JSON, as Python writes it, or else the text itself."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text


def parse_component_count(text: str | None) -> int | str | None:
    """Return the number of components, or "auto"."""
    if text is None or text == "auto":
        return text
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise usage_error(f"-k must be auto or an integer of at least 1, got {text!r}")
    return number


def parse_half_life(text: str | None) -> float | str | None:
    """Return the half-life in rows, or "auto"."""
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise usage_error(f"--half-life must be auto or a number of rows, got {text!r}") from None


def parse_resolution(text: str) -> object:
    """Return the steps of columns: None, "auto", a number, or one for each column."""
    if text in ("auto", "none"):
        return None if text == "none" else text
    try:
        steps = [float(part) for part in text.split(",")]
    except ValueError:
        raise usage_error(
            f"--resolution must be auto, none, a number or one for each column, as in 1,0.01,0, got {text!r}"
        ) from None
    return steps[0] if len(steps) == 1 else steps


def add_vocabulary(entry: Entry, vocabulary: str | None, given: Sequence[str]) -> list[str]:
    """Return the settings; with --vocabulary open, the model is to add new words, too."""
    if vocabulary != "open" or any(one.startswith("vocabulary=") for one in given):
        return list(given)
    if "vocabulary" not in signature(entry.kind).parameters:
        raise usage_error(
            f"{entry.word} cannot take up new words: leave out --vocabulary open, or give a number to hash words to"
        )
    return [*given, "vocabulary=open"]


def _make_algorithm(word: object, values: Mapping[str, object]) -> Algorithm:
    from headwater.core.algorithms import ALGORITHMS

    if word not in ALGORITHMS:
        raise usage_error(f"--algorithm must be one of {', '.join(ALGORITHMS)}, got {word!r}")
    known = list(signature(ALGORITHMS[word]).parameters)
    for name in values:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise usage_error(f"algorithm {word} has no parameter {name!r}{_suggestion(name, known)}; {has}")
    return ALGORITHMS[word](**values)


def _suggestion(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


# Data for a model


def check_companions(model: StreamingEstimator, chunk: Chunk) -> None:
    """Refuse data that the model cannot learn from, or that lacks what the model needs."""
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
    if kind._traits.target_columns and chunk.y is None:
        raise usage_error(f"{word} needs --target, the column that it is to predict")
    if kind._traits.takes_sequences and chunk.lengths is None:
        raise usage_error(f"{word} learns from sequences: name the column that tells them apart by --key")


def check_accepted(model: StreamingEstimator, names: Iterable[str]) -> None:
    """Refuse companions of rows, by their names in a chunk, that the model does not take."""
    accepted = companions_of(type(model))
    for name in names:
        if name not in accepted:
            raise usage_error(f"{word_of(model)} does not take {COMPANIONS[name]}")


@contextmanager
def explain_words(model: StreamingEstimator) -> Iterator[None]:
    """Say of columns of words which chain takes them, where a chain is to learn."""
    from headwater.io.read_errors import NoNumbers, column_phrase

    try:
        yield
    except NoNumbers as error:
        if not error.columns or not model._traits.chained:
            raise
        wanted = "numbers" if not takes_symbols(type(model)) else "symbols that are numbered from 0"
        raise usage_error(
            f"{word_of(model)} learns from {wanted}, and {error.place} holds words in {column_phrase(error.columns)}: use "
            f"mixed-hmm, which takes words as they are, or leave columns out by --exclude"
        ) from None
