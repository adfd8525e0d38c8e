"""Sums and differences of beliefs of moment matching that are no beliefs, repaired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headwater.families.capabilities import MatchesMoments
from headwater.families.components import replace_components
from headwater.families.family_core import Prior, Stats
from headwater.models.mixture_records import MixturePrior


def repair_beliefs(
    family: MatchesMoments[Prior, Stats], prior: MixturePrior[Prior], totals: Stats, parts: Sequence[Stats]
) -> tuple[Stats, tuple[int, ...]]:
    """Return totals that form a valid belief with the prior, and the components that had to be repaired for it."""
    broken = ~family.find_proper(prior.components, totals)
    weightless = prior.concentration + totals.count <= 0.0
    if not (broken | weightless).any():
        return totals, ()
    proper = [family.find_proper(prior.components, part) for part in parts]
    count = totals.count.copy()
    for k in np.flatnonzero(broken):
        chosen = [part for part, good in zip(parts, proper, strict=True) if good[k]]
        mean = parts[0].zeros_like()
        for part in chosen:
            mean = mean + part.scaled(1.0 / len(chosen))
        totals = replace_components(totals, mean, np.arange(len(count)) == k)
    for k in np.flatnonzero(weightless):
        positive = [part.count[k] for part in parts if prior.concentration[k] + part.count[k] > 0.0]
        count[k] = np.mean(positive) if positive else 0.0
    return replace(totals, count=count), tuple(int(k) for k in np.flatnonzero(broken | weightless))
