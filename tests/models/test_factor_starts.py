"""Starts of factor models: rows that are unlike each other, and starts that compete."""

from __future__ import annotations

import numpy as np
import pytest

import headwater as hw
from headwater.core.batch import Batch
from headwater.models.spectra import TRIES, Spectra, _unlike
from headwater.models.topics import Topics

GROUPS = (188, 8, 4)


def sounds(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of three sounds, two of them rare, of very different powers; and which they are."""
    rng = np.random.default_rng(seed)
    spectra, labels = np.full((3, 60), 0.01) + np.kron(np.eye(3), np.ones(20)), np.repeat(np.arange(3), GROUPS)
    rows = spectra[labels] * rng.exponential(size=(len(labels), 60)) * 10.0 ** rng.uniform(-3, 3, size=(len(labels), 1))
    return rows, labels


def test_rare_sounds_are_among_the_rows_that_spectra_begin_at():
    found, at_random = 0, 0  # sounds, of 50 times 3
    for seed in range(50):
        rows, labels = sounds(seed)
        shapes, rng = rows / rows.mean(axis=1, keepdims=True), np.random.default_rng(seed)
        found += len(set(labels[_unlike(shapes, np.ones(len(rows)), shapes.mean(axis=0), 5, rng)]))
        at_random += len(set(labels[rng.choice(len(rows), 5)]))
    assert found > 1.2 * at_random


def test_rows_without_weight_are_no_start():
    rows, labels = sounds(0)
    places = _unlike(rows, (labels == 2).astype(float), rows.mean(axis=0), 4, np.random.default_rng(0))
    assert set(labels[places]) == {2}


def test_rows_with_silent_bins_and_silent_rows_are_a_start():
    rows, _ = sounds(1)
    rows[::2, :30] = 0.0
    rows[5] = 0.0
    firsts = list(Spectra(4).firsts(Batch(rows, np.ones(len(rows))), np.random.default_rng(0)))
    assert len(firsts) == TRIES and all(np.isfinite(parameters.powers).all() for _, parameters in firsts)
    assert len(list(Spectra(1).firsts(Batch(rows, np.ones(len(rows))), np.random.default_rng(0)))) == 1
    nothing = Batch(np.zeros((3, 4)), np.ones(3))
    assert all((parameters.powers == 0.0).all() for _, parameters in Spectra(2).firsts(nothing, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("prior", "length", "wanted"), [(None, 80, [0.25, 1.0]), (None, 24, [0.25, 0.6]), (None, 5, [0.25]), (0.5, 80, [0.5])]
)
def test_proportions_that_are_learned_begin_with_room_as_well(prior, length, wanted):
    rows = np.random.default_rng(0).multinomial(length, np.full(9, 1 / 9), size=50).astype(float)
    firsts = Topics(4, 0.25, prior).firsts(Batch(rows, np.ones(50)), np.random.default_rng(0))
    assert [parameters.proportions[0] for _, parameters in firsts] == pytest.approx(wanted)


def test_rows_of_a_start_are_learned_more_often_where_they_say_much():
    model = Topics(4, 0.25)
    often = [model.turns(Batch(np.full((rows, 10), 2.0), np.ones(rows))) for rows in (1, 4, 1000)]
    assert often == [2, 4, 6]


@pytest.mark.slow
def test_a_learned_prior_finds_the_parts_that_images_consist_of():
    swimmer = pytest.importorskip("papers.latent_factors_swimmer", reason="run from the root of the repository")
    for seed in range(2):
        rows = swimmer.images(4000, seed)
        model = hw.LatentDirichletAllocation(20, doc_topic_prior="learn", random_state=seed).partial_fit(rows)
        assert swimmer.matched(model.topics_).found >= 12
