"""Files of models after `fit`: the parameters that they report must agree with the statistics beside them."""

import warnings
from functools import cache

import every_model
import made_up_files
import numpy as np
import odd_rows
import pytest

import headwater as hw
from headwater.estimators import model_file
from headwater.io.files import container
from headwater.io.files.records import Damaged

SKEWED = {0: "gaussian", 1: "categorical", 2: "zero-inflated-poisson"}


@cache
def file_of(kind, columns=False):
    """Return header and arrays of the file of a fitted model."""
    model = every_model.KINDS[kind][0]().set_params(**({"columns": SKEWED} if columns else {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made_up_files.packed(model.fit(**every_model.stream_of(kind, (160,))[0]))


def changed(kind, name, number, place, columns=False):
    header, arrays = file_of(kind, columns)
    array = arrays[f"state/reported/{name}"].copy()
    array.flat[place] = number
    return container.to_bytes(header, {**arrays, f"state/reported/{name}": array})


EVERY, FIRST, LAST = slice(None), 0, -1
MISMATCHES = (
    ("switching", "emissions/coef", 1e249, EVERY, "beyond all that its statistics say"),
    ("switching", "emissions/coef", -1e150, EVERY, "beyond all that its statistics say"),
    ("switching", "emissions/factor", 1e249, EVERY, "not a valid density"),
    ("switching", "emissions/leverage", 1e150, EVERY, "beyond all that its statistics say"),
    ("autoregressive", "emissions/coef", 1e249, LAST, "beyond all that its statistics say"),
    ("autoregressive", "emissions/factor", 1e249, FIRST, "not a valid density"),
    ("regression", "components/coef", 1e249, EVERY, "not a valid density"),
    ("regression", "components/coef", 2.0, LAST, "not a valid density"),
    ("regression", "components/factor", 1e9, LAST, "not a valid density"),
    ("chain", "emissions/power", 1e9, LAST, "not a valid density"),
    ("grouped chain", "emissions/inner/power", 1e60, FIRST, "not a valid density"),
    ("mixed chain", "emissions/blocks/1/logs", 1e249, EVERY, "not a valid density"),
    ("arrival", "steering", 1e249, FIRST, "not a valid density"),
    ("arrival", "slope", 7.0, LAST, "not a valid density"),
)


@pytest.mark.parametrize(("kind", "name", "number", "place", "problem"), MISMATCHES)
def test_reported_parameters_that_no_rows_lead_to_are_refused(kind, name, number, place, problem):
    """Scores, predictions or forecasts by them would be no numbers."""
    with pytest.raises(Damaged, match=problem):
        model_file.from_bytes(changed(kind, name, number, place))


@pytest.mark.parametrize(("name", "number"), [("log_zeros", 1e9), ("log_others", 3.0), ("mass", 1e249), ("rates", 1e249)])
def test_reported_laws_of_counts_are_sound_or_refused(name, number):
    made_up_files.refused_or_sound(changed("mixed", f"components/blocks/2/{name}", number, EVERY, columns=True), "mixed")


@pytest.mark.parametrize("kind", every_model.KINDS)
def test_fitted_models_can_be_loaded(kind):
    header, arrays = file_of(kind)
    assert not made_up_files.refused_or_sound(container.to_bytes(header, arrays), kind)


@pytest.mark.parametrize("kind", [hw.RegressionHMM, hw.AutoregressiveHMM])
@pytest.mark.parametrize("algorithm", ["vb", "online-vb"])
def test_uncertain_coefficients_of_tiny_rows_can_be_loaded(kind, algorithm):
    """Their leverage is as large as rows are small."""
    rows = odd_rows.ROWS["tiny"](150, 4, np.random.default_rng(0))
    model = odd_rows.blank(kind, algorithm)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learn = model.partial_fit if algorithm.startswith("online") else model.fit
        again = model_file.from_bytes(model_file.to_bytes(learn(**odd_rows.CHUNKS[kind](rows))))
    assert again.n_samples_seen_ == 150
