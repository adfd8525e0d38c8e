"""MixedHMM: against plain densities and enumeration, on tables with words, and sentences."""

import os
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import headwater as hw
from headwater.estimators.model_file import pack, unpack

COLUMNS = {"errors": "poisson"}


def log_book(rows, seed=0, words=("green", "red")):
    rng = np.random.default_rng(seed)
    hot = np.arange(rows) // 50 % 2
    return pd.DataFrame(
        {
            "heat": rng.normal(20.0 + 40.0 * hot, 3.0),
            "light": np.where(rng.random(rows) < 0.1 + 0.8 * hot, words[1], words[0]),
            "errors": rng.poisson(0.2 + 3.0 * hot).astype(float),
            "open": rng.random(rows) < 0.2 + 0.5 * hot,
        }
    )


@pytest.fixture(scope="module")
def model():
    return hw.MixedHMM(2, columns=COLUMNS, random_state=0).fit(log_book(600))


def log_emissions(model, table):
    """Log-densities (n, K) of rows, column by column."""
    found = np.zeros((len(table), 2))
    for k in range(2):
        heat = stats.norm.logpdf(table["heat"], model.means_[k, 0], np.sqrt(model.covariances_[k, 0, 0]))
        errors = stats.poisson.logpmf(table["errors"], model.rates_["errors"][k])
        light = np.log(model.probabilities_["light"][k][(table["light"] == model.categories_["light"][1]).astype(int)])
        flag = stats.bernoulli.logpmf(table["open"], model.probabilities_["open"][k])
        found[:, k] = np.nan_to_num(heat) + np.nan_to_num(errors) + light + flag
    return found


def test_scores_are_those_of_all_paths(model):
    some = log_book(6, 3)
    some.loc[2, "heat"] = some.loc[4, "errors"] = np.nan
    logs, total = log_emissions(model, some), 0.0
    for path in product(range(2), repeat=6):
        steps = np.prod([model.transmat_[a, b] for a, b in pairwise(path)])
        total += model.startprob_[path[0]] * steps * np.exp(logs[np.arange(6), path].sum())
    assert model.score(some) == pytest.approx(np.log(total), rel=1e-10)


def test_forecasts_are_mixtures_of_the_columns(model):
    past = log_book(20, 4)
    ahead, states = model.forecast(3, past), model.next_state_proba(X=past)
    for step in range(3):
        assert_allclose(ahead.state_proba[step], states, rtol=1e-12)
        assert ahead.mean[step, 0] == pytest.approx(states @ model.means_[:, 0])
        assert_allclose(ahead.probabilities["light"][step], states @ model.probabilities_["light"], rtol=1e-12)
        states = states @ model.transmat_
    came = log_book(3, 5)
    expected = np.log((ahead.state_proba * np.exp(log_emissions(model, came))).sum(axis=1))
    assert_allclose(ahead.log_density(came), expected, rtol=1e-10)
    drawn = ahead.sample(400, random_state=1)
    assert set(drawn[:, 0, 1]) <= {"green", "red"}
    assert np.mean(drawn[:, 0, 1] == "red") == pytest.approx(ahead.to_dict()["light=red"][0], abs=0.08)


@pytest.mark.parametrize("algorithm", ["auto", hw.OnlineEM(batch_size=1), hw.OnlineEM(batch_size=50), "online-vb"])
def test_streams_of_any_chunks_with_gaps_and_new_categories(algorithm):
    table = log_book(900).astype({"open": object})
    table.loc[::7, "heat"] = np.nan
    table.loc[600:, "light"] = "blue"
    table.loc[300:302] = None
    many, few = (
        hw.MixedHMM(2, columns={**COLUMNS, "open": "bernoulli"}, algorithm=algorithm, warm_up=150, random_state=0)
        for _ in range(2)
    )
    for at in range(0, 900, 90):
        many.partial_fit(table[at : at + 90])
    few.partial_fit(table)
    assert many.categories_["light"].tolist() == ["green", "red", "blue"]
    assert_allclose(many.means_, few.means_, rtol=1e-9)
    assert_allclose(np.sort(many.means_.ravel()), [20.0, 60.0], atol=1.5)


def test_parts_with_other_categories_are_merged_and_files_go_on(tmp_path):
    base = hw.MixedHMM(2, columns=COLUMNS, warm_up=150, random_state=0).partial_fit(log_book(300))
    one = base.branch().partial_fit(log_book(200, 1, ("blue", "red")))
    other = base.branch().partial_fit(log_book(200, 2, ("white", "red")))
    merged = hw.merge([one, other])
    assert merged.n_samples_seen_ == 700
    assert merged.categories_["light"].tolist() == ["green", "red", "blue", "white"]
    merged.save(tmp_path / "model.hw")
    read = hw.load(tmp_path / "model.hw").partial_fit(log_book(100, 3))
    assert_allclose(read.means_, merged.partial_fit(log_book(100, 3)).means_, rtol=1e-12)


