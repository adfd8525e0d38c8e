"""Options of many machines: which cluster, how to reach it, and how the work is cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from headwater.cli.support.failures import usage_error


def _option(flag: str, text: str, **more: Any) -> Any:
    return typer.Option(flag, help=text, rich_help_panel="Many machines", show_default=False, **more)


@dataclass(frozen=True)
class ClusterOptions:
    """Where a model is learned: on this machine, or on the workers of a cluster."""

    cluster: Annotated[
        str | None,
        _option(
            "--cluster",
            "Learn on workers, which read the data themselves: local (one on each core), local:4, or the address of a Dask "
            "scheduler, tcp://host:port or tls://host:port.",
        ),
    ] = None
    rounds: Annotated[
        str | None, _option("--rounds", "How often workers exchange what they learned in a pass: a number, or auto.")
    ] = None
    part_rows: Annotated[
        int | None, _option("--part-rows", "Rows of a part, which is what one worker reads at a time.", min=1)
    ] = None
    leave_out_unreadable: Annotated[
        bool, _option("--leave-out-unreadable", "Go on without files that cannot be read; they are told in the end.")
    ] = False
    tls_ca_file: Annotated[str | None, _option("--tls-ca-file", "Certificate of the authority that the cluster trusts.")] = None
    tls_cert: Annotated[str | None, _option("--tls-cert", "Certificate to show to the cluster.")] = None
    tls_key: Annotated[str | None, _option("--tls-key", "Its key, if it is not in the same file.")] = None

    def check(self, data: Sequence[str], not_there: Mapping[str, Any]) -> None:
        """Refuse, before anything is started, what makes no sense, and options that a cluster does not have."""
        if self.cluster is None:
            for field in fields(self):
                if getattr(self, field.name):
                    raise usage_error(f"--{field.name.replace('_', '-')} is for many machines: name them by --cluster")
            return
        self.number_of_rounds()
        for name, value in not_there.items():
            if value is not None:
                raise usage_error(f"a cluster keeps a checkpoint after each round: leave out {name}")
        if "-" in data:
            raise usage_error("workers of a cluster cannot read standard input: name files that they can reach")
        if (self.tls_ca_file is None) != (self.tls_cert is None) or (self.tls_key and self.tls_cert is None):
            raise usage_error("TLS needs both --tls-ca-file and --tls-cert, and --tls-key if the key is in a file of its own")
        from headwater.distributed.clusters import workers_of

        try:
            workers_of(self.cluster)
        except ValueError as error:
            raise usage_error(str(error).replace("a cluster must", "--cluster must")) from None
        if self.tls_cert is not None and not self.here and not self.cluster.startswith(("tls://", "wss://")):
            raise usage_error(f"TLS needs an address that begins with tls://, got {self.cluster!r}")

    @property
    def here(self) -> bool:
        """Whether the workers are processes of this machine, started for this run."""
        return (self.cluster or "").startswith("local")

    def number_of_rounds(self) -> int | str:
        """Return the number of rounds, or "auto"."""
        if self.rounds is None or self.rounds == "auto":
            return "auto"
        if not self.rounds.isdecimal() or int(self.rounds) < 1:
            raise usage_error(f"--rounds must be auto or an integer of at least 1, got {self.rounds!r}")
        return int(self.rounds)

    @contextmanager
    def connect_client(self) -> Iterator[Any]:
        """Yield a client of the cluster."""
        import headwater.distributed

        security = None
        if self.tls_ca_file is not None and self.tls_cert is not None:
            security = headwater.distributed.tls(self.tls_ca_file, self.tls_cert, self.tls_key)
        with headwater.distributed.connect(self.cluster or "local", security=security) as client:
            yield client
