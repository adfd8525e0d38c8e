"""Tables of numbers, categories and counts: rows a second, StepMix beside it, and a column of labels predicted.

``python -m pages tables`` measures it and writes docs/benchmarks/tables.md. Everything is on one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from benchmarks.tables_broken import AWAY, BROKEN, measure_broken
from benchmarks.timing import one_thread
from pages.page import Measures, Page
from pages.results import Figures, Results

NUMBERS, CATEGORIES, COUNTS, LEVELS = 5, 5, 3, 6
CHUNK = 50_000
LABELLED = ("magic04", "cat_mushroom", "cat_nursery")
REAL = ("cat_mushroom", "cat_nursery")  # beside StepMix
CLAIMS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)  # probabilities of the likeliest class, between which rows are counted
STARTS = 3  # of both sides, of which the best counts


@dataclass(frozen=True)
class Scale:
    """Rows of the tables that are made, of the real ones at most, and components of the classifiers."""

    learned: int = 1_000_000
    compared: tuple[int, ...] = (10_000, 100_000)
    labelled: int = 1_000_000
    components: tuple[int, ...] = (10, 20)
    splits: int = 3
    broken: int = 20_000
    broken_sets: int = 5


def make_table(rows: int, k: int, counts: int, seed: int) -> np.ndarray[Any, Any]:
    """Rows of k groups: numbers, codes of categories, counts."""
    rng = np.random.default_rng(seed)
    group = rng.integers(k, size=rows)
    numbers = rng.normal(size=(rows, NUMBERS)) + 2.0 * rng.normal(size=(k, NUMBERS))[group]
    tables = rng.dirichlet(np.ones(LEVELS), size=(k, CATEGORIES))
    bounds = np.cumsum(tables, axis=2)[..., :-1]
    codes = [(rng.random((rows, 1)) > bounds[group, at]).sum(axis=1) for at in range(CATEGORIES)]
    events = rng.poisson(rng.gamma(2.0, 2.0, size=(k, counts))[group])
    return np.column_stack([numbers, *codes, events]).astype(float)


def kinds_of(counts: int) -> dict[int, str]:
    kinds = ["gaussian"] * NUMBERS + ["categorical"] * CATEGORIES + ["poisson"] * counts
    return dict(enumerate(kinds))


# Rows a second


def measure_rates(scale: Scale, data: Path | None) -> Measures:
    yield "stream", partial(measure_rate, scale.learned)


def measure_rate(rows: int) -> Figures:
    """Learn a stream of encoded rows in chunks, after a warm-up that is not timed."""
    X = make_table(rows + CHUNK, 8, COUNTS, seed=0)
    with one_thread():
        model = hw.MixedMixture(8, columns=kinds_of(COUNTS), n_threads=1, random_state=0).partial_fit(X[:CHUNK])
        begin = process_time()
        for start in range(CHUNK, len(X), CHUNK):
            model.partial_fit(X[start : start + CHUNK])
        seconds = process_time() - begin
    return {"rows": rows, "seconds": seconds, "rate": rows / seconds / 1e6}


# StepMix


def measure_peers(scale: Scale, data: Path | None) -> Measures:
    if find_spec("stepmix") is not None:
        for rows in scale.compared:
            yield f"made-{rows}", partial(compare_made, rows)
        if data is not None:
            for name in REAL:
                yield name, partial(compare_real, name, scale, data)


def compare_made(rows: int) -> Figures:
    """Numbers and categories of four groups."""
    blocks = {
        "numbers": {"model": "gaussian_full", "n_columns": NUMBERS},
        "categories": {"model": "categorical", "n_columns": CATEGORIES},
    }
    return {"set": "made", **compare_peer(make_table(rows, 4, 0, seed=1), kinds_of(0), blocks)}


def compare_real(name: str, scale: Scale, data: Path) -> Figures:
    """Latent classes of a table of categories, its label among them."""
    import pandas as pd
    from sklearn.preprocessing import OrdinalEncoder

    table = pd.read_csv(data / name / f"{name}.csv.gz", dtype=str, keep_default_na=False)[: scale.labelled]
    X = OrdinalEncoder().fit_transform(table)
    kinds = dict.fromkeys(range(X.shape[1]), "categorical")
    return {"set": name, **compare_peer(X, kinds, {"categories": {"model": "categorical", "n_columns": X.shape[1]}})}


def compare_peer(X: Any, kinds: Any, blocks: Any, k: int = 4) -> Figures:
    """Fit both by maximum likelihood until convergence, from several starts; the best of each counts, with the time of all."""
    from stepmix.stepmix import StepMix

    rows = len(X)
    with one_thread():
        ours = hw.MixedMixture(
            k, columns=kinds, algorithm="em", tol=1e-9, max_iter=1000, prior_weight=1e-9, n_init=STARTS, n_threads=1,
            random_state=0,
        )  # fmt: skip
        ours.fit(X[:500])  # kernels are compiled
        begin = process_time()
        ours.fit(X)
        seconds = process_time() - begin
        peer = StepMix(
            k, measurement=blocks, init_params="kmeans", n_init=STARTS, abs_tol=1e-9, rel_tol=0.0, max_iter=1000,
            random_state=0, verbose=0, progress_bar=0,
        )  # fmt: skip
        begin = process_time()
        peer.fit(X)
        theirs = process_time() - begin
    one, other = float(ours.score(X)), float(peer.score(X))
    passes, others = int(ours.n_iter_), int(peer.n_iter_)
    return {
        "rows": rows, "seconds": seconds, "peer_seconds": theirs, "score": one, "peer_score": other, "passes": passes,
        "peer_passes": others,
    }  # fmt: skip


# Labels


def measure_labels(scale: Scale, data: Path | None) -> Measures:
    if data is not None:
        for name in LABELLED:
            for k in scale.components:
                yield f"{name}-{k}", partial(measure_label, name, k, scale, data)


def measure_label(name: str, k: int, scale: Scale, data: Path) -> Figures:
    """Learn a table with its label as a stream, predict the label of other rows, and do the same by naive Bayes."""
    import pandas as pd

    table = pd.read_csv(data / name / f"{name}.csv.gz")
    found: dict[str, list[float]] = {key: [] for key in ("accuracy", "error", "bayes", "bayes_error", "seconds")}
    claims: list[list[Any]] = []
    for split in range(scale.splits):
        rows = table.sample(frac=1.0, random_state=split)[: scale.labelled]
        cut = int(0.7 * len(rows))
        one, claimed = _learn_label(rows[:cut], rows[cut:], k)
        claims.append(claimed)
        other = _naive_bayes(rows, cut)
        for key, value in {**one, **other}.items():
            found[key].append(value)
    means = {key: float(np.mean(part)) for key, part in found.items()}
    return {"set": name, "components": k, "rows": len(table), **means, "claims": np.sum(claims, axis=0).tolist()}


def _learn_label(seen: Any, unseen: Any, k: int) -> tuple[dict[str, float], list[Any]]:
    label = seen.columns[-1]
    kinds = {name: "gaussian" if seen[name].dtype.kind in "if" else "categorical" for name in seen}
    begin = perf_counter()
    with one_thread():
        model = hw.MixedMixture(k, columns=kinds, n_threads=1, random_state=0)
        for start in range(0, len(seen), 1000):
            model.partial_fit(seen[start : start + 1000])
        view = model.classifier(label)
        shares = view.predict_proba(unseen.drop(columns=label))
    truth = unseen[label].to_numpy()
    accuracy, error = judge(shares, view.classes_, truth)
    return {"accuracy": accuracy, "error": error, "seconds": perf_counter() - begin}, count_claims(shares, view.classes_, truth)


def _naive_bayes(rows: Any, cut: int) -> dict[str, float]:
    from sklearn.naive_bayes import CategoricalNB, GaussianNB
    from sklearn.preprocessing import OrdinalEncoder

    label = rows.columns[-1]
    X, y = rows.drop(columns=label), rows[label].to_numpy()
    if all(kind.kind in "if" for kind in X.dtypes):
        bayes, values = GaussianNB(), X.to_numpy()
    else:
        encoder = OrdinalEncoder().fit(X)
        bayes, values = CategoricalNB(min_categories=[len(one) for one in encoder.categories_]), encoder.transform(X)
    bayes.fit(values[:cut], y[:cut])
    accuracy, error = judge(bayes.predict_proba(values[cut:]), bayes.classes_, y[cut:])
    return {"bayes": accuracy, "bayes_error": error}


def judge(shares: Any, classes: Any, truth: Any) -> tuple[float, float]:
    """Return the share of right answers, and how far it is from what the classifier claims, over ten bins of claims."""
    right, claimed = classes[shares.argmax(axis=1)] == truth, shares.max(axis=1)
    bins = np.minimum((10.0 * claimed).astype(int), 9)
    apart = [abs(right[bins == at].mean() - claimed[bins == at].mean()) * np.mean(bins == at) for at in np.unique(bins)]
    return float(right.mean()), float(np.sum(apart))


def count_claims(shares: Any, classes: Any, truth: Any) -> list[Any]:
    """Rows by what the classifier claims, how many of them are right, and the sum of the claims: (bins, 3)."""
    right, claimed = classes[shares.argmax(axis=1)] == truth, shares.max(axis=1)
    bins = np.digitize(claimed, CLAIMS)
    size = len(CLAIMS) + 1
    parts = (np.bincount(bins, weights, minlength=size) for weights in (np.ones(len(bins)), right, claimed))
    return np.column_stack(list(parts)).tolist()


# Broken rows


def measure_odd(scale: Scale, data: Path | None) -> Measures:
    for seed in range(scale.broken_sets):
        yield f"set-{seed}", partial(measure_broken, scale.broken, seed)


# The page


def show_rate(results: Results) -> Mapping[str, Any]:
    return results.of("rate")[0]


def show_peers(results: Results) -> dict[str, Any]:
    lines = results.of("peers")
    for one in lines:
        one["ratio"] = one["peer_seconds"] / one["seconds"]
        one["apart"] = (one["score"] - one["peer_score"]) / abs(one["peer_score"])
    largest = max(lines, key=lambda one: one["rows"])
    return {"lines": lines, "largest": largest, "worse": [one["set"] for one in lines if one["apart"] < -1e-6]}


def show_labels(results: Results) -> dict[str, Any]:
    lines = results.of("labels")
    heads = ["below 0.5", *(f"{low:g} to {high:g}" for low, high in pairwise(CLAIMS)), f"{CLAIMS[-1]:g} or more"]
    reliable = []
    for one in lines:
        cells = [
            f"{right / rows:.3f} ({claimed / rows:.3f}; {rows / sum(part[0] for part in one['claims']):.0%})" if rows else ""
            for rows, right, claimed in one["claims"]
        ]
        reliable.append([one["set"], one["components"], *cells])
    return {
        "lines": lines, "near": all(one["accuracy"] >= one["bayes"] - 0.02 for one in lines), "heads": heads,
        "reliable": reliable,
    }  # fmt: skip


def show_broken(results: Results) -> dict[str, Any]:
    sets = results.of("broken")
    losses = {name: [one["lost"][name] for one in sets] for name in sets[0]["lost"]}
    lines = [{"name": name, "mean": float(np.mean(part)), "worst": max(part)} for name, part in losses.items()]
    return {
        "lines": lines, "sets": len(sets), "rows": sets[0]["rows"], "part": BROKEN, "away": AWAY,
        "good": [one["name"] for one in lines if one["worst"] <= 0.02],
    }  # fmt: skip


PAGE = Page(
    name="tables",
    room="benchmarks",
    parts={"rate": measure_rates, "peers": measure_peers, "broken": measure_odd, "labels": measure_labels},
    full=Scale(),
    quick=Scale(learned=20_000, compared=(1000,), labelled=1500, components=(4,), splits=1, broken=2000, broken_sets=1),
    minutes=5.0,
    seeds="0 to 4",
    values={"rate": show_rate, "peers": show_peers, "broken": show_broken, "labels": show_labels},
    silent=(ConvergenceWarning,),
)
