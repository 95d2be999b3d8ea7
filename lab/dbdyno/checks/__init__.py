"""Checks that detect an invalid comparison before, between and after its trials, one file per topic; each
registers its checks where they are written.

`run` returns the findings of one moment; `blocking_findings` selects those that forbid a comparison.
docs/checks.md lists every check, its rule, and an example of the mistake that it detects.
"""

from dbdyno.checks import connections, data, design, host, limits, server, settings, statements, writes
from dbdyno.checks.register import CHECKS, Check, Context, Moment, blocking_findings, codes_of, run
from dbdyno.finding import LEVELS, Finding, Level

__all__ = [
    "CHECKS",
    "LEVELS",
    "Check",
    "Context",
    "Finding",
    "Level",
    "Moment",
    "blocking_findings",
    "codes_of",
    "connections",
    "data",
    "design",
    "host",
    "limits",
    "run",
    "server",
    "settings",
    "statements",
    "writes",
]
