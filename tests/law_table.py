"""The models on which every law is tested: one table for the laws and the fingerprints. Their rows are in `law_rows.py`."""

import chain_models
import numpy as np
from law_rows import (
    GapFed,
    GapFedRegression,
    GapFedStudent,
    GapNoiseFed,
    NoiseFed,
    RoundFed,
    SkewedFed,
    SparseFed,
)

import headwater as hw
from headwater.core.algorithms import ALGORITHMS

WITH_SLOW = True  # whether slow tests of laws are made; conftest.py sets it

ALGORITHM_CASES = [
    *(word for word, kind in ALGORITHMS.items() if kind.ways != ("collapsed",)),  # which is for topics
    hw.SimulatedEM(n_samples=3, rao_blackwell=False),
    hw.BayesianOnlineEM(estimate="mode"),
    hw.OnlineEM(batch_size=1),
    hw.OnlineVB(batch_size=40),
    hw.OnlineVB(batch_size=40, decay=0.7),
    hw.SatoEM(rate=hw.ForgettingFactor(kappa=0.5, t0=50.0)),
    hw.SatoEM(rate=hw.Harmonic(1.0, 1.0, 100.0)),
    hw.MomentMatching("kl", "kl"),
]


def is_matching(algorithm):
    return algorithm == "moment-matching" or isinstance(algorithm, hw.MomentMatching)


def plain(algorithm):
    """Return settings that turn "auto" into a plain stream, like every other algorithm."""
    return {"reservoir": 0} if algorithm == "auto" else {}


MODELS = [
    hw.GaussianMixture(3, covariance_type=kind, algorithm=algorithm, warm_up=120, random_state=0, **plain(algorithm))
    for kind in ("full", "tied", "diag", "spherical")
    for algorithm in ALGORITHM_CASES
    if not (kind == "tied" and is_matching(algorithm))  # refused, see test_moment_matching.py
] + [
    hw.GaussianMixture(3, covariance_type=kind, algorithm=word, half_life=80.0, warm_up=120, random_state=0, **plain(word))
    for kind, word in (
        ("full", "auto"), ("full", "online-em"), ("full", "soem"),
        ("full", "moment-matching"), ("diag", "moment-matching"), ("spherical", "moment-matching"),
    )
] + [
    hw.GaussianMixture(3, algorithm=algorithm, parts=3, warm_up=120, random_state=0, **plain(algorithm))
    for algorithm in ("auto", "online-em", "quasi-bayes", "moment-matching")
] + [
    hw.GaussianMixture(3, covariance_type=kind, algorithm=word, scale_columns=True, warm_up=120, random_state=0, **plain(word))
    for kind, word in (("spherical", "auto"), ("diag", "moment-matching"), ("full", "online-em"))
] + [hw.GaussianMixture("auto", covariance_type="diag", warm_up=120, random_state=0, reservoir=0)]  # fmt: skip


# Plain streams by every algorithm that takes gaps, and streams with searches, forgetting, growth, shards and units.
PLAIN_GAP_MODELS = [
    GapFed(3, covariance_type=kind, algorithm=algorithm, warm_up=120, random_state=0, **plain(algorithm))
    for kind in ("full", "tied", "diag", "spherical")
    for algorithm in ALGORITHM_CASES
    if not is_matching(algorithm)
]
GAP_MODELS = [
    GapFed(**{"n_components": 3, "warm_up": 120, "random_state": 0, **options})
    for options in (
        {}, {"reservoir": 250, "covariance_type": "diag"}, {"reservoir": 250, "covariance_type": "tied"},
        {"half_life": 80.0, "covariance_type": "spherical"}, {"parts": 3, "reservoir": 250, "covariance_type": "diag"},
        {"half_life": "auto", "algorithm": hw.Auto(batch_size=40), "reservoir": 250},
        {"half_life": "auto", "algorithm": hw.Auto(batch_size=40), "covariance_type": "diag"},
        {"n_components": "auto", "reservoir": 250}, {"n_components": "auto", "covariance_type": "diag", "reservoir": 0},
        {"scale_columns": True, "covariance_type": "spherical"}, {"scale_columns": True, "algorithm": "online-em"},
        {"algorithm": "quasi-bayes", "parts": 3, "covariance_type": "diag"},
        {"reservoir": 250, "covariance_type": "spherical"}, {"parts": 3, "reservoir": 250},
        {"parts": 3, "covariance_type": "tied", "reservoir": 250}, {"parts": 3, "covariance_type": "spherical"},
        {"n_components": "auto", "covariance_type": "tied", "reservoir": 250},
        {"n_components": "auto", "covariance_type": "spherical", "reservoir": 250},
        {"half_life": "auto", "algorithm": hw.Auto(batch_size=40), "covariance_type": "tied"},
        {"half_life": "auto", "algorithm": hw.Auto(batch_size=40), "covariance_type": "spherical"},
    )
]  # fmt: skip


