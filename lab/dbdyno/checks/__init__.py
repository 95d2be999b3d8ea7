"""Checks that detect an invalid comparison before, between and after its trials.

`run` returns the findings of one moment; `blocking_findings` selects those that forbid a comparison.
docs/checks.md lists every check, its rule, and an example of the mistake that it detects.
"""

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.registry import ALL, NEED_DATA, blocking_findings, run
from dbdyno.finding import LEVELS, Finding, Level

__all__ = [
    "ALL",
    "LEVELS",
    "NEED_DATA",
    "Check",
    "Context",
    "Finding",
    "Level",
    "Moment",
    "blocking_findings",
    "run",
]
