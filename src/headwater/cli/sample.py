"""headwater sample."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.failures import usage_error
from headwater.cli.support.model_arguments import load
from headwater.cli.support.options import MessageOptions, ModelFile, ReadOptions, Seed, TableOptions
from headwater.cli.support.output_files import check_output
from headwater.cli.support.tables import add_columns, format_for, split_complex, symbol_names, table_writer
from headwater.registry import word_of

if TYPE_CHECKING:
    from headwater.core.values import AnyArray
    from headwater.estimators.base import StreamingEstimator


EXAMPLES = """
headwater sample trades.hw -n 1000 -o drawn.csv
headwater sample news.hw -n 5 --length 200
headwater sample flats.hw flats.csv       # a target for each row of inputs
"""

Number = Annotated[int | None, typer.Option("-n", min=1, help="Rows, or sequences, to draw.", show_default="10")]
Length = Annotated[
    int | None, typer.Option("--length", min=1, help="Counts of a row, or symbols of a sequence.", show_default=False)
]
Inputs = Annotated[list[str] | None, typer.Argument(help="Inputs to draw a target for.", metavar="[DATA]", show_default=False)]


def sample(
    model: ModelFile,
    reading: ReadOptions,
    messages: MessageOptions,
    table: TableOptions,
    data: Inputs = None,
    number: Number = None,
    length: Length = None,
    seed: Seed = 0,
) -> None:
    """Draw rows from a model.

    Each row has the component, state or weights that it was drawn from. If a column of the model has the same name, an
    underscore is added: component_.
    """
    check_output(table.output)
    form = format_for(table, messages)
    learned = load(model)
    learned.set_params(random_state=seed)
    taken = signature(learned.sample).parameters
    given: dict[str, object] = {}
    if length is not None:
        if "length" not in taken:
            raise usage_error(f"{word_of(learned)} draws rows that have no --length")
        given["length"] = length
    with table_writer(table.output, form) as write:
        if "X" in taken:
            if number is not None:
                raise usage_error(f"{word_of(learned)} draws a target for each row of its inputs: leave out -n")
            if not data:
                raise usage_error(f"{word_of(learned)} draws a target for inputs: name data that has them")
            stream, called = reading.open_stream(data, like=learned), learned.describe(values=1, components=1).component
            for chunk in [stream.at_once()] if type(learned)._traits.chained else stream:  # a sequence is drawn as one
                drawn = learned.sample(chunk["X"])
                write(add_columns(_row_columns(learned, chunk.X), {"target": drawn[0], called: drawn[1]}))
            return
        if data:
            raise usage_error(f"{word_of(learned)} draws rows without any data: leave it out")
        write(_sample_columns(learned, *learned.sample(10 if number is None else number, **given)))


def _sample_columns(model: StreamingEstimator, rows: object, sources: AnyArray) -> dict[str, object]:
    """Return drawn rows as columns: sequences in long form, complex numbers as two columns, a column for each weight."""
    import numpy as np

    if isinstance(rows, list):
        lengths = [len(one) for one in rows]
        return {
            "sequence": np.repeat(np.arange(len(rows)), lengths),
            "symbol": symbol_names(getattr(model, "schema_", None), np.concatenate(rows)),
            "component": np.repeat(np.asarray(sources), lengths),
        }
    columns = _row_columns(model, rows)
    if np.ndim(sources) == 1:
        called = "source" if np.iscomplexobj(sources) else model.describe(values=1, components=1).component
        return add_columns(columns, split_complex({called: sources}))
    return add_columns(columns, {f"weight{place}": values for place, values in enumerate(np.asarray(sources).T)})


def _row_columns(model: StreamingEstimator, rows: object) -> dict[str, object]:
    import numpy as np

    dense = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
    dense = dense.reshape(len(dense), -1)
    if type(model)._traits.takes_symbols and dense.shape[1] == 1:
        return {"symbol": symbol_names(getattr(model, "schema_", None), dense[:, 0])}
    names = getattr(model, "feature_names_in_", None)
    if names is None or len(names) != dense.shape[1]:
        names = [f"x{place}" for place in range(dense.shape[1])]
    return split_complex(dict(zip(map(str, names), dense.T, strict=True)))


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, sample, examples=EXAMPLES)
