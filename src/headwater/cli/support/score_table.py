"""Scores of a stream, written as they are made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headwater.cli.support.display import print_json
from headwater.cli.support.failures import print_message, usage_error
from headwater.cli.support.model_arguments import load
from headwater.cli.support.options import MessageOptions, ReadOptions
from headwater.cli.support.output_files import check_output
from headwater.cli.support.progress import print_left_out, progress_bar, share_of_bytes_read
from headwater.cli.support.row_scores import RowAnswers, make_scorer
from headwater.cli.support.score_reference import Reference, history_reference, sample_scores
from headwater.cli.support.tables import format_of, table_writer
from headwater.core.chunk import Chunk
from headwater.io.recipes.table_sequences import whole_sequences
from headwater.io.row_collection import select_rows


@dataclass(frozen=True)
class ScoreOptions:
    """What is to be said of each row."""

    rate: float | None = None
    threshold: float | None = None
    only_odd: bool = False
    rank: bool = False
    probabilities: bool = False
    against: str | None = None
    keep: tuple[str, ...] = ()


def write_scores(
    path: Path,
    data: Sequence[str],
    reading: ReadOptions,
    asked: ScoreOptions,
    output: Path | None,
    output_format: str | None,
    talk: MessageOptions,
) -> None:
    """Score data and write what was asked for; with `talk.json`, to standard output in JSON alone."""
    check_output(output)
    form = "jsonl" if talk.json and output is None and output_format is None else format_of(output, output_format)
    model = load(path)
    if asked.keep and type(model)._takes_sequences:
        raise usage_error(
            "a score is that of a whole sequence, which has a key and no other column of its rows: leave out --keep"
        )
    stream = reading.stream(data, like=model, keep=asked.keep)
    reference = _find_reference(model, stream, asked, talk, data)
    threshold = asked.threshold
    if asked.rate is not None:
        assert reference is not None
        threshold = reference.threshold(asked.rate)
        if reference.rate_warning(asked.rate):
            print_message(reference.rate_warning(asked.rate))
    if reading.missing is None and not type(model)._takes_sequences:
        stream = stream.marked()
    rows, answered, odd, total = 0, 0, 0, 0.0
    answer = make_scorer(model, asked.probabilities)
    with table_writer(output, form) as write, progress_bar(talk, "scoring", stream.total_rows) as watch:
        for chunk in whole_sequences(model, stream.arriving()):
            whole = _complete_rows(chunk)
            answers = answer(chunk if whole is None else select_rows(chunk, whole))
            if asked.rank and answers.scores is None:
                raise ValueError("rows can be ranked only with the target, whose density is the score")
            said = _score_columns(answers, asked, reference, threshold, type(model)._measure)
            is_odd = None if threshold is None else _fill_rows(said["odd"], whole, empty=False)
            columns = _row_numbers(chunk, answers, rows, whole)
            _refuse_name_clash(chunk.kept, [*columns, *said])
            columns |= chunk.kept
            columns |= {name: _fill_rows(values, whole) for name, values in said.items()}
            if is_odd is not None:
                odd += int(is_odd.sum())
            if asked.only_odd:
                columns = {name: _select_rows(values, is_odd) for name, values in columns.items()}
            write(columns)
            rows += len(answers) if whole is None else len(whole)
            answered += len(answers)
            if answers.scores is not None:
                total += float(answers.scores[np.isfinite(answers.scores)].sum())
            watch(chunk.start + len(chunk), share=share_of_bytes_read(stream))
    if (lacking := rows - answered) > 0:
        lack = "has no score, since it lacks a value" if lacking == 1 else "have no score, since they lack a value"
        print_message(f"note: {lacking:,} of {rows:,} rows {lack}")
    print_left_out(stream)
    if talk.json and output is not None:
        print_json(
            {
                "output": str(output),
                "rows": rows,
                "rows_without_score": rows - answered,
                "rows_left_out": stream.rows_left_out,
                "mean_score": total / answered if answered else math.nan,
                "threshold": threshold,
                "odd": odd if threshold is not None else None,
                "against": None if reference is None else reference.origin,
            }
        )


def _find_reference(
    model: Any, stream: Any, asked: ScoreOptions, talk: MessageOptions, data: Sequence[str]
) -> Reference | None:
    if asked.rate is None and not asked.rank:
        return None
    known = history_reference(model) if asked.against != "data" else None
    if known is not None:
        return known
    if asked.against == "learned":
        raise ValueError("the model has kept no scores of the rows that it learned: use --against data")
    if "-" in data:
        raise usage_error(
            "--rate and --rank of standard input need the scores of rows that were learned, which this model has not kept, or "
            "data that can be read twice: write the input to a file first, or give --threshold"
        )
    answer = make_scorer(model, shares=False)

    def scores() -> Iterator[Any]:
        with progress_bar(talk, "looking for what is usual", stream.total_rows) as watch:
            for chunk in whole_sequences(model, stream):
                found = answer(chunk).rank_scores
                if found is None:
                    raise ValueError("rows can be ranked only with the target, whose density is the score")
                yield found
                watch(chunk.start + len(chunk), share=share_of_bytes_read(stream))

    return sample_scores(scores(), "data")


def _complete_rows(chunk: Chunk) -> Any:
    """Return which rows of a marked stream lack nothing; None if all do."""
    if chunk.schema is None or chunk.schema.get("missing") != "drop" or chunk.lengths is not None:
        return None
    whole = ~np.isnan(np.asarray(chunk.X)[:, 0])
    return None if whole.all() else whole


def _fill_rows(values: Any, whole: Any, empty: Any = None) -> Any:
    """Return answers for some rows as answers for all, empty ones for the others."""
    if whole is None:
        return values
    import pyarrow as pa

    everywhere = np.zeros(len(whole), dtype=np.asarray(values).dtype)
    everywhere[whole] = values
    return pa.array(everywhere, mask=~whole) if empty is None else np.where(whole, everywhere, empty)


def _select_rows(values: Any, rows: Any) -> Any:
    import pyarrow as pa

    return values.filter(pa.array(rows)) if hasattr(values, "filter") else np.asarray(values)[rows]


def _row_numbers(chunk: Chunk, answers: RowAnswers, before: int, whole: Any) -> dict[str, Any]:
    """The number of each row in its stream; where answers are for sequences, that of the sequence."""
    if whole is None and len(answers) != len(chunk):
        return {"sequence": before + np.arange(len(answers))}
    return {"row": chunk.row_numbers}


def _refuse_name_clash(kept: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse columns of the data that have the names of columns that are written."""
    if taken := [name for name in kept if name in names]:
        raise usage_error(
            f"--keep {','.join(taken)} has a name that score gives to what it says: rename the column, or leave it out"
        )


def _score_columns(
    answers: RowAnswers, asked: ScoreOptions, reference: Reference | None, threshold: float | None, measure: str
) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if answers.predictions is not None:
        columns["prediction"] = answers.predictions
    ranked = answers.rank_scores
    if ranked is not None:
        columns["score"] = answers.scores
        if answers.sizes is not None:
            columns |= {measure: answers.sizes, f"score_per_{measure[:-1]}": ranked}
        if asked.rank and reference is not None:
            columns["rank"] = reference.ranks(ranked)
        if threshold is not None:
            columns["odd"] = ranked < threshold
    elif threshold is not None:
        raise ValueError("rows can be called odd only with the target, whose density is the score")
    if answers.clusters is not None:
        columns["cluster"] = answers.clusters
    if asked.probabilities:
        if answers.shares is None:
            raise usage_error("this model has no components, so there are no --probabilities")
        columns |= {f"{answers.called}{number}": answers.shares[:, number] for number in range(answers.shares.shape[1])}
    return columns
