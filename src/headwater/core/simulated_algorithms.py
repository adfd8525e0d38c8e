"""Algorithms whose E-step is drawn or collapsed, as models with many latent variables a row need; rows of the same table."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.core.algorithm import Algorithm, BatchSize, check_draws, rows_of_batch
from headwater.core.contracts import Inference, Model
from headwater.core.schedules import Decay, Schedule, check_number


@dataclass(frozen=True)
class SimulatedEM(Algorithm):
    """Simulated online EM (paper 001): the E-step draws the latent variables, and averages the statistics of the draws.

    Parameters
    ----------
    sampler : str, default='auto'
        'gibbs' or 'metropolis' for topics and for spectra, 'independent' for mixtures; 'auto' is the first that a model names.
    burn_in : int, optional
        Draws of each row that are discarded. By default what the sampler needs.
    n_samples : int, optional
        Draws of each row that are averaged (m of eq. 3). By default what the sampler needs.
    kappa : float, optional
        Sharpness of Metropolis proposals: the larger, the shorter the steps.
    rao_blackwell : bool, default=True
        Whether a draw is replaced by an expectation given a part of it, which reduces the variance. If False, raw counts.
    decay, offset : float, default=0.6, 2.0
        The step at batch t is (t + offset)^-decay.
    batch_size : int or 'auto', default='auto'
        Rows of a batch. The paper folds row by row.
    average : bool, default=True
        Whether the statistics are averaged over the stream (Polyak and Ruppert).

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).poisson(1.0, size=(300, 6))
    >>> model = hw.LatentDirichletAllocation(2, algorithm=hw.SimulatedEM(n_samples=2), random_state=0).partial_fit(rows)
    >>> model.n_samples_seen_
    300
    """

    sampler: str = "auto"
    burn_in: int | None = None
    n_samples: int | None = None
    kappa: float | None = None
    rao_blackwell: bool = True
    decay: float = 0.6
    offset: float = 2.0
    batch_size: BatchSize = "auto"
    average: bool = True  # type: ignore[misc]

    word = "simulated-em"
    ways = ("simulated",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.burn_in is not None:
            check_draws(self.burn_in, "burn_in", 0)
        if self.n_samples is not None:
            check_draws(self.n_samples, "n_samples", 1)
        for name in ("rao_blackwell", "average"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.kappa is not None:
            check_number("kappa", self.kappa, zero=False)

    @property
    def counts_rows(self) -> bool:
        return True

    def inference(self, model: Model) -> Inference:
        names = list(model.samplers)
        name = names[0] if self.sampler == "auto" else self.sampler
        if name not in names:
            raise ValueError(f"sampler must be 'auto' or one of {', '.join(map(repr, names))}, got {self.sampler!r}")
        default = model.samplers[name]
        return Inference(
            "simulated",
            name,
            default.burn_in if self.burn_in is None else int(self.burn_in),
            default.n_samples if self.n_samples is None else int(self.n_samples),
            default.kappa if self.kappa is None else float(self.kappa),
            self.rao_blackwell,
        )

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return rows_of_batch(self.batch_size, rows_to_learn, 64)

    def schedule(self, n_components: int, rows_to_learn: int, warm_up: int) -> Schedule:
        return Decay(self.decay, self.offset)


@dataclass(frozen=True)
class AutoSimulatedEM(SimulatedEM):
    """What "auto" is for models whose E-step has to be simulated: `fit` streams the rows again and again."""

    word = "auto"
    again = True


@dataclass(frozen=True)
class SurrogateEM(SimulatedEM):
    """What "auto" is for spectra: the draws of simulated EM, and longer steps; `fit` streams the rows again and again.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).exponential(size=(300, 6))
    >>> model = hw.ItakuraSaitoNMF(2, algorithm=hw.SurrogateEM(), random_state=0).partial_fit(rows)
    >>> model.n_samples_seen_
    300
    """

    average: bool = False  # type: ignore[misc]

    word = "auto"
    readout = "surrogate"
    report = "surrogate"
    again = True

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return rows_of_batch(self.batch_size, rows_to_learn, 1)


@dataclass(frozen=True)
class CollapsedVB(Algorithm):
    """Stochastic collapsed variational Bayes for topics (SCVB0; Foulds et al., 2013): fast, and deterministic.

    Parameters
    ----------
    burn_in : int, default=5
        Sweeps over each document before the one that is learned from.
    decay, offset : float, default=0.6, 2.0
        The step at batch t is (t + offset)^-decay.
    batch_size : int or 'auto', default='auto'
        Documents of a batch.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rows = np.random.default_rng(0).poisson(1.0, size=(300, 6))
    >>> model = hw.LatentDirichletAllocation(2, algorithm=hw.CollapsedVB(burn_in=3), random_state=0).partial_fit(rows)
    >>> model.n_samples_seen_
    300
    """

    burn_in: int = 5
    decay: float = 0.6
    offset: float = 2.0
    batch_size: BatchSize = "auto"

    word = "scvb0"
    ways = ("collapsed",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_draws(self.burn_in, "burn_in", 0)

    @property
    def counts_rows(self) -> bool:
        return True

    def inference(self, model: Model) -> Inference:
        return Inference("collapsed", burn_in=self.burn_in)

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        return rows_of_batch(self.batch_size, rows_to_learn, 64)

    def schedule(self, n_components: int, rows_to_learn: int, warm_up: int) -> Schedule:
        return Decay(self.decay, self.offset)
