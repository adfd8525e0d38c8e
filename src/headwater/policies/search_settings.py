"""Settings that refinement and growth have in common: both propose on some reservoir rows, and judge on others."""

from __future__ import annotations

LEAST_ROWS = 2000  # that propose, and that judge
PROPOSING_TIMES, JUDGING_TIMES = 5, 10  # proposing and judging rows, as multiples of the rows that estimate all parameters
PASSES_EACH = 8  # of every contender
START_PASSES = 100  # that a new start costs
ACCEPT_Z = 2.5  # standard errors by which a contender must be better
LEAST_PASS_GAIN = 1e-5  # nats a row; a pass that gains less is the last
OPTIMISM_NATS = 2.0  # nats a row, per parameter and row, by which fitted rows score higher than new ones
MANY_PARAMETERS = 5000  # from which on passes are dear: to a reader, too
