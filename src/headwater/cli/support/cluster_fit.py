"""How `fit` learns on a cluster: workers read the data and return what they learned."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from inspect import signature
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.cli.support.failures import usage_error
from headwater.cli.support.fit_options import ClusterOptions, FitOptions
from headwater.cli.support.model_arguments import COMPANIONS, check_accepted
from headwater.cli.support.options import MessageOptions, ReadOptions
from headwater.cli.support.progress import cluster_progress_bar
from headwater.cli.support.provenance import write_model
from headwater.cli.support.signals import remove_parts_on_stop, undo_on_stop
from headwater.cli.support.stream_fit import LEAVE_OUT_IDS
from headwater.estimators.row_numbers import NUMBERS_ROWS

if TYPE_CHECKING:
    from headwater.estimators.base import StreamingEstimator


def fit_on_cluster(
    model: StreamingEstimator,
    data: Sequence[str],
    reading: ReadOptions,
    cluster: ClusterOptions,
    options: FitOptions,
    messages: MessageOptions,
    *,
    seed: int,
    like: object,
) -> StreamingEstimator:
    """Return a model that the workers of a cluster have learned. The workers look up the names of the data."""
    import headwater.distributed
    from headwater.distributed.api import check_call

    passes, tables = options.parse_passes(), type(model)._traits.takes_tables
    arguments = reading.with_gaps(model).stream_arguments(seed=seed, like=like, learns=True, tables=tables)
    arguments.pop("like", None)  # the schema of the model says how to read more data
    _check_read_options(model, reading, arguments)
    check_call(model, cluster.number_of_rounds(), passes, like is not None, cluster.part_rows, reading=arguments)
    title = f"starting workers ({cluster.address})" if cluster.is_local else f"connecting to {cluster.address}"
    with (
        cluster_progress_bar(messages, title) as watch,
        _end_workers_on_stop(),
        remove_parts_on_stop(options.checkpoint) if options.checkpoint is not None else nullcontext(),
        cluster.connect_client() as client,
        _refuse_ids(not reading.columns and like is None),
    ):
        return headwater.distributed.fit(
            model,
            data[0] if len(data) == 1 else list(data),
            client=client,
            rounds=cluster.number_of_rounds(),
            passes=passes,
            go_on=like is not None,
            checkpoint=options.checkpoint,
            part_rows=cluster.part_rows,
            unreadable="leave out" if cluster.leave_out_unreadable else "refuse",
            watch=watch,
            **arguments,
        )


@contextmanager
def _refuse_ids(refuse: bool) -> Iterator[None]:
    """Refuse columns that number the rows, of which models warn; or pass over the warning, if they were asked for."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error" if refuse else "ignore", message=f".*{NUMBERS_ROWS}", category=UserWarning)
        try:
            yield
        except UserWarning as warning:
            raise usage_error(f"{str(warning).split(':')[0]}: {LEAVE_OUT_IDS}") from None


@contextmanager
def save_unfinished(path: Path | None, commands: Sequence[str], raw_rows: bool) -> Iterator[None]:
    """If some parts cannot be read, save the model of the others: it may have taken many machines a long time."""
    from headwater.distributed import UnreadError

    try:
        yield
    except UnreadError as error:
        if path is None or error.model is None:
            raise
        write_model(error.model, path, commands, raw_rows)
        raise ValueError(f"{str(error).rstrip('.')}; what was learned so far is saved in {path}") from error


def _check_read_options(model: StreamingEstimator, reading: ReadOptions, arguments: Mapping[str, object]) -> None:
    """Refuse read options that no data could satisfy, before a cluster is asked."""
    import headwater
    from headwater.io.formats import find_format
    from headwater.io.options import make_options

    companions = {"--target": reading.target, "--weight": reading.weight, "--label": reading.label, "--key": reading.key}
    check_accepted(model, [name for name, option in COMPANIONS.items() if companions.get(option) is not None])
    defaults = {name: one.default for name, one in signature(headwater.stream).parameters.items()}
    given = {**defaults, **arguments}
    for name in ("source", "like", "prefetch"):
        given.pop(name)
    try:
        make_options(**given)
        if given["format"] is not None:
            find_format(given["format"])
    except (ValueError, TypeError) as error:
        raise usage_error(str(error)) from None


@contextmanager
def _end_workers_on_stop() -> Iterator[None]:
    """End the workers when this process is stopped, and print no warnings about resources of workers."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore"  # of the process that removes the semaphores of dead workers
    try:
        resource_tracker.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before
    with undo_on_stop(_end_workers):
        yield


def _end_workers() -> None:
    for worker in multiprocessing.active_children():
        worker.kill()
