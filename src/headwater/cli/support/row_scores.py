"""Answers of a model for the rows of a chunk: densities, clusters, probabilities; for every kind of model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headwater.core.chunk import Chunk
from headwater.core.values import Keywords

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator


@dataclass(frozen=True)
class RowAnswers:
    """Answers for the rows of a chunk, or for its sequences; None for answers that the model does not have."""

    scores: NDArray[np.float64] | None
    clusters: NDArray[np.int64] | None = None
    shares: NDArray[np.float64] | None = None
    predictions: NDArray[np.float64] | None = None
    sizes: NDArray[np.float64] | None = None
    names: NDArray[np.object_] | None = None  # of the likeliest components
    share_name: str = "p"  # probabilities; "weight" for weights, which need not add up to one

    @property
    def rank_scores(self) -> NDArray[np.float64] | None:
        """Scores by which rows are ranked: for documents and sequences, the score per word or symbol."""
        from headwater.diagnostics.component_description import scores_per_size

        return None if self.scores is None else scores_per_size(self.scores, self.sizes)

    def without_rows(self) -> RowAnswers:
        """Return the answers for an empty chunk."""
        arrays: Keywords = {name: value[:0] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **arrays)

    def __len__(self) -> int:
        return next(len(one) for one in (self.scores, self.clusters, self.predictions) if one is not None)


Scorer = Callable[[Chunk], RowAnswers]


def make_scorer(model: StreamingEstimator, shares: bool = True) -> Scorer:
    """Return a function from chunks to answers; with `shares`, the probabilities or weights of all components, too."""
    from headwater.estimators.component_names import shown_names

    if hasattr(model, "filter"):
        return _make_sequence_scorer(model)

    known = shown_names(model)
    names = None if known is None else np.array(known, dtype=object)

    def answer(chunk: Chunk) -> RowAnswers:
        if not len(chunk):  # models need at least one row; its answers are dropped
            return answer(_make_one_row(chunk)).without_rows()
        scores = None
        if chunk.y is not None or not type(model)._traits.target_columns:
            scores = np.asarray(model.score_samples(**_arguments_for(model.score_samples, chunk)), dtype=np.float64)
        name = "p" if hasattr(model, "predict_proba") else "weight"
        sizes = model._describer.row_sizes(chunk["X"], chunk.lengths)
        clusters, found = _memberships(model, chunk, shares)
        named = None if names is None or clusters is None else names[clusters]
        return RowAnswers(scores, clusters, found, _predictions(model, chunk), sizes, named, name)

    return answer


def _make_sequence_scorer(model: StreamingEstimator) -> Scorer:
    """Return a scorer for sequences that continue from chunk to chunk: states are filtered, given the rows so far."""
    from headwater.estimators.open_sequences import Follower

    follower = Follower(model)

    def answer(chunk: Chunk) -> RowAnswers:
        if not len(chunk):
            return RowAnswers(np.empty(0), np.empty(0, np.int64), np.empty((0, len(model.startprob_))))
        scores, states = follower.follow(**_arguments_for(follower.follow, chunk))
        return RowAnswers(scores, states.argmax(axis=1), states)

    return answer


def _make_one_row(chunk: Chunk) -> Chunk:
    """Return a chunk of one row that any model accepts."""
    target, weight = (None if beside is None else np.ones(1) for beside in (chunk.y, chunk.sample_weight))
    rows = np.ones((1, chunk.shape[1]), dtype=chunk.X.dtype)
    return replace(chunk, X=rows, y=target, sample_weight=weight, labels=None, key=None)


def _memberships(
    model: StreamingEstimator, chunk: Chunk, shares: bool
) -> tuple[NDArray[np.int64] | None, NDArray[np.float64] | None]:
    """Return the likeliest component of each row and all probabilities, or the weights of a factor model."""
    for name in ("predict_proba", "transform"):
        if hasattr(model, name):
            found = np.asarray(getattr(model, name)(**_arguments_for(getattr(model, name), chunk)), dtype=np.float64)
            return (found.argmax(axis=1) if found.size else np.empty(0, np.int64)), (found if shares else None)
    return None, None


def _predictions(model: StreamingEstimator, chunk: Chunk) -> NDArray[np.float64] | None:
    if not type(model)._traits.target_columns:
        return None
    return np.asarray(model.predict(chunk["X"]), dtype=np.float64)


def _arguments_for(method: Callable[..., object], chunk: Chunk) -> dict[str, object]:
    """Return the fields of a chunk that a method takes."""
    taken = signature(method).parameters
    return {name: chunk[name] for name in chunk.keys() if name in taken}  # noqa: SIM118
