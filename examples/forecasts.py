"""Forecasts of switching series: returns, earthquakes and electricity, scored before the values came, beside statsmodels.

``python -m pages forecasts`` measures it and writes docs/examples/forecasts.md.
"""

from __future__ import annotations

import csv
import gzip
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import headwater as hw
from examples import forecasts_values as values
from examples.forecasts_values import ALONE, AUTOREGRESSION, PEER_AUTOREGRESSION, PEER_REGIMES, REGIMES
from pages.page import Measures, Page
from pages.results import Figures

Array = NDArray[np.float64]
RETURNS = "sp500_monthly/sp500_monthly.csv.gz"
QUAKES = "earthquakes/earthquakes.csv.gz"
POWER = "electricity_nsw/electricity_nsw.csv.gz"
WAIT = 240  # months before anything is forecast
YEARS = 50  # of earthquakes, before anything is forecast
PASSES, SETTLED = 500, 1e-6  # of every fit
DAY = 48  # half-hours


@dataclass(frozen=True)
class Scale:
    """How much is done: months between fits, seeds of each fit, simulated sets and their rows, rows of the races."""

    every: int = 12
    seeds: int = 4
    sets: int = 20
    rows: int = 500
    long: int = 10_000
    longest: int = 200_000
    half_hours: int = 20_000
    origins: int = 1000
    months: int | None = None


def column(path: Path, name: str, at_most: int | None = None) -> Array:
    """Return a column of a table."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return np.array([float(line[name]) for line in csv.DictReader(file)][:at_most])


# Scores


def normal_crps(weights: Array, means: Array, deviations: Array, came: float) -> float:
    """Return the CRPS of a mixture of normal laws (Grimit and others 2006)."""

    def away(mean: Array, variance: Array) -> Array:
        root = np.sqrt(variance)
        return 2.0 * root * stats.norm.pdf(mean / root) + mean * (2.0 * stats.norm.cdf(mean / root) - 1.0)

    apart = away(means[:, None] - means, deviations[:, None] ** 2 + deviations**2)
    return float(weights @ away(came - means, deviations**2) - 0.5 * weights @ apart @ weights)


def scored(weights: Array, means: Array, deviations: Array, came: float) -> tuple[float, float]:
    """Return log-score and CRPS of a mixture of normal laws."""
    return float(np.log(weights @ stats.norm.pdf(came, means, deviations))), normal_crps(weights, means, deviations, came)


# The learners, each as the scores of some months under parameters of the months before


def best(make: Callable[[int], Any], seeds: int, X: Array) -> Any:
    """Return the best of some fits."""
    return max((make(seed).fit(X) for seed in range(seeds)), key=lambda model: model.score(X))


def regimes(X: Array, begin: int, end: int, seeds: int) -> list[tuple[float, float]]:
    """Two states with a mean and a variance of their own."""
    model = best(lambda seed: hw.GaussianHMM(2, n_iter=PASSES, tol=SETTLED, random_state=seed), seeds, X[:begin, None])
    means, deviations = model.means_[:, 0], np.sqrt(model.covars_[:, 0, 0])
    return [scored(model.forecast(1, X[:at, None]).state_proba[0], means, deviations, X[at]) for at in range(begin, end)]


def autoregression(X: Array, begin: int, end: int, seeds: int) -> list[tuple[float, float]]:
    """Two states with an autoregression of order 1 of their own."""
    model = best(lambda seed: hw.AutoregressiveHMM(2, 1, n_iter=PASSES, tol=SETTLED, random_state=seed), seeds, X[:begin, None])
    slopes, levels = np.ravel(model.coef_), np.ravel(model.intercept_)
    deviations = np.sqrt(np.ravel(model.covars_))
    found = []
    for at in range(begin, end):
        weights = model.forecast(1, X[:at, None]).state_proba[0]
        found.append(scored(weights, levels + slopes * X[at - 1], deviations, X[at]))
    return found


def alone(X: Array, begin: int, end: int, seeds: int) -> list[tuple[float, float]]:
    """One normal law of all months so far."""
    one, mean, deviation = np.ones(1), X[:begin].mean(keepdims=True), X[:begin].std(keepdims=True)
    return [scored(one, mean, deviation, X[at]) for at in range(begin, end)]


def peer_fit(X: Array, order: int = 0) -> Any:
    """Return statsmodels' model and its fit: from its own start, by EM and then BFGS."""
    from statsmodels.tsa.api import MarkovAutoregression, MarkovRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if order:
            return MarkovAutoregression(X, 2, order, switching_ar=True, switching_variance=True).fit(disp=False, maxiter=PASSES)
        return MarkovRegression(X, 2, switching_variance=True).fit(disp=False, maxiter=PASSES)


