"""The report: a judged run goes in, one HTML file and its charts come out. Reads the store and nothing else."""

from dbdyno.report.writing import write, write_charts

__all__ = ["write", "write_charts"]
