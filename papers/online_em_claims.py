"""What holds of paper 002's claims: a table, made of the figures."""

from __future__ import annotations

import numpy as np

from headwater.core.statistics import Array
from papers import online_em_array as array
from papers import online_em_averaging as averaging
from papers import online_em_batch as batch
from papers import online_em_blocks as blocks
from papers import online_em_chains as chains
from papers import online_em_exponents as exponents
from papers import online_em_limit as limit
from papers.moment_matching_claims import listed
from papers.moment_matching_page import header, row
from papers.online_em_normals import KINDS, LAST, STATISTICS, THETA
from papers.online_em_results import Figures, Results

Claim = tuple[str, str, str]
EFFICIENT = 1.25  # times the mean squared error of maximum likelihood that counts as efficient
NEAR = 1e-2  # a parameter of a fixed point that far away counts as the same


def held(holds: bool, otherwise: str = "does not hold") -> str:
    return "holds" if holds else otherwise


def percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def decay_name(decay: float) -> str:
    return "1/n" if decay == 1.0 else f"n^-{decay:g}"


# Mixtures


def records(results: Results) -> list[Claim]:
    passes, sizes = results.of("records", "passes/"), results.of("records", "sizes/")
    if len(passes) < 2 or len(sizes) < 2:
        return []
    shortest, longest, few, many = passes[0], passes[-1], sizes[0], sizes[-1]
    more = longest["settled"] >= shortest["settled"]
    worse = many["batch"]["rmse"] > 2.0 * few["batch"]["rmse"] and many["batch"]["rmse"] > many["online"]["rmse"]
    return [(
        "Batch EM is not efficient for large data records", held(more and worse),
        f"the median settles after {shortest['settled']} passes with {shortest['rows']:,} rows, {longest['settled']} with "
        f"{longest['rows']:,}; after {many['passes']} passes the error is {few['batch']['rmse']:.1f} times the bound with "
        f"{few['rows']:,} rows and {many['batch']['rmse']:.1f} times with {many['rows']:,}; one pass of online EM, averaged: "
        f"{few['online']['rmse']:.1f} and {many['online']['rmse']:.1f} times",
    )]  # fmt: skip


def limiting(results: Results) -> list[Claim]:
    sets = results.of("limit")
    if not sets:
        return []
    rise = max(one["rise"] for one in sets)
    slope = max(one["gradient"] for one in sets)
    above = [(one["online"][0] - one["least"], one["online"][-1] - one["least"]) for one in sets]
    comes = all(after < 0.1 * before for before, after in above)
    return [
        (
            "The limiting recursion never raises KL(law ‖ model), in the model or not", held(rise < limit.EPSILON),
            f"{len(sets)} laws, {sum(len(one['divergences']) for one in sets):,} steps; the largest rise is {rise:.0e} nats",
        ),
        (
            "It stops where the gradient of KL is zero", held(slope < 1e-6, "nearly holds"),
            f"largest slope at the end {slope:.0e}, at the start {max(one['gradient_start'] for one in sets):.2f}",
        ),
        (
            "Online EM converges to such a point, also outside the model", held(comes, "does not hold for every law"),
            f"KL above the least after {sets[0]['rows'][0]:,} and after {sets[0]['rows'][-1]:,} rows: "
            + listed([f"{before:.4f} and {after:.5f}" for before, after in above]),
        ),
    ]  # fmt: skip


def averages(results: Results) -> list[Claim]:
    one = results.one("averaging", "trajectories")
    if not one:
        return []
    last, theta = (one["losses"][KINDS[kind]][-1] for kind in (LAST, THETA))
    return [
        (
            "Averaging after Polyak and Ruppert calms the estimate", held(last > 3.0 * theta),
            f"median squared error over the bound after {one['stops'][-1]:,} rows: {last:.1f} without, {theta:.1f} with",
        ),
        (
            "Averages of statistics (ours) do what averages of parameters (the slide's) do", held(one["difference"] < 0.1),
            f"{theta:.2f} and {one['losses'][KINDS[STATISTICS]][-1]:.2f} of the bound; they differ by {one['difference']:.3f} "
            "of it",
        ),
    ]  # fmt: skip


def efficiency_ratio(one: Figures, name: str) -> float:
    """Mean squared error over that of maximum likelihood on the same streams."""
    return float(one["lines"][name]["mean"] / one["lines"][averaging.ESTIMATES[0].name]["mean"])


