"""Anomalies: how well odd rows are ranked beside named detectors, and whether promised rates are held.

``python -m pages anomalies`` measures it and writes docs/benchmarks/anomalies.md. Everything is on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score, roc_auc_score

import headwater as hw
from benchmarks.anomalies_data import (
    SETS,
    Array,
    drifting,
    log_density,
    marked_rows,
    path_of,
    usual_rows,
)
from pages.page import Measures, Page
from pages.results import Figures, Results

CHUNK_ROWS = 500
FIRST_ROWS = 1000  # of a stream, which nobody can score yet
FIXED = (1, 2, 4, 8, 16)  # components whose density is compared
LEVEL = 0.1  # of false discoveries
RATE = 0.01  # of alarms
WINDOW_ROWS = 10_000
CHOSEN = SETS[:4]  # by which the score and the marks were chosen; the others are reported
MARKED = 50  # rows that are shown and marked
SHOWN = 5  # at a time, the oddest
LEARNED = 5  # times the rows of a stream with anomalies that are learned before it


@dataclass(frozen=True)
class Scale:
    """Rows of a set at most; simulated streams with anomalies, and their rows; rows of streams that drift."""

    rows: int = 4000
    streams: int = 200
    stream_rows: int = 2000
    drift_rows: int = 60_000


# Ranking


def measure_sets(scale: Scale, data: Path | None) -> Measures:
    for name in SETS:
        if data is not None and (data / path_of(name)).is_file():
            yield name, partial(measure_set, data, name, scale)


def measure_set(data: Path, name: str, scale: Scale) -> Figures:
    """Rank all rows, unlabelled, by each detector: ROC AUC, average precision and CPU seconds of learning and scoring."""
    rows, marks = marked_rows(data, name, scale.rows)
    found = {word: judged(partial(detect, rows), marks) for word, detect in detectors().items()}
    for word, stream in {"headwater, streaming": stream_scores, "half-space trees, streaming": tree_scores}.items():
        found[word] = judged(partial(stream, rows), marks, FIRST_ROWS if len(rows) > 3 * FIRST_ROWS else len(rows) // 3)
    return {"name": name, "rows": len(rows), "odd": float(marks.mean()), "columns": rows.shape[1], "found": found}


def judged(work: Callable[[], Array], marks: Any, after: int = 0) -> dict[str, float]:
    began = time.process_time()
    scores = np.nan_to_num(work()[after:], posinf=1e300, neginf=-1e300)
    seconds, marks = time.process_time() - began, marks[after:]
    return {"auc": roc_auc_score(marks, scores), "precision": average_precision_score(marks, scores), "seconds": seconds}


def detectors() -> dict[str, Callable[[Array], Array]]:
    """Return what ranks rows, by names; each with its own defaults."""
    from pyod.models.copod import COPOD
    from pyod.models.ecod import ECOD
    from pyod.models.hbos import HBOS
    from sklearn.ensemble import IsolationForest
    from sklearn.neighbors import LocalOutlierFactor
    from sklearn.svm import OneClassSVM

    def density(k: int, rows: Array) -> Array:
        return -hw.GaussianMixture(k, random_state=0, n_threads=1).fit(rows).score_samples(rows)

    def by_pyod(kind: type, rows: Array) -> Array:
        return np.asarray(kind().fit(rows).decision_scores_)

    return {
        "headwater": lambda rows: hw.GaussianMixture("auto", random_state=0, n_threads=1).fit(rows).anomaly_score(rows),
        **{f"density, K {k}": partial(density, k) for k in FIXED},
        "isolation forest": lambda rows: -IsolationForest(random_state=0).fit(rows).score_samples(rows),
        "local outlier factor": lambda rows: -LocalOutlierFactor().fit(rows).negative_outlier_factor_,
        "one-class SVM": lambda rows: -OneClassSVM().fit(rows).score_samples(rows),
        "ECOD": partial(by_pyod, ECOD),
        "COPOD": partial(by_pyod, COPOD),
        "HBOS": partial(by_pyod, HBOS),
    }


def stream_scores(rows: Array) -> Array:
    """Anomaly scores of rows before they are learned."""
    model, found = hw.GaussianMixture("auto", random_state=0, n_threads=1), [np.zeros(min(CHUNK_ROWS, len(rows)))]
    model.partial_fit(rows[:CHUNK_ROWS])
    for begin in range(CHUNK_ROWS, len(rows), CHUNK_ROWS):
        chunk = rows[begin : begin + CHUNK_ROWS]
        found.append(model.anomaly_score(chunk))
        model.partial_fit(chunk)
    return np.concatenate(found)


def tree_scores(rows: Array) -> Array:
    """Scores of River's half-space trees before rows are learned; columns are scaled as River's documentation does."""
    from river import anomaly, compose, preprocessing

    trees = compose.Pipeline(preprocessing.MinMaxScaler(), anomaly.HalfSpaceTrees(seed=0))
    found = []
    for row in rows:
        event = dict(enumerate(row.tolist()))
        found.append(trees.score_one(event))
        trees.learn_one(event)
    return np.array(found)


# Marks


def measure_marks(scale: Scale, data: Path | None) -> Measures:
    for name in SETS:
        if data is not None and (data / path_of(name)).is_file():
            yield name, partial(measure_mark, data, name, scale)


def measure_mark(data: Path, name: str, scale: Scale) -> Figures:
    """Average precision of the rows that were not shown, before and after marks of those that were, and odd rows found."""
    rows, odd = marked_rows(data, name, scale.rows)
    model = hw.GaussianMixture("auto", random_state=0, n_threads=1).fit(rows)
    scores = before = model.anomaly_score(rows)
    shown = np.zeros(len(rows), dtype=bool)
    for _ in range(MARKED // SHOWN):
        oddest = np.argsort(-np.where(shown, -np.inf, scores), kind="stable")[:SHOWN]
        shown[oddest] = True
        scores = model.label_anomalies(rows[oddest], odd[oddest]).anomaly_score(rows)
    left, plain = ~shown, np.argsort(-before, kind="stable")[:MARKED]
    known = bool(odd[left].any())
    precision = [float(average_precision_score(odd[left], one[left])) if known else -1.0 for one in (before, scores)]
    return {
        "name": name, "odd": int(odd.sum()), "before": precision[0], "after": precision[1],
        "found": int(odd[shown].sum()), "plain": int(odd[plain].sum()),
    }  # fmt: skip


# False discoveries


def measure_discoveries(scale: Scale, data: Path | None) -> Measures:
    for share, distance in ((0.01, 5.0), (0.05, 4.0)):
        yield f"{share}-{distance}", partial(measure_discovery, share, distance, scale)


def measure_discovery(share: float, distance: float, scale: Scale) -> Figures:
    """False discovery proportion and power of LORD++ on simulated streams, beside an oracle that knows the densities."""
    false, power, best = [], [], []
    for seed in range(scale.streams):
        rng = np.random.default_rng(seed)
        model = hw.GaussianMixture(3, random_state=seed, n_threads=1).partial_fit(usual_rows(LEARNED * scale.stream_rows, rng))
        rows, odd = usual_rows(scale.stream_rows, rng), rng.random(scale.stream_rows) < share
        shift = distance * np.array([1.0, 1.0, -1.0, 1.0, -1.0]) / np.sqrt(5.0)
        rows[odd] += shift
        said = np.concatenate([model.decide_next(part, fdr=LEVEL) for part in np.array_split(rows, 6)])
        usual, shifted = np.log1p(-share) + log_density(rows), np.log(share) + log_density(rows - shift)
        local = np.exp(usual - logsumexp([usual, shifted], axis=0))
        order = np.argsort(local)
        known = order[: int(np.sum(np.cumsum(local[order]) / np.arange(1, len(rows) + 1) <= LEVEL))]
        false.append(float(np.mean(~odd[said])) if said.any() else 0.0)
        power.append(float(np.mean(said[odd])) if odd.any() else 1.0)
        best.append(float(np.mean(np.isin(np.flatnonzero(odd), known))) if odd.any() else 1.0)
    error = float(np.std(false) / np.sqrt(len(false)))
    return {
        "share": share, "distance": distance, "streams": len(false), "false": float(np.mean(false)), "error": error,
        "power": float(np.mean(power)), "oracle": float(np.mean(best)),
    }  # fmt: skip


# Rates


def measure_rates(scale: Scale, data: Path | None) -> Measures:
    for kind, rows in drifting(scale.drift_rows, 0).items():
        yield kind, partial(measure_rate, kind, rows)


def measure_rate(kind: str, rows: Array) -> Figures:
    """Share of rows that are called odd before they are learned, by a threshold that follows and by one that is read anew."""
    model = hw.GaussianMixture(4, half_life="auto", random_state=0, n_threads=1).partial_fit(rows[:WINDOW_ROWS])
    follows, stands = [], []
    for begin in range(WINDOW_ROWS, len(rows), 1000):
        chunk = rows[begin : begin + 1000]
        stands.append(model.decide(chunk, rate=RATE))
        follows.append(model.decide_next(chunk, rate=RATE))
        model.partial_fit(chunk)
    found = np.concatenate(follows)
    windows = np.convolve(found, np.ones(min(WINDOW_ROWS, len(found))), mode="valid")[::100]
    spread = 3.0 * np.sqrt(RATE * (1.0 - RATE) * WINDOW_ROWS)
    return {
        "kind": kind, "rows": len(found), "follows": float(np.mean(found)), "stands": float(np.mean(np.concatenate(stands))),
        "windows": float(np.mean(np.abs(windows - RATE * WINDOW_ROWS) <= spread)),
    }  # fmt: skip


# The page


def show_sets(results: Results) -> dict[str, Any]:
    sets = results.of("sets")
    words = list(sets[0]["found"])

    def mean(word: str, what: str, among: tuple[str, ...] = SETS) -> float:
        found = [one["found"][word][what] for one in sets if one["name"] in among]
        return float(np.mean(found)) if found else float("nan")

    lines = [
        {
            "word": word,
            "each": [one["found"][word]["auc"] for one in sets],
            "auc": mean(word, "auc"),
            "chosen": mean(word, "auc", CHOSEN),
            "reported": mean(word, "auc", SETS[len(CHOSEN) :]),
            "precision": mean(word, "precision"),
            "seconds": sum(one["found"][word]["seconds"] for one in sets),
        }
        for word in words
    ]
    by_word = {line["word"]: line for line in lines}
    own = by_word["headwater"]["auc"]
    rivals = ["isolation forest", *(f"density, K {k}" for k in FIXED)]
    better = [word for word in rivals if by_word[word]["auc"] >= own]
    most = max(one["rows"] for one in sets)
    return {
        "most": most,
        "sets": sets,
        "lines": lines,
        "better": better,
        "own": own,
        "stream": by_word["headwater, streaming"]["auc"],
    }


def show_marks(results: Results) -> dict[str, Any]:
    lines = results.of("marks")
    judged = [one for one in lines if one["before"] >= 0.0]
    better = sum(one["after"] > one["before"] for one in judged)
    return {
        "lines": [{**one, "half": "chosen" if one["name"] in CHOSEN else "reported"} for one in lines],
        "judged": len(judged),
        "better": better,
        "more": sum(one["found"] > one["plain"] for one in lines),
    }


def show_discoveries(results: Results) -> dict[str, Any]:
    lines = results.of("discoveries")
    held = [one for one in lines if one["false"] <= LEVEL + 2.0 * one["error"] and one["power"] >= 0.5 * one["oracle"]]
    return {"lines": lines, "held": len(held)}


def show_rates(results: Results) -> dict[str, Any]:
    lines = results.of("rates")
    near = [one for one in lines if abs(one["follows"] - RATE) <= 0.2 * RATE]
    return {"lines": lines, "near": len(near), "windows": sum(one["windows"] >= 0.95 for one in lines)}


PAGE = Page(
    name="anomalies",
    room="benchmarks",
    parts={"sets": measure_sets, "marks": measure_marks, "discoveries": measure_discoveries, "rates": measure_rates},
    full=Scale(),
    quick=Scale(rows=700, streams=3, stream_rows=2000, drift_rows=14_000),
    minutes=5.0,
    seeds="0 on",
    values={"sets": show_sets, "marks": show_marks, "discoveries": show_discoveries, "rates": show_rates},
    names={"chosen": list(CHOSEN), "marked": MARKED, "shown": SHOWN, "learned": LEARNED, "level": LEVEL, "rate": RATE},
    needs=tuple(path_of(name) for name in SETS),
    silent=(ConvergenceWarning, UserWarning),
)
