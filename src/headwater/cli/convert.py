"""headwater convert."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.display import print_json, to_json_value
from headwater.cli.support.failures import usage_error
from headwater.cli.support.model_arguments import load
from headwater.cli.support.options import Data, MessageOptions, Output, ReadOptions
from headwater.cli.support.output_files import check_output, write_atomically
from headwater.cli.support.progress import print_left_out, progress_bar, share_of_bytes_read
from headwater.cli.support.tables import add_columns, format_of, split_complex, symbol_names, table_writer
from headwater.registry import word_of

if TYPE_CHECKING:
    from headwater.core.chunk import Chunk
    from headwater.estimators.base import StreamingEstimator


EXAMPLES = """
headwater convert trades.csv -o trades.parquet --exclude id
headwater convert 'days/*.csv.gz' -o days.npy --missing drop
headwater convert docword.kos.txt -o kos.npz  # sparse, as scipy stores it
headwater convert trades.hw -o trades.json    # what a model has learned
"""

Format = Annotated[
    str | None,
    typer.Option(
        "--output-format", help="csv, tsv, jsonl, parquet, arrow, npy or npz.", show_default="by the ending of its name"
    ),
]
ARRAY_FORMATS = ("npy", "npz")


def convert(
    data: Data, reading: ReadOptions, messages: MessageOptions, output: Output = None, output_format: Format = None
) -> None:
    """Write data in another format, or a model as JSON.

    The data is written as a model would see it: columns chosen, categories and missing values as asked.
    """
    check_output(output)
    if len(data) == 1 and Path(data[0]).suffix == ".hw":
        written = _convert_model(Path(data[0]), output, output_format)
    elif (output_format or ("" if output is None else output.suffix[1:].lower())) in ARRAY_FORMATS:
        if output is None:
            raise usage_error("arrays are written to a file: name it by -o")
        written = _convert_to_array(data, reading, output, output_format or output.suffix[1:].lower(), messages)
    else:
        written = _convert_to_table(data, reading, output, format_of(output, output_format), messages)
    if messages.json and output is not None:
        print_json({"output": str(output), **written})


def _convert_model(path: Path, output: Path | None, output_format: str | None) -> dict[str, object]:
    named = output is not None and (output.is_file() or not output.exists()) and output.suffix.lower() != ".json"
    if output_format not in (None, "json") or (output_format is None and named):
        raise usage_error(
            f"what a model has learned is written as JSON, to a name that ends in .json, got {output_format or output}"
        )
    text = json.dumps(to_json_value(learned_values(load(path))), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        with write_atomically(output) as place:
            place.write_text(text, encoding="utf-8")
    return {"bytes": len(text.encode())}


def learned_values(model: StreamingEstimator) -> dict[str, object]:
    """Return what a model has learned, by its public names."""
    names = getattr(model, "feature_names_in_", None)
    return {
        "model": type(model).__name__,
        "word": word_of(model),
        "parameters": {name: value for name, value in model.get_params(deep=False).items() if value is not None},
        "rows": model.n_samples_seen_,
        "columns": None if names is None else list(names),
        "learned": {name: getattr(model, name) for name in type(model)._traits.answers},
    }


def _convert_to_table(
    data: list[str], reading: ReadOptions, output: Path | None, form: str, messages: MessageOptions
) -> dict[str, object]:
    rows = 0
    stream = reading.open_stream(data)
    with table_writer(output, form) as write, progress_bar(messages, "converting", stream.total_rows) as watch:
        for chunk in stream:
            write(_chunk_columns(chunk, reading))
            rows += len(chunk)
            watch(rows, share=share_of_bytes_read(stream))
    print_left_out(stream)
    return {"rows": rows, "rows_left_out": stream.rows_left_out}


def _chunk_columns(chunk: Chunk, reading: ReadOptions) -> dict[str, object]:
    """Return the columns of a chunk by name, and the companions of its rows by the names of their columns."""
    import numpy as np

    if chunk.lengths is not None:
        numbers = chunk.start + np.repeat(np.arange(len(chunk.lengths)), chunk.lengths)
        return {"sequence": numbers, "symbol": symbol_names(chunk.schema, chunk.X)}
    dense = np.asarray(chunk)
    names = chunk.columns or [f"x{place}" for place in range(dense.shape[1])]
    columns = split_complex({str(name): dense[:, place] for place, name in enumerate(names)})
    belonging = {"y": reading.target, "sample_weight": reading.weight, "labels": reading.label, "key": reading.key}
    for name, called in belonging.items():
        if getattr(chunk, name) is not None:
            columns = add_columns(columns, {called or name: getattr(chunk, name)})
    return columns


def _convert_to_array(
    data: list[str], reading: ReadOptions, output: Path, form: str, messages: MessageOptions
) -> dict[str, object]:
    import numpy as np

    from headwater.io.row_collection import collect_rows

    stream = reading.open_stream(data)
    together = collect_rows(stream, instead="; a table such as .parquet is written chunk by chunk")
    with write_atomically(output) as place, place.open("wb") as file:
        if hasattr(together.X, "tocsr"):
            from scipy import sparse

            if form == "npy":
                raise usage_error("sparse rows are written as .npz, got .npy")
            sparse.save_npz(file, together.X.tocsr())
        elif form == "npy":
            np.save(file, together.X, allow_pickle=False)
        else:
            belonging = {name: together[name] for name in together.keys() if name != "X"}  # noqa: SIM118
            np.savez_compressed(file, X=together.X, **belonging)
    print_left_out(stream)
    return {"rows": len(together), "rows_left_out": stream.rows_left_out}


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, convert, examples=EXAMPLES)
