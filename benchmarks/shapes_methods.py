"""How each method of the page of shapes learns and is judged: headwater, and the peers that are installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import headwater as hw

Way = Callable[[Any], tuple[Callable[[], Any], Callable[[Any], dict[str, float]]]]
CHUNK = 10_000  # rows that a stream is handed at a time


def score_and_groups(found: Any) -> Callable[[Any], dict[str, float]]:
    """Mean log-density of held-out rows, and the adjusted Rand index of their groups."""
    from sklearn.metrics import adjusted_rand_score

    def judge(model: Any) -> dict[str, float]:
        groups = {"rand": float(adjusted_rand_score(found.groups, model.predict(found.judge)))}
        return (
            groups
            if not hasattr(model, "score_samples")
            else {"score": float(np.mean(model.score_samples(found.judge))), **groups}
        )

    return judge


def streamed(**options: Any) -> Way:
    """One pass of a headwater mixture, in chunks, and the first read."""

    def way(found: Any) -> tuple[Callable[[], Any], Callable[[Any], dict[str, float]]]:
        settings = {name: value for name, value in options.items() if name != "kind"}
        kind = options.get("kind", hw.GaussianMixture)
        compile_first(kind, found, settings)

        def learn() -> Any:
            model = kind(found.components, random_state=0, **settings)
            for at in range(0, len(found.rows), CHUNK):
                model.partial_fit(found.rows[at : at + CHUNK])
            model.weights_  # noqa: B018  the first answer is part of the cost
            return model

        return learn, score_and_groups(found)

    return way


def compile_first(kind: Any, found: Any, options: dict[str, Any]) -> None:
    """Load or compile kernels before the clock starts."""
    kind(2, random_state=0, warm_up=50, **options).partial_fit(np.asarray(found.rows[:200])).score_samples(found.rows[:10])


def fitted(make: Callable[[Any], Any]) -> Way:
    """A peer with scikit-learn's `fit`."""

    def way(found: Any) -> tuple[Callable[[], Any], Callable[[Any], dict[str, float]]]:
        model = make(found)

        def learn() -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return model.fit(found.rows)

        return learn, score_and_groups(found)

    return way


def sklearn_mixture(kind: str, n_init: int = 1) -> Way:
    def make(found: Any) -> Any:
        from sklearn.mixture import GaussianMixture

        return GaussianMixture(found.components, covariance_type=kind, n_init=n_init, random_state=0)

    return fitted(make)


def pomegranate_mixture(kind: str) -> Way:
    """pomegranate's mixture of normal distributions, from its own start, to the tolerance that it has by default."""

    def make(found: Any) -> Any:
        import torch
        from pomegranate.distributions import Normal
        from pomegranate.gmm import GeneralMixtureModel

        class Mixture:
            def fit(self, rows: Any) -> Any:
                torch.manual_seed(0)
                parts = [Normal(covariance_type="sphere" if kind == "spherical" else kind) for _ in range(found.components)]
                self.model = GeneralMixtureModel(parts, random_state=0).fit(torch.tensor(rows, dtype=torch.float32))
                return self

            def predict(self, rows: Any) -> Any:
                return self.model.predict(torch.tensor(rows, dtype=torch.float32)).numpy()

            def score_samples(self, rows: Any) -> Any:
                return self.model.log_probability(torch.tensor(rows, dtype=torch.float32)).numpy()

        return Mixture()

    return fitted(make)


def mini_batch_kmeans(found: Any) -> Any:
    from sklearn.cluster import MiniBatchKMeans

    return MiniBatchKMeans(found.components, n_init=1, max_iter=3, random_state=0)


def faiss_kmeans(found: Any) -> Any:
    """FAISS' k-means, ten rounds over at most 256 rows a component, as it does by default."""
    import faiss

    class Means:
        def fit(self, rows: Any) -> Any:
            self.means = faiss.Kmeans(rows.shape[1], found.components, niter=10, seed=1)
            self.means.train(np.ascontiguousarray(rows, dtype=np.float32))
            return self

        def predict(self, rows: Any) -> Any:
            return self.means.index.search(np.ascontiguousarray(rows, dtype=np.float32), 1)[1][:, 0]

    return Means()


def river_kmeans(found: Any) -> Any:
    """River's k-means, row by row."""
    from river import cluster

    class Rows:
        def fit(self, rows: Any) -> Any:
            self.means = cluster.KMeans(n_clusters=found.components, halflife=0.1, seed=0)
            for row in rows.tolist():
                self.means.learn_one(dict(enumerate(row)))
            return self

        def predict(self, rows: Any) -> Any:
            return np.array([self.means.predict_one(dict(enumerate(row))) for row in rows.tolist()])

    return Rows()


def sequence(make: Callable[[int], Any]) -> Way:
    """A hidden Markov model, judged by its log-likelihood a row."""

    def way(found: Any) -> tuple[Callable[[], Any], Callable[[Any], dict[str, float]]]:
        make(2).fit(found.rows[:300])

        def learn() -> Any:
            return make(found.components).fit(found.rows)

        return learn, lambda model: {"score": float(model.score(found.judge)) / len(found.judge)}

    return way


