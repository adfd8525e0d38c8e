"""What is said of a direction of arrival."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from headwater.diagnostics.component_description import Limits, column_names, curve_of, finite_number
from headwater.diagnostics.description import Description, Value
from headwater.diagnostics.display import html_curve
from headwater.diagnostics.health import Evidence
from headwater.diagnostics.health_signals import ArrivalChecks
from headwater.estimators.describers.describer import Describer


class ArrivalDescriber(Describer):
    """The direction of a source, and its power."""

    def describe(self, limits: Limits) -> Description:
        """Describe components, matrices, curves and facts."""
        linear = not np.isnan(self.model.omega_)
        unit, name = (np.degrees(1.0), "angle from broadside, degrees") if linear else (1.0, "angle")
        angle, wide = unit * self.model.angle_, -unit * float(ndtri(limits.tails[0])) * self.model.angle_std_
        places = np.linspace(self.model.angle_range_[0], self.model.angle_range_[1], 1025)
        power = 10.0 * np.log10(np.maximum(self.model.spectrum(places), 1e-300))
        return Description(
            width="sensors",
            facts=(
                Value(name, angle, None, finite_number(angle - wide), finite_number(angle + wide)),
                *((Value("phase from sensor to sensor, radians", self.model.omega_),) if linear else ()),
                Value("power of the source", self.model.power_),
                Value("noise variance", self.model.noise_variance_),
                Value("sensors that were there, on average", float(self.model.observed_.sum())),
            ),
            curves=(curve_of("Power by angle", unit * places, power - power.max(), name, "power, dB of the highest"),),
        )

    def evidence(self) -> Evidence:
        """Return what the health of the model is judged by."""
        rows = np.array([max(float(self.model._believed()[1]), 0.0)])

        def checks() -> ArrivalChecks:
            names = column_names(self.model, self.model.n_features_in_)
            return ArrivalChecks(rows, self.model.power_, self.model.noise_variance_, self.model.observed_, names)

        return Evidence(rows, "source", "snapshots", checks=checks)

    def oddities(self, row: object, most: int) -> tuple[Value, ...]:
        """Return the values that make a row odd, the farthest off first."""
        amplitudes, names = np.abs(np.asarray(row)), column_names(self.model, self.model.n_features_in_)
        standing = np.nan_to_num(amplitudes / np.sqrt(np.real(np.diagonal(self.model.covariance_))), nan=0.0)
        loud = np.argsort(-standing, kind="stable")[:most]
        return tuple(Value(names[at], float(amplitudes[at]), standing=float(standing[at])) for at in loud)

    def picture(self) -> str:
        """Return the power by angle as a small curve."""
        places = np.linspace(self.model.angle_range_[0], self.model.angle_range_[1], 129)
        power = 10.0 * np.log10(np.maximum(self.model.spectrum(places), 1e-300))
        return html_curve((power - power.max()).tolist(), "power by angle, decibels")

    def summary(self) -> tuple[str, list[str], list[list[str]]]:
        """Return a line about the model, and the head and the lines of a small table."""
        warming = " (warming up)" if self.model._runtime.warming_up else ""
        line = f"{self.model.n_samples_seen_:,} snapshots of {self.model.n_features_in_} sensors seen{warming}:"
        values = (self.model.angle_, self.model.angle_std_, self.model.power_, self.model.noise_variance_)
        return line, ["angle", "std", "power", "noise"], [[f"{value:.4g}" for value in values]]
