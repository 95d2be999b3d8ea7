"""The checks of documents: one file per topic; each check is registered where it is written.

docs/checks.md explains their codes with those of experiments.
"""

from dbdyno.reading.checks import claims, data, design, loads, machines, results, scripts, settings
from dbdyno.reading.checks.register import all_checks, examine, examine_comparison

__all__ = [
    "all_checks",
    "claims",
    "data",
    "design",
    "examine",
    "examine_comparison",
    "loads",
    "machines",
    "results",
    "scripts",
    "settings",
]
