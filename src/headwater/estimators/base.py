"""What every streaming estimator shares: learning from chunks, reading, saving; nothing specific to one model."""

from __future__ import annotations

import numbers
import os
from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import Self, cast

from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from headwater.core.batch import Batch
from headwater.core.statistics import Array
from headwater.core.validation import one_line
from headwater.core.values import Row, Rows, Values
from headwater.diagnostics.component_description import Limits
from headwater.diagnostics.description import Description
from headwater.diagnostics.display import html_table, text_table
from headwater.diagnostics.health import Health, brief_lines
from headwater.estimators.calls import learns, learns_at_once, learns_by_chunk, reads
from headwater.estimators.component_count import start_branch
from headwater.estimators.describers.describer import Describer
from headwater.estimators.estimator_core import EstimatorCore
from headwater.estimators.race import Race
from headwater.policies.growth import Growth


class StreamingEstimator(EstimatorCore):
    """Base of the estimators: the public methods that all of them have. See `EstimatorCore` for what a subclass defines."""

    # Model files

    @reads
    def save(self, path: str | os.PathLike[str], *, raw_rows: bool = True) -> None:
        """Write the model to a file. `headwater.load` reads it and continues, also in mid-stream, as if it had never stopped.

        Parameters
        ----------
        path : str or path
            The file. It is replaced in one step, when all is written.
        raw_rows : bool, default=True
            Whether the file may hold rows of the data: those of an unfinished warm-up or sequence, and those of the reservoir.
            Without them, the model is saved as if the stream ended here.
        """
        from headwater.estimators.model_file import save

        save(self, path, raw_rows=raw_rows)

    @property
    @reads
    def holds_rows_(self) -> bool:
        """Whether raw rows are kept: in a warm-up, or because they wait for the rows after them."""
        self._check_stream()
        return self._runtime.holds_rows

    # Learning

    @learns_at_once
    def fit(self, X: Rows, y: Values = None, sample_weight: Values = None) -> Self:
        """Learn from all rows at once; what was learned before is dropped, unless `warm_start`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows: an array, or a pandas or polars frame of numbers.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is ignored.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, sample_weight)

    @learns_by_chunk
    def partial_fit(self, X: Rows, y: Values = None, sample_weight: Values = None) -> Self:
        """Learn a chunk of a stream, of any size; the result does not depend on how the stream was cut.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is ignored.

        Returns
        -------
        self : object
            The estimator.
        """
        self._learn_chunk(X, sample_weight)
        return self

    @learns_by_chunk
    def update(self, X: Rows, sample_weight: Values = None) -> Array:
        """Score each row by the model before it learns the row, and learn it; in one E-step, if it is exact.

        Parameters do not change within a batch, or between powers of two in the warm-up, so this is the prequential score of
        a stream. The first eight rows score NaN, since not even the scale is known. Variational algorithms return their lower
        bound of the log-density, which is close to it after enough rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is scored, but not learned.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Log-density of each row before it was learned.
        """
        return self._update(X, sample_weight)

    @learns_at_once
    def warm_start_from(self, X: Rows, sample_weight: Values = None, *, weight: float = 1.0) -> Self:
        """Find a start on a sample of any size, and end the warm-up; what was learned before is dropped.

        Models that share the start, as branches or copies of this model, can be merged without matching.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The sample.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; a row of weight 0 is ignored.
        weight : float, default=1.0
            Weight of the rows of the sample. Less than 1 if they will come again in the stream: they then only hold the start
            in place, and are not counted in `n_samples_seen_`.

        Returns
        -------
        self : object
            The estimator, at the beginning of a stream.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rows = np.random.default_rng(0).normal(size=(9000, 2))
        >>> start = hw.GaussianMixture(2, random_state=0).warm_start_from(rows[::9], weight=0.1)
        >>> parts = [start.branch().partial_fit(rows[part::3]) for part in range(3)]
        >>> hw.merge(parts).n_samples_seen_
        9000
        """
        return self._plant(X, sample_weight, weight)

    def branch(self) -> Self:
        """Return a copy that can learn separately and be merged later: its base is all that this model has learned.

        Branches of one model may learn on other machines; `headwater.merge` adds what each learned and counts what they share
        once. An unfinished warm-up ends in the branch.

        Returns
        -------
        model : estimator
            The branch; the model itself does not change.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> model = hw.GaussianMixture(2, random_state=0).partial_fit(rng.normal(size=(3000, 2)))
        >>> parts = [model.branch().partial_fit(rng.normal(size=(1000, 2))) for _ in range(3)]
        >>> hw.merge(parts).n_samples_seen_
        6000
        """
        self._check_stream()
        branched = copy(self)
        branched._runtime = start_branch(branched)
        return branched

    # One row

    @learns
    def learn_one(self, x: Row) -> Self:
        """Learn one row, given as an array or as a mapping from column names to values.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The row.

        Returns
        -------
        self : object
            The estimator.
        """
        return self._learn_one(x)

    @reads
    def score_one(self, x: Row) -> float:
        """Return the log-density of one row under the parameters of the last refresh.

        Parameters
        ----------
        x : array-like of shape (n_features,) or mapping
            The row.

        Returns
        -------
        score : float
            Its log-density.
        """
        row = self._one(x)
        learner = self._learner
        return float(learner.model.log_likelihood(self._quick_parameters(row.shape[1]), Batch(row), 1)[0])

    @learns
    def set_params(self, **params: object) -> Self:
        """Set parameters by their names, as scikit-learn has it.

        Parameters
        ----------
        **params
            The parameters.

        Returns
        -------
        self : object
            The estimator.
        """
        return cast(Self, super().set_params(**params))

    # What was learned

    @property
    @reads
    def n_samples_seen_(self) -> int:
        """Rows learned from so far, counted once however many passes were made."""
        self._check_stream()
        return self._runtime.rows

    @property
    @reads
    def n_components_(self) -> int:
        """Number of components: as given, or the number that was found."""
        check_is_fitted(self)
        if not self._has_state():
            return int(self.n_components)
        return int(self._read().model.n_components if self._runtime.grows else self._reader.n_components)

    @property
    @reads
    def growth_(self) -> Growth | None:
        """How the number of components was found, split by split; None if it was given, or found by a race."""
        check_is_fitted(self)
        return self._read().growth if self._has_state() and self._runtime.grows else None

    @property
    @reads
    def race_(self) -> Race | None:
        """How the numbers of components that "auto" tries compare; None if the number was given."""
        check_is_fitted(self)
        return self._runtime.race if self._has_state() else None

    # What it says of itself

    @property
    @abstractmethod
    def _describer(self) -> Describer:
        """The describer of the model."""

    @reads
    def describe(self, *, values: int = 12, components: int = 32, level: float = 0.9) -> Description:
        """Return what was learned, in parts that are the same for every model: for tables, reports and other programs.

        Parameters
        ----------
        values : int, default=12
            Most columns, words or coefficients to describe of each component: the most distinctive ones.
        components : int, default=32
            Most components to describe: the heaviest.
        level : float, default=0.9
            Probability of the credible intervals.

        Returns
        -------
        description : Description
            A frozen record; `to_dict` makes of it what JSON knows.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rows = np.random.default_rng(0).normal(size=(3000, 2))
        >>> description = hw.GaussianMixture(1, random_state=0).partial_fit(rows).describe()
        >>> print(description.title)
        GaussianMixture (auto), 1 component: 3,000 rows of 2 columns seen
        >>> [value.name for value in description.components[0].values]
        ['x0', 'x1']
        """
        for name, wanted in (("values", values), ("components", components)):
            if isinstance(wanted, bool) or not isinstance(wanted, numbers.Integral) or wanted < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {one_line(wanted)}")
        if isinstance(level, bool) or not isinstance(level, numbers.Real) or not 0.0 < level < 1.0:
            raise ValueError(f"level must lie between 0 and 1, got {one_line(level)}")
        _check_learned(self, "described")
        describer, limits = self._describer, Limits(int(values), int(components), float(level))
        found, names = describer.describe(limits), describer.component_names()
        if names is not None:
            found = replace(found, components=tuple(replace(one, name=names[one.index]) for one in found.components))
        return replace(
            found,
            model=type(self).__name__,
            algorithm=self._learner.algorithm.word,
            rows=self._runtime.rows,
            columns=found.columns or self.n_features_in_,
            unit=self._traits.unit,
            level=limits.level,
            notes=(*describer.notes(found.component), *found.notes),
        )

    @property
    @reads
    def health_(self) -> Health:
        """The health of the model: findings about dead, duplicated, collapsed or starved components and drift, in sentences.

        It can be read at any time and changes nothing.
        """
        _check_learned(self, "judged")
        cache = self._runtime.cache
        known = {name: value for name, value in vars(self).items() if name not in ("_runtime", "_unrounded")}
        found = cache.health
        if found is None or not _are_same(found[0], known):
            found = cache.health = known, self._describer.judge_health()
        return found[1]

    @reads
    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)
        return (
            f"{text}\n{text_table(*self._describer.summary(), *brief_lines(self._describer.judge_health(brief=True)))}"
            if self._has_state()
            else text
        )

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        """What a notebook shows; scikit-learn's own version would leave out the table and the picture."""
        bundle = {"text/plain": repr(self)}
        return {**bundle, "text/html": self._repr_html_inner()} if get_config()["display"] == "diagram" else bundle

    @reads
    def _repr_html_inner(self) -> str:
        html = super()._repr_html_inner()
        return (
            html
            + html_table(*self._describer.summary(), *brief_lines(self._describer.judge_health(brief=True)))
            + self._describer.picture()
            if self._has_state()
            else html
        )


def _check_learned(model: StreamingEstimator, what: str) -> None:
    check_is_fitted(model)
    if not model._has_state():
        raise NotFittedError(f"this {type(model).__name__} has learned nothing that could be {what}: call partial_fit or fit")


def _are_same(one: dict[str, object], other: dict[str, object]) -> bool:
    """Whether two dicts hold the very same objects."""
    return one.keys() == other.keys() and all(value is other[name] for name, value in one.items())
