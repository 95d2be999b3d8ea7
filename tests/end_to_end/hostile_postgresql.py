"""The hostile server for PostgreSQL: the same listener, which speaks just enough of protocol 3.

`greeting` is the answer to the request for TLS, `login` to the startup message, `prepare` to Parse,
`execute` to Bind and Execute, `query` to a statement as text, `copy` what comes after the data of a COPY.

Source: chapter "Frontend/Backend Protocol" of the PostgreSQL manual.
"""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Iterator, Mapping
from functools import partial
from typing import ClassVar

from tests.end_to_end.hostile_server import HostileServer, Misdeed, Peer, State

SSL_REQUEST = 80877103
# Authentication requests by their numbers.
AUTH_OK, CLEAR, MD5, GSS, SASL, SASL_CONTINUE, SASL_FINAL = 0, 3, 5, 7, 10, 11, 12

PARAMETER = re.compile(rb"\$\d+")


def message(kind: bytes, payload: bytes = b"") -> bytes:
    """A message with its length."""
    return kind + struct.pack("!I", len(payload) + 4) + payload


def authentication(number: int, more: bytes = b"") -> bytes:
    """A request for a proof, or its end."""
    return message(b"R", struct.pack("!I", number) + more)


def status(name: bytes, value: bytes) -> bytes:
    """A setting that is told (ParameterStatus)."""
    return message(b"S", name + b"\0" + value + b"\0")


def error(state: bytes, words: bytes, severity: bytes = b"ERROR", kind: bytes = b"E") -> bytes:
    """An ErrorResponse, or with kind `N` a notice."""
    return message(kind, b"S%s\0V%s\0C%s\0M%s\0\0" % (severity, severity, state, words))


def described(columns: int = 1, name: bytes = b"c") -> bytes:
    """A RowDescription of texts."""
    column = name + b"\0" + struct.pack("!IhIhih", 0, 0, 25, -1, -1, 1)
    return message(b"T", struct.pack("!H", columns) + column * columns)


def row(*values: bytes) -> bytes:
    """A DataRow."""
    return message(
        b"D", struct.pack("!H", len(values)) + b"".join(struct.pack("!i", len(v)) + v for v in values)
    )


def done(tag: bytes) -> bytes:
    """CommandComplete."""
    return message(b"C", tag + b"\0")


READY = message(b"Z", b"I")
LET_IN = (
    authentication(AUTH_OK)
    + status(b"server_version", b"15.99-hostile")
    + message(b"K", struct.pack("!II", 7, 8))
    + READY
)
BOUND = message(b"2")
RESULT = BOUND + row(b"x") + done(b"SELECT 1") + READY
# Four columns, the first of them an int4: how a row of binary COPY begins.
BEGINS_ROW = b"\0\x04\0\0\0\x04"
COPY_IN = message(b"G", b"\x01\0\x04" + b"\0\x01" * 4)


class PostgreSQLPeer(Peer):
    """One connection, in messages of a type, a length and a payload."""

    def startup(self) -> bytes:
        """The next message without a type."""
        (length,) = struct.unpack("!I", self.take(4))
        return self.take(length - 4)

    def message(self) -> tuple[bytes, bytes]:
        """Type and payload of the next message."""
        kind, length = struct.unpack("!cI", self.take(5))
        return kind, self.take(length - 4)

    def until(self, last: bytes) -> dict[bytes, bytes]:
        """Messages up to one of type `last`, by their types."""
        found: dict[bytes, bytes] = {}
        while last not in found:
            kind, payload = self.message()
            found[kind] = payload
        return found

    def take(self, count: int) -> bytes:
        """The next bytes."""
        while len(self._unread) < count:
            self._unread += self._receive()
        taken = bytes(self._unread[:count])
        del self._unread[:count]
        return taken


class HostilePostgreSQL(HostileServer):
    """See `HostileServer`."""

    peer: ClassVar[type[Peer]] = PostgreSQLPeer

    def _converse(self, peer: Peer) -> None:
        assert isinstance(peer, PostgreSQLPeer), "made by this class"
        startup = peer.startup()
        if startup == struct.pack("!I", SSL_REQUEST):
            if not self._do("greeting", peer, startup, lambda: peer.raw(b"N")):
                return
            startup = peer.startup()
        if not self._do("login", peer, startup, lambda: peer.raw(LET_IN)):
            return
        while True:
            kind, payload = peer.message()
            if kind == b"X":
                return
            if kind == b"P":
                sql = payload.split(b"\0")[1]
                peer.until(b"S")
                goes_on = self._do("prepare", peer, sql, partial(_prepare, peer, sql))
            elif kind == b"B":
                peer.until(b"S")
                goes_on = self._do("execute", peer, payload, lambda: peer.raw(RESULT))
            else:
                assert kind == b"Q", (kind, payload)
                sql = payload.rstrip(b"\0")
                goes_on = self._do("query", peer, sql, partial(self._query, peer, sql))
            if not goes_on:
                return

    def _query(self, peer: PostgreSQLPeer, sql: bytes) -> None:
        if not sql.startswith(b"COPY"):
            peer.raw(answer(sql))
            return
        peer.raw(COPY_IN)
        rows = 0
        while (told := peer.message())[0] == b"d":
            rows += told[1].count(BEGINS_ROW)
        self._do("copy", peer, told[0], lambda: peer.raw(done(b"COPY %d" % rows) + READY))


def answer(sql: bytes) -> bytes:
    """What a statement as text is answered rightly: nothing found, or done."""
    if sql.startswith(b"SELECT"):
        return described() + done(b"SELECT 0") + READY
    return done(sql.split()[0]) + READY


def _prepare(peer: Peer, sql: bytes) -> None:
    parameters = len(PARAMETER.findall(sql))
    types = struct.pack("!H", parameters) + struct.pack("!I", 20) * parameters
    peer.raw(message(b"1") + message(b"t", types) + described() + READY)


@contextlib.contextmanager
def hostile(misdeeds: Mapping[State, Misdeed] | None = None) -> Iterator[HostilePostgreSQL]:
    """A hostile PostgreSQL for a `with` statement."""
    server = HostilePostgreSQL(misdeeds)
    try:
        yield server
    finally:
        server.close()
