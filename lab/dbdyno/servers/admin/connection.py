"""One administrative connection to a server, and its errors, independent of the protocol.

Only the engine sends the measured load; these connections are not part of it.

A statement such as VACUUM, or loading a table, may take hours without an answer, so a time limit cannot tell
a slow server from one that is gone. If the server has stopped, it does not answer another login either.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, ClassVar, Self

from dbdyno.servers.admin.answers import rows, shorten_statement, text, text_or_empty
from dbdyno.servers.server import Server, ServerProblem, StatementRefused
from dbdyno.waiting import waiting_for

# Seconds without an answer before the first login, and between two logins that were answered.
LOGIN_EVERY_S = 5.0
# Time limits, in seconds, of the logins in succession that a stopped server leaves without an answer. One is
# not enough: it may get lost, and a pause of the server's machine may end just after its time limit.
LOGIN_TIMEOUTS_S = (10, 2)
# Maximum seconds for a login; and after a login or a statement without an answer in time, so that the end of
# a trial does not wait for a stopped server again and again (libpq's minimum is 2).
CONNECT_TIMEOUT_S, SILENT_CONNECT_TIMEOUT_S = LOGIN_TIMEOUTS_S
# Statements with a longer limit are watched for a server that has stopped.
WATCHED_FROM_S = 30.0
# Maximum seconds for a statement, such as counting the rows of a large table; None for no limit.
_answer_timeout_s: ContextVar[float | None] = ContextVar("answer_timeout_s", default=600.0)


@contextlib.contextmanager
def answers_within(seconds: float | None) -> Iterator[None]:
    """Within the context, a statement of this thread fails after this time without an answer; None: never."""
    token = _answer_timeout_s.set(seconds)
    try:
        yield
    finally:
        _answer_timeout_s.reset(token)


def silent_server(what: str) -> ServerProblem:
    """The problem of a server that has answered neither `what` nor logins."""
    return ServerProblem(
        f"the server has answered neither {what} nor {len(LOGIN_TIMEOUTS_S)} logins of dbdyno within "
        f"{sum(LOGIN_TIMEOUTS_S)} s",
        "find out why the server does not answer",
        exit_code=4,
    )


def require_answers(server: Server, what: str) -> None:
    """Raise ServerProblem if the server, from which `what` waits for an answer, answers no login either."""
    if server.is_silent():
        raise silent_server(what)


class SilenceWatch:
    """A context: calls `on_silence` in a thread of its own when the server answers no login any more.

    `answers_login` tries a login within some seconds.
    """

    def __init__(self, answers_login: Callable[[int], bool], on_silence: Callable[[], None]) -> None:
        self._answers_login, self._on_silence = answers_login, on_silence
        self._is_over = threading.Event()
        # Held by what must not happen after the end of the context, and by that end.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="silence", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # A login in progress ends by its time limit; nobody waits for it.
        with self._lock:
            self._is_over.set()

    def _watch(self) -> None:
        while not self._is_over.wait(LOGIN_EVERY_S):
            if is_silent(self._answers_login):
                with self._lock:
                    if not self._is_over.is_set():
                        self._on_silence()
                return


def is_silent(answers_login: Callable[[int], bool]) -> bool:
    """Whether the server leaves all logins in succession without an answer."""
    return not any(map(answers_login, LOGIN_TIMEOUTS_S))


class ConnectFailure(Exception):  # noqa: N818 — expected while a server starts.
    """A connection that could not be made."""

    def __init__(self, code: int | str, text: str, *, is_starting_up: bool) -> None:
        super().__init__(text)
        # The server's or the driver's error code: a number for MySQL, an SQLSTATE for PostgreSQL. 0 or ""
        # means that there is none.
        self.code = code
        self.text = text
        # Whether a starting server returns this error.
        self.is_starting_up = is_starting_up


class AdminConnection(ABC):
    """A connection that `query` opens on first use, and reopens once if it is lost."""

    # Exception types that the driver raises.
    errors: ClassVar[tuple[type[BaseException], ...]]

    def __init__(self, connect: Callable[[int], Any]) -> None:
        """`connect` makes a connection within that many seconds."""
        self._connect = connect
        self._connection: Any = None
        self._connect_timeout_s = CONNECT_TIMEOUT_S
        # Whether the server has stopped answering during a statement.
        self._is_silent = False

    def open(self) -> None:
        """Connect now. Raises ConnectFailure."""
        if self._connection is None:
            began = time.monotonic()
            try:
                with waiting_for("the login at the server"):
                    self._connection = self._connect(self._connect_timeout_s)
            except self.errors as error:
                code, text = self.code_and_text(error)
                is_late = time.monotonic() - began >= self._connect_timeout_s
                is_starting_up = is_late or self.is_starting_up(error, code)
                raise ConnectFailure(code, text, is_starting_up=is_starting_up) from error

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Execute one statement and return its rows, if any. Raises ServerProblem.

        A statement is sent again only if its connection is lost at once, as one that was closed while it was
        idle: a server that does not answer would exceed the time limit a second time.
        """
        answer_timeout_s = _answer_timeout_s.get()
        self._is_silent = False
        for is_last_attempt in (False, True):
            began, limit_s = time.monotonic(), float(self._connect_timeout_s)
            try:
                if self._connection is None:
                    with waiting_for("the login at the server"):
                        self._connection = self._connect(self._connect_timeout_s)
                elif self._has_unread_answer():
                    # Every answer after this one would be that to an earlier statement.
                    self.close()
                    raise ServerProblem(
                        f"before {shorten_statement(sql)!r} the server sent an answer that nobody asked for",
                        "check what is between the server and dbdyno",
                        exit_code=4,
                    )
                began, limit_s = time.monotonic(), answer_timeout_s or math.inf
                with (
                    waiting_for(f"the server's answer to {shorten_statement(sql)!r}"),
                    self._watching(answer_timeout_s),
                ):
                    rows = self._run(sql, answer_timeout_s)
            except self.errors as error:
                code, text = self.code_and_text(error)
                is_lost = self.is_lost(error, code)
                if is_lost:
                    self.close()
                waited_s = time.monotonic() - began
                if self._is_silent:
                    self._is_silent, self._connect_timeout_s = False, SILENT_CONNECT_TIMEOUT_S
                    raise silent_server(f"{shorten_statement(sql)!r}") from error
                if is_lost and waited_s >= limit_s:
                    self._connect_timeout_s = SILENT_CONNECT_TIMEOUT_S
                    raise ServerProblem(
                        f"the server has not answered {shorten_statement(sql)!r} within {limit_s:g} s",
                        exit_code=4,
                    ) from error
                is_late = waited_s > CONNECT_TIMEOUT_S
                if is_last_attempt or not is_lost or is_late:
                    raise (ServerProblem if is_lost else StatementRefused)(
                        f"the server refused {shorten_statement(sql)!r}: {text} (error {code})", exit_code=4
                    ) from error
            except BaseException:
                # After Ctrl-C the next statement would get the answer to this one.
                self.close()
                raise
            else:
                self._connect_timeout_s = CONNECT_TIMEOUT_S
                if self._is_silent:
                    # The answer came just before the end of the connection.
                    self._is_silent = False
                    self.close()
                return rows
        raise AssertionError("unreachable")

    def round_trips(self, number: int, within_s: float) -> list[float]:
        """The seconds of each of `number` statements `SELECT 1`, or of those that `within_s` allows for.
        Raises ServerProblem.
        """
        with answers_within(within_s):
            self.query("SELECT 1")
        seconds: list[float] = []
        began = before = time.perf_counter()
        try:
            while len(seconds) < number and before - began < within_s:
                self._run("SELECT 1", within_s)
                after = time.perf_counter()
                seconds.append(after - before)
                before = after
        except self.errors as error:
            self.close()
            raise ServerProblem(f"the server no longer answers: {self.code_and_text(error)[1]}") from error
        return seconds

    def _watching(self, answer_timeout_s: float | None) -> contextlib.AbstractContextManager[object]:
        """End the statement in progress when the server answers no login; not if its time limit is short."""
        if answer_timeout_s is not None and answer_timeout_s <= WATCHED_FROM_S:
            return contextlib.nullcontext()
        return SilenceWatch(self._answers_login, self._end_statement)

    def is_silent(self) -> bool:
        """Whether the server answers no login any more. Not to be called while a statement runs."""
        if not is_silent(self._answers_login):
            return False
        # The open connection is useless.
        self.close()
        self._connect_timeout_s = SILENT_CONNECT_TIMEOUT_S
        return True

    def _answers_login(self, timeout_s: int) -> bool:
        """Whether the server answers another login within this time, even if it refuses it.

        Called in any thread.
        """
        began = time.monotonic()
        try:
            connection = self._connect(timeout_s)
        except self.errors:
            return time.monotonic() - began < timeout_s
        with contextlib.suppress(*self.errors):
            connection.close()
        return True

    def _end_statement(self) -> None:
        """Let the statement in progress fail, from another thread."""
        # The connection may end at this moment: then the statement fails by itself.
        with (
            contextlib.suppress(OSError, AttributeError, *self.errors),
            socket.socket(fileno=os.dup(self._socket())) as ended,
        ):
            self._is_silent = True
            ended.shutdown(socket.SHUT_RDWR)

    def pairs(self, sql: str) -> Mapping[str, str]:
        """The rows of a statement with two columns, as text. Raises ServerProblem."""
        return dict(rows(self.query, sql, text, text_or_empty))

    def use_default_autocommit(self) -> None:  # noqa: B027 — only MySQL's protocol has this setting.
        """Let the open connection commit as other clients' connections do."""

    def commits_itself(self) -> bool:
        """Whether the server commits each statement of the open connection outside transactions."""
        return True

    @abstractmethod
    def has_open_transaction(self) -> bool:
        """Whether the open connection is in a transaction after its last statement."""

    def close(self) -> None:
        """Disconnect; idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*self.errors):
                connection.close()

    @abstractmethod
    def _run(self, sql: str, answer_timeout_s: float | None) -> list[tuple[Any, ...]]:
        """Execute one statement on the open connection and return its rows.

        Raises the driver's errors; one for which `is_lost` is true if the answer takes longer than the limit.
        """

    def _has_unread_answer(self) -> bool:
        """Whether more has arrived on the open connection than the answers to its statements."""
        return False

    @abstractmethod
    def server_version(self) -> str:
        """The version that the server names in a login; empty while there is no connection."""

    @abstractmethod
    def _socket(self) -> int:
        """The file descriptor of the open connection."""

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
    def is_starting_up(error: BaseException, code: int | str) -> bool:
        """Whether a starting server returns this error."""
