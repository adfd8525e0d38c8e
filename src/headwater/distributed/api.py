"""headwater.distributed.fit: any model, learned by the workers of a cluster."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from headwater.core.validation import one_line
from headwater.distributed import tasks
from headwater.distributed.clusters import WAIT, ClusterError, answers, connection_needed, opened
from headwater.distributed.identities import missing_before
from headwater.distributed.job import LEAVE_OUT, REFUSE, Run, UnreadError
from headwater.distributed.messages import functions_of
from headwater.distributed.plan import check_reading, planned
from headwater.distributed.progress import Step
from headwater.distributed.task_graph import Cluster
from headwater.distributed.versions import check_workers
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.stored_results import RESULTS as STORED
from headwater.estimators.thread_safety import lock_of
from headwater.kernels.parallel import one_blas_thread
from headwater.registry import learner_of

# What a model that goes on knows better than those who call.
KNOWN = ("columns", "exclude", "categories")


def fit(
    model: Any,
    data: Any,
    *,
    client: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    rounds: int | str = "auto",
    passes: int | str | None = None,
    go_on: bool = False,
    checkpoint: str | Path | None = None,
    part_rows: int | None = None,
    unreadable: str = REFUSE,
    watch: Callable[[Step], None] | None = None,
    **reading: Any,
) -> Any:
    """Learn a model from data that no machine can hold, by the workers of a Dask cluster.

    The data is cut into parts, which do not depend on the number of workers. An algorithm for streams makes one pass: a start
    is found on a sample, every part is streamed by a worker from there, and what all have learned is added up a tree, in some
    `rounds`, each of which begins where the one before ended. An algorithm for batches (and `passes`) makes exact
    passes: workers take the E-step of their parts, a tree adds, and the result is that of `model.fit` up to rounding. In both
    ways the answer is the same, bit for bit, whatever the number of workers and whoever is slow or dies.

    Parameters
    ----------
    model : estimator
        The model. It is fitted in place; if anything fails, it is as it was.
    data : str, path or list of them, dask array, dask dataframe or dask bag
        Files, folders and patterns, which workers look up and read, as `headwater.stream` does; rows of an array or a
        dataframe; documents, or sequences, of a bag. Where rows hang together (hidden Markov models), a part holds whole
        sequences: a file or partition is one, unless a `key` tells several apart.
    client : distributed.Client or str, optional
        The client of the cluster, or the address of its scheduler. Default: a cluster on this machine, which is closed at the
        end.
    y, sample_weight : dask array, optional
        Target and weights of the rows of an array.
    rounds : int or "auto", default="auto"
        Times that what parts have learned is brought together in one pass.
    passes : int or "auto", optional
        Passes over the data. Default: one of an algorithm for streams, as many as it takes of one for batches. With "auto",
        or more than one, ``algorithm="auto"`` goes on with exact passes after the first, until it converges; what has no exact
        passes (topics, other algorithms for streams) streams again, `max_iter` times with "auto".
    go_on : bool, default=False
        Whether a model that has learned before goes on with that, as `partial_fit` does; so it does if it has `warm_start`.
    checkpoint : str or path, optional
        A file that keeps the model after every round: the same call goes on from there if this one was broken off.
    part_rows : int, optional
        Rows of a part, of files that know their rows; rounded up to whole chunks.
    unreadable : {"refuse", "leave out"}, default="refuse"
        What becomes of parts that cannot be read: all others are learned, and then an `UnreadError` names them and holds
        the model of the others (with a checkpoint, the same call learns what is missing once it can be read), while exact
        passes end there and then, since without a part they are exact no more (the model is then that of the last pass
        before, if there was one); or they are left out with a warning.
    watch : callable, optional
        Called with a `Step` whenever something is done.
    **reading
        How files, dataframes and bags are read: the options of `headwater.stream` (`columns`, `target`, `key`, ...).

    Returns
    -------
    model : estimator
        The model. Its `distributed_report_`, a `DistributedReport`, says what was done and what it moved.

    Raises
    ------
    UnreadError
        If parts could not be read, after all others were learned.

    Examples
    --------
    >>> import dask.array
    >>> import numpy as np
    >>> import headwater as hw
    >>> from distributed import Client
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(20000, 2)) + 6.0 * rng.integers(2, size=(20000, 1))
    >>> data = dask.array.from_array(rows, chunks=(2500, 2))
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = hw.distributed.fit(hw.GaussianMixture(2, random_state=0), data, client=client)
    >>> model.n_samples_seen_
    20000
    >>> np.sort(np.abs(model.means_[:, 0])).round()
    array([0., 6.])
    """
    check_call(model, rounds, passes, go_on, part_rows, unreadable, watch, reading)
    goes_on = model._has_state() and (go_on or bool(getattr(model, "warm_start", False)))
    like = dict(model.schema_) if goes_on and hasattr(model, "schema_") else None
    if like is not None:
        reading = {name: value for name, value in reading.items() if name not in KNOWN}
    with opened(client) as connected, connection_needed():
        _wait_for_workers(connected)
        cluster = Cluster(connected, functions_of(model), watch)
        cluster.tell(Step("looking"))
        again = {} if checkpoint is None else missing_before(checkpoint)
        plan = planned(cluster, model, data, y, sample_weight, part_rows, like, reading, again)
        run = Run(cluster, plan, model, goes_on, rounds, passes, unreadable)
        try:
            with one_blas_thread():
                learned, report = run.learn(checkpoint)
        except UnreadError as error:
            if error.model is not None:
                rest = copy(model)
                give(rest, error.model)
                error.model = rest
            raise
        with suppress(OSError):  # nothing is lost if the cluster goes now
            report = replace(report, workers=len(connected.nthreads()))
            answers(connected, tasks.forget)
    give(model, learned)
    model.distributed_report_ = report
    return model


def check_call(
    model: Any,
    rounds: Any = "auto",
    passes: Any = None,
    go_on: bool = False,
    part_rows: Any = None,
    unreadable: Any = REFUSE,
    watch: Any = None,
    reading: Mapping[str, Any] | None = None,
) -> None:
    """Refuse what `fit` cannot do, in a sentence, before any worker is asked."""
    if not isinstance(model, StreamingEstimator):
        raise TypeError(f"model must be a headwater model, got {type(model).__name__}")
    if getattr(model, "half_life", None) is not None:
        raise ValueError("half_life forgets in the order of one stream, and parts are learned side by side: leave it out")
    for name, value, words in (
        ("rounds", rounds, ["auto"]),
        ("passes", passes, ["auto", None]),
        ("part_rows", part_rows, [None]),
    ):
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1
        if not whole and not any(value is word or (isinstance(value, str) and value == word) for word in words):
            or_auto = " or 'auto'" if "auto" in words else ""
            raise ValueError(f"{name} must be a whole number of at least 1{or_auto}, got {one_line(value)}")
    if watch is not None and not callable(watch):
        raise TypeError(f"watch must be called with each step, and {one_line(watch)} cannot be called")
    if unreadable not in (REFUSE, LEAVE_OUT):
        raise ValueError(f"unreadable must be {REFUSE!r} or {LEAVE_OUT!r}, got {one_line(unreadable)}")
    check_reading(model, reading or {})
    algorithm = learner_of(model).algorithm
    if go_on and model._has_state() and (passes not in (None, 1) or not algorithm.online):
        raise ValueError("go_on is for one pass over more rows, and exact passes know only the rows they read: leave out one")


def _wait_for_workers(client: Any) -> None:
    """See to it that there are workers, and that those who answer have this very library."""
    try:
        client.wait_for_workers(1, timeout=WAIT)
    except TimeoutError as error:
        raise ClusterError(f"the cluster has no workers, and none came within {WAIT:.0f} seconds") from error
    check_workers(client)


def give(model: Any, learned: Any) -> None:
    """Leave to a model what another one with its parameters has learned."""
    parameters = set(model._parameter_names())
    given = {name: value for name, value in vars(learned).items() if name not in parameters}
    with lock_of(model):
        other = copy(model)
        for name in STORED:
            other.__dict__.pop(name, None)
        other.__dict__.update(given)
        other._runtime = replace(learned._runtime, made_with=other._parameter_values())
        model.__dict__ = other.__dict__