def peer_regimes(X: Array, begin: int, end: int, seeds: int) -> list[tuple[float, float]]:
    """The same two states by statsmodels."""
    from statsmodels.tsa.api import MarkovRegression

    fit = peer_fit(X[:begin])
    named = dict(zip(fit.model.param_names, fit.params, strict=True))
    means, deviations = _of(named, "const"), np.sqrt(_of(named, "sigma2"))
    joint = np.asarray(MarkovRegression(X[:end], 2, switching_variance=True).filter(fit.params).predicted_joint_probabilities)
    ahead = joint.sum(axis=1)  # over the state of the month before
    return [scored(ahead[:, at] / ahead[:, at].sum(), means, deviations, X[at]) for at in range(begin, end)]


def peer_autoregression(X: Array, begin: int, end: int, seeds: int) -> list[tuple[float, float]]:
    """An autoregression about the mean of each state by statsmodels: the state of the month before matters, too."""
    from statsmodels.tsa.api import MarkovAutoregression

    fit = peer_fit(X[:begin], 1)
    named = dict(zip(fit.model.param_names, fit.params, strict=True))
    means, slopes, variances = _of(named, "const"), _of(named, "ar.L1"), _of(named, "sigma2")
    model = MarkovAutoregression(X[:end], 2, 1, switching_ar=True, switching_variance=True)
    joint = np.asarray(model.filter(fit.params).predicted_joint_probabilities)  # of the state now, and of the one before
    found = []
    for at in range(begin, end):
        weights = joint[:, :, at - 1].ravel()
        centres = means[:, None] + slopes[:, None] * (X[at - 1] - means)
        found.append(scored(weights / weights.sum(), centres.ravel(), np.sqrt(np.repeat(variances, 2)), X[at]))
    return found


def _of(named: dict[str, float], word: str) -> Array:
    return np.array([named[f"{word}[{state}]"] for state in range(2)])


LEARNERS = {
    REGIMES: regimes, PEER_REGIMES: peer_regimes, AUTOREGRESSION: autoregression, PEER_AUTOREGRESSION: peer_autoregression,
    ALONE: alone,
}  # fmt: skip


def rolling(X: Array, name: str, scale: Scale) -> Figures:
    """Scores of one learner, month by month: fitted again every so many months on all months so far."""
    found: list[tuple[float, float]] = []
    for begin in range(WAIT, len(X), scale.every):
        found += LEARNERS[name](X, begin, min(begin + scale.every, len(X)), scale.seeds)
    logs, crps = np.array(found).T
    return {"name": name, "logs": logs.round(6).tolist(), "crps": crps.round(6).tolist()}


def months(scale: Scale, data: Path | None) -> Measures:
    assert data is not None
    X = 100.0 * column(data / RETURNS, "logret", scale.months)
    yield "facts", lambda: {"months": len(X), "wait": WAIT, "every": scale.every, "seeds": scale.seeds}
    for name in LEARNERS:
        yield f"learner/{name}", partial(rolling, X, name, scale)


# Earthquakes


def quakes(scale: Scale, data: Path | None) -> Measures:
    assert data is not None
    counts = column(data / QUAKES, "count")[:, None]
    yield "facts", lambda: {"years": len(counts), "wait": YEARS, "mean": float(counts.mean()), "variance": float(counts.var())}
    for k in (1, 2, 3, 4):
        yield f"states/{k}", partial(quake_states, counts, k, scale.seeds)


