"""health_ finds a component that holds two clusters, and finds nothing without evidence of two."""

import numpy as np
import pytest

import headwater as hw
from headwater.diagnostics.health_clusters import find_valley

SEEDS = range(8)


def rows(seed, apart, n=1200, width=2, share=0.5):
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.normal(size=(width, width)))[0] * 10.0 ** rng.uniform(-3, 3, width)
    gap = np.where(rng.random((n, 1)) < share, apart, 0.0) * np.eye(width)[0]
    return (rng.normal(size=(n, width)) + gap) @ turned


@pytest.mark.parametrize("width", [1, 2, 10])
@pytest.mark.parametrize("seed", SEEDS)
def test_two_clusters_are_seen_in_any_direction_and_units(seed, width):
    found = find_valley(rows(seed, 6.0, width=width))
    assert found is not None and found["z"] > 4.0 and found["middle"] < 0.5 * found["side"]
    assert find_valley(rows(seed, 7.0, width=width, n=4000, share=0.2)) is not None


@pytest.mark.parametrize("width", [1, 2, 10])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_cluster_is_not_two(seed, width):
    rng = np.random.default_rng(seed)
    shape = (1200, width)
    for draws in (
        rng.normal(size=shape), rng.uniform(size=shape), rng.exponential(size=shape), rng.standard_t(3, size=shape),
        rng.poisson(1.5, size=shape).astype(float), rng.integers(2, size=shape).astype(float), rows(seed, 2.0, width=width),
        np.full(shape, 3.0),
    ):  # fmt: skip
        assert find_valley(draws) is None


def far(seed, n=2400):
    """Return rows of three clusters."""
    rng = np.random.default_rng(seed)
    return np.array([[0.0, 0.0], [30.0, 0.0], [30.0, 8.0]])[rng.integers(3, size=n)] + rng.normal(size=(n, 2))


@pytest.mark.covering
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("seed", range(3))
def test_a_stream_with_too_few_components_says_so(kind, seed):
    model = hw.GaussianMixture(2, covariance_type=kind, warm_up=300, random_state=seed).partial_fit(far(seed))
    found = model.health_.of_kind("mixed")
    assert len(found) == 1 and found[0].action and "\n" not in found[0].sentence
    assert model.predict([[30.0, 4.0]])[0] in found[0].components
    assert "holds two clusters" in str(model.health_) and "holds two clusters" in repr(model)
    enough = hw.GaussianMixture(3, covariance_type=kind, warm_up=300, random_state=seed).partial_fit(far(seed))
    assert not enough.health_.of_kind("mixed")


@pytest.mark.parametrize("algorithm", ["auto", "online-em", "boem", "moment-matching"])
def test_rows_that_wait_are_looked_at_whatever_the_algorithm(algorithm):
    model = hw.GaussianMixture(1, algorithm=algorithm, random_state=0).partial_fit(rows(0, 6.0))
    assert [one.components for one in model.health_.of_kind("mixed")] == [(0,)]
    model = hw.GaussianMixture(1, algorithm=algorithm, random_state=0).partial_fit(rows(0, 0.0))
    assert not model.health_.of_kind("mixed")


@pytest.mark.parametrize("seed", range(4))
def test_no_false_alarms_of_a_stream(seed):
    rng = np.random.default_rng(seed)
    for draws in (rng.normal(size=(2400, 3)), rng.uniform(size=(2400, 3)), rows(seed, 2.0, n=2400)):
        model = hw.GaussianMixture(2, warm_up=300, random_state=seed).partial_fit(draws)
        assert not model.health_.of_kind("mixed")


@pytest.mark.parametrize("name", ["student", "factor", "background"])
def test_all_components_that_are_clouds_are_looked_at(name):
    kind = hw.StudentMixture if name == "student" else hw.GaussianMixture
    options = {"student": {}, "factor": {"covariance_type": "factor", "n_factors": 1}, "background": {"background": True}}[name]
    model = kind(2, warm_up=300, random_state=0, **options).partial_fit(far(0))
    found = model.health_.of_kind("mixed")
    assert len(found) == 1 and "two clusters" in found[0].sentence
    assert not kind(3, warm_up=300, random_state=0, **options).partial_fit(far(0)).health_.of_kind("mixed")
    heavy = np.random.default_rng(1).standard_t(2, size=(2400, 2))
    assert not kind(1, warm_up=300, random_state=0, **options).partial_fit(heavy).health_.of_kind("mixed")


def test_many_components_that_hold_two_clusters_make_one_finding():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(8000, 2)) + 8.0 * rng.integers(0, 2, size=(8000, 2)) + 100.0 * rng.integers(0, 2, size=(8000, 2))
    model = hw.GaussianMixture(4, random_state=0).partial_fit(rows)
    (found,) = model.health_.of_kind("mixed")
    assert found.components == (0, 1, 2, 3) and found.action
    assert "Components 0, 1, 2 and 3 hold two clusters each" in found.sentence and "use more components" in found.sentence
