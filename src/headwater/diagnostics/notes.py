"""Notes of a description: what a reader should know about a state before trusting its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from headwater.core.match import MergeReport
from headwater.diagnostics.distributed_report import DistributedReport
from headwater.diagnostics.health_checks import unconverged_sentence
from headwater.diagnostics.subject import Subject
from headwater.policies.growth import Growth


class RaceRecord(Protocol):
    """How a race of several numbers of components went."""

    @property
    def rivals(self) -> tuple[Any, ...]:
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
        notes.append(f"The warm-up is not over ({until}): the description comes from a start on these rows, and may change.")
    if held := runtime.unlearned_rows:
        wait = "s, which wait to be learned and are" if held != 1 else ", which waits to be learned and is"
        notes.append(f"The model holds {held:,} raw row{wait} saved with it.")
    notes.extend(findings)
    race = results.race
    if race is not None and race.rivals:
        others = ", ".join(str(one.n_components) for one in race.rivals)
        how = f"{race.leader} {'won' if race.over else 'leads'} a race of {others}."
        if len(race.rivals) == 1:
            how = f"of {runtime.rows:,} rows there are too few to compare several, so that it is {race.leader}."
        notes.append(f"The number of components was not given: {how}")
    if results.growth is not None:
        notes.append(f"The number of components was not given: the model {results.growth.sentence}")
    if results.merge_report is not None:
        notes.extend(str(results.merge_report).splitlines())
    if results.distributed_report is not None:
        notes.append(results.distributed_report.sentence)
    if results.passes is not None:
        notes.append(unconverged_sentence(results.passes))
    return tuple(dict.fromkeys(notes))
