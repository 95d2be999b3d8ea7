"""The last lines of programs that run TPC-C, and of YCSB: one figure of throughput for a run.

HammerDB's TPROC-C, of version 2 to 5::

    Vuser 1:16 Active Virtual Users configured
    Vuser 1:TEST RESULT : System achieved 456789 NOPM from 1051234 MySQL TPM
    Vuser 1:TEST RESULT : System achieved 1051234 MySQL TPM at 456789 NOPM           before version 4

The other programs::

    tpmC: 12010.4, tpmTotal: 26700.2, efficiency: 98.1%      go-tpc
    Term-00, Measured tpmC (NewOrders) = 12010.4             BenchmarkSQL, with terminals=50 before the run
    Term-00, Measured tpmTOTAL = 26700.2
              12010.400 TpmC                                 tpcc-mysql, with [connection]: 50 before the run
    [OVERALL], Throughput(ops/sec), 20120.5                  YCSB
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.reading.document import Document
from dbdyno.reading.limits import decimal, linear, whole
from dbdyno.reading.result import Figure, Result

_HAMMERDB_USERS = linear(
    r"(?<!\d)(\d{1,15}+) (?:Active )?Virtual Users? (?:configured|Created)", re.IGNORECASE
)
_HAMMERDB_RESULT = linear(
    r"System achieved (\d+) (?:(NOPM) from (\d+) (?:[\w ]{1,40}? )?TPM|(?:[\w ]{1,40}? )?TPM at (\d+) NOPM)"
)
_HAMMERDB_HINT = re.compile(r"HammerDB|Virtual User|System achieved", re.IGNORECASE)
_HAMMERDB_VERSION = linear(r"HammerDB(?: CLI)? v?(\d[\d.]*)")


def find_hammerdb(document: Document) -> Iterator[Result]:
    """The result lines of HammerDB in a document."""
    users: int | None = None
    version = ""
    for index, text in document.lines():
        if not _HAMMERDB_HINT.search(text):
            continue
        if match := _HAMMERDB_USERS.search(text):
            users = whole(match[1])
        elif match := _HAMMERDB_VERSION.search(text):
            version = match[1]
        elif match := _HAMMERDB_RESULT.search(text):
            nopm, tpm = (match[1], match[3]) if match[2] else (match[4], match[1])
            values = {"nopm": decimal(nopm), "tpm": decimal(tpm)}
            figures = {name: Figure(value, index) for name, value in values.items() if value is not None}
            yield Result(f"HammerDB {version}".strip(), index, index, users, figures, "TPROC-C")


_HINT = re.compile(r"tpm|\[OVERALL\]|terminals=|\[connection\]", re.IGNORECASE)
_USERS = linear(r"\[connection\]:\s*(\d+)|\bterminals=(\d+)")
# The first group of each is the figure, the second that of all transactions.
_LINES = (
    ("go-tpc", "nopm", linear(r"^\W*tpmC:\s*([\d.]+)(?:,\s*tpmTotal:\s*([\d.]+))?")),
    ("BenchmarkSQL", "nopm", linear(r"Measured tpmC \(NewOrders\)\s*=\s*([\d.]+)()")),
    ("tpcc-mysql", "nopm", linear(r"^\s*([\d.]+) TpmC()\s*$")),
    ("YCSB", "qps", linear(r"^\W*\[?OVERALL\],\s*Throughput\(ops/sec\),\s*([\d.]+)()")),
)
_TOTAL = linear(r"Measured tpmTOTAL\s*=\s*([\d.]+)")
# Where BenchmarkSQL has the figure of all transactions.
_NEXT_LINES = 4


def find(document: Document) -> Iterator[Result]:
    """The runs of the other programs in a document."""
    users: int | None = None
    for index, text in document.lines():
        if not _HINT.search(text):
            continue
        if match := _USERS.search(text):
            users = whole(match[1] or match[2])
        for tool, name, pattern in _LINES:
            match = pattern.search(text)
            value = decimal(match[1]) if match else None
            if match is None or value is None:
                continue
            figures = {name: Figure(value, index)}
            total, last = (match[2], index) if match[2] else _find_total(document, index)
            if tool != "YCSB" and total and (of_all := decimal(total)) is not None:
                figures["tpm"] = Figure(of_all, last)
            workload = "" if tool == "YCSB" else "TPC-C"
            yield Result(tool, index, max(index, last), users, figures, workload)


def _find_total(document: Document, index: int) -> tuple[str, int]:
    """The figure of all transactions and its line; "" if the next lines have none."""
    for place, text in enumerate(document.texts[index + 1 : index + 1 + _NEXT_LINES], start=index + 1):
        if match := _TOTAL.search(text):
            return match[1], place
    return "", index
