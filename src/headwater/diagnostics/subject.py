"""What diagnostics need to know of a fitted model: a record and two contracts, and no estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headwater.core.batch import Batch
from headwater.core.learner import Learner
from headwater.core.statistics import Array
from headwater.diagnostics.history import History

if TYPE_CHECKING:
    from headwater.core.contracts import Model
    from headwater.core.values import Matrix


class RuntimeView(Protocol):
    """What a stream has taken so far."""

    @property
    def warming_up(self) -> bool:
        """Whether the warm-up is not over."""

    @property
    def rows(self) -> int:
        """Rows learned from."""

    @property
    def waiting_rows(self) -> int:
        """Rows that wait for the end of the warm-up."""

    @property
    def waiting_labels(self) -> frozenset[int]:
        """Labels of the rows that wait."""

    @property
    def unlearned_rows(self) -> int:
        """Raw rows in the state, which are saved with it."""

    def waiting_batch(self, rows: int | None = None) -> Batch:
        """Return the rows that wait."""


class RefinementRecord(Protocol):
    """How the last refinement went: the model against the best candidate."""

    @property
    def contested(self) -> int:
        """Rows at which it was held; 0 if there was none."""

    @property
    def gain(self) -> float:
        """What the best candidate gained, in nats a row."""

    @property
    def z(self) -> float:
        """Standard errors of that gain."""

    @property
    def chosen(self) -> str:
        """The winner: "stream", "climb", "move" or "restart"."""

    @property
    def moves(self) -> int:
        """Changes so far."""


class DriftRecord(Protocol):
    """What the drift monitor has seen."""

    @property
    def last(self) -> int:
        """Rows at the last alarm."""

    @property
    def alarms(self) -> int:
        """Alarms so far."""


class ReadingView(Protocol):
    """What a read of the stream returned."""

    @property
    def model(self) -> Model:
        """The model, with the number of components that was found."""

    @property
    def parameters(self) -> Any:
        """Its parameters."""

    @property
    def rows(self) -> int:
        """Rows learned from."""

    @property
    def refinement(self) -> RefinementRecord | None:
        """The record of refinement, or None."""

    @property
    def drift(self) -> DriftRecord | None:
        """The record of the drift monitor, or None."""

    def half_lives(self) -> tuple[Array, bool]:
        """Return the half-lives of the components (K,), and whether the weights forget, too."""

    def reservoir_rows(self, most: int) -> Matrix | None:
        """Return at most so many rows of the reservoir, or None if it has none."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model as diagnostics see it.

    Attributes
    ----------
    name, unit : str
        The class of the model, and what a row is.
    runtime : RuntimeView
        What the stream has taken so far.
    learner : Learner
        The model with its algorithm and settings.
    half_life : float or str, optional
        The half-life that the user asked for, or "auto".
    history : History, optional
        How the stream went, if it was monitored.
    unconverged_passes : int
        Passes of a last fit that did not converge; 0 if it did, or if the algorithm makes no passes.
    passes_setting : str
        The parameter that limits the passes.
    """

    name: str
    unit: str
    runtime: RuntimeView
    learner: Learner
    half_life: float | str | None = None
    history: History | None = None
    unconverged_passes: int = 0
    passes_setting: str = "max_iter"