# Steps are found at the end of the warm-up; algorithms that fold every row by itself read parameters out for each.
ROUNDED_MODELS = [
    RoundFed(**{"n_components": 3, "resolution": "auto", "warm_up": 120, "random_state": 0, **options})
    for options in (
        {"reservoir": 0}, {"covariance_type": "diag", "algorithm": "vb"}, {"covariance_type": "tied", "algorithm": "em"},
        {"covariance_type": "spherical", "algorithm": "online-em"}, {"reservoir": 250}, {"parts": 3, "reservoir": 250},
        {"half_life": 80.0, "covariance_type": "diag"}, {"algorithm": hw.OnlineVB(batch_size=40)},
        {"covariance_type": "factor", "n_factors": 1}, {"scale_columns": True, "algorithm": hw.QuasiBayes(batch_size=40)},
        {"algorithm": "boem"}, {"n_components": "auto", "reservoir": 250}, {"resolution": 2.0, "algorithm": "soem"},
    )
]  # fmt: skip


NOISE_MODELS = [
    kind(**{"n_components": 3, "warm_up": 120, "random_state": 0, **options})
    for kind, options in (
        (GapNoiseFed, {"reservoir": 0}), (NoiseFed, {"covariance_type": "diag", "algorithm": "vb"}),
        (NoiseFed, {"covariance_type": "tied", "algorithm": "em"}), (NoiseFed, {"algorithm": "vb"}),
        (NoiseFed, {"covariance_type": "spherical", "algorithm": "online-em"}), (NoiseFed, {"reservoir": 250}),
        (NoiseFed, {"parts": 3, "reservoir": 250, "covariance_type": "diag"}), (NoiseFed, {"half_life": 80.0}),
        (GapNoiseFed, {"algorithm": hw.OnlineVB(batch_size=40), "covariance_type": "diag"}), (NoiseFed, {"algorithm": "soem"}),
        (NoiseFed, {"scale_columns": True, "algorithm": hw.BayesianOnlineEM(batch_size=40)}),
        (NoiseFed, {"algorithm": "boem", "covariance_type": "spherical"}),
        (NoiseFed, {"n_components": "auto", "reservoir": 250}),
        (GapNoiseFed, {"half_life": "auto", "algorithm": hw.Auto(batch_size=40), "reservoir": 250}),
    )
]  # fmt: skip


COUNT_MODELS = [
    kind(3, algorithm=algorithm, warm_up=120, random_state=0, **plain(algorithm))
    for kind in (hw.MultinomialMixture, SparseFed, hw.MarkovMixture)
    for algorithm in ALGORITHM_CASES
    if not is_matching(algorithm)
] + [
    kind(3, algorithm=algorithm, half_life=80.0, warm_up=120, random_state=0, **plain(algorithm))
    for kind in (SparseFed, hw.MarkovMixture)
    for algorithm in ("auto", "online-em", "soem", "boem", hw.OnlineEM(batch_size=1))
] + [
    kind(3, algorithm=algorithm, parts=3, warm_up=120, random_state=0, **plain(algorithm))
    for kind in (SparseFed, hw.MarkovMixture)
    for algorithm in ("auto", "online-em", "quasi-bayes")
]  # fmt: skip


ANALYSER_MODELS = [
    hw.GaussianMixture(
        3, covariance_type="factor", n_factors=1, algorithm=algorithm, warm_up=120, random_state=0,
        **{**plain(algorithm), **options},
    )
    for algorithm, options in (
        ("auto", {}), ("em", {}), ("online-em", {}), (hw.SatoEM(batch_size=40), {}), (hw.SimulatedEM(n_samples=3), {}),
        ("auto", {"half_life": 80.0}), ("auto", {"parts": 3, "reservoir": 250}), ("online-em", {"half_life": 80.0}),
    )
]  # fmt: skip


