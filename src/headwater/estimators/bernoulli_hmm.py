"""BernoulliHMM: hidden Markov models of rows of yes and no, from sequences that may never end."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from headwater.core.algorithm import Algorithm
from headwater.core.statistics import Array
from headwater.core.values import RandomState, Values
from headwater.estimators.calls import learns, reads
from headwater.estimators.chains import check_numbers
from headwater.estimators.column_mixture import spread_prior
from headwater.estimators.family_hmm import FamilyHMM
from headwater.families.bernoulli import Bernoulli


class BernoulliHMM(FamilyHMM):
    """Hidden Markov model of rows of yes (1) and no (0): in each state every column has a probability of its own.

    Days with and without rain at some stations, alarms that are on or off, channels that are open or closed, whose habits
    change from time to time. NaN is a missing value. `partial_fit` goes on with an open sequence, and the answer does not
    depend on how it was cut.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of states. With 'auto' models with up to 32 states are compared on rows that they have not learned yet (see
        `race_`).
    startprob_prior, transmat_prior : float or array-like, optional
        Dirichlet parameters of the first state and of the transitions; 1 is flat. By default flat for passes of EM, and a
        tenth of a count in a stream.
    probability_prior : float or array-like, optional
        Probabilities that the prior expects: one for all columns, one for each (n_features,), or one for each state, too
        (n_components, n_features). Default: the shares of ones in the warm-up.
    probability_prior_weight : float, default=1.0
        Rows that the prior counts as.
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
    params, init_params : str, default='stp'
        Letters of what is learned, and of what is found at the start: startprob, transmat and probabilities. What
        `init_params` leaves out starts as it was set, and a second `fit` continues with it; if it was never set, it is found,
        too. A first state or a transition that is set to 0 stays impossible. What `params` leaves out stays as it was set, or
        as the start finds it.
    algorithm : str or Algorithm, default='auto'
        'auto' streams by online EM in blocks, and `fit` then goes on by passes of EM; 'em' (Baum-Welch), 'online-em' (in
        blocks), 'soem', 'boem', 'online-vb', 'vb'; or an object such as ``OnlineEM(batch_size=1000)``.
    half_life : float, optional
        Rows after which the weight of a row is halved.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins. With 0 it begins at once, at parameters that are
        all set.
    start_weight : float, optional
        Rows that parameters which are set count as: the stream begins as if it had learned so many, distributed as the start
        says. Default: as many as it takes to estimate every parameter, less those of the warm-up.
    lag : int, default=50
        Rows that a block looks ahead to.
    n_threads : int, optional
        Threads; all cores by default. The answer is the same.
    implementation : {'log', 'scaling'}, default='log'
        Accepted for compatibility with hmmlearn, and ignored.

    Attributes
    ----------
    n_components_ : int
        Number of components; with 'auto', that of the best model so far.
    race_ : Race
        How the numbers that 'auto' tries compare; None if n_components is a number.
    startprob_, transmat_ : ndarray
        What was learned of the chain. They may be set before learning.
    probabilities_ : ndarray of shape (n_components, n_features)
        Probability of 1 in each column in each state. May be set before learning.
    n_features_in_, n_samples_seen_ : int
        Columns, and rows learned from.
    monitor_ : Monitor
        How the last `fit` went.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> wet = np.arange(3000)[:, None] // 100 % 2
    >>> rain = rng.random((3000, 3)) < 0.1 + 0.7 * wet
    >>> model = hw.BernoulliHMM(2, random_state=0)
    >>> for chunk in np.split(rain, 10):
    ...     model = model.partial_fit(chunk)
    >>> np.sort(model.probabilities_[:, 0]).round(1).tolist()
    [0.1, 0.8]
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **FamilyHMM._parameter_constraints,
        "probability_prior": [None, "array-like", Interval(numbers.Real, 0.0, 1.0, closed="neither")],
        "probability_prior_weight": [Interval(numbers.Real, 0.0, None, closed="neither")],
    }
    _traits = replace(
        FamilyHMM._traits,
        prior_parameters=(*FamilyHMM._traits.prior_parameters, "probability_prior", "probability_prior_weight"),
        merge_parameters=(*FamilyHMM._traits.merge_parameters, "probability_prior", "probability_prior_weight"),
        answers=("startprob_", "transmat_", "probabilities_"),
    )
    _letters = "stp"
    _emission_names: ClassVar[dict[str, str]] = {"p": "probabilities_"}

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        startprob_prior: Values = None,
        transmat_prior: Values = None,
        probability_prior: Values = None,
        probability_prior_weight: float = 1.0,
        decoder: str = "viterbi",
        random_state: RandomState = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "stp",
        init_params: str = "stp",
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | str = "auto",
        start_weight: float | None = None,
        lag: int = 50,
        n_threads: int | None = None,
        implementation: str = "log",
    ) -> None:
        super().__init__(
            n_components,
            startprob_prior=startprob_prior,
            transmat_prior=transmat_prior,
            decoder=decoder,
            random_state=random_state,
            n_iter=n_iter,
            tol=tol,
            verbose=verbose,
            params=params,
            init_params=init_params,
            algorithm=algorithm,
            half_life=half_life,
            warm_up=warm_up,
            start_weight=start_weight,
            lag=lag,
            n_threads=n_threads,
            implementation=implementation,
        )
        self.probability_prior = probability_prior
        self.probability_prior_weight = probability_prior_weight

    def _family(self, width: int) -> Bernoulli:
        guess = spread_prior(self.probability_prior, int(self.n_components), width, "probability_prior", most=1.0)
        return Bernoulli(self.n_components, guess, self.probability_prior_weight)

    def _refuse_rows(self, rows: Array) -> Array:
        wrong = rows[(rows != 0.0) & (rows != 1.0) & ~np.isnan(rows)]
        if wrong.size:
            raise ValueError(f"X must hold 0 and 1 only, or NaN for what is missing, got {wrong[0]:g}")
        return rows

    # What was learned

    @property
    @reads
    def probabilities_(self) -> Array:
        """Probability of 1 in each column in each state (n_components, n_features). May be set before learning."""
        if not self._has_state():
            self._parameters_seen("probabilities_")
            return self._given["probabilities_"]
        return np.exp(self._emissions.log_ones)

    @probabilities_.setter
    @learns
    def probabilities_(self, value: Values) -> None:
        chances = check_numbers(value, (self._given_number(), -1), "probabilities_")
        if chances.min(initial=0.0) < 0.0 or chances.max(initial=0.0) > 1.0:
            wrong = chances[(chances < 0.0) | (chances > 1.0)][0]
            raise ValueError(f"probabilities_ must lie between 0 and 1, got {wrong:g}")
        self._give("probabilities_", chances)

    def _moments(self) -> tuple[Array, Array]:
        chance = self.probabilities_
        return chance, chance * (1.0 - chance)

    @reads
    def sample(
        self, n_samples: int = 1, random_state: RandomState = None, currstate: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw a sequence.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState instance or None, optional
            By default that of the model.
        currstate : int, optional
            The state to begin in.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows, of 0 and 1.
        states : ndarray of shape (n_samples,)
            The states they came from.
        """
        X, states = super().sample(n_samples, random_state, currstate)
        return X.astype(np.int64), states

    # Parameters that are set by hand

    def _given_width(self) -> int:
        return int(self._given["probabilities_"].shape[1])

    def _family_names(self) -> Mapping[str, str]:
        return {"probabilities_": "probabilities"}

    def _given_shape(self, name: str, width: int) -> tuple[int, ...]:
        return int(self.n_components), width
