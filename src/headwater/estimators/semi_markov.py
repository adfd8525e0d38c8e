"""SemiMarkov: hidden Markov models whose states last as long as a law of their own says."""

from __future__ import annotations

import logging
import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.climb import Climb
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.core.values import RandomState
from headwater.estimators.describers.semi_markov import SemiMarkovDescriber
from headwater.estimators.family_hmm import FamilyHMM
from headwater.estimators.semi_markov_answers import SemiMarkovAnswers
from headwater.families.family import AnyFamily
from headwater.families.gaussian import Gaussian
from headwater.families.poisson import Poisson
from headwater.families.repeated import Repeated
from headwater.models.chain_records import ChainParameters
from headwater.models.durations import LAWS
from headwater.models.hidden_markov import HiddenMarkov
from headwater.models.semi_markov import SemiMarkovChain

MOST_PLACES = 1024  # states times durations; transitions between them are kept as a matrix


class SemiMarkov(SemiMarkovAnswers):
    """Hidden semi-Markov model: each state lasts as long as a law of its own says, and then another begins.

    In a hidden Markov model a stay is as likely to end at its first row as at its hundredth. Here durations are explicit:
    heating cycles, sleep stages, shifts, plays, which have a usual length. A row costs the square of the states times
    `max_duration`.

    Parameters
    ----------
    n_components : int, default=2
        Number of states, two at least.
    emission : {'gaussian', 'poisson'}, default='gaussian'
        Rows of numbers, or of counts.
    covariance_type : {'diag', 'full', 'tied', 'spherical'}, default='diag'
        Covariance of the numbers.
    min_covar : float, default=1e-6
        Added to the variances of the numbers.
    duration : {'negative-binomial', 'categorical'}, default='negative-binomial'
        The law of the durations: 1 and a negative binomial number of rows, or a table of probabilities.
    max_duration : int, default=30
        Longest duration in rows. If `fit` finds that stays are cut by it, it says so, and so does `health_`.
    duration_prior : float, default=1.0
        Stays that the prior of a table of durations is worth; it expects all durations alike.
    decoder : {'viterbi', 'map'}, default='viterbi'
        What `predict` and `decode` do (hmmlearn's `algorithm`).
    random_state : int, RandomState instance or None, default=None
        Seeds the start, and `sample`.
    n_iter : int, default=10
        Most passes of EM in `fit`.
    tol : float, default=1e-2
        A `fit` ends when a pass gains less in the log-likelihood of all rows.
    verbose : int, default=0
        Whether passes are printed.
    algorithm : str or Algorithm, default='auto'
        'auto' streams by online EM in blocks, and `fit` then goes on by passes of EM; 'em' (Baum-Welch), 'online-em' (in
        blocks), 'soem', 'boem'; or an object such as ``OnlineEM(batch_size=1000)``.
    half_life : float, optional
        Rows after which the weight of a row is halved.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins. With 0 it begins at once, at parameters that are
        all set.
    lag : int, default=50
        Rows that a block looks ahead to.
    n_threads : int, optional
        Threads; all cores by default. The answer is the same.
    implementation : {'log', 'scaling'}, default='log'
        Accepted for compatibility with hmmlearn, and ignored.

    Attributes
    ----------
    n_components_ : int
        Number of states.
    startprob_ : ndarray of shape (n_components,)
        Probability of each state to be the first. A sequence begins with the first row of a stay.
    transmat_ : ndarray of shape (n_components, n_components)
        Probability of each state to follow another; 0 on the diagonal.
    durations_ : ndarray of shape (n_components, max_duration)
        Probability of 1, 2, ... rows in each state.
    expected_durations_ : ndarray of shape (n_components,)
        Their means.
    means_, covars_ : ndarray
        Of 'gaussian' emissions, as of `GaussianHMM`, covariances in the shape of their kind.
    lambdas_ : ndarray of shape (n_components, n_features)
        Rates of 'poisson' emissions.
    n_features_in_, n_samples_seen_ : int
        Columns, and rows learned from.
    monitor_ : Monitor
        How the last `fit` went.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> states = np.tile(np.repeat([0, 1], [5, 12]), 60)
    >>> rows = rng.normal(4.0 * states)[:, None]
    >>> model = hw.SemiMarkov(2, max_duration=20, random_state=0).fit(rows)
    >>> np.sort(model.expected_durations_).round().tolist()
    [5.0, 12.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **{
            name: given
            for name, given in FamilyHMM._parameter_constraints.items()
            if name not in ("startprob_prior", "transmat_prior", "params", "init_params", "start_weight")
        },
        "n_components": [Interval(numbers.Integral, 2, None, closed="left")],
        "emission": [StrOptions({"gaussian", "poisson"})],
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "min_covar": [Interval(numbers.Real, 0.0, None, closed="left")],
        "duration": [StrOptions(set(LAWS))],
        "max_duration": [Interval(numbers.Integral, 2, None, closed="left")],
        "duration_prior": [Interval(numbers.Real, 0.0, None, closed="neither")],
    }
    _shapes = ("emission", "covariance_type", "duration", "max_duration")
    _traits = replace(
        FamilyHMM._traits,
        finds_number=False,
        shape_parameters=("n_components", *_shapes),
        prior_parameters=("duration_prior",),
        floor_parameters=("min_covar",),
        merge_parameters=("n_components", "half_life", "lag", *_shapes, "min_covar", "duration_prior"),
        answers=("startprob_", "transmat_", "durations_"),
    )
    _letters = "ste"
    _emission_names: ClassVar[dict[str, str]] = {"e": "emissions_"}

    params = init_params = "ste"
    startprob_prior = transmat_prior = start_weight = None

    def __init__(
        self,
        n_components: int = 2,
        *,
        emission: str = "gaussian",
        covariance_type: str = "diag",
        min_covar: float = 1e-6,
        duration: str = "negative-binomial",
        max_duration: int = 30,
        duration_prior: float = 1.0,
        decoder: str = "viterbi",
        random_state: RandomState = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: int = 0,
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | str = "auto",
        lag: int = 50,
        n_threads: int | None = None,
        implementation: str = "log",
    ) -> None:
        self.n_components = n_components
        self.emission = emission
        self.covariance_type = covariance_type
        self.min_covar = min_covar
        self.duration = duration
        self.max_duration = max_duration
        self.duration_prior = duration_prior
        self.decoder = decoder
        self.random_state = random_state
        self.n_iter = n_iter
        self.tol = tol
        self.verbose = verbose
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.lag = lag
        self.n_threads = n_threads
        self.implementation = implementation

    @property
    def _describer(self) -> SemiMarkovDescriber:
        return SemiMarkovDescriber(self)

    def _check_parameters(self) -> None:
        if isinstance(self.n_components, numbers.Integral) and isinstance(self.max_duration, numbers.Integral):
            places = int(self.n_components) * int(self.max_duration)
            if places > MOST_PLACES:
                raise ValueError(f"n_components times max_duration must be at most {MOST_PLACES}, got {places}")
        super()._check_parameters()

    def _family(self, width: int) -> AnyFamily:
        if self.emission == "poisson":
            return Poisson(self.n_components, keeps_prior=False)
        return Gaussian(self.n_components, self.covariance_type, float(self.min_covar))

    def _described(self, width: int) -> Learner:
        learner = super()._described(width)
        plain, longest = cast(HiddenMarkov, learner.model), int(self.max_duration)
        chain = SemiMarkovChain(
            plain.n_components * longest, Repeated.of(plain.family, longest), lag=plain.lag, longest=longest,
            law=self.duration, duration_prior=float(self.duration_prior),
        )  # fmt: skip
        if not learner.algorithm.suits(chain):
            word = repr(self.algorithm) if isinstance(self.algorithm, str) else type(self.algorithm).__name__
            raise ValueError(f"SemiMarkov cannot be learned by {word}: use one of EM, such as 'auto', 'em' or 'online-em'")
        return replace(learner, model=chain)

    def _refuse_rows(self, rows: Array) -> Array:
        if self.emission == "poisson" and (rows < 0.0).any():
            raise ValueError(f"X must hold counts, which are not negative, got {np.nanmin(rows):g}")
        return rows

    def _conclude(self, end: Climb, content: bool, stacklevel: int | None = None) -> None:
        super()._conclude(end, content, stacklevel)
        for finding in self._describer.evidence().known:
            if finding.kind == "cut":
                logging.getLogger("headwater").warning(finding.sentence)

    # Parameters cannot be set by hand

    def _parameters_seen(self, name: str | None = None) -> ChainParameters:
        if not self._has_state():
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call 'fit' or 'partial_fit'")
        return super()._parameters_seen(name)

    def __sklearn_is_fitted__(self) -> bool:
        return self._has_state()

    def _emissions_given(self, letters: str, width: int) -> dict[str, Array]:
        return {}

    def _given_width(self) -> int:
        raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call 'fit' or 'partial_fit'")

    def _family_names(self) -> Mapping[str, str]:
        return {}

    def _given_shape(self, name: str, width: int) -> tuple[int, ...]:
        raise AssertionError("parameters cannot be set by hand")
