"""What hidden Markov models say of themselves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.component_description import (
    GaussianComponents,
    Limits,
    column_names,
    gaussian_components,
    gaussian_oddities,
    symbol_names,
    word_components,
)
from headwater.diagnostics.description import Description, Value
from headwater.diagnostics.health import Evidence
from headwater.diagnostics.health_counts import CountChecks
from headwater.diagnostics.health_gaussian import GaussianChecks, constant_columns
from headwater.diagnostics.intervals import mean_intervals
from headwater.estimators.describers.describer import Describer, GaussianView
from headwater.estimators.open_sequences import Follower
from headwater.estimators.reading import Folded


class ChainDescriber(Describer):
    """What every hidden Markov model says of itself: how frequent states are, and how long they last."""

    @abstractmethod
    def columns(self, states: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """What the table shows of these states: a word for it, the heads of the columns, and a line for each."""

    def row_scorer(self) -> Callable[..., Array]:
        """Return what scores one chunk after the other."""
        follower = Follower(self.model)  # sequences go on from chunk to chunk
        return lambda **chunk: follower.follow(**chunk)[0]

    def shares_of(self, folded: Folded) -> Array:
        """Return the shares of the components by what was folded."""
        return np.asarray(folded.statistics.emissions.count)

    def summary(self) -> tuple[str, list[str], list[list[str]]]:
        """Return a line about the model, and the head and the lines of a small table."""
        often = self.model.get_stationary_distribution()
        order = np.argsort(-often, kind="stable")
        word, columns, lines = self.columns(order[:8])
        stays = np.diag(self.model.transmat_)
        table = [
            [str(k), f"{often[k]:.3f}", f"{stays[k]:.3f}", *line] for k, line in zip(order[:8], lines, strict=True)
        ]  # fmt: skip
        if len(order) > 8:
            table.append(["...", f"{often[order[8:]].sum():.3f}", "", *[""] * len(columns)])
        warming = " (warming up)" if self.model._runtime.warming_up else ""
        rows = f"{self.model.n_samples_seen_:,} row{'s' if self.model.n_samples_seen_ != 1 else ''}"
        return (
            f"{rows} seen{warming}; states by frequency, with their {word}:",
            ["state", "often", "stays", *columns],
            table,
        )


class GaussianChainDescriber(ChainDescriber):
    """States over Gaussian rows."""

    def describe(self, limits: Limits) -> Description:
        """Describe components, matrices, curves and facts."""
        prior, statistics, count = self.model._belief()
        belief = self.model._gaussian.belief(prior.emissions, statistics.emissions.scaled(count))
        variances = np.diagonal(self.model.covars_, axis1=1, axis2=2)
        found = gaussian_components(
            column_names(self.model, self.model.n_features_in_), self.model.get_stationary_distribution(), self.model.means_,
            variances, limits,
            mean_intervals=lambda columns: mean_intervals(self.model._gaussian, belief, limits.level, columns),
        )  # fmt: skip
        return Description(**self.model._chain_parts(found))

    def evidence(self) -> Evidence:
        """Return what the health of the model is judged by."""
        family, width, k = self.model._gaussian, self.model.n_features_in_, self.model.n_components_
        each = family.n_parameters(width) / k

        def checks(rows: Array) -> GaussianChecks:
            names, parameters = column_names(self.model, width), self.model._read().parameters.emissions
            covariances, (prior, statistics, _) = family.covariances(parameters), self.model._belief()
            return GaussianChecks(
                rows, family.means(parameters), covariances, family.kind.matrix, names, each,
                0.0 if self.model._runtime.made_with["scale_columns"] else family.reg_covar, "min_covar", "state",
                constant_columns(statistics.emissions, prior.emissions, family.kind.matrix), family.spherical,
            )  # fmt: skip

        return self.model._chain_evidence(checks, each * (1.0 + 10.0 * width / k))

    def patterns(self) -> Array:
        """Return what components are in all columns (K, d)."""
        return self.model.means_

    def gaussians(self) -> GaussianView:
        """Return what has weights, means and covariances of Gaussians over the columns."""
        names = np.array(column_names(self.model, self.model.n_features_in_), dtype=object)
        return GaussianComponents(self.model.get_stationary_distribution(), self.model.means_, self.model.covars_, names)

    def oddities(self, row: Array, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first."""
        values = np.asarray(row, dtype=float)
        seen = np.flatnonzero(~np.isnan(values))
        if not len(seen):
            return ()
        names = [column_names(self.model, self.model.n_features_in_)[j] for j in seen]
        values, means, covars = values[seen], self.model.means_[:, seen], self.model.covars_[:, seen[:, None], seen]
        apart = values - means
        k = int(np.argmin(np.einsum("ki,kij,kj->k", apart, np.linalg.inv(covars), apart)))
        return gaussian_oddities(names, values, means[k], covars[k], most)

    def columns(self, states: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """Return what the table shows of these components: a word for it, heads of columns, and a line for each."""
        shown = min(6, self.model.n_features_in_)
        names = getattr(self.model, "feature_names_in_", [f"mean {j}" for j in range(shown)])[:shown]
        return (
            "means",
            [str(name) for name in names],
            [[f"{value:.4g}" for value in row[:shown]] for row in self.model.means_[states]],
        )


class CategoricalChainDescriber(ChainDescriber):
    """States over symbols."""

    def describe(self, limits: Limits) -> Description:
        """Describe components, matrices, curves and facts."""
        names = symbol_names(self.model, self.model.n_features_in_)
        found = word_components(names, self.model.get_stationary_distribution(), self.model.emissionprob_, limits)
        return Description(width="symbols", **self.model._chain_parts(found))

    def evidence(self) -> Evidence:
        """Return what the health of the model is judged by."""

        def checks(rows: Array) -> CountChecks:
            names = symbol_names(self.model, self.model.n_features_in_)
            return CountChecks(
                self.model.emissionprob_, rows[None], rows, names, word="state", unit="rows", over="symbols", single=False
            )

        return self.model._chain_evidence(checks, float(self.model.n_features_in_))

    def oddities(self, row: Array, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first."""
        if np.isnan(row).any():
            return ()
        symbol = int(np.ravel(row)[0])
        often = float(self.model.get_stationary_distribution() @ self.model.emissionprob_[:, symbol])
        return (Value(symbol_names(self.model, self.model.n_features_in_)[symbol], often),)

    def columns(self, states: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """Return what the table shows of these components: a word for it, heads of columns, and a line for each."""
        tops = [np.argsort(-row, kind="stable")[:6] for row in self.model.emissionprob_[states]]
        lines = [
            [f"{at}: {self.model.emissionprob_[state][at]:.2f}" for at in top] for state, top in zip(states, tops, strict=True)
        ]
        return "symbols", [f"top {place}" for place in range(1, len(tops[0]) + 1)], lines
