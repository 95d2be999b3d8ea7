"""The Python part of dbdyno: experiment files, servers, statistics, verdicts and reports."""

__version__ = "0.2.0"
