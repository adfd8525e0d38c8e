"""Climbs with extrapolation, and races between them."""

from dataclasses import dataclass

import numpy as np
import pytest

import headwater as hw
from headwater.core.batch import Batch
from headwater.models.extrapolation import FEW_ROWS, HORIZON, ClimbEnd, PlainPasses, climb_rows, race


@dataclass(frozen=True)
class Walker:
    """What a race sees of a climb: its score after each stage, known beforehand."""

    scores: tuple[float, ...]
    at: int = 0

    @property
    def score(self):
        return self.scores[min(self.at, len(self.scores) - 1)]


def run(*scores, passes=30, tol=1e-9, stage=3):
    """Race walkers; return the winner's scores, and how many stages each has made."""
    made = dict.fromkeys(scores, 0)

    def go_on(one, some):
        assert some == stage
        made[one.scores] += 1
        return Walker(one.scores, one.at + 1)

    return race([Walker(one) for one in scores], go_on, passes, tol, stage).scores, list(made.values())


def test_a_race_drops_climbs_that_end_lower():
    fast = (-9.0, -3.0, -2.0, -1.9, -1.89)
    slow = (-9.0, -5.0, -4.9, -4.89)
    winner, made = run(fast, slow)
    assert winner == fast
    assert made[1] == 2  # after the first stage none is dropped


def test_a_race_waits_for_a_climb_that_leaves_a_plateau():
    early = (-9.0, -3.00, -2.90, -2.899, -2.899, -2.899, -2.899)
    late = (-9.0, -3.20, -3.15, -3.08, -2.98, -2.80, -2.50)
    assert run(early, late)[0] == late
    far = (-9.0, -4.0, -3.95, -3.90)  # too far to be reached within the horizon at this rate
    assert -3.95 + HORIZON * 0.05 < -2.90
    assert run(early, far)[0] == early


def test_climbs_to_the_same_optimum_end_the_race():
    winner, made = run((-9.0, -2.0, -1.01, -1.0, -1.0), (-9.0, -3.0, -1.02, -1.0, -1.0))
    assert winner[-1] == -1.0
    assert max(made) <= 4


def test_a_race_ends_with_its_passes_or_its_gains():
    rising = tuple(float(step) for step in range(20))
    assert run(rising, tuple(one + 0.5 for one in rising), passes=9)[1] == [3, 3]
    assert run((-2.0,), (-1.0,))[1] == [1, 1]


@pytest.mark.parametrize("kind", ["full", "diag"])
@pytest.mark.parametrize("size", [FEW_ROWS // 2, FEW_ROWS + 200])
def test_a_climb_ends_where_plain_passes_end(kind, size):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(size, 2)) + 1.2 * np.array([[0.0, 0.0], [2.0, 1.0], [0.0, 3.0]])[rng.integers(3, size=size)]
    fitted = hw.GaussianMixture(3, covariance_type=kind, random_state=0, max_iter=0).fit(rows)
    runtime, batch = fitted._runtime, Batch(rows)
    passes = PlainPasses(runtime.learner.model, "mode", runtime.prior, batch)
    totals, score = passes.look(runtime.read().parameters)
    end = passes.climb(totals, 200, 1e-9)
    assert isinstance(end, ClimbEnd)
    for _ in range(600):
        totals, plain = passes.look(passes.parameters(totals))
    assert end.score == pytest.approx(plain, abs=1e-6)
    assert end.score > score - 1e-9
    found, again = passes.look(end.parameters)
    assert again == pytest.approx(end.score, abs=1e-12)
    np.testing.assert_allclose(found.count, end.statistics.count, rtol=1e-9)


@dataclass(frozen=True)
class Refusing:
    """Passes whose extrapolations are refused: parameters of statistics that no pass has made raise an error."""

    passes: PlainPasses
    error: type
    made: list

    def parameters(self, statistics):
        if not any(statistics is one for one in self.made):
            raise self.error("refused")
        return self.passes.parameters(statistics)

    def look(self, parameters):
        found = self.passes.look(parameters)
        self.made.append(found[0])
        return found


@pytest.mark.parametrize("error", [np.linalg.LinAlgError, ValueError])
def test_singular_extrapolations_are_passed_over_and_other_errors_are_not(error):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(600, 2)) + 2.0 * rng.integers(2, size=(600, 1))
    fitted = hw.GaussianMixture(2, random_state=0, max_iter=0).fit(rows)
    plain = PlainPasses(fitted._runtime.learner.model, "mode", fitted._runtime.prior, Batch(rows))
    start, score = plain.look(fitted._runtime.read().parameters)
    passes = Refusing(plain, error, [start])
    if error is ValueError:
        with pytest.raises(ValueError, match="refused"):
            climb_rows(passes, start, 30)
    else:
        assert climb_rows(passes, start, 30).score > score
