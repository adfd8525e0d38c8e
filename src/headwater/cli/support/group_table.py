"""Which groups of rows are odd, written as a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from headwater.cli.support.display import print_json
from headwater.cli.support.failures import print_message, usage_error
from headwater.cli.support.marked_rows import naming_column
from headwater.cli.support.model_arguments import load
from headwater.cli.support.options import MessageOptions, ReadOptions, TableOptions
from headwater.cli.support.output_files import check_output
from headwater.cli.support.progress import print_left_out, progress_bar, share_of_bytes_read
from headwater.cli.support.score_judge import find_judge
from headwater.cli.support.tables import format_for, table_writer
from headwater.core.chunk import Chunk
from headwater.core.values import AnyArray
from headwater.estimators.anomaly_groups import checked_groups
from headwater.policies.group_testing import judge_groups
from headwater.registry import word_of


def write_groups(
    path: Path,
    data: Sequence[str],
    by: str | None,
    window: int | None,
    reading: ReadOptions,
    table: TableOptions,
    messages: MessageOptions,
) -> None:
    """Write a line for each group or window of the data. Scores of all rows are held in memory, and not the rows."""
    check_output(table.output)
    form, model = format_for(table, messages), load(path)
    judge = find_judge(model, 0.0)
    if judge is None:
        raise usage_error(f"groups needs p-values of rows, which this {word_of(model)} does not give on the command line")
    scores, pvalues, named = [np.empty(0)], [np.empty(0)], [np.empty(0, dtype=object)]
    with naming_column("--by"):
        kept = () if by is None else (by,)
        stream = reading.with_gaps(model, "drop").open_stream(data, like=model, keep=kept)
        with progress_bar(messages, "scoring", stream.total_rows) as watch:
            for chunk in stream.arriving():
                found = judge.columns(chunk)
                scores.append(cast(AnyArray, found["anomaly_score"]))
                pvalues.append(cast(AnyArray, found["pvalue"]))
                if by is not None:
                    named.append(_names_in(chunk, by))
                watch(chunk.start + len(chunk), share=share_of_bytes_read(stream))
    score, pvalue = np.concatenate(scores), np.concatenate(pvalues)
    groups = None if by is None else checked_groups(np.concatenate(named), len(score))
    uniforms = 1.0 - np.random.RandomState(0).random_sample(len(score))
    lines = judge_groups(score, pvalue, groups, window, cast(Any, model)._score_sketch().rows, uniforms)
    with table_writer(table.output, form) as write:
        write(lines)
    print_left_out(stream)
    if table.output is not None:
        said = {"output": str(table.output), "rows": len(score), "lines": len(lines["rows"])}
        print_json(said) if messages.json else print_message(f"note: {len(lines['rows']):,} lines, of {len(score):,} rows")


def _names_in(chunk: Chunk, column: str) -> AnyArray:
    """Return the group of each row of a chunk, or refuse a row that names none."""
    names = chunk.kept[column].to_pylist()
    lost = next((at for at, name in enumerate(names) if name is None or name != name), None)
    if lost is not None:
        raise ValueError(f"column {column!r} must name the group of each row, got nothing (first in row {chunk.start + lost})")
    return np.array([str(name) for name in names], dtype=object)