BAYESIAN_MODELS = [
    hw.BayesianGaussianMixture(
        n_components=3, algorithm=algorithm, weight_concentration_prior_type=law, warm_up=120, random_state=0, **options
    )
    for algorithm, law, options in (
        ("auto", "dirichlet_process", {}), ("vb", "dirichlet_process", {"covariance_type": "diag"}),
        ("online-vb", "dirichlet_process", {"covariance_type": "tied"}),
        (hw.OnlineVB(batch_size=40, decay=0.7), "dirichlet_process", {"covariance_type": "spherical"}),
        ("auto", "dirichlet_process", {"half_life": 80.0}), ("auto", "dirichlet_process", {"parts": 3}),
        ("online-vb", "dirichlet_distribution", {"covariance_type": "tied"}), ("auto", "dirichlet_distribution", {}),
    )
]  # fmt: skip


STUDENT_MODELS = [
    hw.StudentMixture(3, algorithm=algorithm, warm_up=120, random_state=0, **{**plain(algorithm), **options})
    for algorithm, options in (
        ("auto", {}), ("em", {"covariance_type": "diag"}), ("vb", {}), ("vb", {"covariance_type": "tied"}),
        ("online-em", {"covariance_type": "tied"}), (hw.OnlineEM(batch_size=1), {"covariance_type": "spherical"}),
        (hw.SatoEM(batch_size=40), {"degrees_of_freedom": "shared"}), (hw.BayesianOnlineEM(batch_size=40), {}),
        (hw.BayesianOnlineEM(batch_size=40, estimate="mode"), {"degrees_of_freedom": 3.0}),
        (hw.OnlineVB(batch_size=40), {"covariance_type": "diag"}), (hw.OnlineVB(batch_size=40, decay=0.7), {}),
        (hw.SimulatedEM(n_samples=3), {}), ("auto", {"half_life": 80.0, "covariance_type": "diag"}),
        ("auto", {"parts": 3, "reservoir": 250}), ("online-em", {"half_life": 80.0}),
    )
] + [
    GapFedStudent(3, algorithm=algorithm, warm_up=120, random_state=0, **{**plain(algorithm), **options})
    for algorithm, options in (
        ("auto", {}), ("em", {"covariance_type": "tied"}), ("vb", {"covariance_type": "diag"}), ("vb", {}),
        ("online-em", {"covariance_type": "spherical"}), ("auto", {"parts": 3, "reservoir": 250, "covariance_type": "diag"}),
    )
]  # fmt: skip


BACKGROUND_MODELS = [
    kind(
        **{
            "n_components": 3, "algorithm": algorithm, "background": True, "warm_up": 120, "random_state": 0,
            **plain(algorithm), **options,
        }
    )
    for kind, algorithm, options in (
        (hw.GaussianMixture, "auto", {}), (hw.GaussianMixture, "vb", {"covariance_type": "diag"}),
        (hw.GaussianMixture, "em", {"covariance_type": "tied"}), (hw.GaussianMixture, "online-em", {}),
        (hw.GaussianMixture, hw.OnlineEM(batch_size=1), {"covariance_type": "diag"}),
        (hw.GaussianMixture, hw.SatoEM(batch_size=40), {"scale_columns": True}),
        (hw.GaussianMixture, hw.BayesianOnlineEM(batch_size=40), {"covariance_type": "spherical"}),
        (hw.GaussianMixture, hw.OnlineVB(batch_size=40), {"background": 0.05}),
        (hw.GaussianMixture, "em", {"background": 0.05}),
        (hw.GaussianMixture, hw.QuasiBayes(batch_size=40), {}), (hw.GaussianMixture, hw.SimulatedEM(n_samples=3), {}),
        (hw.GaussianMixture, "auto", {"half_life": 80.0}), (hw.GaussianMixture, "auto", {"parts": 3, "reservoir": 250}),
        (hw.GaussianMixture, "auto", {"n_components": "auto", "reservoir": 250}),
        (hw.GaussianMixture, hw.Auto(batch_size=40), {"half_life": "auto", "reservoir": 250}),
        (hw.GaussianMixture, "auto", {"covariance_type": "factor", "n_factors": 1}),
        (GapFed, "auto", {"reservoir": 250}), (GapFed, "vb", {"covariance_type": "diag"}),
        (hw.MixedMixture, "auto", {"columns": {1: "poisson", 2: "bernoulli", 3: "categorical"}, "max_categories": 8}),
        (hw.MixedMixture, "vb", {"columns": {1: "poisson", 2: "bernoulli", 3: "categorical"}, "max_categories": 8}),
    )
]  # fmt: skip


