"""Calm and turbulent months: 62 years of the S&P 500 by a hidden Markov model of its returns, month by month and at once.

``python -m pages regimes`` measures it and writes docs/examples/regimes.md.
"""

from __future__ import annotations

import csv
import gzip
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from examples import regimes_values as values
from examples.regimes_values import FIT, MIXTURE, PEER, REFIT, STREAM
from pages.page import Measures, Page
from pages.results import Figures

Array = NDArray[np.float64]
FILE = "sp500_monthly/sp500_monthly.csv.gz"
WAIT = 240  # months before anything is scored
WAITS, STAYS, ALGORITHMS = (120, 240), (0, 9, 30), {"step by step": "online-em", "a year at a time": hw.OnlineEM(batch_size=12)}
SHOWN = (240, 9, "step by step")  # chosen after looking at the series, so the page has all other settings too
YEAR = 12  # months after which the peer is fitted again
PASSES, SETTLED = 1000, 1e-4  # of every fit


@dataclass(frozen=True)
class Scale:
    """How much is done: numbers of regimes, restarts of each fit, months, and how often the peer is fitted again."""

    regimes: tuple[int, ...] = (2, 3)
    seeds: int = 6
    months: int | None = None
    every: int = YEAR


@dataclass(frozen=True)
class Months:
    """The index at the end of each month, and its return in percent (100 times the logarithm)."""

    dates: list[str]
    index: Array
    returns: Array

    @classmethod
    def load(cls, path: Path, at_most: int | None = None) -> Months:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            lines = [*csv.DictReader(file)][:at_most]
        index, returns = (np.array([float(line[name]) for line in lines]) for name in ("Close", "logret"))
        return cls([line["date"] for line in lines], index, 100.0 * returns[:, None])

    def __len__(self) -> int:
        return len(self.dates)


# All months in memory


def fitted(k: int, X: Array, seed: int) -> hw.GaussianHMM:
    """Passes of EM until they settle."""
    return hw.GaussianHMM(k, n_iter=PASSES, tol=SETTLED, random_state=seed, n_threads=1).fit(X)


def sticky(k: int, stays: int) -> Array | None:
    """Return a prior of the transitions: this many months of stay in each regime; None for 0."""
    return 1.0 + stays * np.eye(k) if stays else None


def peer(k: int, X: Array, seed: int, passes: int = PASSES, stays: int = 0) -> Any:
    """Return hmmlearn's fit, without its message that a likelihood fell by a rounding error."""
    from hmmlearn.hmm import GaussianHMM

    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    prior = sticky(k, stays)
    options = {} if prior is None else {"transmat_prior": prior}
    return GaussianHMM(k, n_iter=passes, tol=SETTLED, random_state=seed, **options).fit(X)


def at_once(k: int, X: Array, fits: Sequence[hw.GaussianHMM]) -> dict[str, list[float]]:
    """Nats a month of each model, seed by seed."""
    rows, seeds, options = len(X), len(fits), {"algorithm": "em", "max_iter": 5000, "tol": 1e-7, "n_threads": 1}
    mixtures = [hw.GaussianMixture(k, random_state=seed, **options) for seed in range(seeds)]
    return {
        FIT: [model.score(X) / rows for model in fits],
        PEER: [peer(k, X, seed).score(X) / rows for seed in range(seeds)],
        MIXTURE: [float(model.fit(X).score(X)) for model in mixtures],
    }


# Month by month


def streamed(k: int, X: Array, wait: int, stays: int, algorithm: str) -> tuple[Array, Array]:
    """The score of each month before it was learned, and the probability of the turbulent regime given the months so far."""
    model = hw.GaussianHMM(
        k, algorithm=ALGORITHMS[algorithm], warm_up=wait, transmat_prior=sticky(k, stays), random_state=0, n_threads=1
    )
    scores, turbulent = np.full(len(X), np.nan), np.full(len(X), np.nan)
    for at, row in enumerate(X):
        if at >= WAIT:
            turbulent[at] = model.filter(row)[np.argmax(model.covars_[:, 0, 0])]
        scores[at] = model.update(row[None])[0]
    return scores, turbulent


def one_gaussian(X: Array) -> Array:
    """The score of each month under mean and variance of the months before."""
    count = np.arange(WAIT, len(X))
    mean = np.cumsum(X[:, 0])[WAIT - 1 : -1] / count
    variance = np.cumsum(X[:, 0] ** 2)[WAIT - 1 : -1] / count - mean**2
    scores = np.full(len(X), np.nan)
    scores[WAIT:] = -0.5 * (np.log(2.0 * np.pi * variance) + (X[WAIT:, 0] - mean) ** 2 / variance)
    return scores


