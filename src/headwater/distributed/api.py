"""headwater.distributed.fit: any model, learned by the workers of a cluster."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.core.validation import one_line
from headwater.core.values import Values
from headwater.distributed import tasks
from headwater.distributed.clusters import WORKER_WAIT, ClusterError, ask_workers, explain_lost_connection, open_client
from headwater.distributed.dask_engine import DaskEngine
from headwater.distributed.job import LEAVE_OUT, REFUSE, Job, UnreadError
from headwater.distributed.messages import functions_of
from headwater.distributed.parts import DataToRead
from headwater.distributed.plan import check_reading, make_plan
from headwater.distributed.progress import Step
from headwater.distributed.run_record import unread_files
from headwater.distributed.versions import check_workers
from headwater.estimators.base import StreamingEstimator
from headwater.estimators.calls import lock_of
from headwater.estimators.estimator_core import parameter_names
from headwater.estimators.stored_results import RESULTS as STORED
from headwater.kernels.parallel import one_blas_thread
from headwater.registry import make_provisional_learner

if TYPE_CHECKING:
    from distributed import Client

# Options that the schema of a continued model fixes.
SCHEMA_OPTIONS = ("columns", "exclude", "categories", "dates")


def fit(
    model: StreamingEstimator,
    data: object,
    *,
    client: object = None,
    y: Values = None,
    sample_weight: Values = None,
    rounds: int | str = "auto",
    passes: int | str | None = None,
    go_on: bool = False,
    checkpoint: str | Path | None = None,
    part_rows: int | None = None,
    unreadable: str = REFUSE,
    watch: Callable[[Step], None] | None = None,
    **reading: object,
) -> StreamingEstimator:
    """Learn a model from data that no machine can hold, by the workers of a Dask cluster.

    The data is cut into parts, which do not depend on the number of workers. An algorithm for streams makes one pass: a start
    is found on a sample, a worker streams each part from there, and the results are added in a tree. This is done in some
    `rounds`, each of which starts where the one before ended. An algorithm for batches (and `passes`) makes exact passes:
    workers compute the E-step of their parts, a tree adds, and the result is that of `model.fit` up to rounding. Either way
    the answer is the same, bit for bit, for any number of workers, and also if workers are slow or die.

    Parameters
    ----------
    model : estimator
        The model. It is fitted in place; if anything fails, it is as it was.
    data : str, path or list of them, dask array, dask dataframe or dask bag
        Files, folders and patterns, which workers look up and read, as `headwater.stream` does; rows of an array or a
        dataframe; documents, or sequences, of a bag. For hidden Markov models a part holds whole sequences: a file or
        partition is one sequence, unless a `key` tells several apart.
    client : distributed.Client or str, optional
        The client of the cluster, or the address of its scheduler. Default: a cluster on this machine, which is closed at the
        end.
    y, sample_weight : dask array, optional
        Target and weights of the rows of an array.
    rounds : int or "auto", default="auto"
        How often the results of parts are combined in one pass.
    passes : int or "auto", optional
        Passes over the data. Default: one for an algorithm for streams, until convergence for one for batches. With "auto",
        or more than one, ``algorithm="auto"`` continues with exact passes after the first, until it converges; models and
        algorithms without exact passes (topics, other algorithms for streams) stream again, `max_iter` times with "auto".
    go_on : bool, default=False
        Whether a model that has learned before continues, as `partial_fit` does. With `warm_start` it does so anyway.
    checkpoint : str or path, optional
        A file that stores the model after each round: if this call is interrupted, the same call continues from there.
    part_rows : int, optional
        Rows of a part, of files that know their rows; rounded up to whole chunks.
    unreadable : {"refuse", "leave out"}, default="refuse"
        What happens to parts that cannot be read. "leave out" warns and continues without them. "refuse" learns all others,
        and then raises an `UnreadError`, which names the parts and holds the model of the others; with a checkpoint, the same
        call learns what is missing once it can be read. Exact passes stop at once, since without a part they would not be
        exact; the model is then that of the last pass before, if there was one.
    watch : callable, optional
        Called with a `Step` whenever something is finished.
    **reading
        How files, dataframes and bags are read: the options of `headwater.stream` (`columns`, `target`, `key`, ...). Models
        of tables are given categories as they are, and models that take them missing values, unless something else is asked
        for.

    Returns
    -------
    model : estimator
        The model. Its `distributed_report_`, a `DistributedReport`, says what was done and how many bytes were sent.

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
        reading = {name: value for name, value in reading.items() if name not in SCHEMA_OPTIONS}
    with open_client(client) as connected, explain_lost_connection():
        _wait_for_workers(connected)
        engine = DaskEngine(connected, functions_of(model), watch)
        engine.report(Step("looking"))
        unread_before = {} if checkpoint is None else unread_files(checkpoint)
        defaults = reading_defaults(model) if like is None else {}
        wanted = DataToRead(data, y, sample_weight, part_rows, like, reading, defaults, unread_before)
        plan = make_plan(engine, model, wanted)
        job = Job(engine, plan, model, goes_on, rounds, passes, unreadable)
        try:
            with one_blas_thread():
                learned, report = job.learn(checkpoint)
        except UnreadError as error:
            if error.model is not None:
                rest = copy(model)
                copy_learned(rest, error.model)
                error.model = rest
            raise
        with suppress(OSError):  # nothing is lost if the cluster is gone now
            report = replace(report, workers=len(connected.nthreads()))
            ask_workers(connected, tasks.forget_model)
    copy_learned(model, learned)
    model.distributed_report_ = report
    return model


def check_call(
    model: StreamingEstimator,
    rounds: object = "auto",
    passes: object = None,
    go_on: bool = False,
    part_rows: object = None,
    unreadable: object = REFUSE,
    watch: object = None,
    reading: Mapping[str, object] | None = None,
) -> None:
    """Refuse arguments that `fit` cannot use, before any worker is asked."""
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
    algorithm = make_provisional_learner(model).algorithm
    if go_on and model._has_state() and (passes not in (None, 1) or not algorithm.online):
        raise ValueError("go_on is for one pass over more rows, and exact passes know only the rows they read: leave out one")


def reading_defaults(model: StreamingEstimator) -> dict[str, object]:
    """Return how files and dataframes are read for a model, where nothing else is asked for: tables and gaps as they are."""
    tables = model._traits.takes_tables
    gaps = model._takes_gaps or tables
    return {**({"categories": "keep"} if tables else {}), **({"missing": "keep"} if gaps else {})}


def _wait_for_workers(client: Client) -> None:
    """Wait until there are workers, and check that they have the same headwater."""
    try:
        client.wait_for_workers(1, timeout=WORKER_WAIT)
    except TimeoutError as error:
        raise ClusterError(f"the cluster has no workers, and none came within {WORKER_WAIT:.0f} seconds") from error
    check_workers(client)


def copy_learned(model: StreamingEstimator, learned: StreamingEstimator) -> None:
    """Copy what a model has learned into another one with the same parameters."""
    parameters = set(parameter_names(type(model)))
    given = {name: value for name, value in vars(learned).items() if name not in parameters}
    with lock_of(model):
        other = copy(model)
        for name in STORED:
            other.__dict__.pop(name, None)
        other.__dict__.update(given)
        other._runtime = replace(learned._runtime, made_with=other._given_parameters())
        model.__dict__ = other.__dict__
