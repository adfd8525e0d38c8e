"""How much was missing, in mixtures of independent columns and in tables."""

import numpy as np
import pandas as pd
import pytest

import headwater as hw

rng = np.random.default_rng(0)
N = 400
GROUPS = rng.integers(2, size=N)
COUNTS = rng.poisson(np.array([[1.0, 6.0], [5.0, 2.0]])[GROUPS]).astype(float)
FLAGS = (rng.random((N, 2)) < np.array([[0.9, 0.2], [0.1, 0.8]])[GROUPS]).astype(float)


def with_gaps(rows, share):
    """The rows without some of the values of the second column; each row has a value."""
    rows = rows.copy()
    rows[rng.random(len(rows)) < share, 1] = np.nan
    return rows, float(np.isnan(rows[:, 1]).mean())


def findings(model, name):
    return [one for one in model.health_.findings if one.kind == name]


@pytest.mark.parametrize(
    ("kind", "rows"),
    [(hw.PoissonMixture, COUNTS), (hw.BernoulliMixture, FLAGS), (hw.CategoricalMixture, COUNTS)],
)
def test_mixtures_of_columns_say_how_much_was_missing(kind, rows):
    gappy, share = with_gaps(rows, 0.3)
    (found,) = findings(kind(2, random_state=0).partial_fit(gappy), "gaps")
    assert found.numbers == pytest.approx({"missing": 0.5 * share, "most": share}, abs=1e-6)
    assert "missing, most of them in x1" in found.sentence
    assert not findings(kind(2, random_state=0).partial_fit(rows), "gaps")


def test_tables_say_how_much_was_missing_and_where_little_is_known():
    table = pd.DataFrame({"a": 4.0 * GROUPS + rng.normal(size=N), "word": np.where(FLAGS[:, 0] > 0, "yes", "no")})
    table["amount"], table["events"] = np.exp(rng.normal(size=N)) * (FLAGS[:, 1] > 0), COUNTS[:, 0]
    table["word"] = table["word"].where(rng.random(N) < 0.3)
    table.loc[rng.random(N) < 0.1, "amount"] = np.nan
    kinds = {"amount": "zero-inflated-lognormal", "events": "poisson"}
    model = hw.MixedMixture(2, columns=kinds, random_state=0).partial_fit(table)
    (found,) = findings(model, "gaps")
    wanted = table.isna().mean()
    assert found.numbers == pytest.approx({"missing": wanted.mean(), "most": wanted["word"]}, abs=1e-6)
    assert {at for one in findings(model, "unseen") for at in one.components} == {0, 1}
