"""Options of `fit`: how a model is learned (algorithm, passes, checkpoints), and where (here, or on a cluster)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Unpack

import typer

from headwater.cli.support.failures import usage_error
from headwater.cli.support.options import OptionRules, option

CHECKPOINT_SECONDS = 30.0  # between checkpoints: little work is lost, and writing takes no noticeable share of the time


@dataclass(frozen=True)
class FitOptions:
    """How a model is learned; `passes` None means what the algorithm needs."""

    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", help="How to learn; see headwater compare.", show_default="auto"),
    ] = None
    passes: Annotated[
        str | None,
        typer.Option(
            "--passes",
            help="Passes over the data: 1 streams it, more hold all rows in memory, auto goes on until convergence.",
            show_default="1, or auto if the algorithm needs it",
            rich_help_panel="Passes and files",
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="Save progress here; the same command continues from it.", show_default=False),
    ] = None
    checkpoint_rows: Annotated[
        int | None,
        typer.Option(
            "--checkpoint-rows", min=1, help="Rows between checkpoints.", show_default=False, rich_help_panel="Passes and files"
        ),
    ] = None
    checkpoint_seconds: Annotated[
        float | None,
        typer.Option(
            "--checkpoint-seconds",
            min=0.0,
            help="Seconds between checkpoints.",
            show_default=f"{CHECKPOINT_SECONDS:.0f}",
            rich_help_panel="Passes and files",
        ),
    ] = None

    def parse_passes(self) -> int | str | None:
        """Return the number of passes, "auto", or None."""
        if self.passes is None or self.passes == "auto":
            return self.passes
        if not self.passes.isdecimal() or int(self.passes) < 1:
            raise usage_error(f"--passes must be auto or an integer of at least 1, got {self.passes!r}")
        return int(self.passes)


def _cluster_option(flag: str, text: str, **rules: Unpack[OptionRules]) -> object:
    return option(flag, text=text, panel="Cluster", **rules)


@dataclass(frozen=True)
class ClusterOptions:
    """Where a model is learned: in this process, or by the workers of a cluster at an address."""

    address: Annotated[
        str | None,
        _cluster_option(
            "--cluster",
            "Learn on workers, which read the data themselves: local (one for each core), local:4, or the address of a Dask "
            "scheduler, tcp://host:port or tls://host:port.",
        ),
    ] = None
    rounds: Annotated[
        str | None, _cluster_option("--rounds", "How often workers combine what they learned in a pass: a number, or auto.")
    ] = None
    part_rows: Annotated[
        int | None, _cluster_option("--part-rows", "Rows of a part: what one worker reads at a time.", min=1)
    ] = None
    leave_out_unreadable: Annotated[
        bool,
        _cluster_option("--leave-out-unreadable", "Continue without files that cannot be read; they are listed at the end."),
    ] = False
    tls_ca_file: Annotated[
        str | None, _cluster_option("--tls-ca-file", "Certificate of the authority that the cluster trusts.")
    ] = None
    tls_cert: Annotated[str | None, _cluster_option("--tls-cert", "Certificate to show to the cluster.")] = None
    tls_key: Annotated[str | None, _cluster_option("--tls-key", "Its key, if it is not in the same file.")] = None

    def check(self, data: Sequence[str], options: FitOptions) -> None:
        """Refuse, before any work is done, options that contradict each other or that a cluster does not have."""
        if self.address is None:
            for field in fields(self):
                if getattr(self, field.name):
                    raise usage_error(f"--{field.name.replace('_', '-')} is for many machines: name them by --cluster")
            return
        self.number_of_rounds()
        local_only = {"--checkpoint-rows": options.checkpoint_rows, "--checkpoint-seconds": options.checkpoint_seconds}
        for name, value in local_only.items():
            if value is not None:
                raise usage_error(f"a cluster keeps a checkpoint after each round: leave out {name}")
        if "-" in data:
            raise usage_error("workers of a cluster cannot read standard input: name files that they can reach")
        if (self.tls_ca_file is None) != (self.tls_cert is None) or (self.tls_key and self.tls_cert is None):
            raise usage_error("TLS needs both --tls-ca-file and --tls-cert, and --tls-key if the key is in a file of its own")
        from headwater.distributed.clusters import workers_of

        try:
            workers_of(self.address)
        except ValueError as error:
            raise usage_error(str(error).replace("a cluster must", "--cluster must")) from None
        if self.tls_cert is not None and not self.is_local and not self.address.startswith(("tls://", "wss://")):
            raise usage_error(f"TLS needs an address that begins with tls://, got {self.address!r}")

    @property
    def is_local(self) -> bool:
        """Whether the workers are processes on this machine, started for this run."""
        return (self.address or "").startswith("local")

    def number_of_rounds(self) -> int | str:
        """Return the number of rounds, or "auto"."""
        if self.rounds is None or self.rounds == "auto":
            return "auto"
        if not self.rounds.isdecimal() or int(self.rounds) < 1:
            raise usage_error(f"--rounds must be auto or an integer of at least 1, got {self.rounds!r}")
        return int(self.rounds)

    @contextmanager
    def connect_client(self) -> Iterator[object]:
        """Yield the Dask client of the cluster."""
        import headwater.distributed

        security = None
        if self.tls_ca_file is not None and self.tls_cert is not None:
            security = headwater.distributed.tls(self.tls_ca_file, self.tls_cert, self.tls_key)
        with headwater.distributed.connect(self.address or "local", security=security) as client:
            yield client
