"""The words of the models: the names of estimators on the command line.

The table holds strings, so that help and completion load no estimator. A new estimator is one line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.core.learner import Learner
    from headwater.estimators.base import StreamingEstimator


@dataclass(frozen=True)
class Entry:
    """One estimator: its word, the name of its class, what it learns in a few words, and the module of the class.

    Examples
    --------
    >>> from headwater.registry import MODELS
    >>> MODELS["hmm"].kind.__name__
    'GaussianHMM'
    """

    word: str
    name: str
    about: str
    module: str = "headwater"

    @property
    def kind(self) -> type[StreamingEstimator]:
        """The class, which is imported on first use."""
        return getattr(import_module(self.module), self.name)


_ENTRIES = {
    entry.word: entry
    for entry in (
        Entry("gaussian", "GaussianMixture", "clusters of rows of numbers"),
        Entry("bayesian", "BayesianGaussianMixture", "clusters of rows of numbers; those that rows do not need stay empty"),
        Entry("student", "StudentMixture", "clusters of rows of numbers with heavy tails, which odd rows hardly move"),
        Entry("multinomial", "MultinomialMixture", "clusters of rows of counts: documents, baskets, events"),
        Entry("poisson", "PoissonMixture", "clusters of rows of counts, each column with its own rate"),
        Entry("bernoulli", "BernoulliMixture", "clusters of rows of yes and no (1 and 0)"),
        Entry("categorical", "CategoricalMixture", "clusters of rows of categories (latent classes)"),
        Entry("mixed", "MixedMixture", "clusters of rows of a table: numbers, categories, flags, counts"),
        Entry("markov", "MarkovMixture", "clusters of sequences of symbols"),
        Entry("regression", "RegressionMixture", "several linear regressions of a target; needs --target"),
        Entry("vmf", "VonMisesFisherMixture", "clusters of directions: embeddings, compared by their cosine"),
        Entry("lda", "LatentDirichletAllocation", "topics of documents"),
        Entry("nmf", "ItakuraSaitoNMF", "additive components of power spectra"),
        Entry("hmm", "GaussianHMM", "hidden states of sequences of numbers"),
        Entry("categorical-hmm", "CategoricalHMM", "hidden states of sequences of symbols"),
        Entry("poisson-hmm", "PoissonHMM", "hidden states of sequences of counts"),
        Entry("bernoulli-hmm", "BernoulliHMM", "hidden states of sequences of rows of yes and no (1 and 0)"),
        Entry("gmm-hmm", "GMMHMM", "hidden states of sequences of numbers, each a mixture of Gaussians"),
        Entry("mixed-hmm", "MixedHMM", "hidden states of sequences of rows of a table: numbers, categories, flags, counts"),
        Entry("semi-markov", "SemiMarkov", "hidden states of sequences that last as long as a law of their own says"),
        Entry("regression-hmm", "RegressionHMM", "a regression that changes with a hidden state; needs --target"),
        Entry("autoregressive-hmm", "AutoregressiveHMM", "a series whose autoregression changes with a hidden state"),
        Entry("arrival", "DirectionOfArrival", "the direction of a source in front of a sensor array"),
    )
}

MODELS: Mapping[str, Entry] = MappingProxyType(_ENTRIES)


def register(entry: Entry) -> None:
    """Give a word to an estimator of another package, for this process. A word that another estimator has is refused.

    Parameters
    ----------
    entry : Entry
        The word, the class and its module.

    Examples
    --------
    >>> from headwater.registry import MODELS, register
    >>> register(MODELS["gaussian"])  # the same again changes nothing
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


def word_of(model: StreamingEstimator) -> str:
    """Return the word of a model, or the name of its class if it has none.

    Examples
    --------
    >>> import headwater as hw
    >>> from headwater.registry import word_of
    >>> word_of(hw.GaussianHMM())
    'hmm'
    """
    name = type(model).__name__
    return next((entry.word for entry in MODELS.values() if entry.name == name), name)


def companions_of(kind: type[StreamingEstimator]) -> frozenset[str]:
    """Return the companions of rows that a class learns from: some of y, sample_weight, labels, noise, lengths and key.

    Examples
    --------
    >>> import headwater as hw
    >>> from headwater.registry import companions_of
    >>> sorted(companions_of(hw.GaussianHMM))
    ['key', 'lengths']
    """
    taken = set(signature(kind.partial_fit).parameters) & {"y", "sample_weight", "labels", "noise", "lengths", "key"}
    return frozenset(taken if kind._traits.target_columns else taken - {"y"})


def takes_sparse_rows(kind: type[StreamingEstimator]) -> bool:
    """Whether a class learns from sparse rows, such as documents.

    Examples
    --------
    >>> import headwater as hw
    >>> from headwater.registry import takes_sparse_rows
    >>> takes_sparse_rows(hw.MultinomialMixture)
    True
    """
    return bool(kind().__sklearn_tags__().input_tags.sparse)


def takes_symbols(kind: type[StreamingEstimator]) -> bool:
    """Whether a class learns from sequences of symbols.

    Examples
    --------
    >>> import headwater as hw
    >>> from headwater.registry import takes_symbols
    >>> takes_symbols(hw.MarkovMixture)
    True
    """
    return bool(kind._traits.takes_symbols)


def make_provisional_learner(model: StreamingEstimator, **changed: object) -> Learner:
    """Check the parameters of a model before any data is read, and return the learner for two columns.

    Lists of numbers, the number of symbols and names of columns depend on the columns of the data, and are left out.

    Examples
    --------
    >>> import headwater as hw
    >>> from headwater.registry import make_provisional_learner
    >>> make_provisional_learner(hw.GaussianMixture(3)).width
    2
    """
    from headwater.estimators.provisional_learner import learner_without_columns  # the table loads no estimator

    return learner_without_columns(model, **changed)
