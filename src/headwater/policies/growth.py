"""How a number of components was found: records, and sentences about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape

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
