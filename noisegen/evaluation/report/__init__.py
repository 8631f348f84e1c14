"""The report of an evaluation: one HTML page that needs nothing beside it."""

from noisegen.evaluation.report.page import page, write

__all__ = ["page", "write"]