DIRECTION_MODELS = [
    hw.VonMisesFisherMixture(3, algorithm=algorithm, warm_up=120, random_state=0, **{**plain(algorithm), **options})
    for algorithm, options in (
        ("auto", {}), ("em", {}), ("vb", {}), ("online-em", {}), (hw.OnlineEM(batch_size=1), {}),
        (hw.SatoEM(batch_size=40), {}), (hw.BayesianOnlineEM(batch_size=40), {}),
        (hw.BayesianOnlineEM(batch_size=40, estimate="mode"), {}),
        (hw.OnlineVB(batch_size=40), {}), (hw.OnlineVB(batch_size=40, decay=0.7), {}), (hw.SimulatedEM(n_samples=3), {}),
        ("auto", {"half_life": 80.0}), ("auto", {"parts": 3, "reservoir": 250}),
        ("online-em", {"half_life": 80.0, "mean_precision_prior": 2.0}),
    )
]  # fmt: skip


# Families with independent columns: counts, flags, categories. Each is tested with
# one algorithm of each kind; a table with several kinds of columns is a product of families.
COLUMN_ALGORITHMS = ("auto", "em", "vb", "online-em", hw.OnlineVB(batch_size=40), hw.QuasiBayes(batch_size=40))
COLUMN_MODELS = [
    kind(2, algorithm=algorithm, warm_up=80, random_state=0, **options, **plain(algorithm))
    for kind, options in (
        (hw.PoissonMixture, {}), (hw.PoissonMixture, {"exposure": 1}), (hw.BernoulliMixture, {}),
        (hw.CategoricalMixture, {"max_categories": 8}),
        (hw.MixedMixture, {"columns": {1: "poisson", 2: "bernoulli", 3: "categorical"}, "max_categories": 8}),
    )
    for algorithm in COLUMN_ALGORITHMS
] + [
    SkewedFed(2, columns=dict(enumerate(kinds, 1)), algorithm=algorithm, warm_up=80, random_state=0, **plain(algorithm))
    for kinds, algorithms in (
        (("lognormal", "zero-inflated-gamma", "zero-inflated-poisson"), COLUMN_ALGORITHMS),
        (("gamma", "zero-inflated-lognormal", "poisson"), ("auto", "em", "vb")),
    )
    for algorithm in algorithms
] + [hw.PoissonMixture(2, warm_up=80, random_state=0), hw.MixedMixture(2, warm_up=80, random_state=0)]  # fmt: skip


TOPIC_MODELS = [
    hw.LatentDirichletAllocation(3, algorithm=algorithm, warm_up=120, random_state=0, doc_topic_prior="learn", **options)
    for algorithm, options in (
        ("auto", {}), ("simulated-em", {}), ("online-vb", {}), ("scvb0", {}), ("boem", {}),
        (hw.BayesianOnlineEM(batch_size=8, estimate="mode"), {}),
        (hw.SimulatedEM(sampler="metropolis", burn_in=5, n_samples=3), {}),
        (hw.SimulatedEM(batch_size=8, rao_blackwell=False, burn_in=3, n_samples=2), {}),
        (hw.OnlineVB(batch_size=8), {}),
        ("auto", {"half_life": 80.0}), ("auto", {"parts": 3}), ("auto", {"vocabulary": "open"}), ("scvb0", {"parts": 3}),
    )
]  # fmt: skip


