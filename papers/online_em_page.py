"""The page about paper 002's experiments: its tables and sections, made of the figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import chi2

from papers import online_em_averaging as averaging
from papers import online_em_batch as batch
from papers import online_em_blocks as blocks
from papers import online_em_exponents as exponents
from papers import online_em_normals as normals
from papers import online_em_page_chains as more
from papers import online_em_pictures as pictures
from papers.moment_matching_claims import listed
from papers.moment_matching_page import header, row
from papers.online_em_claims import at_stops, claims, decay_name, efficiency_ratio, percent
from papers.online_em_results import FULL, NAME, Figures, Results, Scale


def image(words: str, name: str) -> list[str]:
    return [f"![{words}]({NAME}_{name}.png)", ""]


def mixture(theta: list[float]) -> str:
    """A mixture of the small model, in words."""
    weight, first, second, variance = theta
    return f"weights {weight:.2g} and {1.0 - weight:.2g}, means {first:g} and {second:g}, variance {variance:g}"


def typical(parameters: int) -> float:
    """Median squared error over the bound of an efficient estimate."""
    return float(chi2.median(parameters)) / parameters


# Mixtures


def records_section(results: Results) -> list[str]:
    passes, sizes = results.of("records", "passes/"), results.of("records", "sizes/")
    if not passes or not sizes:
        return []
    return [
        *image("Estimates by passes of batch EM", "records"),
        f"The first mean of two normals ({mixture(normals.TRUTH.tolist())}), by EM from {mixture(passes[0]['start'])}, over "
        f"{passes[0]['copies']} copies of the data. Bands: half of the copies and nine in ten; dotted: where those of an "
        "efficient estimate would be. Right: the same number of passes for all lengths, and beside it one pass of online EM "
        "(n^-0.6, averaged as in the library) from the same start.",
        "",
        *header("rows", "batch EM, bias", "batch EM, error", "online EM, bias", "online EM, error"),
        *[
            row(f"{one['rows']:,}", *[f"{one[name][key]:.1f}" for name in ("batch", "online") for key in ("bias", "rmse")])
            for one in sizes
        ],
        "",
        f"After {sizes[0]['passes']} passes or one, in standard errors of an efficient estimate; medians over "
        f"{sizes[0]['copies']} copies, the error scaled so that it is 1 for an efficient estimate.",
        *starts_words(results),
    ]  # fmt: skip


def starts_words(results: Results) -> list[str]:
    """What depends on the start."""
    one = results.one("records", "starts")
    if not one:
        return []
    return [
        "",
        f"Where runs begin matters. Runs that end more than {one['astray']:g} standard errors from the truth, {one['rows']:,} "
        f"rows, {one['copies']} copies:",
        "",
        *header("start", "online EM, one pass", *[f"batch EM, {passes} passes" for passes in one["passes"]]),
        *[
            row(mixture(line["start"]), *[percent(line[key]) for key in ("online", "batch", "longer")])
            for line in one["lines"].values()
        ],
    ]  # fmt: skip


def limit_section(results: Results) -> list[str]:
    sets = results.of("limit")
    if not sets:
        return []
    last = sets[0]["rows"][-1]
    return [
        *image("Divergence by steps of the limiting recursion", "limit"),
        "EM under the law of the rows itself: the library's batch EM on the nodes of a quadrature, which carry the density as "
        "their `sample_weight`. KL(law ‖ model) at every step, above the value that it ends at. Right: online EM by the "
        "library, on draws of the same laws, n^-0.6, averaged, from the same start.",
        "",
        *header("law of the rows", "KL at first", "least KL", "largest rise", "slope at the end", f"online, {last:,} rows"),
        *[
            row(one["name"], f"{one['divergences'][0]:.5f}", f"{abs(one['least']):.5f}", f"{one['rise']:.0e}",
                f"{one['gradient']:.0e}", f"{one['online'][-1]:.5f}")
            for one in sets
        ],
        "",
        *[
            f"- {one['name']}: the recursion ends at (w, m1, m2, v) = ({', '.join(f'{value:.3f}' for value in one['end'])}), "
            f"online EM at ({', '.join(f'{value:.3f}' for value in one['streamed'])})."
            for one in sets
        ],
    ]  # fmt: skip


def averaging_section(results: Results) -> list[str]:
    one = results.one("averaging", "trajectories")
    if not one:
        return []
    return [
        *image("Trajectories, averaged and not", "averaging"),
        f"The {one['name']} of the same mixture along streams, steps n^-{one['decay']:g}, from "
        f"{mixture(normals.START.tolist())}. Thin: three streams; bands: half of {one['copies']}, and nine in ten; dotted: the "
        f"same of efficient estimates. The slide averages parameters, here from row {one['begin']:,} on. The library averages "
        "statistics, from the start, with weights that grow with the row (gain 2/n), so that no end of the stream need be "
        "known.",
        "",
        *header("median squared error over the bound", *[f"{stop:,} rows" for stop in one["stops"]]),
        *[row(name, *[f"{value:.2f}" for value in values]) for name, values in one["losses"].items()],
        "",
        "All four rows by the code in `papers/online_em_normals.py`; the tests hold the first and the last against the "
        f"library. The median of an efficient estimate is {typical(normals.PARAMETERS):.2f}.",
    ]  # fmt: skip


def efficiency_section(results: Results) -> list[str]:
    cases = {case: results.of("efficiency", f"{case}/") for case in averaging.TRUTHS}
    if not all(cases.values()):
        return []
    close, apart = (sets[0] for sets in cases.values())
    columns = [f"{one['case']}, {one['rows']:,} rows" for sets in cases.values() for one in sets]
    lines = [
        *image("Mean squared errors over the bound", "efficiency"),
        "n (theta - truth)' I (theta - truth) / 4, with the Fisher information I of a row by quadrature: 1 is the bound of "
        f"Cramér and Rao. Mean over {close['copies']} streams (its standard error is "
        f"{np.sqrt(2.0 / normals.PARAMETERS / close['copies']):.2f} for an efficient estimate), and in brackets what theory "
        f"says of long streams. All start at {mixture(close['start'])}; the truth is {mixture(close['truth'])} (close), or the "
        f"same with means {apart['truth'][1]:g} and {apart['truth'][2]:g} (apart).",
        "",
        *header("estimate", *columns),
    ]
    for name in close["lines"]:
        cells = []
        for sets in cases.values():
            for one in sets:
                line = one["lines"][name]
                theory = "-" if line["theory"] is None else f"{line['theory']:.2f}"
                cells.append(f"{line['mean']:.2f} ({theory})")
        lines.append(row(name, *cells))
    speeds = {case: listed([f"{speed:.2f}" for speed in sets[0]["speeds"]]) for case, sets in cases.items()}
    return [
        *lines,
        "",
        "A step of EM makes up a part of the error in each direction: the part of the information that is not missing, "
        f"{speeds['close']} (close) and {speeds['apart']} (apart). The last iterate with n^-a has n^(1 - a) / 2 times that "
        "part. With 1/n an error fades like n to minus the part; below a half that is slower than noise does, and there is no "
        "bound for how much is lost (-). Averages over the last nine tenths have 1.11, those with growing weights 4/3. "
        f"{batches_words(cases['close'])}",
    ]


def batches_words(sets: list[Figures]) -> str:
    """What batches cost where much is missing, if they do."""
    by_row, by_batch = (averaging.ESTIMATES[at].name for at in (3, 4))
    if efficiency_ratio(sets[-1], by_batch) < 2.0 * efficiency_ratio(sets[-1], by_row):
        return ""
    few = "have a hundredth of the steps, and where much is missing so few have not yet forgotten the start."
    return f"Batches of {averaging.BATCH} {few}"


def exponents_section(results: Results) -> list[str]:
    sets = results.of("exponents")
    if not sets:
        return []
    first = sets[0]
    weight, b1, s1, b2, s2, close, _ = exponents.CLOSE
    made = [
        *image("Losses by exponent", "exponents"),
        f"Two lines, y = {b1:g} + {s1:g} x (weight {weight:g}) and y = {b2:g} - {-s2:g} x, x standard normal, noise of "
        f"variance {close:g} (close) or {exponents.APART[5]:g} (apart), by `hw.RegressionMixture` row by row with "
        f"`OnlineEM(decay, offset=0)`; {first['rows']:,} rows, {first['copies']} streams. The poor start has slopes "
        f"{exponents.POOR_COEF[0, 0]:g} and {exponents.POOR_COEF[1, 0]:g} and {exponents.WAIT} rows of warm-up, the good one "
        f"is what the library finds on the first {exponents.GOOD_WAIT:,}. Squared error over the bound, all seven parameters, "
        "median:",
        "",
        *header("lines", "start", "estimate", *map(decay_name, first["decays"]), "batch EM"),
    ]
    for one in sets:
        for key, name in (("last", "the last iterate"), ("averaged", "averaged")):
            cells = [f"{value:.2f}" for value in one[key]]
            made.append(row(one["case"], one["start"], name, *cells, f"{one['batch']:.2f}"))
    missing = {one["case"]: percent(1.0 - one["speeds"][0]) for one in sets}
    return [
        *made,
        "",
        f"Of the information {missing['close']} are missing in the slowest direction of the close lines, {missing['apart']} in "
        "that of the others. The averages are the library's, with growing weights. The median of an efficient estimate is "
        f"{typical(len(exponents.CLOSE)):.2f}.",
    ]  # fmt: skip


def blocks_section(results: Results) -> list[str]:
    lines = {line: results.of("blocks", f"{line}/") for line in blocks.LINES}
    if not all(lines.values()):
        return []
    first = lines[blocks.LIKELIEST][0]
    made = [
        *image("A rare component, by the size of blocks", "blocks"),
        f"Three round normals in the plane with weights {listed([f'{weight:g}' for weight in blocks.WEIGHTS])}, by "
        f"`hw.OnlineEM(decay=0.6, offset=0, batch_size=m)`, averaged, after a warm-up of {blocks.WAIT} rows; {first['rows']:,} "
        f"rows, {first['copies']} streams. The rare one is kept if its mean is less than {blocks.KEPT:g} from the truth and "
        "its weight within a factor of two. The rough start has equal weights and the means shifted.",
        "",
        *header("rows in a block", *[f"{line}: {what}" for line in blocks.LINES for what in ("kept", "gap")]),
    ]
    for at, size in enumerate(blocks.SIZES):
        cells = [cell for sets in lines.values() for cell in (percent(sets[at]["kept"]), f"{np.median(sets[at]['gaps']):.4f}")]
        made.append(row(str(size), *cells))
    return [
        *made,
        "",
        "Gap: held-out score less the truth's, nats per row, median. With steps n^-0.6 row by row, the window is shorter than "
        "the time between two rows of the rare component until n is about "
        f"{(1.0 / blocks.WEIGHTS[2]) ** (1.0 / blocks.DECAY):.0f}, and it is forgotten or shrinks to a point in the meantime. "
        "A block sees some of them at once, and a prior keeps the variance. Larger blocks also mean fewer M-steps, which "
        "counts where the start is rough.",
    ]  # fmt: skip


def gradient_section(results: Results) -> list[str]:
    beside, leaving = results.of("gradient", "beside/"), results.of("gradient", "leaving/")
    if not beside or not leaving:
        return []
    made = [
        *image("Titterington's recursion beside online EM", "gradient"),
        f"Left: the small mixture, both recursions on the same rows from the same start, medians over {beside[0]['copies']} "
        "streams. Right: two normals four standard deviations apart with variances of their own, from the truth, "
        f"{leaving[0]['rows']:,} rows after {leaving[0]['wait']} of warm-up; a run leaves when a variance is no longer "
        "positive. Online EM cannot leave; a collapsed variance is less than a thousandth of the truth.",
        "",
        *header("steps", *[f"leaves, weight {weight:g}" for weight in leaving[0]["weights"]], "one variance", "one precision"),
    ]
    for one, other in zip(leaving, beside, strict=True):
        left = [percent(other["left"][name] / other["copies"]) for name in ("variance", "precision")]
        made.append(row(decay_name(one["decay"]), *map(percent, one["gradient"]), *left))
    return [
        *made,
        "",
        "The last two columns are of the small mixture, whose normals share a variance: with the variance as the parameter "
        "the recursion stays inside, with the precision it may leave. What a gradient does depends on the parameters; online "
        "EM does not.",
    ]  # fmt: skip


def scans_section(results: Results) -> list[str]:
    one = results.one("scans", "scans")
    if not one:
        return []
    stops = np.array(one["stops"])
    shown = [int(np.argmin(np.abs(stops - stop))) for stop in (1.0, 10.0, stops[-1])]
    return [
        *image("Distance to the maximum likelihood estimate", "scans"),
        f"{one['rows']:,} rows of the small mixture, and the maximum of their likelihood (batch EM, {batch.MANY_PASSES} "
        f"passes). Random scans draw rows with replacement; incremental EM goes in tours. Medians over {one['copies']} sets of "
        "rows; one standard error is what the estimate itself is uncertain by.",
        "",
        *header("learner", *[f"{stops[at]:g} pass{'es' if stops[at] > 1.0 else ''}" for at in shown]),
        *[row(name, *[f"{at_stops(one, name)[at]:.3f}" for at in shown]) for name in one["lines"]],
        "",
        "A stream of draws knows the rows only up to noise, which fades like one over the root of the passes; batch and "
        "incremental EM have none.",
    ]  # fmt: skip


# The page

CHOSEN = (
    "All models and their parameters: the slides show pictures without naming them. The small mixture was chosen so that most "
    "of the information is missing in one direction and its likelihood has no poles (one variance for both).",
    f"Starts, {normals.WAIT} rows before the first M-step (Cappé advises some), and n^-0.6 where one exponent had to do.",
    "The start of the first section, of five that were tried: batch EM is slow from there, and online EM does not go astray. "
    "The table below it has another.",
    "Averages of parameters begin after a tenth of the rows in the table of efficiency; the slide names no n0.",
    "Laws, lags and sizes; seeds are fixed and were not searched.",
)


def page(results: Results) -> str:
    sections = {
        "Batch EM and large records": records_section(results),
        "The limiting recursion": limit_section(results),
        "Averaging": averaging_section(results),
        "Efficiency": efficiency_section(results),
        "Exponents": exponents_section(results),
        "A rare component": blocks_section(results),
        "Titterington's recursion": gradient_section(results),
        "Random scans of a finite set": scans_section(results),
        "Smoothing with a limited memory": more.smoothing_section(results),
        "Hidden Markov models": more.chains_section(results),
        "Direction of arrival": more.array_section(results),
    }
    reduced = Scale.stored(results.scale) != FULL
    lines = [
        "# Online EM: mixtures, hidden Markov models, sensor arrays",
        "",
        f"<!-- Written by python -m papers.{NAME}: change the command, not this page. -->",
        "",
        "Paper 002, the slides of a talk by Cappé (2010), replaces the E-step over all rows by a step of stochastic "
        "approximation in the space of sufficient statistics: S <- S + gamma_n (E[s | Y_n] - S). Here are its pictures and "
        f"claims again, by `python -m papers.{NAME}`, which also wrote this page; all numbers are that run's. What holds is at "
        "the end.",
        *(["", "**A reduced run, to try the command: its figures mean little.**"] if reduced else []),
        *(["", f"**Not complete yet**: {listed(results.pending)}."] if results.pending else []),
    ]
    for title, section in sections.items():
        lines += ["", f"## {title}", "", *(section or ["Not measured."])]
    lines += ["", "## What holds", "", *(claims(results) or ["Not measured."]), "", "Chosen by us:", ""]
    return "\n".join([*lines, *[f"- {words}" for words in CHOSEN]]) + "\n"


def render(results: Results, out: Path) -> None:
    """Write the page and the pictures of the figures there are."""
    (out / f"{NAME}.md").write_text(page(results), encoding="utf-8")

    def path(name: str) -> Path:
        return out / f"{NAME}_{name}.png"

    passes, sizes = results.of("records", "passes/"), results.of("records", "sizes/")
    if passes and sizes:
        pictures.draw_records(path("records"), passes, sizes)
    if sets := results.of("limit"):
        pictures.draw_limit(path("limit"), sets)
    if one := results.one("averaging", "trajectories"):
        pictures.draw_averaging(path("averaging"), one)
    if all((cases := {case: results.of("efficiency", f"{case}/") for case in averaging.TRUTHS}).values()):
        pictures.draw_efficiency(path("efficiency"), cases)
    if sets := results.of("exponents"):
        pictures.draw_exponents(path("exponents"), sets)
    if all((lines := {line: results.of("blocks", f"{line}/") for line in blocks.LINES}).values()):
        pictures.draw_blocks(path("blocks"), lines)
    beside, leaving = results.of("gradient", "beside/"), results.of("gradient", "leaving/")
    if beside and leaving:
        pictures.draw_gradient(path("gradient"), beside, leaving)
    if one := results.one("scans", "scans"):
        pictures.draw_scans(path("scans"), one)
    more.render(results, path)
