"""The list of all formats. A new format is one file in this folder that defines a `FORMAT`, and one line here."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from dbdyno.reading.document import Document
from dbdyno.reading.formats.format import Format
from dbdyno.reading.result import Result

_MODULES = ("sysbench", "pgbench", "mysqlslap", "hammerdb", "table")

ALL: tuple[Format, ...] = tuple(import_module(f"dbdyno.reading.formats.{name}").FORMAT for name in _MODULES)


def find_results(document: Document) -> Sequence[Result]:
    """All results of a document in the order of their lines; a line belongs to one result."""
    found: list[Result] = []
    used: set[int] = set()
    for one in ALL:
        for result in one.find(document):
            if result.first not in used:
                found.append(result)
        used.update(index for result in found for index in range(result.first, result.last + 1))
    return sorted(found, key=lambda result: (result.first, result.label))
