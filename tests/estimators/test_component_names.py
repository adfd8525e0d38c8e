"""Names of components: given, kept while the stream moves its components, stored, merged and shown."""

import numpy as np
import pytest

import headwater as hw
from headwater.cli.app import app
from headwater.policies.identity import Identity

CENTRES = np.array([[0, 0], [0, 9], [9, 0], [9, 9]])


def make_rows(n, k, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) + CENTRES[rng.integers(k, size=n)]


def truth(model):
    """What each component is: the nearest of the centres."""
    return [f"at {np.argmin(((CENTRES - mean) ** 2).sum(axis=1))}" for mean in model.means_]


def named(k=3, seed=0, **options):
    model = hw.GaussianMixture(k, warm_up=600, random_state=0, **options).partial_fit(
        make_rows(1500, k if k != "auto" else 3, seed)
    )
    model.names_ = truth(model)
    return model


def test_names_are_numbers_until_they_are_given():
    model = hw.GaussianMixture(2, warm_up=600, random_state=0)
    with pytest.raises(AttributeError):
        _ = model.names_
    model.partial_fit(make_rows(40, 2, 0))
    assert model.names_.tolist() == ["component 0", "component 1"]
    with pytest.raises(ValueError, match="when the warm-up is over, got them after 40 rows"):
        model.names_ = ["a", "b"]
    model.partial_fit(make_rows(2000, 2, 1))
    model.names_ = ("a", "b")
    assert model.names_.tolist() == ["a", "b"]
    model.names_ = None
    assert model.names_.tolist() == ["component 0", "component 1"]


@pytest.mark.parametrize(
    ("names", "error", "sentence"),
    [
        (["a"], ValueError, "a name for each of 3 components, got 1"),
        (["a", "b", "a"], ValueError, "must differ, got 'a' twice"),
        (["a", "b", 3], ValueError, "words in one line, got 3"),
        (["a", "b", " "], ValueError, "words in one line, got ' '"),
        (["a", "b", "c\nd"], ValueError, "words in one line"),
        ("abc", TypeError, "a list of 3 names, got str"),
        (3, TypeError, "a list of 3 names, got int"),
    ],
)
def test_names_that_are_none_are_refused(names, error, sentence):
    model = named()
    before = model.names_.tolist()
    with pytest.raises(error, match=sentence):
        model.names_ = names
    assert model.names_.tolist() == before


@pytest.mark.parametrize("options", [{}, {"algorithm": "online-em"}, {"parts": 2}, {"half_life": 500.0}])
def test_naming_changes_no_answer(options):
    model = hw.GaussianMixture(3, warm_up=600, random_state=0, **options).partial_fit(make_rows(1500, 3, 0))
    scores, rows = model.score_samples(make_rows(50, 3, 2)), model.n_samples_seen_
    model.names_ = truth(model)
    np.testing.assert_array_equal(model.score_samples(make_rows(50, 3, 2)), scores)
    assert model.n_samples_seen_ == rows
    model.partial_fit(make_rows(1500, 3, 1))
    assert model.names_.tolist() == truth(model)


def test_names_stay_through_growth_files_pruning_and_merging(tmp_path):
    model = named("auto").partial_fit(make_rows(9000, 4, 1))
    assert model.n_components_ == 4
    wanted = [name if name != "at 3" else "component 3" for name in truth(model)]
    assert model.names_.tolist() == wanted
    model.save(tmp_path / "model.hw")
    again = hw.load(tmp_path / "model.hw")
    assert again.names_.tolist() == wanted
    parts = [again.branch().partial_fit(make_rows(400, 4, seed)) for seed in (5, 6)]
    assert sorted(hw.merge(parts).names_) == sorted(wanted)
    lightest = float(np.sort(again.weights_)[1])
    pruned = again.prune(lightest)
    assert pruned.n_components_ == 3 and pruned.names_.tolist() == [
        name for name, weight in zip(wanted, again.weights_, strict=True) if weight >= lightest
    ]
    pruned.names_ = truth(pruned)
    assert pruned.partial_fit(make_rows(500, 3, 7)).names_.tolist() == truth(pruned)


def test_models_without_a_common_base_are_matched():
    model, other = named(seed=3), hw.GaussianMixture(3, warm_up=600, random_state=5).partial_fit(make_rows(4000, 3, 4))
    merged = hw.merge([model, other])  # the larger one is the reference, and has no names
    assert merged.merge_report_.reference == 1 and merged.names_.tolist() == truth(merged)
    text = str(hw.compare_models(model, merged))
    assert all(f"{name} → {name}" in text for name in truth(model))


def test_fit_makes_new_components_unless_it_continues():
    rows = make_rows(900, 3, 0)
    model = hw.GaussianMixture(3, random_state=0, warm_start=True).fit(rows)
    model.names_ = truth(model)
    assert model.fit(make_rows(900, 3, 1)).names_.tolist() == truth(model)
    model.set_params(warm_start=False).fit(rows)
    assert model.names_.tolist() == ["component 0", "component 1", "component 2"]


def test_components_that_hold_other_rows_get_new_numbers():
    """Two that stay, one that is given up for the other half of a split."""
    before = np.repeat(np.eye(3), [40, 40, 4], axis=0)
    after = np.repeat(np.eye(3)[[1, 0, 2, 0]], [40, 25, 15, 4], axis=0)
    found = Identity.of(3).follow(before, after, np.ones(84))
    assert found.numbers.tolist() == [1, 0, 3] and found.free == 4
    assert Identity.of(1).follow(np.ones((5, 1)), np.eye(2)[[0, 0, 0, 1, 1]], np.ones(5)).numbers.tolist() == [0, 1]


def test_names_are_shown(tmp_path, capsys):
    model = named()
    for text in (str(model), str(model.describe()), model._repr_html_(), model.describe()._repr_html_()):
        assert all(name in text for name in truth(model))
    model.save(tmp_path / "model.hw")
    np.savetxt(tmp_path / "rows.csv", make_rows(5, 3, 2), delimiter=",", header="x,y", comments="")
    assert all(one.name for one in model.describe().components)
    app(["score", str(tmp_path / "model.hw"), str(tmp_path / "rows.csv")], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    place = lines[0].split(",").index("cluster_name")
    assert [line.split(",")[place].strip('"') for line in lines[1:6]] == model.names_[
        model.predict(make_rows(5, 3, 2))
    ].tolist()
