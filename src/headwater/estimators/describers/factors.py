"""What factor models say of themselves: topics and spectra."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.component_description import (
    Limits,
    column_names,
    count_left_out,
    count_oddities,
    curve_of,
    heaviest_components,
    word_components,
)
from headwater.diagnostics.description import Component, Description, Value
from headwater.diagnostics.health import Evidence
from headwater.diagnostics.health_counts import CountChecks
from headwater.diagnostics.health_signals import SpectrumChecks
from headwater.estimators.describers.describer import Describer
from headwater.estimators.reading import Folded


class FactorDescriber(Describer):
    """What every factor model says of itself: shares, and a table of the largest."""

    @abstractmethod
    def shares(self) -> Array:
        """The share of each factor."""

    @abstractmethod
    def shown(self) -> tuple[str, Array]:
        """A word for the largest columns of a factor, and the factors (K, V)."""

    def columns(self, factors: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """What the table shows of these factors: a word for it, the heads of the columns, and a line for each."""
        names = getattr(self.model, "feature_names_in_", ())  # an open vocabulary may have columns without one
        word, values = self.shown()
        tops = [np.argsort(-row, kind="stable")[:6] for row in values[factors]]
        lines = [[str(names[at]) if at < len(names) else str(at) for at in top] for top in tops]
        return word, [f"top {place}" for place in range(1, values.shape[1] + 1)][:6], lines

    def summary(self) -> tuple[str, list[str], list[list[str]]]:
        """Return a line about the model, and the head and the lines of a small table."""
        shares = self.shares()
        order = np.argsort(-shares, kind="stable")
        word, columns, lines = self.columns(order[:8])
        table = [[str(k), f"{shares[k]:.3f}", *line] for k, line in zip(order[:8], lines, strict=True)]
        if len(order) > 8:
            table.append(["...", f"{shares[order[8:]].sum():.3f}", *[""] * len(columns)])
        warming = " (warming up)" if self.model._runtime.warming_up else ""
        seen = self.model.n_samples_seen_
        rows = f"{seen:,} row{'s' if seen != 1 else ''} of {self.model.n_features_in_} columns"
        return f"{rows} seen{warming}; components by share, with their {word}:", ["component", "share", *columns], table


class TopicDescriber(FactorDescriber):
    """Topics and their words."""

    def describe(self, limits: Limits) -> Description:
        """Describe components, matrices, curves and facts."""
        names = column_names(self.model, self.model.n_features_in_)
        return Description(width="words",
            component="topic", weight="share of words",
            **word_components(names, self.shares(), self.model.topics_, limits, self.model.components_),
        )  # fmt: skip

    def evidence(self) -> Evidence:
        """Return what the health of the model is judged by."""
        _, statistics, count = self.model._belief()
        words = np.maximum(count * statistics.length, 0.0)
        documents = np.full(words.shape[1], max(count, 0.0))

        def checks() -> CountChecks:
            names = column_names(self.model, self.model.n_features_in_)
            return CountChecks(self.model.topics_, words, documents, names, word="topic")

        return Evidence(words[0], "topic", "words", checks=checks, work=float(len(documents)) ** 2 * self.model.n_features_in_)

    def patterns(self) -> Array:
        """Return what components are in all columns (K, d)."""
        return self.model.topics_

    def oddities(self, row: Array, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first."""
        names = column_names(self.model, self.model.n_features_in_)
        return count_oddities(names, row, self.model.transform_one(row) @ self.model.topics_, most)

    def shares_of(self, folded: Folded) -> Array:
        """Return the shares of the components by what was folded."""
        return np.asarray(folded.statistics.length[0])

    def shares(self) -> Array:
        """Return the shares of the components."""
        _, statistics, _ = self.model._belief()
        return np.asarray(statistics.length[0] / max(float(statistics.length.sum()), 1e-300))

    def shown(self) -> tuple[str, Array]:
        """Return what the table shows of each component, in words, and the values (K, d)."""
        return "most probable words", self.model.topics_


class SpectrumDescriber(FactorDescriber):
    """Spectra and their loudest bins."""

    def describe(self, limits: Limits) -> Description:
        """Describe components, matrices, curves and facts."""
        names, shares, spectra = column_names(self.model, self.model.n_features_in_), self.shares(), self.model.components_
        shown, bins = heaviest_components(shares, limits.components), np.arange(float(self.model.n_features_in_))
        overall = shares @ spectra
        components, curves = [], []
        for k in shown:
            top = np.argsort(-spectra[k], kind="stable")[: limits.values]
            lift = np.log(np.maximum(spectra[k, top], 1e-300) / np.maximum(overall[top], 1e-300))
            values = tuple(
                Value(names[at], float(spectra[k, at]), standing=float(one)) for at, one in zip(top, lift, strict=True)
            )
            components.append(Component(int(k), float(shares[k]), values))
            curves.append(curve_of(f"Spectrum of component {k}", bins, spectra[k], "bin", "power", int(k)))
        return Description(width="bins",
            weight="share of power", value="power", components=tuple(components), curves=tuple(curves),
            facts=(Value("shape of the weights", self.model.weight_shape_),),
            values_left_out=max(0, len(names) - limits.values), **count_left_out(shares, shown),
        )  # fmt: skip

    def evidence(self) -> Evidence:
        """Return what the health of the model is judged by."""
        _, statistics, count = self.model._belief()
        parameters = self.model._read().parameters
        parts = parameters.powers * statistics.down / parameters.scales[:, None]  # of each bin, by component
        rows = count * (parts / np.maximum(parts.sum(axis=0), 1e-300)).max(axis=1)
        k, width = parameters.powers.shape

        def checks() -> SpectrumChecks:
            return SpectrumChecks(parameters.powers, column_names(self.model, width))

        return Evidence(rows, unit="frames", shares=self.shares(), checks=checks, work=float(k * k * width))

    def oddities(self, row: object, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first."""
        frame, expected = np.asarray(row, dtype=float), self.model.transform_one(row) @ self.model.components_
        decibels = 10.0 * np.log10(np.maximum(frame, 1e-300) / np.maximum(expected, 1e-300))
        loud = np.argsort(-decibels, kind="stable")[:most]
        names = column_names(self.model, self.model.n_features_in_)
        return tuple(Value(names[at], float(frame[at]), standing=float(decibels[at] / 3.0)) for at in loud)

    def shares_of(self, folded: Folded) -> Array:
        """Return the shares of the components by what was folded."""
        parameters = folded.parameters
        return np.asarray((parameters.powers * folded.last_statistics.down).sum(axis=1) / parameters.scales)

    def shares(self) -> Array:
        """Return the shares of the components."""
        _, statistics, _ = self.model._belief()
        parameters = self.model._read().parameters
        shares = (parameters.powers * statistics.down).sum(axis=1) / parameters.scales
        return np.asarray(shares / max(float(shares.sum()), 1e-300))

    def shown(self) -> tuple[str, Array]:
        """Return what the table shows of each component, in words, and the values (K, d)."""
        return "loudest bins", self.model.components_
