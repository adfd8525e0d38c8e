"""The story of a mixture: a stream of a million rows is learned and shown, next to the truth and to scikit-learn."""

from __future__ import annotations

import contextlib
from pathlib import Path

from rich.console import Console

from headwater.demo.contenders import compile_kernels, fit_scikit_learn, learn_stream, run_contender
from headwater.demo.display import Display, components_table, contenders_table
from headwater.demo.picture import draw_picture
from headwater.demo.story import Draw, Story
from headwater.demo.truth import CHUNK_ROWS, COMPONENTS, WIDTH, Truth, held_out_rows


def tell(console: Console, rows: int, seed: int, apart: bool = False) -> Draw:
    """Learn the stream, compare with the truth and with scikit-learn; `apart` runs each in a process and measures memory."""
    truth = Truth.draw(seed)
    console.print(f"A stream of {rows:,} rows of {WIDTH} columns, drawn from {COMPONENTS} hidden components.")
    seconds = compile_kernels()
    console.print(f"Kernels ready after {seconds:.1f} s (compiled once per machine, then read from a cache).\n")

    with Display(console, rows) as display:
        found = run_contender(learn_stream, rows, seed, display, apart=apart)
    table, sentence = components_table(truth, found)
    console.print()
    console.print(table)
    console.print(sentence + "\n")

    with console.status("scikit-learn is fitting the same rows") if console.is_terminal else contextlib.nullcontext():
        peer = run_contender(fit_scikit_learn, rows, seed, lambda moment: None, apart=apart)
    judge = held_out_rows(truth, seed)
    truth_score = truth.score(judge)
    table, sentence = contenders_table(truth_score, found, peer)
    console.print(table)
    console.print(sentence)
    console.print(
        "Scores are nats per row on held-out rows; seconds are those of learning alone; scikit-learn's passes of EM come after "
        "its k-means start."
    )
    if apart:
        console.print("Memory is the peak of each process over what it held before the first row.")

    def draw(path: Path) -> None:
        draw_picture(path, truth, judge, truth_score, found, peer)

    return draw


def tell_apart(console: Console, rows: int, seed: int) -> Draw:
    """Tell the story with each contender in its own process."""
    return tell(console, rows, seed, apart=True)


STORY = Story(rows=1_000_000, quick_rows=20_000, least_rows=CHUNK_ROWS, unit="rows", tell=tell_apart, tell_quick=tell)
