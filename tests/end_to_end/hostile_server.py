"""A TCP server that speaks just enough of the MySQL protocol to misbehave at a chosen moment.

A test gives it a function for the state in which it misbehaves; in every other state it answers as a real
server would. Every byte that clients send is kept, connection by connection.

Source: "Client/Server Protocol" in the MySQL internals documentation and the MariaDB knowledge base.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar, Literal

COM_QUIT, COM_QUERY, COM_STMT_PREPARE, COM_STMT_EXECUTE = 0x01, 0x03, 0x16, 0x17

NATIVE, CACHING_SHA2 = b"mysql_native_password", b"caching_sha2_password"
SHA256, CLEAR = b"sha256_password", b"mysql_clear_password"

# Long password, schema in the login, local files, protocol 4.1, transactions, secure connection, plug-in
# authentication, length-encoded authentication data, no end markers (the flags of "Capabilities Flags").
CLIENT_LOCAL_FILES, CLIENT_SSL = 1 << 7, 1 << 11
CAPABILITIES = CLIENT_LOCAL_FILES | 1 | 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19 | 1 << 21 | 1 << 24

# 20 bytes that a scramble may have: none of them zero.
NONCE = bytes(range(0x21, 0x35))

OK = b"\x00\x00\x00\x02\x00\x00\x00"
END_OF_ROWS = b"\xfe\x00\x00\x02\x00\x00\x00"

State = Literal["greeting", "login", "prepare", "execute", "query", "copy"]
# What to do in a state instead of the right thing; in `prepare`, `execute` and `query` with what was asked.
# Returning True goes on as if nothing had happened; False or None ends the connection.
Misdeed = Callable[["Peer", bytes], bool | None]


class GoneError(Exception):
    """The client has closed the connection, or the test is over."""


class Peer:
    """One connection, seen from the server."""

    def __init__(self, connection: socket.socket, over: threading.Event) -> None:
        self._socket = connection
        self._over = over
        self._unread = bytearray()
        self.received = bytearray()
        self.sequence = 0

    def read(self) -> bytes:
        """The payload of the next packet."""
        while True:
            if len(self._unread) >= 4:
                length = int.from_bytes(self._unread[:3], "little")
                if len(self._unread) >= 4 + length:
                    self.sequence = self._unread[3]
                    payload = bytes(self._unread[4 : 4 + length])
                    del self._unread[: 4 + length]
                    return payload
            self._unread += self._receive()

    def read_until_closed(self) -> None:
        """Take whatever still comes."""
        with contextlib.suppress(GoneError):
            while True:
                self._receive()

    def _receive(self) -> bytes:
        while not self._over.is_set():
            if select.select([self._socket], [], [], 0.05)[0]:
                piece = self._socket.recv(1 << 16)
                if not piece:
                    break
                self.received += piece
                return piece
        raise GoneError

    def send(self, *payloads: bytes) -> None:
        """Send packets, numbered on from the last one in either direction."""
        out = bytearray()
        for payload in payloads:
            self.sequence = (self.sequence + 1) & 0xFF
            out += header(len(payload), self.sequence) + payload
        self.raw(bytes(out))

    def raw(self, content: bytes) -> None:
        """Send bytes as they are, while the client takes them and the test lasts."""
        view = memoryview(content)
        while view:
            if self._over.is_set():
                raise GoneError
            if select.select([], [self._socket], [], 0.05)[1]:
                view = view[self._socket.send(view) :]

    def wait(self, seconds: float) -> None:
        """Do nothing for a while. Raises `GoneError` when the test is over or the client has left."""
        if self._over.wait(seconds):
            raise GoneError
        if select.select([self._socket], [], [], 0)[0] and not self._socket.recv(1, socket.MSG_PEEK):
            raise GoneError

    def fall_silent(self) -> None:
        """Never answer again, until the client leaves."""
        while True:
            self.wait(0.05)


def header(length: int, sequence: int = 0) -> bytes:
    """The head of a packet that claims to have `length` bytes."""
    return length.to_bytes(3, "little") + bytes([sequence])


def greeting(
    plugin: bytes = NATIVE, capabilities: int = CAPABILITIES, version: bytes = b"8.0.99-hostile"
) -> bytes:
    """A well-formed greeting (HandshakeV10)."""
    low, high = capabilities & 0xFFFF, capabilities >> 16
    return b"".join(
        (
            b"\x0a",
            version + b"\0",
            struct.pack("<I", 7),
            NONCE[:8] + b"\0",
            struct.pack("<HBHHB", low, 45, 2, high, len(NONCE) + 1),
            bytes(10),
            NONCE[8:] + b"\0",
            plugin + b"\0",
        )
    )


def switch(plugin: bytes) -> bytes:
    """A request to log in with another method (AuthSwitchRequest)."""
    return b"\xfe" + plugin + b"\0" + NONCE + b"\0"


def more_data(content: bytes) -> bytes:
    """A further packet of an authentication method (AuthMoreData)."""
    return b"\x01" + content


def definition(name: bytes = b"c") -> bytes:
    """A column definition."""
    words = (b"def", b"", b"sbtest1", b"sbtest1", name, name)
    fixed = b"\x0c" + struct.pack("<HIBHB", 45, 480, 0xFE, 0, 0) + b"\0\0"
    return b"".join(bytes([len(word)]) + word for word in words) + fixed


def prepared(parameters: int, columns: int = 0) -> bytes:
    """The first packet of the answer to a prepare."""
    return b"\x00" + struct.pack("<IHHBH", 1, columns, parameters, 0, 0)


def error(code: int, message: bytes, state: bytes = b"HY000") -> bytes:
    """An error packet."""
    return b"\xff" + struct.pack("<H", code) + b"#" + state + message


def asking_for(file: str) -> bytes:
    """The request for a local file (LOCAL INFILE)."""
    return b"\xfb" + file.encode()


def sends(*pieces: bytes) -> Misdeed:
    """Send bytes as they are and wait for the client to leave."""

    def misdeed(peer: Peer, _asked: bytes) -> None:
        for piece in pieces:
            peer.raw(piece)
        peer.read_until_closed()

    return misdeed


def sends_and_closes(*pieces: bytes) -> Misdeed:
    """Send bytes as they are and close."""

    def misdeed(peer: Peer, _asked: bytes) -> None:
        for piece in pieces:
            peer.raw(piece)

    return misdeed


def drips(content: bytes, seconds: float) -> Misdeed:
    """One byte at a time, with a pause after each: a slow loris."""

    def misdeed(peer: Peer, _asked: bytes) -> None:
        for place in range(len(content)):
            peer.raw(content[place : place + 1])
            peer.wait(seconds)

    return misdeed


def is_silent(peer: Peer, _asked: bytes) -> None:
    peer.fall_silent()


class HostileServer:
    """Listens on loopback until it is closed; every connection has a thread of its own."""

    peer: ClassVar[type[Peer]] = Peer

    def __init__(
        self,
        misdeeds: Mapping[State, Misdeed] | None = None,
        *,
        host: str = "127.0.0.1",
        plugin: bytes = NATIVE,
    ) -> None:
        self._misdeeds = misdeeds or {}
        self._plugin = plugin
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.peers: list[Peer] = []
        # A mistake of this server itself, which would otherwise look like the client's.
        self.errors: list[BaseException] = []
        self._listener = socket.create_server((host, 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._threads.append(threading.Thread(target=self._listen, daemon=True))
        self._threads[0].start()

    @property
    def received(self) -> bytes:
        """Every byte that any client sent."""
        return b"".join(bytes(peer.received) for peer in self.peers)

    def close(self) -> None:
        """End all connections. Raises what went wrong in the server itself."""
        self._over.set()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()
        if self.errors:
            raise self.errors[0]

    def _listen(self) -> None:
        while not self._over.is_set():
            if not select.select([self._listener], [], [], 0.05)[0]:
                continue
            connection, _ = self._listener.accept()
            peer = self.peer(connection, self._over)
            self.peers.append(peer)
            thread = threading.Thread(target=self._talk, args=(peer, connection), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _talk(self, peer: Peer, connection: socket.socket) -> None:
        with connection:
            try:
                self._converse(peer)
            except (GoneError, ConnectionError):
                pass
            except BaseException as error:
                self.errors.append(error)

    def _converse(self, peer: Peer) -> None:
        peer.sequence = -1
        if not self._do("greeting", peer, b"", lambda: peer.send(greeting(self._plugin))):
            return
        response = peer.read()
        if not self._do("login", peer, response, lambda: peer.send(OK)):
            return
        while True:
            message = peer.read()
            command, rest = message[:1], message[1:]
            if command == bytes([COM_QUIT]):
                return
            if command == bytes([COM_STMT_PREPARE]):
                goes_on = self._do("prepare", peer, rest, partial(_prepare, peer, rest))
            elif command == bytes([COM_STMT_EXECUTE]):
                goes_on = self._do("execute", peer, rest, lambda: peer.send(*result(b"\0\0\x01x")))
            else:
                assert command == bytes([COM_QUERY]), message
                goes_on = self._do("query", peer, rest, lambda: peer.send(OK))
            if not goes_on:
                return

    def _do(self, state: State, peer: Peer, asked: bytes, rightly: Callable[[], None]) -> bool:
        misdeed = self._misdeeds.get(state)
        if misdeed is None:
            rightly()
            return True
        return bool(misdeed(peer, asked))


def _prepare(peer: Peer, sql: bytes) -> None:
    parameters = sql.count(b"?")
    peer.send(prepared(parameters), *(definition(b"?") for _ in range(parameters)))


def result(*rows: bytes) -> list[bytes]:
    """The packets of a result with one column."""
    return [b"\x01", definition(), *rows, END_OF_ROWS]


@contextlib.contextmanager
def hostile(
    misdeeds: Mapping[State, Misdeed] | None = None, *, host: str = "127.0.0.1", plugin: bytes = NATIVE
) -> Iterator[HostileServer]:
    """A hostile server for a `with` statement."""
    server = HostileServer(misdeeds, host=host, plugin=plugin)
    try:
        yield server
    finally:
        server.close()
