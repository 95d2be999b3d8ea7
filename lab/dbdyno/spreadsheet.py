"""CSV whose cells a spreadsheet shows as text.

A spreadsheet executes a cell that begins like a formula, and names and error messages in a run may be another
person's. Such cells get a leading apostrophe, as OWASP advises ("CSV Injection"); numbers stay numbers.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

# At the start of a cell, and after what other spreadsheets take for the end of one. The last four characters
# are the full-width forms.
_FORMULA = re.compile(r"(^|[;\t\r\n])(?=[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def cell(value: object) -> object:
    """A cell that a spreadsheet does not execute."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    return _FORMULA.sub(r"\1'", value)


def write_csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows of cells as CSV, without a line break at the end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([cell(value) for value in row] for row in rows)
    return text.getvalue().rstrip("\n")