REGRESSION_MODELS = [
    hw.RegressionMixture(2, algorithm=algorithm, warm_up=80, random_state=0, **plain(algorithm))
    for algorithm in ALGORITHM_CASES
    if not is_matching(algorithm)
] + [
    hw.RegressionMixture(2, algorithm=algorithm, warm_up=80, random_state=0, **plain(algorithm), **options)
    for algorithm, options in (
        ("auto", {"half_life": 80.0}), ("soem", {"half_life": 80.0, "gating": "input"}),
        ("auto", {"parts": 3, "gating": "input"}), ("online-em", {"parts": 3}),
        ("em", {"gating": "input"}), ("vb", {"gating": "input"}), ("online-vb", {"gating": "input"}),
        ("quasi-bayes", {"gating": "input"}), ("boem", {"fit_intercept": False}),
    )
]  # fmt: skip


GAP_REGRESSIONS = [
    GapFedRegression(2, algorithm=algorithm, gating="input", warm_up=80, random_state=0, **{**plain(algorithm), **options})
    for algorithm, options in (
        ("auto", {}), ("em", {}), ("vb", {}), ("online-em", {}), ("online-vb", {}), ("boem", {}), ("soem", {}),
        (hw.OnlineVB(batch_size=40), {}), ("auto", {"parts": 3}), ("online-em", {"half_life": 80.0}),
        ("auto", {"reservoir": 150}),
    )
]  # fmt: skip


# Streams that refine themselves with all rows so far or with some. The mechanism is the same, so one of each family
# and one of each kind of algorithm are enough.
OFTEN_HEALING = [
    hw.GaussianMixture(3, warm_up=120, random_state=0),
    hw.GaussianMixture(3, warm_up=120, reservoir=250, random_state=0),
    SparseFed(3, warm_up=120, reservoir=250, random_state=0),
]
HEALING_MODELS = OFTEN_HEALING + [
    hw.GaussianMixture(**{"n_components": 3, "warm_up": 120, "random_state": 0, **options})
    for options in (
        {"half_life": 80.0}, {"half_life": 80.0, "reservoir": 250}, {"parts": 3, "reservoir": 250},
        {"parts": 3, "half_life": 80.0, "reservoir": 250}, {"covariance_type": "tied", "reservoir": 250},
        {"covariance_type": "diag", "reservoir": 250}, {"covariance_type": "spherical", "scale_columns": True},
        {"n_components": "auto", "reservoir": 250}, {"algorithm": hw.Auto(batch_size=1), "reservoir": 250},
        {"half_life": "auto"}, {"half_life": "auto", "algorithm": hw.Auto(batch_size=40), "reservoir": 250},
        {"half_life": "auto", "algorithm": hw.Auto(batch_size=40), "covariance_type": "tied"},
        {"n_components": "auto", "algorithm": "boem", "reservoir": 250},
        {"algorithm": hw.OnlineVB(refine=True), "reservoir": 250},
        {"algorithm": hw.QuasiBayes(refine=True), "covariance_type": "diag", "reservoir": 250},
    )
] + [
    SparseFed(3, warm_up=120, algorithm=hw.BayesianOnlineEM(refine=True), reservoir=250, random_state=0),
    SparseFed(3, warm_up=120, half_life="auto", algorithm=hw.Auto(batch_size=40), random_state=0),
    hw.RegressionMixture(2, warm_up=80, half_life="auto", algorithm=hw.Auto(batch_size=40), random_state=0),
    hw.MultinomialMixture(3, warm_up=120, random_state=0),
    SparseFed(3, warm_up=120, half_life=80.0, random_state=0),
    hw.MarkovMixture(3, warm_up=120, reservoir=250, random_state=0),
    hw.RegressionMixture(2, warm_up=80, reservoir=150, random_state=0),
    hw.RegressionMixture(2, warm_up=80, gating="input", parts=3, random_state=0),
]  # fmt: skip


SPECTRA_MODELS = [
    hw.ItakuraSaitoNMF(3, warm_up=120, random_state=0, **options)
    for options in (
        {},
        {"algorithm": hw.SimulatedEM(batch_size=30), "component_prior": 1.0, "weight_scale": 2.0},
        {"algorithm": hw.SimulatedEM(sampler="gibbs", rao_blackwell=False, burn_in=3, n_samples=2)},
        {"half_life": 80.0, "weight_shape": 1.0, "parts": 3},
    )
]


