"""One administrative connection to a server of the MySQL protocol, and its errors in the user's terms.

Never on the measured path: the load is the engine's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import pymysql

from dbdyno.experiment.model import Connect
from dbdyno.servers.careful import CarefulConnection
from dbdyno.servers.server import ServerProblem

PLAIN = Connect()

CONNECT_TIMEOUT_S = 10
# Counting the rows of a large table takes its time.
ANSWER_TIMEOUT_S = 600

# Client error numbers after which a connection is of no use (errmsg.h of the client library).
LOST = frozenset({0, 2000, 2006, 2013, 2055})


class Admin:
    """A connection that is opened when first needed and opened again once after it was lost."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._connection: Any = None

    def open(self) -> None:
        """Connect now. Raises the driver's own error, for a caller that waits for a server."""
        if self._connection is None:
            self._connection = self._connect()

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of one statement. Raises ServerProblem."""
        for last in (False, True):
            try:
                self.open()
                with self._connection.cursor() as cursor:
                    cursor.execute(sql)
                    return list(cursor.fetchall())
            except (pymysql.err.Error, OSError) as error:
                number, text = numbered(error)
                lost = isinstance(error, OSError | pymysql.err.InterfaceError) or number in LOST
                if lost:
                    self.close()
                if last or not lost:
                    raise ServerProblem(
                        f"the server refused {shortened(sql)!r}: {text} (error {number})", exit_code=4
                    ) from error
        raise AssertionError("unreachable")

    def pairs(self, sql: str) -> Mapping[str, str]:
        """The rows of a statement with two columns, as text."""
        return {str(row[0]): "" if row[1] is None else str(row[1]) for row in self.query(sql)}

    def close(self) -> None:
        """Disconnect; idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(pymysql.err.Error, OSError):
                connection.close()


def connector(how: Connect = PLAIN, **options: Any) -> Callable[[], Any]:
    """A function that connects as `how` says, with `options` of `pymysql.connect` and with time limits."""

    def connect() -> Any:
        return CarefulConnection(
            how,
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=ANSWER_TIMEOUT_S,
            write_timeout=ANSWER_TIMEOUT_S,
            autocommit=True,
            charset="utf8mb4",
            # No option file of the user's may change where we connect to.
            read_default_file=None,
            **options,
        )

    return connect


def numbered(error: BaseException) -> tuple[int, str]:
    """Number and text of a driver's error; number 0 where it has none."""
    if len(error.args) >= 2 and isinstance(error.args[0], int):
        return error.args[0], str(error.args[1])
    return 0, str(error)


def shortened(sql: str, length: int = 100) -> str:
    """A statement for a message: one line, cut off."""
    line = " ".join(sql.split())
    return line if len(line) <= length else line[: length - 1] + "…"
