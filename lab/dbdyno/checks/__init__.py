"""Checks that catch a worthless comparison before, between and after its trials.

::

    checks.run(Moment.READY, Context(experiment, variant, server, description)) -> list[Finding]
    checks.stops(findings)                                                      -> those that forbid a
    comparison

`docs/checks.md` lists every check, its rule, and the published benchmark whose mistake it would have caught.
"""

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.registry import ALL, OF_DATA, run, stops
from dbdyno.finding import LEVELS, Finding, Level

__all__ = ["ALL", "LEVELS", "OF_DATA", "Check", "Context", "Finding", "Level", "Moment", "run", "stops"]
