"""The page of `thousand_parts`: constants, the cost model against what was measured, and what it says of 10^12 rows."""

from __future__ import annotations

from typing import Any

from benchmarks.page import Page, Section, table
from benchmarks.thousand_parts_model import LINK, Constants, depth_of, pass_costs, round_cost

# What is foretold: rows, workers, and parts and rounds of one pass; first the most parts that files are cut into by default.
ROWS, WORKERS = 10**12, 1000
CUTS = ((4_096, 1), (4_096, 4), (4_000, 4), (40_000, 4), (400_000, 4))
DIGITS = 300  # bytes by which messages differ: numbers in their headers have more or fewer digits


def sections(figures: dict[str, Any]) -> list[Section]:
    constants = Constants(**figures["constants"])
    result = [
        Section("thousand-parts-constants", "Constants", about_constants(figures), constant_lines(constants, figures)),
        Section("thousand-parts-check", "The model against runs", about_check(figures), check_lines(figures["runs"])),
        Section("thousand-parts-bytes", "Bytes of these runs", about_bytes(), byte_lines(figures["runs"])),
        Section("thousand-parts-scale", "10^12 rows and 1,000 workers", about_scale(constants), scale_lines(constants)),
        Section("thousand-parts-once", "Once a run, and once a round", about_once(), once_lines(constants)),
    ]
    if figures["words"]:
        result.append(Section("thousand-parts-words", "Large tables of words", about_words(), word_lines(figures["words"])))
    return result


def about_constants(figures: dict[str, Any]) -> str:
    return (
        f"A Gaussian mixture with {figures['components']} components and full covariances, {figures['width']} columns, from "
        f"Parquet files. A row is what a file of {figures['long']:,} rows takes more than one of {figures['few']}, by the row. "
        "Seconds are of CPU, unless a line says otherwise; what Dask takes is measured by a tree of tasks that do nothing. "
        "Files are in the memory of the machine, so that reading is unpacking."
    )


def constant_lines(one: Constants, figures: dict[str, Any]) -> list[str]:
    micro, milli = 1e6, 1e3
    lines = [
        ("read a row", f"{one.read * micro:.3f} us"),
        ("stream a row", f"{one.learn * micro:.3f} us"),
        ("E-step of a row, of an exact pass", f"{one.exact * micro:.3f} us"),
        ("more for a row of the last round, whose scores are kept", f"{one.watch * micro:.3f} us"),
        ("a part by itself: open the file, begin, write the message", f"{one.task * milli:.2f} ms"),
        ("read two messages, add them, write the sum", f"{one.add * milli:.2f} ms"),
        ("... in the last round", f"{one.watched_add * milli:.2f} ms"),
        ("Dask on the worker, for a part and an addition", f"{one.worker * milli:.2f} ms"),
        ("Dask on scheduler and client, for both", f"{one.scheduler * milli:.2f} ms"),
        ("bytes of a message", f"{one.message:,}"),
        ("bytes of scores that a message has beside it in the last round, at most", f"{one.scores:,}"),
        ("bytes of the model that is sent to workers", f"{one.model:,}"),
        ("bytes of a checkpoint", f"{one.checkpoint:,}"),
        ("write a model file, by the clock", f"{one.keep * milli:.1f} ms"),
        ("look at a file before all begins, by the clock", f"{one.look * milli:.2f} ms"),
        ("sample and start, by the clock", f"{one.start:.2f} s"),
        ("tasks a second that do nothing, by the clock", f"{figures['tasks_a_second']:,.0f}"),
    ]
    return table(["", "measured"], lines)


def about_check(figures: dict[str, Any]) -> str:
    return (
        f"Runs of `hw.distributed.fit` over files of {figures['rows']:,} rows by {figures['workers']} worker processes with "
        f"one thread each. Workers, scheduler and client share {figures['machine']['cores']} cores, so the model divides their "
        "CPU together by the cores. It knows nothing of these runs. Seconds by the clock hang on whatever else the machine "
        "does: the last column says how many cores these processes had while they ran."
    )


def check_lines(runs: list[dict[str, Any]]) -> list[str]:
    lines = []
    for one in runs:
        cells = []
        for name in ("workers", "scheduler", "seconds"):
            said, found = one["foretold"][name], one[name]
            cells += [f"{said:.2f}", f"{found:.2f}", f"{100 * (said / found - 1):+.0f} %"]
        cores = (one["workers"] + one["scheduler"]) / one["seconds"]
        lines.append([f"{one['parts']:,}", f"{one['rounds']}", *cells, f"{cores:.1f}"])
    heads = ["parts", "rounds"]
    for name in ("workers, CPU s", "scheduler and client, CPU s", "by the clock, s"):
        heads += [f"{name}: foretold", "measured", "error"]
    return table([*heads, "cores"], lines)


def about_bytes() -> str:
    return (
        "(parts - 1) and ceil(log2 parts) times the largest message of the run, summed over its rounds, against the bytes that "
        "the report counted as they were moved. Scores beside messages are not among them. Messages differ by the digits of "
        f"the numbers in their headers, by {DIGITS} bytes at the very most: the last column says whether that is all there is "
        "between the two."
    )


