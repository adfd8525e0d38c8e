"""Paper 000's experiments made again: Bayesian online EM for multinomial mixtures, beside Sato's online EM and batch EM.

``python -m pages boem`` measures them and writes docs/papers/boem.md. Of the data sets gutenberg_10k is read; without it that
part is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from headwater.core.statistics import Array
from pages.page import Measures, Page
from pages.results import Figures
from papers import boem_data as data
from papers import boem_learners as learners
from papers import boem_printed as printed
from papers import boem_sets
from papers import boem_values as values
from papers.boem_data import Truth, gutenberg_path, load_gutenberg, log_prior, score
from papers.boem_learners import BATCH, FLAT, MAP_EM, MEAN_BOEM, MODE_BOEM, OWN, STREAMED, batch, bayesian, own, streamed
from papers.boem_pictures import PICTURES
from papers.boem_scale import BAND, SHRINK_BETA, Scale, banded, check_points, padded
from papers.wilcoxon import SIGNIFICANT

CLUSTERS = 5
SPREADS = {"variance": 50.0, "deviation": 2500.0}  # what N(5000, 2500) may mean
BETAS = (FLAT, 0.01, 0.1, 1.0, 10.0)
SHRINK_WEIGHTS, SHRINK_CLUSTERS, SHRINK_BETAS = (0.8, 0.2), 6, (1.0, SHRINK_BETA, 20.0)
CORPUS, CORPUS_CLUSTERS, CORPUS_BETA = "Gutenberg", 10, 2.0
SURVIVES = 0.01  # weight of a cluster that is there
JUDGED = 10  # every so many documents are scored along the way; all are at the end


# Section 6.1.1


def likelihood_rows(spread: float, scale: Scale) -> tuple[Truth, Array]:
    truth = Truth.drawn(CLUSTERS, scale.columns, 0)
    return truth, truth.sample(scale.documents, spread, 0)


def survivors(model: Any) -> int:
    return int(np.sum(model.weights_ > SURVIVES))


def likelihood_set(spread: float, scale: Scale) -> Figures:
    """Log-likelihoods per document minus the generating mixture's, by line, along the stream and at its end."""
    truth, rows = likelihood_rows(spread, scale)
    counts, judge = csr_array(rows), rows[::JUDGED]
    best, best_judged = truth.score(rows), truth.score(judge)
    points = check_points(scale.documents, scale.check_points)
    begun = data.starts("uniform", scale.starts, CLUSTERS, rows)

    def followed(models: Sequence[Any], read_at: Sequence[int]) -> Figures:
        traces = [streamed(model, counts, read_at, lambda one: one.score(judge) - best_judged) for model in models]
        return {
            **banded(read_at, [trace.read for trace in traces]),
            "final": [float(model.score(rows)) - best for model in models],
            "survivors": [survivors(model) for model in models],
            "seconds": [trace.seconds[-1] for trace in traces],
        }

    lines: dict[str, Figures] = {}
    for line in STREAMED:
        lines[line.name] = followed([line.make(start) for start in begun], points)
    passes: list[Array] = []
    last: dict[str, list[Any]] = {"final": [], "survivors": [], "seconds": []}
    for start in begun:
        model, seconds = batch(start, 1.0, rows, scale.passes)
        passes.append(padded(model.lower_bounds_, scale.passes) - best)
        for name, value in (("final", passes[-1][-1]), ("survivors", survivors(model)), ("seconds", seconds)):
            last[name].append(value)
    first = {"first": [float(trace[0]) for trace in passes]}
    lines[BATCH] = {**banded([scale.documents * number for number in range(1, scale.passes + 1)], passes), **first, **last}
    late = [point for point in points if point >= min(learners.READ_FROM, scale.documents)]
    sought = [own(CLUSTERS, seed) for seed in range(scale.own)]
    unread = [streamed(clone(model), counts, points[-1:], survivors).seconds[0] for model in sought]
    lines[OWN] = {**followed(sought, late), "seconds": unread}  # a read during warm-up seeks a start, too
    equal = np.full(CLUSTERS, 1.0 / CLUSTERS)
    return {
        "spread": spread, "length": data.MEAN_LENGTH, "fewest": data.FEWEST_WORDS, "survives": SURVIVES,
        "margin": truth.margin, "clusters": CLUSTERS, "columns": scale.columns, "documents": scale.documents,
        "starts": scale.starts, "runs": scale.own, "judged": len(judge), "truth": best,
        "weights": sorted(truth.weights.tolist(), reverse=True),
        "shortest": float(rows.sum(axis=1).min()), "longest": float(rows.sum(axis=1).max()), "passes": scale.passes,
        "start": float(np.median([score(judge, equal, start) for start in begun])) - best_judged, "lines": lines,
    }  # fmt: skip


