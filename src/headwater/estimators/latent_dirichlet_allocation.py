"""LatentDirichletAllocation: topics of a stream of documents."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from headwater.core.algorithm import Algorithm
from headwater.core.algorithms import BayesianOnlineEM, OnlineVB, resolve
from headwater.core.contracts import StartSettings
from headwater.core.learner import Learner
from headwater.core.simulated_algorithms import AutoSimulatedEM
from headwater.core.statistics import Array
from headwater.core.validation import one_line
from headwater.core.values import RandomState, Rows, Values
from headwater.estimators.calls import answers_at_once, answers_by_chunk, answers_by_score, learns_at_once, reads
from headwater.estimators.describers.factors import TopicDescriber
from headwater.estimators.seeds import rng_of
from headwater.estimators.start_parameters import check_start_weight
from headwater.estimators.topic_columns import TopicColumns
from headwater.estimators.topic_settings import given_topics, proportion_prior
from headwater.models.topics import Topics

if TYPE_CHECKING:
    from sklearn.utils import Tags

BOEM_DOCUMENTS = 64  # of a batch
# What words mean for topics where they mean something else for mixtures.
ALGORITHMS = {
    "auto": AutoSimulatedEM(), "online-vb": OnlineVB("auto", 0.7, 10.0), "boem": BayesianOnlineEM(batch_size=BOEM_DOCUMENTS),
}  # fmt: skip


class LatentDirichletAllocation(TopicColumns):
    """Latent Dirichlet allocation that learns topics from a stream of documents, or from all documents at once.

    A document is a text, or a row of word counts, dense or sparse. Texts are cut into words as `headwater.stream` does, and the
    model keeps its vocabulary. The words of a document come from `n_components` topics, in its own proportions.
    By default topics are learned by simulated online EM: the topics of a document's words are drawn by collapsed Gibbs
    sampling, at a cost that grows much slower than the number of topics, and the expected counts are added to the topics,
    batch by batch. The number of documents need not be known in advance. The same seed gives the same topics for any number
    of threads.

    Parameters
    ----------
    n_components : int or 'auto', default=10
        Number of topics. With 'auto' models with up to 32 topics are compared on rows that they have not learned yet (see
        `race_`).
    doc_topic_prior : float, array-like of shape (n_components,) or 'learn', optional
        Dirichlet parameter of the proportions of a document: one for all topics, one for each, or learned from the stream
        (Minka's fixed point, as a statistic of the stream; begun at 1 / n_components and, where documents are long, with
        room for more topics in each, whichever predicts their words better). Default 1 / n_components.
    topic_word_prior : float, optional
        Dirichlet parameter of the words of a topic. Default 1 / n_components.
    components_init : array-like of shape (n_components, n_features), optional
        Topics to start from: probabilities of words, or numbers in proportion to them.
    start_weight : float, optional
        Documents that the start counts as: the stream begins as if it had learned so many, distributed as the start says.
        Default: as many as it takes to estimate every parameter, less those of the warm-up, whose mean length they have;
        without one, that of the first document.
    vocabulary : {'fixed', 'open'}, default='fixed'
        Whether chunks may become wider: with 'open' new words get new columns on the right, and narrower chunks are read as if
        their missing columns were zero. `learn_one` then takes words that it has not seen. With 'fixed' the words of documents
        are those of the first call. Words that a model does not know are left out of documents that it is asked about.
    tol : float, default=1e-3
        `fit` ends when two passes raise the score of the documents by less than this part of it. With 0 it makes all passes.
    max_iter : int, default=10
        Most passes over the documents in `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of all random numbers.
    warm_start : bool, default=False
        Whether `fit` continues from the result of the last one.
    verbose : int, default=0
        Whether to print the passes of `fit`, and how much.
    verbose_interval : int, default=1
        Passes between two lines.
    algorithm : str or algorithm object, default='auto'
        'auto' (Gibbs sampling; `fit` makes passes), 'simulated-em' (`SimulatedEM(sampler='metropolis')` for the other
        sampler), 'boem' (Bayesian online EM: Dirichlet beliefs, whose mean is used next), 'online-vb' (Hoffman, Blei and Bach)
        or 'scvb0' (Foulds et al.), of which `fit` is their one pass.
    half_life : float, optional
        Documents after which the weight of a document is halved, for streams that drift.
    warm_up : int or 'auto', default='auto'
        Documents that a start is found on before learning from the stream begins. The model can be read meanwhile.
        With 0 the stream begins at once, at `components_init`.
    n_threads : int, optional
        Threads for the documents of a batch; all cores by default. The result does not depend on it.
    parts : int, default=1
        Parts that rows are dealt to in turns; each is learned on its own thread, and they are merged when the model is read.
        Unlike the number of threads, it changes the result.

    Attributes
    ----------
    n_components_ : int
        Number of components; with 'auto', that of the best model so far.
    race_ : Race
        How the numbers that 'auto' tries compare; None if n_components is a number.
    components_ : ndarray of shape (n_components, n_features)
        The belief about the topics: Dirichlet parameters, which are pseudo-counts of words as in scikit-learn.
    topics_ : ndarray of shape (n_components, n_features)
        Probability of each word in each topic.
    doc_topic_prior_ : ndarray of shape (n_components,)
        Dirichlet parameters of the proportions.
    topic_word_prior_ : float
        Dirichlet parameter of the words.
    acceptance_rate_ : float
        Share of proposals that the Metropolis sampler accepted.
    merge_report_ : MergeReport
        What was done by `headwater.merge`, if the model comes from there.
    converged_, n_iter_, lower_bound_, lower_bounds_
        How the passes of `fit` went; dropped when more is learned. The bounds are the mean scores of the E-steps: with Gibbs
        sampling the log-probability of each word given the others of its document.
    n_samples_seen_ : int
        Documents learned from.
    n_features_in_, feature_names_in_
        Columns seen; of documents, the vocabulary.

    Notes
    -----
    Counts that are not whole are allowed (tf-idf, for example): Gibbs sampling makes tokens of them that weigh less than one.

    See Also
    --------
    headwater.completion_perplexity : the perplexity to compare topic models by.

    Examples
    --------
    >>> import numpy as np
    >>> from headwater import LatentDirichletAllocation
    >>> rng = np.random.default_rng(0)
    >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
    >>> model = LatentDirichletAllocation(2, doc_topic_prior=0.5, random_state=0)
    >>> for _ in range(20):
    ...     proportions = rng.dirichlet([0.5, 0.5], size=100)
    ...     model = model.partial_fit(rng.multinomial(50, proportions @ topics))
    >>> model.topics_[np.argsort(model.topics_[:, 0])].round(1).tolist()
    [[0.0, 0.1, 0.4, 0.5], [0.5, 0.4, 0.1, 0.0]]
    >>> bool(model.transform([[30, 20, 0, 0]]).argmax() == model.topics_[:, 0].argmax())
    True
    """

    _traits = replace(
        TopicColumns._traits,
        unit="documents",
        measure="words",
        column_word="word ",
        prior_parameters=("doc_topic_prior", "topic_word_prior"),
        merge_parameters=("n_components", "half_life", "doc_topic_prior", "topic_word_prior", "vocabulary"),
        answers=("components_", "doc_topic_prior_"),
    )
    _parameter_constraints: ClassVar[dict[str, list[object]]] = {
        **TopicColumns._parameter_constraints,
        "doc_topic_prior": [
            None, "array-like", StrOptions({"learn"}), Interval(numbers.Real, 0.0, None, closed="neither"),
        ],
        "topic_word_prior": [None, Interval(numbers.Real, 0.0, None, closed="neither")],
        "vocabulary": [StrOptions({"fixed", "open"})],
    }  # fmt: skip

    @property
    def _describer(self) -> TopicDescriber:
        return TopicDescriber(self)

    def __init__(
        self,
        n_components: int | Literal["auto"] = 10,
        *,
        doc_topic_prior: Values = None,
        topic_word_prior: float | None = None,
        components_init: Values = None,
        start_weight: float | None = None,
        vocabulary: Literal["fixed", "open"] = "fixed",
        tol: float = 1e-3,
        max_iter: int = 10,
        random_state: RandomState = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 1,
        algorithm: str | Algorithm = "auto",
        half_life: float | None = None,
        warm_up: int | Literal["auto"] = "auto",
        n_threads: int | None = None,
        parts: int = 1,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.components_init = components_init
        self.start_weight = start_weight
        self.vocabulary = vocabulary
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.algorithm = algorithm
        self.half_life = half_life
        self.warm_up = warm_up
        self.n_threads = n_threads
        self.parts = parts

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _described(self, width: int) -> Learner:
        self._check_parameters()
        k = self.n_components
        words = 1.0 / k if self.topic_word_prior is None else float(self.topic_word_prior)
        model = Topics(k, words, proportion_prior(self.doc_topic_prior, k))
        algorithm = resolve(self.algorithm, model, type(self).__name__, ALGORITHMS)
        topics = given_topics(self.components_init, k, width, self.vocabulary)
        return Learner(
            model,
            algorithm,
            width,
            StartSettings(
                readout=algorithm.readout, factors=topics, weight=check_start_weight(self.start_weight, topics is not None)
            ),
            self.half_life,
            warm_up=None if self.warm_up == "auto" else int(self.warm_up),
            n_threads=self.n_threads,
            shards=int(self.parts),
        )

    # Answers

    @answers_by_chunk
    def transform(self, X: Rows, *, normalize: bool = True) -> Array:
        """Return the proportions of the topics in each document.

        Parameters
        ----------
        X : list of str, array-like or sparse matrix of shape (n_samples, n_features)
            The documents.
        normalize : bool, default=True
            Whether each row sums to one; if not, to the number of words and the sum of the prior, as Dirichlet parameters do.

        Returns
        -------
        proportions : ndarray of shape (n_samples, n_components)
            Their posterior mean given the words, by Gibbs sampling; each row sums to one. The draws depend on the document
            alone, so the same document always gets the same proportions.
        """
        batch = self._rows(X)
        parameters = self._seen_by(batch.X.width)
        proportions = self._model.posterior(parameters, batch, self._threads)
        if normalize:
            return proportions
        ends = np.concatenate([[0.0], np.cumsum(batch.X.copy().data)])
        lengths = np.diff(ends[batch.X.indptr - batch.X.indptr[0]])
        return proportions * (lengths + parameters.proportions.sum())[:, None]

    @learns_at_once
    def fit_transform(self, X: Rows, y: Values = None, sample_weight: Values = None, *, normalize: bool = True) -> Array:
        """Learn from the documents and return the proportions of the topics in each.

        Parameters
        ----------
        X : list of str, array-like or sparse matrix of shape (n_samples, n_features)
            The documents.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each document.
        normalize : bool, default=True
            Whether each row sums to one, as in `transform`.

        Returns
        -------
        proportions : ndarray of shape (n_samples, n_components)
            What `transform` returns.
        """
        return self.fit(X, y, sample_weight).transform(X, normalize=normalize)

    @answers_by_chunk
    def score_samples(self, X: Rows) -> Array:
        """Return a lower bound of the log-probability of each document (mean-field, at the topics as they are).

        Parameters
        ----------
        X : list of str, array-like or sparse matrix of shape (n_samples, n_features)
            The documents.

        Returns
        -------
        bounds : ndarray of shape (n_samples,)
            A bound for each document, of its words in the order in which they were drawn.
        """
        batch = self._rows(X)
        return self._model.log_likelihood(self._seen_by(batch.X.width), batch, self._threads)

    @answers_by_score
    def score(self, X: Rows, y: Values = None) -> float:
        """Return the sum of the bounds of all documents, as scikit-learn does.

        Parameters
        ----------
        X : list of str, array-like or sparse matrix of shape (n_samples, n_features)
            The documents.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        score : float
            Approximate log-likelihood.
        """
        return float(self.score_samples(X).sum())

    @answers_at_once
    def perplexity(self, X: Rows, sub_sampling: bool = False) -> float:
        """Return exp(-score / number of words): a bound, which compares only models of one kind.

        To compare topics that were learned in different ways use `headwater.completion_perplexity`.

        Parameters
        ----------
        X : list of str, array-like or sparse matrix of shape (n_samples, n_features)
            The documents.
        sub_sampling : bool, default=False
            Whether the documents are a sample of all. As in scikit-learn, except that it makes no difference: score and words
            would be scaled by the same number, and the score has no part that belongs to the topics alone.

        Returns
        -------
        perplexity : float
            Lower is better.
        """
        if not isinstance(sub_sampling, bool | np.bool_):
            raise ValueError(f"sub_sampling must be True or False, got {one_line(sub_sampling)}")
        batch = self._rows(X)
        words = float(batch.X.copy().data.sum())
        score = float(self._model.log_likelihood(self._seen_by(batch.X.width), batch, self._threads).sum())
        with np.errstate(over="ignore"):
            return float(np.exp(-score / words)) if words else 1.0

    @reads
    def sample(self, n_samples: int = 1, length: Values = None) -> tuple[Array, Array]:
        """Draw documents from the model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of documents.
        length : int or array-like of shape (n_samples,), optional
            Words of each document, which are not modelled. Default: the mean of those learned from.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The documents.
        proportions : ndarray of shape (n_samples, n_components)
            The proportions they were drawn with.
        """
        n_samples = self._checked_number(n_samples)
        _, statistics, _ = self._belief()
        lengths = np.asarray(max(1, round(float(statistics.length.sum()))) if length is None else length)
        if lengths.dtype.kind not in "iu" or lengths.shape not in ((), (n_samples,)) or lengths.min() < 0:
            raise ValueError(f"length must be a whole number, or one for each of the {n_samples} rows, got {length!r}")
        lengths = np.broadcast_to(lengths, (n_samples,)).astype(np.int64)
        model = cast(Topics, self._model)
        return model.sample(self._read().parameters, n_samples, rng_of(self), lengths)

    # What was learned

    @property
    @reads
    def components_(self) -> Array:
        """Pseudo-counts of words in each topic."""
        prior, statistics, count = self._belief()
        return np.ascontiguousarray((prior.words.beta + count * np.asarray(statistics.table)).T)

    @property
    @reads
    def topics_(self) -> Array:
        """Probability of each word in each topic."""
        topics = np.ascontiguousarray(self._read().parameters.all().T)
        return topics / topics.sum(axis=1, keepdims=True)

    @property
    @reads
    def doc_topic_prior_(self) -> Array:
        """Dirichlet parameters of the proportions of a document."""
        return np.array(self._read().parameters.proportions)

    @property
    @reads
    def topic_word_prior_(self) -> float:
        """Dirichlet parameter of the words of a topic."""
        model = cast(Topics, self._model)
        return float(model.word_prior)
