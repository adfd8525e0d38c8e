"""The words of the models: what the command line, and whoever reads a file, calls each estimator.

A table of strings, so that help and completion need not load what they name. A new estimator is one line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One estimator: its word, the name of its class, what it is of, in a few words, and the module that has the class."""

    word: str
    name: str
    about: str
    module: str = "headwater"

    @property
    def kind(self) -> type[Any]:
        """The class, loaded when it is asked for."""
        return getattr(import_module(self.module), self.name)


_ENTRIES = {
    entry.word: entry
    for entry in (
        Entry("gaussian", "GaussianMixture", "groups of rows of numbers"),
        Entry("multinomial", "MultinomialMixture", "groups of rows of counts: documents, baskets, events"),
        Entry("markov", "MarkovMixture", "groups of sequences of symbols"),
        Entry("regression", "RegressionMixture", "a target that is one of several linear functions; needs --target"),
        Entry("lda", "LatentDirichletAllocation", "topics of documents"),
        Entry("nmf", "ItakuraSaitoNMF", "the parts that power spectra are made of"),
        Entry("hmm", "GaussianHMM", "hidden states behind rows of numbers that follow one another"),
        Entry("categorical-hmm", "CategoricalHMM", "hidden states behind symbols that follow one another"),
        Entry("arrival", "DirectionOfArrival", "the direction of a source before an array of sensors"),
    )
}

MODELS: Mapping[str, Entry] = MappingProxyType(_ENTRIES)


def register(entry: Entry) -> None:
    """Give a word to an estimator of another package, for this process; one that is taken is refused.

    Parameters
    ----------
    entry : Entry
        The word, the class and its module.
    """
    if entry.word in _ENTRIES and _ENTRIES[entry.word] != entry:
        raise ValueError(
            f"word must be one that no model has, got {entry.word!r}, which is that of {_ENTRIES[entry.word].name}"
        )
    _ENTRIES[entry.word] = entry


def find(word: str) -> Entry:
    """Return the estimator of a word, or refuse the word with those that there are.

    Parameters
    ----------
    word : str
        The word of an estimator, or the name of its class.

    Returns
    -------
    entry : Entry
        What it names.

    Examples
    --------
    >>> from headwater.registry import find
    >>> find("gaussian").name
    'GaussianMixture'
    """
    by_name = {entry.name: entry for entry in MODELS.values()}
    found = MODELS.get(word) or by_name.get(word)
    if found is None:
        near = get_close_matches(word, MODELS, n=1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"a model must be one of {', '.join(MODELS)}, or a model file, got {word!r}{meant}")
    return found


def word_of(model: Any) -> str:
    """Return the word of a model, or the name of its class if it has none."""
    name = type(model).__name__
    return next((entry.word for entry in MODELS.values() if entry.name == name), name)


def companions_of(kind: type[Any]) -> frozenset[str]:
    """Return what a class learns beside rows: those of y, sample_weight, labels, lengths and key that `partial_fit` takes."""
    taken = set(signature(kind.partial_fit).parameters) & {"y", "sample_weight", "labels", "lengths", "key"}
    return frozenset(taken if kind._traits.target_columns else taken - {"y"})


def takes_sparse_rows(kind: type[Any]) -> bool:
    """Whether a class learns from sparse rows, which documents and many counts are."""
    return bool(kind().__sklearn_tags__().input_tags.sparse)


def takes_symbols(kind: type[Any]) -> bool:
    """Whether a class learns from rows that are made of symbols."""
    return bool(kind._traits.takes_symbols)


def learner_of(model: Any, **changed: Any) -> Any:
    """Return what the parameters of a model describe, whatever the data will be, or refuse them.

    Lists of numbers, and the number of symbols, belong to the columns of the data, which nobody knows yet: they are left out.
    """
    defaults = {name: one.default for name, one in signature(type(model)).parameters.items()}
    given = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if not isinstance(value, (list, tuple, dict)) and not hasattr(value, "shape") and name != "n_symbols"
    }
    if "_given" in vars(model):  # what was set by hand, which belongs to columns, too
        given.pop("init_params", None)
    return type(model)(**{**defaults, **given, **changed})._make_learner(2 + type(model)._traits.target_columns)
