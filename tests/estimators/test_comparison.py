"""compare_models: what has changed between two models."""

import json

import numpy as np
import pandas as pd
import pytest

import headwater as hw
from headwater.cli import main


def week(seed, weights=(0.5, 0.3, 0.2), shift=0.0, n=2000):
    rng = np.random.default_rng(seed)
    kind = rng.choice(len(weights), size=n, p=weights)
    means = np.array([[0.0, 0.0], [8.0 + shift, 0.0], [0.0, 9.0], [20.0, 20.0]])
    return rng.normal(size=(n, 2)) + means[kind]


def fitted(rows, k=3):
    return hw.GaussianMixture(k, random_state=0).fit(rows)


def test_nothing_has_changed_between_two_samples():
    found = hw.compare_models(fitted(week(0)), fitted(week(1)))
    assert len(found.components) == 3 and not found.lost and not found.new and not found.changed
    assert max(abs(change.standard_errors) for one in found.components for change in one.changes) < 3.5
    assert abs(found.divergence) < 0.02 and "No number has moved" in str(found)


def test_weights_and_means_that_moved_are_told_in_standard_errors():
    found = hw.compare_models(fitted(week(0)), fitted(week(1, (0.35, 0.45, 0.2), shift=0.5)))
    heavy, moved, same = found.components
    assert heavy.weight.standard_errors < -10 and moved.weight.standard_errors > 10
    assert moved.changes[0].name == "x0" and np.isclose(moved.changes[0].after - moved.changes[0].before, 0.5, atol=0.1)
    rows = 2000 * np.array([0.3, 0.45])
    assert np.isclose(moved.changes[0].standard_errors, 0.5 / np.sqrt((1.0 / rows).sum()), rtol=0.2)
    assert same not in found.changed
    data = found.to_dict()
    assert json.loads(json.dumps(data))["components"][1]["changes"][0]["name"] == "x0"


def test_components_that_came_and_went():
    found = hw.compare_models(fitted(week(0)), fitted(week(1, (0.5, 0.3, 0.0, 0.2))))
    assert len(found.components) == 2 and len(found.lost) == 1 and len(found.new) == 1
    grown = hw.compare_models(fitted(week(0)), fitted(week(1, (0.4, 0.2, 0.2, 0.2)), k=4))
    assert len(grown.components) == 3 and not grown.lost and len(grown.new) == 1
    assert grown.divergence_back > 1.0 and "New: " in str(grown)


def test_a_column_that_moved_everywhere_is_named_and_the_others_match():
    def columns(seed, shift):
        rng = np.random.default_rng(seed)
        kind = rng.choice(3, size=1500, p=[0.5, 0.3, 0.2])
        rows = np.array([[0.0, 0.0, 5.0, 1.0], [6.0, 0.0, 0.0, 1.0], [0.0, 6.0, 0.0, -6.0]])[kind] + rng.normal(size=(1500, 4))
        return rows + shift * np.eye(4)[2]

    found = hw.compare_models(fitted(columns(0, 0.0)), fitted(columns(1, 30.0)))
    assert found.moved == ("x2",) and len(found.components) == 3 and not found.lost and not found.new
    for one in found.components:
        assert one.changes[0].name == "x2" and np.isclose(one.changes[0].after - one.changes[0].before, 30.0, atol=0.3)
        assert one.divergence > 100.0
    assert "Moved: x2; components are matched by the other columns" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["moved"] == ["x2"]
    diagonal = [hw.GaussianMixture(3, covariance_type="diag", random_state=0).fit(columns(0, shift)) for shift in (0.0, -9.0)]
    assert hw.compare_models(*diagonal).moved == ("x2",)
    counts = [hw.PoissonMixture(3, random_state=0).fit(np.abs(np.round(9 + columns(0, shift)))) for shift in (0.0, 60.0)]
    assert hw.compare_models(*counts).moved == ("x2",)
    assert not hw.compare_models(fitted(columns(0, 0.0)), fitted(columns(1, 0.0))).moved


