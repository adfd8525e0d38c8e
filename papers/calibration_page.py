"""The page of calibration: tables and sentences made of the figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from headwater.core.algorithms import ALGORITHMS
from papers.calibration_pictures import QUANTITIES, draw_ambiguity, draw_coverage, draw_ranks
from papers.calibration_ranks import AMBIGUITY, NOMINAL
from papers.calibration_results import NAME, PARTS, Figures, Results, Scale

ERRORS = 3.0  # standard errors within which a share is said to be as it should
UNIFORM = 0.01  # p under which ranks are said not to be uniform
FAR, NEAR = "separated, many rows", "overlapping, many rows"
NOT_MEASURED = ["Not measured.", ""]


def render(results: Results, out: Path) -> None:
    (out / f"{NAME}.md").write_text(page(results), encoding="utf-8")
    measured = results.figures.get("gaussian", {}).get("full")
    if measured:
        draw_ranks(out / f"{NAME}.png", [one["regimes"] for one in results.figures["gaussian"].values()])
        draw_coverage(out / f"{NAME}_coverage.png", measured["regimes"])
        draw_ambiguity(out / f"{NAME}_ambiguity.png", measured["ambiguity"])


# Words


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def head(*cells: str) -> list[str]:
    return [row(*cells), "|---" * len(cells) + "|"]


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def with_error(pair: Sequence[float]) -> str:
    return f"{100 * pair[0]:.0f} ± {100 * pair[1]:.1f}"


def chance(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def right(one: Figures) -> bool:
    """Whether both shares are as they should, as far as can be told."""
    return all(abs(one[f"{level:g}"][0] - level) <= ERRORS * one[f"{level:g}"][1] for level in NOMINAL)


def short(one: Figures) -> str:
    """How often a 90 % interval holds, and the stretch that would make it hold as often as it says."""
    return f"{percent(one['0.9'][0])} (x {one['stretch']:.2f})"


def sentences(results: Results) -> list[str]:
    """For every algorithm, by how much it is over-confident."""
    measured = results.figures.get("gaussian", {}).get("full")
    if not measured:
        return []
    far, near = (measured["regimes"][name] for name in (FAR, NEAR))
    return [
        f"- **{way}**: a 90 % interval of a mean holds {percent(one['means']['0.9'][0])} of the time where components are far "
        f"apart, and {percent(near[way]['means']['0.9'][0])} where they overlap: {widened(near[way]['means'])} there (of a "
        f"weight {percent(near[way]['weights']['0.9'][0])}: {widened(near[way]['weights'])}; of a variance "
        f"{percent(near[way]['variances']['0.9'][0])}: {widened(near[way]['variances'])})."
        for way, one in far.items()
    ] + [f"- **{name}**: {other_words(by_way)}." for name, by_way in results.figures.get("others", {}).items()]


def widened(one: Figures) -> str:
    return f"widen it by {one['stretch']:.1f}" if one["stretch"] >= 1.05 else "wide enough"


def other_words(by_way: Figures) -> str:
    """How the algorithms of another model compare, from the worst to the best."""
    told = []
    for quantity in next(iter(by_way.values())):
        ordered = sorted(by_way, key=lambda way, quantity=quantity: by_way[way][quantity]["0.9"][0])  # type: ignore[misc]
        worst, best = (
            f"{percent(by_way[way][quantity]['0.9'][0])} ({way}: {widened(by_way[way][quantity])})"
            for way in (ordered[0], ordered[-1])
        )
        told.append(f"90 % intervals of {quantity} hold from {worst} to {best} of the time")
    return "; ".join(told)


# Tables


def coverage_table(by_way: Figures, first: str = "algorithm") -> list[str]:
    quantities = [*next(iter(by_way.values()))]
    names = [f"{quantity}: {word}" for quantity in quantities for word in ("in 50 %", "in 90 %", "stretch")]
    lines = [
        row(
            way,
            *(
                text
                for quantity in quantities
                for text in (
                    with_error(found[quantity]["0.5"]), with_error(found[quantity]["0.9"]), f"{found[quantity]['stretch']:.2f}",
                )
            ),
        )
        for way, found in by_way.items()
    ]  # fmt: skip
    return [*head(first, *names), *lines, ""]


def rank_table(by_way: Figures, first: str = "algorithm") -> list[str]:
    quantities = [*next(iter(by_way.values()))]
    lines = [
        row(way, *(f"{found[quantity]['deviation']:.3f} ({chance(found[quantity]['p'])})" for quantity in quantities))
        for way, found in by_way.items()
    ]
    return [*head(first, *quantities), *lines, ""]


def summary_table(regimes: Figures) -> list[str]:
    ways = [*next(iter(regimes.values()))]
    lines = [row(way, *(short(by_way[way]["means"]) for by_way in regimes.values())) for way in ways]
    return [*head("algorithm", *regimes), *lines, ""]


def ambiguity_table(by_way: Figures, quantity: str) -> list[str]:
    bins = [f"{low:g}" for low in AMBIGUITY[:-1]]
    words = [f"{100 * low:g} to {100 * high:g} %" for low, high in pairwise(AMBIGUITY)]
    lines = [
        row(way, *(short(cells[low][quantity]) if quantity in cells[low] else "–" for low in bins))
        for way, cells in by_way.items()
    ]
    return [*head(f"{quantity}, by ambiguity", *words), *lines, ""]


# Sections


def one_section(results: Results) -> list[str]:
    kinds = results.figures.get("one", {})
    lines = ["## One component: the belief is exact", ""]
    if not kinds:
        return lines + NOT_MEASURED
    wrong = sorted({way for by_way in kinds.values() for way, found in by_way.items() if not all(map(right, found.values()))})
    good = [way for way in next(iter(kinds.values())) if way not in wrong]
    lines += [
        "With one component nothing is hidden, so what counts add up to is the posterior itself and every interval must hold "
        "as often as it says: 30 rows, 10 of them to start on. This checks the simulations as much as the algorithms.",
        "",
    ]
    if good:
        lines += [f"As they should, within {ERRORS:g} standard errors: {listed(good)}.", ""]
    if wrong:
        reason = (
            " They average what they learned on the way: where few batches were folded, an average is worth less than the rows "
            "it was made of, and the belief counts these rows."
        )
        averaging = {word for word, kind in ALGORITHMS.items() if kind().average}
        lines += [f"Not so: {listed(wrong)}.{reason if averaging.issuperset(wrong) else ''}", ""]
    for kind, by_way in kinds.items():
        lines += [f"### {kind} covariance", "", *coverage_table(by_way), *rank_table(by_way, "largest deviation (p)")]
    return lines


def gaussian_section(results: Results) -> list[str]:
    lines = ["## Three components", ""]
    kinds = results.figures.get("gaussian", {})
    if not kinds:
        return lines + NOT_MEASURED
    for kind, found in kinds.items():
        for regime, by_way in found["regimes"].items():
            lines += [f"### {kind} covariance, {regime}", "", *coverage_table(by_way)]
            lines += rank_table(by_way, "largest deviation (p)")
    return lines


def ambiguity_section(results: Results) -> list[str]:
    lines = ["## What makes a belief over-confident", ""]
    kinds = results.figures.get("gaussian", {})
    if not kinds:
        return lines + NOT_MEASURED
    lines += [
        "All of these beliefs count a row that half belongs to a component as half a row that is certain to belong to it. That "
        "nobody knows which half is left out of account, and more rows do not make up for it. How much it matters can be seen "
        "without knowing the truth: a component is ambiguous by what its rows share with others,",
        "",
        "```python",
        "shares = model.predict_proba(rows)",
        "ambiguity = 1 - (shares**2).sum(axis=0) / shares.sum(axis=0)",
        "```",
        "",
        "and this is how often a 90 % interval held, by the ambiguity of its component, and by what its ends have to be moved "
        "away from the median to hold as often as it says (all four regimes together). "
        f"{middling(kinds['full']['ambiguity'])}",
        "",
        f"![Stretch by ambiguity]({NAME}_ambiguity.png)",
        "",
    ]
    for kind, found in kinds.items():
        lines += [f"### {kind} covariance", ""]
        for quantity in QUANTITIES:
            lines += ambiguity_table(found["ambiguity"], quantity)
    return lines


def middling(by_way: Figures) -> str:
    """What the algorithm in the middle needs, in words."""
    told = []
    for low, high in pairwise(AMBIGUITY):
        found = [cells[f"{low:g}"]["means"]["stretch"] for cells in by_way.values() if "means" in cells[f"{low:g}"]]
        if found:
            told.append(f"{float(np.median(found)):.1f} at {100 * low:g} to {100 * high:g} %")
    return f"Half of the algorithms need less than this for means of full covariance: {', '.join(told)}."


def starts_section(results: Results) -> list[str]:
    lines = ["## Warm-up, stream and start", ""]
    found = results.figures.get("starts", {})
    if not found:
        return lines + NOT_MEASURED
    for regime, by_way in found.items():
        lines += [
            f"Full covariance, {regime}. Begun at the truth, passes that go on until nothing changes end in the right "
            "place, so what is missing then is missing from the belief itself. What others miss beyond that is owed to passes "
            "that ended too soon, to starts that led elsewhere, and to streams that do not correct what they learned early.",
            "",
            *coverage_table(by_way, "algorithm and start"),
        ]
    return lines


def exact_section(results: Results) -> list[str]:
    lines = ["## The exact posterior", ""]
    found = results.figures.get("exact", {})
    if not found:
        return lines + NOT_MEASURED
    for regime, by_way in found.items():
        told = "hold as often as they say" if all(map(right, by_way["exact posterior"].values())) else "do not hold as they say"
        lines += [
            "The same draws, with quantiles of the exact posterior in place of a belief: "
            f"{Scale(**results.scale).sweeps} sweeps of Gibbs sampling, each draw's components matched to those that "  # type: ignore[arg-type]
            f"variational Bayes found, as the truth's are. Its intervals {told}, so what is missing elsewhere on this page is "
            f"missing from the beliefs, not made by the matching. Full covariance, {regime}.",
            "",
            *coverage_table(by_way, ""),
            *rank_table(by_way, "largest deviation (p)"),
        ]
    return lines


def mended_words(found: Figures) -> str:
    """What widening does for what is used by default."""
    by_way = found.get(NEAR)
    if not by_way:
        return ""
    plain, wider = by_way["auto"], by_way["auto, widened"]
    told = [
        f"{percent(wider[name]['0.9'][0])} of the time instead of {percent(plain[name]['0.9'][0])} for {name}"
        for name in QUANTITIES
    ]
    return f'where components overlap, 90 % intervals of "auto" then hold {listed(told)} (of many rows).'


def mended_section(results: Results) -> list[str]:
    lines = ["## What would mend it", ""]
    found = results.figures.get("mended", {})
    if not found:
        return lines + NOT_MEASURED
    lines += [
        "How much wider an interval has to be can be computed from the rows, or from a sample of them: a belief that counts "
        "rows is as narrow as if the component of each were known, and the information that is missing since it is not follows "
        "from responsibilities and gradients (Louis, 1982; `papers/calibration_mending.py`). Widened by that, each interval by "
        "its own factor, and hardly at all where components are far apart (full covariance; the library does not do this yet): "
        f"{mended_words(found)}",
        "",
    ]
    for regime, by_way in found.items():
        lines += [f"### {regime}", "", *coverage_table(by_way)]
    return lines


def others_section(results: Results) -> list[str]:
    lines = ["## Counts and regressions", ""]
    found = results.figures.get("others", {})
    if not found:
        return lines + NOT_MEASURED
    lines += [
        "The intervals that `describe` tells, of 300 rows, 100 of them to start on. Counts: three components, six columns. "
        "Regressions: two components, two inputs, no intercept; noise and intercepts have no intervals.",
        "",
    ]
    for name, by_way in found.items():
        lines += [f"### {name}", "", *coverage_table(by_way), *rank_table(by_way, "largest deviation (p)")]
    return lines


def page(results: Results) -> str:
    scale = Scale(**results.scale)  # type: ignore[arg-type]
    kinds = results.figures.get("gaussian", {})
    pending = [part for part in PARTS if part in results.pending]
    lines: list[Any] = [
        "# Calibration: how far credible intervals can be trusted",
        "",
        f"<!-- Written by python -m papers.{NAME}: change the command, not this page. -->",
        "",
        "A belief is right if 90 % intervals hold the truth 90 % of the time. Here that is counted, for every algorithm that "
        "a mixture can be learned by: parameters are drawn from a prior, rows from these parameters, and the model, which "
        "is given that very prior, learns the rows. `python -m papers.calibration` did so and wrote this page; all numbers are "
        "that run's.",
        "",
    ]
    if pending:
        lines += [f"**Not complete yet**: {', '.join(pending)}.", ""]
    if scale.gaussian < 50:
        lines += ["A quick run, to test the command: its numbers mean little.", ""]
    if kinds:
        lines += [
            "## By how much each algorithm is over-confident",
            "",
            f"`GaussianMixture`, three components of full covariance in two columns, 1500 rows of which 150 are the warm-up, "
            f"{scale.gaussian} simulations:",
            "",
            *sentences(results),
            "",
            "To widen an interval by a number is to move both of its ends so many times as far from the median. By how much "
            "depends on how much components share their rows, which any model can tell "
            "([below](#what-makes-a-belief-over-confident)), and most of it can be computed ([below](#what-would-mend-it)).",
            "",
            "How often a 90 % interval of a mean held, and what to widen it by:",
            "",
            *summary_table(kinds["full"]["regimes"]),
            f"![Shares of truths in intervals]({NAME}_coverage.png)",
            "",
        ]
    lines += [
        "## What was done",
        "",
        "- Prior: weights are Dirichlet with 5 for each component, covariances inverse Wishart (of each column inverse Gamma) "
        "with 10 degrees of freedom and mean precision 1, means normal with the component's covariance over 0.01 (separated) "
        "or over 0.1 (overlapping). Even the first has components that touch, now and then.",
        "- Rows: 150, of which 50 are the warm-up, or 1500 and 150, so that most are streamed by those algorithms that stream.",
        '- `fit` with all else as it is by default; "auto (stream)" is `partial_fit`. A batch algorithm makes its passes.',
        "- Components are matched to the true ones by least sum of Jeffreys' divergences (probabilities: Hellinger distances).",
        "- Shares are means over simulations, in percent, with standard errors that know that parameters of one simulation "
        "hang together. Stretch: the number to widen 90 % intervals by so that 90 % of them hold the truth; 1 is right, more "
        "is over-confident, less is cautious.",
        "- Ranks of the truth among 19 quantiles of the belief are uniform if the belief is right. Told is the largest "
        "deviation of their distribution from uniform, and the p-value of a chi-squared test (one parameter of each "
        f"simulation, ten bins); less than {UNIFORM:g} says that the belief is not right.",
        "- Algorithms that maximise ('em', 'soem', 'online-em', 'simulated-em') have intervals, too: those of the belief "
        "that their statistics make with the prior.",
        "",
        f"![Deviations of ranks from uniform]({NAME}.png)",
        "",
        "Lines above zero on the left and below it on the right: truths lie further out than the belief thinks. Grey: where "
        "95 % of the lines of right beliefs would stay, if each simulation had one parameter. Both kinds of covariance "
        "together.",
        "",
        *one_section(results),
        *exact_section(results),
        *ambiguity_section(results),
        *starts_section(results),
        *mended_section(results),
        *gaussian_section(results),
        *others_section(results),
        "All draws came from such priors, in two columns with two or three components; other data may behave otherwise.",
    ]
    return "\n".join(lines) + "\n"
