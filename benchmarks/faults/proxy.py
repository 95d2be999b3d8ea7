"""A TCP proxy between dbdyno and a server, which delays, drops, cuts or resets connections on request."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Literal

# pass: forwards bytes. slow: each packet takes `SLOW_S` longer. drop: accepts connections and bytes, and
# forwards none. cut: forwards half of the server's next packet and closes the connection.
Mode = Literal["pass", "slow", "drop", "cut"]
SLOW_S = 0.02
CHUNK = 1 << 16


class Proxy:
    """One proxy, which listens on a port of its own in a thread of its own."""

    def __init__(self, host: str, port: int) -> None:
        self.mode: Mode = "pass"
        self._target = host, port
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def reset(self) -> None:
        """Reset every open connection (RST); later ones are forwarded."""
        done = threading.Event()
        self._loop.call_soon_threadsafe(self._reset, done)
        done.wait(5.0)

    def close(self) -> None:
        """Stop listening; open connections end."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        self._listener.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(asyncio.start_server(self._forward, sock=self._listener))
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def _reset(self, done: threading.Event) -> None:
        for writer in list(self._writers):
            one: socket.socket = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        done.set()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_server, to_server = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, to_server}
        try:
            await asyncio.gather(
                self._copy(reader, to_server, lambda: False),
                self._copy(from_server, writer, lambda: self.mode == "cut"),
                return_exceptions=True,
            )
        finally:
            for one in (writer, to_server):
                self._writers.discard(one)
                one.close()

    async def _copy(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, is_cut: Callable[[], bool]
    ) -> None:
        try:
            while content := await source.read(CHUNK):
                if is_cut():
                    sink.write(content[: len(content) // 2])
                    break
                if self.mode == "slow":
                    await asyncio.sleep(SLOW_S)
                if self.mode != "drop":
                    sink.write(content)
                    await sink.drain()
        finally:
            sink.close()
