"""What the page about paper 002 says of its figures: verdicts, and numbers that take more than a look."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import chi2

from headwater.core.statistics import Array
from pages.results import Figures, Results
from pages.words import listed, percent
from papers import online_em_array as array
from papers import online_em_averaging as averaging
from papers import online_em_batch as batch
from papers import online_em_blocks as blocks
from papers import online_em_chains as chains
from papers import online_em_exponents as exponents
from papers import online_em_limit as limit
from papers.online_em_normals import KINDS, LAST, PARAMETERS, STATISTICS, THETA

EFFICIENT = 1.25  # times the mean squared error of maximum likelihood that counts as efficient
NEAR = 1e-2  # a parameter of a fixed point that far away counts as the same


def held(holds: bool, otherwise: str = "does not hold") -> str:
    return "holds" if holds else otherwise


def decay_name(decay: float) -> str:
    return "1/n" if decay == 1.0 else f"n^-{decay:g}"


def mixture(theta: list[float]) -> str:
    """A mixture of the small model, in words."""
    weight, first, second, variance = theta
    return f"weights {weight:.2g} and {1.0 - weight:.2g}, means {first:g} and {second:g}, variance {variance:g}"


def typical(parameters: int) -> float:
    """Median squared error over the bound of an efficient estimate."""
    return float(chi2.median(parameters)) / parameters


# Mixtures


def records(results: Results) -> dict[str, Any]:
    passes, sizes = results.of("records", "passes/"), results.of("records", "sizes/")
    shortest, longest, few, many = passes[0], passes[-1], sizes[0], sizes[-1]
    more = longest["settled"] >= shortest["settled"]
    worse = many["batch"]["rmse"] > 2.0 * few["batch"]["rmse"] and many["batch"]["rmse"] > many["online"]["rmse"]
    return {
        "passes": passes, "sizes": sizes, "shortest": shortest, "longest": longest, "few": few, "many": many,
        "starts": results.one("records", "starts"), "verdict": held(more and worse),
    }  # fmt: skip


def limiting(results: Results) -> dict[str, Any]:
    sets = results.of("limit")
    rise, slope = (max(one[key] for one in sets) for key in ("rise", "gradient"))
    above = [(one["online"][0] - one["least"], one["online"][-1] - one["least"]) for one in sets]
    comes = all(after < 0.1 * before for before, after in above)
    return {
        "sets": sets, "rise": rise, "slope": slope, "first_slope": max(one["gradient_start"] for one in sets),
        "steps": sum(len(one["divergences"]) for one in sets), "rows": sets[0]["rows"],
        "above": listed([f"{before:.4f} and {after:.5f}" for before, after in above]),
        "falls": held(rise < limit.EPSILON), "stops": held(slope < 1e-6, "nearly holds"),
        "comes": held(comes, "does not hold for every law"),
    }  # fmt: skip


def averages(results: Results) -> dict[str, Any]:
    one = results.figures["averaging"]["trajectories"]
    last, theta, statistics = (one["losses"][KINDS[kind]][-1] for kind in (LAST, THETA, STATISTICS))
    return {
        **one, "last": last, "theta": theta, "statistics": statistics, "calms": held(last > 3.0 * theta),
        "alike": held(one["difference"] < 0.1),
    }  # fmt: skip


def efficiency_ratio(one: Figures, name: str) -> float:
    """Mean squared error over that of maximum likelihood on the same streams."""
    return float(one["lines"][name]["mean"] / one["lines"][averaging.ESTIMATES[0].name]["mean"])


def efficiency(results: Results) -> dict[str, Any]:
    close, apart = (results.of("efficiency", f"{case}/") for case in averaging.TRUTHS)
    ends, theta, library = (close[-1], apart[-1]), averaging.ESTIMATES[1].name, averaging.ESTIMATES[3].name
    harmonic, by_batch = averaging.ESTIMATES[-1].name, averaging.ESTIMATES[4].name
    slide, ours, steps = ([efficiency_ratio(one, name) for one in ends] for name in (theta, library, harmonic))
    short = [efficiency_ratio(sets[0], theta) for sets in (close, apart)]
    sometimes = "holds where most of the information is missing" if max(steps) > EFFICIENT else "does not hold"
    return {
        "sets": [*close, *apart], "close": close[0], "apart": apart[0], "rows": ends[0]["rows"],
        "estimates": [*close[0]["lines"]], "error": np.sqrt(2.0 / PARAMETERS / close[0]["copies"]),
        "batches_cost": efficiency_ratio(close[-1], by_batch) >= 2.0 * efficiency_ratio(close[-1], library),
        "slide": slide, "ours": ours, "short": short, "steps": steps,
        "theory": averaging.ESTIMATES[1].theory(np.ones(1), 1), "missing": [1.0 - one["speeds"][0] for one in ends],
        "efficient": held(max(slide) < EFFICIENT), "ours_efficient": held(max(ours) < EFFICIENT, "nearly: 4/3"),
        "not_short": held(max(short) > EFFICIENT), "no_harmonic": held(min(steps) > EFFICIENT, sometimes),
    }  # fmt: skip


def best_decay(one: Figures) -> tuple[float, str]:
    """The least loss but for 1/n, and what has it."""
    return min(
        (value, f"{decay_name(decay)}{', averaged' if name == 'averaged' else ''}")
        for name in ("last", "averaged")
        for decay, value in zip(one["decays"], one[name], strict=True)
        if decay < 1.0
    )


def steps(results: Results) -> dict[str, Any]:
    sets = {(one["case"], one["start"]): one for one in results.of("exponents")}

    def compared(start: str) -> tuple[list[bool], str]:
        lines = {case: sets[case, start] for case in exponents.TRUTHS}
        words = [
            f"{case} ({percent(1.0 - one['speeds'][0])} missing): {one['last'][-1]:.2f} with 1/n, "
            f"{best_decay(one)[0]:.2f} with {best_decay(one)[1]}"
            for case, one in lines.items()
        ]
        return [one["last"][-1] > EFFICIENT * best_decay(one)[0] for one in lines.values()], listed(words)

    def spread(below: float) -> float:
        """Largest over least loss of the averages with smaller exponents, in the worst of the four."""
        return max(
            max(values) / min(values)
            for one in sets.values()
            if (values := [value for decay, value in zip(one["decays"], one["averaged"], strict=True) if decay < below])
        )

    (poor, poor_words), (good, good_words) = compared(exponents.POOR), compared(exponents.GOOD)
    up_to = f"holds up to {decay_name(0.8)}" if spread(0.9) < 1.5 else "does not hold"
    return {
        "sets": [*sets.values()], "first": next(iter(sets.values())), "poor": poor_words, "good": good_words,
        "missing": {one["case"]: 1.0 - one["speeds"][0] for one in sets.values()},
        "spreads": (spread(0.9), spread(1.0)), "robust": held(spread(1.0) < 1.5, up_to),
        "no_harmonic": held(all(poor), "holds in part" if any(poor) else "does not hold"),
        "harmonic_after_good": held(not any(good), "holds where little is missing" if not all(good) else "does not hold"),
    }  # fmt: skip


def rare(results: Results) -> dict[str, Any]:
    lines = {line: {one["size"]: one for one in results.of("blocks", f"{line}/")} for line in blocks.LINES}
    likeliest, prior, rough = (lines[line] for line in (blocks.LIKELIEST, blocks.PRIOR, blocks.ROUGH))
    first, large = blocks.SIZES[0], blocks.SIZES[3]
    away = {size: float(np.median(one["away"])) for size, one in rough.items()}
    return {
        "lines": lines, "first": likeliest[first], "large": large, "likeliest": [likeliest[size] for size in (first, large)],
        "prior": [prior[size] for size in (first, large)], "away": [away[size] for size in (first, large)],
        "helps": held(likeliest[large]["kept"] > likeliest[first]["kept"] + 0.25),
        "larger": held(away[large] <= away[first], "does not hold from a rough start"),
    }  # fmt: skip


def titterington(results: Results) -> dict[str, Any]:
    beside, leaving = results.of("gradient", "beside/"), results.of("gradient", "leaving/")
    ratios = {decay_name(one["decay"]): [one["apart"][at] / one["em"][at] for at in (0, -1)] for one in beside}
    first = leaving[0]
    shares = zip(first["gradient"], first["weights"], strict=True)
    return {
        "beside": beside, "leaving": leaving, "first": first,
        "ratios": listed([f"{before:.2f} and {after:.2f} ({name})" for name, (before, after) in ratios.items()]),
        "shares": listed([f"{percent(share)} (weight {weight:g})" for share, weight in shares]),
        "equivalent": held(all(after < before for before, after in ratios.values())),
        "leaves": held(max(max(one["gradient"]) for one in leaving) > 0.0),
    }  # fmt: skip


def at_stops(one: Figures, name: str) -> Array:
    """A line at the stops of the others; batch EM is measured after whole passes."""
    values = np.array(one["lines"][name])
    return values[np.floor(np.array(one["stops"]) + 1e-9).astype(int)] if name == batch.BATCH else values


def scans(results: Results) -> dict[str, Any]:
    one = results.figures["scans"]["scans"]
    lines, stops = one["lines"], np.array(one["stops"])
    averaged, passes = np.array(lines[batch.AVERAGED]), at_stops(one, batch.BATCH)
    behind = np.flatnonzero(passes < averaged)
    whole = int(np.argmin(np.abs(stops - 1.0)))
    shown = [int(np.argmin(np.abs(stops - stop))) for stop in (1.0, 10.0, stops[-1])]
    return {
        **one, "lines": {name: at_stops(one, name)[shown] for name in lines}, "shown": stops[shown], "passes": stops[-1],
        "averaged": averaged[[whole, -1]], "batch": passes[[whole, -1]], "incremental": lines[batch.INCREMENTAL][-1],
        "harmonic": lines[batch.HARMONIC][-1],
        "crossing": f"nearer from {stops[behind[0]]:.0f} passes on" if behind.size else "never nearer",
        "usable": held(averaged[-1] < 0.25 * averaged[whole], "holds slowly"),
        "first_only": held(one["first_tour"] < 1e-9 < one["later"]),
    }  # fmt: skip


# Chains and arrays


def smoothers(results: Results) -> dict[str, Any]:
    sets = results.of("smoothing")
    kinds = [(one, name, kind) for one in sets for name, kind in one["kinds"].items()]
    spurious = [f"{name}, {one['law']}: {kind['apart'][0]:.2f}" for one, name, kind in kinds if kind["apart"][0] > NEAR]
    lags = sets[0]["lags"]
    worst = {one["law"]: np.max([kind["away"][:3] for kind in one["kinds"].values()], axis=0) for one in sets}
    enough = [lag for at, lag in enumerate(lags) if all(max(kind["away"][at:]) < NEAR for _, _, kind in kinds)]
    exact = max(max(one["recursive"]) for one in sets)
    return {
        "sets": sets, "first": sets[0], "lags": lags, "exact": exact, "spurious": "; ".join(spurious) or "nowhere",
        "short": "; ".join(f"{law}: {listed([f'{value:.3f}' for value in values])}" for law, values in worst.items()),
        "enough": f"From lag {enough[0]} on all are the same to {NEAR:g}" if enough else "No lag is enough everywhere",
        "ambiguous": held(bool(spurious)), "needless": held(exact < NEAR),
        "elsewhere": held(any(max(kind["away"]) > NEAR for _, _, kind in kinds)).replace("holds", "holds for short lags"),
    }  # fmt: skip


def hidden(results: Results) -> dict[str, Any]:
    cases = {case: {one["line"]: one for one in results.of("chains", f"{case}/")} for case in chains.CASES}
    first = next(iter(next(iter(cases.values())).values()))
    rows, slow = np.array(first["rows"]), chains.steps_name(chains.DECAYS[0])
    claims = []
    for case, lines in cases.items():
        averaged, copies = lines[f"{slow}, averaged"], lines[slow]["copies"]
        ends = [float(np.median([path[-1] for path in one["passages"]])) for one in (lines[slow], averaged)]
        stuck = {name: lines[name]["stuck"] for name in map(chains.steps_name, chains.DECAYS)}
        claims.append({
            "case": case, "rows": averaged["rows"][-1], "ends": ends, "slow": slow,
            "stuck": listed([f"{number} of {copies} runs with {name}" for name, number in stuck.items()]),
            "verdict": held(averaged["stuck"] == 0, f"in {copies - averaged['stuck']} of {copies} runs"),
        })  # fmt: skip
    return {
        "cases": cases, "first": first, "claims": claims, "rows": rows,
        "shown": [int(np.argmin(np.abs(rows - stop))) for stop in (rows[-1] / 100, rows[-1] / 10, rows[-1])],
    }  # fmt: skip


def passages(one: Figures) -> Array:
    """Medians of the largest errors of transition probabilities, along the rows."""
    return np.median(one["passages"], axis=0)


def last_emissions(one: Figures) -> float:
    """The median of the largest errors of emissions at the end."""
    return float(np.median([path[-1] for path in one["emissions"]]))


def arrivals(results: Results) -> dict[str, Any]:
    sets = results.of("array")
    largest = max(one["rows"] for one in sets)
    lines = {one["line"]: one for one in sets if one["rows"] == largest}
    whole, last, averaged = (lines[line.name] for line in array.LINES[:3])
    return {
        "sets": sets, "first": sets[0], "whole": whole, "last": last, "averaged": averaged,
        "verdict": held(averaged["loss"] / whole["loss"] < 1.5),
    }  # fmt: skip


VALUES = {
    "records": records, "limit": limiting, "averaging": averages, "efficiency": efficiency, "exponents": steps, "blocks": rare,
    "gradient": titterington, "scans": scans, "smoothing": smoothers, "chains": hidden, "array": arrivals,
}  # fmt: skip
