"""The output of mysqlslap and mariadb-slap: the seconds that a list of queries took, over its iterations.

::

    Benchmark
            Running for engine innodb                                     only with --engine
            Average number of seconds to run all queries: 249.224 seconds
            Minimum number of seconds to run all queries: 249.224 seconds
            Maximum number of seconds to run all queries: 249.224 seconds
            Number of clients running queries: 1
            Average number of queries per client: 100
"""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.reading.document import Document
from dbdyno.reading.limits import linear, whole
from dbdyno.reading.result import Figure, Result, keep

_SECONDS = linear(r"(Average|Minimum|Maximum) number of seconds to run all queries:\s*(\d[\d.]*)")
_CLIENTS = linear(r"Number of clients running queries:\s*(\d+)")
_QUERIES = linear(r"Average number of queries per client:\s*(\d+)")
_ENGINE = linear(r"Running for engine (\S+)")
_NAMES = {"Average": "mean_s", "Minimum": "min_s", "Maximum": "max_s"}
_LINES_MAX = 8


def find(document: Document) -> Iterator[Result]:
    """The results in a document, each from its average on."""
    engine, engine_index = "", -1
    for index, text in document.lines():
        if "unning" not in text and "Average" not in text:
            continue
        if match := _ENGINE.search(text):
            engine, engine_index = match[1], index
        elif (match := _SECONDS.search(text)) and match[1] == "Average":
            # A script that takes the number has the words without one.
            label = engine if 0 <= index - engine_index <= 2 else ""
            yield _result(document, index, label)


def _result(document: Document, first: int, label: str) -> Result:
    figures: dict[str, Figure] = {}
    clients: int | None = None
    last = first
    for index, text in document.lines(first):
        if index - last > _LINES_MAX or (index > first and "Average number of seconds" in text):
            break
        if match := _SECONDS.search(text):
            keep(figures, _NAMES[match[1]], match[2], index)
        elif match := _CLIENTS.search(text):
            clients = whole(match[1])
        elif match := _QUERIES.search(text):
            figures["queries"] = Figure((whole(match[1]) or 0) * (clients or 1), index)
        else:
            continue
        last = index
        if "queries" in figures:
            break
    if "queries" in figures and "mean_s" in figures and figures["mean_s"].value > 0:
        rate = figures["queries"].value / figures["mean_s"].value
        figures["qps"] = Figure(rate, figures["mean_s"].index)
    return Result("mysqlslap", first, last, clients, figures, label=label)
