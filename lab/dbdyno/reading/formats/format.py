"""The interface of a format: it finds the results in a document that it knows how to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dbdyno.reading.document import Document
from dbdyno.reading.result import Result


@dataclass(frozen=True)
class Format:
    """One format of results."""

    name: str
    # Yields the results in the order of their lines. Text around them, missing lines and results that break
    # off are usual; a line that is not understood is passed over.
    find: Callable[[Document], Iterator[Result]]
