"""headwater fit."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from headwater.cli.report import write_report
from headwater.cli.support.cluster_options import ClusterOptions
from headwater.cli.support.command import add_command
from headwater.cli.support.description_text import print_description
from headwater.cli.support.display import print_json, replace_control_characters
from headwater.cli.support.failures import usage_error
from headwater.cli.support.model_arguments import entry_of, file_digest, is_model_file, load_with_commands
from headwater.cli.support.model_settings import add_vocabulary, make_model
from headwater.cli.support.options import Data, MessageOptions, Output, ReadOptions, Seed
from headwater.cli.support.output_files import check_output
from headwater.cli.support.progress import print_left_out
from headwater.cli.support.provenance import this_command, write_model
from headwater.registry import MODELS

EXAMPLES = """
headwater fit gaussian trades.parquet -k 8 -o trades.hw
headwater fit gaussian 'days/*.csv' -k auto --exclude id --report r.html
headwater fit regression flats.csv --target rent -k 3 --set gating=input
headwater fit lda news.txt -k 50 -o news.hw
headwater fit hmm sensors.csv --key machine -k 4 --half-life 1e6 -o hmm.hw
headwater fit gaussian small.csv -k 3 --passes auto  # until it converges
headwater fit trades.hw more.parquet -o trades.hw    # goes on learning
# killed on the way? the same command goes on:
headwater fit gaussian big.csv -k 20 -o big.hw --checkpoint big.ckpt
# workers on this machine, or those of a Dask cluster, read the files:
headwater fit gaussian 'days/*.parquet' -k 32 --cluster local:4 -o days.hw
headwater fit gaussian 's3://days/*.parquet' -k 32 --cluster tcp://boss:8786
zcat log.csv.gz | headwater fit gaussian - --format csv -k 5 -o log.hw
"""

_WORDS = ", ".join(MODELS)
Model = Annotated[
    str,
    typer.Argument(
        help=f"What to learn ({_WORDS}), or a model file that is to go on learning.",
        metavar="MODEL",
        show_default=False,
        autocompletion=lambda incomplete: [(word, one.about) for word, one in MODELS.items() if word.startswith(incomplete)],
    ),
]
K = Annotated[str | None, typer.Option("-k", help="Number of components, or auto, which finds it.", show_default="auto")]
Algorithm = Annotated[
    str | None, typer.Option("--algorithm", help="How to learn; compare tells which is good.", show_default=False)
]
HalfLife = Annotated[float | None, typer.Option("--half-life", help="Rows after which a row counts half.", show_default=False)]
Passes = Annotated[
    str | None,
    typer.Option(
        "--passes",
        help="Passes over the data: 1 is a stream; more, or auto, which goes on until it converges, hold all rows in memory, "
        "but on a cluster.",
        show_default="1, or auto if the algorithm needs it",
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any parameter of the model as name=value, or of its algorithm as algorithm.name=value.",
        show_default=False,
    ),
]
CheckpointFile = Annotated[
    Path | None, typer.Option("--checkpoint", help="Keep model and place in the data here, to go on from.", show_default=False)
]
CheckpointRows = Annotated[
    int | None, typer.Option("--checkpoint-rows", min=1, help="Rows between checkpoints.", show_default=False)
]
CheckpointSeconds = Annotated[
    float | None, typer.Option("--checkpoint-seconds", min=0.0, help="Seconds between checkpoints.", show_default="30")
]
Page = Annotated[Path | None, typer.Option("--report", help="Write a page about the model here.", show_default=False)]
RawRows = Annotated[bool, typer.Option("--raw-rows/--no-raw-rows", help="Whether the model file may hold rows of the data.")]


def fit(
    model: Model,
    data: Data,
    reading: ReadOptions,
    machines: ClusterOptions,
    talk: MessageOptions,
    k: K = None,
    output: Output = None,
    algorithm: Algorithm = None,
    half_life: HalfLife = None,
    passes: Passes = None,
    given: Given = None,
    seed: Seed = 0,
    checkpoint: CheckpointFile = None,
    checkpoint_rows: CheckpointRows = None,
    checkpoint_seconds: CheckpointSeconds = None,
    report: Page = None,
    raw_rows: RawRows = True,
) -> None:
    """Learn a model from data of any size. Without -o it is shown and not kept."""
    from headwater.cli.support.stream_fit import FitOptions, fit_model

    for path in (output, report, checkpoint):  # before any work is done
        check_output(path)
    machines.check(data, {"--checkpoint-rows": checkpoint_rows, "--checkpoint-seconds": checkpoint_seconds})
    going_on = is_model_file(model)
    if going_on:
        asked = {"-k": k, "--algorithm": algorithm, "--half-life": half_life, "--set": given or None}
        for name in (name for name, value in asked.items() if value is not None):
            raise usage_error(f"{name} cannot be given to a model that goes on learning: it keeps its parameters")
        start, commands = load_with_commands(Path(model))
    else:
        entry = entry_of(model)
        start = make_model(entry, k, algorithm, half_life, seed, add_vocabulary(entry, reading.vocabulary, given or ()))
        commands = []
    commands = [*commands, this_command()]
    like = start if going_on else None
    effort = FitOptions(
        _parse_passes(passes), checkpoint, checkpoint_rows, 30.0 if checkpoint_seconds is None else checkpoint_seconds
    )
    rows = None
    cost = None
    left_out = 0
    if machines.cluster is not None:  # where the rows are, which this machine may not see
        from headwater.cli.support.cluster_fit import fit_on_cluster, save_unfinished

        with save_unfinished(output, commands, raw_rows):
            learned = fit_on_cluster(start, data, reading, machines, effort, talk, seed=seed, like=like)
        cost = learned.distributed_report_
    else:
        stream = reading.stream(data, seed=seed, like=like, learns=True)
        identity = {
            "model": model,
            "start": file_digest(Path(model)) if going_on and checkpoint is not None else None,
            "place": str(Path(model).resolve()) if going_on else None,
            "parameters": None if going_on else {name: repr(value) for name, value in start.get_params(deep=False).items()},
            "output": None if output is None else str(output.resolve()),
            "reading": asdict(reading),
            "passes": passes,
            "seed": seed,
        }
        learned = fit_model(start, stream, effort, talk, identity)
        left_out = stream.rows_left_out
        print_left_out(stream)
        if report is not None and not stream.once:
            # Rows are shown by their numbers in the data, whatever the order in which they were learned.
            rows = replace(reading, shuffle=None).stream(data, like=like, learns=True)
    if output is not None:
        write_model(learned, output, commands, raw_rows)
        learned = learned if raw_rows else load_with_commands(output)[0]  # what is told is what was kept
    if report is not None:
        write_report(learned, rows, report, commands, data)
    _print_result(learned, output, report, cost, left_out, talk)


def _parse_passes(text: str | None) -> int | str | None:
    if text is None or text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise usage_error(f"--passes must be auto or an integer of at least 1, got {text!r}")
    return int(text)


def _print_result(
    learned: Any, output: Path | None, report: Path | None, cost: Any, left_out: int, talk: MessageOptions
) -> None:
    if talk.json:
        files = {"output": None if output is None else str(output), "report": None if report is None else str(report)}
        spent = {} if cost is None else {"cluster": asdict(cost)}
        print_json({**files, "rows_left_out": left_out, **learned.describe().to_dict(), **spent})
        return
    print_description(learned)
    if cost is not None and not talk.quiet:
        print("\n".join(replace_control_characters(line) for line in str(cost).splitlines()))
    if output is not None:
        print(f"Saved in {output}.")
    if report is not None:
        print(f"Report: {report}")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, fit, examples=EXAMPLES, in_place=("model", "output"))
