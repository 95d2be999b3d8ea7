"""P13: with many connections the load generator itself may be the limit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

# From this number on, one load generator has more threads than most machines have CPUs to run them.
_MANY = 256
# A figure of a machine that generates load, in the words of the tools that print it, or in a sentence.
_MEASURED = linear(
    r"%Cpu\(s\)|\b(?:mpstat|vmstat|pidstat|sar -u|htop)\b|"
    r"(?:client|load generator|sysbench|pgbench|클라이언트|客户端)\W[^.\n]{0,60}(?:CPU|idle)|"
    r"CPU[^.\n]{0,40}(?:client|load generator|클라이언트|客户端)",
    re.IGNORECASE,
)


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for a figure of the load generator's CPU, if the document has 256 connections or more.

    Catches a limit of the client that is taken for one of the server. In three published benchmarks one
    machine has 500 to 3,000 threads of sysbench, and its CPU is not shown.
    """
    lines = dict(reading.loads)
    for result in reading.results:
        if result.connections is not None:
            lines.setdefault(result.connections, result.first)
    many = max(lines, default=0)
    if many < _MANY or any(_MEASURED.search(text) for _, text in reading.document.lines()):
        return
    yield finding(
        reading,
        "P13",
        "note",
        compose(
            "nothing shows the CPU of the load generator, which may be the limit at {many} connections",
            many=many,
        ),
        [lines[many]],
        fix=compose("Show its CPU, or what it reaches without a server (dbdyno measures both)"),
    )


CHECK = DocumentCheck("P13", find)
