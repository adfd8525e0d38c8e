"""Tables on a cluster: workers agree on what columns are and on the codes of categories, which may occur in one part alone."""

import dask.dataframe
import numpy as np
import pandas
import pytest
from cluster_fits import assert_equal_to_rounding, fit

import headwater as hw

ROWS, PARTS = 1200, 4


def groups(rows=ROWS, seed=0):
    """Return a table of two groups. Each of its parts has a category that no other part has."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=rows)
    frame = pandas.DataFrame(
        {
            "size": rng.normal(size=rows) + 6.0 * kind,
            "shape": np.where(rng.random(rows) < 0.9, np.where(kind, "round", "long"), "flat").astype(object),
            "paid": rng.random(rows) < 0.2 + 0.6 * kind,
        }
    )
    frame.loc[rng.random(rows) < 0.1, "size"] = np.nan
    frame.loc[rng.random(rows) < 0.1, "shape"] = None
    for part, places in enumerate(np.array_split(np.arange(rows), PARTS)):
        frame.loc[places[-5:], "shape"] = f"rare {part}"
    return frame


def parts_of(frame):
    return dask.dataframe.from_pandas(frame, npartitions=PARTS, sort=False)


def counts(model):
    """Return the expected number of rows of each category of the column of shapes."""
    return dict(zip(model.categories_["shape"], ROWS * model.weights_ @ model.probabilities_["shape"], strict=True))


@pytest.mark.parametrize("word", ["em", pytest.param("vb", marks=pytest.mark.slow)])
def test_passes_are_those_of_fit(clusters, word):
    frame = groups()
    found = fit(clusters, hw.MixedMixture(2, algorithm=word, random_state=0), parts_of(frame))
    assert_equal_to_rounding(found, hw.MixedMixture(2, algorithm=word, random_state=0).fit(frame))


def test_categories_of_one_part_are_counted_in_one_pass(clusters):
    frame = groups()
    found = counts(fit(clusters, hw.MixedMixture(2, prior_weight=1e-9, random_state=0), parts_of(frame)))
    wanted = ROWS * frame["shape"].value_counts(normalize=True)
    assert set(found) == set(wanted.index)
    for word, number in wanted.items():
        assert found[word] == pytest.approx(number, rel=0.05), word


def test_a_model_goes_on_with_new_categories(clusters):
    frame = groups()
    model = hw.MixedMixture(2, prior_weight=1e-9, random_state=0).partial_fit(
        frame[~frame["shape"].str.startswith("rare", na=False)]
    )
    fit(clusters, model, parts_of(frame), go_on=True)
    assert {f"rare {part}" for part in range(PARTS)} < set(model.categories_["shape"])
    assert all(number > 1.5 for number in counts(model).values())


def test_what_is_left_out_is_said_once(clusters):
    frame = groups().assign(number=np.arange(ROWS))
    with pytest.warns(UserWarning, match="'number' is left out, since it numbers the rows") as told:
        model = fit(clusters, hw.MixedMixture(2, random_state=0), parts_of(frame))
    assert len(told) == 1
    assert model.columns_["number"] == "ignore"


def test_too_many_categories_are_refused(clusters):
    with pytest.raises(ValueError, match="column 'shape' has more than 5 categories, such as 'rare"):
        fit(clusters, hw.MixedMixture(2, columns={"shape": "categorical"}, max_categories=5), parts_of(groups()))


def test_a_column_that_becomes_numbers_is_refused(clusters):
    frame = groups()
    early, late = frame[: ROWS // 2], frame[ROWS // 2 :].assign(shape=1.0)
    late = dask.dataframe.from_pandas(late, npartitions=1).astype({"shape": object})
    with pytest.raises(ValueError, match="shape"):
        fit(clusters, hw.MixedMixture(2, random_state=0), dask.dataframe.concat([parts_of(early), late]))


def test_gaps_of_a_dataframe_are_learned(clusters):
    frame = groups()[["size"]].assign(other=np.random.default_rng(1).normal(size=ROWS))
    found = fit(clusters, hw.GaussianMixture(2, algorithm="em", random_state=0), parts_of(frame))
    assert_equal_to_rounding(found, hw.GaussianMixture(2, algorithm="em", random_state=0).fit(frame))
    with pytest.raises(ValueError, match="missing"):
        fit(clusters, hw.GaussianMixture(2, random_state=0), parts_of(frame), missing="refuse")
