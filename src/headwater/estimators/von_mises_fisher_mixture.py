"""VonMisesFisherMixture: clusters of directions, such as embeddings that are compared by their cosine."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.statistics import Array
from headwater.core.validation import check_row, check_rows
from headwater.core.values import Matrix, RandomState, Row, Values
from headwater.estimators.calls import reads
from headwater.estimators.describers.von_mises_fisher_mixture import VonMisesFisherMixtureDescriber
from headwater.estimators.family_mixture import FamilyMixture
from headwater.estimators.precision import DTYPES, NarrowRows
from headwater.estimators.start_parameters import check_array
from headwater.estimators.traits import Taken
from headwater.families.bessel import ratio_by_argument
from headwater.families.von_mises_fisher import VonMisesFisher

SMALL = 1e-140  # lengths below it, and above its inverse, would lose their squares
ROUNDING = 1e-6  # of the length of a float32 row that was divided by its length
LARGE = 1024  # components times columns from which on products in float32 are worth it


class VonMisesFisherMixture(NarrowRows, FamilyMixture):
    """A mixture of directions that learns from streams, or from all rows at once.

    Of a row only its direction counts: rows are divided by their length, and a row of zeros, which has no direction, is
    refused. Each component is a von Mises-Fisher distribution on the sphere: a mean direction, and a concentration about it.
    So embeddings are clustered by the cosine of their angles, with a density, and with weights and widths that differ.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of components. With 'auto' it grows by splits that gain on rows that did not propose them (see `growth_`).
    tol : float, default=1e-3
        Passes of `fit` end when the objective per row gains less.
    max_iter : int, default=100
        Most passes over the data in `fit`. With 0 a start is taken as it was seeded.
    n_init : int, default=1
        Runs of `fit` from different starts; the best is kept. An online algorithm makes one run of one pass.
    init_params : {'kmeans', 'k-means++', 'random', 'random_from_data'}, default='kmeans'
        How a start is seeded, on the directions.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.
    warm_start : bool, default=False
        Whether `fit` continues from the result of the last one.
    verbose : int, default=0
        Whether to print the passes of `fit`, and how much.
    verbose_interval : int, default=10
        Passes between two lines.
    algorithm : str or algorithm object, default='auto'
        'auto', 'em', 'soem', 'boem', 'online-em', 'vb' or 'online-vb'. All find the mode or the mean under the prior.
    half_life : float or 'auto', optional
        Rows after which the weight of a row is halved, for streams that drift. With 'auto' a component forgets when its rows
        score unlike kept rows say they should, and only then; see `half_life_`.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins. The model can be read during the warm-up, too.
    weight_concentration_prior : float or array-like of shape (n_components,), optional
        Dirichlet parameter of the weights, per component. Default 1.
    mean_prior : array-like of shape (n_features,), optional
        Prior mean of the rows of each component, a vector shorter than 1. Default: zeros, which say nothing of directions.
    mean_precision_prior : float, optional
        Rows that the prior counts as. Default: the dispersion of one row of the warm-up, one minus the length of the mean of
        its group. So a component has about the dispersion of one row more than its rows have.
    n_threads : int, optional
        Threads for large chunks; all cores by default. The result does not depend on it.
    dtype : {None, 'float32', 'float64'}, default=None
        The type that products with rows are taken in, and of `score_samples` and `predict_proba`. With None both follow the
        rows: of many components and columns, products with float32, float16, int8 and uint8 are taken in float32, and float32
        rows get float32 answers. What is learned is kept in float64, and rounded when it is read if all rows were float32.
    parts : int, default=1
        Parts that rows are dealt to in turns; each is learned on its own thread, and they are merged when the model is read.
        Unlike the number of threads, it changes the result.
    reservoir : int or 'auto', default='auto'
        Rows that a stream keeps, a random sample of all of them, by which algorithm 'auto' refines itself (see `health_`).

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Weight of each component.
    mean_directions_ : ndarray of shape (n_components, n_features)
        Mean direction of each component, of length 1. Where the concentration is 0, any direction is as good.
    concentrations_ : ndarray of shape (n_components,)
        Concentration about the mean direction: 0 is uniform; large, rows have angles of about sqrt(n_features / concentration).
    n_components_ : int
        Number of components; with 'auto', the number that was found.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_, feature_names_in_
        Number and names of the columns.

    Notes
    -----
    Scores are log-densities with respect to the surface of the sphere.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> model = hw.VonMisesFisherMixture(2, random_state=0)
    >>> for _ in range(30):
    ...     rows = centres[rng.integers(2, size=100)] + 0.2 * rng.normal(size=(100, 3))
    ...     model = model.partial_fit(rows * rng.uniform(1.0, 9.0, size=(100, 1)))
    >>> np.abs(model.mean_directions_[np.argsort(model.mean_directions_[:, 1])]).round(1).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """

    _traits = replace(
        FamilyMixture._traits,
        prior_parameters=("weight_concentration_prior", "mean_prior", "mean_precision_prior"),
        merge_parameters=(*FamilyMixture._traits.merge_parameters, "mean_prior", "mean_precision_prior"),
        needs_directions=True,
        answers=("weights_", "mean_directions_", "concentrations_"),
    )
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **FamilyMixture._parameter_constraints,
        "dtype": [StrOptions(set(DTYPES)), None],
        "mean_prior": ["array-like", None],
        "mean_precision_prior": [None, Interval(numbers.Real, 0.0, None, closed="neither")],
    }

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        random_state: RandomState = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        algorithm: str | Algorithm = "auto",
        half_life: float | Literal["auto"] | None = None,
        warm_up: int | Literal["auto"] = "auto",
        weight_concentration_prior: float | None = None,
        mean_prior: Values = None,
        mean_precision_prior: float | None = None,
        n_threads: int | None = None,
        dtype: Literal["float32", "float64"] | None = None,
        parts: int = 1,
        reservoir: int | Literal["auto"] = "auto",
    ) -> None:
        super().__init__(
            n_components, tol=tol, max_iter=max_iter, n_init=n_init, init_params=init_params, random_state=random_state,
            warm_start=warm_start, verbose=verbose, verbose_interval=verbose_interval, algorithm=algorithm,
            half_life=half_life, warm_up=warm_up, weight_concentration_prior=weight_concentration_prior,
            n_threads=n_threads, parts=parts, reservoir=reservoir,
        )  # fmt: skip
        self.dtype = dtype
        self.mean_prior = mean_prior
        self.mean_precision_prior = mean_precision_prior

    @property
    def _describer(self) -> VonMisesFisherMixtureDescriber:
        return VonMisesFisherMixtureDescriber(self)

    def _family_of(self, width: int) -> VonMisesFisher:
        mean = None if self.mean_prior is None else check_array(self.mean_prior, (width,), "mean_prior")
        if mean is not None and not np.linalg.norm(mean) < 1.0:
            raise ValueError(
                f"mean_prior is the mean of rows of length 1, so it must be shorter than 1, got one of length "
                f"{np.linalg.norm(mean):g}"
            )
        return VonMisesFisher(self.n_components, mean, self.mean_precision_prior)

    def _is_large(self, width: int) -> bool:
        return not isinstance(self.n_components, str) and int(self.n_components) * width >= LARGE

    def _checked(self, X: Taken) -> Array:
        return unit_rows(super()._checked(X), type(self).__name__)

    def _checked_one(self, x: Row, names: Sequence[str] | None, width: int | None) -> Array:
        return unit_rows(check_row(x, names, width), type(self).__name__)

    def _check_stored(self, X: Matrix, width: int) -> None:
        if not isinstance(X, np.ndarray) or np.any(np.abs(np.linalg.norm(check_rows(X), axis=1) - 1.0) > ROUNDING):
            raise ValueError("it holds rows that are no directions")

    # What was learned

    @property
    @reads
    def mean_directions_(self) -> Array:
        """Mean direction of each component (n_components, n_features), of length 1."""
        natural = self._components.natural
        lengths = np.linalg.norm(natural, axis=1, keepdims=True)
        first = np.eye(1, natural.shape[1])
        return self._in_learned_type(np.where(lengths > 0.0, natural / np.where(lengths > 0.0, lengths, 1.0), first))

    @property
    @reads
    def concentrations_(self) -> Array:
        """Concentration of each component about its mean direction (n_components,)."""
        return self._in_learned_type(np.linalg.norm(self._components.natural, axis=1))

    def _moments(self) -> tuple[Array, Array]:
        known = self._in_doubles()
        directions, concentrations = known.mean_directions_, known.concentrations_
        width = directions.shape[1]
        across = ratio_by_argument(0.5 * width - 1.0, concentrations)  # the variance across the mean direction
        lengths = (across * concentrations)[:, None]
        variances = across[:, None] + (1.0 - width * across[:, None] - lengths**2) * directions**2
        return lengths * directions, np.maximum(variances, 0.0)


def unit_rows(rows: Array, owner: str) -> Array:
    """Return rows divided by their lengths, or refuse a row of zeros."""
    if rows.dtype != np.float64:
        rows = rows.astype(np.float32, copy=False)
    lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64))
    odd = np.flatnonzero((lengths < SMALL) | (lengths > 1.0 / SMALL))
    if odd.size:
        largest = np.abs(rows[odd]).max(axis=1)
        if not largest.all():
            row = int(odd[np.flatnonzero(largest == 0.0)[0]])
            raise ValueError(
                f"X has a row of zeros (first in row {row}), which has no direction: {owner} needs one of each row"
            )
        rows = rows.copy()
        rows[odd] /= largest[:, None]
        lengths[odd] = np.sqrt(np.einsum("nd,nd->n", rows[odd], rows[odd]))
    return np.asarray((rows / lengths[:, None]).astype(rows.dtype, copy=False))