def test_rows_one_by_one_and_by_key():
    table = log_book(200)
    whole = hw.MixedHMM(2, columns=COLUMNS, warm_up=60, random_state=0).partial_fit(table[:100])
    single = hw.MixedHMM(2, columns=COLUMNS, warm_up=60, random_state=0).partial_fit(table[:100])
    for row in table[100:].to_dict("records"):
        single.learn_one(row, key="a")
    whole.partial_fit(table[100:], key="a")
    assert_allclose(single.means_, whole.means_, rtol=1e-12)
    assert_array_equal(single.forecast(2, key="a").mean, whole.forecast(2, key="a").mean)


def test_sentences(model):
    with pytest.raises(ValueError, match="init_params must name 'e', since emissions cannot be set by hand, got 'st'"):
        hw.MixedHMM(2, init_params="st").fit(log_book(60))
    with pytest.raises(ValueError, match="a count must not be negative"):
        hw.MixedHMM(2, columns=COLUMNS).fit(log_book(60).assign(errors=-1.0))
    with pytest.raises(ValueError, match="lengths must add up to the 60 rows of X, got 50"):
        model.score(log_book(60), lengths=[50])
    with pytest.raises(ValueError, match="at least one row with a value"):
        hw.MixedHMM(2, columns={0: "gaussian"}).fit([[np.nan], [np.nan]])


def test_a_race_that_has_not_begun_reads_columns_as_what_they_are(tmp_path):
    model = hw.MixedHMM("auto", columns=COLUMNS, warm_up=80, lag=10, random_state=0).partial_fit(log_book(90))
    assert model.n_samples_seen_ == 90
    model.branch().save(tmp_path / "branch.hw")
    assert hw.load(tmp_path / "branch.hw").probabilities_.keys() == {"light", "open"}


@pytest.mark.parametrize("letters", ["", "st"])
def test_emissions_are_not_asked_for_as_a_start(letters):
    model = hw.MixedHMM(2, columns=COLUMNS, random_state=0).fit(log_book(200))
    with pytest.raises(ValueError, match="init_params must name 'e', since emissions cannot be set by hand"):
        model.set_params(init_params=letters).fit(log_book(200))


def whole_numbers(rows=500, seed=0):
    rng = np.random.default_rng(seed)
    hot = np.arange(rows) // 50 % 2
    return pd.DataFrame({"many": rng.poisson(3.0 + 8.0 * hot), "few": rng.poisson(0.5, rows), "heat": rng.normal(20.0 * hot)})


def least_variances(model):
    return np.diagonal(model.covariances_, axis1=1, axis2=2).min(axis=0)


def test_whole_numbers_make_no_thin_state(tmp_path):
    X = whole_numbers()
    held, free = (hw.MixedHMM(4, resolution=steps, random_state=0).fit(X) for steps in ("auto", None))
    assert held.resolution_ == {"many": 1.0, "few": 1.0, "heat": 0.0}
    assert (least_variances(held)[:2] > 0.999 / 12.0).all()
    assert least_variances(free)[1] < 1e-3 and free.score(X) > held.score(X) + 500.0  # which only reflects the floor
    assert free.resolution_["few"] == 0.0
    base = hw.MixedHMM(2, warm_up=150, random_state=0).partial_fit(X)
    coarse = hw.MixedHMM(2, warm_up=150, random_state=0).partial_fit(X.assign(many=X["many"] // 2 * 2))
    assert hw.merge([base, coarse]).resolution_ == {"many": 2.0, "few": 1.0, "heat": 0.0}
    merged = hw.merge([base.branch().partial_fit(whole_numbers(200, seed)) for seed in (1, 2)])
    merged.save(tmp_path / "whole.hw")
    again = hw.load(tmp_path / "whole.hw")
    assert again.resolution_ == held.resolution_ and again.score(X) == merged.score(X)
    with pytest.raises(ValueError, match="resolution must be one number, or one for each of 3 columns, got shape"):
        hw.MixedHMM(2, resolution=[1.0, 1.0]).fit(X)


def test_files_from_before_there_were_resolutions_are_read():
    X = whole_numbers()
    free = hw.MixedHMM(2, resolution=None, random_state=0).fit(X)
    header, arrays = pack(free)
    del header["parameters"]["resolution"]
    again = unpack(header, arrays, {})
    assert again.resolution is None and again.score(X) == free.score(X)


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("HEADWATER_DATA"), reason="HEADWATER_DATA names no directory")
def test_numbers_of_states_are_found_on_counts_of_years():
    X = pd.read_csv(Path(os.environ["HEADWATER_DATA"]) / "earthquakes" / "earthquakes.csv.gz")
    found = hw.MixedHMM("auto", random_state=0).fit(X[["count"]])
    assert found.n_components_ <= 8
    assert (least_variances(found) > 0.999 / 12.0).all()