def efficiency(results: Results) -> list[Claim]:
    close, apart = (results.of("efficiency", f"{case}/") for case in averaging.TRUTHS)
    if not close or not apart:
        return []
    ends, theta, library = (close[-1], apart[-1]), averaging.ESTIMATES[1].name, averaging.ESTIMATES[3].name
    harmonic = averaging.ESTIMATES[-1].name
    slide, ours = ([efficiency_ratio(one, name) for one in ends] for name in (theta, library))
    short = [efficiency_ratio(sets[0], theta) for sets in (close, apart)]
    steps = [efficiency_ratio(one, harmonic) for one in ends]
    sometimes = "holds where most of the information is missing" if max(steps) > EFFICIENT else "does not hold"
    rows = f"{ends[0]['rows']:,}"
    return [
        (
            "Averaged estimates are Fisher efficient", held(max(slide) < EFFICIENT),
            f"mean squared error over that of maximum likelihood after {rows} rows: {slide[0]:.2f} (much missing) and "
            f"{slide[1]:.2f} (little missing); theory says {averaging.ESTIMATES[1].theory(np.ones(1), 1):.2f}, since averaging "
            "begins after a tenth",
        ),
        (
            "The library's averages, whose weights grow, are efficient as well", held(max(ours) < EFFICIENT, "nearly: 4/3"),
            f"{ours[0]:.2f} and {ours[1]:.2f}; theory says 1.33: not knowing the end of the stream costs a quarter of the rows",
        ),
        (
            "Not optimal for short records (less than 1000 rows)", held(max(short) > EFFICIENT),
            f"after {close[0]['rows']:,} rows {short[0]:.2f} and {short[1]:.2f}",
        ),
        (
            "Don't use 1/n", held(min(steps) > EFFICIENT, sometimes),
            f"after {rows} rows {steps[0]:.0f} with {percent(1.0 - close[-1]['speeds'][0])} of the information missing in a "
            f"direction, {steps[1]:.2f} with {percent(1.0 - apart[-1]['speeds'][0])}: 1/n needs less than half",
        ),
    ]  # fmt: skip


def steps(results: Results) -> list[Claim]:
    sets = {(one["case"], one["start"]): one for one in results.of("exponents")}
    if len(sets) < len(exponents.TRUTHS) * len(exponents.STARTS):
        return []

    def best(one: Figures) -> tuple[float, str]:
        """The least loss but for 1/n, and what has it."""
        found = [
            (value, f"{decay_name(decay)}{', averaged' if name == 'averaged' else ''}")
            for name in ("last", "averaged")
            for decay, value in zip(one["decays"], one[name], strict=True)
            if decay < 1.0
        ]
        return min(found)

    def told(start: str) -> tuple[list[bool], str]:
        lines = {case: sets[case, start] for case in exponents.TRUTHS}
        words = [
            f"{case} ({percent(1.0 - one['speeds'][0])} missing): {one['last'][-1]:.2f} with 1/n, {best(one)[0]:.2f} with "
            f"{best(one)[1]}"
            for case, one in lines.items()
        ]
        return [one["last"][-1] > EFFICIENT * best(one)[0] for one in lines.values()], listed(words)

    def spread(below: float) -> float:
        """Largest over least loss of the averages with smaller exponents, in the worst of the four."""
        return max(
            max(values) / min(values)
            for one in sets.values()
            if (values := [value for decay, value in zip(one["decays"], one["averaged"], strict=True) if decay < below])
        )

    def robust(below: float) -> bool:
        return spread(below) < 1.5

    (poor, poor_words), (good, good_words) = told(exponents.POOR), told(exponents.GOOD)
    rows = f"{next(iter(sets.values()))['rows']:,}"
    return [
        (
            "Don't use 1/n (mixtures of regressions)", held(all(poor), "holds in part" if any(poor) else "does not hold"),
            f"squared error over the bound after {rows} rows from a poor start, median; {poor_words}",
        ),
        (
            "Averaged, it is robust to the choice of steps",
            held(robust(1.0), f"holds up to {decay_name(0.8)}" if robust(0.9) else "does not hold"),
            f"the largest over the least of those losses, {decay_name(0.6)} to {decay_name(0.8)}: {spread(0.9):.2f}, to "
            f"{decay_name(0.9)}: {spread(1.0):.2f}",
        ),
        (
            "After a good start 1/n is best (ours)",
            held(not any(good), "holds where little is missing" if not all(good) else "does not hold"),
            f"the same from a good start; {good_words}",
        ),
    ]  # fmt: skip


