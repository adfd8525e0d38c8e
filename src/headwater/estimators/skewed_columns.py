"""Columns of a table that are positive and skewed, or zero in many rows: their families, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwater.core.statistics import Array
from headwater.estimators.column_kinds import GAMMA, LOGNORMAL, ZERO_GAMMA, ZERO_LOGNORMAL, ZERO_POISSON
from headwater.families.family import AnyFamily
from headwater.families.gamma_columns import GammaColumns, GammaParameters
from headwater.families.log_normal import LogNormal, LogNormalParameters
from headwater.families.product import ProductParameters
from headwater.families.zero_inflated import ZeroInflated
from headwater.families.zero_inflated_poisson import ZeroInflatedPoisson, ZeroInflatedPoissonParameters


def skewed_families(n_components: int, prior_rows: float, kinds: Sequence[str]) -> dict[str, AnyFamily]:
    """Return the family of each kind of skewed column, over as many columns as there are of it."""
    lognormal, gamma = LogNormal(n_components, prior_rows), GammaColumns(n_components, prior_rows)
    return {
        LOGNORMAL: lognormal,
        GAMMA: gamma,
        ZERO_LOGNORMAL: ZeroInflated.of(lognormal, kinds.count(ZERO_LOGNORMAL)),
        ZERO_GAMMA: ZeroInflated.of(gamma, kinds.count(ZERO_GAMMA)),
        ZERO_POISSON: ZeroInflatedPoisson(n_components, prior_rows),
    }


def column_values(parameters: object, names: Sequence[str]) -> dict[str, dict[str, Array]]:
    """Return the parameters (K,) of each of these columns by their names; nothing for columns that are not skewed."""
    if isinstance(parameters, LogNormalParameters):
        found = {"log_mean": parameters.means, "log_deviation": 1.0 / np.sqrt(parameters.precisions)}
    elif isinstance(parameters, GammaParameters):
        found = {"shape": parameters.shapes, "rate": parameters.rates}
    elif isinstance(parameters, ZeroInflatedPoissonParameters):
        found = {"zero_probability": np.exp(parameters.log_zeros), "rate": parameters.rates}
    elif isinstance(parameters, ProductParameters):  # flags of zero, and positive numbers
        flags, positive = parameters.blocks
        zeros = np.exp(flags.log_ones)
        own = column_values(positive, names)
        return {name: {"zero_probability": zeros[:, at]} | own[name] for at, name in enumerate(names)}
    else:
        return {}
    return {name: {word: values[:, at] for word, values in found.items()} for at, name in enumerate(names)}


def skewed_indicators(parameters: object, names: Sequence[str]) -> list[tuple[str, Array, Array]]:
    """Return name, mean and variance (K,) of what tells components apart in these columns.

    Of log-normal columns that is the logarithm: a mean of numbers with such a tail says little.
    """
    found: list[tuple[str, Array, Array]] = []
    for name, values in column_values(parameters, names).items():
        if "zero_probability" in values:
            zero = values["zero_probability"]
            found.append((f"{name}=0", zero, zero * (1.0 - zero)))
        if "log_mean" in values:
            found.append((f"log {name}", values["log_mean"], np.square(values["log_deviation"])))
        elif "shape" in values:
            found.append((name, values["shape"] / values["rate"], values["shape"] / np.square(values["rate"])))
        else:
            found.append((name, values["rate"], values["rate"]))
    return found


def value_names(kind: str, names: list[str]) -> list[str]:
    """Return what the credible intervals of columns of a kind are called, in their order."""
    own = [f"log {name}" for name in names] if kind in (LOGNORMAL, ZERO_LOGNORMAL) else names
    return [f"{name}=0" for name in names] + own if kind in (ZERO_LOGNORMAL, ZERO_GAMMA, ZERO_POISSON) else own
