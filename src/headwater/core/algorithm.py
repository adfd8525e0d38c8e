"""Algorithm: one way to learn, as a record of choices. `algorithms.py` is the table of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import ClassVar, Literal

from headwater.core.contracts import Inference, Model
from headwater.core.schedules import Equal, Schedule, check_decay, check_number

MOST_DRAWS = 10**6  # of one row
MOST_EXPONENT = 10.0  # of the weights of an average

BatchSize = int | Literal["auto"]


@dataclass(frozen=True)
class Algorithm:
    """One way to learn.

    `readout` makes the parameters of the next E-step, `report` those the user sees. An online algorithm folds batches of
    its own size with the steps of its schedule; a batch algorithm, whose online `twin` is named, replaces the statistics
    once per pass. `finish` says that `fit` goes on with passes after the stream, under its prior, whose readout is
    `pass_readout`, and `searches` that before it several seeds compete and the rows are streamed; `likelihood` that passes
    maximise the likelihood unless a prior was given; `average` that a running average of the statistics is kept, in which
    row n weighs as n^`average_exponent`. A
    `projection` takes the place of the fold. `again` says that `fit` streams the rows again and again; `blocks_grow` that
    batches of sequences become larger with the stream; `refines` that a mixture keeps a reservoir, by which it
    leaves a bad start; `counts_rows` that the prior is weighed against the number of rows seen (paper 001), not against
    the effective number of rows. `ways` are kinds of E-steps; a model takes the first one that it offers.
    """

    word: ClassVar[str]
    readout: ClassVar[str] = "mode"
    report: ClassVar[str] = "mode"
    online: ClassVar[bool] = True
    finish: ClassVar[bool] = False
    searches: ClassVar[bool] = True
    likelihood: ClassVar[bool] = False
    twin: ClassVar[str] = ""
    ways: ClassVar[tuple[str, ...]] = ("exact",)
    again: ClassVar[bool] = False
    blocks_grow: ClassVar[bool] = False
    refines: ClassVar[bool] = False

    average: ClassVar[bool] = False
    average_exponent: ClassVar[float] = 1.0

    @property
    def projection(self) -> tuple[str, str] | None:
        """How the posterior after a row is projected, if it is: the weights, and the degrees of freedom."""
        return None

    @property
    def counts_rows(self) -> bool:
        return False

    @property
    def corrects(self) -> bool:
        """Whether the estimate is the optimum of all rows, since what early rows were counted as is corrected or forgotten."""
        return True

    def refining(self) -> Algorithm | None:
        """Return this algorithm with a reservoir by which it leaves a bad start, or None if it cannot have one."""
        return self if self.refines else None

    @property
    def pass_readout(self) -> str:
        """The readout of passes over all rows: that of EM where they follow a stream, or where they maximise the likelihood."""
        return "mode" if self.likelihood or self.finish else self.readout

    def suits(self, model: Model) -> bool:
        """Whether this algorithm can learn a model."""
        return any((way, self.readout) in model.ways for way in self.ways)

    def inference(self, model: Model) -> Inference:
        """How the E-steps of a model are taken."""
        return Inference(next(way for way in self.ways if (way, self.readout) in model.ways))

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        """Rows of one batch."""
        return 1

    def schedule(self, n_components: int, rows_to_learn: int, warm_up: int) -> Schedule:
        """Step sizes of the folds."""
        return Equal()

    def __post_init__(self) -> None:
        refine = getattr(self, "refine", False)
        if not isinstance(refine, bool):
            raise ValueError(f"refine must be True or False, got {refine!r}")
        size = getattr(self, "batch_size", "auto")
        if size != "auto" and (isinstance(size, bool) or not isinstance(size, Integral) or size < 1):
            raise ValueError(f"batch_size must be 'auto' or an integer of at least 1, got {size!r}")
        if isinstance(size, Integral) and int(size) >= 2**63:
            raise ValueError(f"batch_size must be less than 2**63, got {size}")
        offset = getattr(self, "offset", "auto")
        if not isinstance(offset, str) or offset != "auto":
            check_number("offset", offset)
        decay = getattr(self, "decay", None)
        if decay is not None:
            check_decay(decay)
        _check_exponent(self.average_exponent)
        rate = getattr(self, "rate", None)
        if rate is not None and not callable(rate):
            raise ValueError(f"rate must be a schedule, such as Harmonic(a, b, c), got {rate!r}")


@dataclass(frozen=True)
class Additive:
    """The part of an algorithm whose counts add, so that they are sums at one reference as long as its parameters are held.

    With `refine` they are held: a mixture keeps a reservoir, by which the reference is moved, and the statistics of all rows
    are restated there. So the steps of 1/n do not keep what rows said under early parameters. Rows are learned in batches then.
    """

    refine: bool = field(default=False, kw_only=True)

    @property
    def refines(self) -> bool:
        return self.refine

    @property
    def corrects(self) -> bool:
        return self.refine

    def refining(self) -> Algorithm | None:
        found: Algorithm = replace(self, refine=True)  # type: ignore[assignment]
        return found

    def batch_rows(self, n_components: int, rows_to_learn: int) -> int:
        size: BatchSize = vars(self)["batch_size"]  # each such algorithm has one
        return rows_of_batch("auto" if self.refine and size == 1 else size, rows_to_learn)


def _check_exponent(value: object) -> None:
    """Refuse an exponent of the weights of an average that is not from 0 to 10: beyond that it averages next to nothing."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and 0.0 <= float(value) <= MOST_EXPONENT):  # type: ignore[arg-type]
        raise ValueError(f"average_exponent must be a number from 0 to {MOST_EXPONENT:g}, got {value!r}")


def rows_of_batch(batch_size: BatchSize, rows_to_learn: int, at_least: int = 1024) -> int:
    """Batches that hold enough rows to move every parameter, and to make a refresh cheap beside the E-step."""
    return max(at_least, rows_to_learn // 5) if batch_size == "auto" else batch_size


def check_draws(value: object, name: str, least: int) -> None:
    """Refuse a number of draws that is not a positive integer."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= MOST_DRAWS:
        raise ValueError(f"{name} must be an integer of at least {least}, and at most {MOST_DRAWS}, got {value!r}")
