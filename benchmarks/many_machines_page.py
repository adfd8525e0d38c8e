"""The page of `many_machines`: two workers against one, and everybody's way to a model."""

from __future__ import annotations

from typing import Any

from benchmarks.page import Page, Section, table

TARGET = 1.7


def sections(figures: dict[str, Any]) -> list[Section]:
    result = [
        Section("many-machines-workers", "Two workers against one", _about_pairs(figures), _pairs(figures["pairs"])),
        Section("many-machines-peers", "The way to a model", _about_fits(figures), _fits(figures)),
    ]
    reports = [entry for entry in figures["fits"] if entry.get("report")]
    if reports:
        last = max(reports, key=lambda entry: entry["workers"])
        about = f"The report of one pass, {last['covariance']}, {last['name'].split(', ')[1]}."
        report = ["```", *last["report"].splitlines(), "```"]
        result.append(Section("many-machines-report", "What was moved", about, report))
    return result


def _about_pairs(figures: dict[str, Any]) -> str:
    return (
        f"{figures['rows']:,} rows of {figures['width']} columns in {figures['files']} Parquet files "
        f"({figures['bytes'] / 1e6:,.0f} MB), {figures['components']} components. Workers are processes on this machine with "
        "one thread each; both clusters are up and warm, and take turns. The best of the turns, in seconds; a pass of batch EM "
        f"is a fit with three passes less one with one, halved. Wanted: {TARGET} times as fast."
    )


def _pairs(pairs: list[dict[str, Any]]) -> list[str]:
    lines = [
        [entry["line"], f"{entry['one']:.2f}", f"{entry['two']:.2f}", f"{entry['ratio']:.2f}", f"{entry['of_medians']:.2f}"]
        for entry in pairs
    ]
    return table(["", "1 worker, s", "2 workers, s", "ratio", "of medians"], lines)


def _about_fits(figures: dict[str, Any]) -> str:
    parts = [
        "From the same files to a model, one contender after the other. Scores are mean log-densities of "
        f"{figures['held_out']:,} rows that nobody learned from, by one plain function for all; the mixture that the rows were "
        f"drawn from has {figures['truth']:.4f}, and the last column is what is missing to it. scikit-learn has its rows in "
        "memory before its clock starts. Spark's covariances are full, its start is random, and its rule for stopping is "
        "absolute, so on many rows `maxIter` stops it; a longer fit goes on where a shorter one stopped.",
        "" if figures["spark"] else "Spark was left out: `--spark-python` names an interpreter that has pyspark.",
        figures["dask_ml"],
    ]
    return " ".join(filter(None, parts))


def _fits(figures: dict[str, Any]) -> list[str]:
    lines = [
        [
            entry["name"], entry["covariance"], f"{entry['rows'] / 1e6:g}", f"{entry['passes']}", f"{entry['seconds']:.1f}",
            "" if entry["per_pass"] is None else f"{entry['per_pass']:.2f}",
            f"{entry['score']:.4f}", f"{figures['truth'] - entry['score']:.4f}",
        ]
        for entry in figures["fits"]
    ]  # fmt: skip
    heads = ["", "covariances", "million rows", "passes", "seconds", "a pass", "nats a row", "below the truth"]
    return table(heads, lines)


PAGE = Page("many_machines", "Many machines: a mixture from Parquet files", sections)
