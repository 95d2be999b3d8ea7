"""Rules about a stored run, one file per topic; each registers its rules where they are written.

The order of the topics is that of the findings in verdict.json.
"""

from dbdyno.rules import (  # noqa: I001
    trials,
    warmth,
    host,
    generator,
    server,
    statements,
    background,
    design,
)
from dbdyno.rules.register import RULES, Decided, Records, find_all

__all__ = [
    "RULES",
    "Decided",
    "Records",
    "background",
    "design",
    "find_all",
    "generator",
    "host",
    "server",
    "statements",
    "trials",
    "warmth",
]
