"""headwater fit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.report import write_report
from headwater.cli.support.command import add_command
from headwater.cli.support.display import print_description, print_json, replace_control_characters
from headwater.cli.support.failures import usage_error
from headwater.cli.support.fit_options import ClusterOptions, FitOptions
from headwater.cli.support.model_arguments import (
    ModelSettings,
    add_vocabulary,
    algorithm_of,
    complete_word,
    entry_of,
    explain_words,
    file_digest,
    is_model_file,
    load_with_commands,
    make_model,
)
from headwater.cli.support.options import Data, MessageOptions, ReadOptions
from headwater.cli.support.output_files import check_output
from headwater.cli.support.progress import print_left_out
from headwater.cli.support.provenance import this_command, write_model
from headwater.registry import MODELS

if TYPE_CHECKING:
    from headwater.diagnostics.distributed_report import DistributedReport
    from headwater.estimators.base import StreamingEstimator
    from headwater.io.stream import Stream

EXAMPLES = """
headwater fit gaussian trades.parquet -k 8 -o trades.hw
headwater fit gaussian 'days/*.csv' -k auto --exclude id --report r.html
headwater fit regression flats.csv --target rent -k 3 --set gating=input
headwater fit hmm sensors.csv --key machine -k 4 --half-life 1e6 -o hmm.hw
headwater fit trades.hw more.parquet -o trades.hw    # continues learning

headwater fit gaussian small.csv -k 3 --passes auto  # until it converges
# interrupted? the same command continues:
headwater fit gaussian big.csv -k 20 -o big.hw --checkpoint big.ckpt
# workers on this machine, or those of a Dask cluster, read the files:
headwater fit gaussian 'days/*.parquet' -k 32 --cluster local:4 -o days.hw
headwater fit gaussian 's3://days/*.parquet' -k 32 --cluster tcp://boss:8786
zcat log.csv.gz | headwater fit gaussian - --format csv -k 5 -o log.hw
"""

Model = Annotated[
    str,
    typer.Argument(
        help=f"What to learn: {', '.join(MODELS)}; or a model file, which continues learning.",
        metavar="MODEL",
        show_default=False,
        autocompletion=complete_word,
    ),
]


@dataclass(frozen=True)
class FitOutputs:
    """What `fit` writes."""

    output: Annotated[Path | None, typer.Option("--output", "-o", help="Model file to write.", show_default=False)] = None
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a page about the model (HTML) here.", show_default=False)
    ] = None
    raw_rows: Annotated[
        bool,
        typer.Option(
            "--raw-rows/--no-raw-rows",
            help="Whether the model file may hold rows of the data.",
            rich_help_panel="Passes and files",
        ),
    ] = True


def fit(
    model: Model,
    data: Data,
    reading: ReadOptions,
    cluster: ClusterOptions,
    messages: MessageOptions,
    settings: ModelSettings,
    options: FitOptions,
    outputs: FitOutputs,
) -> None:
    """Learn a model from data of any size. Without -o it is shown and not saved."""
    for path in filter(None, (outputs.output, outputs.report, options.checkpoint)):  # before any work is done
        check_output(path)
    cluster.check(data, options)
    options.parse_passes()
    continues = is_model_file(model)
    if continues:
        asked = [*settings.given_options(), *(["--algorithm"] if options.algorithm is not None else [])]
        for name in asked:
            raise usage_error(f"{name} cannot be given to a model that continues learning: it keeps its parameters")
        start, commands = load_with_commands(Path(model))
        algorithm = algorithm_of(start)
        if outputs.output is not None and algorithm.online and not _is_same_file(outputs.output, Path(model)):
            start = start.branch()  # so that files that continue one model can be merged
    else:
        entry = entry_of(model)
        settings = replace(settings, given=add_vocabulary(entry, reading.vocabulary, settings.given))
        start, algorithm = make_model(entry, settings, options.algorithm)
        commands = []
    commands = [*commands, this_command()]
    like = start if continues else None
    cost, stream, left_out = None, None, 0
    if cluster.address is not None:  # workers read the rows, and this machine need not have access
        from headwater.cli.support.cluster_fit import fit_on_cluster, save_unfinished

        with save_unfinished(outputs.output, commands, outputs.raw_rows):
            learned = fit_on_cluster(start, data, reading, cluster, options, messages, seed=settings.seed, like=like)
        cost = learned.distributed_report_
    else:
        from headwater.cli.support.stream_fit import fit_model, no_warning_of_ids

        tables = type(start)._traits.takes_tables
        stream = reading.with_gaps(start).open_stream(data, seed=settings.seed, like=like, learns=True, tables=tables)
        identity = {
            "model": model,
            "start": file_digest(Path(model)) if continues and options.checkpoint is not None else None,
            "place": str(Path(model).resolve()) if continues else None,
            "parameters": None if continues else {name: repr(value) for name, value in start.get_params(deep=False).items()},
            "output": None if outputs.output is None else str(outputs.output.resolve()),
            "reading": asdict(reading),
            "passes": options.passes,
            "seed": settings.seed,
        }
        with no_warning_of_ids(), explain_words(start):
            learned = fit_model(start, algorithm, stream, options, messages, identity)
        left_out = stream.rows_left_out
        print_left_out(stream)
    if outputs.output is not None:
        write_model(learned, outputs.output, commands, outputs.raw_rows)
        if not outputs.raw_rows:  # the saved model is shown
            learned = load_with_commands(outputs.output)[0]
    if outputs.report is not None:
        write_report(learned, _rows_to_show(stream), outputs.report, commands, data)
    _print_result(learned, outputs, cost, left_out, messages)


def _is_same_file(one: Path, other: Path) -> bool:
    """Whether two names are those of one file; the first file need not exist."""
    return one.exists() and one.samefile(other)


def _rows_to_show(stream: Stream | None) -> Stream | None:
    """Return the rows for a report in the order of the data, so that row numbers are those of the data."""
    return None if stream is None or stream.once else stream.in_file_order()


def _print_result(
    learned: StreamingEstimator, outputs: FitOutputs, cost: DistributedReport | None, left_out: int, messages: MessageOptions
) -> None:
    if messages.json:
        files = {name: None if path is None else str(path) for name, path in asdict(outputs).items() if name != "raw_rows"}
        spent = {} if cost is None else {"cluster": asdict(cost)}
        print_json({**files, "rows_left_out": left_out, **learned.describe().to_dict(), **spent})
        return
    print_description(learned)
    if cost is not None and not messages.quiet:
        print("\n".join(replace_control_characters(line) for line in str(cost).splitlines()))
    if outputs.output is not None:
        print(f"Saved in {outputs.output}.")
    if outputs.report is not None:
        print(f"Report: {outputs.report}")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, fit, examples=EXAMPLES, in_place=("model", "output"))
