"""A model of each kind of file, and rows that end its warm-up."""

import chain_models
import numpy as np
from scipy.sparse import csr_array

import headwater as hw

RNG = np.random.default_rng(0)


def rows(n=200, width=2):
    return RNG.normal(size=(n, width)) + 5.0 * RNG.integers(0, 2, size=(n, 1))


def documents(n=150, words=30):
    return csr_array(RNG.poisson(0.4, size=(n, words)).astype(float))


def symbols(n=300):
    return RNG.integers(0, 4, size=(n, 1))


MODELS = {
    "gaussian": lambda: hw.GaussianMixture(2, warm_up=50, random_state=0).partial_fit(rows()),
    "warm-up": lambda: hw.GaussianMixture(2, random_state=0).partial_fit(rows()),
    "fitted": lambda: hw.GaussianMixture(2, covariance_type="tied", random_state=0).fit(rows()),
    "matched": lambda: hw.GaussianMixture(2, algorithm="moment-matching", warm_up=50, random_state=0).partial_fit(rows()),
    "parts": lambda: hw.GaussianMixture(2, covariance_type="diag", parts=2, warm_up=50, random_state=0).partial_fit(rows()),
    "multinomial": lambda: hw.MultinomialMixture(
        2, algorithm=hw.OnlineEM(batch_size=20), warm_up=50, random_state=0
    ).partial_fit(documents()),
    "markov": lambda: hw.MarkovMixture(2, warm_up=20, random_state=0).partial_fit(symbols().reshape(60, 5)),
    "regression": lambda: hw.RegressionMixture(2, gating="input", warm_up=50, random_state=0).partial_fit(
        *(lambda X: (X, X @ [1.0, 2.0]))(rows())
    ),
    "topics": lambda: hw.LatentDirichletAllocation(2, warm_up=50, random_state=0).partial_fit(documents()),
    "spectra": lambda: hw.ItakuraSaitoNMF(2, warm_up=50, random_state=0).partial_fit(RNG.gamma(1.0, size=(120, 6))),
    "chain": lambda: hw.GaussianHMM(2, algorithm="online-em", random_state=0).partial_fit(
        rows(2300), key=np.repeat(["a", "b"], 1150)
    ),
    "waiting chain": lambda: hw.GaussianHMM(2, random_state=0).partial_fit(rows(2300)),
    "symbols": lambda: hw.CategoricalHMM(2, random_state=0).partial_fit(symbols()),
    "arrival": lambda: hw.DirectionOfArrival(warm_up=20).partial_fit(snapshots()),
    "growth": lambda: hw.GaussianMixture("auto", warm_up=1000, random_state=0).partial_fit(
        np.random.default_rng(1).normal(size=(1300, 2)) + 2.0 * np.arange(1300)[:, None] % 6
    ),
    "race": lambda: hw.GaussianHMM("auto", warm_up=120, lag=10, random_state=0).partial_fit(
        chain_models.a_stream(900, seed=0)[0][:420, :1], key="a"
    ),
}  # fmt: skip


def snapshots(n=60):
    return RNG.normal(size=(n, 3)) + 1j * RNG.normal(size=(n, 3))


# More rows, enough to end a warm-up.
MORE = {
    "multinomial": lambda: (documents(),),
    "markov": lambda: (symbols().reshape(60, 5),),
    "regression": lambda: (rows(), rows()[:, 0]),
    "topics": lambda: (documents(),),
    "spectra": lambda: (RNG.gamma(1.0, size=(120, 6)),),
    "symbols": lambda: (symbols(2500),),
    "arrival": lambda: (snapshots(),),
}
