"""Scores of a stream, written as they are made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwater.cli.support.display import print_json
from headwater.cli.support.failures import print_message, usage_error
from headwater.cli.support.model_arguments import load
from headwater.cli.support.options import MessageOptions, ReadOptions, TableOptions
from headwater.cli.support.output_files import check_output
from headwater.cli.support.progress import print_left_out, progress_bar, share_of_bytes_read
from headwater.cli.support.reason_columns import check_explains, find_reasons
from headwater.cli.support.row_scores import RowAnswers, make_scorer
from headwater.cli.support.score_judge import NO_TARGET, Judge, find_judge, refuse_discovery_rate
from headwater.cli.support.score_options import ScoreOptions
from headwater.cli.support.score_reference import Reference, history_reference, sample_scores
from headwater.cli.support.tables import format_for, table_writer
from headwater.core.chunk import Chunk
from headwater.io.recipes.tables import whole_sequences
from headwater.io.row_collection import select_rows

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator
    from headwater.io.stream import Stream


@dataclass
class _Totals:
    """Totals of the lines written so far."""

    rows: int = 0
    scored: int = 0
    odd: int = 0
    score: float = 0.0


def write_scores(
    path: Path, data: Sequence[str], reading: ReadOptions, options: ScoreOptions, table: TableOptions, messages: MessageOptions
) -> None:
    """Score data and write a line for each row; with `messages.json` and no output, as JSON lines to standard output."""
    check_output(table.output)
    form = format_for(table, messages)
    model = load(path)
    if options.kept_columns and type(model)._traits.takes_sequences:
        raise usage_error(
            "a score is that of a whole sequence, which has a key and no other column of its rows: leave out --keep"
        )
    if options.explain:
        check_explains(model)
    traits = type(model)._traits
    left_empty = None if traits.chained or traits.takes_sequences else "drop"  # rows that cannot be scored have empty values
    stream = reading.with_gaps(model, left_empty).open_stream(data, like=model, keep=options.kept_columns)
    judge = _find_judge(model, stream, options, data)
    reference = _find_reference(model, stream, options, messages, data, judge is not None)
    threshold = options.threshold
    if judge is not None:
        if options.rate is not None and (warning := judge.rate_warning()):
            print_message(warning)
        threshold = judge.model.threshold(judge.rate) if 0.0 < judge.rate < 1.0 else None
    elif options.rate is not None:
        assert reference is not None
        threshold = reference.threshold(options.rate)
        if warning := reference.rate_warning(options.rate):
            print_message(warning)
    if reading.missing is None and not type(model)._traits.takes_sequences:
        stream = stream.marked()
    totals, answer = _Totals(), make_scorer(model, options.probabilities)
    with table_writer(table.output, form) as write, progress_bar(messages, "scoring", stream.total_rows) as watch:
        for chunk in whole_sequences(model, stream.arriving()):
            complete = _complete_rows(chunk)
            scored = chunk if complete is None else select_rows(chunk, complete)
            answers = answer(scored)
            fixed = threshold if judge is None else None
            columns = _score_columns(answers, options, reference, fixed, type(model)._traits.measure)
            if judge is not None:
                columns |= judge.columns(scored)
            if options.explain:
                odd = np.asarray(columns["odd"]) if "odd" in columns else None
                columns |= find_reasons(model, scored, len(answers), odd, options.only_odd)
            write(_lines(chunk, answers, columns, complete, options, totals))
            watch(chunk.start + len(chunk), share=share_of_bytes_read(stream))
    if (lacking := totals.rows - totals.scored) > 0:
        lack = "has no score, since it lacks a value" if lacking == 1 else "have no score, since they lack a value"
        print_message(f"note: {lacking:,} of {totals.rows:,} rows {lack}")
    print_left_out(stream)
    if messages.json and table.output is not None:
        print_json(
            {
                "output": str(table.output),
                "rows": totals.rows,
                "rows_without_score": totals.rows - totals.scored,
                "rows_left_out": stream.rows_left_out,
                "mean_score": totals.score / totals.scored if totals.scored else math.nan,
                "threshold": threshold,
                "odd": totals.odd if threshold is not None or judge is not None else None,
                "against": "learned" if judge is not None else None if reference is None else reference.origin,
            }
        )


def _lines(
    chunk: Chunk,
    answers: RowAnswers,
    columns: Mapping[str, object],
    complete: NDArray[np.bool_] | None,
    options: ScoreOptions,
    totals: _Totals,
) -> dict[str, object]:
    """Return the columns to write for a chunk, rows that lack a value among them, and add the chunk to the totals."""
    lines = _row_numbers(chunk, answers, totals.rows, complete)
    _refuse_name_clash(chunk.kept, [*lines, *columns])
    lines |= chunk.kept
    lines |= {name: _fill_rows(values, complete) for name, values in columns.items()}
    if "odd" in columns:
        odd = _fill_rows(columns["odd"], complete, empty=False)
        totals.odd += int(odd.sum())
        if options.only_odd:
            lines = {name: _select_rows(values, odd) for name, values in lines.items()}
    totals.rows += len(answers) if complete is None else len(complete)
    totals.scored += len(answers)
    if answers.scores is not None:
        totals.score += float(answers.scores[np.isfinite(answers.scores)].sum())
    return lines


def _find_judge(model: StreamingEstimator, stream: Stream, options: ScoreOptions, data: Sequence[str]) -> Judge | None:
    """Return what says which rows are odd by their p-values, if that is asked for and the model knows it."""
    if options.fdr is not None:
        refuse_discovery_rate(model)
        if "-" in data:
            raise usage_error("--fdr needs all rows before it decides: write the input to a file first, or give --rate")
        judge = find_judge(model, 0.0)
        return None if judge is None else judge.at_discovery_rate(options.fdr, whole_sequences(model, stream))
    if options.rate is None or options.against == "data":
        return None
    return find_judge(model, options.rate)


def _find_reference(
    model: StreamingEstimator,
    stream: Stream,
    options: ScoreOptions,
    messages: MessageOptions,
    data: Sequence[str],
    judged: bool = False,
) -> Reference | None:
    """Return the scores that rows are compared with, if any are needed: those the model kept, or those of the data."""
    if (options.rate is None or judged) and not options.rank:
        return None
    known = history_reference(model) if options.against != "data" else None
    if known is not None:
        return known
    if options.against == "learned":
        raise ValueError("the model has kept no scores of the rows that it learned: use --against data")
    if "-" in data:
        raise usage_error(
            "--rate and --rank of standard input need the scores of rows that were learned, which this model has not kept, or "
            "data that can be read twice: write the input to a file first, or give --threshold"
        )
    answer = make_scorer(model, shares=False)

    def scores() -> Iterator[NDArray[np.float64]]:
        with progress_bar(messages, "finding usual scores", stream.total_rows) as watch:
            for chunk in whole_sequences(model, stream):
                found = answer(chunk).rank_scores
                if found is None:
                    raise ValueError(f"rows can be ranked {NO_TARGET}")
                yield found
                watch(chunk.start + len(chunk), share=share_of_bytes_read(stream))

    return sample_scores(scores(), "data")


def _complete_rows(chunk: Chunk) -> NDArray[np.bool_] | None:
    """Return which rows of a marked stream lack no value; None if all are complete."""
    if chunk.schema is None or chunk.schema.get("missing") != "drop" or chunk.lengths is not None:
        return None
    complete = np.asarray(~np.isnan(np.asarray(chunk.X)[:, 0]))
    return None if complete.all() else complete


def _fill_rows(values: object, complete: NDArray[np.bool_] | None, empty: Any = None) -> Any:
    """Return answers of complete rows as answers of all rows; others are null, or `empty` if that is given."""
    if complete is None:
        return values
    import pyarrow as pa

    if isinstance(values, pa.Array):
        places = np.cumsum(complete) - 1
        return values.take(pa.array(places, mask=~complete))
    everywhere = np.zeros(len(complete), dtype=np.asarray(values).dtype)
    everywhere[complete] = values
    return pa.array(everywhere, mask=~complete) if empty is None else np.where(complete, everywhere, empty)


def _select_rows(values: object, rows: NDArray[np.bool_]) -> object:
    import pyarrow as pa

    return values.filter(pa.array(rows)) if hasattr(values, "filter") else np.asarray(values)[rows]


def _row_numbers(chunk: Chunk, answers: RowAnswers, before: int, complete: NDArray[np.bool_] | None) -> dict[str, object]:
    """Return the number of each row in its stream; where answers are for sequences, that of the sequence."""
    if complete is None and len(answers) != len(chunk):
        return {"sequence": before + np.arange(len(answers))}
    return {"row": chunk.row_numbers}


def _refuse_name_clash(kept: Mapping[str, object], names: Sequence[str]) -> None:
    """Refuse columns of the data that have the names of columns that are written."""
    if clashing := [name for name in kept if name in names]:
        raise usage_error(
            f"--keep {','.join(clashing)} has a name that score gives to its own columns: rename the column, or leave it out"
        )


def _score_columns(
    answers: RowAnswers, options: ScoreOptions, reference: Reference | None, threshold: float | None, measure: str
) -> dict[str, object]:
    """Return the answers that were asked for, by the names of their columns."""
    columns: dict[str, object] = {}
    if answers.predictions is not None:
        columns["prediction"] = answers.predictions
    ranked = answers.rank_scores
    if ranked is not None:
        columns["score"] = answers.scores
        if answers.sizes is not None:
            columns |= {measure: answers.sizes, f"score_per_{measure[:-1]}": ranked}
        if options.rank and reference is not None:
            columns["rank"] = reference.ranks(ranked)
        if threshold is not None:
            columns["odd"] = ranked < threshold
    elif options.rank:
        raise ValueError(f"rows can be ranked {NO_TARGET}")
    elif threshold is not None:
        raise ValueError(f"rows can be called odd {NO_TARGET}")
    if answers.clusters is not None:
        columns["cluster"] = answers.clusters
    if answers.names is not None:
        columns["cluster_name"] = answers.names
    if options.probabilities:
        if answers.shares is None:
            raise usage_error("this model has no components, so there are no --probabilities")
        columns |= {f"{answers.share_name}{number}": answers.shares[:, number] for number in range(answers.shares.shape[1])}
    return columns
