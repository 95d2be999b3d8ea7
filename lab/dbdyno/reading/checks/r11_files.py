"""R11: results of different runs must not share a file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_APPENDED = linear(r"(?:\btee\s++(?:-a|--append)\s++|(?<!<)>>\s*+)([\"']?[\w./${}\-]+)")
_REMOVED = linear(
    r"\brm\s++(?:-\w++\s++){0,9}([^;|&#\n]{1,1000}+)|(?<![>\d&=-])>\s*+(\"?[\w./${}\-]+)|"
    r"\btee\s++(?!-)(\"?[\w./${}\-]+)|\btruncate\s.{0,40}?-s\s*+0\s++(\S+)"
)
_MAY_REMOVE = re.compile(r">|\brm\b|\btee\b|truncate")
# A variable whose value is another one in each execution.
_UNIQUE = linear(r"(?<!\w)(\w++)=.{0,200}?(?:\bdate\b|mktemp|\$\$|uuid|RANDOM|BUILD_)")
_VARIABLE = re.compile(r"\$\{?(\w{1,64})")


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for files to which the runs of a script are appended and which it does not empty before.

    Catches results of an earlier execution among those of this one. A published script appends to result_64
    and reads the whole file, so a second execution reads the first one's numbers again.
    """
    if not any(call.phase == "run" for call in reading.calls):
        return
    appended: dict[str, int] = {}
    removed: set[str] = set()
    unique: set[str] = set()
    for index, text in reading.document.lines():
        if ">>" in text or "tee" in text:
            for match in _APPENDED.finditer(text):
                appended.setdefault(match[1].strip("\"'"), index)
        for match in _REMOVED.finditer(text) if _MAY_REMOVE.search(text) else ():
            removed.update(next(group for group in match.groups() if group).replace('"', "").split())
        if "=" in text and (value := _UNIQUE.search(text)):
            unique.add(value[1])
    for name, index in appended.items():
        is_new = any(one in unique for one in _VARIABLE.findall(name))
        if name not in removed and not is_new and not name.startswith(("/dev/", "$(", "/proc", "/etc")):
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
