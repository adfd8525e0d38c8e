"""The page of `refinement`: drawn sets shuffled and sorted, real sets, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.page import Page, Section, table
from benchmarks.refinement_cost import best, extra
from benchmarks.refinement_data import LONGEST, SEPARATIONS, SMALL
from benchmarks.refinement_peers import POLISH, RESTARTS
from benchmarks.refinement_real import FLOOR, of_learned
from benchmarks.refinement_summary import CLOSE, PEERS, Summary, summaries

HEADS = ("mean loss", "gains as 0", "90th percentile", "worst", f"within {CLOSE}", "time / one fit")


def sections(figures: dict[str, Any]) -> list[Section]:
    """All that was measured so far."""
    result = []
    if figures["sets"]:
        found = summaries(figures["sets"])
        result.append(Section("refinement-shuffled", "Shuffled rows", about_sets(figures), shuffled(found)))
        result.append(Section("refinement-orders", "Rows in other orders", about_orders(), orders(found)))
    if figures["real"]:
        result.append(Section("refinement-real", "Real rows", about_real(figures["real"]), real(figures["real"])))
    if figures["cost"]:
        result.append(Section("refinement-cost", "What it costs", about_cost(figures["cost"]), costs(figures["cost"])))
    return result


def about_sets(figures: dict[str, Any]) -> str:
    sets = figures["sets"]
    components, widths = ([entry[name] for entry in sets] for name in ("n_components", "width"))
    small, long = (sum(entry[name] for entry in sets) for name in ("small", "elongated"))
    apart = ", ".join(f"{distance:g} ({name})" for name, distance in SEPARATIONS.items())
    passes = ", ".join(f"{f'the best {most}' if most > 1 else 'the best'} by {passes}" for most, passes, _ in POLISH[1:])
    return (
        f"{len(sets)} data sets of {figures['rows']:,} rows from mixtures of {min(components)} to {max(components)} Gaussians "
        f"with full covariance in {min(widths)} to {max(widths)} columns, seed {figures['seed']}. Two means lie about {apart} "
        f"deviations apart; {small} sets have a component of {SMALL:.0%} of the rows, in {long} the longest axis of a "
        f"component has {LONGEST:g} times the variance of the shortest. The number of components is given.\n\n"
        "Our contenders see each row once, by `partial_fit`; scikit-learn has all rows. A loss is in nats a row on "
        f"{figures['held_out']:,} other rows, against the best of {RESTARTS} restarts of scikit-learn, which were polished by "
        f"batch EM far beyond its own stop: all by {POLISH[0][1]} passes at most, {passes} more. Below zero is better than "
        "that; a few large gains can hide losses in a mean, so that there is another, in which gains count as 0.\n\n"
        "Time is in CPU seconds of one thread, with the first reading, by those of one fit of scikit-learn, both summed "
        "over the sets."
    )


def about_orders() -> str:
    return (
        "The same rows, judged in the same way: component after component; the rows of one half of the components first, for "
        "up to 30 percent of the stream; sorted by the first column; and with weights that drift, where the rows of each "
        "component arrive around a time of its own. What scikit-learn finds does not depend on the order."
    )


def shuffled(found: dict[tuple[str, str], Summary]) -> list[str]:
    lines = ([f"{name}{', one pass' if order != PEERS else ''}", *cells(each)] for (order, name), each in found.items()
             if order in (PEERS, "shuffled"))  # fmt: skip
    return table(["", *HEADS], lines)


def orders(found: dict[tuple[str, str], Summary]) -> list[str]:
    lines = ([order, name, *cells(each)] for (order, name), each in found.items() if order not in (PEERS, "shuffled"))
    return table(["order", "", *HEADS], lines)


def cells(each: Summary) -> list[str]:
    return [
        *map(nats, (each.mean, each.mean_without_gains, each.ninetieth, each.worst)),
        f"{each.close:.0%}",
        f"{each.ratio:.2f}",
    ]


def nats(loss: float) -> str:
    return f"{round(loss, 4) + 0.0:.4f}"


def about_real(entries: Sequence[dict[str, Any]]) -> str:
    absent = [entry["set"] for entry in entries if entry["absent"]]
    return (
        "Every fifth row is held out to judge by. Columns are measured in units of their spread, and `reg_covar` is "
        f"{FLOOR:g} for both libraries, since values repeat; but a stream has a prior in its place, so that its components may "
        "be thinner than that floor lets them be. Gains of whole nats, on rows learned and held out alike, are that, and no "
        f"better optimum. Losses are nats a row, against the polished best of {RESTARTS} restarts, as above: on the rows held "
        "out and on those learned, the mean over runs with other seeds (and other orders, if shuffled), and in brackets the "
        "worst of them. A prior, which streams have and scikit-learn has not, costs a little on the rows learned. Where tails "
        "are heavy, a single row held out that is far from all others costs a model without one much."
        + (f" Left out, since HEADWATER_DATA has no such set: {', '.join(absent)}." if absent else "")
    )


def real(entries: Iterable[dict[str, Any]]) -> list[str]:
    lines = []
    for entry in (each for each in entries if not each["absent"]):
        name = f"{entry['set']}: {entry['rows']:,} rows, K{entry['n_components']} d{entry['width']}"
        learned = summaries([of_learned(entry)])
        for (order, way), each in summaries([entry]).items():
            lines.append([name, f"{way}, {order}", loss(each), loss(learned[order, way]), f"{each.ratio:.2f}"])
            name = ""
    return table(["set", "", "loss, rows held out", "loss, rows learned", HEADS[-1]], lines)


def loss(each: Summary) -> str:
    return nats(each.mean) + (f" ({nats(each.worst)})" if each.sets > 1 else "")


def about_cost(cost: dict[str, Any]) -> str:
    return (
        f"CPU seconds of one thread for {cost['rows']:,} shuffled rows and {cost['n_components']} components with full "
        f"covariance in {cost['width']} columns: the first {cost['warm_up_rows']:,} rows, in which a start is found, the rest "
        f"of the stream, and the first reading, each in the best of {len(cost['runs'][0]['stream'])} repeats that took turns. "
        f"After the warm-up, and with the first reading, the default takes {extra(cost):+.0%} against the plain stream."
    )


def costs(cost: dict[str, Any]) -> list[str]:
    lines = (
        [run["contender"], *(f"{min(run[name]):.3f}" for name in ("warm_up", "stream", "reading")), f"{best(run):.3f}"]
        for run in cost["runs"]
    )
    return table(["", "warm-up", "stream", "first reading", "stream and reading"], lines)


PAGE = Page("refinement", "Refinement: one pass against ten restarts", sections)
