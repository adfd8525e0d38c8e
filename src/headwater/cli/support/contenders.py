"""The runs of `compare`: each algorithm learns in its own process, which returns score, time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from headwater.cli.support.model_arguments import ModelSettings, check_companions, entry_of, make_model
from headwater.cli.support.options import ReadOptions
from headwater.cli.support.row_scores import RowAnswers, make_scorer
from headwater.cli.support.signals import undo_on_stop
from headwater.core.chunk import Chunk
from headwater.diagnostics.history import perplexity
from headwater.io.recipes.tables import whole_sequences
from headwater.io.row_collection import by_sequence, collect_rows, select_rows
from headwater.registry import make_provisional_learner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headwater.core.values import Keywords
    from headwater.estimators.base import StreamingEstimator
    from headwater.io.stream import Stream

HELD_OUT_PERIOD = 10  # rows, of which one is held out
COMPILE_ROWS = 500  # learned before the clock starts, so that kernels are compiled


Outcome: TypeAlias = dict[str, Any]  # how an algorithm fared, as JSON, or the sentence of its error


@dataclass(frozen=True)
class Contest:
    """The common task of all algorithms: a model, its settings, the data, and how it is read."""

    model: str
    settings: ModelSettings
    data: tuple[str, ...]
    reading: ReadOptions

    @classmethod
    def from_dict(cls, given: Keywords) -> Contest:
        """Return the task from the mapping of `asdict`, after JSON."""
        settings, reading = ModelSettings(**given["settings"]), ReadOptions(**given["reading"])
        return cls(given["model"], settings, tuple(given["data"]), reading)


def legal_algorithms(model: StreamingEstimator) -> list[str]:
    """Return the words of all algorithms that can learn a model: those that it does not refuse."""
    from headwater.core.algorithms import ALGORITHMS

    legal, reason = [], None
    for word in ALGORITHMS:
        try:
            make_provisional_learner(model, algorithm=word)
        except ValueError as error:
            reason = error
            continue
        legal.append(word)
    if not legal and reason is not None:
        raise reason
    return legal


def _copy_unfitted(model: StreamingEstimator, **changed: object) -> StreamingEstimator:
    return type(model)(**{**model.get_params(deep=False), **changed})


def run_contender(contest: Contest, algorithm: str) -> Outcome:
    """Learn by one algorithm in its own process, and return the result that it prints."""
    asked = json.dumps({"contest": asdict(contest), "algorithm": algorithm})
    command = [sys.executable, "-P", "-m", "headwater.cli.support.contenders"]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process,
        undo_on_stop(process.kill),
    ):
        out, err = process.communicate(asked)
    try:
        return dict(json.loads(out.splitlines()[-1]))
    except (ValueError, IndexError):
        said = (err.strip().splitlines() or [f"its process ended with code {process.returncode}"])[-1]
        return _failure(algorithm, said)


def _failure(algorithm: str, error: str) -> Outcome:
    """Return the result of an algorithm that could not learn the data."""
    unknown = dict.fromkeys(("score", "seconds", "memory"))
    return {"algorithm": algorithm, "error": error, **unknown, "rows": 0, "held_out": 0, "rows_left_out": 0}


class _WholeSequences:
    """A stream whose chunks hold whole sequences, if the model needs them."""

    def __init__(self, model: StreamingEstimator, stream: Stream) -> None:
        self.model, self.stream, self.total_rows = model, stream, stream.total_rows

    def __iter__(self) -> Iterator[Chunk]:
        return whole_sequences(self.model, self.stream)


class Split:
    """Which rows of a stream are held out: the same ones in every pass."""

    def __init__(self, model: StreamingEstimator, source: Stream, chained: bool) -> None:
        self.source = source
        stream = _WholeSequences(model, source)
        first = next(iter(stream), None)
        if first is None:
            raise ValueError("the data has no rows")
        self.first: Chunk = first
        self.stream = stream
        self.last = None
        few = first.key is None or len(np.unique(np.asarray(first.key))) < HELD_OUT_PERIOD
        if chained and few and first.lengths is None:
            total = stream.total_rows
            self.last = (sum(map(len, stream)) if total is None else total) * (HELD_OUT_PERIOD - 1) // HELD_OUT_PERIOD

    def training_chunks(self) -> Iterator[Chunk]:
        """Yield the rows to learn."""
        return self._chunks(held_out=False)

    def held_out_chunks(self) -> Iterator[Chunk]:
        """Yield the rows to score."""
        return self._chunks(held_out=True)

    def _chunks(self, held_out: bool) -> Iterator[Chunk]:
        sequences = 0
        for chunk in self.stream:
            if chunk.lengths is not None:
                places = sequences + np.arange(len(chunk.lengths))
                sequences += len(chunk.lengths)
                part = _select_sequences(chunk, (places % HELD_OUT_PERIOD == HELD_OUT_PERIOD - 1) == held_out)
            else:
                part = select_rows(chunk, np.flatnonzero(self._is_held_out(chunk) == held_out))
            if len(part):
                yield part

    def _is_held_out(self, chunk: Chunk) -> NDArray[np.bool_]:
        places = chunk.start + np.arange(len(chunk))
        if self.last is not None:
            return places >= self.last
        if chunk.key is not None:
            names, at = np.unique(np.asarray(chunk.key), return_inverse=True)
            out = np.array([zlib.crc32(str(name).encode()) % HELD_OUT_PERIOD == HELD_OUT_PERIOD - 1 for name in names])
            return out[at]
        return places % HELD_OUT_PERIOD == HELD_OUT_PERIOD - 1


def _select_sequences(chunk: Chunk, chosen: NDArray[np.bool_]) -> Chunk:
    assert chunk.lengths is not None
    rows = np.repeat(chosen, chunk.lengths)
    return replace(chunk, X=chunk.X[rows], lengths=chunk.lengths[chosen])


def run_algorithm(contest: Contest, word: str) -> Outcome:
    """Learn by an algorithm, score the held-out rows, and return the result."""
    model, algorithm = make_model(entry_of(contest.model), contest.settings, word)
    stream = contest.reading.open_stream(list(contest.data), seed=contest.settings.seed)
    split = Split(model, stream, model._traits.chained)
    check_companions(model, split.first)
    _compile_kernels(model, split.first, algorithm.online)
    before = peak_memory()
    rows, began = 0, time.perf_counter()
    if algorithm.online:
        for chunk in split.training_chunks():
            model.partial_fit(**chunk)
            rows += len(chunk)
    else:
        together = by_sequence(collect_rows(split.training_chunks()))
        rows = len(together)
        model.fit(**together)
    seconds = time.perf_counter() - began
    after = peak_memory()
    memory = None if before is None or after is None else after - before
    answer = make_scorer(model, shares=False)
    answers = [one for one in map(answer, split.held_out_chunks()) if one.scores is not None]
    found = np.concatenate([one.scores for one in answers if one.scores is not None]) if answers else np.empty(0)
    if not found.size:
        raise ValueError("no rows were held out: there are too few")
    return {
        "algorithm": word, "error": None, "score": float(found.mean()), "seconds": seconds, "rows": rows,
        "held_out": int(found.size), "memory": memory, "rows_left_out": split.source.rows_left_out,
        **_perplexity(model, float(found.sum()), answers),
    }  # fmt: skip


def _perplexity(model: StreamingEstimator, score: float, answers: list[RowAnswers]) -> dict[str, object]:
    """Return the perplexity per word or symbol, if rows have those."""
    size = sum(float(one.sizes.sum()) for one in answers if one.sizes is not None)
    return {"perplexity": perplexity(score, size), "per": type(model)._traits.measure[:-1]} if size else {}


def _compile_kernels(model: StreamingEstimator, chunk: Chunk, online: bool) -> None:
    """Learn a few rows with a copy, so that the kernels are compiled."""
    some = chunk
    if chunk.lengths is None:
        some = select_rows(chunk, np.arange(min(len(chunk), COMPILE_ROWS)))
    copy = _copy_unfitted(model)
    if online and "warm_up" in copy.get_params():
        copy.set_params(warm_up=max(len(some) // 2, copy._n_labels))
    copy.partial_fit(**some) if online else copy.fit(**by_sequence(some))
    make_scorer(copy)(some)


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None where the system does not report it."""
    try:
        import resource
    except ImportError:
        return None
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(held) if sys.platform == "darwin" else 1024 * int(held)


def main() -> None:
    """Run the algorithm that standard input names, and print the result to standard output."""
    import warnings

    from headwater.cli.support.failures import error_sentence

    warnings.simplefilter("ignore")
    asked = json.load(sys.stdin)
    contest, algorithm = Contest.from_dict(asked["contest"]), asked["algorithm"]
    try:
        result = run_algorithm(contest, algorithm)
    except Exception as error:
        result = _failure(algorithm, error_sentence(error))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
