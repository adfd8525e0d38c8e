"""Values for the page of `refinement`: drawn sets, shuffled and sorted, real sets, and costs."""

from __future__ import annotations

from typing import Any

from benchmarks.refinement_cost import extra
from benchmarks.refinement_data import SEPARATIONS
from benchmarks.refinement_peers import POLISH
from benchmarks.refinement_real import of_learned
from benchmarks.refinement_summary import Summary, summaries
from pages.results import Results


def sets(results: Results) -> dict[str, Any]:
    entries = results.of("sets")
    components, widths = ([entry[name] for entry in entries] for name in ("n_components", "width"))
    return {
        "number": len(entries), "components": (min(components), max(components)), "widths": (min(widths), max(widths)),
        "apart": ", ".join(f"{distance:g} ({name})" for name, distance in SEPARATIONS.items()),
        "small": sum(entry["small"] for entry in entries), "elongated": sum(entry["elongated"] for entry in entries),
        "polish": ", ".join(f"{f'the best {most}' if most > 1 else 'the best'} by {passes}" for most, passes, _ in POLISH[1:]),
        "lines": [(order, name, one) for (order, name), one in summaries(entries).items()],
    }  # fmt: skip


def nats(loss: float) -> str:
    """Return a loss as text, without a minus before zero."""
    return f"{round(loss, 4) + 0.0:.4f}"


def cells(one: Summary) -> str:
    losses = map(nats, (one.mean, one.mean_without_gains, one.ninetieth, one.worst))
    return " | ".join([*losses, f"{one.close:.0%}", f"{one.ratio:.2f}"])


def real(results: Results) -> list[dict[str, Any]]:
    lines = []
    for entry in results.of("real"):
        name = f"{entry['set']}: {entry['rows']:,} rows, K{entry['n_components']} d{entry['width']}"
        learned = summaries([of_learned(entry)])
        for (order, way), one in summaries([entry]).items():
            losses = {"held_out": loss(one), "learned": loss(learned[order, way])}
            lines.append({"set": name, "way": f"{way}, {order}", **losses, "ratio": one.ratio})
            name = ""
    return lines


def loss(one: Summary) -> str:
    return nats(one.mean) + (f" ({nats(one.worst)})" if one.sets > 1 else "")


def cost(results: Results) -> dict[str, Any]:
    found = results.figures["cost"]["long stream"]
    return {**found, "extra": extra(found)}
