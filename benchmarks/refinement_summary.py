"""Many sets in one line: mean, 90th percentile and worst loss, the share that is close to the reference, and seconds.

Where all restarts of scikit-learn have missed the best optimum, a stream may gain much against them, and a mean of losses would
hide the losses of others. So there is a second mean, in which gains count as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CLOSE = 0.002
PEERS = "all rows"  # in place of an order: peers have all rows at once


@dataclass(frozen=True)
class Summary:
    """Losses in nats a row, CPU seconds as a sum over the sets, and by how much that is more than one fit of scikit-learn."""

    sets: int
    mean: float
    mean_without_gains: float
    ninetieth: float
    worst: float
    close: float
    seconds: float
    one_fit: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.one_fit

    def __str__(self) -> str:
        return (
            f"mean {self.mean:+.4f} (gains as 0: {self.mean_without_gains:.4f})  90th {self.ninetieth:+.4f}  "
            f"worst {self.worst:+.4f}  within {CLOSE} {self.close:4.0%}  {self.seconds:6.1f} s  {self.ratio:.2f} of one fit"
        )


def summarised(measured: Sequence[tuple[float, float, float]]) -> Summary:
    """Sum up one way to learn: loss, seconds, and seconds of one fit of scikit-learn, for each set."""
    losses, seconds, one_fit = np.asarray(measured).T
    return Summary(
        len(losses), float(losses.mean()), float(losses.clip(0.0).mean()), float(np.quantile(losses, 0.9)), float(losses.max()),
        float(np.mean(losses <= CLOSE)), float(seconds.sum()), float(one_fit.sum()),
    )  # fmt: skip


def summaries(entries: Sequence[dict[str, Any]]) -> dict[tuple[str, str], Summary]:
    """Sum up every peer, and every contender in every order: (order, name) to summary, in the order of the entries."""
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for entry in entries:
        one_fit = entry["peers"][0]["seconds"]
        for peer in entry["peers"]:
            measured = (peer["loss"], peer["seconds"], one_fit)
            found.setdefault((PEERS, f"scikit-learn n_init={peer['n_init']}"), []).append(measured)
        for run in entry["runs"]:
            measured = (run["loss"], run["learning"] + run["reading"], one_fit)
            found.setdefault((run["order"], run["contender"]), []).append(measured)
    return {key: summarised(values) for key, values in found.items()}
