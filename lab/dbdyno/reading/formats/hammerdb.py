"""The result line of HammerDB's TPROC-C, of version 2 to 5.

::

    Vuser 1:16 Active Virtual Users configured
    Vuser 1:TEST RESULT : System achieved 456789 NOPM from 1051234 MySQL TPM
    Vuser 1:TEST RESULT : System achieved 1051234 MySQL TPM at 456789 NOPM           before version 4
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.reading.document import Document
from dbdyno.reading.formats.format import Format
from dbdyno.reading.patterns import decimal, linear, whole
from dbdyno.reading.result import Figure, Result

_USERS = linear(r"(?<!\d)(\d{1,15}+) (?:Active )?Virtual Users? (?:configured|Created)", re.IGNORECASE)
_RESULT = linear(
    r"System achieved (\d+) (?:(NOPM) from (\d+) (?:[\w ]{1,40}? )?TPM|(?:[\w ]{1,40}? )?TPM at (\d+) NOPM)"
)
# "HammerDB 4" has fewer characters than any other line that is read.
_LENGTH_MIN = 10
_VERSION = linear(r"HammerDB(?: CLI)? v?(\d[\d.]*)")


def find(document: Document) -> Iterator[Result]:
    """The result lines in a document."""
    users: int | None = None
    version = ""
    for index, text in document.lines():
        if len(text) < _LENGTH_MIN:
            continue
        if match := _USERS.search(text):
            users = whole(match[1])
        elif match := _VERSION.search(text):
            version = match[1]
        elif match := _RESULT.search(text):
            nopm, tpm = (match[1], match[3]) if match[2] else (match[4], match[1])
            values = {"nopm": decimal(nopm), "tpm": decimal(tpm)}
            figures = {name: Figure(value, index) for name, value in values.items() if value is not None}
            yield Result(f"HammerDB {version}".strip(), index, index, users, figures, "TPROC-C")


FORMAT = Format("hammerdb", find)
