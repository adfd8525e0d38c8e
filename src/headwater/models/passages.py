"""How a chain passes from row to row: filter, smoother and best path by kernels for passages of one kind."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from headwater.core.statistics import Array
from headwater.kernels.chain_logs import run_log_filter, smooth_logs
from headwater.kernels.chains import best_path, run_filter, smooth
from headwater.kernels.stays import best_stays, run_stay_filter, run_stay_log_filter, smooth_stay_logs, smooth_stays
from headwater.models.chain_records import ChainParameters
from headwater.models.chain_underflow import Filtered, run_in_logs


class Passages:
    """From each state to any other."""

    kernels = (run_filter, smooth, run_log_filter, smooth_logs, best_path)

    def steps_of(self, parameters: ChainParameters) -> Array:
        """Return the transitions as kernels want them."""
        return parameters.transitions

    def filter(
        self,
        parameters: ChainParameters,
        shares: Array,
        logs: Array,
        edges: NDArray[np.int64],
        known: NDArray[np.bool_],
        filters: Array,
        ahead: Array,
        scores: Array,
    ) -> int:
        """Filter rows (see kernels/chains.py); returns the row at which logarithms are wanted, or -1."""
        steps = self.steps_of(parameters)
        return int(self.kernels[0](shares, logs, edges, known, filters, parameters.start, steps, ahead, scores))

    def filter_in_logs(
        self,
        parameters: ChainParameters,
        logs: Array,
        edges: NDArray[np.int64],
        known: NDArray[np.bool_],
        filters: Array,
        found: Filtered,
    ) -> Filtered:
        """Return what was found, or the same in logarithms if a state comes back (see chain_underflow.py)."""
        steps = self.steps_of(parameters)
        return run_in_logs(self.kernels[2], parameters.start, steps, logs, edges, known, filters, found)

    def smooth(
        self,
        found: Filtered,
        parameters: ChainParameters,
        edges: NDArray[np.int64],
        known: NDArray[np.bool_],
        filters: Array,
        counted: NDArray[np.int64],
        first: Array,
        steps: Array,
    ) -> None:
        """Smooth rows that were filtered: `shares` become the states given all rows of the sequence."""
        if found.logs is None:
            passages = self.steps_of(parameters)
            self.kernels[1](found.shares, found.ahead, edges, known, filters, counted, passages, first, steps)
            return
        logs = found.logs
        self.kernels[3](
            logs.filtered, logs.ahead, edges, known, filters, counted, logs.before, logs.steps, found.shares, first, steps
        )

    def best(self, parameters: ChainParameters, logs: Array, edges: NDArray[np.int64]) -> tuple[float, NDArray[np.int64]]:
        """Return the log-probability of the most probable states of rows with log-densities (n, K), and the states."""
        with np.errstate(divide="ignore"):
            log_start, log_steps = np.log(parameters.start), np.log(self.steps_of(parameters))
        back = np.empty(logs.shape, dtype=np.min_scalar_type(logs.shape[1]))
        path = np.empty(len(logs), dtype=np.int64)
        return self.kernels[4](logs, edges, log_start, log_steps, back, path), path

    def look_ahead(self, parameters: ChainParameters, logs: Array, lag: int) -> Array:
        """Return the log-density (n, K) of the next `lag` rows given the state of each row; fewer at the end."""
        with np.errstate(divide="ignore"):
            steps = np.log(self.steps_of(parameters))
        later = np.zeros_like(logs)
        for _ in range(min(lag, len(logs) - 1)):
            later[:-1] = self._step_back(steps, logs[1:] + later[1:])
        return later

    def _step_back(self, steps: Array, after: Array) -> Array:
        """Return the log-density (n, K) of what comes after each row, given its state."""
        return np.asarray(logsumexp(steps + after[:, None, :], axis=2))


class StayPassages(Passages):
    """From each place in a stay to the next, and from the last one to any other state (see kernels/stays.py)."""

    kernels = (run_stay_filter, smooth_stays, run_stay_log_filter, smooth_stay_logs, best_stays)

    def __init__(self, longest: int) -> None:
        self.longest = longest

    def steps_of(self, parameters: ChainParameters) -> Array:
        """Return the transitions (K, K D) from the last rows of stays."""
        return np.ascontiguousarray(parameters.transitions[:: self.longest])

    def _step_back(self, steps: Array, after: Array) -> Array:
        found = np.roll(after, 1, axis=1)
        for at, leave in enumerate(steps):
            found[:, at * self.longest] = logsumexp(leave + after, axis=1)
        return found


ANY = Passages()
