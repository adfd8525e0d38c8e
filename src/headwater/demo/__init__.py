"""The demo: a stream of a million rows is learned and shown, next to the truth and to scikit-learn.

Run it with ``python -m headwater.demo``.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from headwater.demo.contenders import compile_kernels, fit_scikit_learn, learn_stream, run_contender
from headwater.demo.display import Display, components_table, contenders_table
from headwater.demo.picture import draw_picture
from headwater.demo.truth import CHUNK_ROWS, COMPONENTS, WIDTH, Truth, held_out_rows

ROWS, QUICK_ROWS = 1_000_000, 20_000  # of the stream, by default and with --quick


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m headwater.demo",
        description="Learn a stream of rows and show the progress; then compare with the truth and with scikit-learn.",
    )
    made.add_argument("--rows", type=int, default=None, help=f"rows of the stream (default: {ROWS}; quick: {QUICK_ROWS})")
    made.add_argument("--picture", type=Path, default=Path("headwater-demo.png"), help="picture to write")
    made.add_argument("--seed", type=int, default=0, help="seed of the truth and of the rows (default: 0)")
    made.add_argument("--quick", action="store_true", help="fewer rows, one process, memory not measured")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the command line by default.

    Returns
    -------
    code : int
        0.
    """
    options = make_parser().parse_args(argv)
    rows = options.rows if options.rows is not None else QUICK_ROWS if options.quick else ROWS
    if rows < CHUNK_ROWS:
        make_parser().error(f"--rows must be at least {CHUNK_ROWS}, got {rows}")
    console = Console(highlight=False)
    truth = Truth.draw(options.seed)
    console.print(f"A stream of {rows:,} rows of {WIDTH} columns, drawn from {COMPONENTS} hidden components.")
    seconds = compile_kernels()
    console.print(f"Kernels ready after {seconds:.1f} s (compiled once per machine, then read from a cache).\n")

    with Display(console, rows) as display:
        found = run_contender(learn_stream, rows, options.seed, display, apart=not options.quick)
    table, sentence = components_table(truth, found)
    console.print()
    console.print(table)
    console.print(sentence + "\n")

    with console.status("scikit-learn is fitting the same rows") if console.is_terminal else contextlib.nullcontext():
        peer = run_contender(fit_scikit_learn, rows, options.seed, lambda moment: None, apart=not options.quick)
    judge = held_out_rows(truth, options.seed)
    truth_score = truth.score(judge)
    table, sentence = contenders_table(truth_score, found, peer)
    console.print(table)
    console.print(sentence)
    console.print(
        "Scores are nats per row on held-out rows; seconds are those of learning alone; scikit-learn's passes of EM come after "
        "its k-means start."
    )
    if not options.quick:
        console.print("Memory is the peak of each process over what it held before the first row.")
    try:
        draw_picture(options.picture, truth, judge, truth_score, found, peer)
    except ImportError:
        console.print("\nNo picture was drawn: that needs matplotlib (pip install 'headwater\\[plot]').")
    else:
        console.print(f"\nPicture: {options.picture}", soft_wrap=True)
    return 0
