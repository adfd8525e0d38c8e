"""StudentMixture: clusters with heavy tails, in which odd rows count less."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.statistics import Array
from headwater.core.values import RandomState
from headwater.estimators.calls import reads
from headwater.estimators.describers.student_mixture import StudentMixtureDescriber
from headwater.estimators.family_mixture import FamilyMixture
from headwater.estimators.gap_answers import GapAnswers
from headwater.families.gaussian_covariance import COVARIANCES
from headwater.families.student import Student
from headwater.families.student_records import LEAST_DOF, MOST_DOF

if TYPE_CHECKING:
    from sklearn.utils import Tags


class StudentMixture(GapAnswers, FamilyMixture):
    """A mixture of Student's t that learns from streams, or from all rows at once: clusters with heavy tails.

    Each row has a precision of its own about that of its component, so that rows far from the centre count less: a broken row
    hardly moves a mean, and makes no covariance wide. How heavy the tails are is learned: with many degrees of freedom
    a component is a Gaussian, with few it has rows far out.

    Parameters
    ----------
    n_components : int or 'auto', default=1
        Number of components. With 'auto' it grows by splits that gain on rows that did not propose them (see `growth_`).
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        Each component its own scale matrix, all the same matrix, each its own diagonal, or each its own single number. The
        columns of a row are far out together, diagonal or not.
    degrees_of_freedom : {'each', 'shared'} or float, default='each'
        Whether each component learns how heavy its tails are, or one number is learned for all, or which number it is: 1 is
        Cauchy's law, many are Gaussian.
    reg_covar : float, default=1e-6
        Added to the diagonal of maximum-likelihood scales.
    tol : float, default=1e-3
        Passes of `fit` end when the objective per row gains less.
    max_iter : int, default=100
        Most passes over the data in `fit`. With 0 a start is taken as it was seeded.
    n_init : int, default=1
        Runs of `fit` from different starts; the best is kept. An online algorithm makes one run of one pass.
    init_params : {'kmeans', 'k-means++', 'random', 'random_from_data'}, default='kmeans'
        How a start is seeded.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.
    warm_start : bool, default=False
        Whether `fit` continues from the result of the last one.
    verbose : int, default=0
        Whether to print the passes of `fit`, and how much.
    verbose_interval : int, default=10
        Passes between two lines.
    algorithm : str or algorithm object, default='auto'
        'auto', 'em', 'soem', 'boem', 'online-em', 'vb' or 'online-vb'. There is no predictive density in closed form, and so no
        quasi-Bayes and no moment matching.
    half_life : float or 'auto', optional
        Rows after which the weight of a row is halved, for streams that drift. With 'auto' a component forgets when its rows
        score unlike kept rows say they should, and only then; see `half_life_`.
    warm_up : int or 'auto', default='auto'
        Rows that a start is found on before learning from the stream begins. The model can be read during the warm-up, too.
    weight_concentration_prior : float or array-like of shape (n_components,), optional
        Dirichlet parameter of the weights, per component. Default 1.
    n_threads : int, optional
        Threads for large chunks; all cores by default. The result does not depend on it.
    parts : int, default=1
        Parts that rows are dealt to in turns; each is learned on its own thread, and they are merged when the model is read.
    reservoir : int or 'auto', default='auto'
        Rows that a stream keeps, a random sample of all of them, by which algorithm 'auto' refines itself (see `health_`).

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Weight of each component.
    means_ : ndarray of shape (n_components, n_features)
        Centre of each component: its mean, where it has one.
    degrees_of_freedom_ : ndarray of shape (n_components,)
        How heavy the tails are: the fewer, the heavier. Between 0.25 and 10,000.
    scales_ : ndarray
        Scale of each component, shaped by `covariance_type`: what the covariance would be without tails.
    covariances_ : ndarray
        Covariance of each component, scale * dof / (dof - 2); infinite with two degrees of freedom or fewer.
    n_components_ : int
        Number of components; with 'auto', the number that was found.
    converged_, n_iter_, lower_bound_, lower_bounds_
        How the passes of `fit` went; dropped when more is learned.
    n_samples_seen_ : int
        Rows learned from.
    n_features_in_, feature_names_in_
        Number and names of the columns.

    Notes
    -----
    Rows may have gaps (NaN, None or NA): the observed columns of a row are Student's t, too, and so are the missing ones given
    them. A gap counts as a value that was seen where it was expected, so `vb` is a little too sure of columns with many gaps.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(4000, 2)) + 8.0 * rng.integers(2, size=(4000, 1))
    >>> rows[::100] = 500.0  # one row in a hundred is broken
    >>> model = hw.StudentMixture(2, random_state=0).partial_fit(rows)
    >>> np.sort(model.means_[:, 0]).round().tolist()
    [0.0, 8.0]
    >>> bool(hw.GaussianMixture(2, random_state=0).partial_fit(rows).means_.max() > 100.0)
    True
    """

    _traits = replace(
        FamilyMixture._traits,
        shape_parameters=(*FamilyMixture._traits.shape_parameters, "covariance_type", "degrees_of_freedom"),
        merge_parameters=(*FamilyMixture._traits.merge_parameters, "covariance_type", "degrees_of_freedom", "reg_covar"),
        floor_parameters=("reg_covar",),
        takes_gaps=True,
        answers=("weights_", "means_", "scales_", "degrees_of_freedom_"),
    )
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **FamilyMixture._parameter_constraints,
        "covariance_type": [StrOptions(set(COVARIANCES))],
        "reg_covar": [Interval(numbers.Real, 0.0, None, closed="left")],
        "degrees_of_freedom": [StrOptions({"each", "shared"}), Interval(numbers.Real, LEAST_DOF, MOST_DOF, closed="both")],
    }

    @property
    def _describer(self) -> StudentMixtureDescriber:
        return StudentMixtureDescriber(self)

    def __init__(
        self,
        n_components: int | Literal["auto"] = 1,
        *,
        covariance_type: Literal["full", "tied", "diag", "spherical"] = "full",
        degrees_of_freedom: Literal["each", "shared"] | float = "each",
        reg_covar: float = 1e-6,
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
        n_threads: int | None = None,
        parts: int = 1,
        reservoir: int | Literal["auto"] = "auto",
    ) -> None:
        super().__init__(
            n_components, tol=tol, max_iter=max_iter, n_init=n_init, init_params=init_params, random_state=random_state,
            warm_start=warm_start, verbose=verbose, verbose_interval=verbose_interval, algorithm=algorithm,
            half_life=half_life, warm_up=warm_up, weight_concentration_prior=weight_concentration_prior,
            n_threads=n_threads, parts=parts, reservoir=reservoir,
        )  # fmt: skip
        self.covariance_type = covariance_type
        self.degrees_of_freedom = degrees_of_freedom
        self.reg_covar = reg_covar

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _family_of(self, width: int) -> Student:
        return Student(self.n_components, self.covariance_type, self.reg_covar, self.degrees_of_freedom)

    # What was learned

    @property
    @reads
    def means_(self) -> Array:
        """Centre of each component (n_components, n_features)."""
        return self._student.means(self._components)

    @property
    @reads
    def scales_(self) -> Array:
        """Scale of each component, in the shape of `covariance_type`."""
        return self._student.scales(self._components)

    @property
    @reads
    def covariances_(self) -> Array:
        """Covariance of each component, in the shape of `covariance_type`; infinite where there is none.

        Tied scales with different tails make covariances that differ: (n_components, n_features, n_features).
        """
        scales, stretch = self.scales_, tail_stretch(self.degrees_of_freedom_)
        if self.covariance_type == "tied":
            return stretch[:, None, None] * scales
        return stretch.reshape(-1, *[1] * (scales.ndim - 1)) * scales

    @property
    @reads
    def degrees_of_freedom_(self) -> Array:
        """Degrees of freedom of each component (n_components,)."""
        return self._components.dof

    @property
    def _student(self) -> Student:
        family = self._model.family
        assert isinstance(family, Student)
        return family

    def _moments(self) -> tuple[Array, Array]:
        """Centres and squared scales (K, d): variances may be infinite."""
        means, scales = self.means_, self.scales_
        if self._student.gaussian.kind.matrix:
            return means, np.array(np.broadcast_to(np.diagonal(scales, axis1=-2, axis2=-1), means.shape))
        return means, np.array(np.broadcast_to(scales[:, None] if scales.ndim == 1 else scales, means.shape))


def tail_stretch(dof: Array) -> Array:
    """Return what tails of so many degrees of freedom multiply variances by."""
    with np.errstate(divide="ignore"):
        return np.where(dof > 2.0, dof / np.maximum(dof - 2.0, 0.0), np.inf)
