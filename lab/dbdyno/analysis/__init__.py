"""Stored runs as data frames of pandas, for notebooks and scripts (`dbdyno.open`). Reads the store alone."""

from dbdyno.analysis.results import Results, open_results

__all__ = ["Results", "open_results"]
