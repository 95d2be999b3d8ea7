"""A server with a known truth: MySQL's protocol over TCP, a fixed answering time, a stall every second.

It logs when each statement came and when its answer left, by the wall clock of this machine, which is the one
the engine names the start of its phases by. It knows nothing of the engine's own measurements.
"""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

PERIOD_S, STALL_S = 1.0, 0.2
_CAPABILITIES = 0x0000_8000 | 0x0008_0000 | 0x0000_0200 | 0x0000_2000 | 0x0000_0008 | 0x0000_0001
_OK = b"\x00\x01\x00\x02\x00\x00\x00"
_EOF = b"\xfe\x00\x00\x02\x00"
_QUIT, _PREPARE, _EXECUTE = 0x01, 0x16, 0x17


class ThreadServer(ABC):
    """A TCP server with an event loop and a thread of its own, on a port the system chooses."""

    port: int = 0

    @abstractmethod
    async def listen(self) -> asyncio.Server:
        """Starts to listen; called in the event loop."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(started,))
        self._thread.start()
        assert started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _serve(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(self.listen())
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.1))


@dataclass
class StallingServer(ThreadServer):
    """Answers every statement `answer_s` after it came, but nothing in the last fifth of every second."""

    answer_s: float
    # Wall time of arrival and of answer, in seconds, in order of arrival.
    log: list[list[float]] = field(default_factory=list)

    async def listen(self) -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(lambda: _Session(self), "127.0.0.1", 0)

    def answer_at(self, came: float) -> float:
        """When a statement that came then is answered."""
        at = came + self.answer_s
        second, within = divmod(at, PERIOD_S)
        return (second + 1) * PERIOD_S if within > PERIOD_S - STALL_S else at


class _Session(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: StallingServer) -> None:
        self._server = server
        self._received = b""
        self._logged_in = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        greeting = b"\x0a8.0.0-stalling\x00" + struct.pack("<I", 1) + b"12345678\x00"
        greeting += struct.pack("<HBHH", _CAPABILITIES & 0xFFFF, 45, 2, _CAPABILITIES >> 16)
        greeting += bytes([21]) + bytes(10) + b"123456789012\x00" + b"mysql_native_password\x00"
        self._send(0, greeting)

    def data_received(self, data: bytes) -> None:
        came = time.time()
        self._received += data
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:3], "little")
            if len(self._received) < end:
                return
            sequence, body = self._received[3], self._received[4:end]
            self._received = self._received[end:]
            self._take(came, sequence, body)

    def _take(self, came: float, sequence: int, body: bytes) -> None:
        if not self._logged_in:
            self._logged_in = True
            self._send(sequence + 1, _OK)
        elif body[0] == _QUIT:
            self._transport.close()
        elif body[0] == _PREPARE:
            parameters = body.count(b"?")
            definition = b"\x03def" + bytes(4) + b"\x01?\x00\x0c" + struct.pack("<HIBHBH", 63, 0, 8, 0, 0, 0)
            packets = [b"\x00" + struct.pack("<IHHBH", 1, 0, parameters, 0, 0)]
            packets += [*([definition] * parameters), _EOF] if parameters else []
            for number, packet in enumerate(packets, 1):
                self._send(number, packet)
        elif body[0] == _EXECUTE:
            entry = [came, 0.0]
            self._server.log.append(entry)
            wait_s = self._server.answer_at(came) - time.time()
            asyncio.get_running_loop().call_later(max(0.0, wait_s), self._answer, entry)
        else:
            self._send(1, _OK)

    def _answer(self, entry: list[float]) -> None:
        entry[1] = time.time()
        self._send(1, _OK)

    def _send(self, sequence: int, body: bytes) -> None:
        self._transport.write(len(body).to_bytes(3, "little") + bytes([sequence]) + body)