def circular(angles):
    """Return the steering of five sensors on a circle, one of them less sensitive."""
    places = 2.0 * np.pi * np.arange(5) / 5
    return np.exp(2j * np.cos(np.asarray(angles)[:, None] - places)) * np.array([1.0, 1.0, 0.5, 1.0, 1.0])


ARRIVAL_MODELS = [
    hw.DirectionOfArrival(warm_up=120, random_state=0, **options)
    for options in (
        {}, {"algorithm": "em"}, {"algorithm": "soem"}, {"algorithm": "online-em"}, {"algorithm": hw.OnlineEM(batch_size=1)},
        {"algorithm": hw.BayesianOnlineEM(estimate="mode")}, {"algorithm": hw.Auto(batch_size=40), "spacing": 0.3},
        {"half_life": 80.0}, {"algorithm": "soem", "half_life": 80.0}, {"parts": 3}, {"algorithm": "online-em", "parts": 3},
        {"steering": circular}, {"steering": circular, "algorithm": hw.OnlineEM(batch_size=60), "angles": (-2.0, 2.5)},
    )
]  # fmt: skip


# Rows of a chain depend on one another: no weights, no single rows, and only one order. A symbol that is NaN is missing.
CHAIN_ALGORITHMS = (
    "auto", hw.Auto(batch_size=40), "em", "vb", "online-em", hw.OnlineEM(batch_size=40), hw.SatoEM(batch_size=40),
    hw.BayesianOnlineEM(batch_size=40), hw.OnlineVB(batch_size=40), hw.OnlineVB(batch_size=1),
)  # fmt: skip
STARTED_CHAINS = [
    chain_models.started(
        chain_models.StartedGaussianHMM(3, kind, algorithm=algorithm, warm_up=120, lag=10, random_state=0, init_params=letters)
    )
    for letters in ("mc", "")
    for kind, algorithm in (
        *(("full", algorithm) for algorithm in CHAIN_ALGORITHMS),
        *((kind, word) for kind in ("tied", "diag", "spherical") for word in ("online-em", hw.OnlineEM(batch_size=40))),
    )
] + [
    chain_models.started(
        chain_models.StartedCategoricalHMM(
            2, n_features=6, algorithm=algorithm, warm_up=120, lag=10, random_state=0, init_params=letters
        )
    )
    for letters in ("e", "")
    for algorithm in CHAIN_ALGORITHMS
]  # fmt: skip
CHAIN_MODELS = [
    chain_models.RowsInGaussianHMM(3, kind, algorithm=algorithm, warm_up=120, lag=10, random_state=0)
    for kind, algorithm in (
        *(("full", algorithm) for algorithm in CHAIN_ALGORITHMS),
        ("tied", "online-em"), ("tied", hw.OnlineEM(batch_size=40)), ("diag", "online-em"), ("spherical", "online-em"),
    )
] + [
    chain_models.RowsInGaussianHMM(3, "diag", algorithm=algorithm, half_life=80.0, warm_up=120, lag=10, random_state=0)
    for algorithm in ("online-em", hw.OnlineEM(batch_size=40))
] + [
    chain_models.RowsInCategoricalHMM(2, n_features=6, algorithm=algorithm, warm_up=120, lag=10, random_state=0)
    for algorithm in CHAIN_ALGORITHMS
]  # fmt: skip
COUNTED_CHAINS = [
    chain_models.RowsInPoissonHMM(2, algorithm=algorithm, warm_up=120, lag=10, random_state=0)
    for algorithm in CHAIN_ALGORITHMS
] + [
    kind(2, algorithm=algorithm, warm_up=120, lag=10, random_state=0, **options)
    for kind, algorithm, options in (
        (chain_models.GapFedPoissonHMM, "auto", {}), (chain_models.GapFedPoissonHMM, "online-em", {}),
        (chain_models.GapFedPoissonHMM, "vb", {}), (chain_models.RowsInPoissonHMM, "online-em", {"half_life": 80.0}),
        (chain_models.RowsInPoissonHMM, "em", {"lambdas_prior": 2.0, "lambdas_weight": 1.0}),
    )
] + [
    chain_models.started(
        chain_models.StartedPoissonHMM(2, algorithm=algorithm, warm_up=120, lag=10, random_state=0, init_params=letters)
    )
    for letters in ("l", "") for algorithm in ("auto", "em", "online-em", "vb")
]  # fmt: skip
COUNTED_CHAINS += [
    chain_models.RowsInBernoulliHMM(2, algorithm=algorithm, warm_up=120, lag=10, random_state=0, **options)
    for algorithm, options in (("auto", {}), ("em", {}), ("vb", {}), (hw.OnlineEM(batch_size=40), {"half_life": 80.0}))
] + [
    chain_models.started(
        chain_models.StartedBernoulliHMM(2, algorithm="auto", warm_up=120, lag=10, random_state=0, init_params="")
    )
]  # fmt: skip
MIXED_CHAINS = [
    chain_models.RowsInMixedHMM(
        2, columns={1: "poisson", 2: "bernoulli", 3: "categorical"}, max_categories=8, algorithm=algorithm, warm_up=120, lag=10,
        random_state=0, **options,
    )
    for algorithm, options in (
        ("auto", {}), ("em", {}), ("vb", {}), (hw.OnlineEM(batch_size=40), {}), (hw.OnlineVB(batch_size=40), {}),
        (hw.OnlineEM(batch_size=40), {"half_life": 80.0}), (hw.BayesianOnlineEM(batch_size=40), {}),
    )
]  # fmt: skip
GROUPED_CHAINS = [
    chain_models.RowsInGMMHMM(2, 2, covariance_type=kind, algorithm=algorithm, warm_up=120, lag=10, random_state=0, **options)
    for kind, algorithm, options in (
        ("diag", "auto", {}), ("full", "em", {}), ("diag", hw.OnlineEM(batch_size=40), {}), ("spherical", "vb", {}),
        ("diag", hw.OnlineVB(batch_size=40), {}), ("full", hw.OnlineEM(batch_size=40), {"half_life": 80.0}),
        ("tied", hw.OnlineEM(batch_size=40), {}), ("tied", "vb", {}),
    )
]  # fmt: skip
LASTING_CHAINS = [
    chain_models.RowsInSemiMarkov(
        2, max_duration=6, duration=law, emission=emission, algorithm=algorithm, warm_up=120, lag=10, random_state=0
    )
    for law, emission, algorithm in (
        ("negative-binomial", "gaussian", "auto"), ("categorical", "gaussian", "em"),
        ("categorical", "poisson", hw.OnlineEM(batch_size=40)), ("negative-binomial", "gaussian", hw.SatoEM(batch_size=40)),
    )
]  # fmt: skip
SWITCHING_CHAINS = [
    chain_models.RowsInRegressionHMM(2, algorithm=algorithm, warm_up=80, lag=10, random_state=0, **options)
    for algorithm, options in (
        ("auto", {}), (hw.Auto(batch_size=40), {}), ("em", {}), ("vb", {}), ("em", {"fit_intercept": False}),
        (hw.OnlineEM(batch_size=40), {}), (hw.SatoEM(batch_size=40), {}), (hw.BayesianOnlineEM(batch_size=40), {}),
        (hw.OnlineVB(batch_size=40), {}), (hw.OnlineEM(batch_size=40), {"half_life": 80.0}),
    )
] + [
    chain_models.RowsInAutoregressiveHMM(2, order, algorithm=algorithm, warm_up=120, lag=10, random_state=0)
    for order, algorithm in (
        (1, "auto"), (1, "em"), (1, "vb"), (2, hw.OnlineEM(batch_size=40)), (1, hw.OnlineVB(batch_size=40)),
        (2, hw.Auto(batch_size=40)),
    )
]  # fmt: skip
GAPPED_CHAINS = [
    chain_models.GapFedGaussianHMM(2, kind, algorithm=algorithm, warm_up=120, lag=10, random_state=0, **options)
    for kind, algorithm, options in (
        ("full", "auto", {}), ("diag", "auto", {}), ("tied", "em", {}), ("spherical", "vb", {}),
        ("full", "online-em", {}), ("spherical", "online-em", {}), ("diag", hw.OnlineVB(batch_size=40), {}),
        ("tied", "online-em", {"scale_columns": True}), ("diag", "online-em", {"half_life": 80.0}),
    )
]  # fmt: skip
