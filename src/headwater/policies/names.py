"""The names of the records that policies keep in a stream, or at its base."""

RESERVOIR, REFINEMENT, DRIFT, GROWTH, IDENTITY = "reservoir", "refinement", "drift", "growth", "identity"
SCORES, DECISIONS, MARKS = "scores", "decisions", "marks"
