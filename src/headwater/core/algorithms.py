"""The algorithms: each a frozen row of the same table. What they mean is in the loop (loop.py, steps.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from headwater.core.algorithm import Additive, Algorithm, BatchSize, rows_of_batch
from headwater.core.contracts import Inference, Model
from headwater.core.schedules import Decay, Equal, Schedule
from headwater.core.simulated_algorithms import CollapsedVB, SimulatedEM

StreamReadout: TypeAlias = Literal["expect_log", "mean", "predictive", "mode"]  # by which algorithm "auto" streams


@dataclass(frozen=True)
class BatchEM(Algorithm):
    """EM over all rows, pass after pass: maximum likelihood, or the posterior mode if a prior is given.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = hw.GaussianMixture(2, algorithm=hw.BatchEM(), random_state=0).fit(rows)
    >>> model.n_samples_seen_
    300
    """

    word = "em"
    online = False
    likelihood = True
    twin = "online-em"


@dataclass(frozen=True)
class BatchVB(Algorithm):
    """Variational Bayes over all rows, pass after pass (paper 004).

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = hw.GaussianMixture(2, algorithm=hw.BatchVB(), random_state=0).fit(rows)
    >>> model.n_samples_seen_
    300
    """

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

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = hw.GaussianMixture(2, algorithm=hw.SatoEM(decay=0.7), random_state=0).partial_fit(rows)
    >>> model.n_samples_seen_
    300
    """

    decay: float = 0.6
    offset: float | Literal["auto"] = "auto"
    rate: Schedule | None = None
    batch_size: BatchSize = 1

    word = "soem"

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return rows_of_batch(self.batch_size, rows_to_learn)

    def schedule(self, n_components: int, rows_to_learn: int, warm_up: int) -> Schedule:
        if self.rate is not None:
            return self.rate
        if self.offset == "auto":
            return Decay.window(
                max(1.0, max(warm_up, rows_to_learn) / self.batch_rows(n_components, rows_to_learn)), self.decay
            )
        return Decay(self.decay, self.offset)


@dataclass(frozen=True)
class BayesianOnlineEM(Additive, Algorithm):  # type: ignore[override]
    """Bayesian online EM (paper 000, section 4): every row adds its counts to the belief; its mean or mode is used next.

    With `refine=True` a mixture keeps a reservoir, by which what early rows were counted as is corrected, as "auto" does.
    Of topics the expected counts of a document are averages of draws, as in `SimulatedEM`, and a topic is a Dirichlet belief.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = hw.GaussianMixture(2, algorithm=hw.BayesianOnlineEM(estimate="mode"), random_state=0).partial_fit(rows)
    >>> model.n_samples_seen_
    300
    """

    estimate: Literal["mean", "mode"] = "mean"
    batch_size: BatchSize = 1

    word = "boem"
    ways = ("exact", "simulated")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.estimate not in ("mean", "mode"):
            raise ValueError(f"estimate must be 'mean' or 'mode', got {self.estimate!r}")

    def inference(self, model: Model) -> Inference:
        found = super().inference(model)
        return DEFAULTS["simulated-em"].inference(model) if found.way == "simulated" else found

    @property
    def readout(self) -> str:  # type: ignore[override]
        return self.estimate

    @property
    def report(self) -> str:  # type: ignore[override]
        return self.estimate


@dataclass(frozen=True)
class OnlineEM(Algorithm):
    """Cappé and Moulines' online EM (paper 002): mini-batches, step (t + offset)^-decay, averaged statistics.

    Row n weighs as n^a in the average, a being `average_exponent`, so that no end of the stream need be known. The variance is
    (1 + a)^2 / (1 + 2 a) times that of an efficient estimate: 1.04 at 0.25, and 4/3 at 1, which forgets the start sooner.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = hw.GaussianMixture(2, algorithm=hw.OnlineEM(decay=0.7, batch_size=50), random_state=0).partial_fit(rows)
    >>> model.n_samples_seen_
    300
    """

    decay: float = 0.6
    offset: float = 2.0
    batch_size: BatchSize = "auto"
    average: bool = True  # type: ignore[misc]
    average_exponent: float = 0.25  # type: ignore[misc]

    word = "online-em"

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return rows_of_batch(self.batch_size, rows_to_learn, 256)  # its steps shrink with every fold, so it wants many

    def schedule(self, n_components: int, rows_to_learn: int, warm_up: int) -> Schedule:
        return Decay(self.decay, self.offset)


@dataclass(frozen=True)
class OnlineVB(Additive, Algorithm):  # type: ignore[override]
    """Online variational Bayes (paper 004): counts add, or with a `decay` the step is (t + offset)^-decay.

    The second is that of Hoffman, Blei and Bach (2010), and the default for topics; the number of documents is the number seen.
    With `refine=True` a mixture keeps a reservoir, by which what early rows were counted as is corrected, as "auto" does.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = hw.GaussianMixture(2, algorithm=hw.OnlineVB(batch_size=50), random_state=0).partial_fit(rows)
    >>> model.n_samples_seen_
    300
    """

    batch_size: BatchSize = 1
    decay: float | None = None
    offset: float = 10.0

    word = "online-vb"
    readout = "expect_log"
    report = "mean"
    ways = ("exact", "mean-field")

    @property
    def counts_rows(self) -> bool:
        return self.decay is not None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.refine and self.decay is not None:
            raise ValueError(f"refine needs steps of equal weight, so decay must be None with it, got {self.decay!r}")

    @property
    def corrects(self) -> bool:
        return self.refine or self.decay is not None

    def refining(self) -> Algorithm | None:
        return super().refining() if self.decay is None else None

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        if self.decay is None:
            return super().batch_rows(n_components, rows_to_learn)
        return rows_of_batch(self.batch_size, rows_to_learn, 64)

    def schedule(self, n_components: int, rows_to_learn: int, warm_up: int) -> Schedule:
        return Equal() if self.decay is None else Decay(self.decay, self.offset)


