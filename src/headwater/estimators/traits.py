"""Traits: what is true of a class of estimators, whatever its parameters are and whatever it has learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

# What an estimator takes, with the target or the sequences that belong to the rows, where it has any: `_chunk` makes it.
Taken: TypeAlias = Any


@dataclass(frozen=True)
class Traits:
    """What a class of estimators is; a subclass makes its own by `dataclasses.replace` of those of its base."""

    merge_parameters: tuple[str, ...] = ("n_components", "half_life")  # in which models must agree to be merged
    shape_parameters: tuple[str, ...] = ("n_components",)  # which decide the shape of what is learned
    prior_parameters: tuple[str, ...] = ()  # of which the start makes the prior, so that they cannot change after it
    floor_parameters: tuple[str, ...] = ()  # least variances, part of the prior of a stream; passes of `fit` take new ones
    given_start: tuple[str, ...] = ()  # parameters that hold something for every component
    before: tuple[tuple[str, object], ...] = ()  # parameters that older model files lack, and what they were then
    answers: tuple[str, ...] = ()  # arrays that a model file shows to readers without headwater

    least_components: int = 1  # the smallest number that n_components="auto" tries
    finds_number: bool = True  # whether n_components may be "auto"
    splits: bool = False  # whether components can be split, so that n_components="auto" grows; other models race

    chained: bool = False  # whether rows form sequences
    takes_sequences: bool = False  # whether a row is a sequence of symbols, of any length
    takes_tables: bool = False  # whether columns are given as they are: text, flags, numbers, gaps
    takes_symbols: bool = False  # whether rows are made of symbols
    needs_directions: bool = False  # whether of a row only its direction counts, so that a row of zeros is refused
    column_parameters: tuple[str, ...] = ()  # parameters that name a column, so that they mean nothing without data
    takes_gaps: bool = False  # whether values of a row may be missing
    target_columns: int = 0  # columns of a row that are not features: the target, if there is one, comes last

    scores_bound: bool = False  # whether `score_samples` is a lower bound of the log-density, not the density of `sample`
    scores_by_learning: bool = True  # whether the scores of `update` are those of `score_samples`
    scored_share: float = 1.0  # share of a stream that can be scored at little cost
    warns: bool = True  # whether a `fit` that has not converged says so by a warning

    unit: str = "rows"  # what a row is called
    column_word: str = "x"  # what a column without a name is called, before its number
    measure: str = ""  # what rows have more or fewer of, where that moves their scores: "words" or "symbols"
