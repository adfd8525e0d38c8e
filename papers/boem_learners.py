"""The learners of paper 000's experiments, as the library spells them, and how they are followed along a stream."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from headwater.core.schedules import Decay
from headwater.core.statistics import Array
from papers.boem_data import MEAN_LENGTH

KAPPA, T0 = 0.7, 5000.0  # the paper's, for Sato's online EM
FLAT = 1e-3  # beta that stands for none, per word
READ_FROM = 500  # documents from which the library's own start is read out: every read during warm-up seeks one anew


# Makers


def bayesian(start: Array, beta: float, mode: bool = False) -> Any:
    """BOEM from a start that weighs beta words for each column, as beta_0 = n_a beta has it; beta - 1 for the mode.

    A start that weighs nothing would be forgotten by the clusters that the first document does not go to, where (12) keeps it.
    """
    words = start.shape[1] * max(beta - 1.0 if mode else beta, FLAT) * start
    algorithm = hw.BayesianOnlineEM("mode" if mode else "mean")
    return _model(start, algorithm, words + 1.0 if mode else words, weight_concentration_prior=1.0)


def forgetting(start: Array, kappa: float = KAPPA, t0: float = T0) -> Any:
    """SOEM by equations 4 and 5: eta_1 = 1, so the start lives on in the first document's responsibilities only."""
    return _model(start, hw.SatoEM(rate=hw.ForgettingFactor(kappa, t0)), 1.0)


def weighted(start: Array, rate: Any, length: float = MEAN_LENGTH) -> Any:
    """SOEM by equation 6, whose statistics are those of the start before the first document.

    One document stands for the start, in equal parts of all clusters; the rate must count it as the first.
    """
    n_c = len(start)
    model = _model(start, hw.SatoEM(rate=rate), 1.0, warm_up=n_c)
    return model.partial_fit(length * start, sample_weight=np.full(n_c, 1.0 / n_c), labels=np.arange(n_c))


def power(start: Array, length: float = MEAN_LENGTH, kappa: float = KAPPA, t0: float = T0) -> Any:
    return weighted(start, Decay(kappa, t0 - 1.0), length)


def harmonic(start: Array, length: float = MEAN_LENGTH, kappa: float = KAPPA, t0: float = T0) -> Any:
    return weighted(start, hw.Harmonic(1.0, kappa, t0 - kappa), length)


def own(clusters: int, seed: int, beta: float | None = None) -> Any:
    """BOEM from the library's own start, as a user gets it; with beta, the mode under that prior."""
    algorithm = hw.BayesianOnlineEM("mean" if beta is None else "mode")
    return hw.MultinomialMixture(
        clusters, algorithm=algorithm, probability_concentration_prior=beta, random_state=seed, n_threads=1
    )


def batch(start: Array, beta: float, rows: Any, passes: int) -> tuple[Any, float]:
    """Batch EM (MAP, or maximum likelihood where beta is 1) after so many passes, and the seconds of CPU they took."""
    model = _model(start, hw.BatchEM(), beta, weight_concentration_prior=1.0, max_iter=passes, tol=0.0)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows)
    return model, time.process_time() - began


def _model(start: Array, algorithm: Any, prior: Any, warm_up: int = 1, **settings: Any) -> Any:
    return hw.MultinomialMixture(
        len(start), algorithm=algorithm, probability_concentration_prior=prior, probabilities_init=start,
        weights_init=np.full(len(start), 1.0 / len(start)), warm_up=warm_up, n_threads=1, **settings,
    )  # fmt: skip


# Lines


MEAN_BOEM, MODE_BOEM, MAP_EM = "BOEM, mean", "BOEM, mode", "batch MAP EM"  # of figures 2 and 3


@dataclass(frozen=True)
class Line:
    name: str
    meaning: str
    make: Callable[[Array], Any]


LITERAL = Line(
    "BOEM, beta = 1",
    "equations 9 to 12 with alpha = beta = 1, as the paper says it was run. They are posterior means, so that the start weighs "
    "beta_0 = n_a words",
    lambda start: bayesian(start, 1.0),
)
VANISHING = Line(
    "BOEM, beta -> 0",
    f"the same with beta = {FLAT:g}: the start weighs next to nothing, which makes maximum likelihood of a posterior mean",
    lambda start: bayesian(start, FLAT),
)
MODE = Line(
    MODE_BOEM,
    "the recursion of the posterior mode, for which alpha = beta = 1 is maximum likelihood, as the paper says. The first "
    f"document overwrites the weights, and the start weighs as little as with beta = {FLAT:g} above",
    lambda start: bayesian(start, 1.0, mode=True),
)
FACTOR = Line(
    "SOEM, equations 4 and 5",
    f"Sato's online EM, kappa = {KAPPA:g} and t0 = {T0:g} in his forgetting factor 1 - 1 / ((t - 2) kappa + t0). By equation 5 "
    "eta_1 = 1: the first document overwrites the start, and leaves all clusters the same",
    forgetting,
)
POWER = Line(
    "SOEM, (t + t0)^-kappa",
    "the same with this rate in equation 6, from a start that counts as one document",
    power,
)
HARMONIC = Line(
    "SOEM, 1 / (kappa t + t0)",
    "the same with this rate, the paper's a / (b t + c)",
    harmonic,
)
BATCH = "batch EM"
OWN = "BOEM, headwater's start"
BAYESIAN = (LITERAL, VANISHING, MODE)
SATO = (FACTOR, POWER, HARMONIC)
STREAMED = (*BAYESIAN, *SATO)
MEANINGS = {
    **{line.name: line.meaning for line in STREAMED},
    BATCH: '`algorithm="em"`, passes over all documents',
    OWN: '`MultinomialMixture(n, algorithm="boem")` and nothing else: a start is sought on the first documents (k-means and '
    "farthest-first seeds, of which the best is chosen), which then count once",
}


def first_steps(clusters: int) -> dict[str, float]:
    """How far the first document moves the weights."""
    sato = (1.0, (1.0 + T0) ** -KAPPA, 1.0 / (KAPPA + T0))
    return {"BOEM": 1.0 / (clusters + 1.0), **{line.name: step for line, step in zip(SATO, sato, strict=True)}}


# Followed along a stream


@dataclass(frozen=True)
class Trace:
    """What was read of a model at some points of a stream, and the seconds of CPU that learning took up to each."""

    read: list[Any]
    seconds: list[float]


def streamed(model: Any, rows: Any, points: Sequence[int], read: Callable[[Any], Any]) -> Trace:
    values, seconds, at, spent = [], [], 0, 0.0
    for point in points:
        piece = rows[at:point]
        began = time.process_time()
        model.partial_fit(piece)
        assert model.weights_ is not None  # what waits in a warm-up is learned when it is read
        spent += time.process_time() - began
        values.append(read(model))
        seconds.append(spent)
        at = point
    return Trace(values, seconds)


def compile_kernels() -> None:
    """Learn a few rows with each, so that no timing has the compiler in it."""
    rng = np.random.default_rng(0)
    rows = rng.multinomial(200, np.full(30, 1.0 / 30), size=60).astype(float)
    start = rng.dirichlet(np.ones(30), size=2)
    for counts in (rows, csr_array(rows)):
        for line in STREAMED:
            line.make(start).partial_fit(counts).score(counts)
        batch(start, 2.0, counts, 2)[0].score(counts)
        own(2, 0).partial_fit(counts).score(counts)
