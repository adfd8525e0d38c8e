"""Health check of latent classes: fewer than three columns do not say which classes there are."""

from __future__ import annotations

from headwater.diagnostics.health import Finding

LEAST_COLUMNS = 3  # with fewer, many sets of classes have the same density (Kruskal 1977)


def class_findings(n_columns: int | None, n_components: int) -> tuple[Finding, ...]:
    """Return a finding if components rest on fewer columns of categories than tell them apart; None is any number."""
    if n_columns is None or n_columns >= LEAST_COLUMNS or n_components < 2:
        return ()
    found = "1 column" if n_columns == 1 else f"{n_columns} columns"
    sentence = (
        f"The components rest on {found} of categories or flags, and many other components have the same density: scores hold, "
        f"components mean nothing; give at least {LEAST_COLUMNS} columns, or some of numbers."
    )
    return (Finding("unidentified", (), sentence, True, {"columns": float(n_columns)}),)
