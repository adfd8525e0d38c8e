"""What a mixture answers about rows with gaps: condition, impute, predict a column from the others, explain.

A mixture of a family that offers `AnswersGaps` (families/capabilities.py) has these methods if this class is one of its bases.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from headwater.core.chunk import Chunk
from headwater.core.gapped_rows import GappedRows
from headwater.core.statistics import Array
from headwater.core.validation import one_line
from headwater.core.values import RandomState, Rows, Values
from headwater.diagnostics.component_description import column_names
from headwater.estimators.calls import answers_at_once, answers_by_chunk, reads
from headwater.estimators.conditional import Conditional
from headwater.estimators.explanation import Explanation
from headwater.estimators.filled_containers import fill_container
from headwater.estimators.filled_tables import fill_table
from headwater.estimators.gap_rows import check_gap_rows
from headwater.estimators.table_conditional import TableConditional
from headwater.estimators.table_schema import TableSchema
from headwater.families.capabilities import AnswersGaps, ExpectsGaps
from headwater.families.conditional_law import Mask

if TYPE_CHECKING:
    from headwater.estimators.column_views import ColumnClassifier, ColumnRegressor

METHODS = ("mean", "mode", "sample")


if TYPE_CHECKING:
    from headwater.estimators.mixture import MixtureEstimator as Beside
else:
    Beside = object  # the classes with these answers have the other methods of mixtures from another base


class GapAnswers(Beside):
    """Answers about rows with gaps, for mixtures."""

    def _gap_rows(self, X: Rows) -> tuple[Array, Mask]:
        """Return rows as the model knows its columns, NaN for what is missing, and which entries are to be told."""
        rows = check_gap_rows(self, X)
        return rows, np.isnan(rows)

    @property
    def _words(self) -> TableSchema | None:
        """What the columns of a table are; None of a model of numbers."""
        return None

    @answers_at_once
    def condition(self, X: Rows, *, predictive: bool = False) -> Conditional | TableConditional:
        """Return the distribution of the missing entries of rows, given the observed ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows; NaN, None or null for what is missing.
        predictive : bool, default=False
            Whether to integrate out the uncertainty of the parameters, as `predictive_score_samples` does: Student's t in place
            of normal laws, whose intervals are wider where few rows were learned.

        Returns
        -------
        law : Conditional, or TableConditional of a model of tables
            Weights of the components, means, variances, intervals, modes, draws and densities of the missing entries.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=4000)
        >>> model = hw.GaussianMixture(1, random_state=0).fit(np.column_stack([x, x + 3.0]))
        >>> model.condition([[np.nan, 4.0]]).mean.round(2).tolist()
        [[1.0, 4.0]]
        """
        law = _condition(self, X, predictive)
        return law if self._words is None else TableConditional(law, self._words, _names(self, law.mean.shape[1]), self)

    @answers_by_chunk
    def impute(self, X: Rows, method: Literal["mean", "mode", "sample"] = "mean", random_state: RandomState = None) -> Any:
        """Return the rows with their gaps filled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows; NaN, None or null for what is missing.
        method : {"mean", "mode", "sample"}, default="mean"
            The conditional mean, which has the least squared error, and of categories and flags the most probable one; the most
            probable values of all gaps of a row together, which are whole numbers for counts; or a draw, which keeps the spread
            of the columns and how they hang together.
        random_state : int, RandomState, Generator or None
            Seed of the draws.

        Returns
        -------
        X : ndarray or data frame
            The rows, in the container that came in, with its types, names and index. Observed values are as they were. A column
            of a type for whole numbers gets whole numbers. Columns that a model of tables leaves out keep their gaps.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=4000)
        >>> model = hw.GaussianMixture(1, random_state=0).fit(np.column_stack([x, x + 3.0]))
        >>> model.impute(np.array([[np.nan, 4.0], [2.0, np.nan]])).round(2).tolist()
        [[1.0, 4.0], [2.0, 5.0]]
        """
        if not isinstance(method, str) or method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {one_line(method, 60)}")
        words = self._words
        if method == "mean" and words is None and isinstance(_family(self), ExpectsGaps):
            missing, filled = _expect(self, X)
            return fill_container(X, missing, filled)
        law = _condition(self, X, predictive=False)
        if method == "sample":
            skip = X.start * (law.mean.shape[1] + 2) if isinstance(X, Chunk) else 0
            filled = law.sample(1, _after(random_state, skip))[0]
        else:
            filled = law.mode() if method == "mode" else law.mean
        return fill_container(X, law.missing, filled) if words is None else fill_table(X, law.missing, filled, words)

    @answers_at_once
    def explain(self, X: Rows, *, level: float = 0.9, predictive: bool = False) -> Explanation:
        """Return how odd each entry of the rows is, given the other columns of its row, and what they expect.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows; NaN, None or null for what is missing.
        level : float, default=0.9
            Probability of the intervals `low` to `high`.
        predictive : bool, default=False
            Whether to integrate out the uncertainty of the parameters.

        Returns
        -------
        reasons : Explanation
            Tail probabilities, surprises, expected values and intervals of all entries, and pairs that are odd together.

        Examples
        --------
        >>> import numpy as np
        >>> import headwater as hw
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=4000)
        >>> model = hw.GaussianMixture(1, random_state=0).fit(np.column_stack([x, x + 0.1 * rng.normal(size=4000)]))
        >>> reasons = model.explain([[1.0, 1.0], [1.0, -1.0]])
        >>> (reasons.tail < 1e-6).tolist()
        [[False, False], [True, True]]
        """
        law = _condition(self, X, predictive)
        return Explanation(law, _names(self, law.mean.shape[1]), level, self._words)

    @reads
    def regressor(self, column: str | int) -> ColumnRegressor:
        """Return a regressor that predicts one column from the others, as scikit-learn has them, fitted.

        Parameters
        ----------
        column : str or int
            Name or place of the column.

        Returns
        -------
        regressor : ColumnRegressor
            `predict`, `predict_interval` and `score` for rows without that column; its `fit` learns a new mixture.
        """
        from headwater.estimators.column_views import ColumnRegressor

        return ColumnRegressor(self, column)._bound()

    @reads
    def classifier(self, column: str | int, classes: Values = None) -> ColumnClassifier:
        """Return a classifier that predicts one column of few values from the others, as scikit-learn has them, fitted.

        Parameters
        ----------
        column : str or int
            Name or place of the column.
        classes : array-like of shape (n_classes,), optional
            The values that the column takes. A column of categories or flags knows them; of a column of numbers the mixture
            does not know which they were.

        Returns
        -------
        classifier : ColumnClassifier
            `predict`, `predict_proba` and `score` for rows without that column; its `fit` learns a new mixture.
        """
        from headwater.estimators.column_views import ColumnClassifier

        return ColumnClassifier(self, column)._bound(classes)


def _condition(model: GapAnswers, X: Rows, predictive: bool) -> Conditional:
    rows, missing = model._gap_rows(X)
    mixture = model._model
    parameters = mixture.readout("predictive", *model._proper_belief()) if predictive else model._read().parameters
    return Conditional(cast(AnswersGaps, mixture.family), parameters.log_weights, parameters.components, rows, missing)


def _family(model: GapAnswers) -> object:
    return model._model.family


def _expect(model: GapAnswers, X: Rows) -> tuple[Mask, Array]:
    """Return which entries are missing, and the rows with gaps filled by their conditional means."""
    rows, missing = model._gap_rows(X)
    parameters, family = model._read().parameters, cast(ExpectsGaps, model._model.family)
    return missing, family.expect_gaps(parameters.components, parameters.log_weights, GappedRows(rows, missing))


def _names(model: GapAnswers, width: int) -> list[str]:
    return column_names(model, width)


def _after(random_state: RandomState, skip: int) -> RandomState:
    """A random generator that is advanced by as many numbers as the rows before a chunk use."""
    if not isinstance(random_state, numbers.Integral):
        return random_state
    generator = np.random.default_rng(int(random_state))
    generator.bit_generator.advance(skip)
    return generator
