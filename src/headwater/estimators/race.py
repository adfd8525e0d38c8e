"""Race: models of several numbers of components that learn the same rows, and how they compare. Records, and no estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from headwater.core.statistics import Array

BLOCK = 32  # rows whose scores are added up first, since those of neighbours may be alike
DOUBT = 2.0  # standard errors by which a larger number of components has to be better than a smaller one
WORSE = 3.0  # standard errors behind the best with which a rival drops out
NEGLIGIBLE = 5e-4  # nats a row; less is not worth another component
PATIENCE = 3  # successive rivals that are larger than the leader and no better, after which no larger ones enter


@dataclass(frozen=True)
class Rival:
    """One number of components in a race.

    `score` is the mean log-density of the last `rows` rows that it was judged on, each before it was learned, and `behind` by
    how much that is less than the leader's on the same rows; `dropped_at` are the rows of the stream after which it dropped
    out, None as long as it stays.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).poisson(1.0, size=(900, 8))
    >>> race = hw.LatentDirichletAllocation("auto", warm_up=100, random_state=0).partial_fit(rows).race_
    >>> race.rivals[0].n_components
    2
    """

    n_components: int
    score: float = np.nan
    behind: float = np.nan
    rows: int = 0
    dropped_at: int | None = None


@dataclass(frozen=True)
class Tally:
    """Scores of rivals on the same rows, each less that of the first: totals of blocks, their sums and products of two.

    `waiting` and `weights` are the scores (rows, rivals) and weights of the rows that do not fill a block yet, so that the cut
    into chunks does not change a bit.
    """

    sums: Array
    products: Array
    level: float = 0.0
    weight: float = 0.0
    rows: int = 0
    blocks: int = 0
    waiting: Array = field(default_factory=lambda: np.empty((0, 0)))
    weights: Array = field(default_factory=lambda: np.empty(0))

    @staticmethod
    def of(rivals: int) -> Tally:
        """A tally of no rows."""
        return Tally(np.zeros(rivals), np.zeros((rivals, rivals)), waiting=np.empty((0, rivals)))

    def after(self, scores: Array, weights: Array, size: int = BLOCK) -> Tally:
        """Return the tally after more rows: their scores (rows, rivals), and the weight of each."""
        scores, weights = np.concatenate([self.waiting, scores]), np.concatenate([self.weights, weights])
        full = len(scores) // size
        rest = full * size
        weighted = (scores[:rest] * weights[:rest, None]).reshape(full, size, scores.shape[1]).sum(axis=1)
        apart = weighted - weighted[:, :1]
        return Tally(
            _add_in_order(self.sums, apart),
            _add_in_order(self.products, apart[:, :, None] * apart[:, None, :]),
            float(_add_in_order(np.array([self.level]), weighted[:, :1])[0]),
            float(_add_in_order(np.array([self.weight]), weights[:rest].reshape(full, size).sum(axis=1, keepdims=True))[0]),
            self.rows + rest,
            self.blocks + full,
            scores[rest:].copy(),
            weights[rest:].copy(),
        )

    @property
    def means(self) -> Array:
        """Mean score of each rival."""
        return (self.level + self.sums) / self.weight

    def lead(self, one: int) -> tuple[Array, Array]:
        """By how much one rival is ahead of each, in nats a row, and the standard error of that."""
        gap = self.sums[one] - self.sums
        squares = self.products[one, one] + np.diag(self.products) - 2.0 * self.products[one]
        spread = np.maximum(squares - gap**2 / self.blocks, 0.0) * self.blocks / max(self.blocks - 1, 1)
        return gap / self.weight, np.sqrt(spread) / self.weight

    def told(self, numbers: Sequence[int]) -> tuple[Rival, ...]:
        """Return how rivals with these numbers of components did."""
        behind, _ = self.lead(self.leader)
        rows = self.rows
        return tuple(Rival(k, float(mean), float(gap), rows) for k, mean, gap in zip(numbers, self.means, behind, strict=True))

    @property
    def best(self) -> int:
        """The rival with the highest score."""
        return int(np.argmax(self.sums))

    @property
    def leader(self) -> int:
        """The smallest rival that is not behind the best by more than doubt allows."""
        lead, error = self.lead(self.best)
        return int(np.argmax((lead <= DOUBT * error) | (lead <= NEGLIGIBLE)))

    def kept(self) -> NDArray[np.bool_]:
        """Which rivals stay: not those far behind, nor those that are larger than the leader and will not be better."""
        leader = self.leader
        behind, error = self.lead(self.best)
        ahead, doubt = self.lead(leader)
        idle = -ahead + DOUBT * doubt <= NEGLIGIBLE
        idle[: leader + 1] = False
        kept = (behind <= WORSE * error) & ~idle
        kept[leader] = True
        return kept

    def exhausted(self) -> bool:
        """Whether the last rivals are larger than the leader and none of them any better: larger ones need not enter."""
        leader = self.leader
        behind, error = self.lead(leader)
        last = slice(max(leader + 1, len(self.sums) - PATIENCE), None)
        return len(self.sums) - leader > PATIENCE and bool((-behind[last] <= np.maximum(error[last], NEGLIGIBLE)).all())


@dataclass(frozen=True)
class Race:
    """How rivals with several numbers of components compare on rows that they have not learned yet.

    Attributes
    ----------
    rivals : tuple of Rival
        All that entered, from the smallest to the largest.
    leader : int
        The number of components that answers; that of the winner, if the race is over. 0 before the first comparison.
    warm_up : int
        Rows that every rival starts on; 0 if they were all at hand.
    judged : int
        Rows that rivals were judged on so far.
    until : int
        Rows after which they are compared next; 0 if the race is over.
    last : int
        Rows after which the leader wins.
    tally : Tally, optional
        Scores since they were compared last.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).poisson(1.0, size=(900, 8))
    >>> race = hw.LatentDirichletAllocation("auto", warm_up=100, random_state=0).partial_fit(rows).race_
    >>> race.leader in [rival.n_components for rival in race.rivals]
    True
    """

    rivals: tuple[Rival, ...] = ()
    leader: int = 0
    warm_up: int = 0
    judged: int = 0
    until: int = 0
    last: int = 0
    tally: Tally | None = field(default=None, repr=False)

    @property
    def running(self) -> tuple[int, ...]:
        """Numbers of components of those that have not dropped out."""
        return tuple(rival.n_components for rival in self.rivals if rival.dropped_at is None)

    @property
    def over(self) -> bool:
        """Whether there is a winner."""
        return bool(self.rivals) and self.until == 0

    def after(self, scores: Array, weights: Array) -> Race:
        """Return the race after rows that its running rivals have scored (rows, rivals) and learned."""
        assert self.tally is not None
        return replace(self, tally=self.tally.after(scores, weights), judged=self.judged + len(scores))

    def compared(self, rows: int) -> Race:
        """Return the race after a comparison at so many rows of the stream; the last one leaves the leader alone."""
        assert self.tally is not None
        running, tally = self.running, self.tally
        leader = running[tally.leader]
        kept = {k for k, stays in zip(running, tally.kept(), strict=True) if stays}
        if self.judged >= self.last or len(kept) == 1:
            kept = {leader}
        told = {one.n_components: one for one in tally.told(running)}
        rivals = tuple(told.get(one.n_components, one) for one in self.rivals)
        rivals = tuple(replace(one, dropped_at=rows) if one.n_components in set(told) - kept else one for one in rivals)
        if len(kept) == 1:
            return replace(self, rivals=rivals, leader=leader, until=0, tally=None)
        return replace(self, rivals=rivals, leader=leader, until=2 * self.judged, tally=Tally.of(len(kept)))

    def decided(self, rows: int, winner: int) -> Race:
        """Return the race after its end, at so many rows of the stream."""
        rivals = tuple(
            replace(one, dropped_at=rows) if one.dropped_at is None and one.n_components != winner else one
            for one in self.rivals
        )
        return replace(self, rivals=rivals or (Rival(winner),), leader=winner, until=0, tally=None)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        lines = ["   K      score     behind      rows  dropped at"]
        for one in self.rivals:
            told = f"{one.score:9.4f}  {one.behind:9.4f}  {one.rows:8,}"
            lines.append(f"{one.n_components:4d}  {told}  {self._place(one):>10}")
        return "\n".join(lines)

    def _place(self, one: Rival) -> str:
        if one.n_components == self.leader:
            return "leads"
        return "" if one.dropped_at is None else f"{one.dropped_at:,}"


def _add_in_order(total: Array, parts: Array) -> Array:
    """Add parts one after the other, so that it does not matter which of them came at once."""
    return np.asarray(np.concatenate([total[None], parts]).cumsum(axis=0)[-1])