def quake_states(counts: Array, k: int, seeds: int) -> Figures:
    """One number of states: the fit to all years, and forecasts of each year from those before."""

    def fitted(X: Array) -> hw.PoissonHMM:
        return best(lambda seed: hw.PoissonHMM(k, n_iter=PASSES, tol=SETTLED, random_state=seed), seeds, X)

    model, logs = fitted(counts), []
    for begin in range(YEARS, len(counts), 5):
        now = fitted(counts[:begin])
        logs += [
            float(now.forecast(1, counts[:at]).log_density(counts[at : at + 1])[0])
            for at in range(begin, min(begin + 5, len(counts)))
        ]
    left = model.residuals(counts, kind="uniform", random_state=0).ravel()
    order = np.argsort(model.lambdas_[:, 0])
    return {
        "k": k, "score": model.score(counts), "bic": model.bic(counts), "logs": logs,
        "rates": model.lambdas_[order, 0].tolist(), "uniform": float(stats.kstest(left, "uniform").pvalue),
        "durations": model.expected_durations_[order].tolist() if k > 1 else [],
    }  # fmt: skip


# Electricity


def power(scale: Scale, data: Path | None) -> Measures:
    assert data is not None
    prices, demand, clock = (column(data / POWER, name, scale.half_hours) for name in ("nswprice", "nswdemand", "period"))
    price = np.log(np.maximum(prices, 1.0))
    angle = 2.0 * np.pi * clock / DAY
    inputs = np.column_stack([(demand - demand.mean()) / demand.std(), np.sin(angle), np.cos(angle)])
    cut = len(price) // 2
    yield "facts", lambda: {"half_hours": len(price), "learned": cut}
    for k in (1, 2, 3, 4):
        yield f"states/{k}", partial(power_states, inputs, price, cut, k)


def power_states(inputs: Array, price: Array, cut: int, k: int) -> Figures:
    """A regression of the price that switches between so many states, learned on the first half, scored on the second."""
    model = hw.RegressionHMM(k, n_iter=200, tol=1e-3, random_state=0).fit(inputs[:cut], price[:cut])
    later = model.score_steps(inputs, price)[cut:]
    order = np.argsort(model.noise_variance_)
    return {
        "k": k, "later": float(later.mean()), "demand": model.coef_[order, 0].tolist(),
        "noise": np.sqrt(model.noise_variance_[order]).tolist(),
        "durations": model.expected_durations_[order].tolist() if k > 1 else [],
    }  # fmt: skip


# Races


def series_of(seed: int, rows: int) -> Array:
    """Return a simulated series of two regimes, more or less apart."""
    rng = np.random.default_rng(seed)
    states = np.cumsum(rng.random(rows) > 0.97) % 2
    return np.where(states, rng.uniform(0.5, 3.0), 0.0) + np.where(states, rng.uniform(1.0, 3.0), 1.0) * rng.normal(size=rows)


def likelihoods(X: Array, seeds: int) -> Figures:
    """The log-likelihood that each reaches, with the first state from the stationary law as statsmodels has it."""
    ours = best(lambda seed: hw.GaussianHMM(2, n_iter=PASSES, tol=1e-8, random_state=seed), seeds, X[:, None])
    ours.transmat_.sum()
    held = hw.GaussianHMM(2, init_params="", random_state=0)
    held.startprob_, held.transmat_ = ours.get_stationary_distribution(), ours.transmat_
    held.means_, held.covars_ = ours.means_, ours.covars_
    return {"rows": len(X), "ours": held.score(X[:, None]), "peer": float(peer_fit(X).llf)}


