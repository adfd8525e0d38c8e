"""Hidden Markov models beside hmmlearn: a pass of Baum-Welch, the way to its likelihood, steps a second, answers, single rows.

All times are CPU seconds of the process, on one thread: hmmlearn uses no more either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from benchmarks.chain_data import GAUSSIAN, GAUSSIAN3, SYMBOLS, Chain, Family, given, per_pass, turns, watched
from benchmarks.data import Array
from benchmarks.line import Line, Target, at_least, quotient, rates
from benchmarks.one_row import contest
from benchmarks.registry import benchmark
from benchmarks.scale import Scale
from benchmarks.timing import Timing

K = 5
CHUNK = 10_000
IMPLEMENTATIONS = {"scaling": at_least(2), "log": at_least(12)}
PEER_PASSES, RESTARTS = 30, 3
TOLERANCE = 1e-4  # nats a row
LOOKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # shares of a stream after which it is evaluated
FITS = (1, 2, 4, 8, 15, 30)  # passes of a fit, if one stream was not enough
MULTIPLY_ADDS = 1_000_000_000  # limit for a line of the table of steps


@benchmark
def chains(scale: Scale) -> Iterator[Line]:
    if not find_spec("hmmlearn"):
        yield Line(
            "chains: hmmlearn", float("nan"), None, "s", None, None, "hmmlearn is not installed; lines without it follow"
        )
    else:
        yield from passes(scale)
        yield from convergence(scale)
        yield from answers(scale)
        yield from single_rows(scale)
    yield from step_by_step(scale)
    yield from blocks(scale)


def drawn(family: Family, n_states: int, rows: int, scale: Scale) -> tuple[Chain, Array]:
    rng = np.random.default_rng(scale.first_seed)
    chain = family.draw(n_states, rng)
    return chain, chain.sample(rows, rng)


# A pass


def passes(scale: Scale) -> Iterator[Line]:
    """Baum-Welch on a million rows, from the same parameters near the truth."""
    for family in (SYMBOLS, GAUSSIAN, GAUSSIAN3):
        chain, X = drawn(family, K, scale.rows(1_000_000), scale)
        start, rows = chain.start_from(0.3), family.rows(X)

        def fit(n: int, family: Family = family, X: Array = X, start: Any = start) -> Any:
            return given(family.ours(K, algorithm="em", init_params="", n_iter=n, tol=0.0), start).fit(X)

        def peer(way: str, n: int, family: Family = family, rows: Any = rows, start: Any = start) -> Any:
            model = family.peer(K, init_params="", n_iter=n, tol=-np.inf, implementation=way)
            return given(model, start).fit(rows)

        _, same = fit(2), agreement(family, fit(2), peer("scaling", 2), X)
        spent = per_pass({"ours": fit, **{way: partial(peer, way) for way in IMPLEMENTATIONS}}, scale.repeats)
        for way, target in IMPLEMENTATIONS.items():
            yield rates(
                f"Baum-Welch, {family.name} K{K}: hmmlearn {way}", spent["ours"], spent[way], rows=len(X), target=target,
                note=f"{len(X):,} steps; {same}",
            )  # fmt: skip


def agreement(family: Family, ours: Any, peer: Any, X: Array) -> str:
    """A check that both did the same work."""
    mine, other = (family.log_likelihood(family.parameters(model), X) for model in (ours, peer))
    return f"likelihoods after two passes differ by {abs(mine - other):.0e} nat/row"


# The way to hmmlearn's likelihood


@dataclass(frozen=True)
class Curve:
    """CPU seconds, and nats per training row, at each evaluation."""

    seconds: list[float]
    scores: list[float]

    def until(self, score: float) -> float:
        """Return the seconds until this score is reached; NaN if it never is."""
        good = [spent for spent, found in zip(self.seconds, self.scores, strict=True) if found >= score]
        return good[0] if good else float("nan")


def convergence(scale: Scale) -> Iterator[Line]:
    for family in (SYMBOLS, GAUSSIAN3):
        for rows in (200_000, 1_000_000) if scale.judged else (200_000,):
            yield to_its_likelihood(family, rows, scale)


def to_its_likelihood(family: Family, rows: int, scale: Scale) -> Line:
    """hmmlearn fits from its own starts. Charged is only the best of them, until it reaches its final score.

    Ours is charged until it reaches that score: for a part of a stream, or for a whole `fit`; the median of as many seeds.
    """
    _, X = drawn(family, K, scale.rows(rows), scale)
    seeds = range(RESTARTS if scale.judged else 1)
    family.ours(K, random_state=0, n_iter=1).fit(X[:5000])  # compile
    family.ours(K, random_state=0, n_iter=1).partial_fit(X[:5000]).score(X[:5000])
    peers = [curve_of_peer(family, X, seed, PEER_PASSES if scale.judged else 2) for seed in seeds]
    ends = [peer.scores[-1] for peer in peers]
    best = peers[int(np.argmax(ends))]
    goal = max(ends) - TOLERANCE
    ours = [curve_of_ours(family, X, seed, goal, scale.judged) for seed in seeds]
    reached = [curve.until(goal) for curve in ours]
    misses = sum(np.isnan(seconds) for seconds in reached)
    spent, theirs = float(median(np.inf if np.isnan(one) else one for one in reached)), best.until(goal)
    spent = spent if np.isfinite(spent) else float("nan")
    made = ", ".join(str(len(peer.scores)) for peer in peers)
    note = (
        f"CPU s to {goal:.4f} nat/row, hmmlearn's best of {len(ends)} starts less {TOLERANCE:g}; it ends at "
        f"{', '.join(f'{end:.4f}' for end in ends)} after {made} of {PEER_PASSES} passes; "
        f"ours at {', '.join(f'{max(curve.scores):.4f}' for curve in ours)}, misses {misses} of {len(ours)}"
    )
    return Line(
        f"to hmmlearn's likelihood, {family.name} K{K}, {len(X):,} steps", spent, theirs, "s", quotient(theirs, spent),
        at_least(20), note, details={"ours": [one.__dict__ for one in ours], "peer": [one.__dict__ for one in peers]},
    )  # fmt: skip


def curve_of_peer(family: Family, X: Array, seed: int, n_iter: int) -> Curve:
    """Return the curve of its faster implementation, pass by pass."""
    model = family.peer(K, n_iter=n_iter, implementation="scaling", random_state=seed)
    watch = watched(family, model, X)
    return Curve(watch.spent, [family.log_likelihood(parameters, X) for parameters in watch.parameters])


def curve_of_ours(family: Family, X: Array, seed: int, goal: float, judged: bool) -> Curve:
    """Return the curve of a stream in chunks; then of `fit` with more and more passes, each from the start."""
    curve, model, spent, at = Curve([], []), family.ours(K, random_state=seed), 0.0, 0
    for look in LOOKS:
        until, begin = max(round(look * len(X)), 1), process_time()
        for place in range(at, until, CHUNK):
            model.partial_fit(X[place : min(place + CHUNK, until)])
        parameters = family.parameters(model)  # work that is deferred to the first reading belongs to the stream
        spent, at = spent + process_time() - begin, until
        curve.seconds.append(spent)
        curve.scores.append(family.log_likelihood(parameters, X))
    for n_iter in FITS if judged else (1,):
        if max(curve.scores) >= goal:
            break
        begin = process_time()
        parameters = family.parameters(family.ours(K, random_state=seed, n_iter=n_iter, tol=0.0).fit(X))
        curve.seconds.append(process_time() - begin)
        curve.scores.append(family.log_likelihood(parameters, X))
    return curve


# Steps a second


def step_by_step(scale: Scale) -> Iterator[Line]:
    """Online EM with a fold for every step; the work per step grows as K^2 times the number of statistics."""
    cases = [(SYMBOLS, n) for n in (3, 2, 5, 10, 20)]
    cases += [(Family(f"categorical, {width} symbols", width, True), n) for width in (2, 27, 100) for n in (3, 10)]
    cases += [(family, n) for family in (GAUSSIAN, GAUSSIAN3) for n in (2, 3, 5, 10, 20)]
    for family, n_states in cases if scale.judged else cases[::7]:
        size = n_states * (n_states + 2 + (family.width if family.symbols else 2 * family.width))
        rows = min(300_000, MULTIPLY_ADDS // (n_states**2 * size))
        target = Target("ours", ">=", 1.5) if (family, n_states) == (SYMBOLS, 3) else None
        note = f"{size} statistics of each of {n_states} states; "
        yield streamed(f"online-em step by step, {family.name} K{n_states}", family, n_states, rows, scale, target, note)


def blocks(scale: Scale) -> Iterator[Line]:
    """The default stream, which learns in blocks."""
    for family in (SYMBOLS, GAUSSIAN, GAUSSIAN3):
        for n_states in (3, 5, 10) if scale.judged else (3,):
            name = f"stream in blocks, {family.name} K{n_states}"
            yield streamed(name, family, n_states, 1_000_000, scale, None, "", algorithm="auto")


def streamed(
    name: str, family: Family, n_states: int, rows: int, scale: Scale, target: Target | None, note: str,
    algorithm: str = "online-em",
) -> Line:  # fmt: skip
    """Rows a second in chunks, once the warm-up is over."""
    rows, warm_up = scale.rows(rows), 2000
    _, X = drawn(family, n_states, rows + warm_up, scale)
    seconds = []
    family.ours(n_states, algorithm=algorithm, random_state=0, warm_up=200).partial_fit(X[:1000])  # compile
    for _ in range(scale.repeats):
        model = family.ours(n_states, algorithm=algorithm, random_state=0, warm_up=warm_up).partial_fit(X[:warm_up])
        if not seconds:
            family.ours(n_states, algorithm=algorithm, random_state=0, warm_up=200).partial_fit(X[:1000]).score(
                X[:100]
            )  # compile
        begin = process_time()
        for at in range(warm_up, len(X), CHUNK):
            model.partial_fit(X[at : at + CHUNK])
        seconds.append(process_time() - begin)
    return rates(name, Timing.of(seconds), rows=rows, target=target, note=f"{note}{rows:,} steps in chunks of {CHUNK:,}")


# Answers


def answers(scale: Scale) -> Iterator[Line]:
    """The same parameters in both libraries; hmmlearn in the faster of its implementations, which is not used by Viterbi."""
    for family in (SYMBOLS, GAUSSIAN3):
        chain, X = drawn(family, K, scale.rows(1_000_000), scale)
        start, rows = chain.start_from(), family.rows(X)
        ours, peer = given(family.ours(K), start), given(family.peer(K, implementation="scaling"), start)
        if family.symbols:
            peer.n_features = family.width
        for name, shown in (("score", "score"), ("predict_proba", "predict_proba"), ("decode", "Viterbi")):
            works = partial(getattr(ours, name), X), partial(getattr(peer, name), rows)
            mine, other = (np.asarray(found[0] if name == "decode" else found) for found in (work() for work in works))
            apart = float(np.abs(mine - other).max())
            spent = turns(dict(zip(("ours", "peer"), works, strict=True)), scale.repeats)
            yield rates(
                f"{shown}, {family.name} K{K}", Timing.of(spent["ours"]), Timing.of(spent["peer"]), rows=len(X),
                note=f"{len(X):,} steps, one sequence; answers differ by {apart:.0e}",
            )  # fmt: skip


def single_rows(scale: Scale) -> Iterator[Line]:
    """One row at a time, after a stream of 20,000."""
    for family in (SYMBOLS, GAUSSIAN3):
        chain, X = drawn(family, K, scale.rows(25_000, least=8000), scale)
        rows, calls = X[: len(X) * 4 // 5], X[len(X) * 4 // 5 :][: scale.rows(5000, least=100)]
        peer = given(family.peer(K), chain.start_from())
        if family.symbols:
            peer.n_features = family.width
        batches, steps = (family.ours(K, algorithm=word, random_state=0).partial_fit(rows) for word in ("auto", "online-em"))

        def score(row: Array, peer: Any = peer, family: Family = family) -> float:
            return peer.score(family.rows(row[None]))

        def update(row: Array, model: Any = batches) -> Array:
            return model.update(row[None])

        stands_in = "peer: its score of one row, since it cannot learn a row"
        for name, work in (
            ("score_one", batches.score_one),
            ("learn_one", batches.learn_one),
            ("update", update),
            ("learn_one online-em", steps.learn_one),
        ):
            yield contest(f"{name}, {family.name} K{K}", work, score, calls, None, stands_in)
