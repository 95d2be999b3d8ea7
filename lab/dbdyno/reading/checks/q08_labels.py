"""Q08: the name of a variant should come from the server, in the output itself."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose


def find(reading: Reading) -> Iterator[Finding]:
    """Says on what the names of the variants rest.

    Catches swapped results: a heading and a setting are typed above an output that says nothing of
    the server.
    """
    pasted = [one for one in reading.series if all(result.table < 0 for result in one.results)]
    if len(pasted) > 1:
        yield finding(
            reading,
            "Q08",
            "note",
            compose(
                "nothing in the outputs says from which variant they are: their order in the document decides"
            ),
            (one.results[0].first for one in pasted),
            fix=compose("Store the server's settings with each output"),
        )


CHECK = DocumentCheck("Q08", find)
