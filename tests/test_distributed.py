"""headwater.distributed.fit: the result of `fit`, whoever does the work, in whatever order, and whatever goes wrong."""

import numpy as np
import pytest
from cluster_models import EXACT, KINDS, ONE_PASS, SIZES, at_hand, delayed_at_random, model_of, on_cluster, same
from distributed import Client

import headwater as hw
from headwater.distributed import tasks

RESULTS = ("n_iter_", "converged_", "n_samples_seen_", "n_features_in_")


@pytest.fixture(scope="module")
def clusters():
    """Clients of clusters with so many workers, in this process."""
    opened = {}

    def of(workers):
        if workers not in opened:
            opened[workers] = Client(
                processes=False,
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address=":0",
                worker_dashboard_address=None,
                set_as_default=False,
            )
        return opened[workers]

    yield of
    for client in opened.values():
        client.close()
        client.cluster.close()


def fit(clusters, model, data, workers=2, **given):
    return hw.distributed.fit(model, data, client=clusters(workers), **given)


def assert_equal_to_rounding(one, other, rtol=1e-6):
    for name in RESULTS:
        assert getattr(one, name) == getattr(other, name), name
    np.testing.assert_allclose(one.lower_bounds_, other.lower_bounds_, rtol=1e-9)
    for name in one._answers:
        wanted = np.asarray(getattr(other, name))
        np.testing.assert_allclose(getattr(one, name), wanted, rtol=rtol, atol=rtol * np.abs(wanted).max(), err_msg=name)


# Exact passes


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
@pytest.mark.parametrize(("kind", "word"), EXACT)
def test_exact_passes_are_those_of_fit(clusters, kind, word):
    data, given = on_cluster(kind)
    found = fit(clusters, model_of(kind, word, max_iter=5), data, **given)
    wanted = model_of(kind, word, max_iter=5).fit(**at_hand(kind))
    assert_equal_to_rounding(found, wanted)


# One pass


def assert_the_workers_do_not_matter(clusters, monkeypatch, kind, word, numbers):
    data, given = on_cluster(kind)
    first = fit(clusters, model_of(kind, word), data, 1, **given)
    assert first.distributed_report_.parts == len(SIZES)
    assert sum(one.rows for one in first.distributed_report_.rounds) == first.n_samples_seen_
    for name in ("learn", "added"):
        monkeypatch.setattr(tasks, name, delayed_at_random(getattr(tasks, name)))
    for workers in numbers:
        assert same(fit(clusters, model_of(kind, word), data, workers, **given), first)


@pytest.mark.parametrize("kind", KINDS)
def test_one_pass_does_not_depend_on_the_workers(clusters, kind, monkeypatch):
    assert_the_workers_do_not_matter(clusters, monkeypatch, kind, KINDS[kind][0]().algorithm, [7])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "word"), ONE_PASS)
def test_one_pass_does_not_depend_on_the_workers_by_any_algorithm(clusters, kind, word, monkeypatch):
    assert_the_workers_do_not_matter(clusters, monkeypatch, kind, word, [2, 7])
