"""What mixtures of counts and of sequences say of themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import SparseRows
from headwater.core.chunk import values_of
from headwater.core.statistics import Array
from headwater.core.values import Rows, Values
from headwater.diagnostics.component_description import (
    MATRIX_LIMIT,
    SYMBOL_LIMIT,
    Limits,
    column_names,
    count_oddities,
    heaviest_components,
    matrix_of,
    row_totals,
    stationary_distribution,
    step_components,
    symbol_names,
    word_components,
)
from headwater.diagnostics.description import Description, Value
from headwater.diagnostics.health import PRUNE_ADVICE, Evidence
from headwater.diagnostics.health_counts import CountChecks
from headwater.estimators.describers.mixture import MixtureDescriber
from headwater.estimators.sequences import check_sequences


class CountDescriber(MixtureDescriber):
    """What a mixture of counts says of itself."""

    def evidence(self) -> Evidence:
        """Return what the health of the model is judged by."""
        _, statistics, count = self.model._proper_belief()
        rows, words = self.model._rows_behind(), np.maximum(count * statistics.length, 0.0)
        width = self.model._learner.width

        def checks() -> CountChecks:
            names, groups = column_names(self.model, width), self.model._family.groups
            single, over = not groups.size, "steps" if groups.size else "columns"
            return CountChecks(
                self.model._probabilities, words, rows, names, groups, unit=self.model._traits.measure, over=over, single=single
            )  # fmt: skip

        return Evidence(
            rows, unit=self.model._traits.unit, checks=checks, work=float(len(rows)) ** 2 * width, remedy=PRUNE_ADVICE
        )


class SequenceDescriber(CountDescriber):
    """What a mixture of sequences says of itself."""

    def row_sizes(self, X: Rows, lengths: Values = None) -> Array:
        """Return how long each row is."""
        rows = values_of(X)
        return row_totals(rows) if isinstance(rows, SparseRows) else check_sequences(rows, lengths)[1].astype(float)


class MultinomialMixtureDescriber(CountDescriber):
    """Probabilities of the columns."""

    def describe(self, limits: Limits) -> Description:
        """Describe components, matrices, curves and facts."""
        names, weights = column_names(self.model, self.model.n_features_in_), self.model.weights_
        return Description(
            **word_components(
                names,
                weights,
                self.model.probabilities_,
                limits,
                self.model.probability_concentration_,
                self.weight_intervals(limits),
            )
        )

    def patterns(self) -> Array:
        """Return what components are in all columns (K, d)."""
        return self.model.probabilities_

    def oddities(self, row: Array, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first."""
        names, k = column_names(self.model, self.model.n_features_in_), int(self.model.predict_one(row))
        return count_oddities(names, row, self.model.probabilities_[k], most)

    def columns(self, components: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """Return what the table shows of these components: a word for it, heads of columns, and a line for each."""
        names = getattr(self.model, "feature_names_in_", None)
        lines = []
        for probabilities in self.model.probabilities_[components]:
            top = np.argsort(-probabilities, kind="stable")[:4]
            lines.append([f"{names[at] if names is not None else at} {probabilities[at]:.2g}" for at in top])
        return "most probable columns", [f"top {place}" for place in range(1, min(4, self.model.n_features_in_) + 1)], lines


class MarkovMixtureDescriber(SequenceDescriber):
    """First symbols and transitions."""

    def rows_seen(self) -> str:
        """Say what was learned from, and how much of it."""
        seen = self.model.n_samples_seen_
        return f"{seen:,} sequence{'s' if seen != 1 else ''} of {self.model.n_symbols_} symbols"

    def describe(self, limits: Limits) -> Description:
        """Describe components, matrices, curves and facts."""
        names, weights, steps = symbol_names(self.model, self.model.n_symbols_), self.model.weights_, self.model.transmat_
        found = step_components(
            names, weights, self.model._probabilities, self.model._probability_concentration, limits,
            self.weight_intervals(limits)
        )  # fmt: skip
        matrices = []
        for component in found["components"][:MATRIX_LIMIT]:
            often = stationary_distribution(steps[component.index])
            shown = np.sort(heaviest_components(often, SYMBOL_LIMIT))
            title = f"Steps of component {component.index}"
            matrices.append(matrix_of(title, names, steps[component.index], often, shown, component.index))
        return Description(width="symbols", columns=self.model.n_symbols_, **found, matrices=tuple(matrices))

    def oddities(self, row: object, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first."""
        symbols = np.asarray(row, dtype=np.int64)
        if not len(symbols):
            return ()
        names, k = symbol_names(self.model, self.model.n_symbols_), int(self.model.predict([symbols])[0])
        chances = np.append(self.model.startprob_[k, symbols[0]], self.model.transmat_[k, symbols[:-1], symbols[1:]])
        places = np.argsort(chances, kind="stable")[:most]
        steps = [
            f"{names[symbols[at - 1]]} → {names[symbols[at]]}" if at else f"starts with {names[symbols[0]]}" for at in places
        ]
        found = {step: Value(step, float(chances[at])) for step, at in zip(steps, places, strict=True)}
        return tuple(found.values())

    def columns(self, components: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """Return what the table shows of these components: a word for it, heads of columns, and a line for each."""
        start, steps = self.model.startprob_, self.model.transmat_
        lines = []
        for k in components:
            first, stay = int(np.argmax(start[k])), np.diagonal(steps[k])
            lines.append([f"{first} {start[k, first]:.2g}", f"{start[k] @ stay:.2g}"])
        return "first symbols", ["likeliest first", "then stays"], lines
