"""What hidden Markov models of regressions and of autoregressions say of themselves: coefficients and noise of each state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array
from headwater.diagnostics.component_description import Limits, column_names, count_left_out, heaviest_components
from headwater.diagnostics.description import Component, DescribedComponents, Description, Value
from headwater.estimators.describers.family_chains import FamilyChainDescriber
from headwater.estimators.describers.family_mixture import SHOWN, FamilyChecks
from headwater.families.linear_gaussian_belief import LinearGaussianParameters

if TYPE_CHECKING:
    from headwater.estimators.linear_hmm import LinearHMM


@dataclass(frozen=True)
class LinearChecks(FamilyChecks):
    """Signs of states that are regressions, which are compared where their inputs are."""

    inputs: Array  # second moments (K, q, q) of the design of each state

    def divergences(self) -> tuple[Array, Array]:
        """Symmetric divergences (K, K) of the laws of targets, in nats a row, and what of them is chance."""
        found = cast(LinearGaussianParameters, self.parameters)
        precision = np.einsum("kji,kjl->kil", found.factor, found.factor)
        noise = np.einsum("kil,jlm->kjim", np.linalg.inv(precision), precision)
        apart = found.coef[:, None] - found.coef
        lines = np.einsum("jil,kjim,kmn,kjln->kj", precision, apart, self.inputs, apart)
        one_way = 0.5 * (np.trace(noise, axis1=2, axis2=3) - precision.shape[1] + lines)
        return np.asarray(np.maximum(one_way + one_way.T, 0.0)), self._chance()


class LinearChainDescriber(FamilyChainDescriber):
    """States that are linear in what is known: means of each, compared by the coefficients."""

    model: LinearHMM

    def _checks(self, rows: Array, each: float) -> FamilyChecks:
        return LinearChecks(self.model._linear, self.model._emissions, rows, each, self.model._design_moments())


class CoefficientChainDescriber(LinearChainDescriber):
    """States that are regressions of one target on columns, or on the rows before."""

    def describe(self, limits: Limits) -> Description:
        """Describe components, matrices, curves and facts."""
        often, coef, names = self.model.get_stationary_distribution(), self._coefficients(), self._coefficient_names()
        pull = coef * self.model._design_spreads() / np.sqrt(np.maximum(often @ self.model._moments()[1], 1e-300))
        columns = np.sort(np.argsort(-(often @ pull**2), kind="stable")[: limits.values])
        levels, noise = self._levels(), self._noise()
        shown = heaviest_components(often, limits.components)
        components = tuple(
            Component(
                int(k),
                float(often[k]),
                (
                    *((Value("intercept", float(levels[k])),) if self.model._linear.intercept else ()),
                    *(Value(names[at], float(coef[k, at]), standing=float(pull[k, at])) for at in columns),
                    Value("noise", float(noise[k])),
                ),
            )
            for k in shown
        )
        left_out = coef.shape[1] - len(columns)
        parts: DescribedComponents = {
            "value": "coefficient", "spread": "", "components": components, "values_left_out": left_out,
            **count_left_out(often, shown),
        }  # fmt: skip
        return Description(**self.model._chain_parts(parts))

    def patterns(self) -> Array | None:
        """Return nothing: coefficients are no images."""
        return None

    def columns(self, states: NDArray[np.int64]) -> tuple[str, list[str], list[list[str]]]:
        """Return what the table shows of these components: a word for it, heads of columns, and a line for each."""
        names, coef, levels, noise = self._coefficient_names(), self._coefficients(), self._levels(), self._noise()
        more = ["..."] if len(names) > SHOWN else []
        lines = [[f"{levels[k]:.4g}", *(f"{one:.4g}" for one in coef[k][:SHOWN]), *more, f"{noise[k]:.4g}"] for k in states]
        return "regressions", ["intercept", *names[:SHOWN], *more, "noise"], lines

    def _coefficients(self) -> Array:
        """Coefficients (K, q) of the one target."""
        return self.model._linear.coefficients(self.model._emissions)[0][:, 0]

    def _levels(self) -> Array:
        return self.model._linear.coefficients(self.model._emissions)[1][:, 0]

    def _noise(self) -> Array:
        return np.asarray(np.sqrt(self.model._linear.covariances(self.model._emissions)[:, 0, 0]))

    def _coefficient_names(self) -> list[str]:
        """Return the names of the coefficients: how far back they look."""
        return [f"lag {number}" for number in range(1, self._coefficients().shape[1] + 1)]


class RegressionChainDescriber(CoefficientChainDescriber):
    """States that are regressions of a target on inputs."""

    def oddities(self, row: object, most: int) -> tuple[Value, ...]:
        """Return how far the target of a row is from the nearest regression."""
        pair = np.ascontiguousarray(cast(Array, row), dtype=float)
        if np.isnan(pair).any():
            return ()
        means, noise = self._levels() + self._coefficients() @ pair[:-1], self._noise()
        away = (pair[-1] - means) / noise
        k = int(np.argmin(away**2 + 2.0 * np.log(noise)))
        return (Value("target", float(pair[-1]), standing=float(away[k])),)

    def _coefficient_names(self) -> list[str]:
        return [str(name) for name in column_names(self.model, self.model.n_features_in_)]
