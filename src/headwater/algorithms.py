"""The algorithms: each a frozen row of the same table. What they mean is in the loop (learner.py)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Literal

from headwater.schedules import Decay, Equal, Schedule

BatchSize = int | Literal["auto"]


@dataclass(frozen=True)
class Algorithm:
    """One way to learn.

    `readout` makes the parameters of the next E-step, `report` those the user sees. An online algorithm folds batches of
    its own size with the steps of its schedule; a batch algorithm, whose online `twin` is named, replaces the statistics once
    per pass. `finish` says that `fit` goes on with passes of EM after the stream, `likelihood` that passes maximise the
    likelihood unless a prior was given, `average` that the statistics are averaged on the way. A `projection` takes the
    place of the fold.
    """

    word: ClassVar[str]
    readout: ClassVar[str] = "mode"
    report: ClassVar[str] = "mode"
    online: ClassVar[bool] = True
    finish: ClassVar[bool] = False
    likelihood: ClassVar[bool] = False
    twin: ClassVar[str] = ""

    average: ClassVar[bool] = False

    @property
    def projection(self) -> tuple[str, str] | None:
        """How the posterior after a row is projected, if it is: the weights, and the degrees of freedom."""
        return None

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        """Rows of one batch."""
        return 1

    def schedule(self, n_components: int, rows_to_learn: int, warm_up: int) -> Schedule:
        """Step sizes of the folds."""
        return Equal()

    def __post_init__(self) -> None:
        size = getattr(self, "batch_size", "auto")
        if size != "auto" and (isinstance(size, bool) or not isinstance(size, Integral) or size < 1):
            raise ValueError(f"batch_size must be 'auto' or an integer of at least 1, got {size!r}")
        offset = getattr(self, "offset", 0.0)
        if offset != "auto" and (not isinstance(offset, int | float) or not 0.0 <= offset < math.inf):
            raise ValueError(f"offset must be a number of at least 0, got {offset!r}")
        decay = getattr(self, "decay", 0.6)
        if not isinstance(decay, int | float) or not 0.0 < decay <= 1.0:
            raise ValueError(f"decay must be greater than 0 and at most 1, got {decay!r}")
        rate = getattr(self, "rate", None)
        if rate is not None and not callable(rate):
            raise ValueError(f"rate must be a schedule, such as Harmonic(a, b, c), got {rate!r}")


def _rows(batch_size: BatchSize, rows_to_learn: int, at_least: int = 1024) -> int:
    """Batches that hold enough rows to move every parameter, and to make a refresh cheap beside the E-step."""
    return max(at_least, rows_to_learn // 5) if batch_size == "auto" else batch_size


@dataclass(frozen=True)
class BatchEM(Algorithm):
    """EM over all rows, pass after pass: maximum likelihood, or the posterior mode if a prior is given."""

    word = "em"
    online = False
    likelihood = True
    twin = "online-em"


@dataclass(frozen=True)
class BatchVB(Algorithm):
    """Variational Bayes over all rows, pass after pass (paper 004)."""

    word = "vb"
    readout = "expect_log"
    report = "mean"
    online = False
    twin = "online-vb"


@dataclass(frozen=True)
class SatoEM(Algorithm):
    """Sato's online EM (paper 000, section 3).

    The step at row t is (t + offset)^-decay; with offset "auto" it is (1/w) (1 + t/w)^-decay for a window w that covers the
    warm-up. `rate` takes any other schedule, such as `Harmonic(a, b, c)` or `ForgettingFactor(kappa, t0)`.
    """

    decay: float = 0.6
    offset: float | Literal["auto"] = "auto"
    rate: Schedule | None = None
    batch_size: BatchSize = 1

    word = "soem"

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return _rows(self.batch_size, rows_to_learn)

    def schedule(self, n_components: int, rows_to_learn: int, warm_up: int) -> Schedule:
        if self.rate is not None:
            return self.rate
        if self.offset == "auto":
            return Decay.window(
                max(1.0, max(warm_up, rows_to_learn) / self.batch_rows(n_components, rows_to_learn)), self.decay
            )
        return Decay(self.decay, self.offset)


@dataclass(frozen=True)
class BayesianOnlineEM(Algorithm):
    """Bayesian online EM (paper 000, section 4): every row adds its counts to the belief, whose mean (or mode) comes next."""

    estimate: Literal["mean", "mode"] = "mean"
    batch_size: BatchSize = 1

    word = "boem"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.estimate not in ("mean", "mode"):
            raise ValueError(f"estimate must be 'mean' or 'mode', got {self.estimate!r}")

    @property
    def readout(self) -> str:  # type: ignore[override]
        return self.estimate

    @property
    def report(self) -> str:  # type: ignore[override]
        return self.estimate

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return _rows(self.batch_size, rows_to_learn)


@dataclass(frozen=True)
class OnlineEM(Algorithm):
    """Cappé and Moulines' online EM (paper 002): mini-batches, step (t + offset)^-decay, averaged statistics."""

    decay: float = 0.6
    offset: float = 2.0
    batch_size: BatchSize = "auto"
    average: bool = True  # type: ignore[misc]

    word = "online-em"

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return _rows(self.batch_size, rows_to_learn, 256)  # its steps shrink with every fold, so it wants many

    def schedule(self, n_components: int, rows_to_learn: int, warm_up: int) -> Schedule:
        return Decay(self.decay, self.offset)


