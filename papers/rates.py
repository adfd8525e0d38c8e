"""Rates of convergence: what one pass loses beside maximum likelihood as rows come, by every algorithm.

Paper 000's own question, on short soft documents from a rough start, and paper 002's on averages. ``python -m pages rates``
measures and writes docs/papers/rates.md. All data are generated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from headwater.core.statistics import Array
from pages.page import Measures, Page
from pages.results import Figures, Results
from papers import online_em_normals as normals

TOPICS, WORDS, LENGTH = 2, 6, 6
FLATNESS, ROUGHNESS = 2.0, 5.0  # Dirichlet concentrations of the topics, and of the start
WAIT = 100  # rows of the warm-up
PASSES = 5000  # of EM, at most
EXPONENTS = (0.0, 0.25, 0.5, 1.0)
TRUTHS = {"close": normals.TRUTH, "apart": normals.APART}
DOCUMENTS = np.array(
    [np.bincount(c, minlength=WORDS) for c in combinations_with_replacement(range(WORDS), LENGTH)], dtype=float
)
WAYS_TO_WRITE = gammaln(LENGTH + 1.0) - gammaln(DOCUMENTS + 1.0).sum(axis=1)

LEARNERS: dict[str, Callable[[], Any]] = {
    "auto": lambda: "auto",
    "boem": lambda: "boem",
    "boem, refined": lambda: hw.BayesianOnlineEM(refine=True),
    "online-vb": lambda: "online-vb",
    "online-vb, refined": lambda: hw.OnlineVB(refine=True),
    "quasi-bayes": lambda: "quasi-bayes",
    "quasi-bayes, refined": lambda: hw.QuasiBayes(refine=True),
    "online-em, row by row": lambda: hw.OnlineEM(batch_size=1),
    "online-em, row by row, weights n": lambda: hw.OnlineEM(batch_size=1, average_exponent=1.0),
    "online-em": lambda: "online-em",
    "soem": lambda: "soem",
}
LIKELIEST = "maximum likelihood (em, all rows)"


@dataclass(frozen=True)
class Scale:
    """Sets of documents and their rows, streams of the small mixture and their rows."""

    sets: int = 12
    rows: tuple[int, ...] = (1000, 10_000, 100_000)
    copies: int = 40
    lengths: tuple[int, ...] = (1000, 10_000, 100_000)


def truth_of(seed: int) -> tuple[Array, Array, Array, np.random.Generator]:
    """Weights, topics, and the rough start of the topics of a set, and the generator of its rows."""
    rng = np.random.default_rng(np.random.SeedSequence((0, 2, seed)))
    weights = rng.dirichlet(np.full(TOPICS, 5.0))
    topics = rng.dirichlet(np.full(WORDS, FLATNESS), size=TOPICS)
    return weights, topics, rng.dirichlet(np.full(WORDS, ROUGHNESS), size=TOPICS), rng


def log_law(weights: Array, topics: Array) -> Array:
    """Log-probability of every document there can be."""
    return np.asarray(logsumexp(DOCUMENTS @ np.log(topics).T + np.log(weights), axis=1) + WAYS_TO_WRITE)


def divergence(model: Any, law: Array) -> float:
    """KL(truth || model), nats a row: the sum over all documents."""
    return float(np.exp(law) @ (law - log_law(model.weights_, model.probabilities_)))


def documents_set(seed: int, scale: Scale) -> Figures:
    """What every learner loses after so many rows of a set."""
    weights, topics, start, rng = truth_of(seed)
    law = log_law(weights, topics)
    drawn = rng.choice(len(DOCUMENTS), p=np.exp(law) / np.exp(law).sum(), size=max(scale.rows))
    settings: dict[str, Any] = {"random_state": 0, "n_threads": 1}
    found: dict[str, list[float]] = {name: [] for name in (*LEARNERS, LIKELIEST)}
    for rows in scale.rows:
        X = DOCUMENTS[drawn[:rows]]
        for name, algorithm in LEARNERS.items():
            model = hw.MultinomialMixture(
                TOPICS, algorithm=algorithm(), probabilities_init=start, weights_init=[0.5, 0.5], warm_up=WAIT, **settings
            )
            found[name].append(divergence(model.partial_fit(X), law))
        counts = np.bincount(drawn[:rows], minlength=len(DOCUMENTS)).astype(float)
        model = hw.MultinomialMixture(
            TOPICS, algorithm="em", probabilities_init=topics, weights_init=weights, max_iter=PASSES, tol=1e-12, **settings
        )
        found[LIKELIEST].append(divergence(model.fit(DOCUMENTS, sample_weight=counts), law))
    return {"rows": list(scale.rows), "gaps": found}


def averages_set(case: str, rows: int, scale: Scale) -> Figures:
    """Squared errors over the bound by the exponent of the weights of the average."""
    truth = TRUTHS[case]
    streams = [normals.drawn(truth, rows, 20, copy) for copy in range(scale.copies)]
    lines = {}
    for exponent in EXPONENTS:
        losses = [
            normals.loss(normals.parameters(normals.library(average_exponent=exponent).partial_fit(y[:, None])), truth, rows)
            for y in streams
        ]
        lines[f"{exponent:g}"] = {"mean": float(np.mean(losses)), "error": float(np.std(losses) / np.sqrt(len(losses)))}
    return {"case": case, "rows": rows, "lines": lines}


def make_documents(scale: Scale, data: Path | None) -> Measures:
    for seed in range(scale.sets):
        yield f"{seed}", partial(documents_set, seed, scale)


def make_averages(scale: Scale, data: Path | None) -> Measures:
    for case in TRUTHS:
        for rows in scale.lengths:
            yield f"{case}/{rows}", partial(averages_set, case, rows, scale)


# What the page shows


def documents(results: Results) -> dict[str, Any]:
    """For each learner: the gap in 1e-5 nats after so many rows, mean and spread over sets, and the exponent of its rate."""
    sets = results.of("documents")
    rows, lines = sets[0]["rows"], {}
    for name in sets[0]["gaps"]:
        gaps = 1e5 * np.array([one["gaps"][name] for one in sets])
        slopes = np.log(gaps[:, -1] / gaps[:, -2]) / np.log(rows[-1] / rows[-2])
        lines[name] = {
            "means": gaps.mean(axis=0), "spreads": gaps.std(axis=0, ddof=1) if len(gaps) > 1 else 0.0 * gaps[0],
            "slope": float(slopes.mean()), "slope_spread": float(slopes.std(ddof=1)) if len(gaps) > 1 else 0.0,
        }  # fmt: skip
    ends = {name: float(one["means"][-1]) for name, one in lines.items() if name != LIKELIEST}
    return {
        "sets": len(sets), "rows": rows, "lines": lines, "best": min(ends, key=lambda name: ends[name]),
        "bound": 1e5 * (TOPICS * WORDS - 1) / (2.0 * rows[-1]),
    }  # fmt: skip


def averages(results: Results) -> dict[str, Any]:
    """For each exponent: what theory says, and the losses of every case."""
    sets = results.of("averages")
    return {
        "cases": [(one["case"], one["rows"]) for one in sets],
        "lines": {
            f"{a:g}": {"theory": (1.0 + a) ** 2 / (1.0 + 2.0 * a), "losses": [one["lines"][f"{a:g}"] for one in sets]}
            for a in EXPONENTS
        },
        "speeds": {case: normals.speeds(truth).tolist() for case, truth in TRUTHS.items()},
    }


PAGE = Page(
    name="rates", room="papers", full=Scale(), quick=Scale(2, (200, 400), 2, (100, 200)), minutes=5,
    seeds="0 to the number of sets", parts={"documents": make_documents, "averages": make_averages},
    values={"documents": documents, "averages": averages},
    names={
        "TOPICS": TOPICS, "WORDS": WORDS, "LENGTH": LENGTH, "WAIT": WAIT, "FLATNESS": FLATNESS, "ROUGHNESS": ROUGHNESS,
        "LIKELIEST": LIKELIEST, "START": normals.START.tolist(),
    },
    silent=(ConvergenceWarning,),
)  # fmt: skip
