"""What corrects it: intervals as wide as the observed information has them, since nobody says which component a row is of.

`credible_intervals` of a mixture of Gaussians are these; those of the belief alone are `method="mean-field"`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from papers.calibration_ranks import INFORMED, MEAN_FIELD, Observed, Way, ambiguity, gathered, matched, placed, quantiles
from papers.calibration_subjects import Drawn, Gaussians


def observe_widened(subject: Gaussians, way: Way, drawn: Sequence[Drawn]) -> tuple[Observed, Observed]:
    """Ranks of the truth in mean-field beliefs, and in the same widened by what is missing."""
    plain, stretched, shared = [], [], []
    for seed, one in enumerate(drawn):
        model = way.learned(subject, one, seed)
        order = matched(one, model)
        for found, method in ((plain, MEAN_FIELD), (stretched, INFORMED)):
            beliefs = quantiles(model, method)
            found.append({name: placed(truth, beliefs[name][:, order]) for name, truth in one.truth.items()})
        shared.append(ambiguity(model, one.rows[0])[order])
    return gathered(plain, np.stack(shared)), gathered(stretched, np.stack(shared))