def rare(results: Results) -> list[Claim]:
    def sets(line: str) -> dict[int, Figures]:
        return {one["size"]: one for one in results.of("blocks", f"{line}/")}

    likeliest, prior, rough = sets(blocks.LIKELIEST), sets(blocks.PRIOR), sets(blocks.ROUGH)
    if not (likeliest and prior and rough):
        return []
    first, large = blocks.SIZES[0], blocks.SIZES[3]
    helps = likeliest[large]["kept"] > likeliest[first]["kept"] + 0.25
    away = {size: float(np.median(one["away"])) for size, one in rough.items()}
    return [
        (
            "Mini-batches help with infrequent components", held(helps),
            f"a component of weight {blocks.WEIGHTS[2]:g} is kept in {percent(likeliest[first]['kept'])} of runs row by row, "
            f"in {percent(likeliest[large]['kept'])} in blocks of {large}; under the library's prior in "
            f"{percent(prior[first]['kept'])} and {percent(prior[large]['kept'])}",
        ),
        (
            "Larger blocks are better", held(away[large] <= away[first], "does not hold from a rough start"),
            f"blocks mean fewer M-steps: the rare mean ends {away[first]:.2f} from its place row by row, {away[large]:.2f} in "
            f"blocks of {large}",
        ),
    ]  # fmt: skip


def titterington(results: Results) -> list[Claim]:
    beside, leaving = results.of("gradient", "beside/"), results.of("gradient", "leaving/")
    if not beside or not leaving:
        return []
    ratios = [[one["apart"][at] / one["em"][at] for at in (0, -1)] for one in beside]
    closer = all(after < before for before, after in ratios)
    names = [decay_name(one["decay"]) for one in beside]
    worst = max(max(one["gradient"]) for one in leaving)
    first = leaving[0]
    shares = [
        f"{percent(share)} (weight {weight:g})" for share, weight in zip(first["gradient"], first["weights"], strict=True)
    ]
    return [
        (
            "Online EM is asymptotically equivalent to Titterington's recursion", held(closer),
            f"their distance over that of online EM to the truth, after {beside[0]['rows'][0]:,} and {beside[0]['rows'][-1]:,} "
            "rows: "
            + listed([f"{before:.2f} and {after:.2f} ({name})" for (before, after), name in zip(ratios, names, strict=True)]),
        ),
        (
            "Online EM handles parameter constraints, a gradient does not", held(worst > 0.0),
            f"two variances, {decay_name(first['decay'])}: Titterington's leaves the parameter space in {listed(shares)} of "
            f"runs, online EM never; but a variance collapses in {percent(max(first['collapsed']))} of its runs at worst",
        ),
    ]  # fmt: skip


def at_stops(one: Figures, name: str) -> Array:
    """A line at the stops of the others; batch EM is measured after whole passes."""
    values = np.array(one["lines"][name])
    return values[np.floor(np.array(one["stops"]) + 1e-9).astype(int)] if name == batch.BATCH else values


def scans(results: Results) -> list[Claim]:
    one = results.one("scans", "scans")
    if not one:
        return []
    lines, stops = one["lines"], np.array(one["stops"])
    averaged, passes = np.array(lines[batch.AVERAGED]), at_stops(one, batch.BATCH)
    behind = np.flatnonzero(passes < averaged)
    crossing = f"batch EM is nearer from {stops[behind[0]]:.0f} passes on" if behind.size else "batch EM is never nearer"
    whole = int(np.argmin(np.abs(stops - 1.0)))
    return [
        (
            "Random scans can be used for maximum likelihood from a batch", held(averaged[-1] < 0.25 * averaged[whole], "holds "
            "slowly"),
            f"distance to it after 1 and {stops[-1]:.0f} passes, averaged: {averaged[whole]:.2f} and {averaged[-1]:.2f} "
            f"standard errors; batch EM {passes[whole]:.2f} and {passes[-1]:.2f}; {crossing}",
        ),
        (
            "1/n is Neal and Hinton's incremental EM up to the first tour only", held(one["first_tour"] < 1e-9 < one["later"]),
            f"they differ by {one['first_tour']:.0e} after it, and by {one['later']:.2f} standard errors in the end, where "
            f"incremental EM is {lines[batch.INCREMENTAL][-1]:.3f} from the maximum, 1/n {lines[batch.HARMONIC][-1]:.2f}",
        ),
    ]  # fmt: skip