def fitted_again(k: int, X: Array, every: int, stays: int) -> Array:
    """The score of each month under hmmlearn's fit, the better of two, of all months before the year began."""
    scores = np.full(len(X), np.nan)
    for begin in range(WAIT, len(X), every):
        models = [peer(k, X[:begin], seed, 100, stays) for seed in range(2)]
        model = max(models, key=lambda model: model.score(X[:begin]))
        for at in range(begin, min(begin + every, len(X))):
            scores[at] = model.score(X[: at + 1]) - model.score(X[:at])
    return scores


# Regimes


def spells(turbulent: Array, at_least: int = 3) -> list[tuple[int, int]]:
    """First and last month of each stretch in which the turbulent regime is the more probable."""
    inside = np.concatenate([[False], turbulent > 0.5, [False]]).astype(int)
    begins, ends = np.flatnonzero(np.diff(inside) == 1), np.flatnonzero(np.diff(inside) == -1) - 1
    return [(int(begin), int(end)) for begin, end in zip(begins, ends, strict=True) if end - begin + 1 >= at_least]


def regimes_of(model: hw.GaussianHMM) -> list[dict[str, float]]:
    """The regimes from calm to turbulent: mean and deviation in percent a month, how often, and for how long."""
    deviation, often = np.sqrt(model.covars_[:, 0, 0]), model.get_stationary_distribution()
    return [
        {
            "mean": float(model.means_[k, 0]), "deviation": float(deviation[k]), "often": float(often[k]),
            "months": float(1.0 / max(1.0 - model.transmat_[k, k], 1e-9)),
        }
        for k in np.argsort(deviation)
    ]  # fmt: skip


# The page


def facts(months: Months, scale: Scale) -> Figures:
    X = months.returns
    alone = fitted(1, X, 0)
    return {
        "dates": months.dates, "index": months.index.tolist(), "wait": WAIT, "shown": [*SHOWN], "every": scale.every,
        "passes": PASSES, "seeds": scale.seeds, "alone": {"score": alone.score(X) / len(X), "bic": alone.bic(X)},
        "gaussian": one_gaussian(X)[WAIT:].round(4).tolist(),
    }  # fmt: skip


def compared(k: int, months: Months, scale: Scale) -> Figures:
    """Everything with so many regimes."""
    X = months.returns
    fits = [fitted(k, X, seed) for seed in range(scale.seeds)]
    best = max(fits, key=lambda model: model.score(X))
    settings = [(wait, stays, name) for wait in WAITS for stays in STAYS for name in ALGORITHMS]
    ways = {setting: streamed(k, X, *setting) for setting in settings}
    again = {stays: fitted_again(k, X, scale.every, stays)[WAIT:] for stays in (0, SHOWN[1])}
    turbulent = best.predict_proba(X)[:, np.argmax(best.covars_[:, 0, 0])]
    scores, filtered = ways[SHOWN]
    return {
        "k": k, "at_once": at_once(k, X, fits), "bic": best.bic(X), "regimes": regimes_of(best),
        "turbulent": turbulent.round(4).tolist(), "filtered": filtered[WAIT:].round(4).tolist(),
        "stream": {STREAM: scores[WAIT:].round(4).tolist(), REFIT: again[SHOWN[1]].round(4).tolist()},
        "ways": [[*setting, float(found[0][WAIT:].mean())] for setting, found in ways.items()],
        "again": [[stays, float(scores.mean())] for stays, scores in again.items()],
        "spells": [[months.dates[begin], months.dates[end]] for begin, end in spells(turbulent)],
    }  # fmt: skip


def measure(scale: Scale, data: Path | None) -> Measures:
    assert data is not None
    months = Months.load(data / FILE, scale.months)
    yield "series", partial(facts, months, scale)
    for k in scale.regimes:
        yield f"regimes/{k}", partial(compared, k, months, scale)


PAGE = Page(
    name="regimes", room="examples", full=Scale(), quick=Scale((2,), 2, 300, 60), minutes=2, seeds="0 to 5: the starts of fits",
    parts={"regimes": measure}, values={"regimes": values.regimes}, needs=(FILE,), pictures={"regimes": values.draw},
    names={"FIT": FIT, "PEER": PEER, "MIXTURE": MIXTURE}, silent=(ConvergenceWarning,),
)  # fmt: skip
