"""Administrative connections of the MySQL protocol (PyMySQL), which protect the password as the engine does
(docs/connections.md).

PyMySQL itself would send a password in clear text over unverified TLS, or encrypt it with a key of an
unverified server. `_SecureConnection` inspects each packet of a login and refuses to send one that reveals
the password.
"""

from __future__ import annotations

import contextlib
import ipaddress
import math
import ssl
import struct
import time
from collections.abc import Callable
from typing import Any, ClassVar

import pymysql
from pymysql.connections import Connection
from pymysql.constants import SERVER_STATUS
from pymysql.protocol import FieldDescriptorPacket, MysqlPacket

from dbdyno.experiment.model import ConnectionSettings
from dbdyno.servers.admin.connection import LOGIN_TIMEOUTS_S, AdminConnection

_DEFAULTS = ConnectionSettings()

# Client error numbers after which a connection is unusable (errmsg.h of the client library).
_LOST = frozenset({0, 2000, 2006, 2013, 2055})

# Client error numbers of a server that is still starting: no socket, connection refused, connection lost
# during the greeting.
_STARTING_UP = frozenset({0, 2002, 2003, 2013})

_CR_SERVER_LOST = 2013
CR_SSL_CONNECTION_ERROR = 2026
CR_AUTH_PLUGIN_CANNOT_LOAD = 2059
# Packets with which a client requests the server's public key, for caching_sha2_password and sha256_password.
_KEY_REQUESTS = (b"\x02", b"\x01")

# Maximum seconds without a byte within a packet, whose length the server has announced: those of a login.
PACKET_SILENCE_S_MAX = float(LOGIN_TIMEOUTS_S[0])
# Bytes before the content of a packet, and the first byte of the content of an error.
_HEAD_BYTES, _ERROR = 4, 0xFF