def byte_lines(runs: list[dict[str, Any]]) -> list[str]:
    lines = [
        [
            f"{one['parts']:,}", f"{one['rounds']}", f"{one['message']:,}",
            f"{one['foretold']['merged']:,}", f"{one['merged']:,}", f"{one['foretold']['path']:,}", f"{one['path']:,}",
            "yes" if as_foretold(one) else "NO",
        ]
        for one in runs
    ]  # fmt: skip
    heads = ["parts", "rounds", "message", "all: foretold", "moved", "critical path: foretold", "moved", "equal but for digits"]
    return table(heads, lines)


def as_foretold(one: dict[str, Any]) -> bool:
    """Whether bytes are what the model says, but for the digits in headers of messages."""
    sizes = {
        "merged": sum(parts - 1 for parts in one["of_a_round"]),
        "path": sum(depth_of(parts) for parts in one["of_a_round"]),
    }
    return all(0 <= one["foretold"][name] - one[name] <= DIGITS * messages for name, messages in sizes.items())


def about_scale(one: Constants) -> str:
    return (
        f"10^12 rows of this kind, {ROWS * one.row / 1e12:,.0f} TB as numbers, by {WORKERS:,} workers with a core each, one "
        f"pass. Foretold by the same code from the constants above, with links of {LINK / 1e9:.2f} GB/s between machines, "
        "which is assumed. The last column is the share of the workers' time that goes into rows."
    )


def scale_lines(constants: Constants) -> list[str]:
    lines = []
    for parts, rounds in CUTS:
        rows, cut = ROWS / parts, [-(-(parts - at) // rounds) for at in range(rounds)]
        costs = pass_costs(constants, cut, rows, WORKERS)
        seconds, path = sum(cost.apart(constants, WORKERS) for cost in costs), sum(cost.path for cost in costs)
        climb = sum(cost.depth for cost in costs) * constants.add + path / LINK
        useful = ROWS * (constants.read + constants.learn) / WORKERS
        lines.append([
            f"{parts:,}", f"{rounds}", f"{rows / 1e6:,.0f}", f"{max(cost.depth for cost in costs)}",
            f"{sum(cost.busiest for cost in costs) / 3600:.2f}", f"{sum(cost.scheduler for cost in costs):,.0f}",
            f"{sum(cost.merged for cost in costs) / 1e6:,.0f}", f"{path / 1e3:,.0f}", f"{climb * 1e3:,.0f}",
            f"{seconds / 3600:.2f}", f"{100 * useful / seconds:.0f} %",
        ])  # fmt: skip
    heads = [
        "parts", "rounds", "million rows a part", "merge depth", "learning, h", "scheduler, s", "merged, MB",
        "critical path, kB", "critical path, ms", "in all, h", "on rows",
    ]  # fmt: skip
    return table(heads, lines)


def about_once() -> str:
    return "What does not grow with the rows, and what an exact pass takes."


def once_lines(one: Constants) -> list[str]:
    parts = CUTS[2][0]
    exact = round_cost(one, parts, ROWS / parts, WORKERS, exact=True)
    rate = one.row / (one.read + one.learn)
    lines = [
        (f"look at {parts:,} files, at the pace of two workers", f"{parts * one.look:.0f} s"),
        ("sample and start, whatever the rows", f"{one.start:.1f} s"),
        (f"send the model to {WORKERS:,} workers, a round", f"{WORKERS * one.model / 1e6:.0f} MB"),
        ("... until the last has it", f"{exact.broadcast(one, WORKERS) * 1e3:.1f} ms"),
        ("write a checkpoint, a round", f"{one.checkpoint / 1e3:.0f} kB, {one.keep * 1e3:.0f} ms"),
        (f"an exact pass, {parts:,} parts", f"{exact.apart(one, WORKERS) / 3600:.2f} h"),
        ("numbers that storage must give to a worker", f"{rate / 1e6:.0f} MB/s"),
        (f"... and to all {WORKERS:,}", f"{WORKERS * rate / 1e9:.0f} GB/s"),
    ]
    return table(["", "foretold"], lines)


def about_words() -> str:
    return (
        "Words by Zipf's law, documents of about 100. Bytes of the mean message of a part, and of what two, four and eight "
        "parts send together, against all words of the tables: the statistics, and their average where the algorithm keeps one."
    )


def word_lines(entries: list[dict[str, Any]]) -> list[str]:
    lines = [
        [
            f"{one['kind']}, {one['words']:,} words x {one['components']}", f"{one['documents']:,}", f"{one['tables']}",
            f"{one['dense'] / 1e6:.1f}", *[f"{size / 1e6:.1f}" for size in one["heights"]],
            f"{100 * one['merged'] / one['dense'] / (2 ** (len(one['heights']) - 1) - 1):.0f} %", f"{one['model'] / 1e6:.1f}",
        ]
        for one in entries
    ]  # fmt: skip
    heads = [
        "", "documents a part", "tables", "dense, MB", "1 part, MB", "2 parts", "4 parts", "8 parts", "moved, of dense",
        "model, MB",
    ]  # fmt: skip
    return table(heads, lines)


PAGE = Page("thousand_parts", "A thousand parts: the cost of many machines", sections)
