"""Reports: one page that says what a model has learned."""

from headwater.reports.page import report

__all__ = ["report"]
