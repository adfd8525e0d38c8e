"""What a mixture of regressions says of itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headwater.core.batch import Batch
from headwater.core.gapped_rows import as_gapped
from headwater.diagnostics.component_description import Limits, column_names, count_left_out, heaviest_components, interval_of
from headwater.diagnostics.description import Component, Description, Value
from headwater.diagnostics.health import PRUNE_ADVICE, Evidence
from headwater.diagnostics.health_gaps import gap_findings
from headwater.diagnostics.health_gaussian import GaussianChecks, constant_columns
from headwater.diagnostics.health_regression import RegressionChecks
from headwater.estimators.describers.mixture import TargetDescriber
from headwater.families.regression import input_totals
from headwater.families.regression_belief import moments


class RegressionMixtureDescriber(TargetDescriber):
    """Coefficients and noise of the lines."""

    def describe(self, limits: Limits) -> Description:
        """Describe components, matrices, curves and facts."""
        weights, coef, noise = self.model.weights_, self.model.coef_, np.sqrt(self.model.noise_variance_)
        names = column_names(self.model, self.model.n_features_in_)
        inputs, target = self.model._input_spreads()
        pull = coef * inputs / target
        columns = np.sort(np.argsort(-(weights @ pull**2), kind="stable")[: limits.values])
        intervals = self.model._coef_intervals(limits)
        shown, weight_intervals = heaviest_components(weights, limits.components), self.weight_intervals(limits)
        components = tuple(
            Component(
                int(k), float(weights[k]),
                (
                    *((Value("intercept", float(self.model.intercept_[k])),) if self.model._family.intercept else ()),
                    *(
                        Value(names[at], float(coef[k, at]), None, *interval_of(intervals[k], at), standing=float(pull[k, at]))
                        for at in columns
                    ),
                    Value("noise", float(noise[k])),
                ),
                *interval_of(weight_intervals, k),
            )
            for k in shown
        )  # fmt: skip
        return Description(
            value="coefficient",
            components=components,
            values_left_out=coef.shape[1] - len(columns),
            **count_left_out(weights, shown),
        )

    def evidence(self) -> Evidence:
        """Return what the health of the model is judged by."""
        prior, statistics, count = self.model._proper_belief()
        rows, family, parameters = self.model._rows_behind(), self.model._family, self.model._read().parameters.components
        k, width = len(rows), self.model._learner.width
        each = family.n_parameters(width) / k

        def checks() -> RegressionChecks:
            total = moments(statistics.scaled(count), family.intercept).sum(axis=0)[:-1, :-1]
            gate = None
            if parameters.gate is not None and family.gate is not None:
                floor = family.gate.reg_covar if self.model._modal else 0.0
                names, matrix = column_names(self.model, width - 1), family.gate.kind.matrix
                constant = constant_columns(input_totals(statistics), prior.components.gate, matrix)
                gate = GaussianChecks(
                    rows, parameters.gate.means, family.gate.covariances(parameters.gate), matrix, names, each, floor,
                    constant=constant, spherical=family.gate.spherical,
                )  # fmt: skip
            return RegressionChecks(
                rows, parameters.coef, self.model.noise_variance_, total / max(float(rows.sum()), 1e-300),
                self.model._input_spreads()[1] ** 2, prior.components.floor, each, gate,
            )  # fmt: skip

        names = [*column_names(self.model, width - 1), "the target"]
        gaps = tuple(gap_findings(statistics, count, names))
        return Evidence(rows, checks=checks, work=float(k * k * width * width), remedy=PRUNE_ADVICE, known=gaps)

    def oddities(self, row: object, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first."""
        pair = np.ascontiguousarray(row, dtype=float)
        y = float(pair[-1])
        if np.isnan(y):
            return ()
        parameters = self.model._read().parameters
        k = int(np.argmax(self.model._model.posterior(parameters, Batch(as_gapped(pair[None])))[0]))
        means, variances = self.model._family.target_moments(parameters.components, as_gapped(pair[None, :-1]))
        return (Value("target", y, standing=(y - float(means[0, k])) / float(np.sqrt(variances[0, k]))),)

    def columns(self, components: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """Return what the table shows of these components: a word for it, heads of columns, and a line for each."""
        names = getattr(self.model, "feature_names_in_", [f"x{index}" for index in range(self.model.n_features_in_)])
        more = ["..."] if len(names) > 4 else []
        noise = np.sqrt(self.model.noise_variance_)
        lines = [
            [
                f"{self.model.intercept_[k]:.4g}",
                *(f"{value:.4g}" for value in self.model.coef_[k][:4]),
                *more,
                f"{noise[k]:.4g}",
            ]
            for k in components
        ]
        return "regressions", ["intercept", *map(str, names[:4]), *more, "noise"], lines
