"""P10: the hosts of the variants must be alike, and known."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_LINE = linear(
    r"(?<![\s*#|\-])[\s*#|\-]*+(OS|operating system|운영 "
    r"?체제|操作系统|kernel|커널|CPU|processor|memory|RAM|메모리|内存|disk|storage|디스크|"
    r"filesystem|instance(?: type| class)?|machine type)\s*+[:：|]\s*+([^|]{1,200}+)\|?[\s*]*+$",
    re.IGNORECASE,
)
_CLASS = linear(
    r"\bdb\.[a-z]\d\w*\.\w+\b|\b[cmrti]\d\w*\.\d*x?large\b|\bStandard_[A-Z]\d+\w*\b|\b(?:n1|n2|e2|c2)d?-\w+-\d+\b"
)


def find(reading: Reading) -> Iterator[Finding]:
    """Compares what the document says of each host, and the classes of its instances.

    Catches a difference of machines that is taken for one of servers. In a published benchmark the versions
    run on different operating systems.
    """
    if len(reading.series) < 2 and not reading.claims:
        return
    by_name: dict[str, dict[str, int]] = {}
    for index, text in reading.document.lines():
        if match := _LINE.match(text):
            by_name.setdefault(match[1].lower(), {}).setdefault(" ".join(match[2].strip("*").split()), index)
    if classes := instance_classes(reading):
        by_name["instance"] = {**by_name.get("instance", {}), **classes}
    for name, values in by_name.items():
        if len(values) == 2 and not any(one in reading.varied for one in values):
            first, second = values
            yield finding(
                reading,
                "P10",
                "warn",
                compose(
                    "the hosts differ: {name} {first} and {second}", name=name, first=first, second=second
                ),
                values.values(),
                fix=compose("Run both variants on both hosts, or on one"),
            )


def instance_classes(reading: Reading) -> dict[str, int]:
    """The classes of cloud instances that the document names, each with its first line."""
    classes: dict[str, int] = {}
    for index, text in reading.document.lines():
        for match in _CLASS.finditer(text):
            classes.setdefault(match[0], index)
    return classes


CHECK = DocumentCheck("P10", find)