def beta_set(scale: Scale) -> Figures:
    """What the weight of the start decides: where BOEM ends, by beta."""
    truth, rows = likelihood_rows(SPREADS["variance"], scale)
    counts, best = csr_array(rows), truth.score(rows)
    begun = data.starts("uniform", scale.few, CLUSTERS, rows)
    final = [[bayesian(start, beta).partial_fit(counts).score(rows) - best for start in begun] for beta in BETAS]
    return {"betas": [*BETAS], "starts": scale.few, "final": final}


def measure_likelihood(scale: Scale, directory: Path | None) -> Measures:
    for name, spread in SPREADS.items():
        yield name, partial(likelihood_set, spread, scale)
    yield "beta", partial(beta_set, scale)


# Section 6.1.2


def posterior_lines(
    rows: Any, beta: float, begun: Sequence[Array], passes: int, base: tuple[float, float, float], points: Sequence[int]
) -> tuple[dict[str, Figures], Array]:
    """BOEM's means and modes and batch MAP EM from the same starts; and the weights of BOEM's typical run along the stream.

    `base` is what is taken off: a log-posterior per document, of all documents and of those judged, and a log-likelihood.
    """
    counts, judge, n = csr_array(rows), rows[::JUDGED], rows.shape[0]
    lines: dict[str, Figures] = {}
    typical: Array = np.empty(0)

    def posterior(model: Any, documents: Any) -> tuple[float, float]:
        likelihood = float(model.score(documents))
        return likelihood + log_prior(model.probabilities_, beta) / n, likelihood

    def ended(models: Sequence[Any]) -> Figures:
        last = np.array([posterior(model, rows) for model in models]) - [base[0], base[2]]
        kept = [survivors(model) for model in models]
        return {"final": last[:, 0].tolist(), "likelihood": last[:, 1].tolist(), "survivors": kept}

    for name, mode in ((MEAN_BOEM, False), (MODE_BOEM, True)):
        models = [bayesian(start, beta, mode) for start in begun]
        traces = [
            streamed(model, counts, points, lambda one: (posterior(one, judge)[0] - base[1], one.weights_)) for model in models
        ]
        values = [[value for value, _ in trace.read] for trace in traces]
        seconds = np.median([trace.seconds for trace in traces], axis=0).tolist()
        lines[name] = {**banded(points, values), "seconds": seconds, **ended(models)}
        if not mode:
            middle = int(np.argsort(lines[name]["final"])[len(begun) // 2])
            typical = np.array([weights for _, weights in traces[middle].read])
    fits = [batch(start, beta, rows, passes) for start in begun]
    constant = log_prior(np.ones((len(begun[0]), rows.shape[1])), beta) / n
    bounds = [padded(model.lower_bounds_, passes) + constant - base[0] for model, _ in fits]
    per_pass = float(np.median([seconds / max(len(model.lower_bounds_), 1) for model, seconds in fits]))
    lines[MAP_EM] = {
        **banded([n * number for number in range(1, passes + 1)], bounds), "first": [float(bound[0]) for bound in bounds],
        "seconds": [per_pass * number for number in range(1, passes + 1)], **ended([model for model, _ in fits]),
    }  # fmt: skip
    return lines, typical


def with_empty(probabilities: Array, clusters: int) -> Array:
    """Clusters, and empty ones at the mode of the prior."""
    empty = np.full((clusters - len(probabilities), probabilities.shape[1]), 1.0 / probabilities.shape[1])
    return np.concatenate([probabilities, empty])


def shrinkage_set(kind: str, beta: float, number: int, scale: Scale) -> Figures:
    """Log-posteriors per document minus those of the generating mixture, whose other clusters are empty."""
    truth = Truth.drawn(len(SHRINK_WEIGHTS), scale.columns, 1, SHRINK_WEIGHTS)
    rows = truth.sample(scale.documents, SPREADS["variance"], 1)
    prior = log_prior(with_empty(truth.probabilities, SHRINK_CLUSTERS), beta) / len(rows)
    likelihood = truth.score(rows)
    begun = data.starts(kind, number, SHRINK_CLUSTERS, rows)
    points = check_points(scale.documents, scale.check_points)
    base = (likelihood + prior, truth.score(rows[::JUDGED]) + prior, likelihood)
    lines, typical = posterior_lines(rows, beta, begun, scale.passes, base, points)
    weights = typical[:, np.argsort(-typical[-1])].T.tolist()
    return {
        "kind": kind, "beta": beta, "starts": number, "clusters": SHRINK_CLUSTERS, "truth": [*SHRINK_WEIGHTS],
        "spread": SPREADS["variance"], "mean_rows": data.MEAN_ROWS, "survives": SURVIVES,
        "documents": scale.documents, "columns": scale.columns, "passes": scale.passes, "points": points, "typical": weights,
        "lines": lines,
    }  # fmt: skip


def measure_shrinkage(scale: Scale, directory: Path | None) -> Measures:
    for kind in ("uniform", "documents"):
        for beta in SHRINK_BETAS:
            number = scale.starts if beta == SHRINK_BETA else scale.few
            yield f"{kind}/{beta:g}", partial(shrinkage_set, kind, beta, number, scale)


# Section 6.2


def one_cluster(rows: Any, beta: float) -> Array:
    """The most probable probabilities of one cluster for all documents."""
    words = np.asarray(rows.sum(axis=0)).ravel() + (beta - 1.0)
    return np.asarray(words / words.sum())[None]


def corpus_set(kind: str, path: Path, scale: Scale) -> Figures:
    """Log-posteriors per document minus that of a model whose clusters are empty but for one."""
    rows = load_gutenberg(path, scale.documents)
    alone = one_cluster(rows, CORPUS_BETA)
    prior = log_prior(with_empty(alone, CORPUS_CLUSTERS), CORPUS_BETA) / rows.shape[0]
    judge, sure = rows[::JUDGED], np.ones(1)
    base = (score(rows, sure, alone) + prior, score(judge, sure, alone) + prior, score(rows, sure, alone))
    points = check_points(rows.shape[0], scale.check_points)
    result: Figures = {
        "kind": kind, "beta": CORPUS_BETA, "clusters": CORPUS_CLUSTERS, "documents": rows.shape[0], "columns": rows.shape[1],
        "length": float(np.median(rows.sum(axis=1))), "passes": scale.corpus_passes, "alone": base[0],
    }  # fmt: skip
    if kind != "own":
        begun = data.starts(kind, scale.starts, CORPUS_CLUSTERS, rows)
        lines, _ = posterior_lines(rows, CORPUS_BETA, begun, scale.corpus_passes, base, points)
        return {**result, "starts": scale.starts, "lines": lines}
    final, kept, traces, unread = [], [], [], []
    late = [point for point in points if point >= min(learners.READ_FROM, rows.shape[0])]

    def posterior(model: Any, documents: Any) -> float:
        return float(model.score(documents)) + log_prior(model.probabilities_, CORPUS_BETA) / rows.shape[0]

    for seed in range(scale.own):
        model = own(CORPUS_CLUSTERS, seed, CORPUS_BETA)
        traces.append(streamed(model, rows, late, lambda one: posterior(one, judge) - base[1]))
        final.append(posterior(model, rows) - base[0])
        kept.append(survivors(model))
        unread.append(streamed(clone(model), rows, points[-1:], survivors).seconds[0])
    line = {**banded(late, [trace.read for trace in traces]), "final": final, "survivors": kept, "whole": unread}
    return {**result, "starts": scale.own, "lines": {OWN: line}}


def corpus_beta_set(path: Path, scale: Scale) -> Figures:
    """Where BOEM ends on the corpus, by beta: log-likelihoods per document minus that of one cluster."""
    rows = load_gutenberg(path, scale.documents)
    alone = score(rows, np.ones(1), one_cluster(rows, 1.0))
    begun = data.starts("documents", scale.few, CORPUS_CLUSTERS, rows)
    final = [[bayesian(start, beta).partial_fit(rows).score(rows) - alone for start in begun] for beta in BETAS]
    return {"betas": [*BETAS], "starts": scale.few, "final": final}


def measure_gutenberg(scale: Scale, directory: Path | None) -> Measures:
    path = gutenberg_path(directory)
    if path is not None:
        for kind in ("uniform", "documents", "own"):
            yield kind, partial(corpus_set, kind, path, scale)
        yield "beta", partial(corpus_beta_set, path, scale)


# The recursions


def measure_printed(scale: Scale, directory: Path | None) -> Measures:
    for case in (printed.SHORT, printed.LONG):
        yield case.name, partial(printed.agreement, case)


def absent(scale: Scale, directory: Path | None) -> list[str]:
    return [] if gutenberg_path(directory) else [CORPUS]


PAGE = Page(
    name="boem", room="papers", full=Scale(), minutes=12, seeds="0 to the number of starts, the same for all learners",
    quick=Scale(
        starts=2, documents=300, few=2, own=1, columns=100, passes=3, corpus_passes=3, check_points=3,
    ),
    parts={
        "printed": measure_printed, "likelihood": measure_likelihood, "shrinkage": measure_shrinkage,
        "gutenberg": measure_gutenberg, "sets": boem_sets.measure_sets,
    },
    values=values.VALUES,
    names={
        "code": values, "sets_code": boem_sets, "MEANINGS": learners.MEANINGS,
        "SHRINK_BETA": SHRINK_BETA, "BAND": BAND, "BATCH": BATCH,
        "MAP_EM": MAP_EM, "OWN": OWN, "SIGNIFICANT": SIGNIFICANT,
    },
    pictures=PICTURES, absent=absent, prepare=learners.compile_kernels,
)  # fmt: skip
