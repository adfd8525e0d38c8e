"""headwater: learn the hidden sources of a stream, in one pass, in bounded memory, with results that merge."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from headwater import datasets, distributed, outlier, plotting
    from headwater.core.algorithms import (
        Auto,
        BatchEM,
        BatchVB,
        BayesianOnlineEM,
        MomentMatching,
        OnlineEM,
        OnlineVB,
        QuasiBayes,
        SatoEM,
    )
    from headwater.core.match import Match, MergeReport
    from headwater.core.schedules import Decay, ForgettingFactor, Harmonic
    from headwater.core.simulated_algorithms import CollapsedVB, SimulatedEM, SurrogateEM
    from headwater.diagnostics.comparison import Comparison
    from headwater.diagnostics.description import Description
    from headwater.diagnostics.health import Finding, Health
    from headwater.diagnostics.history import History
    from headwater.estimators.autoregressive_hmm import AutoregressiveHMM
    from headwater.estimators.bayesian_gaussian_mixture import BayesianGaussianMixture
    from headwater.estimators.bernoulli_hmm import BernoulliHMM
    from headwater.estimators.bernoulli_mixture import BernoulliMixture
    from headwater.estimators.categorical_hmm import CategoricalHMM
    from headwater.estimators.categorical_mixture import CategoricalMixture
    from headwater.estimators.column_views import ColumnClassifier, ColumnRegressor
    from headwater.estimators.comparison import compare_models
    from headwater.estimators.completion import completion_perplexity
    from headwater.estimators.conditional import Conditional
    from headwater.estimators.direction_of_arrival import DirectionOfArrival
    from headwater.estimators.explanation import Explanation
    from headwater.estimators.forecast import Forecast
    from headwater.estimators.gaussian_hmm import GaussianHMM
    from headwater.estimators.gaussian_mixture import GaussianMixture
    from headwater.estimators.gmm_hmm import GMMHMM
    from headwater.estimators.itakura_saito_nmf import ItakuraSaitoNMF
    from headwater.estimators.latent_dirichlet_allocation import LatentDirichletAllocation
    from headwater.estimators.markov_mixture import MarkovMixture
    from headwater.estimators.merge import merge
    from headwater.estimators.mixed_hmm import MixedHMM
    from headwater.estimators.mixed_mixture import MixedMixture
    from headwater.estimators.model_file import load
    from headwater.estimators.multinomial_mixture import MultinomialMixture
    from headwater.estimators.poisson_hmm import PoissonHMM
    from headwater.estimators.poisson_mixture import PoissonMixture
    from headwater.estimators.race import Race, Rival
    from headwater.estimators.reason_table import ReasonTable
    from headwater.estimators.regression_hmm import RegressionHMM
    from headwater.estimators.regression_mixture import RegressionMixture
    from headwater.estimators.semi_markov import SemiMarkov
    from headwater.estimators.student_mixture import StudentMixture
    from headwater.estimators.table_conditional import TableConditional
    from headwater.estimators.von_mises_fisher_mixture import VonMisesFisherMixture
    from headwater.io.open_stream import stream
    from headwater.io.stream import Stream
    from headwater.monitors import Monitor
    from headwater.policies.growth import Growth
    from headwater.reports import report

__version__ = "0.1.0"

# Names load when they are first used, so that `import headwater` costs next to nothing.
_HOMES = {
    "headwater.estimators.gaussian_mixture": ["GaussianMixture"],
    "headwater.estimators.bayesian_gaussian_mixture": ["BayesianGaussianMixture"],
    "headwater.estimators.student_mixture": ["StudentMixture"],
    "headwater.estimators.gaussian_hmm": ["GaussianHMM"],
    "headwater.estimators.categorical_hmm": ["CategoricalHMM"],
    "headwater.estimators.autoregressive_hmm": ["AutoregressiveHMM"],
    "headwater.estimators.regression_hmm": ["RegressionHMM"],
    "headwater.estimators.poisson_hmm": ["PoissonHMM"],
    "headwater.estimators.bernoulli_hmm": ["BernoulliHMM"],
    "headwater.estimators.multinomial_mixture": ["MultinomialMixture"],
    "headwater.estimators.markov_mixture": ["MarkovMixture"],
    "headwater.estimators.regression_mixture": ["RegressionMixture"],
    "headwater.estimators.von_mises_fisher_mixture": ["VonMisesFisherMixture"],
    "headwater.estimators.itakura_saito_nmf": ["ItakuraSaitoNMF"],
    "headwater.estimators.latent_dirichlet_allocation": ["LatentDirichletAllocation"],
    "headwater.estimators.direction_of_arrival": ["DirectionOfArrival"],
    "headwater.estimators.column_views": ["ColumnClassifier", "ColumnRegressor"],
    "headwater.estimators.poisson_mixture": ["PoissonMixture"],
    "headwater.estimators.bernoulli_mixture": ["BernoulliMixture"],
    "headwater.estimators.categorical_mixture": ["CategoricalMixture"],
    "headwater.estimators.mixed_mixture": ["MixedMixture"],
    "headwater.estimators.mixed_hmm": ["MixedHMM"],
    "headwater.estimators.gmm_hmm": ["GMMHMM"],
    "headwater.estimators.semi_markov": ["SemiMarkov"],
    "headwater.estimators.comparison": ["compare_models"],
    "headwater.diagnostics.comparison": ["Comparison"],
    "headwater.estimators.completion": ["completion_perplexity"],
    "headwater.estimators.conditional": ["Conditional"],
    "headwater.estimators.explanation": ["Explanation"],
    "headwater.estimators.forecast": ["Forecast"],
    "headwater.estimators.reason_table": ["ReasonTable"],
    "headwater.estimators.table_conditional": ["TableConditional"],
    "headwater.estimators.merge": ["merge"],
    "headwater.estimators.race": ["Race", "Rival"],
    "headwater.estimators.model_file": ["load"],
    "headwater.diagnostics.description": ["Description"],
    "headwater.diagnostics.health": ["Finding", "Health"],
    "headwater.policies.growth": ["Growth"],
    "headwater.diagnostics.history": ["History"],
    "headwater.core.match": ["Match", "MergeReport"],
    "headwater.monitors": ["Monitor"],
    "headwater.reports": ["report"],
    "headwater.core.algorithms": [
        "Auto", "BatchEM", "BatchVB", "BayesianOnlineEM", "MomentMatching", "OnlineEM", "OnlineVB", "QuasiBayes", "SatoEM",
    ],
    "headwater.core.simulated_algorithms": ["CollapsedVB", "SimulatedEM", "SurrogateEM"],
    "headwater.core.schedules": ["Decay", "ForgettingFactor", "Harmonic"],
    "headwater.io.open_stream": ["stream"],
    "headwater.io.stream": ["Stream"],
}  # fmt: skip
_ROOMS = ("datasets", "distributed", "outlier", "plotting")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Auto",
    "AutoregressiveHMM",
    "BatchEM",
    "BatchVB",
    "BayesianGaussianMixture",
    "BayesianOnlineEM",
    "BernoulliHMM",
    "BernoulliMixture",
    "CategoricalHMM",
    "CategoricalMixture",
    "CollapsedVB",
    "ColumnClassifier",
    "ColumnRegressor",
    "Comparison",
    "Conditional",
    "Decay",
    "Description",
    "DirectionOfArrival",
    "Explanation",
    "Finding",
    "Forecast",
    "ForgettingFactor",
    "GMMHMM",
    "GaussianHMM",
    "GaussianMixture",
    "Harmonic",
    "Growth",
    "Health",
    "History",
    "ItakuraSaitoNMF",
    "LatentDirichletAllocation",
    "MarkovMixture",
    "Match",
    "MergeReport",
    "MixedHMM",
    "MixedMixture",
    "MomentMatching",
    "Monitor",
    "MultinomialMixture",
    "OnlineEM",
    "OnlineVB",
    "PoissonHMM",
    "PoissonMixture",
    "QuasiBayes",
    "Race",
    "ReasonTable",
    "RegressionHMM",
    "RegressionMixture",
    "Rival",
    "SatoEM",
    "SimulatedEM",
    "Stream",
    "SemiMarkov",
    "StudentMixture",
    "SurrogateEM",
    "TableConditional",
    "VonMisesFisherMixture",
    "compare_models",
    "completion_perplexity",
    "datasets",
    "distributed",
    "load",
    "merge",
    "outlier",
    "plotting",
    "report",
    "stream",
]


def __getattr__(name: str) -> _Any:
    if name in _ROOMS:  # imported when they are used: Dask and matplotlib need not be there
        return _import_module(f"headwater.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'headwater' has no attribute {name!r}")
    return getattr(_import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
