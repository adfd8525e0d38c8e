"""Reads the state of a learner from a tree, and checks that the model could have written it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cached_property
from itertools import product
from typing import Any, TypeVar, cast

import numpy as np

from headwater.core.average import AVERAGE, average_count
from headwater.core.batch import Batch, Buffer
from headwater.core.contracts import Chained
from headwater.core.fit_result import FIT_RESULT
from headwater.core.learner import Learner
from headwater.core.records import arrays_of
from headwater.core.sequences import OpenRows
from headwater.core.shards import Shards
from headwater.core.state import Base, Progress, State, Stream, Summary, WarmUp
from headwater.core.statistics import Statistics
from headwater.core.steps import Partial, refresh
from headwater.families.components import ComponentStatistics
from headwater.families.soundness import FARTHEST, exceeds
from headwater.io.files.records import LARGEST, Damaged, Reader
from headwater.io.files.reservoirs import read_reservoir
from headwater.io.files.row_reader import RowReader
from headwater.io.files.states import BASE_PARTS, LATER_PARTS, PARTS
from headwater.models.chain_records import ChainParameters
from headwater.models.mixture import Mixture
from headwater.models.mixture_records import MixtureParameters
from headwater.policies.drift import Drift
from headwater.policies.drift_monitor import adapts
from headwater.policies.growth import Growth, Step
from headwater.policies.names import DRIFT, GROWTH, REFINEMENT, RESERVOIR
from headwater.policies.refinement_record import Refinement
from headwater.policies.reservoir import Reservoir
from headwater.policies.reservoir_policy import kept_rows

LONGEST_NAME = 64
HEAVIEST = 1e60  # a stream
MOST_ROWS = 2**53  # of a stream: all whole numbers up to it are floats
LIGHTEST = 1e-300
LONGEST_CLOCK = 1e12  # in nats
SCORED = 256  # kept rows that are scored, to see whether parameters are sound
LEAST_COUNTS = 1e-6  # a row; one, except where statistics were corrected or components pruned: the heaviest always stays
MOST_COUNTS = 1e6  # a row; a base may be an estimate, which may exceed one
LARGEST_ESTIMATE = 1e220  # of a number of a base; squares of the largest rows are 1e200, and moves between components scale it
SLACK = 1e-6  # for rounding, of sums that should be one
ROUNDING_A_ROW, MOST_ROUNDING = 1e-7, 1e-2  # of the statistics: what may be missing in what was learned since the base


def _less(progress: Progress, base: Progress) -> bool:
    """Whether a stream has made less progress than its base, beyond rounding."""
    pairs = ((progress.weight_seen, base.weight_seen), (progress.folds, base.folds))
    return any(now < (1.0 - SLACK) * before for now, before in pairs)


Read = TypeVar("Read")


class StateReader:
    """Makes a state of a tree, for one learner."""

    def __init__(self, reader: Reader, learner: Learner) -> None:
        self.reader, self.learner, self.width = reader, learner, learner.width
        self.model: Any = learner.model
        self._row_reader = RowReader(reader, self.model, self.width)

    @cached_property
    def zeros(self) -> Statistics:
        """Statistics of the right shape: zeros, which take no memory until they are read."""
        found: Statistics = self.model.zeros(self.width)
        return found

    @cached_property
    def prior(self) -> object:
        """A prior of the right shape. Statistics of that shape exist when it is needed."""
        return self.model.blank_prior(self.width)

    def state(self, tree: object, path: str, part: bool = False) -> State:
        """Return the state."""
        record = LATER_PARTS | self.reader.expect(tree, dict, path)
        if set(record) != set(PARTS):
            raise Damaged(f"{path} has other parts than a state has")
        key = self.reader.whole(record["key"], f"{path}/key", 0, 2**63 - 1)
        progress = self._progress(record["progress"], f"{path}/progress")
        if record["base"] is None:
            return self._warming_up(record, path, key, progress)
        if record["buffer"] is not None:
            raise Damaged(f"{path} is in a warm-up that is over")
        stream = self._stream(record, path, key, progress)
        if record["parameters"] is not None:
            stream = replace(stream, parameters=self._parameters(record["parameters"], stream, f"{path}/parameters"))
        if record["reported"] is not None:
            stream = stream.with_record(FIT_RESULT, self._reported(record["reported"], stream, f"{path}/reported"))
        stream = self._searched(self._unfolded(record, stream, path, part), record, path)
        return self._with_records(stream, self.reader.expect(record["records"], dict, f"{path}/records"), f"{path}/records")

    def _with_records(self, stream: Stream, records: dict[str, object], path: str) -> Stream:
        """The stream with the records of policies that describe their records themselves."""
        plan = self.learner.plan
        for name, tree in records.items():
            policy = next((one for one in plan.policies if one.name == name), None)
            blank = None if policy is None else policy.blank_record(plan, stream)
            if policy is None or blank is None:
                raise Damaged(f"{path} has {name!r}, of which this model knows nothing")
            record = self.reader.read(tree, blank, f"{path}/{name}")
            problem = policy.find_problem(plan, stream, record)
            if problem:
                raise Damaged(f"{path}/{name} {problem}")
            stream = stream.with_record(name, record)
        return stream

    def _stream(self, record: dict[str, object], path: str, key: int, progress: Progress) -> Stream:
        """The statistics of a stream on its base, with the parameters that follow from them."""
        base = self._base(record["base"], f"{path}/base")
        if min(progress.mass, progress.n_eff, base.progress.mass, base.progress.n_eff) < LIGHTEST:
            raise Damaged(f"{path} has learned nothing, and yet has a base")
        if progress.rows_seen < base.progress.rows_seen or _less(progress, base.progress):
            raise Damaged(f"{path} has learned less than its base")
        statistics = self.statistics(record["statistics"], f"{path}/statistics")
        average = self._maybe(self.statistics, record["average"], f"{path}/average")
        if (average is None) != (AVERAGE not in base.records):
            raise Damaged(f"{path} has an average, or its base has one, and the other not")
        nothing = self.learner.plan.step.nothing
        stream = Stream(key, self.model, base, statistics, None, progress, nothing).with_record(AVERAGE, average)
        self._check_belief(stream, path)
        return refresh(self.learner.plan, stream)

    def _unfolded(self, record: dict[str, object], stream: Stream, path: str, part: bool) -> Stream:
        """The stream with the rows that its step has begun."""
        parts = self.reader.items(record["parts"], f"{path}/parts")
        if parts and (part or self.model.chained or len(parts) != self.learner.shards):
            raise Damaged(f"{path} has parts in its parts, or another number of them than it should")
        rows, carry = self.reader.items(record["waiting"], f"{path}/waiting"), record["carry"]
        if not self.model.chained and (carry is not None or rows):
            raise Damaged(f"{path} has open sequences, which this model has not")
        pending = self._maybe(self._summary, record["pending"], f"{path}/pending")
        if pending is not None:
            self._check_counts(pending.statistics, pending.size, f"{path}/pending")
            stream = replace(stream, unfolded=Partial(pending))
        if carry is not None:
            chain: Chained = self.model
            carry = self.reader.read(carry, chain.blank_carry(stream.statistics), f"{path}/carry")
            self._sound(carry, f"{path}/carry")
        if carry is not None or rows:
            waiting = tuple(self._row_reader.rows(one, f"{path}/waiting/{at}") for at, one in enumerate(rows))
            stream = replace(stream, unfolded=OpenRows(carry, waiting))
        if not parts:
            return stream
        shards = tuple(self.state(one, f"{path}/parts/{at}", True) for at, one in enumerate(parts))
        return self._with_shards(stream, shards, path)

    def _with_shards(self, stream: Stream, shards: tuple[State, ...], path: str) -> Stream:
        """The stream with shards on one base, which have together learned all rows since."""
        streams = tuple(shard for shard in shards if isinstance(shard, Stream))
        bases = {shard.base.progress.rows_seen for shard in streams}
        if len(streams) < len(shards) or len(bases) > 1:
            raise Damaged(f"{path}/parts stand on different bases, or on none")
        unfolded, progress = Shards(streams), stream.progress
        rows = unfolded.before + unfolded.rows
        if progress.rows_seen != rows or unfolded.before < stream.base.progress.rows_seen:
            raise Damaged(f"{path} has {progress.rows_seen} rows, and its parts have {rows}")
        return replace(stream, progress=replace(progress, rows_seen=unfolded.before), unfolded=unfolded)

    def _check_belief(self, stream: Stream, path: str) -> None:
        """Check that a stream and its base are consistent, and that all parameters read out of them are sound."""
        learner, plan, base, average = self.learner, self.learner.plan, stream.base, stream.records.get(AVERAGE)
        beliefs = [
            ("statistics", stream.statistics, plan.count(stream.progress)),
            ("average", average, average_count(plan, self.model, stream.progress)),
        ]
        for place, statistics in (("statistics", stream.statistics), ("base/statistics", base.statistics)):
            self._check_counts(statistics, 1.0, f"{path}/{place}")
        # The base of a refined stream was restated by the rows of its reservoir, so it is an estimate.
        estimated = learner.algorithm.refines and isinstance(self.model, Mixture)
        slack, at_base = stream.statistics.scaled(SLACK), base.records.get(AVERAGE)
        if not estimated:
            self._sound(base.statistics + slack, f"{path}/base/statistics")
        elif any(exceeds(LARGEST_ESTIMATE, array) for array in arrays_of(base.statistics, dense=False)):
            raise Damaged(f"{path}/base/statistics holds a number beyond {LARGEST_ESTIMATE:g}, which no rows lead to")
        if at_base is not None:
            self._sound(at_base, f"{path}/base/average")
        for one in (base.statistics, at_base):
            if one is not None and abs(float(one.from_base[0]) - 1.0) > SLACK:
                raise Damaged(f"{path}/base has from_base {float(one.from_base[0]):g}, and should have 1")
        if learner.algorithm.readout != "match_moments" and not estimated:
            # Rows that weigh next to nothing beside the base leave rounding errors of its size.
            rounded = min(ROUNDING_A_ROW * (stream.progress.rows_seen - base.progress.rows_seen), MOST_ROUNDING)
            _, rest = stream.statistics.since(base.statistics)
            self._sound(rest + stream.statistics.scaled(max(SLACK, rounded)), f"what {path} has learned since its base")
        if not estimated:
            beliefs += [
                ("base/statistics", base.statistics, plan.count(base.progress)),
                ("base/average", at_base, average_count(plan, self.model, base.progress)),
            ]
        names = sorted({learner.algorithm.readout, learner.algorithm.report})
        for place, statistics, count in beliefs:
            for name in names if statistics is not None else ():
                parameters = self.model.readout(name, base.prior, statistics, count)
                self._sound(parameters, f"what is read out of {path}/{place}")

    def _check_counts(self, statistics: Statistics, size: float, path: str) -> None:
        """Check that the counts of the components of a mixture add up to rows of weight `size`."""
        counts = isinstance(self.model, Mixture) and self.learner.algorithm.readout != "match_moments"
        total = cast(ComponentStatistics, statistics).total if counts else size
        if not total > LEAST_COUNTS * size:
            raise Damaged(f"{path} counts less than there are rows")
        if not total < MOST_COUNTS * size:
            raise Damaged(f"{path} counts more than there are rows")

    def _searched(self, stream: Stream, record: dict[str, object], path: str) -> Stream:
        """The stream with its reservoir, whose rows must have been learned, and with its records of searches and drift."""
        if record["reservoir"] is not None:
            stream = stream.with_record(RESERVOIR, self.reservoir(record["reservoir"], f"{path}/reservoir", stream.rows))
            if record["healing"] is None:
                raise Damaged(f"{path} keeps rows, as streams that refine themselves do, but does not say how")
        if record["healing"] is not None:
            pending = getattr(stream.unfolded, "summary", None)
            if pending is not None and not abs(pending.score) <= FARTHEST:
                raise Damaged(f"{path}/pending/score is {pending.score:g}, and should be no more than {FARTHEST:g}")
            stream = stream.with_record(REFINEMENT, self._refinement(record["healing"], stream, f"{path}/healing"))
        if record["drift"] is not None:
            stream = stream.with_record(DRIFT, self._drift(record["drift"], stream, f"{path}/drift"))
        return stream

    def check_scores(self, state: State, path: str) -> None:
        """Check that kept rows, which were checked before, have finite scores with a finite sum."""
        if isinstance(state, WarmUp) or RESERVOIR not in state.records or not len(state.records[RESERVOIR]):
            return
        scores = self.model.log_likelihood(state.parameters, state.records[RESERVOIR].batch[:SCORED], 1)
        if not (np.isfinite(scores) & (scores <= FARTHEST)).all():  # rows may lie beyond all reach of the components
            raise Damaged(f"{path}/parameters score rows that are kept by no number, or by more than {FARTHEST:g}")

    def _refinement(self, tree: object, stream: Stream, path: str) -> Refinement:
        """The record of searches: there was one, and the next is due at a later row."""
        found: Refinement = self.reader.read(tree, Refinement(), path)
        if not kept_rows(self.learner.plan, self.model):
            raise Damaged(f"{path} is that of a stream that refines itself, which this one does not")
        if not 0 <= found.rows <= stream.rows < found.next or min(found.deviation, found.spent, found.moves) < 0:
            raise Damaged(f"{path} is of rows that have not come, or less than nothing")
        return found

    def _drift(self, tree: object, stream: Stream, path: str) -> Drift:
        """The record of drift of a refined stream."""
        found: Drift = self.reader.read(tree, Drift.begin(np.zeros(self.model.n_components)), path)
        if REFINEMENT not in stream.records or not adapts(self.learner):
            raise Damaged(f"{path} is that of a stream that tunes its forgetting, which this one does not")
        rows = [found.last, found.found, *found.began.tolist()]
        positive = found.deviation, found.slack, found.sums
        weights = found.memory, found.since, found.shares
        if (
            min(rows) < 0
            or max(rows) > stream.rows
            or found.alarms < 0
            or not 0.0 <= found.clock <= LONGEST_CLOCK
            or found.present < 0.0
        ):
            raise Damaged(f"{path} is of rows that have not come, or less than nothing")
        if min(float(one.min()) for one in positive + weights) < 0.0 or max(float(one.max()) for one in weights) > HEAVIEST:
            raise Damaged(f"{path} is negative, or more than any stream can hold")
        return found

    def reservoir(self, tree: object, path: str, within: int = LARGEST) -> Reservoir:
        """Return a reservoir of rows that this model could have been given, all from places before `within`."""
        if self.model.chained:
            raise Damaged(f"{path} is a sample of rows, which this model does not keep")
        return read_reservoir(self.reader, tree, path, self._sample, within)

    def _sample(self, tree: object, path: str) -> Batch:
        return self._row_reader.rows(tree, path, least=0)

    def _warming_up(self, record: dict[str, object], path: str, key: int, progress: Progress) -> WarmUp:
        others = ("parameters", "reported", "statistics", "average", "pending", "carry")
        lists = ("parts", "waiting", "records")
        if any(record[name] is not None for name in others) or any(map(record.get, lists)) or progress != Progress():
            raise Damaged(f"{path} has learned something, and yet has no base")
        if record["buffer"] is None:
            raise Damaged(f"{path} has seen no row")
        if record["healing"] is not None:
            raise Damaged(f"{path}/healing is that of a stream that refines itself, which this one does not")
        if record["drift"] is not None:
            raise Damaged(f"{path}/drift is that of a stream that tunes its forgetting, which this one does not")
        buffer = Buffer()
        buffer.append(self._row_reader.rows(record["buffer"], f"{path}/buffer"))
        if record["reservoir"] is not None:
            raise Damaged(f"{path} has a sample of a stream that has not begun")
        return WarmUp(key, buffer)

    def _sound(self, record: object, path: str) -> None:
        problem = self.model.find_problem(record, self.width)
        if problem:
            raise Damaged(f"{path} {problem}")
        for array in arrays_of(record, dense=False):
            if array.dtype.kind == "f" and not (np.isfinite(array) | np.isneginf(array)).all():  # logarithms of zero
                raise Damaged(f"{path} holds NaN or infinity")

    def _reported(self, tree: object, stream: Stream, path: str) -> object:
        """Parameters at the end of passes, which fit the statistics that were gathered at them."""
        parameters, prior, statistics = self._parameters(tree, stream, path), stream.base.prior, stream.statistics
        if isinstance(parameters, MixtureParameters):
            problem = self.model.family.find_mismatch(parameters.components, prior.components, statistics)
        elif isinstance(parameters, ChainParameters):
            problem = self.model.family.find_mismatch(parameters.emissions, prior.emissions, statistics.emissions)
        else:
            problem = ""
        if problem:
            raise Damaged(f"{path} {problem}")
        return parameters

    def _maybe(self, read: Callable[[object, str], Read], tree: object, path: str) -> Read | None:
        return None if tree is None else read(tree, path)

    def _progress(self, tree: object, path: str) -> Progress:
        progress = self.reader.read(tree, Progress(), path)
        weights = progress.weight_seen, progress.folds, progress.mass, progress.n_eff
        if not 0 <= progress.rows_seen <= MOST_ROWS or min(weights) < 0.0 or max(weights) > HEAVIEST:
            raise Damaged(f"{path} is negative, or more than any stream can hold")
        return progress

    def _base(self, tree: object, path: str) -> Base:
        known = {"growth": None} | self.reader.expect(tree, dict, path)  # older files do not have it
        parts = self.reader.parts(known, "Base", set(BASE_PARTS), path)
        names = [self.reader.expect(one, str, f"{path}/ancestors") for one in self.reader.items(parts["ancestors"], path)]
        lineage = self.reader.expect(parts["lineage"], str, f"{path}/lineage")
        if any(len(name) > LONGEST_NAME for name in (*names, lineage)):
            raise Damaged(f"{path} has a name that is too long")
        statistics = self.differences(parts["statistics"], f"{path}/statistics")
        prior = self.reader.read(parts["prior"], self.prior, f"{path}/prior")
        self._sound(prior, f"{path}/prior")
        progress = self._progress(parts["progress"], f"{path}/progress")
        average = self._maybe(self.differences, parts["average"], f"{path}/average")
        growth = self._maybe(self._growth, parts["growth"], f"{path}/growth")
        base = Base(prior, statistics, progress, lineage, tuple(names))
        return base.with_record(AVERAGE, average).with_record(GROWTH, growth)

    def _growth(self, tree: object, path: str) -> Growth:
        parts = self.reader.parts(tree, "Growth", {part.name for part in fields(Growth)}, path)
        steps = tuple(self._step(one, path) for one in self.reader.items(parts["steps"], path))
        return Growth(steps, self.reader.number(parts["spent"], path, 0.0))

    def _step(self, tree: object, path: str) -> Step:
        reader, parts = self.reader, self.reader.parts(tree, "Step", {part.name for part in fields(Step)}, path)
        names = (("rows", 0), ("before", 1), ("after", 1), ("judges", 0))
        rows, before, after, judges = (reader.whole(parts[name], path, least) for name, least in names)
        gain, z = (reader.number(parts[name], path) for name in ("gain", "z"))
        move = reader.expect(parts["move"], str, path)
        if len(move) > LONGEST_NAME:
            raise Damaged(f"{path} has a step of too many words")
        return Step(rows, before, after, gain, z, judges, move, reader.expect(parts["accepted"], bool, path))

    def differences(self, tree: object, path: str) -> Statistics:
        """Return statistics that need not be those of rows, such as differences of statistics."""
        like = self.zeros
        if self.learner.algorithm.projection is not None:
            like = self.model.statistics_for(self.learner.algorithm.readout, like)
        statistics: Statistics = self.reader.read(tree, like, path)
        return statistics

    def statistics(self, tree: object, path: str, size: float = 1.0) -> Statistics:
        """Return statistics that rows could have made: means, or totals of rows that weigh `size`."""
        statistics = self.differences(tree, path)
        means = statistics if size == 1.0 else statistics.scaled(1.0 / size)
        self._sound(means, path)
        if not -SLACK <= float(means.from_base[0]) <= 1.0 + SLACK:
            raise Damaged(f"{path}/from_base is {float(means.from_base[0]):g}, and should lie between 0 and 1")
        return statistics

    def summary(self, parts: dict[str, object], path: str, least: int = 1) -> Summary:
        """Return the summary of at least so many rows."""
        rows = self.reader.whole(parts["rows"], f"{path}/rows", least, MOST_ROWS)
        size = self.reader.number(parts["size"], f"{path}/size", LIGHTEST if least else 0.0)
        if size > HEAVIEST:
            raise Damaged(f"{path}/size is {size:g}, which is more than any stream can hold")
        score = self.reader.number(parts["score"], f"{path}/score", finite=False)
        return Summary(self.statistics(parts["statistics"], f"{path}/statistics", max(size, LIGHTEST)), rows, size, score)

    def _summary(self, tree: object, path: str) -> Summary:
        return self.summary(self.reader.parts(tree, "Summary", {part.name for part in fields(Summary)}, path), path)

    def _parameters(self, tree: object, state: Stream, path: str) -> object:
        """Parameters like those of one of the readouts there are."""
        count, problem = self.learner.plan.count(state.progress), Damaged(f"{path} is none of this model's")
        names = sorted({name for _, name in self.model.ways})
        for name, statistics in product(names, state.statistics.forms):
            like = self.model.readout(name, state.base.prior, statistics, count)
            try:
                parameters = self.reader.read(tree, like, path, parameters=True)
            except Damaged as error:
                problem = error
                continue
            self._sound(parameters, path)
            return parameters
        raise problem
