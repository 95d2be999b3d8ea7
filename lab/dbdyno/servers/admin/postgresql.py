"""Administrative connections to PostgreSQL (psycopg 3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, ClassVar, TypeVar

import psycopg
from psycopg.waiting import Ready

from dbdyno.experiment.model import ConnectionSettings
from dbdyno.servers.admin.connection import LOGIN_TIMEOUTS_S, AdminConnection

# libpq's messages for a server that is still starting; libpq gives no code for it.
STARTING_UP = (
    "No such file or directory",
    "Connection refused",
    "the database system is starting up",
    "the database system is not yet accepting connections",
    "server closed the connection unexpectedly",
)

# Methods that do not reveal the password. All others are allowed only over verified TLS and unix sockets, or
# if the user allows them (docs/connections.md).
_METHODS_WITHOUT_CLEAR_TEXT = "scram-sha-256,md5,none"

# Maximum seconds without a byte within an answer that has begun: those of a login.
PART_SILENCE_S_MAX = float(LOGIN_TIMEOUTS_S[0])

# Seconds between two looks for a signal or the end of the time limit.
_POLL_S = 0.1

_T = TypeVar("_T")

_SSL_MODES = {"disabled": "disable", "preferred": "prefer", "required": "require", "verify-ca": "verify-ca"}


class _Connection(psycopg.Connection[Any]):
    """A connection whose answers have a time limit, which libpq does not have."""

    answer_timeout_s: float | None = None
    # When the last bytes of an incomplete answer arrived.
    _part_at: float | None = None

    def wait(
        self, gen: Generator[Any, Any, _T], interval: float = _POLL_S, timeout: float | None = None
    ) -> _T:
        """Run a generator of psycopg until it ends. Raises an OperationalError after the time limit."""
        timeout = self.answer_timeout_s if timeout is None else timeout
        return super().wait(self._limit_silence(gen), interval, timeout)

    def _limit_silence(self, gen: Generator[Any, Any, _T]) -> Generator[Any, Any, _T]:
        """What `gen` does, until an answer has begun and does not go on for the time of a login."""
        self._part_at = None
        try:
            state = next(gen)
            while True:
                ready = yield state
                now = time.monotonic()
                if ready & Ready.R:
                    self._part_at = now
                elif self._part_at is not None and now - self._part_at > PART_SILENCE_S_MAX:
                    raise psycopg.OperationalError(
                        "the server sent a part of an answer, and nothing more for "
                        f"{PART_SILENCE_S_MAX:.0f} s"
                    )
                state = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def note_complete_message(self, _notice: object) -> None:
        """A notice has arrived: what follows it is the beginning of an answer."""
        self._part_at = None


class PostgreSQLAdmin(AdminConnection):
    """A connection to PostgreSQL. Statements are sent unchanged, each in its own transaction."""

    errors: ClassVar[tuple[type[BaseException], ...]] = (psycopg.Error, OSError, ValueError)

    def __init__(self, database: str, connect: Callable[[str, int], Any]) -> None:
        super().__init__(lambda timeout_s: connect(self.database, timeout_s))
        # The database to connect to; `use` changes it.
        self.database = database

    def use(self, database: str) -> None:
        """Reconnect to another database at the next statement."""
        self.close()
        self.database = database

    def _run(self, sql: str, answer_timeout_s: float | None) -> list[tuple[Any, ...]]:
        self._connection.answer_timeout_s = answer_timeout_s
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall()) if cursor.description is not None else []

    def has_open_transaction(self) -> bool:
        """See `AdminConnection`."""
        if self._connection is None:
            return False
        return bool(self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE)

    def server_version(self) -> str:
        """See `AdminConnection`."""
        connection = self._connection
        return (connection.info.parameter_status("server_version") or "") if connection is not None else ""

    def _socket(self) -> int:
        return int(self._connection.fileno())

    @staticmethod
    def code_and_text(error: BaseException) -> tuple[int | str, str]:
        """SQLSTATE and text of an error; the SQLSTATE is empty if the error does not come from the server."""
        state = getattr(error, "sqlstate", None) or ""
        diagnostic = getattr(error, "diag", None)
        message = getattr(diagnostic, "message_primary", None) or str(error)
        return state, " ".join(str(message).split())

    @staticmethod
    def is_lost(error: BaseException, code: int | str) -> bool:
        """True for SQLSTATE classes 57 (operator intervention) and 08 (connection), and for errors without
        SQLSTATE.
        """
        lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | OSError)
        return lost and (not code or str(code).startswith(("08", "57P")))

    @staticmethod
    def is_starting_up(error: BaseException, code: int | str) -> bool:
        """Decides by libpq's text."""
        return str(code) == "57P03" or any(text in str(error) for text in STARTING_UP)


def connector(settings: ConnectionSettings, **options: Any) -> Callable[[str, int], Any]:
    """A function that connects to a database within some seconds, with `options` of libpq."""

    def connect(database: str, timeout_s: int) -> Any:
        parameters: dict[str, Any] = {
            "connect_timeout": timeout_s,
            "sslmode": _SSL_MODES.get(settings.tls, "verify-full"),
        }
        for name, path in (
            ("sslrootcert", settings.tls_ca),
            ("sslcert", settings.tls_certificate),
            ("sslkey", settings.tls_key),
        ):
            if path is not None:
                parameters[name] = str(path)
        is_local = str(options.get("host", "")).startswith("/")
        may_send = settings.tls.startswith("verify-") or settings.allow_clear_text
        if not is_local and not may_send:
            parameters["require_auth"] = _METHODS_WITHOUT_CLEAR_TEXT
        connection = _Connection.connect(**{**parameters, **options, "dbname": database}, autocommit=True)
        connection.add_notice_handler(connection.note_complete_message)
        return connection

    return connect