def hmmlearn_model(components: int) -> Any:
    from hmmlearn.hmm import GaussianHMM

    return GaussianHMM(components, covariance_type="diag", random_state=0, n_iter=50)


def topics(make: Callable[[Any, Any], Any]) -> Way:
    """A topic model, judged by the perplexity of held-out words, half of each document given."""

    def way(found: Any) -> tuple[Callable[[], Any], Callable[[Any], dict[str, float]]]:
        rng = np.random.default_rng(0)
        given = rng.binomial(found.judge, 0.5)
        learn, tables = make(found, given)

        def judge(model: Any) -> dict[str, float]:
            shares, words = tables(model)
            chances = np.maximum(shares @ words, 1e-12)
            rest = found.judge - given
            return {"perplexity": float(np.exp(-(rest * np.log(chances)).sum() / rest.sum()))}

        return learn, judge

    return way


def _shares(table: Any) -> Any:
    return table / table.sum(axis=1, keepdims=True)


def headwater_topics(found: Any, given: Any) -> Any:
    def make(k: int) -> Any:
        return hw.LatentDirichletAllocation(k, random_state=0)

    make(2).partial_fit(found.rows[:300]).transform(given[:5])
    return lambda: make(found.components).fit(found.rows), lambda model: (
        _shares(model.transform(given)),
        _shares(model.components_),
    )


def sklearn_topics(found: Any, given: Any) -> Any:
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(found.components, random_state=0, max_iter=20)
    return lambda: model.fit(found.rows), lambda model: (model.transform(given), _shares(model.components_))


def gensim_topics(found: Any, given: Any) -> Any:
    from gensim.matutils import Dense2Corpus
    from gensim.models import LdaModel

    names = {word: str(word) for word in range(found.rows.shape[1])}

    def learn() -> Any:
        corpus = Dense2Corpus(found.rows, documents_columns=False)
        return LdaModel(corpus, num_topics=found.components, id2word=names, random_state=0, passes=5)

    def tables(model: Any) -> Any:
        shares, _ = model.inference(list(Dense2Corpus(given, documents_columns=False)))
        return _shares(shares), model.get_topics()

    return learn, tables


def tomotopy_topics(found: Any, given: Any) -> Any:
    import tomotopy

    def words(row: Any) -> list[str]:
        return [str(word) for word in np.repeat(np.arange(len(row)), row)]

    def learn() -> Any:
        model = tomotopy.LDAModel(k=found.components, seed=1)
        for row in found.rows:
            model.add_doc(words(row))
        model.train(300, workers=1)
        return model

    def tables(model: Any) -> Any:
        shares, _ = model.infer([model.make_doc(words(row)) for row in given], workers=1)
        table = np.full((found.components, found.rows.shape[1]), 1e-9)
        places = [int(word) for word in model.used_vocabs]
        for topic in range(found.components):
            table[topic, places] = model.get_topic_word_dist(topic)
        return np.array(shares), table

    return learn, tables


def gaussians(kind: str, *more: str) -> dict[str, Way]:
    found: dict[str, Way] = {
        "headwater, one pass": streamed(covariance_type=kind),
        "scikit-learn GaussianMixture": sklearn_mixture(kind),
    }
    if "restarts" in more:
        found["scikit-learn GaussianMixture, n_init=5"] = sklearn_mixture(kind, 5)
    found["pomegranate GeneralMixtureModel"] = pomegranate_mixture(kind)
    found["MiniBatchKMeans"] = fitted(mini_batch_kmeans)
    found["FAISS k-means"] = fitted(faiss_kmeans)
    if "river" in more:
        found["River KMeans"] = fitted(river_kmeans)
    return found


METHODS: dict[str, dict[str, Way]] = {
    "small": gaussians("full", "restarts", "river"),
    "table": gaussians("full", "restarts", "river"),
    "long": gaussians("full"),
    "wide": gaussians("spherical"),
    "embeddings": {
        "headwater GaussianMixture, one pass": streamed(covariance_type="spherical"),
        "headwater VonMisesFisherMixture, one pass": streamed(kind=hw.VonMisesFisherMixture),
        "MiniBatchKMeans": fitted(mini_batch_kmeans),
        "FAISS k-means": fitted(faiss_kmeans),
    },
    "chain": {
        "headwater GaussianHMM": sequence(lambda k: hw.GaussianHMM(k, covariance_type="diag", random_state=0)),
        "hmmlearn GaussianHMM": sequence(hmmlearn_model),
    },
    "documents": {
        "headwater LatentDirichletAllocation": topics(headwater_topics),
        "scikit-learn LatentDirichletAllocation": topics(sklearn_topics),
        "gensim LdaModel": topics(gensim_topics),
        "tomotopy LDAModel": topics(tomotopy_topics),
    },
}