@dataclass(frozen=True)
class QuasiBayes(Additive, Algorithm):  # type: ignore[override]
    """Quasi-Bayes (Smith and Makov; papers 000 and 003): responsibilities under the predictive density, counts that add.

    With `refine=True` a mixture keeps a reservoir, by which what early rows were counted as is corrected, as "auto" does.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = hw.GaussianMixture(2, algorithm=hw.QuasiBayes(), random_state=0).partial_fit(rows)
    >>> model.n_samples_seen_
    300
    """

    batch_size: BatchSize = 1

    word = "quasi-bayes"
    readout = "predictive"
    report = "mean"


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
    corrects = False

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
    """The default: streams in batches of equal weight; `fit` then finishes by EM under its prior.

    The stream is read by variational Bayes ("expect_log"), or by what measured better for a model: by Bayesian online EM
    ("mean") for counts; or by the only readout that a model has ("mode").

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = hw.GaussianMixture(2, algorithm=hw.Auto(batch_size=100), random_state=0).partial_fit(rows)
    >>> model.n_samples_seen_
    300
    """

    batch_size: BatchSize = "auto"
    stream: StreamReadout | None = None

    word = "auto"
    finish = True
    refines = True

    @property
    def readout(self) -> str:  # type: ignore[override]
        return self.stream or "expect_log"

    @property
    def report(self) -> str:  # type: ignore[override]
        return "mode" if self.stream == "mode" else "mean"

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return rows_of_batch(self.batch_size, rows_to_learn)


@dataclass(frozen=True)
class AutoOnlineEM(OnlineEM):
    """What "auto" is for models of sequences: online EM in batches, averaged; `fit` then finishes by EM."""

    average_exponent: float = 1.0  # type: ignore[misc]

    word = "auto"
    finish = True
    likelihood = True

    @property
    def blocks_grow(self) -> bool:  # type: ignore[override]
        return self.batch_size == "auto"

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return rows_of_batch(self.batch_size, rows_to_learn)


@dataclass(frozen=True)
class AutoVB(OnlineVB):
    """What "auto" is for Bayesian mixtures: online variational Bayes in batches; `fit` makes passes of it from one seed."""

    batch_size: BatchSize = "auto"

    word = "auto"
    finish = True
    searches = False

    @property
    def pass_readout(self) -> str:
        return self.readout


ALGORITHMS: dict[str, type[Algorithm]] = {
    kind.word: kind
    for kind in (
        Auto, BatchEM, SatoEM, BayesianOnlineEM, OnlineEM, SimulatedEM, CollapsedVB, BatchVB, OnlineVB, QuasiBayes,
        MomentMatching,
    )
}  # fmt: skip

DEFAULTS: dict[str, Algorithm] = {word: kind() for word, kind in ALGORITHMS.items()}

IN_BATCHES: dict[str, Algorithm] = {
    kind.word: kind(batch_size="auto") for kind in (SatoEM, BayesianOnlineEM, OnlineVB, QuasiBayes)
}  # what words of algorithms that go row by row mean for a model that has no kernel for it


def resolve(algorithm: str | Algorithm, model: Model, name: str, own: Mapping[str, Algorithm]) -> Algorithm:
    """Return the algorithm that a word or object names, or refuse it with the words that this model can be learned by.

    `own` are algorithms that words mean for this model; "auto" is always among them.
    """
    known = isinstance(algorithm, str) and algorithm in DEFAULTS
    chosen = own.get(str(algorithm)) or DEFAULTS[str(algorithm)] if known else algorithm
    if not isinstance(chosen, Algorithm):
        legal = _legal_words(model, own)
        raise ValueError(f"algorithm must be one of {legal} or one of their objects, got {algorithm!r}")
    if isinstance(chosen, Auto) and chosen.stream is None:
        chosen = replace(own["auto"], batch_size=chosen.batch_size)  # type: ignore[call-arg]
    if not chosen.suits(model):
        word = repr(chosen.word) if isinstance(algorithm, str) else type(chosen).__name__
        raise ValueError(f"{name} cannot be learned by {word}: use one of {_legal_words(model, own)}")
    if getattr(chosen, "refine", False) and not model.restates:
        raise ValueError(
            f"refine=True restates the counts of mixtures by reservoir rows, which {name} does not keep: leave it False"
        )
    chosen.inference(model)  # refuses a sampler that the model does not have
    return chosen


def _legal_words(model: Model, own: Mapping[str, Algorithm]) -> str:
    """Return the words of the algorithms that a model can be learned by."""
    return ", ".join(repr(word) for word, one in DEFAULTS.items() if (own.get(word) or one).suits(model))
