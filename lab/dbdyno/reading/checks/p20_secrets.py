"""P20: passwords do not belong on command lines, nor databases on the open internet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.redaction import REDACTED
from dbdyno.text import compose

_PASSWORDS = ("mysql-password", "pgsql-password", "password")
# Reading has replaced each password by an ellipsis.
_COMMAND = re.compile(
    rf"(?<!\S)-[\w-]{{1,60}}+[= ]?[\"'`]?{REDACTED}|(?:PASSWORD|PWD|PASS)=[\"'`]?{REDACTED}|://[^\s/@]{{0,100}}+{REDACTED}@"
)
_OPEN = linear(r"(?:cidr|source-ranges|cidr_blocks)\W+0\.0\.0\.0/0")


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for passwords in commands, and for addresses of everybody.

    Every user of a machine can read the arguments of its processes.
    """
    indexes = [call.first for call in reading.calls if _is_secret(call.options)]
    indexes += [
        index for index, text in reading.document.lines() if REDACTED in text and _COMMAND.search(text)
    ]
    if indexes:
        yield finding(
            reading,
            "P20",
            "note",
            compose("a password is on a command line"),
            indexes,
            fix=compose("Use an option file, a file of secrets or the environment"),
        )
    opened = [index for index, text in reading.document.lines() if _OPEN.search(text)]
    if opened:
        yield finding(
            reading, "P20", "note", compose("the server is open to every address of the internet"), opened
        )


def _is_secret(options: Mapping[str, str]) -> bool:
    return any(REDACTED in options.get(name, "") for name in _PASSWORDS)


CHECK = DocumentCheck("P20", find)
