"""One administrative connection to a server, and its errors, independent of the protocol.

Only the engine sends the measured load; these connections are not part of it.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from dbdyno.servers.server import ServerProblem

CONNECT_TIMEOUT_S = 10
# Maximum seconds for the answer to a statement; counting the rows of a large table takes long.
ANSWER_TIMEOUT_S = 600


class Refused(Exception):  # noqa: N818 — the server's answer, and for who waits for a server no error.
    """A connection that could not be made."""

    def __init__(self, code: int | str, text: str, *, not_yet: bool) -> None:
        super().__init__(text)
        # The server's or the driver's error code: a number for MySQL, an SQLSTATE for PostgreSQL. 0 or ""
        # means that there is none.
        self.code = code
        self.text = text
        # Whether a starting server returns this error.
        self.not_yet = not_yet


class AdminConnection(ABC):
    """A connection that is opened on first use, and reopened once after it was lost."""

    # Exception types that the driver raises.
    errors: ClassVar[tuple[type[BaseException], ...]]

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._connection: Any = None

    def open(self) -> None:
        """Connect now. Raises Refused."""
        if self._connection is None:
            try:
                self._connection = self._connect()
            except self.errors as error:
                code, text = self.code_and_text(error)
                raise Refused(code, text, not_yet=self.is_not_yet(error, code)) from error

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of one statement; none for one that returns none. Raises ServerProblem."""
        for last in (False, True):
            try:
                if self._connection is None:
                    self._connection = self._connect()
                return self._run(sql)
            except self.errors as error:
                code, text = self.code_and_text(error)
                lost = self.is_lost(error, code)
                if lost:
                    self.close()
                if last or not lost:
                    raise ServerProblem(
                        f"the server refused {shortened(sql)!r}: {text} (error {code})", exit_code=4
                    ) from error
        raise AssertionError("unreachable")

    def pairs(self, sql: str) -> Mapping[str, str]:
        """The rows of a statement with two columns, as text."""
        return {str(row[0]): "" if row[1] is None else str(row[1]) for row in self.query(sql)}

    def close(self) -> None:
        """Disconnect; idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*self.errors):
                connection.close()

    @abstractmethod
    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        """Execute one statement on the open connection and return its rows. Raises the driver's errors."""

    @staticmethod
    @abstractmethod
    def code_and_text(error: BaseException) -> tuple[int | str, str]:
        """Code and text of a driver's error."""

    @staticmethod
    @abstractmethod
    def is_lost(error: BaseException, code: int | str) -> bool:
        """Whether the connection is unusable after this error."""

    @staticmethod
    @abstractmethod
    def is_not_yet(error: BaseException, code: int | str) -> bool:
        """Whether a starting server returns this error."""


def shortened(sql: str, length: int = 100) -> str:
    """A statement for a message: on one line, truncated to `length`."""
    line = " ".join(sql.split())
    return line if len(line) <= length else line[: length - 1] + "…"