def timed(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def race(scale: Scale) -> Figures:
    """Seconds of a fit of two regimes to a long series."""
    X = series_of(0, scale.long)
    ours = lambda: hw.GaussianHMM(2, n_iter=PASSES, tol=1e-4, random_state=0, n_threads=1).fit(X[:, None])  # noqa: E731
    ours()
    return {"rows": len(X), "ours": timed(ours), "peer": timed(lambda: peer_fit(X))}


def _one_pass(model: Any, X: Array) -> Array:
    """Learn a stream, and read what was learned."""
    return clone(model).partial_fit(X).transmat_


def passes(scale: Scale) -> Figures:
    """Seconds of one pass of a stream beside hmmlearn's fit of ten, four states."""
    from hmmlearn import hmm

    rng, found = np.random.default_rng(0), {}
    states = np.cumsum(rng.random(scale.longest) > 0.95) % 4
    rows = {
        "counts": rng.poisson(1.0 + 4.0 * states)[:, None],
        "symbols": ((rng.random(scale.longest) * 3).astype(int) + states)[:, None],
    }
    kinds = {"counts": ("PoissonHMM", {}), "symbols": ("CategoricalHMM", {"n_features": 6})}
    for name, (kind, options) in kinds.items():
        ours = partial(_one_pass, getattr(hw, kind)(4, random_state=0, n_threads=1, **options), rows[name])
        ours()
        peer = getattr(hmm, kind)(4, random_state=0, tol=-np.inf, **options)
        found[name] = {"ours": timed(ours), "peer": timed(partial(peer.fit, rows[name]))}
    return {"rows": scale.longest, "runs": found}


def coverage(scale: Scale) -> Figures:
    """How often what came is within intervals of 90 %, up to four rows ahead; and whether residuals of counts are uniform."""
    X = series_of(7, scale.origins + 3000)[:, None]
    model = hw.GaussianHMM(2, n_iter=PASSES, tol=SETTLED, random_state=0).fit(X[:3000])
    inside = []
    for at in range(3000, len(X) - 4, 1):
        low, high = model.forecast(4, X[at - 400 : at]).interval(0.9)
        inside.append(((X[at : at + 4] > low) & (X[at : at + 4] < high)).ravel())
    counts = hw.PoissonHMM(2, init_params="", random_state=0)
    counts.startprob_, counts.transmat_, counts.lambdas_ = [0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], [[1.0], [6.0]]
    drawn = counts.sample(4000, random_state=1)[0]
    uniform = stats.kstest(counts.residuals(drawn, kind="uniform", random_state=2).ravel(), "uniform").pvalue
    return {"forecasts": int(np.size(inside)), "inside": np.mean(inside, axis=0).tolist(), "uniform": float(uniform)}


def races(scale: Scale, data: Path | None) -> Measures:
    assert data is not None
    for seed in range(scale.sets):
        yield f"set/simulated {seed}", lambda seed=seed: likelihoods(series_of(seed, scale.rows), scale.seeds)
    X = 100.0 * column(data / RETURNS, "logret", scale.months)
    demand = column(data / POWER, "nswdemand", 2001)
    real = {
        "returns": X,
        "sizes of returns": np.log(np.abs(X) + 0.1),
        "steps of the demand for electricity": np.diff(demand) / demand.std(),
    }
    for name, series in real.items():
        yield f"set/{name}", partial(likelihoods, series, scale.seeds)
    yield "race", partial(race, scale)
    yield "passes", partial(passes, scale)
    yield "coverage", partial(coverage, scale)


QUICK = Scale(
    every=120, seeds=1, sets=2, rows=200, long=500, longest=2000, half_hours=1000, origins=20, months=300
)  # fmt: skip
PAGE = Page(
    name="forecasts", room="examples", full=Scale(), quick=QUICK, minutes=8,
    seeds="0 to 3: the starts; 0 to 19: the simulated series",
    parts={"months": months, "quakes": quakes, "power": power, "races": races},
    values={"months": values.months, "quakes": values.quakes, "power": values.power, "races": values.races},
    needs=(RETURNS, QUAKES, POWER), pictures={"forecasts": values.draw},
    silent=(ConvergenceWarning, UserWarning, RuntimeWarning),
)  # fmt: skip
