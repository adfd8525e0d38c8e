"""headwater forecast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.failures import usage_error
from headwater.cli.support.model_arguments import load
from headwater.cli.support.options import MessageOptions, ModelFile, ReadOptions, Seed, TableOptions
from headwater.cli.support.output_files import check_output
from headwater.cli.support.tables import format_for, table_writer
from headwater.registry import word_of

if TYPE_CHECKING:
    from headwater.estimators.forecast import Forecast

EXAMPLES = """
headwater forecast regimes.hw --steps 12
headwater forecast machines.hw --steps 24 --of sensor-17 -o ahead.csv
headwater forecast regimes.hw this_year.csv --steps 12 --level 0.5
headwater forecast regimes.hw --steps 12 --paths 100 -o paths.parquet
"""

Rows = Annotated[
    list[str] | None,
    typer.Argument(help="The rows so far of another sequence; nothing is learned.", metavar="[DATA]", show_default=False),
]
Steps = Annotated[int, typer.Option("--steps", min=1, help="How many rows ahead.")]
Of = Annotated[
    str | None,
    typer.Option("--of", metavar="KEY", help="The learned sequence to go on with.", show_default="the one without a key"),
]
Level = Annotated[float, typer.Option("--level", help="Probability of the intervals, between 0 and 1.")]
Future = Annotated[
    list[str] | None,
    typer.Option("--future", help="Inputs of the next rows, for models that have inputs.", metavar="DATA", show_default=False),
]
Paths = Annotated[
    int | None, typer.Option("--paths", min=1, help="Write so many drawn paths in place of the law.", show_default=False)
]


def forecast(
    model: ModelFile,
    reading: ReadOptions,
    messages: MessageOptions,
    table: TableOptions,
    data: Rows = None,
    steps: Steps = 1,
    of: Of = None,
    future: Future = None,
    level: Level = 0.9,
    paths: Paths = None,
    seed: Seed = 0,
) -> None:
    """Forecast the next rows of a sequence with a hidden Markov model.

    Writes a line for each step: the mean of each column, an interval, and the probability of each state. With --paths it
    writes rows of drawn paths.
    """
    check_output(table.output)
    form = format_for(table, messages)
    learned: Any = load(model)
    if not hasattr(learned, "forecast"):
        raise usage_error(f"{word_of(learned)} has no sequences to forecast: hidden Markov models have")
    if not 0.0 < level < 1.0:
        raise usage_error(f"--level must lie between 0 and 1, got {level:g}")
    if data and of is not None:
        raise usage_error("--of names a sequence that was learned, and DATA has the rows of another: give one of them")
    learned.set_params(random_state=seed)
    given: dict[str, object] = {}
    if data:
        given |= dict(**reading.open_stream(data, like=learned).at_once())
    if future:
        given["future"] = reading.open_stream(future, like=learned).at_once().X
    if of is not None:
        given["key"] = _find_key(learned.open_sequences_, of)
    found = learned.forecast(steps, **given)
    with table_writer(table.output, form) as write:
        write(found.to_dict(level) if paths is None else _path_columns(found, paths))


def _find_key(opened: list[object], name: str) -> object:
    """Return the key of an open sequence that is written like this: a name, or a number."""
    keys = [key for key in opened if key is not None]
    found = next((key for key in keys if str(key) == name), None)
    if found is None:
        some = ", ".join(map(str, keys[:5])) + (" ..." if len(keys) > 5 else "")
        raise ValueError(f"--of must name an open sequence, got {name}; {f'open are {some}' if keys else 'none has a name'}")
    return found


def _path_columns(found: Forecast, paths: int) -> dict[str, object]:
    import numpy as np

    drawn, steps = found.sample(paths), len(found)
    columns: dict[str, object] = {
        "path": np.repeat(np.arange(1, paths + 1), steps),
        "step": np.tile(np.arange(1, steps + 1), paths),
    }
    return columns | {name: drawn[:, :, at].ravel() for at, name in enumerate(found.names)}


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, forecast, examples=EXAMPLES)
