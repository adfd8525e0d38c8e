"""Chains that were fitted go on as streams; priors of chains whose number of states is to be found."""

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


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("name", ["startprob_prior", "transmat_prior"])
def test_priors_of_a_number_of_states_that_is_to_be_found(kind, name):
    model = every_model.KINDS[kind][0]()
    if name not in model.get_params():
        return
    model.set_params(n_components="auto", **{name: 2.0})
    (chunk,) = every_model.stream_of(kind, (150,))
    assert model.partial_fit(**chunk).n_components_ >= 1
    with pytest.raises(ValueError, match=f"{name} must be a number or have shape"):
        every_model.KINDS[kind][0]().set_params(n_components="auto", **{name: [2.0, 1.0]}).partial_fit(**chunk)
