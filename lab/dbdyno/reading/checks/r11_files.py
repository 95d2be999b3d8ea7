"""R11: results of different runs must not share a file."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_APPENDED = linear(r"(?:\btee\s++-a\s++|>>\s*+)(\"?[\w./${}\-]+)")
_REMOVED = linear(r"\brm\s++(?:-\w++\s++){0,9}([^;|&#\n]{1,1000}+)|(?<![>\d&])>\s*+(\"?[\w./${}\-]+)")


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for files to which the runs of a script are appended and which it does not empty before.

    Catches results of an earlier execution among those of this one. A published script appends to result_64
    and reads the whole file, so a second execution reads the first one's numbers again.
    """
    lines = {index for call in reading.calls for index in range(call.first, call.last + 1)}
    appended: dict[str, int] = {}
    removed: set[str] = set()
    for index, text in reading.document.lines():
        if index in lines:
            for match in _APPENDED.finditer(text):
                appended.setdefault(match[1].strip('"'), index)
        for match in _REMOVED.finditer(text) if ">" in text or "rm" in text else ():
            removed.update((match[1] or match[2]).replace('"', "").split())
    for name, index in appended.items():
        if name not in removed and not name.startswith("/dev/"):
            yield finding(
                reading,
                "R11",
                "warn",
                compose(
                    "{name} is appended to and never emptied, so a second execution mixes its results with "
                    "the first",
                    name=name,
                ),
                [index],
                fix=compose("Write each execution into a folder of its own"),
            )


CHECK = DocumentCheck("R11", find)
