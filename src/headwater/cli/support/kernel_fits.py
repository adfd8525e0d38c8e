"""Small fits that call every kernel of a model, each with the types of numbers that it is called with.

`headwater compile` runs this file in a process of its own, which prints a line of JSON for each model.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.sparse import csr_array

import headwater as hw
from headwater.kernels.compile_counts import compile_counts

if TYPE_CHECKING:
    from headwater.core.statistics import Array
    from headwater.estimators.base import StreamingEstimator

N_ROWS = 120
WARM_UP = 60
MANY_COMPONENTS, MANY_COLUMNS = 40, 104  # for which E-steps are products of matrices
SOME_COMPONENTS = 14  # which with twice these columns have a short start
WIDE = 400  # columns; above this the start of a count mixture reduces the dimension
READS = ("score_samples", "predictive_score_samples", "predict_proba", "predict", "transform")

DRAWN = hw.SimulatedEM(burn_in=1, n_samples=1, rao_blackwell=False)

Fit: TypeAlias = "tuple[StreamingEstimator, tuple[object, ...], dict[str, object]]"  # a model, rows, and what comes beside them


def gaussian_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Each kind of covariance: in passes, row by row, by draws, by moment matching; with gaps; and by products of matrices."""
    X = rng.normal(size=(N_ROWS, 2)) + 4.0 * rng.integers(2, size=(N_ROWS, 1))
    for kind in ("full", "tied", "diag"):
        for algorithm in ("auto", "em", "soem", DRAWN, *(() if kind == "tied" else ("moment-matching",))):
            yield hw.GaussianMixture(2, covariance_type=kind, algorithm=algorithm), (X,), {}
    gaps = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    for kind in ("full", "diag"):
        for algorithm in ("auto", "soem"):
            yield hw.GaussianMixture(2).set_params(covariance_type=kind, algorithm=algorithm), (gaps,), {}
    errors = np.ones((N_ROWS, 2))
    for kind, noise in (("full", errors), ("full", errors[:, :, None] * np.eye(2)), ("diag", errors)):
        yield hw.GaussianMixture(2).set_params(covariance_type=kind), (X,), {"noise": noise}
    wide = np.repeat(X, MANY_COLUMNS // 2, axis=1) + rng.normal(size=(N_ROWS, MANY_COLUMNS))
    yield hw.GaussianMixture(SOME_COMPONENTS, max_iter=1).set_params(covariance_type="diag"), (np.tile(wide, (1, 2)),), {}
    for kind in ("diag", "spherical", "tied"):
        yield hw.GaussianMixture(MANY_COMPONENTS, max_iter=1).set_params(covariance_type=kind, algorithm="em"), (wide,), {}


def bayesian_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Variational Bayes, whose kernels are those of other Gaussian mixtures."""
    X = rng.normal(size=(N_ROWS, 2))
    for kind in ("full", "tied", "diag"):
        yield hw.BayesianGaussianMixture(n_components=2).set_params(covariance_type=kind), (X,), {}


def student_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Heavy tails: kernels of Gaussians with the tails of predictive densities."""
    X = rng.normal(size=(N_ROWS, 2)) + 4.0 * rng.integers(2, size=(N_ROWS, 1))
    for kind in ("full", "tied", "diag"):
        yield hw.StudentMixture(2).set_params(covariance_type=kind), (X,), {}


def multinomial_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Dense, sparse, and wide sparse counts: in passes, and row by row."""
    X = _counts(rng)
    for rows in (X, csr_array(X), csr_array(np.tile(X, WIDE // X.shape[1]))):
        for algorithm in ("auto", "vb", "soem"):
            yield hw.MultinomialMixture(2, algorithm=algorithm), (rows,), {}


def markov_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Sequences of symbols."""
    for algorithm in ("auto", "soem"):
        yield hw.MarkovMixture(2, algorithm=algorithm), (rng.integers(3, size=6 * N_ROWS),), {"lengths": np.full(N_ROWS, 6)}


def regression_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Targets, with gates that look at the input and without."""
    X = rng.normal(size=(N_ROWS, 2))
    y = np.where(rng.random(N_ROWS) < 0.5, X[:, 0], 3.0 - X[:, 1]) + 0.1 * rng.normal(size=N_ROWS)
    for gating in ("fixed", "input"):
        for algorithm in ("auto", "soem"):
            yield hw.RegressionMixture(2, algorithm=algorithm, gating=gating), (X, y), {}


def topic_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Documents: both samplers, and both kinds of variational Bayes."""
    X = csr_array(_counts(rng))
    for algorithm in ("auto", replace(DRAWN, sampler="metropolis"), "online-vb", "scvb0"):
        yield hw.LatentDirichletAllocation(2, algorithm=algorithm, doc_topic_prior="learn"), (X,), {}


def spectra_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Powers: both samplers."""
    X = rng.exponential(size=(N_ROWS, 6))
    for algorithm in ("auto", replace(DRAWN, sampler="gibbs")):
        yield hw.ItakuraSaitoNMF(2, algorithm=algorithm), (X,), {}


def gaussian_chain_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Rows that follow one another: in passes, and row by row."""
    X = rng.normal(size=(N_ROWS, 2)) + 4.0 * (np.arange(N_ROWS) // 20 % 2)[:, None]
    for kind in ("full", "tied", "diag"):
        for algorithm in ("auto", "online-em"):
            yield hw.GaussianHMM(2, covariance_type=kind, algorithm=algorithm), (X,), {}
    gaps = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    for kind in ("full", "diag"):
        for algorithm in ("auto", "online-em"):
            yield hw.GaussianHMM(2, covariance_type=kind).set_params(algorithm=algorithm), (gaps,), {}
    forward = hw.GaussianHMM(2, init_params="", algorithm="em")  # a state that comes back is smoothed in logarithms
    forward.startprob_, forward.transmat_ = [0.5, 0.5], [[0.9, 0.1], [0.0, 1.0]]
    forward.means_, forward.covars_ = [[0.0], [60.0]], [[1.0], [1.0]]
    yield forward, (np.where(np.arange(N_ROWS)[:, None] == 0, 60.0, rng.normal(size=(N_ROWS, 1))),), {}


def symbol_chain_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Symbols that follow one another."""
    for algorithm in ("auto", "online-em"):
        yield hw.CategoricalHMM(2, algorithm=algorithm), (rng.integers(3, size=(N_ROWS, 1)),), {}


def count_chain_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Counts that follow one another."""
    for algorithm in ("auto", "online-em"):
        yield hw.PoissonHMM(2, algorithm=algorithm), (rng.poisson(3.0, size=(N_ROWS, 2)),), {}


def flag_chain_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Rows of yes and no that follow one another."""
    yield hw.BernoulliHMM(2), (rng.integers(2, size=(N_ROWS, 3)).astype(float),), {}


def regression_chain_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Targets that follow one another."""
    yield hw.RegressionHMM(2), (rng.normal(size=(N_ROWS, 2)), rng.normal(size=N_ROWS)), {}


def autoregression_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Rows that depend on those before them."""
    yield hw.AutoregressiveHMM(2), (rng.normal(size=(N_ROWS, 2)),), {}


def arrival_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Snapshots of an array of sensors: in passes, and row by row."""
    draws = rng.normal(size=(N_ROWS, 5, 2)) @ [1.0, 1.0j]
    X = draws[:, :1] * np.exp(0.7j * np.arange(4)) + draws[:, 1:]
    for algorithm in ("auto", "soem"):
        yield hw.DirectionOfArrival(algorithm=algorithm), (X,), {}


def event_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Counts of events, which need no further kernels."""
    yield hw.PoissonMixture(2), (rng.poisson(3.0, size=(N_ROWS, 3)),), {}


def flag_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Yes and no."""
    yield hw.BernoulliMixture(2), (rng.integers(2, size=(N_ROWS, 3)),), {}


def direction_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Directions."""
    yield hw.VonMisesFisherMixture(2), (rng.normal(1.0, 1.0, size=(N_ROWS, 3)),), {}


def category_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Categories."""
    yield hw.CategoricalMixture(2), (rng.integers(3, size=(N_ROWS, 3)),), {}


def table_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """A table of numbers, whose kernels are those of Gaussians, and categories."""
    X = np.column_stack([rng.normal(size=(N_ROWS, 2)), rng.integers(3, size=N_ROWS)])
    for kind in ("full", "diag"):
        yield hw.MixedMixture(2, columns={2: "categorical"}, covariance_type=kind), (X,), {}


def grouped_chain_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Numbers that follow one another, in states that are mixtures: the kernels are those of Gaussians."""
    for kind in ("diag", "full"):
        yield hw.GMMHMM(2, 2, covariance_type=kind), (rng.normal(size=(N_ROWS, 2)),), {}


def lasting_chain_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """Numbers and counts in states with durations of their own."""
    yield hw.SemiMarkov(2, max_duration=5), (rng.normal(size=(N_ROWS, 2)),), {}
    yield hw.SemiMarkov(2, max_duration=5, emission="poisson"), (rng.poisson(3.0, size=(N_ROWS, 2)),), {}
    stays = np.arange(N_ROWS) // np.where(np.arange(N_ROWS) < N_ROWS // 2, 3, 9) % 2  # some longer than may be
    apart = rng.normal(size=(N_ROWS, 1)) + 60.0 * stays[:, None]  # so far that logarithms are used
    yield hw.SemiMarkov(2, max_duration=5), (apart,), {}


def table_chain_fits(rng: np.random.Generator) -> Iterator[Fit]:
    """The same, one after the other."""
    X = np.column_stack([rng.normal(size=(N_ROWS, 2)), rng.integers(3, size=N_ROWS)])
    yield hw.MixedHMM(2, columns={2: "categorical"}), (X,), {}


FITS: dict[str, Callable[[np.random.Generator], Iterator[Fit]]] = {
    "gaussian": gaussian_fits,
    "bayesian": bayesian_fits,
    "student": student_fits,
    "multinomial": multinomial_fits,
    "poisson": event_fits,
    "bernoulli": flag_fits,
    "categorical": category_fits,
    "mixed": table_fits,
    "markov": markov_fits,
    "regression": regression_fits,
    "vmf": direction_fits,
    "lda": topic_fits,
    "nmf": spectra_fits,
    "hmm": gaussian_chain_fits,
    "categorical-hmm": symbol_chain_fits,
    "poisson-hmm": count_chain_fits,
    "bernoulli-hmm": flag_chain_fits,
    "gmm-hmm": grouped_chain_fits,
    "mixed-hmm": table_chain_fits,
    "semi-markov": lasting_chain_fits,
    "regression-hmm": regression_chain_fits,
    "autoregressive-hmm": autoregression_fits,
    "arrival": arrival_fits,
}


def run_fits(word: str) -> None:
    """Fit small models of a word, learn some rows more, and read all that can be read."""
    rng = np.random.default_rng(0)
    for model, learned, companions in FITS[word](rng):
        model.set_params(random_state=0, warm_up=WARM_UP)
        model.fit(*learned, **companions)
        if model.algorithm not in ("em", "vb"):  # which need all rows at once
            model.partial_fit(*learned, **companions)
        for name in READS:
            if (read := getattr(model, name, None)) is not None:
                taken = signature(read).parameters
                beside = {one: value for one, value in companions.items() if one in taken}
                read(*learned[: 1 + ("y" in taken)], **beside)
        if word == "lda":
            hw.completion_perplexity(model, *learned)
        if word == "nmf":
            model.transform(*learned, inference="map")
        if type(model)._traits.chained and not model._traits.target_columns:
            model.sample(3)


def _counts(rng: np.random.Generator) -> Array:
    drawn = rng.multinomial(10, [[0.4, 0.4, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]], size=(N_ROWS // 2, 2))
    return drawn.reshape(N_ROWS, 4).astype(np.float64)


def main(words: Sequence[str]) -> None:
    """Run the fits of all words; print what was compiled and what was found for each."""
    warnings.simplefilter("ignore")
    for word in words:
        before, start = compile_counts(), time.perf_counter()
        run_fits(word)
        after = compile_counts()
        record = {
            "model": word,
            "compiled": after.compiled - before.compiled,
            "found": after.loaded - before.loaded,
            "seconds": round(time.perf_counter() - start, 2),
            "directories": list(after.directories),
        }
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
