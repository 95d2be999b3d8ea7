"""The report: a judged run becomes one HTML file and its charts. Reads the store and nothing else."""

from dbdyno.report.writing import DrawingError, write, write_charts

__all__ = ["DrawingError", "write", "write_charts"]