# Chains


def smoothers(results: Results) -> list[Claim]:
    sets = results.of("smoothing")
    if not sets:
        return []
    spurious = [
        f"{name}, {one['law']}: {kind['apart'][0]:.2f}"
        for one in sets for name, kind in one["kinds"].items() if kind["apart"][0] > NEAR
    ]  # fmt: skip
    short = sets[0]["lags"][:3]
    told = []
    for one in sets:
        worst = np.max([kind["away"][: len(short)] for kind in one["kinds"].values()], axis=0)
        told.append(f"{one['law']}: {listed([f'{value:.3f}' for value in worst])}")
    enough = [
        lag for at, lag in enumerate(sets[0]["lags"])
        if all(max(kind["away"][at:]) < NEAR for one in sets for kind in one["kinds"].values())
    ]  # fmt: skip
    exact = max(max(one["recursive"]) for one in sets)
    return [
        (
            "Limited memory and fixed lags may have spurious stationary points", held(bool(spurious)),
            "two starts end in different points at lag 0: " + ("; ".join(spurious) or "nowhere"),
        ),
        (
            "Their fixed points are elsewhere than those of full smoothing", held(
                any(max(kind["away"]) > NEAR for one in sets for kind in one["kinds"].values())
            ).replace("holds", "holds for short lags"),
            f"largest difference of a parameter at lags {listed([str(lag) for lag in short])}: {'; '.join(told)}. "
            + (f"From lag {enough[0]} on all are the same to {NEAR:g}" if enough else "No lag is enough everywhere"),
        ),
        (
            "The recursion needs no such approximation", held(exact < NEAR),
            f"it ends at most {exact:.4f} from the fixed point of full smoothing, from either start, after {sets[0]['tours']} "
            "tours",
        ),
    ]  # fmt: skip


def hidden(results: Results) -> list[Claim]:
    made: list[Claim] = []
    for case in chains.CASES:
        lines = {one["line"]: one for one in results.of("chains", f"{case}/")}
        if len(lines) < len(chains.LINES):
            continue

        def end(name: str, lines: dict[str, Figures] = lines) -> float:
            return float(np.median([path[-1] for path in lines[name]["passages"]]))

        slow = chains.steps_name(chains.DECAYS[0])
        averaged, last = lines[f"{slow}, averaged"], lines[slow]
        stuck = {name: lines[name]["stuck"] for name in map(chains.steps_name, chains.DECAYS)}
        copies = averaged["copies"]
        made.append((
            f"Online EM for HMMs appears to work well ({case})", held(averaged["stuck"] == 0, f"in "
            f"{copies - averaged['stuck']} of {copies} runs"),
            f"largest error of a transition probability after {averaged['rows'][-1]:,} rows, median: {end(last['line']):.4f} "
            f"with {slow}, {end(averaged['line']):.4f} averaged; stuck elsewhere: "
            + listed([f"{number} of {copies} runs with {name}" for name, number in stuck.items()]),
        ))  # fmt: skip
    return made


def arrivals(results: Results) -> list[Claim]:
    lines = {
        one["line"]: one for one in results.of("array", f"{max((one['rows'] for one in results.of('array')), default=0)}/")
    }
    if len(lines) < len(array.LINES):
        return []
    whole, last, averaged = (lines[line.name] for line in array.LINES[:3])
    ratio = averaged["loss"] / whole["loss"]
    return [(
        "Online EM in the space of statistics suits direction of arrival", held(ratio < 1.5),
        f"after {averaged['rows']:,} snapshots with sensors missing, mean squared error over the bound: batch EM "
        f"{whole['loss']:.2f}, one pass of online EM, averaged, {averaged['loss']:.2f} (± {averaged['error']:.2f}), not "
        f"averaged {last['loss']:.1f}",
    )]  # fmt: skip


MAKERS = (records, limiting, averages, efficiency, steps, rare, titterington, scans, smoothers, hidden, arrivals)


def claims(results: Results) -> list[str]:
    """The table of claims and verdicts."""
    made = [claim for maker in MAKERS for claim in maker(results)]
    return [*header("the paper's claim", "verdict", "here"), *[row(*one) for one in made]] if made else []
