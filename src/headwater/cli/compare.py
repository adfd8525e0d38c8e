"""headwater compare."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.support.command import add_command
from headwater.cli.support.display import print_json, print_table
from headwater.cli.support.failures import print_message, usage_error
from headwater.cli.support.model_arguments import ModelSettings, complete_word, entry_of, make_model
from headwater.cli.support.options import Data, MessageOptions, ReadOptions, split_names
from headwater.cli.support.output_files import check_output, write_atomically
from headwater.cli.support.progress import left_out_sentence, progress_bar
from headwater.registry import MODELS

if TYPE_CHECKING:
    from headwater.cli.support.contenders import Outcome

EXAMPLES = """
headwater compare gaussian trades.parquet -k 8
headwater compare lda news.txt -k 50 --picture news.png
headwater compare hmm sensors.csv --key machine -k 4 --algorithms auto,em
"""

Word = Annotated[
    str,
    typer.Argument(
        help=f"What to learn: {', '.join(MODELS)}.",
        metavar="MODEL",
        show_default=False,
        autocompletion=complete_word,
    ),
]
Algorithms = Annotated[
    list[str],
    typer.Option(
        "--algorithms", help="Algorithms to compare, separated by commas.", show_default="all that can learn the model"
    ),
]
Picture = Annotated[Path | None, typer.Option("--picture", help="Draw score against time into this file.", show_default=False)]


def compare(
    model: Word,
    data: Data,
    reading: ReadOptions,
    messages: MessageOptions,
    settings: ModelSettings,
    algorithms: Algorithms = (),  # type: ignore[assignment]
    picture: Picture = None,
) -> None:
    """Learn by every algorithm, and rank them by held-out score.

    One row in ten is held out and scored after all others are learned; of sequences one in ten, of few long sequences the
    last tenth. Each algorithm runs in its own process, where its memory is measured. Seconds are those of learning, without
    compiling.
    """
    from headwater.cli.support.contenders import Contest, legal_algorithms, run_contender

    check_output(picture)
    entry = entry_of(model)
    asked = settings.resolution is not None or any(one.startswith("resolution=") for one in settings.given)
    if not asked and getattr(entry.kind(), "resolution", "auto") is None:
        settings = replace(settings, resolution="none")  # which every algorithm takes
    unfitted, _ = make_model(entry, settings)
    if "-" in data:
        raise usage_error("compare reads the data several times, and standard input can be read once: name a file")
    legal = legal_algorithms(unfitted)
    chosen = split_names(algorithms) or legal
    for word in chosen:
        if word not in legal:
            raise usage_error(f"{model} can be learned by {', '.join(legal)}, got {word!r}")
    contest = Contest(model, settings, tuple(data), reading)
    results: list[Outcome] = []
    with progress_bar(messages, "comparing", len(chosen), unit="algorithms") as watch:
        for place, word in enumerate(chosen):
            results.append(run_contender(contest, word))
            watch(place + 1)
    results.sort(key=lambda one: -one["score"] if one["score"] is not None else float("inf"))
    if picture is not None:
        with write_atomically(picture) as path:
            _draw(results, path, picture.suffix[1:] or "png")
    left_out = max(one["rows_left_out"] for one in results)
    if left_out:
        print_message(left_out_sentence(left_out))
    if messages.json:
        print_json({"model": model, "results": results, "picture": picture, "rows_left_out": left_out})
    else:
        _print_results(results)
    if all(one["error"] for one in results):
        raise ValueError(f"no algorithm could learn this: {results[0]['error']}")


def _print_results(results: list[Outcome]) -> None:
    rows = [
        [
            one["algorithm"],
            f"{one['score']:.4f}",
            *([f"{one['perplexity']:,.4g}"] if "perplexity" in one else []),
            f"{one['seconds']:.2f}",
            f"{one['rows'] / max(one['seconds'], 1e-9):,.0f}",
            f"{one['memory'] / 1e6:,.0f}" if one["memory"] is not None else "",
        ]
        for one in results
        if not one["error"]
    ]
    if rows:
        held = next(one for one in results if not one["error"])
        print(f"{held['rows']:,} rows learned, {held['held_out']:,} held out; the score is their mean log-density, in nats.")
        each = [f"perplexity per {held['per']}"] if "perplexity" in held else []
        print_table("", ["algorithm", "held-out score", *each, "seconds", "rows/s", "memory (MB)"], rows)
    for one in results:
        if one["error"]:
            print(f"{one['algorithm']}: {one['error']}")


def _draw(results: list[Outcome], path: Path, form: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = [one for one in results if not one["error"]]
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for one in shown:
        axes.plot(one["seconds"], one["score"], "o", color="tab:blue")
        axes.annotate(one["algorithm"], (one["seconds"], one["score"]), xytext=(6, 4), textcoords="offset points")
    axes.set(xlabel="seconds", ylabel="held-out score (nats per row)", xscale="log")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150, format=form)
    plt.close(figure)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    add_command(app, compare, examples=EXAMPLES)
