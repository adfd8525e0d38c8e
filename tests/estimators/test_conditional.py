"""condition and impute: the conditional law of missing values, and filled rows in the container that came in."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from naive import conditional as twin
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

import headwater as hw
from headwater.core.chunk import Chunk
from headwater.estimators import conditional

KINDS = ("full", "tied", "diag", "spherical")


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    source = rng.integers(2, size=n)
    roots = np.array(
        [[[1.0, 0.0, 0.0], [0.8, 0.5, 0.0], [0.1, 0.3, 0.6]], [[0.5, 0.0, 0.0], [-0.6, 0.7, 0.0], [0.0, 0.4, 1.0]]]
    )
    means = np.array([[0.0, 0.0, 0.0], [6.0, 3.0, -2.0]])
    return means[source] + np.einsum("nij,nj->ni", roots[source], rng.normal(size=(n, 3)))


def with_gaps(X, share, seed=1):
    gaps = np.random.default_rng(seed).random(X.shape) < share
    return np.where(gaps, np.nan, X), gaps


@pytest.fixture(scope="module")
def model():
    return hw.GaussianMixture(2, random_state=0).fit(rows_of(3000))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("predictive", [False, True])
def test_every_answer_agrees_with_the_joint_density(kind, predictive):
    """On a grid, the conditional density is the joint density divided by its sum; moments and quantiles agree with the law."""
    learned = hw.GaussianMixture(2, covariance_type=kind, random_state=0).fit(rows_of(600))
    score = learned.predictive_score_samples if predictive else learned.score_samples
    grid = np.linspace(-14.0, 20.0, 6801)
    step = grid[1] - grid[0]
    for column, row in itertools.product(range(3), rows_of(2, seed=9)):
        gap = row.copy()
        gap[column] = np.nan
        law = learned.condition(gap[None], predictive=predictive)
        table = np.tile(row, (len(grid), 1))
        table[:, column] = grid
        logs = score(table)
        density = np.exp(logs - logs.max())
        density /= density.sum() * step
        mean = (grid * density).sum() * step
        np.testing.assert_allclose(law.mean[0, column], mean, rtol=1e-4, atol=1e-4)
        variance = ((grid - mean) ** 2 * density).sum() * step
        np.testing.assert_allclose(law.variance[0, column], variance, rtol=5e-3)
        below = np.cumsum(density) * step
        low, high = law.interval(0.8)
        np.testing.assert_allclose(np.interp([low[0, column], high[0, column]], grid, below), [0.1, 0.9], atol=3e-3)
        np.testing.assert_allclose(law.mode()[0, column], grid[density.argmax()], atol=2.0 * step)
        np.testing.assert_allclose(np.exp(law.log_density(row[None])), np.interp(row[column], grid, density), rtol=1e-3)
        np.testing.assert_allclose(law.log_marginal + law.log_density(row[None]), score(row[None]))


def test_observed_entries_stay_as_they_are(model):
    X, gaps = with_gaps(rows_of(300, seed=4), 0.3)
    law = model.condition(X)
    low, high = law.interval()
    draws = law.sample(2, random_state=0)
    for filled in (law.mean, low, high, law.mode(), *draws):
        np.testing.assert_array_equal(filled[~gaps], X[~gaps])
        assert np.isfinite(filled).all()
    assert (law.variance[~gaps] == 0.0).all() and (law.variance[gaps] > 0.0).all()
    assert (low[gaps] < high[gaps]).all()
    np.testing.assert_array_equal(law.missing, gaps)
    np.testing.assert_allclose(law.weights.sum(axis=1), 1.0)
    assert law.weights.shape == (300, 2) and len(law) == 300 and "gaps" not in repr(law)


def test_rows_without_gaps_and_without_values(model):
    X = rows_of(5, seed=2)
    X[3] = np.nan
    law = model.condition(X)
    complete = [0, 1, 2, 4]
    np.testing.assert_allclose(law.weights[complete], model.predict_proba(X[complete]), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(law.log_marginal[complete], model.score_samples(X[complete]))
    np.testing.assert_allclose(law.weights[3], model.weights_)
    assert abs(law.log_marginal[3]) < 1e-12
    np.testing.assert_allclose(law.mean[3], model.weights_ @ model.means_)
    np.testing.assert_array_equal(law.log_density(X[[0, 1, 2, 0, 4]])[complete], 0.0)
    np.testing.assert_allclose(law.log_density(X[[0, 1, 2, 0, 4]])[3], model.score_samples(X[:1])[0])


@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_probabilities_of_rows_with_gaps_are_those_of_the_law(kind):
    X, _ = with_gaps(rows_of(400, seed=12), 0.3)
    learned = hw.GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    X[5] = np.nan
    law = learned.condition(X)
    np.testing.assert_allclose(law.weights, learned.predict_proba(X), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(law.log_marginal, learned.score_samples(X), rtol=1e-8, atol=1e-8)
    predictive = learned.condition(X, predictive=True)
    np.testing.assert_allclose(predictive.log_marginal, learned.predictive_score_samples(X), rtol=1e-8, atol=1e-8)


def test_the_covariance_is_that_of_draws(model):
    row = np.array([[np.nan, 1.5, np.nan]])
    law = model.condition(row)
    draws = law.sample(20_000, random_state=3)[:, 0]
    covariance = law.covariance()[0]
    np.testing.assert_allclose(np.diag(covariance), law.variance[0])
    np.testing.assert_allclose(np.cov(draws[:, ::2].T), covariance[::2, ::2], rtol=0.06, atol=0.03)
    assert not covariance[1].any()
    shares = np.mean((draws >= law.interval(0.5)[0][0]) & (draws <= law.interval(0.5)[1][0]), axis=0)
    np.testing.assert_allclose(shares[::2], 0.5, atol=0.02)


def test_probabilities_of_few_values_are_shared_out_in_each_component(model):
    X = rows_of(50, seed=13)
    X[:, 1] = np.nan
    law, values = model.condition(X), np.array([-1.0, 0.0, 2.5])
    expected = np.zeros((50, 3))
    for i, k in itertools.product(range(50), range(2)):
        _, centre, scale, _ = twin.law_of(model.means_[k], model.covariances_[k], X[i], np.array([False, True, False]))
        density = np.exp(-0.5 * (values - centre) ** 2 / scale[0, 0])
        expected[i] += law.weights[i, k] * density / density.sum()
    np.testing.assert_allclose(law.probabilities(1, values), expected, rtol=1e-6, atol=1e-12)
    with pytest.raises(ValueError, match="column 0 must be missing in every row"):
        law.probabilities(0, values)


def test_no_draw_and_no_mean_is_more_probable_than_the_mode(model):
    X, _ = with_gaps(rows_of(200, seed=6), 0.5)
    law = model.condition(X)
    mode = law.log_density(law.mode())
    for other in (law.mean, *law.sample(20, random_state=1)):
        assert (law.log_density(other) <= mode + 1e-9).all()


def test_blocks_of_rows_change_nothing_but_rounding(model, monkeypatch):
    X, _ = with_gaps(rows_of(150, seed=7), 0.4)
    whole = model.condition(X)
    monkeypatch.setattr(conditional, "BLOCK_NUMBERS", 40)
    parts = model.condition(X)
    for one, other in (
        (whole.mean, parts.mean), (whole.variance, parts.variance), (whole.mode(), parts.mode()),
        (whole.covariance(), parts.covariance()), (whole.sample(1, 0), parts.sample(1, 0)),
        (whole.interval()[0], parts.interval()[0]),
        (whole.log_density(np.zeros((150, 3))), parts.log_density(np.zeros((150, 3)))),
    ):  # fmt: skip
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


def test_reading_leaves_rows_and_model_alone(model):
    X, _ = with_gaps(rows_of(50, seed=8), 0.3)
    before, means = X.copy(), model.means_
    law = model.condition(X)
    law.mode()
    model.impute(X, method="sample", random_state=0)
    np.testing.assert_array_equal(X, before)
    law.mean[...] = 0.0
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(model.means_, means)


# Containers


def test_arrays_keep_their_type(model):
    X, gaps = with_gaps(rows_of(40, seed=3), 0.3)
    expected = model.condition(X).mean
    for kind in (np.float64, np.float32):
        found = model.impute(X.astype(kind))
        assert found.dtype == kind
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(found[~gaps], X.astype(kind)[~gaps])
    found = model.impute(np.where(gaps, None, X.astype(object)))
    assert found.dtype == object
    np.testing.assert_allclose(found.astype(float), expected)
    np.testing.assert_array_equal(model.impute(np.array([[1, 2, 3]])), [[1, 2, 3]])
    np.testing.assert_allclose(model.impute([[1.0, None, 3.0]]), model.impute(np.array([[1.0, np.nan, 3.0]])))


def test_pandas_frames_keep_index_and_types(model):
    X, gaps = with_gaps(rows_of(30, seed=3), 0.4)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=[f"row{i}" for i in range(30)])
    frame["b"] = frame["b"].round().astype("Int64")
    frame["c"] = frame["c"].astype("float32")
    before = frame.copy()
    learned = hw.GaussianMixture(2, random_state=0).fit(pd.DataFrame(rows_of(500), columns=["a", "b", "c"]))
    found = learned.impute(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert list(found.index) == list(frame.index) and (found.dtypes == frame.dtypes).all()
    assert not found.isna().any().any()
    for name, at in (("a", 0), ("b", 1), ("c", 2)):
        pd.testing.assert_series_equal(found[name][~gaps[:, at]], frame[name][~gaps[:, at]])
    plain = pd.DataFrame(frame.to_numpy(dtype=float, na_value=np.nan), columns=frame.columns)
    mean = learned.impute(plain).to_numpy()
    np.testing.assert_array_equal(found["b"].to_numpy(dtype=float)[gaps[:, 1]], np.rint(mean[gaps[:, 1], 1]))
    np.testing.assert_array_equal(found["a"], mean[:, 0])


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_polars_and_arrow_tables_come_back(model):
    X, gaps = with_gaps(rows_of(30, seed=3), 0.4)
    X[:, 2] = X[:, 2].round()
    mean = model.impute(X)
    columns = {"a": X[:, 0], "b": X[:, 1]}
    whole = [None if gap else round(value) for gap, value in zip(gaps[:, 2], X[:, 2], strict=True)]
    frame = pl.DataFrame({**columns, "c": pl.Series(whole, dtype=pl.Int32)})
    found = model.impute(frame)
    assert isinstance(found, pl.DataFrame) and found.schema == frame.schema and not found["c"].null_count()
    np.testing.assert_array_equal(found["a"].to_numpy(), mean[:, 0])
    np.testing.assert_array_equal(found["c"].to_numpy(), mean[:, 2].round())
    table = pa.table({**columns, "c": pa.array(whole, type=pa.int32())})
    after = model.impute(table)
    assert after.schema == table.schema and after.column("c").null_count == 0
    np.testing.assert_array_equal(after.column("c").to_numpy(), found["c"].to_numpy())
    kept = [value for value, gap in zip(after.column("c").to_pylist(), gaps[:, 2], strict=True) if not gap]
    assert kept == [value for value in whole if value is not None]


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_whole_numbers_stay_within_their_type():
    size = np.random.default_rng(0).gamma(9.0, 100.0, size=2000)
    learned = hw.GaussianMixture(1).fit(np.column_stack([size, 2.0 * size]))
    wide, small = [1000.0, -4000.0, 300.0], [None, None, 7]
    for table in (
        pd.DataFrame({"a": pd.array(small, dtype="UInt8"), "b": wide}),
        pl.DataFrame({"a": pl.Series(small, dtype=pl.UInt8), "b": wide}),
        pa.table({"a": pa.array(small, type=pa.uint8()), "b": wide}),
    ):
        found = learned.impute(table)["a"]
        assert (found.to_pylist() if hasattr(found, "to_pylist") else found.to_list()) == [255, 0, 7]


def test_streams_are_imputed_chunk_by_chunk(model):
    X, _ = with_gaps(rows_of(100, seed=5), 0.3)
    parts = [model.impute(Chunk(X[start : start + 30], start=start), "sample", 5) for start in range(0, 100, 30)]
    np.testing.assert_allclose(np.concatenate(parts), model.impute(X, "sample", 5), rtol=1e-9)
    assert not np.array_equal(model.impute(X, "sample", 6), model.impute(X, "sample", 5))
    for source in (np.random.default_rng(1), np.random.RandomState(1), None):
        assert np.isfinite(model.impute(X, "sample", source)).all()


# Invalid input


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros((2, 4)), "4 features, but GaussianMixture is expecting 3"),
        (np.zeros(3), "two dimensions"),
        (np.zeros((0, 3)), "0 sample"),
        (np.array([[1.0, np.inf, np.nan]]), "infinity"),
        (np.array([[1.0, 1e200, np.nan]]), "rescale"),
        (np.array([["a", "b", "c"]]), "must hold numbers"),
        (np.array([["a", 1.0, None]], dtype=object), "must hold numbers"),
        (csr_array(np.eye(3)), "sparse matrix, in which gaps and zeros look alike"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(model, X, words):
    for call in (model.condition, model.impute, model.explain):
        with pytest.raises((ValueError, TypeError), match=words) as caught:
            call(X)
        assert "\n" not in str(caught.value)


def test_options_that_make_no_sense(model):
    X = np.array([[np.nan, 1.0, 2.0]])
    law = model.condition(X)
    for call, words in (
        (lambda: model.impute(X, method="median"), "method must be one of 'mean', 'mode', 'sample', got 'median'"),
        (lambda: law.interval(1.0), "level must lie between 0 and 1, got 1.0"),
        (lambda: law.interval("wide"), "level must lie between 0 and 1, got 'wide'"),
        (lambda: law.sample(0), "size must be a whole number of at least 1, got 0"),
        (lambda: law.log_density(np.zeros((2, 3))), r"of must have the shape \(1, 3\)"),
        (lambda: law.log_density(X), "of must have a finite value for every missing entry"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(NotFittedError):
        hw.GaussianMixture(2).condition(X)
    with pytest.raises(AttributeError):
        hw.MultinomialMixture(2).condition(X)


def test_frames_of_other_columns_are_refused():
    frame = pd.DataFrame(rows_of(200), columns=["a", "b", "c"])
    learned = hw.GaussianMixture(1).fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        learned.impute(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_scales_and_far_origins(scale):
    X = rows_of(800)
    gappy, _ = with_gaps(rows_of(50, seed=2), 0.4)
    plain = hw.GaussianMixture(2, random_state=0, reg_covar=0.0).fit(X).condition(gappy)
    moved = (
        hw.GaussianMixture(2, random_state=0, reg_covar=0.0)
        .fit(X * scale + 40.0 * scale)
        .condition(gappy * scale + 40.0 * scale)
    )
    np.testing.assert_allclose((moved.mean - 40.0 * scale) / scale, plain.mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(moved.interval()[1] / scale - 40.0, plain.interval()[1], rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_one_column_constant_columns_and_one_component(kind):
    one = hw.GaussianMixture(2, covariance_type=kind, random_state=0).fit(rows_of(200)[:, :1])
    assert np.isfinite(one.impute(np.array([[np.nan], [1.0]]))).all()
    X = np.column_stack([rows_of(300), np.full(300, 7.0)])
    model = hw.GaussianMixture(1, covariance_type=kind, random_state=0).fit(X)
    row = np.array([[np.nan, 0.5, np.nan, np.nan], [0.1, 0.2, 0.3, np.nan], [np.nan] * 3 + [7.0]])
    law = model.condition(row)
    assert np.isfinite(law.mean).all() and np.isfinite(law.mode()).all() and np.isfinite(law.interval()[0]).all()
    np.testing.assert_allclose(law.mean[:, 3], 7.0, atol=1e-6)
    assert np.isfinite(model.explain(row).tail[~np.isnan(row)]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_what_they_promise(kind):
    """Rows that were not learned, from a mixture that was: 90 % of at least 5,000 entries lie in their interval."""
    X = rows_of(12_000, seed=11)
    gappy, gaps = with_gaps(X[4000:], 0.25)
    model = hw.GaussianMixture(2 if kind == "full" else 12, covariance_type=kind, random_state=0).fit(X[:4000])
    low, high = model.condition(gappy).interval(0.9)
    inside = ((X[4000:] >= low) & (X[4000:] <= high))[gaps]
    assert len(inside) >= 5000 and 0.88 <= inside.mean() <= 0.92


@pytest.mark.parametrize("scaling", [False, True])
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_filled_values_are_the_means_of_their_laws(kind, scaling):
    """`impute` does not make the laws; rows without a value and far ones included."""
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(900, 4)) @ rng.normal(size=(4, 4)) * [1.0, 10.0, 0.1, 1.0] + 5.0 * rng.integers(2, size=(900, 1))
    model = hw.GaussianMixture(3, covariance_type=kind, scale_columns=scaling, random_state=0).partial_fit(rows)
    gappy = np.where(rng.random(rows.shape) < 0.4, np.nan, rows)
    gappy[:2], gappy[2] = np.nan, [1e90, np.nan, -1e90, np.nan]
    law = model.condition(gappy)
    filled = model.impute(gappy)
    np.testing.assert_array_equal(filled[~law.missing], gappy[~law.missing])
    np.testing.assert_allclose(np.delete(filled, 2, axis=0), np.delete(law.mean, 2, axis=0), rtol=1e-8, atol=1e-8)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(model.impute(rows), rows)
