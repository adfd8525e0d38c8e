"""Records of the multinomial family: statistics, prior, parameters and belief of K components."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics
from headwater.families.table import Table, Words, average_tables
from headwater.kernels.mixture import EXPECT_LOG, MODE, PREDICTIVE, READOUTS, TINY
from headwater.kernels.multinomial import word_table
from headwater.kernels.parallel import run_tasks

SLAB_WORDS = 4096
ROUNDING = 1e-10  # relative; a larger difference is not rounding


@dataclass(frozen=True)
class MultinomialStatistics(ComponentStatistics):
    """Rows (K,), counts in each group of columns (G, K) and in each column (V, K), per component."""

    length: Array
    table: Any  # Table, or Blend in a running average

    def averaged(self, newest: Self, gain: float) -> Self:
        """Return these statistics, a running average, moved towards the newest."""
        names = [name for name in self._names() if name != "table"]
        small = {name: (1.0 - gain) * getattr(self, name) + gain * getattr(newest, name) for name in names}
        return replace(self, **small, table=average_tables(self.table, newest.table, gain))

    def since(self, base: Self) -> tuple[float, Self]:
        """Return the multiple of their base in these statistics, and the rest: only words that have occurred since."""
        table, before, share = self.table.plain(), base.table.plain(), float(self.from_base[0])
        multiple, words = table.since(before)
        if not np.isclose(multiple, share, rtol=ROUNDING, atol=0.0):  # the table is another, or has been written anew
            multiple, words = share, np.union1d(table.words(), before.words())
        return multiple, self._beside(words, (multiple, base))

    def average_since(self, average: Self, base: Self, rest: Self) -> tuple[float, float, Self]:
        """Return the multiples of the average and of the statistics of their base in this average, and the rest.

        An average changes in the words that the statistics change in. In all other words it is the same mean of the average and
        the statistics of the base, and its share in the whole gives the weight of both together.
        """
        mine, old, new = self.table, average.table, base.table
        held = np.zeros(mine.shape[0], dtype=np.bool_)
        for table in (mine, old, new):
            held[table.words()] = True
        held[rest.table.words()] = False
        words, share = np.flatnonzero(held).astype(np.int32), float(self.from_base[0])
        slabs = [words[begin : begin + SLAB_WORDS] for begin in range(0, len(words), SLAB_WORDS)]
        inner = square = 0.0
        with np.errstate(over="ignore"):  # at worst, more words are sent than needed
            for slab in slabs:
                apart = old.at(slab) - new.at(slab)
                inner += float((apart * (mine.at(slab) - share * new.at(slab))).sum())  # a dot's bits depend on threads
                square += float((apart * apart).sum())
        of_old = float(np.clip(inner / square, 0.0, share)) if 0.0 < square < np.inf and np.isfinite(inner) else 0.0
        of_new, misfits = share - of_old, [rest.table.words()]
        for slab in slabs:
            before, now = old.at(slab), new.at(slab)
            gap = np.abs(mine.at(slab) - of_old * before - of_new * now)
            misfits.append(slab[(gap > ROUNDING * share * (before + now)).any(axis=1)])
        return of_old, of_new, self._beside(np.concatenate(misfits), (of_old, average), (of_new, base))

    def _beside(self, words: Words, *known: tuple[float, Self]) -> Self:
        """Return these statistics less multiples of others, from which they differ in the table in these words alone."""
        small: dict[str, Array] = {name: getattr(self, name) for name in self._names() if name != "table"}
        rows = self.table.at(words)
        for multiple, other in known:
            small = {name: value - multiple * getattr(other, name) for name, value in small.items()}
            rows -= multiple * other.table.at(words)
        return replace(self, **small, table=Table.of_words(self.table.shape[0], words, rows))


@dataclass(frozen=True)
class MultinomialPrior:
    """Dirichlet parameters: `beta` is (1, 1), (V, 1) or (V, K), and so is `shift`, which a mode subtracts from it.

    `totals` and `shift_totals` (G, K) are their sums over the columns of each group, and `sizes` (G, 1) the number of these.
    """

    beta: Array
    shift: Array
    totals: Array
    shift_totals: Array
    sizes: Array

    @property
    def width(self) -> int:
        return int(self.sizes.sum())

    @property
    def floors(self) -> Array:
        """The least sum of a group of modes, since each of them is at least TINY."""
        return self.sizes * TINY


def norms(code: int, prior: MultinomialPrior, length: Array) -> Array:
    """What the log-probabilities of a group's words have in common (G, K); the sum of the belief, if predictive."""
    if code == MODE:  # in this order: a small length would be lost in the sum of prior and shift
        return np.log(np.maximum((prior.totals - prior.shift_totals) + length, prior.floors))
    sums = prior.totals + length
    return sums if code == PREDICTIVE else digamma(sums) if code == EXPECT_LOG else np.log(sums)


@dataclass(frozen=True)
class MultinomialParameters:
    """What an E-step needs of a belief, read out for the words that it needs.

    `norm` (G, K) is what the log-probabilities of a group's words have in common; the sum of the belief, if predictive.
    """

    code: int
    prior: MultinomialPrior
    table: Table
    norm: Array
    groups: NDArray[np.int32]
    cache: dict[str, Array] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, name: str, prior: MultinomialPrior, totals: MultinomialStatistics, groups: NDArray[np.int32]) -> Self:
        """Parameters of the belief prior + totals."""
        code = READOUTS[name]
        return cls(code, prior, totals.table.plain(), norms(code, prior, totals.length), groups)

    def at(self, words: Words, n_threads: int | None = 1) -> Array:
        """Log-probabilities (or beliefs, if predictive) of these words under each component."""
        out = np.empty((len(words), self.norm.shape[1]))
        with self.table.reading() as (slots, rows, factor):

            def work(begin: int) -> None:
                part = slice(begin, begin + SLAB_WORDS)
                prior = (self.prior.beta, self.prior.shift)
                word_table(self.code, slots, rows, factor, words[part], *prior, self.norm, self.groups, out[part])

            run_tasks(work, range(0, len(words), SLAB_WORDS), n_threads)
        return out

    def all(self, n_threads: int | None = 1) -> Array:
        """The same for all words (V, K); made once."""
        if "all" not in self.cache:
            self.cache["all"] = self.at(np.arange(self.table.shape[0], dtype=np.int32), n_threads)
        return self.cache["all"]

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "cache": {}}
