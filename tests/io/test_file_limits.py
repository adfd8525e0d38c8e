"""Parameters and weights that are beyond all limits are refused by models as they are in files."""

import made_up_files
import numpy as np
import odd_rows
import pytest
from odd_rows import CHUNKS, blank

import headwater as hw
from headwater.core.schedules import Decay
from headwater.estimators import model_file
from headwater.estimators.parameters import LIMITS, parameter_names
from headwater.io.files import container
from headwater.io.files.records import Damaged


def rows_of(data, n, width=4):
    return odd_rows.ROWS[data](n, width, np.random.default_rng(0))


@pytest.mark.parametrize("kind", CHUNKS, ids=lambda kind: kind.__name__)
def test_parameters_beyond_all_limits_are_refused(kind):
    for name in sorted(set(LIMITS) & set(parameter_names(kind))):
        model = blank(kind, "auto", **{name: 1e250})
        with pytest.raises(ValueError, match=f"'{name}' parameter of {kind.__name__} must lie between"):
            model.partial_fit(**CHUNKS[kind](rows_of("ties", 80)))
        assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match=r"'warm_up' parameter of .* must be less than 2\*\*63 in size, got 1000"):
        blank(kind, "auto", warm_up=10**400).partial_fit(**CHUNKS[kind](rows_of("ties", 80)))
    with pytest.raises(ValueError, match=r"'warm_up' parameter of .* must not be a boolean, got True"):
        blank(kind, "auto", warm_up=True).partial_fit(**CHUNKS[kind](rows_of("ties", 80)))


NUMBERS = {
    "offset": (hw.SatoEM, hw.OnlineEM, hw.OnlineVB, hw.SimulatedEM, hw.CollapsedVB, Decay),
    "scale": (Decay,),
    **dict.fromkeys("abc", (hw.Harmonic,)),
    "kappa": (hw.ForgettingFactor, hw.SimulatedEM),
    "t0": (hw.ForgettingFactor,),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_algorithms_beyond_all_limits_are_refused(name):
    for kind in NUMBERS[name]:
        for number in (1e300, 10**400, -1.0, np.nan, np.inf, 1e-300, True, "x"):
            with pytest.raises(ValueError, match=f"^{name} must be a number of .*, between 1e-20 and 1e.20 in size, got"):
                kind(**{name: number})


def test_steps_of_no_size_are_refused():
    with pytest.raises(ValueError, match="b or c must be more than 0, got 0 for both"):
        hw.Harmonic(1.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="half_life must be a number of more than 0, got 0"):
        hw.ForgettingFactor(half_life=0)
    with pytest.raises(ValueError, match=r"batch_size must be less than 2\*\*63, got"):
        hw.SatoEM(batch_size=2**63)
    for kind, name in ((hw.SimulatedEM, "burn_in"), (hw.SimulatedEM, "n_samples"), (hw.CollapsedVB, "burn_in")):
        with pytest.raises(ValueError, match=f"{name} must be an integer of at least [01], and at most 1000000, got 1000001"):
            kind(**{name: 10**6 + 1})


@pytest.mark.parametrize(("name", "algorithm"), [("offset", hw.OnlineEM()), ("c", hw.SatoEM(rate=hw.Harmonic(1.0, 1.0, 9.0)))])
def test_files_with_numbers_of_algorithms_beyond_all_limits_are_refused(name, algorithm):
    header, arrays = made_up_files.packed(made_up_files.learned("gaussian", {"algorithm": algorithm}))
    tree = header["parameters"]["algorithm"]
    (tree if name in tree else tree["rate"])[name] = 1e300
    with pytest.raises(Damaged, match=f"{name} must be a number of at least 0, between 1e-20 and 1e.20 in size, got 1e.300"):
        model_file.from_bytes(container.to_bytes(header, arrays))


def test_weights_beyond_all_limits_are_refused():
    with pytest.raises(ValueError, match="weight must leave the rows a weight of at least 1e-300, got 1e-06 of 8e-299"):
        hw.GaussianMixture(2).warm_start_from(rows_of("ties", 80, 2), sample_weight=np.full(80, 1e-300), weight=1e-6)
    model = hw.GaussianMixture(2, random_state=0)
    with pytest.raises(ValueError, match="sample_weight must be 0 or at least 1e-300, got 1e-305: scale the weights up"):
        model.partial_fit(rows_of("ties", 80, 2), sample_weight=np.full(80, 1e-305))
    with pytest.raises(ValueError, match=r"count of 1e-320 \(first in row 0\), but none below 1e-250 other than 0 is allowed"):
        hw.LatentDirichletAllocation(2).partial_fit(np.full((80, 2), 1e-320))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "data", "options"),
    [
        (hw.DirectionOfArrival, "collinear", {}),
        (hw.GaussianMixture, "ties", {}),
        (hw.GaussianMixture, "constant", {"covariance_type": "diag"}),
        (hw.GaussianMixture, "collinear", {"covariance_type": "factor", "n_factors": 1}),
        (hw.RegressionMixture, "constant", {}),
        (hw.StudentMixture, "collinear", {}),
    ],
)
def test_light_rows_after_heavy_ones_can_be_saved_and_loaded(kind, data, options):
    """What was learned since the base is rounding errors of the size of the base."""
    rng = np.random.default_rng(0)
    heavy, light = (CHUNKS[kind](odd_rows.ROWS[data](n, 4, rng)) for n in (100, 2000))
    model = blank(kind, hw.OnlineEM(batch_size=1), **options).partial_fit(**heavy, sample_weight=np.full(100, 1e20))
    with np.errstate(all="ignore"):
        model = model.branch().partial_fit(**light)
        assert model_file.from_bytes(model_file.to_bytes(model)).n_samples_seen_ == 2100
