"""Writes the table of the checks of documents: python -m dbdyno.reading.checks.reference docs/reading.md

It follows `<!-- document checks -->`, and comes from the docstring of each check.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from dbdyno.reading.checks import all_checks

_TABLE = re.compile(r"(<!-- document checks -->\n\n).*?(\n<!-- end -->\n)", re.DOTALL)


def table() -> str:
    """A row for each check: its code, the rule, what it looks at, and a published mistake."""
    rows = ["| code | rule | how, and an example |", "|---|---|---|"]
    for check in all_checks():
        how, _, rule = " ".join((inspect.getdoc(check.find) or "").split()).partition(" Rule: ")
        rows.append(f"| {check.code} | {_upper(rule)} | {how} |")
    return "\n".join(rows) + "\n"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def with_table(page: str) -> str:
    """The page with the table of today."""
    return _TABLE.sub(lambda match: match[1] + table() + match[2], page)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")
