"""A number of components that is to be found: records and sentences, the rows to find it on, and the next candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from headwater.core.batch import Batch
from headwater.core.contracts import Start
from headwater.core.statistics import Array
from headwater.families.components import ComponentStatistics
from headwater.models.extrapolation import ClimbEnd, climb_rows
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixtureParameters, MixturePrior
from headwater.policies.control_variate import ControlVariate
from headwater.policies.refinement_record import JUDGING_TIMES, LEAST_ROWS, PASSES_EACH, PROPOSING_TIMES
from headwater.policies.split_merge import Removal, Split, View

MOST_STEPS_KEPT = 100  # steps that are remembered
GROWTH_START_LOOKS = 50.0  # extra E-steps for each of the first rows, twice as many as the warm-up has
GROWTH_STREAM_LOOKS = 1.0  # and for each later row


@dataclass(frozen=True)
class Step:
    """One step of a growth: a change that was made, or the best that was refused.

    Attributes
    ----------
    rows : int
        Rows of the stream at which it was tried.
    before, after : int
        Numbers of components.
    gain : float
        What it gained on judging rows over the model before, in nats a row.
    z : float
        That in standard errors.
    judges : int
        Rows that judged; 0 where they were too few, and the Bayesian information criterion decided on all rows.
    move : str
        What was done: "split 3", "split 3, merge 1 and 2", "merge 1 and 2", "give up 4".
    accepted : bool
        Whether it was made.
    """

    rows: int = 0
    before: int = 0
    after: int = 0
    gain: float = 0.0
    z: float = 0.0
    judges: int = 0
    move: str = ""
    accepted: bool = False


@dataclass(frozen=True)
class Growth:
    """How a number of components was found, step by step; `print` it for a table.

    Attributes
    ----------
    steps : tuple of Step
        The changes that were made, in their order (the last hundred of them), and the best one that was refused since.
    spent : float
        E-steps over reservoir rows that it took.

    Examples
    --------
    >>> import numpy as np
    >>> import headwater as hw
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(3000, 2)) + 9.0 * rng.integers(2, size=(3000, 1))
    >>> growth = hw.GaussianMixture("auto", random_state=0).partial_fit(rows).growth_
    >>> sum(step.accepted for step in growth.steps)
    1
    """

    steps: tuple[Step, ...] = ()
    spent: float = 0.0

    def after(self, steps: tuple[Step, ...], spent: float = 0.0) -> Growth:
        """Return the same after more steps: of the refused ones only the last is remembered."""
        known, spent = [*self.steps, *steps], self.spent + spent
        if not steps:
            return replace(self, spent=spent)
        return Growth((*[step for step in known[:-1] if step.accepted][-MOST_STEPS_KEPT:], known[-1]), spent)

    def allowance(self, rows: int, warm_up: int) -> float:
        """E-steps over reservoir rows that are allowed now, so that growth never costs much more than the stream itself."""
        return GROWTH_START_LOOKS * min(rows, 2 * warm_up) + GROWTH_STREAM_LOOKS * rows - self.spent

    @property
    def sentence(self) -> str:
        """What happened, in a sentence."""
        made = [step for step in self.steps if step.accepted]
        splits, falls = (sum(sign * (step.after - step.before) > 0 for step in made) for sign in (1, -1))
        grown = f"it grew by {splits} split{'s' * (splits != 1)}" + f" and {falls} merge{'s' * (falls != 1)}" * (falls > 0)
        last = self.steps[-1] if self.steps else None
        if last is None or last.accepted:
            return f"{grown}."
        judged = f" ({last.z:.1f} standard errors)" if last.judges else ""
        return f"{grown}; one more would gain {last.gain:.2g} nats a row{judged}, too little to be sure."

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __str__(self) -> str:
        lines = ["      rows   K       gain      z"]
        for step in self.steps:
            judged = f"{step.z:5.1f}" if step.judges else "  BIC"
            move = step.move if step.accepted else f"({step.move}: refused)"
            lines.append(f"{step.rows:10,}  {step.after:2d}  {step.gain:9.4f}  {judged}  {move}")
        return "\n".join(lines)


EXTRA_SPLITS = 6  # ways more to split a component, where all others were tried
WINNER_PASSES = 16  # of the winner, under its own prior


@dataclass(frozen=True)
class SearchRows:
    """Rows that propose and rows that judge, both in a random order, and how mixtures climb on them.

    Without rows that judge, all propose. With a `geometry` (of all) the prior is found anew for each number of components.
    """

    propose: Batch
    judge: Batch | None
    readout: str
    method: str
    geometry: object = None
    restart: Callable[[Mixture, Batch], Start] | None = None
    n_threads: int | None = None
    clumps: int = 0

    def part(self, enough: int, times: int = 1) -> SearchRows:
        """Return the rows for a mixture whose parameters are estimated by `enough` rows, or `times` as many."""
        clumps = EXTRA_SPLITS if times > 1 else 0
        if self.judge is None:
            return replace(self, clumps=clumps)
        rows, judges = times * max(LEAST_ROWS, PROPOSING_TIMES * enough), times * max(LEAST_ROWS, JUDGING_TIMES * enough)
        return replace(self, propose=self.propose[:rows], judge=self.judge[:judges], clumps=clumps)

    @property
    def width(self) -> int:
        """Columns of the rows."""
        return int(self.propose.X.shape[1])

    @property
    def judges(self) -> Batch:
        """The rows that judge; all of them, if none do."""
        return self.propose if self.judge is None else self.judge


@dataclass(frozen=True)
class Stage:
    """A mixture on its way: the model with its number of components, the prior, and where it has climbed."""

    model: Mixture
    prior: MixturePrior
    reached: ClimbEnd

    @classmethod
    def first(cls, model: Mixture, ground: SearchRows) -> Stage:
        """The mixture of one component."""
        one, batch = model.resize(1), ground.propose
        everything = np.ones((len(batch), 1))
        statistics, prior = one.collect(ground.geometry, batch, everything).mean, one.prior(ground.geometry, batch, everything)
        nowhere = MixtureParameters(np.zeros(1), None)  # before the first pass
        return cls(one, prior, ClimbEnd(nowhere, statistics, 0.0, 0)).climb(ground, 2)

    @property
    def k(self) -> int:
        """Its number of components."""
        return self.model.n_components

    def kept(self, ground: SearchRows) -> ControlVariate:
        """The rows that propose, to climb on."""
        batch = ground.propose
        return ControlVariate(self.model, ground.readout, self.prior, batch, batch.size, None, ground.n_threads)

    def climb(self, ground: SearchRows, passes: int = PASSES_EACH, statistics: ComponentStatistics | None = None) -> Stage:
        """Return it after more passes, from other statistics if some are given."""
        start = self.reached.statistics if statistics is None else statistics
        return replace(self, reached=climb_rows(self.kept(ground), start, passes))

    def responsibilities(self, ground: SearchRows) -> Array:
        """Responsibilities of the rows that propose."""
        return self.model.posterior_and_scores(self.reached.parameters, ground.propose, ground.n_threads)[0]

    def scores(self, ground: SearchRows) -> Array:
        """Scores of the rows that judge."""
        return self.model.log_likelihood(self.reached.parameters, ground.judges, ground.n_threads)

    def view(self, ground: SearchRows) -> View:
        """Proposing rows, with their responsibilities and scores."""
        return View.of(
            self.model, ground.readout, self.prior, self.reached.parameters, ground.propose, ground.method, ground.n_threads,
            ground.clumps,
        )  # fmt: skip

    def extra_parameters(self, other: Stage, width: int) -> int:
        """Difference in the number of parameters to another."""
        return self.model.n_parameters(width) - other.model.n_parameters(width)

    def refit(self, ground: SearchRows) -> Stage:
        """Return it under the prior of components like these, if there is a geometry, after some passes."""
        model, geometry, batch = self.model, ground.geometry, ground.propose
        if geometry is None:
            return self.climb(ground)
        prior = model.prior(geometry, batch, self.responsibilities(ground))
        if len(batch) >= 5 * ground.width * self.k:
            prior = model.refine_prior(prior, self.reached.parameters, geometry)
        return replace(self, prior=prior).climb(ground, WINNER_PASSES)

    def split(self, chosen: Sequence[Split]) -> Stage:
        """Return it with some components split: one half stays in its place, the other comes last."""
        k, size = self.k, self.k + len(chosen)
        model, statistics = self.model.resize(size), self.reached.statistics
        own = np.eye(size, k)
        own[[one.component for one in chosen]] = 0.0
        for place, one in enumerate(chosen):
            new = np.zeros((size, 2))
            new[one.component, 0] = new[k + place, 1] = 1.0
            statistics = model.recombine(statistics, own if place == 0 else np.eye(size), one.statistics, new)
        prior = self.model.select_prior(self.prior, [*range(k), *(one.component for one in chosen)])
        return Stage(model, prior, replace(self.reached, statistics=statistics))

    def remove(self, fall: Removal) -> Stage:
        """Return it with two components as one, or without one."""
        gone, own = fall.components[-1], np.eye(self.k)
        if len(fall.components) == 2:
            own[fall.components[0], gone] = 1.0
        order = [one for one in range(self.k) if one != gone]
        model = self.model.resize(self.k - 1)
        statistics = model.recombine(self.reached.statistics, own[order])
        return Stage(model, self.model.select_prior(self.prior, order), replace(self.reached, statistics=statistics))

    def restart_from(self, ground: SearchRows, start: Start) -> Stage:
        """Return a start with one more component, in the order of the present components that they resemble most."""
        model, prior = self.model.resize(self.k + 1), self.model.select_prior(self.prior, [*range(self.k), 0])
        begun = replace(self.reached, statistics=model.move_to_prior(prior, start.prior, start.summary.mean))
        other = Stage(model, prior, begun).climb(ground)
        old, new = self.responsibilities(ground), other.responsibilities(ground)
        alike = old.T @ new / np.sqrt(np.outer((old**2).sum(axis=0), (new**2).sum(axis=0)) + 1e-12)
        order: list[int] = []
        for row in alike:
            row[order] = -1.0
            order.append(int(np.argmax(row)))
        order += [k for k in range(other.k) if k not in order]
        reached = replace(
            other.reached,
            parameters=model.select_parameters(other.reached.parameters, order),
            statistics=model.select_statistics(other.reached.statistics, order),
        )
        return Stage(model, prior, reached)
