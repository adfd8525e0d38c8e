"""Settings that refinement and growth have in common: both propose on some reservoir rows, and judge on others."""

from __future__ import annotations

LEAST_ROWS = 2000  # that propose, and that judge
PROPOSING_TIMES, JUDGING_TIMES = 5, 10  # rows that propose and that judge, in times what moves every parameter
PASSES_EACH = 8  # of every contender
START_PASSES = 100  # that a new start costs
ACCEPT_Z = 2.5  # standard errors by which a contender must be better
LEAST_PASS_GAIN = 1e-5  # nats a row that a pass gains, or it is the last
OPTIMISM_NATS = 2.0  # nats a row, per parameter and row, by which rows that were fitted to score more
