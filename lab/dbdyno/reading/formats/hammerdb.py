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
from dbdyno.reading.result import Figure, Result

_USERS = re.compile(r"(\d+) (?:Active )?Virtual Users? (?:configured|Created)", re.IGNORECASE)
_RESULT = re.compile(r"System achieved (\d+) (?:(NOPM) from (\d+) (\w+) TPM|(\w+) TPM at (\d+) NOPM)")
_VERSION = re.compile(r"HammerDB(?: CLI)? v?(\d[\d.]*)")


def find(document: Document) -> Iterator[Result]:
    """The result lines in a document."""
    users: int | None = None
    version = ""
    for index, text in document.lines():
        if match := _USERS.search(text):
            users = int(match[1])
        elif match := _VERSION.search(text):
            version = match[1]
        elif match := _RESULT.search(text):
            nopm, tpm = (match[1], match[3]) if match[2] else (match[6], match[1])
            figures = {"nopm": Figure(float(nopm), index), "tpm": Figure(float(tpm), index)}
            yield Result(f"HammerDB {version}".strip(), index, index, users, figures, "TPROC-C")


FORMAT = Format("hammerdb", find)
