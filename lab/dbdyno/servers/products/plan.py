"""The execution plan of a statement, in one form for all products."""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.text import Text, compose, join


@dataclass(frozen=True)
class Access:
    """How the server reads one table."""

    table: str
    # The server's name of the access method: "ALL", "ref", "Index Scan".
    method: str
    index: str | None
    # The server's estimate of rows examined, or of rows returned if it shows only that.
    rows: int
    # Whether the access reads every row of the table, or every entry of an index.
    is_full_scan: bool
    # Whether it reads the index alone, which has all columns that the statement needs.
    is_covering: bool = False

    def is_as(self, expected: str) -> bool:
        """Whether it is as a statement's `access` says: `scan`, or an index, which may be `,covering`."""
        if expected == "scan":
            return self.is_full_scan
        index, _, covering = expected.partition(",")
        names = ("PRIMARY", f"{self.table}_pkey") if index == "primary" else (index,)
        return self.index in names and not self.is_full_scan and (self.is_covering or not covering)

    def text(self) -> Text:
        """Table, access method and index."""
        if self.index:
            return compose(
                "{table} by {method} on {index}", table=self.table, method=self.method, index=self.index
            )
        return compose("{table} by {method}", table=self.table, method=self.method)


@dataclass(frozen=True)
class Plan:
    """How the server executes a statement."""

    accesses: tuple[Access, ...]
    # Type conversions that prevent the use of an index, as the server describes them.
    conversions: tuple[str, ...] = ()

    def text(self) -> Text:
        """The accesses of all tables."""
        return join(", ", [one.text() for one in self.accesses]) if self.accesses else compose("no table")
