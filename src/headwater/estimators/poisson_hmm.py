"""PoissonHMM: hidden Markov models of counts, from sequences that may never end."""

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
from headwater.families.poisson import Poisson

NOT_NEGATIVE = Interval(numbers.Real, 0.0, None, closed="left")


class PoissonHMM(FamilyHMM):
    """Hidden Markov model of counts: in each state every column is Poisson with a rate of its own.

    Earthquakes a year, calls an hour, goals a match, whose rates change from time to time. Names and meanings are hmmlearn's.
    Beyond it, `partial_fit` goes on with an open sequence, and the answer does not depend on how it was cut. NaN is a missing
    count.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of states. With 'auto' models with up to 32 states are compared on rows that they have not learned yet (see
        `race_`).
    startprob_prior, transmat_prior : float or array-like, optional
        Dirichlet parameters of the first state and of the transitions; 1 is flat. By default flat for passes of EM, and a
        tenth of a count in a stream.
    lambdas_prior, lambdas_weight : float or array-like, optional
        The Gamma prior of the rates: events that were seen before, in so many rows. By default there is none for passes of EM,
        and in a stream a row with the mean of the warm-up. 0 and 0, hmmlearn's default, mean the same.
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
    params, init_params : str, default='stl'
        Letters of what is learned, and of what is found at the start: startprob, transmat and lambdas. What `init_params`
        leaves out starts as it was set, and a second `fit` continues with it; if it was never set, it is found, too. A first
        state or a transition that is set to 0 stays impossible. What `params` leaves out stays as it was set, or as the start
        finds it.
    algorithm : str or Algorithm, default='auto'
        'auto' streams by online EM in blocks, and `fit` then goes on by passes of EM; 'em' (Baum-Welch), 'online-em' (Cappé's
        recursion, step by step), 'soem', 'boem', 'online-vb', 'vb'; or an object such as ``OnlineEM(batch_size=1000)``.
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
    lambdas_ : ndarray of shape (n_components, n_features)
        Rate of each column in each state. May be set before learning.
    n_features_in_, n_samples_seen_ : int
        Columns, and rows learned from.
    monitor_ : Monitor
        How the last `fit` went.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> busy = np.repeat([0, 1, 0, 1, 0, 1], 500)
    >>> calls = rng.poisson(np.where(busy, 9.0, 2.0))[:, None]
    >>> model = hw.PoissonHMM(2, random_state=0)
    >>> for chunk in np.split(calls, 10):
    ...     model = model.partial_fit(chunk)
    >>> np.sort(model.lambdas_.ravel()).round().tolist()
    [2.0, 9.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **FamilyHMM._parameter_constraints,
        "lambdas_prior": [None, "array-like", NOT_NEGATIVE],
        "lambdas_weight": [None, "array-like", NOT_NEGATIVE],
    }
    _traits = replace(
        FamilyHMM._traits,
        prior_parameters=(*FamilyHMM._traits.prior_parameters, "lambdas_prior", "lambdas_weight"),
        merge_parameters=(*FamilyHMM._traits.merge_parameters, "lambdas_prior", "lambdas_weight"),
        answers=("startprob_", "transmat_", "lambdas_"),
    )
    _letters = "stl"
    _emission_names: ClassVar[dict[str, str]] = {"l": "lambdas_"}

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        startprob_prior: Values = None,
        transmat_prior: Values = None,
        lambdas_prior: Values = None,
        lambdas_weight: Values = None,
        decoder: str = "viterbi",
        random_state: RandomState = None,
        n_iter: int = 10,
        tol: float = 1e-2,
        verbose: int = 0,
        params: str = "stl",
        init_params: str = "stl",
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
        self.lambdas_prior = lambdas_prior
        self.lambdas_weight = lambdas_weight

    def _family(self, width: int) -> Poisson:
        events, rows = self.lambdas_prior, self.lambdas_weight
        none = [value is None or np.all(np.asarray(value) == 0.0) for value in (events, rows)]
        if all(none):
            return Poisson(self.n_components, keeps_prior=False)
        if any(none):
            given, other = ("lambdas_prior", "lambdas_weight") if none[1] else ("lambdas_weight", "lambdas_prior")
            raise ValueError(f"{given} must come with {other}, got the first alone")
        shape = spread_prior(events, int(self.n_components), width, "lambdas_prior")
        rate = spread_prior(rows, int(self.n_components), width, "lambdas_weight")
        assert shape is not None and rate is not None
        if np.ndim(rate) and np.min(rate) < np.max(rate):
            raise ValueError("lambdas_weight must be one number, or the same for all rates, got different ones")
        weight = float(np.max(rate))
        return Poisson(self.n_components, None, shape / weight, weight)

    def _refuse_rows(self, rows: Array) -> Array:
        if (rows < 0.0).any():
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}: X holds {np.nanmin(rows):g}, and counts are wanted"
            )
        return rows

    # What was learned

    @property
    @reads
    def lambdas_(self) -> Array:
        """Rate of each column in each state (n_components, n_features). May be set before learning (see `init_params`)."""
        if not self._has_state():
            self._parameters_seen("lambdas_")
            return self._given["lambdas_"]
        return np.array(self._emissions.rates)

    @lambdas_.setter
    @learns
    def lambdas_(self, value: Values) -> None:
        rates = check_numbers(value, (self._given_number(), -1), "lambdas_")
        if rates.min(initial=0.0) < 0.0:
            raise ValueError(f"lambdas_ must hold rates, which are not negative, got {rates.min():g}")
        self._give("lambdas_", rates)

    def _moments(self) -> tuple[Array, Array]:
        return self.lambdas_, self.lambdas_

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
            The counts.
        states : ndarray of shape (n_samples,)
            The states they came from.
        """
        X, states = super().sample(n_samples, random_state, currstate)
        return X.astype(np.int64), states

    # Parameters that are set by hand

    def _given_width(self) -> int:
        return int(self._given["lambdas_"].shape[1])

    def _family_names(self) -> Mapping[str, str]:
        return {"lambdas_": "rates"}

    def _given_shape(self, name: str, width: int) -> tuple[int, ...]:
        return int(self.n_components), width
