"""Administrative connections of the MySQL protocol (PyMySQL)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, ClassVar

import pymysql
from pymysql.constants import SERVER_STATUS

from dbdyno.experiment.model import ConnectionSettings
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.admin.secure_connection import SecureConnection

DEFAULTS = ConnectionSettings()

# Client error numbers after which a connection is unusable (errmsg.h of the client library).
LOST = frozenset({0, 2000, 2006, 2013, 2055})

# Client error numbers of a server that is still starting: no socket, connection refused, connection lost
# during the greeting.
STARTING_UP = frozenset({0, 2002, 2003, 2013})


class MySQLAdmin(AdminConnection):
    """A connection to MariaDB or MySQL."""

    # PyMySQL raises ValueError for a malformed key file, and RuntimeError for one that it cannot use.
    # A malformed packet makes it raise any of the others.
    errors: ClassVar[tuple[type[BaseException], ...]] = (
        *(pymysql.err.Error, OSError, RuntimeError, ValueError),
        *(LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, MemoryError, struct.error),
    )

    def _run(self, sql: str, answer_timeout_s: float | None) -> list[tuple[Any, ...]]:
        self._connection.limit_answers(answer_timeout_s)
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def use_default_autocommit(self) -> None:
        """See `AdminConnection`."""
        if not self._connection.began_with_autocommit:
            self.query("SET SESSION autocommit = 0")

    def commits_itself(self) -> bool:
        """See `AdminConnection`."""
        self._read_status()
        return bool(self._connection.get_autocommit())

    def has_open_transaction(self) -> bool:
        """See `AdminConnection`."""
        self._read_status()
        return bool(self._connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    def _read_status(self) -> None:
        # PyMySQL takes the state from answers without rows.
        self.query("DO 0")

    def _has_unread_answer(self) -> bool:
        return bool(self._connection.has_unread_answer())

    def server_version(self) -> str:
        """See `AdminConnection`."""
        return str(self._connection.get_server_info()) if self._connection is not None else ""

    def _socket(self) -> int:
        # PyMySQL has no method for it.
        return int(self._connection._sock.fileno())

    @staticmethod
    def code_and_text(error: BaseException) -> tuple[int | str, str]:
        """Number and text of a driver's error; the number is 0 if the error has none."""
        if len(error.args) >= 2 and isinstance(error.args[0], int):
            return error.args[0], str(error.args[1])
        return 0, str(error)

    @staticmethod
    def is_lost(error: BaseException, code: int | str) -> bool:
        """Decides by the client library's error numbers."""
        is_driver = isinstance(error, pymysql.err.Error)
        return not is_driver or isinstance(error, pymysql.err.InterfaceError) or code in LOST

    @staticmethod
    def is_starting_up(error: BaseException, code: int | str) -> bool:
        """True for: no socket, connection refused, connection lost during the greeting."""
        return isinstance(error, pymysql.err.Error | OSError) and code in STARTING_UP


def connector(settings: ConnectionSettings = DEFAULTS, **options: Any) -> Callable[[int], Any]:
    """A function that connects within some seconds, with these settings and `pymysql.connect`'s `options`."""

    def connect(timeout_s: int) -> Any:
        return SecureConnection(
            settings,
            connect_timeout=timeout_s,
            # The limits of the login; `_run` sets those of statements.
            read_timeout=timeout_s,
            write_timeout=timeout_s,
            autocommit=True,
            charset="utf8mb4",
            # The user's option files must not change the target of the connection.
            read_default_file=None,
            **options,
        )

    return connect
