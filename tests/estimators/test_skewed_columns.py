"""Tables with amounts, waiting times and many zeros: what is learned, and what it answers."""

import numpy as np
import pandas as pd
import pytest

import headwater as hw

KINDS = {
    "income": "lognormal",
    "wait": "gamma",
    "claim": "zero-inflated-lognormal",
    "delay": "zero-inflated-gamma",
    "visits": "zero-inflated-poisson",
}


def make_table(rows=1500, seed=0):
    rng = np.random.default_rng(seed)
    one = rng.random(rows) < 0.4
    return pd.DataFrame(
        {
            "age": np.where(one, rng.normal(25, 4, rows), rng.normal(50, 6, rows)),
            "income": np.exp(np.where(one, rng.normal(7, 0.5, rows), rng.normal(8.2, 0.3, rows))),
            "wait": rng.gamma(np.where(one, 1.5, 4.0)) / np.where(one, 0.5, 0.1),
            "claim": np.exp(rng.normal(np.where(one, 3, 5), 0.7)) * (rng.random(rows) > np.where(one, 0.8, 0.3)),
            "delay": rng.gamma(np.where(one, 3, 2)) / np.where(one, 1, 0.2) * (rng.random(rows) > np.where(one, 0.2, 0.6)),
            "visits": rng.poisson(np.where(one, 3, 8)) * (rng.random(rows) > np.where(one, 0.1, 0.5)) * 1.0,
        }
    )


@pytest.fixture(scope="module")
def model():
    return hw.MixedMixture(2, columns=KINDS, random_state=0).partial_fit(make_table())


def test_parameters_are_found(model):
    order = np.argsort(model.means_[:, 0])
    found = {name: {word: part[order] for word, part in values.items()} for name, values in model.column_parameters_.items()}
    close = {
        "income": {"log_mean": ([7, 8.2], 0.1), "log_deviation": ([0.5, 0.3], 0.05)},
        "wait": {"shape": ([1.5, 4.0], 0.5), "rate": ([0.5, 0.1], 0.1)},
        "claim": {"zero_probability": ([0.8, 0.3], 0.05), "log_mean": ([3, 5], 0.2), "log_deviation": ([0.7, 0.7], 0.1)},
        "delay": {"zero_probability": ([0.2, 0.6], 0.06), "shape": ([3, 2], 0.5), "rate": ([1, 0.2], 0.2)},
        "visits": {"zero_probability": ([0.1, 0.5], 0.06), "rate": ([3, 8], 0.3)},
    }
    assert {name: set(values) for name, values in found.items()} == {name: set(values) for name, values in close.items()}
    for name, values in close.items():
        for word, (wanted, error) in values.items():
            np.testing.assert_allclose(found[name][word], wanted, atol=error, err_msg=f"{name} {word}")


def test_answers(model, tmp_path):
    table = make_table(seed=1)[:40]
    gaps = table.copy()
    for at, name in enumerate(table):
        gaps.loc[at::6, name] = np.nan
    filled, likely = model.impute(gaps), model.impute(gaps, method="mode")
    for found in (filled, likely):
        assert found.notna().all().all() and (found[["income", "wait"]] > 0.0).all().all()
        assert (found[["claim", "delay", "visits"]] >= 0.0).all().all()
        np.testing.assert_array_equal(found[gaps.notna()], gaps[gaps.notna()])
    assert set(np.unique(likely["visits"] % 1.0)) == {0.0}
    low, high = model.condition(gaps).interval(0.9)
    assert (low <= high).all() and (low >= 0.0)[:, 1:].all()
    odd = table[:1].copy()
    odd["wait"] = 1e6
    assert "wait" in str(model.explain(odd)).splitlines()[2]
    assert "log income" in str(model.describe()) and "claim=0" in model.credible_intervals().columns
    drawn, _ = model.sample(200)
    assert (drawn[:, 1:3] > 0.0).all() and (drawn[:, 3:] >= 0.0).all()
    assert model.regressor("claim").predict(table.drop(columns="claim")).min() >= 0.0
    model.save(tmp_path / "model.hw")
    np.testing.assert_array_equal(hw.load(tmp_path / "model.hw").score_samples(gaps), model.score_samples(gaps))


def test_models_are_merged_and_compared(model):
    other = hw.MixedMixture(2, columns=KINDS, random_state=4).partial_fit(make_table(seed=2))
    both = hw.merge([model, other])
    assert both.n_samples_seen_ == 3000
    found = hw.compare_models(model, other)
    assert len(found.components) == 2 and not found.lost
    assert {"log income", "wait", "claim=0"} <= {change.name for change in found.components[0].changes}


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("income", 0.0, "'lognormal' and holds 0: a value must be positive; 'zero-inflated-lognormal' takes zeros, too"),
        ("wait", -1.0, "'gamma' and holds -1: a value must be positive"),
        ("claim", -2.0, "an amount must not be negative"),
        ("visits", -1.0, "a count must not be negative"),
    ],
)
def test_values_that_a_column_cannot_have_are_refused(model, column, value, sentence):
    table, rows = make_table(20), model.n_samples_seen_
    table.loc[3, column] = value
    with pytest.raises(ValueError, match=sentence):
        model.partial_fit(table)
    with pytest.raises(ValueError, match=sentence):
        model.score_samples(table)
    assert model.n_samples_seen_ == rows


def test_extreme_values_stay_finite():
    rng = np.random.default_rng(3)
    X = np.column_stack([np.exp(rng.normal(0, 60, 400)), np.full(400, 3.0), rng.gamma(1e-2, size=400) + 1e-300])
    X[:200, 1] = 1e-280
    model = hw.MixedMixture(2, columns={0: "lognormal", 1: "gamma", 2: "gamma"}, random_state=0).partial_fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert all(np.isfinite(part).all() for values in model.column_parameters_.values() for part in values.values())


@pytest.mark.parametrize("kind", ["lognormal", "gamma", "zero-inflated-lognormal", "zero-inflated-gamma"])
@pytest.mark.parametrize("first", [np.nan, 7.0, 0.0])
def test_columns_that_say_nothing_at_first_learn_later(kind, first):
    """Values that are missing or all alike in the warm-up do not make those that follow impossible."""
    if first == 0.0 and not kind.startswith("zero"):
        first = 7.0
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"x": rng.normal(size=300), "paid": first})
    later = pd.DataFrame({"x": rng.normal(size=900), "paid": np.exp(rng.normal(3.0, 0.5, size=900))})
    model = hw.MixedMixture(1, columns={"paid": kind}, warm_up=200, random_state=0).partial_fit(rows)
    assert model.score(later) > -1000.0
    values = model.partial_fit(later).column_parameters_["paid"]
    if np.isnan(first) or first == 0.0:
        mean = values["log_mean"][0] if "log_mean" in values else np.log(values["shape"] / values["rate"])[0]
        assert abs(mean - 3.0) < 0.2
