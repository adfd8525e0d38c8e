"""The sections of paper 002's page about hidden chains and sensor arrays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from papers import online_em_array as array
from papers import online_em_chains as chains
from papers import online_em_pictures_chains as pictures
from papers import online_em_smoothing as smoothing
from papers.moment_matching_page import header, row
from papers.online_em_results import NAME, Results


def smoothing_section(results: Results) -> list[str]:
    sets = results.of("smoothing")
    if not sets:
        return []
    first = sets[0]
    made = [
        f"![Fixed points by lag]({NAME}_smoothing.png)",
        "",
        f"Two states, normal noise (means {smoothing.MEANS[0]:g} and {smoothing.MEANS[1]:g}, variance 1), chances to stay "
        f"{smoothing.TRANSITIONS[0, 0]:g} and {smoothing.TRANSITIONS[1, 1]:g}; one sequence of {first['rows']:,} rows for each "
        "law. E-steps take what is expected of row t given the rows from t - l to t + l (limited memory), or given all up to "
        f"t + l (fixed lag), M-steps follow until nothing moves (at most {first['most']}). The code is in "
        "`papers/online_em_smoothing.py`; the recursion is the library's `GaussianHMM`, row by row.",
        "",
        *header(
            "law of the rows",
            "smoothing",
            *[f"lag {lag}" for lag in first["lags"]],
            "steps at lag 0",
            f"at lag {first['lags'][-1]}",
        ),
    ]
    for one in sets:
        for name, kind in one["kinds"].items():
            cells = [f"{value:.4f}" for value in kind["away"]]
            made.append(row(one["law"], name, *cells, str(kind["steps"][0]), str(kind["steps"][-1])))
        made.append(
            row(one["law"], "Cappé's recursion", f"{max(one['recursive']):.4f}", *["" for _ in first["lags"][1:]], "", "")
        )
    return [
        *made,
        "",
        "Largest difference of a parameter (chances to stay, means, variances) from the fixed point of full smoothing on the "
        "same rows, from a far start. If the model is right, the truth is a fixed point of every one of these mappings (the "
        "mean of a conditional expectation is the expectation), so that only noise and slowness are left to see; but without "
        "any neighbours (lag 0, limited memory) rows say nothing of how states follow one another, and every chain with the "
        "right shares of states is a fixed point. If the model is wrong, short lags end elsewhere.",
    ]  # fmt: skip


def chains_section(results: Results) -> list[str]:
    cases = {case: results.of("chains", f"{case}/") for case in chains.CASES}
    if not all(cases.values()):
        return []
    first = next(iter(cases.values()))[0]
    rows = first["rows"]
    shown = [int(np.argmin(np.abs(np.array(rows) - stop))) for stop in (rows[-1] / 100, rows[-1] / 10, rows[-1])]
    made = [
        f"![Errors as the sequence grows]({NAME}_chains.png)",
        "",
        f"Three states; normal rows with means {', '.join(f'{mean:g}' for mean in chains.MEANS)}, or five symbols. "
        "`GaussianHMM` and `CategoricalHMM`, Cappé's recursion row by row, from random means or emissions and nearly even "
        f"passages, first M-step after {chains.WAIT} rows; {first['copies']} sequences, each with a start of its own. Blocks "
        "are the library's fast form, with the same starts; its defaults find a start themselves. Stuck: an error above "
        f"{chains.STUCK:g} at the end.",
        "",
        *header("rows", "learner", *[f"{rows[at]:,}" for at in shown], "emissions at the end", "stuck"),
    ]
    for case, sets in cases.items():
        for one in sets:
            middle = np.median(one["passages"], axis=0)
            said = float(np.median([path[-1] for path in one["emissions"]]))
            made.append(
                row(
                    case,
                    one["line"],
                    *[f"{middle[at]:.4f}" for at in shown],
                    f"{said:.4f}",
                    f"{one['stuck']} of {one['copies']}",
                )
            )
    return [
        *made,
        "",
        "Largest error of a transition probability after so many rows, and of a mean or an emission probability at the end; "
        "medians.",
    ]  # fmt: skip


def array_section(results: Results) -> list[str]:
    sets = results.of("array")
    if not sets:
        return []
    first = sets[0]
    omega, power, noise = array.TRUTH
    made = [
        f"![Direction of arrival]({NAME}_array.png)",
        "",
        f"A line of {array.SENSORS} sensors half a wavelength apart, one source with electrical angle {omega:g} and power "
        f"{power:g}, noise of power {noise:g}; each sensor is missing in {100 * array.MISSING:.0f} % of the snapshots, at "
        f"random. `hw.DirectionOfArrival`, {first['copies']} streams. Squared errors of all three parameters over the bound "
        "(Fisher information, mean over all ways to miss sensors), root mean squared errors of the angle over its bound, and "
        "seconds.",
        "",
        *header("snapshots", "learner", "squared error over the bound", "error of the angle over its bound", "passes", "CPU s"),
    ]
    for one in sets:
        ratio = one["rmse"][0] / one["bound"][0]
        made.append(
            row(
                f"{one['rows']:,}",
                one["line"],
                f"{one['loss']:.2f} ± {one['error']:.2f}",
                f"{ratio:.2f}",
                f"{one['passes']:.0f}",
                f"{one['seconds']:.4f}",
            )
        )
    return [
        *made,
        "",
        f"Row by row the first M-step is after {array.WAIT} snapshots; the default stream folds batches of equal weight after "
        "its own warm-up.",
    ]  # fmt: skip


def render(results: Results, path: Callable[[str], Path]) -> None:
    if sets := results.of("smoothing"):
        pictures.draw_smoothing(path("smoothing"), sets)
    if sets := results.of("array"):
        pictures.draw_array(path("array"), sets)
    if all((cases := {case: results.of("chains", f"{case}/") for case in chains.CASES}).values()):
        pictures.draw_chains(path("chains"), cases)