class _SecureConnection(Connection):  # type: ignore[misc]
    """A connection with the settings `connect`. Its other arguments are those of `pymysql.connect`."""

    _read_timeout: float | None
    _write_timeout: float | None
    # Whether the head of a packet was read, and not the rest of it.
    _is_in_packet = False
    # Whether the last packet described a column; others, or an end marker, follow it at once.
    _follows_definition = False
    # Whether the server committed each statement before dbdyno chose that.
    began_with_autocommit = True
    # When the answers in progress must have ended; None for no limit.
    _deadline: float | None = None

    def __init__(self, connect: ConnectionSettings, **options: Any) -> None:
        self._settings = connect
        self._logging_in = False
        # PyMySQL would encode it in Latin-1, which no other client does.
        options["password"] = str(options.get("password") or "").encode(errors="surrogateescape")
        if connect.server_public_key is not None:
            options["server_public_key"] = connect.server_public_key.read_bytes()
        if connect.tls == "disabled" or (connect.tls == "preferred" and options.get("unix_socket")):
            options["ssl_disabled"] = True
        elif connect.tls != "preferred":
            options["ssl"] = _tls_context(connect)
        super().__init__(**options)

    def autocommit(self, value: bool) -> None:
        """Choose whether the server commits each statement."""
        self.began_with_autocommit = self.get_autocommit()
        super().autocommit(value)

    def limit_answers(self, seconds: float | None) -> None:
        """Limit the time for the answers to the following statements; None for no limit."""
        self._read_timeout = self._write_timeout = seconds
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def has_unread_answer(self) -> bool:
        """Whether the server has sent a packet that no statement asked for, other than the error with which
        it announces the end of an idle connection.
        """
        self._sock.settimeout(0)
        with contextlib.suppress(OSError):
            head = self._rfile.peek(_HEAD_BYTES + 1)
            return len(head) > _HEAD_BYTES and head[_HEAD_BYTES] != _ERROR
        return False

    def _read_packet(self, packet_type: type[MysqlPacket] = MysqlPacket) -> Any:
        is_definition = packet_type is FieldDescriptorPacket
        self._follows_definition |= is_definition
        try:
            return super()._read_packet(packet_type)
        finally:
            self._follows_definition = is_definition

    def _read_bytes(self, num_bytes: int) -> bytes:
        """PyMySQL reads the head of a packet, then the rest. The first byte of an answer may take as long
        as its statement; the others follow at once.
        """
        received = bytearray()
        while len(received) < num_bytes:
            is_part = self._is_in_packet or self._follows_definition or received
            limit_s = PACKET_SILENCE_S_MAX if is_part else math.inf
            if self._deadline is not None:
                limit_s = min(limit_s, max(self._deadline - time.monotonic(), 0.001))
            elif self._read_timeout is not None:
                limit_s = min(limit_s, self._read_timeout)
            self._sock.settimeout(None if math.isinf(limit_s) else limit_s)
            try:
                # Without `peek`, an empty buffer would read only these few bytes from the socket.
                piece = self._rfile.peek(1) and self._rfile.read1(num_bytes - len(received))
            except OSError as error:
                self._force_close()
                part = (
                    f" after {len(received)} of {num_bytes} bytes" if received or self._is_in_packet else ""
                )
                raise pymysql.err.OperationalError(
                    _CR_SERVER_LOST, f"Lost connection to MySQL server during query{part} ({error})"
                ) from error
            if not piece:
                self._force_close()
                raise pymysql.err.OperationalError(
                    _CR_SERVER_LOST, "Lost connection to MySQL server during query"
                )
            received += piece
        self._is_in_packet = not self._is_in_packet
        return bytes(received)

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        # Without settings, PyMySQL's context would read the certificates of the system, which takes tens of
        # milliseconds for each login, and use none of them.
        return super()._create_ssl_ctx(sslp) if sslp else _tls_context(self._settings)

    def _request_authentication(self) -> None:
        # With this plug-in the first packet would contain the password. Without it, a server that requires
        # the plug-in asks for it again, and `write_packet` inspects the answer.
        if self.__dict__.get("_auth_plugin_name") == "sha256_password":
            self._auth_plugin_name = ""
        self._logging_in = True
        try:
            super()._request_authentication()
        finally:
            self._logging_in = False

    def write_packet(self, payload: bytes) -> None:
        """Send a packet. Raises OperationalError if it would reveal the password."""
        if self._logging_in and self.password:
            if payload == self.password + b"\0" and not self._is_private():
                self._refuse("the password itself", "tls=verify-ca with a tls-ca, or a unix socket")
            if payload in _KEY_REQUESTS and not (
                self._settings.allow_public_key_retrieval or self._is_local()
            ):
                self._refuse(
                    "the password under a key of its own",
                    "tls=verify-ca, server-public-key, or allow-public-key-retrieval",
                )
        super().write_packet(payload)

    def _is_private(self) -> bool:
        if self.unix_socket:
            return True
        return bool(self._secure) and self._settings.tls.startswith("verify-")

    def _is_local(self) -> bool:
        if self.unix_socket:
            return True
        return ipaddress.ip_address(self._sock.getpeername()[0].partition("%")[0]).is_loopback

    @staticmethod
    def _refuse(what: str, fix: str) -> None:
        raise pymysql.err.OperationalError(
            CR_AUTH_PLUGIN_CANNOT_LOAD,
            f"the server asks for {what} over an unprotected connection; use {fix}",
        )


def _tls_context(connect: ConnectionSettings) -> ssl.SSLContext:
    """The TLS context for the configured mode. Raises OperationalError for files that cannot be used."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = connect.tls == "verify-identity"
    tls.verify_mode = ssl.CERT_REQUIRED if connect.tls.startswith("verify-") else ssl.CERT_NONE
    try:
        if connect.tls_ca is not None:
            tls.load_verify_locations(connect.tls_ca)
        if connect.tls_certificate is not None:
            tls.load_cert_chain(connect.tls_certificate, connect.tls_key)
    except OSError as error:
        files = ", ".join(str(file) for file in (connect.tls_ca, connect.tls_certificate) if file is not None)
        raise pymysql.err.OperationalError(CR_SSL_CONNECTION_ERROR, f"{files}: {error}") from error
    return tls


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
        return not is_driver or isinstance(error, pymysql.err.InterfaceError) or code in _LOST

    @staticmethod
    def is_starting_up(error: BaseException, code: int | str) -> bool:
        """True for: no socket, connection refused, connection lost during the greeting."""
        return isinstance(error, pymysql.err.Error | OSError) and code in _STARTING_UP


def connector(settings: ConnectionSettings = _DEFAULTS, **options: Any) -> Callable[[int], Any]:
    """A function that connects within some seconds, with these settings and `pymysql.connect`'s `options`."""

    def connect(timeout_s: int) -> Any:
        return _SecureConnection(
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
