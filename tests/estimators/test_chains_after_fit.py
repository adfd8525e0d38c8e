"""Chains that were fitted go on as streams."""

import warnings

import every_model
import numpy as np
import pytest

CHAINS = [kind for kind, (make, _) in every_model.KINDS.items() if make()._traits.chained]


@pytest.mark.parametrize("kind", CHAINS)
def test_a_chain_goes_on_after_a_fit(kind):
    """The scores that `fit` kept grow by those of the rows that come."""
    first, second = every_model.stream_of(kind, (160, 300))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # passes may not have converged
        model = every_model.KINDS[kind][0]().fit(**first)
    assert model.partial_fit(**second).n_samples_seen_ == 460
    assert all(np.isfinite(getattr(model, name)).all() for name in model._traits.answers)
