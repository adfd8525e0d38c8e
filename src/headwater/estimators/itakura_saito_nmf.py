"""ItakuraSaitoNMF: components of power spectra, from a stream of frames."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.algorithms import resolve
from headwater.core.contracts import StartSettings
from headwater.core.learner import Learner
from headwater.core.simulated_algorithms import SimulatedEM, SurrogateEM
from headwater.core.validation import check_row, check_rows
from headwater.core.values import Matrix, RandomState, Row, Values
from headwater.estimators.describers.factors import SpectrumDescriber
from headwater.estimators.spectra_answers import SpectraAnswers, check_powers
from headwater.estimators.start_parameters import check_start_weight, given_factors
from headwater.estimators.traits import Taken
from headwater.models.spectra import SHAPES, Spectra

if TYPE_CHECKING:
    from sklearn.utils import Tags


# What words mean for spectra where they mean something else for topics.
ALGORITHMS = {"auto": SurrogateEM(), "simulated-em": SimulatedEM(batch_size=5)}


class ItakuraSaitoNMF(SpectraAnswers):
    """Itakura-Saito NMF that learns components of power spectra from a stream of frames, or from all frames at once.

    A frame is a row of powers, such as the squared magnitudes of a short-time Fourier transform. Its bins are independent and
    exponential, with a mean that is a weighted sum of `n_components` spectra: the sound of several sources whose parts are
    Gaussian (Févotte, Bertin and Durrieu, 2009). Weights have an inverse Gamma prior and are integrated out, so that spectra
    are not fitted to point estimates of them: simulated online EM draws the weights of a frame from their posterior and
    averages the resulting statistics, batch by batch. A frame is seen once and not kept. The same seed gives the same
    components for any number of threads.

    Parameters
    ----------
    n_components : int or 'auto', default=10
        Number of spectra. With 'auto' models with up to 32 spectra are compared on rows that they have not learned yet (see
        `race_`).
    weight_shape : float or 'learn', default='learn'
        Shape of the inverse Gamma prior of the weights, from 0.1 to 50: the smaller, the more frames differ in them. If it is
        learned, it is the same for all components. A value much smaller than the truth lets components die out.
    weight_scale : float or 'learn', default='learn'
        Scale of that prior. Only its product with the spectrum of a component is identified: 'learn' gives spectra of mean 1
        and a scale for each component; a number is the scale of all weights.
    components_init : array-like of shape (n_components, n_features), optional
        Spectra to start from, for weights of scale 1, or of `weight_scale` if that is a number.
    start_weight : float, optional
        Frames that the start counts as: the stream begins as if it had learned so many, distributed as the start says. Default:
        as many as it takes to estimate every parameter, less those of the warm-up.
    component_prior : float, default=0.0
        Frames that the prior of the components counts as: inverse Gamma, about the mean spectrum of the warm-up frames, each
        scaled to the same power. 0 is maximum likelihood. The prior keeps components from being much quieter in a bin than that
        spectrum, which sounds often are: use a small number, if any.
    tol : float, default=1e-4
        `fit` ends when two passes raise the score of the frames by less than this part of it. With 0 it makes all passes.
    max_iter : int, default=20
        Most passes over the frames in `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.
    warm_start : bool, default=False
        Whether `fit` continues from the result of the last one.
    verbose : int, default=0
        Whether to print the passes of `fit`, and how much.
    verbose_interval : int, default=1
        Passes between two lines.
    algorithm : str or algorithm object, default='auto'
        'auto' (simulated online EM with longer steps; `fit` makes passes) or 'simulated-em' (its one pass, with the steps of
        EM, which are short where components overlap). `SimulatedEM(sampler='gibbs')` has the other sampler. The proposals of
        Metropolis are made for each frame, unless `kappa` is given: then they are a random walk on log-weights with steps
        1 / sqrt(kappa), which wants a `burn_in` of some dozens.
    half_life : float, optional
        Frames after which the weight of a frame is halved, for streams that drift.
    warm_up : int or 'auto', default='auto'
        Frames that a start is found on before learning from the stream begins. The model can be read meanwhile.
        With 0 the stream begins at once, at `components_init`.
    n_threads : int, optional
        Threads for the frames of a batch; all cores by default. The result does not depend on it.
    parts : int, default=1
        Parts that rows are dealt to in turns; each is learned on its own thread, and they are merged when the model is read.
        Unlike the number of threads, it changes the result.

    Attributes
    ----------
    n_components_ : int
        Number of components; with 'auto', that of the best model so far.
    race_ : Race
        How the numbers that 'auto' tries compare; None if n_components is a number.
    components_ : ndarray of shape (n_components, n_features)
        The spectra.
    weight_scale_ : ndarray of shape (n_components,)
        Scale of the weights of each.
    weight_shape_ : float
        Shape of the prior of the weights.
    acceptance_rate_ : float
        Share of proposals that the Metropolis sampler accepted.
    merge_report_ : MergeReport
        What was done by `headwater.merge`, if the model comes from there.
    converged_, n_iter_, lower_bound_, lower_bounds_
        How the passes of `fit` went; dropped when more is learned. The bounds are the mean scores of the E-steps: the
        log-density of a frame given weights that were drawn, in units of the prior's spectrum.
    n_samples_seen_ : int
        Frames learned from.
    n_features_in_, feature_names_in_
        Columns seen.

    Notes
    -----
    The scales of the weights, and their shape, are chosen so that log-weights have the mean and the variance of the prior.
    Maximum likelihood would be dominated by frames in which a component is silent.

    Powers may be zero. Frames without power are counted, and nothing is learned from them. Bins that never had power are left
    out of all that is said of a frame, until they have some; in the others no component is taken to be more than 120 dB below
    its mean. Frames in other units give the same model in other units.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import ItakuraSaitoNMF
    >>> rng = np.random.default_rng(0)
    >>> spectra = np.array([[8.0, 4.0, 2.0, 1.0, 0.5, 0.1], [0.1, 0.2, 0.5, 1.0, 4.0, 8.0]])
    >>> model = ItakuraSaitoNMF(2, random_state=0)
    >>> for _ in range(20):
    ...     weights = 1.0 / rng.gamma(1.0, size=(200, 2))
    ...     model = model.partial_fit(weights @ spectra * rng.exponential(size=(200, 6)))
    >>> model.components_.argmax(axis=1).tolist()
    [0, 5]
    >>> int(model.transform([[80.0, 40.0, 20.0, 10.0, 5.0, 1.0]]).argmax())
    0
    """

    _traits = replace(
        SpectraAnswers._traits,
        unit="frames",
        column_word="bin ",
        prior_parameters=("component_prior",),
        merge_parameters=("n_components", "half_life", "weight_shape", "weight_scale", "component_prior"),
        answers=("components_", "weight_scale_"),
    )
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **SpectraAnswers._parameter_constraints,
        "weight_shape": [StrOptions({"learn"}), Interval(numbers.Real, *SHAPES, closed="both")],
        "weight_scale": [StrOptions({"learn"}), Interval(numbers.Real, 0.0, None, closed="neither")],
        "component_prior": [Interval(numbers.Real, 0.0, None, closed="left")],
    }

    @property
    def _describer(self) -> SpectrumDescriber:
        return SpectrumDescriber(self)

    def __init__(
        self,
        n_components: int | Literal["auto"] = 10,
        *,
        weight_shape: float | Literal["learn"] = "learn",
        weight_scale: float | Literal["learn"] = "learn",
        components_init: Values = None,
        start_weight: float | None = None,
        component_prior: float = 0.0,
        tol: float = 1e-4,
        max_iter: int = 20,
        random_state: RandomState = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 1,
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | Literal["auto"] = "auto",
        n_threads: int | None = None,
        parts: int = 1,
    ) -> None:
        self.n_components = n_components
        self.weight_shape = weight_shape
        self.weight_scale = weight_scale
        self.components_init = components_init
        self.start_weight = start_weight
        self.component_prior = component_prior
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.n_threads = n_threads
        self.parts = parts

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _described(self, width: int) -> Learner:
        self._check_parameters()
        shape = None if isinstance(self.weight_shape, str) else float(self.weight_shape)
        model = Spectra(self.n_components, shape, float(self.component_prior))
        factors = given_factors(self.components_init, self.n_components, width)
        if factors is not None and not isinstance(self.weight_scale, str):
            factors = factors * self.weight_scale
        algorithm = resolve(self.algorithm, model, type(self).__name__, ALGORITHMS)
        return Learner(
            model,
            algorithm,
            width,
            StartSettings(
                readout=algorithm.readout,
                factors=factors,
                weight=check_start_weight(self.start_weight, factors is not None),
            ),
            half_life=self.half_life,
            warm_up=None if self.warm_up == "auto" else int(self.warm_up),
            n_threads=self.n_threads,
            shards=int(self.parts),
        )

    def _checked(self, X: Taken) -> Matrix:
        return check_powers(check_rows(X, owner=type(self).__name__), "X", type(self).__name__)

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Matrix:
        return check_powers(check_row(x, names, width), "the row", type(self).__name__)