@dataclass(frozen=True)
class OnlineVB(Algorithm):
    """Online variational Bayes (paper 004)."""

    batch_size: BatchSize = 1

    word = "online-vb"
    readout = "expect_log"
    report = "mean"

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return _rows(self.batch_size, rows_to_learn)


@dataclass(frozen=True)
class QuasiBayes(Algorithm):
    """Quasi-Bayes (Smith and Makov; papers 000 and 003): responsibilities under the predictive density, counts that add."""

    batch_size: BatchSize = 1

    word = "quasi-bayes"
    readout = "predictive"
    report = "mean"

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return _rows(self.batch_size, rows_to_learn)


Projection = Literal["second-moments", "kl"]


@dataclass(frozen=True)
class MomentMatching(Algorithm):
    """Online Bayesian moment matching (paper 003): after every row the exact posterior is projected on one belief.

    Means and mean precisions are always matched; the parameters say what else. "kl" solves for it by Newton's method, which
    takes longer.

    Parameters
    ----------
    weight_projection : {'second-moments', 'kl'}, default='second-moments'
        Match the sum of the weights' second moments, or their expected logarithms, which gives the Dirichlet nearest to the
        posterior in the sense of Kullback and Leibler.
    dof_projection : {'second-moments', 'kl'}, default='second-moments'
        The same for the degrees of freedom of each precision: a second moment, or its expected log-determinant.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(3000, 2))
    >>> hw.GaussianMixture(2, algorithm=hw.MomentMatching(dof_projection="kl"), random_state=0).fit(rows).n_samples_seen_
    3000
    """

    weight_projection: Projection = "second-moments"
    dof_projection: Projection = "second-moments"

    word = "moment-matching"
    readout = "match_moments"
    report = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("weight_projection", "dof_projection"):
            if getattr(self, name) not in ("second-moments", "kl"):
                raise ValueError(f"{name} must be 'second-moments' or 'kl', got {getattr(self, name)!r}")

    @property
    def projection(self) -> tuple[str, str]:
        return self.weight_projection, self.dof_projection


@dataclass(frozen=True)
class Auto(Algorithm):
    """What to use when nothing is asked for: streams in batches of equal weight; `fit` then finishes by EM.

    The stream is read by variational Bayes ("expect_log"), or by what measured better for a model: by Bayesian online EM
    ("mean") for counts.
    """

    batch_size: BatchSize = "auto"
    stream: Literal["expect_log", "mean", "predictive"] | None = None

    word = "auto"
    report = "mean"
    finish = True
    likelihood = True

    @property
    def readout(self) -> str:  # type: ignore[override]
        return self.stream or "expect_log"

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return _rows(self.batch_size, rows_to_learn)


ALGORITHMS: dict[str, type[Algorithm]] = {
    kind.word: kind
    for kind in (Auto, BatchEM, SatoEM, BayesianOnlineEM, OnlineEM, BatchVB, OnlineVB, QuasiBayes, MomentMatching)
}


def resolve(algorithm: str | Algorithm, readouts: frozenset[str], model: str, stream: Any = "expect_log") -> Algorithm:
    """Return the algorithm that a word or object names, or refuse it with the words that this model can be learned by.

    `stream` is the readout by which "auto" streams, unless it has one.
    """
    legal = [word for word, kind in ALGORITHMS.items() if kind().readout in readouts]
    chosen = ALGORITHMS[algorithm]() if isinstance(algorithm, str) and algorithm in ALGORITHMS else algorithm
    if not isinstance(chosen, Algorithm):
        raise ValueError(f"algorithm must be one of {', '.join(map(repr, legal))} or one of their objects, got {algorithm!r}")
    if isinstance(chosen, Auto) and chosen.stream is None:
        chosen = replace(chosen, stream=stream)
    if chosen.readout not in readouts:
        raise ValueError(f"{model} cannot be learned by {chosen.word!r}: use one of {', '.join(map(repr, legal))}")
    return chosen