def test_a_column_of_a_table_that_moved_is_named():
    rng = np.random.default_rng(3)

    def table(shift, n=1500):
        kind = rng.random(n) < 0.4
        color = np.where(rng.random(n) < np.where(kind, 0.9, 0.1), "red", "green")
        numbers = {"size": rng.normal(6.0 * kind, 1.0), "price": rng.normal(shift - 4.0 * kind, 1.0)}
        return pd.DataFrame({**numbers, "color": color})

    found = hw.compare_models(*(hw.MixedMixture(2, random_state=0).fit(table(shift)) for shift in (0.0, 7.0)))
    assert found.moved == ("price",) and len(found.components) == 2


def test_one_component_that_moved_is_not_a_column_that_moved():
    found = hw.compare_models(fitted(week(0)), fitted(week(1) + 11.0 * (week(1)[:, 1:] > 4.5) * [0.0, 1.0]))
    assert not found.moved and len(found.lost) == 1 and len(found.new) == 1


def test_divergences_of_one_component_are_those_of_the_formula():
    rng = np.random.default_rng(2)
    a, b = fitted(rng.normal(size=(2000, 2)), 1), fitted(rng.normal(0.5, 1.0, size=(2000, 2)), 1)
    found = hw.compare_models(a, b)
    shift, one, two = b.means_[0] - a.means_[0], a.covariances_[0], b.covariances_[0]
    inverse = np.linalg.inv(two)
    exact = 0.5 * (np.trace(inverse @ one) + shift @ inverse @ shift - 2.0 + np.log(np.linalg.det(two) / np.linalg.det(one)))
    assert abs(found.divergence - exact) < 4.0 * found.standard_error


def test_tables_with_other_categories():
    rng = np.random.default_rng(3)

    def table(chance, new, n=2000):
        kind = rng.random(n) < 0.5
        color = np.where(rng.random(n) < np.where(kind, chance, 0.1), "red", "green")
        return pd.DataFrame({"size": rng.normal(5.0 * kind, 1.0), "color": np.where(rng.random(n) < new, "blue", color)})

    one = hw.MixedMixture(2, random_state=0).fit(table(0.9, 0.0))
    two = hw.MixedMixture(2, random_state=0).fit(table(0.6, 0.05))
    found = hw.compare_models(one, two)
    assert len(found.components) == 2
    moved = max(found.components, key=lambda part: abs(part.changes[0].standard_errors))
    assert {change.name for change in moved.changes[:2]} == {"color=red", "color=green"}
    assert all("color=blue" in {change.name for change in part.changes} for part in found.components)


def test_the_command(tmp_path, capsys):
    files = [str(tmp_path / f"{name}.hw") for name in ("a", "b")]
    for file, rows in zip(files, (week(0), week(1, shift=0.5)), strict=True):
        fitted(rows).save(file)
    assert main(["diff", *files]) == 0
    assert "3 components in both models" in capsys.readouterr().out
    assert main(["diff", *files, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["components"]) == 3


def test_models_that_cannot_be_compared_are_refused():
    model = fitted(week(0))
    for other, words in ((hw.GaussianHMM(2).fit(week(0)), "takes mixtures"), (fitted(week(0)[:, :1], 1), "one width")):
        with pytest.raises((TypeError, ValueError), match=words):
            hw.compare_models(model, other)
    with pytest.raises(ValueError, match="of one class"):
        hw.compare_models(model, hw.PoissonMixture(2, random_state=0).fit(np.abs(week(0)).round()))
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    swapped, renamed = frame[["b", "a"]], frame.set_axis(["a", "c"], axis=1)
    for other, words in ((swapped, "got 'a' and 'b' in place 0"), (renamed, "'b' and 'c'")):
        with pytest.raises(ValueError, match=f"the same columns in the same order, .*{words}"):
            hw.compare_models(fitted(frame, 1), fitted(other, 1))
