"""The formats of results: the outputs of tools, and tables.

A format is a function that yields the results in the order of their lines. Text around them, missing lines
and results that break off are usual; a line that is not understood is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dbdyno.reading.document import Document
from dbdyno.reading.formats import mysqlslap, pgbench, sysbench, table, tpcc
from dbdyno.reading.limits import RESULTS_MAX
from dbdyno.reading.result import Result
from dbdyno.text import compose

# A line belongs to the first format that reads it.
_FORMATS: tuple[Callable[[Document], Iterator[Result]], ...] = (
    sysbench.find,
    pgbench.find,
    mysqlslap.find,
    tpcc.find_hammerdb,
    tpcc.find,
    table.find,
)
# Each result is compared with each; an archive of more outputs has no summary of them in its text.
_COMPARED_MAX = 1000
# Tables round what outputs have.
_ROUNDED = 5e-5


def find_results(document: Document) -> Sequence[Result]:
    """All results of a document in the order of their lines; a line belongs to one result."""
    results: list[Result] = []
    used: set[int] = set()
    for find in _FORMATS:
        for result in find(document):
            if result.first in used or document.is_code(result.first) or document.is_code(result.last):
                continue
            if len(results) >= RESULTS_MAX:
                text = compose("only the first {limit:,} results are read", limit=RESULTS_MAX)
                document.left_out.add("results", document.numbers[result.first], text)
                break
            results.append(result)
        used.update(index for result in results for index in range(result.first, result.last + 1))
    results.sort(key=lambda result: result.first)
    if len(results) > _COMPARED_MAX:
        return results
    return [entry for entry in results if not any(_repeats(entry, following) for following in results)]


def _repeats(first: Result, second: Result) -> bool:
    """Whether a result shows a part of another one again: documents put figures of outputs into tables and
    headings.
    """
    return (
        first is not second
        and len(first.figures) < len(second.figures)
        and first.connections in (None, second.connections)
        and all(_is_same(figure.value, _value(second, name)) for name, figure in first.figures.items())
    )


def _value(result: Result, name: str) -> float | None:
    """A figure of a result; the time of a list of queries in milliseconds, too."""
    seconds = result.value(name.replace("_ms", "_s"))
    return result.value(name) if seconds is None else 1000 * seconds if name.endswith("_ms") else seconds


def _is_same(value: float, number: float | None) -> bool:
    return number is not None and abs(value - number) <= _ROUNDED * abs(number)
