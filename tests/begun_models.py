"""Models that begin at a start that is given, without a warm-up: on every law, as those of the law table."""

import chain_models
import numpy as np

import headwater as hw
from headwater.core.statistics import Array

CENTRES: Array = np.array([[100.0, 100.0], [104.0, 104.0], [108.0, 108.0]])
TOPICS: Array = np.random.default_rng(30).dirichlet(np.full(6, 2.0), size=3)


def precisions(kind: str) -> Array:
    """Return the inverses of variances 2 and 9, in the shape of a kind of covariance."""
    own = np.diag([0.5, 1.0 / 9.0])
    return {"full": np.tile(own, (3, 1, 1)), "tied": own, "diag": np.tile(np.diag(own), (3, 1))}.get(kind, np.full(3, 0.2))


BEGUN_MODELS = [
    hw.GaussianMixture(
        3, covariance_type=kind, algorithm=algorithm, means_init=CENTRES, precisions_init=precisions(kind), start_weight=60.0,
        warm_up=0, random_state=0, **options,
    )
    for kind, algorithm, options in (
        ("full", "auto", {"reservoir": 0}), ("diag", "online-vb", {}), ("tied", "boem", {}), ("spherical", "soem", {}),
        ("full", "moment-matching", {}), ("full", "online-em", {}), ("diag", hw.OnlineEM(batch_size=1), {}),
        ("full", "auto", {"reservoir": 250}), ("full", "auto", {"half_life": 80.0}), ("full", "quasi-bayes", {"parts": 3}),
        ("spherical", "auto", {"scale_columns": True, "reservoir": 0}), ("full", "em", {}),
    )
] + [
    hw.MultinomialMixture(3, algorithm=word, probabilities_init=TOPICS, start_weight=60.0, warm_up=0, random_state=0)
    for word in ("boem", "online-em")
] + [
    hw.MarkovMixture(
        2, startprob_init=np.full((2, 3), 1.0 / 3.0), transmat_init=np.stack([np.full((3, 3), 0.2) + 0.4 * np.eye(3)] * 2),
        algorithm="online-vb", warm_up=0, random_state=0,
    ),
    hw.RegressionMixture(
        2, coef_init=[[2.0, -0.5], [-1.0, 0.4]], intercept_init=[0.0, 50.0], noise_variance_init=0.25, algorithm="boem",
        start_weight=60.0, warm_up=0, random_state=0,
    ),
    hw.ItakuraSaitoNMF(3, components_init=TOPICS, start_weight=60.0, warm_up=0, random_state=0),
] + [
    hw.LatentDirichletAllocation(3, algorithm=word, components_init=TOPICS, start_weight=60.0, warm_up=0, random_state=0)
    for word in ("auto", "online-vb", "scvb0")
] + [
    chain_models.started(
        chain_models.StartedGaussianHMM(3, algorithm=algorithm, warm_up=0, lag=10, random_state=0, init_params="")
    )
    for algorithm in ("online-em", hw.OnlineEM(batch_size=40))
]  # fmt: skip
