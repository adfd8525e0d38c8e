"""Notes of a description: what a reader should know about a state before trusting its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from headwater.core.match import MergeReport
from headwater.diagnostics.distributed_report import DistributedReport
from headwater.diagnostics.health_checks import unconverged_sentence
from headwater.diagnostics.subject import Subject
from headwater.policies.growth import Growth


class Contender(Protocol):
    """One of the models of a race."""

    @property
    def n_components(self) -> int:
        """Its number of components."""


class RaceRecord(Protocol):
    """How a race of several numbers of components went."""

    @property
    def rivals(self) -> tuple[Contender, ...]:
        """The rivals, each with its `n_components`."""

    @property
    def leader(self) -> int:
        """The number of components that leads."""

    @property
    def over(self) -> bool:
        """Whether it has won."""


@dataclass(frozen=True, eq=False)
class Results:
    """What else was recorded of a model; None where there is none.

    Attributes
    ----------
    race, growth : optional
        How the number of components was chosen, if it was not given.
    merge_report, distributed_report : optional
        What the last merge, and learning on many machines, did.
    passes : int, optional
        Passes of a last fit that did not converge.
    """

    race: RaceRecord | None = None
    growth: Growth | None = None
    merge_report: MergeReport | None = None
    distributed_report: DistributedReport | None = None
    passes: int | None = None


def notes_of(subject: Subject, results: Results, findings: tuple[str, ...], component: str) -> tuple[str, ...]:
    """Return sentences about the state of a model, the findings of its health among them; each sentence once."""
    runtime, notes = subject.runtime, []
    if runtime.warming_up:
        waiting, wanted = runtime.waiting_rows, subject.learner.plan.warm_up_rows
        until = f"{waiting:,} of about {wanted:,} rows"
        if waiting >= wanted and runtime.waiting_labels:
            until = f"{waiting:,} rows so far, since labels have named only some of the {component}s"
        notes.append(f"The warm-up is not over ({until}): what is shown was learned from these rows alone, and may change.")
    if held := runtime.unlearned_rows:
        rows = f"{held:,} raw row{'s' * (held != 1)}"
        notes.append(f"The model holds {rows}, and so does its file unless it is saved with raw_rows=False.")
    notes.extend(findings)
    race = results.race
    if race is not None and race.rivals:
        others = ", ".join(str(one.n_components) for one in race.rivals)
        how = f"{race.leader} {'was' if race.over else 'is, so far,'} the best of {others} on new rows."
        if len(race.rivals) == 1:
            how = f"{runtime.rows:,} rows are too few to compare several, so it is {race.leader}."
        notes.append(f"The number of {component}s was chosen by the data: {how}")
    if results.growth is not None:
        notes.append(f"The number of {component}s was chosen by the data: {results.growth.sentence}")
    if results.merge_report is not None:
        notes.extend(str(results.merge_report).splitlines())
    if results.distributed_report is not None:
        notes.append(results.distributed_report.sentence)
    if results.passes is not None:
        notes.append(unconverged_sentence(results.passes, subject.passes_setting))
    return tuple(dict.fromkeys(notes))
