"""How `fit` learns on a cluster: workers read the data, and the client sees what they learned."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from inspect import signature
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from headwater.cli.support.cluster_options import ClusterOptions
from headwater.cli.support.failures import usage_error
from headwater.cli.support.model_arguments import COMPANIONS, check_accepted
from headwater.cli.support.options import MessageOptions, ReadOptions
from headwater.cli.support.progress import cluster_progress_bar
from headwater.cli.support.provenance import write_model
from headwater.cli.support.signals import remove_parts_on_stop, undo_on_stop
from headwater.cli.support.stream_fit import FitOptions


def fit_on_cluster(
    model: Any,
    data: Sequence[str],
    reading: ReadOptions,
    machines: ClusterOptions,
    effort: FitOptions,
    talk: MessageOptions,
    *,
    seed: int,
    like: Any,
) -> Any:
    """Return a model that the workers of a cluster have learned; names of data are theirs to look up."""
    import headwater.distributed
    from headwater.distributed.api import check_call

    asked = reading.stream_arguments(seed=seed, like=like, learns=True)
    asked.pop("like", None)  # a model that goes on is read after by itself
    _check_read_options(model, reading, asked)
    check_call(model, machines.number_of_rounds(), effort.passes, like is not None, machines.part_rows, reading=asked)
    title = f"starting workers ({machines.cluster})" if machines.here else f"connecting to {machines.cluster}"
    with (
        cluster_progress_bar(talk, title) as watch,
        _end_workers_on_stop(),
        remove_parts_on_stop(effort.checkpoint) if effort.checkpoint is not None else nullcontext(),
        machines.connect_client() as client,
    ):
        return headwater.distributed.fit(
            model,
            data[0] if len(data) == 1 else list(data),
            client=client,
            rounds=machines.number_of_rounds(),
            passes=effort.passes,
            go_on=like is not None,
            checkpoint=effort.checkpoint,
            part_rows=machines.part_rows,
            unreadable="leave out" if machines.leave_out_unreadable else "refuse",
            watch=watch,
            **asked,
        )


@contextmanager
def save_unfinished(path: Path | None, commands: Sequence[str], raw_rows: bool) -> Iterator[None]:
    """Keep what was learned of all other parts if some cannot be read: it may have taken many machines a long time."""
    from headwater.distributed import UnreadError

    try:
        yield
    except UnreadError as error:
        if path is None or error.model is None:
            raise
        write_model(error.model, path, commands, raw_rows)
        raise ValueError(f"{str(error).rstrip('.')}; what was learned so far is saved in {path}") from error


def _check_read_options(model: Any, reading: ReadOptions, asked: Mapping[str, Any]) -> None:
    """Refuse ways to read that make no sense whatever the data is, before a cluster is asked to do so."""
    import headwater
    from headwater.io.formats import find_format
    from headwater.io.options import make_options

    ways = {"--target": reading.target, "--weight": reading.weight, "--label": reading.label, "--key": reading.key}
    check_accepted(model, [name for name, option in COMPANIONS.items() if ways.get(option) is not None])
    defaults = {name: one.default for name, one in signature(headwater.stream).parameters.items()}
    given = {**defaults, **asked}
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
    """Let no worker outlive this process, and nothing complain of what it leaves behind when it is stopped."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore"  # of the process that removes semaphores whose owner is gone, and tells of it
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
