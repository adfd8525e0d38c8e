"""What the page about calibration says of its figures."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from headwater.core.algorithms import ALGORITHMS
from pages.results import Figures, Results
from pages.words import listed, percent
from papers.calibration_pictures import QUANTITIES
from papers.calibration_ranks import AMBIGUITY, NOMINAL

ERRORS = 3.0  # standard errors within which a share counts as right
UNIFORM = 0.01  # p under which ranks are said not to be uniform
WIDER = ", widened"
FAR, NEAR = "separated, many rows", "overlapping, many rows"


def right(one: Figures) -> bool:
    """Whether both shares are right, within their standard errors."""
    return all(abs(one[f"{level:g}"][0] - level) <= ERRORS * one[f"{level:g}"][1] for level in NOMINAL)


def short(one: Figures) -> str:
    """How often a 90 % interval contains the truth, and the number to widen it by."""
    return f"{percent(one['0.9'][0])} (x {one['stretch']:.2f})"


def widened(one: Figures) -> str:
    return f"widen it by {one['stretch']:.1f}" if one["stretch"] >= 1.05 else "wide enough"


def other_words(by_way: Figures) -> str:
    """How the algorithms of another model compare, from the worst to the best."""
    words = []
    for quantity in next(iter(by_way.values())):
        ordered = sorted(by_way, key=lambda way, quantity=quantity: by_way[way][quantity]["0.9"][0])  # type: ignore[misc]
        worst, best = (
            f"{percent(by_way[way][quantity]['0.9'][0])} ({way}: {widened(by_way[way][quantity])})"
            for way in (ordered[0], ordered[-1])
        )
        words.append(f"90 % intervals of {quantity} contain the truth from {worst} to {best} of the time")
    return "; ".join(words)


def one_component(results: Results) -> dict[str, Any]:
    kinds = results.figures["one"]
    wrong = sorted({way for by_way in kinds.values() for way, found in by_way.items() if not all(map(right, found.values()))})
    averaging = {word for word, kind in ALGORITHMS.items() if kind().average}
    return {
        "kinds": kinds, "wrong": listed(wrong), "averaging": averaging.issuperset(wrong),
        "good": listed([way for way in next(iter(kinds.values())) if way not in wrong]),
    }  # fmt: skip


def gaussian(results: Results) -> dict[str, Any]:
    kinds = results.figures["gaussian"]
    far, near = (kinds["full"]["regimes"][name] for name in (FAR, NEAR))
    return {
        "kinds": kinds, "full": kinds["full"], "ways": [(way, one, near[way]) for way, one in far.items()],
        "bins": [*pairwise(AMBIGUITY)], "middling": middling(kinds["full"]["ambiguity"]),
    }  # fmt: skip


def middling(by_way: Figures) -> str:
    """The stretch that the algorithm in the middle needs, by ambiguity."""
    words = []
    for low, high in pairwise(AMBIGUITY):
        found = [cells[f"{low:g}"]["means"]["stretch"] for cells in by_way.values() if "means" in cells[f"{low:g}"]]
        if found:
            words.append(f"{float(np.median(found)):.1f} at {100 * low:g} to {100 * high:g} %")
    return ", ".join(words)


def exact_words(by_way: Figures) -> str:
    if all(map(right, by_way["exact posterior"].values())):
        return (
            "contain the truth as often as they say, so what is missing elsewhere on this page is missing from the beliefs, "
            "not made by the matching."
        )
    return "do not contain the truth as often as they say, so the matching may be at fault elsewhere on this page, too."


def widened_words(found: Figures) -> str:
    """What widening does, by set and algorithm, for 90 % intervals."""
    words = []
    for name, by_way in found.items():
        fits = sum(next(iter(one.values()))["simulations"] for way, one in by_way.items() if way.endswith(WIDER))
        ways = []
        for way in (one for one in by_way if one + WIDER in by_way):
            ends = [f"{percent(by_way[way][of]['0.9'][0])} → {percent(by_way[way + WIDER][of]['0.9'][0])}" for of in QUANTITIES]
            ways.append(f"{way} {', '.join(ends)}")
        words.append(f"- **{name}** ({fits:,} fits): {'; '.join(ways)}.")
    return "\n".join(words)


def share(pair: tuple[float, float]) -> str:
    """A share in percent, with its standard error."""
    return f"{100 * pair[0]:.0f} ± {100 * pair[1]:.1f}"


def chance(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def first_of(by_way: Figures) -> list[str]:
    """The quantities that the figures of algorithms are about."""
    return [*next(iter(by_way.values()))]


VALUES = {
    "one": one_component, "gaussian": gaussian,
    **{part: lambda results, part=part: results.figures[part] for part in ("exact", "starts", "widened", "others")},
}  # fmt: skip
FILTERS = {"share": share, "chance": chance, "first_of": first_of}
