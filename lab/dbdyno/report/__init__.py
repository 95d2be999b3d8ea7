"""The report: a judged run becomes one HTML file and its charts. Reads the store and nothing else."""

from dbdyno.report.writing import RenderingError, write, write_charts

__all__ = ["RenderingError", "write", "write_charts"]
