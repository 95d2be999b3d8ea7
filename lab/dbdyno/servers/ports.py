"""Ports on loopback for private servers."""

from __future__ import annotations

import errno
import socket
import zlib
from collections.abc import Collection
from pathlib import Path

from dbdyno.servers.server import MachineProblem, ServerProblem

# This range is above the ports of well-known programs, and below the ephemeral ports (from 32768 by default),
# of which a load needs thousands.
FIRST, LAST = 20_000, 29_999


# The sockets that hold the ports of each name, see `_hold`.
_held: dict[str, list[socket.socket]] = {}


def reserve_pair(name: str, requested: int | None, excluded: Collection[int] = ()) -> tuple[int, int]:
    """Two free ports: one for the load (`requested`, if it is not None), and one for administration.

    The search skips `excluded` and begins at a port that depends only on `name`, the server's directory,
    because the port is part of a server's identity and should be the same after a restart. All ports have
    five digits. Until `release`, or the end of this process, no other name gets these ports, in this process
    or another: between the choice of a port and the start of its server, minutes can pass. Raises
    ServerProblem when no port is free.
    """
    release(name)
    width = LAST - FIRST + 1
    begin = zlib.crc32(name.encode()) % width
    pair: list[int] = []
    if requested is not None:
        pair.append(requested)
        # The user may declare one port for several servers that run in turn, so it may be held already.
        _hold(requested, name)
    for step in range(width):
        port = FIRST + (begin + step) % width
        if port not in pair and port not in excluded and is_free(port) and _hold(port, name):
            pair.append(port)
            if len(pair) == 2:
                return pair[0], pair[1]
    raise ServerProblem(f"no free port between {FIRST} and {LAST} on 127.0.0.1", exit_code=4)


def proxy_name(directory: Path) -> str:
    """The name that holds the ports of the proxy of a server's directory."""
    return f"{directory}/proxy"


def release_directory(directory: Path) -> None:
    """Release the ports of a server's directory, and those of its proxy. Idempotent."""
    release(str(directory))
    release(proxy_name(directory))


def release(name: str) -> None:
    """Let other names have the ports of this one. Idempotent."""
    for holder in _held.pop(name, []):
        holder.close()


def _hold(port: int, name: str) -> bool:
    """Hold `port` for `name`. False if another name holds it.

    The holder is a unix socket in the abstract namespace (unix(7)): unlike a file it disappears with its
    process, however that ends, and like a port it belongs to one network namespace.
    """
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        holder.bind(f"\0dbdyno-port-{port}")
    except OSError as error:
        holder.close()
        if error.errno == errno.EADDRINUSE:
            return False
        raise
    _held.setdefault(name, []).append(holder)
    return True


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1 now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Servers set this too; connections of a former server that are still closing then do not block the
        # port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            # With SO_REUSEADDR two sockets can bind, but only one can listen.
            probe.listen(1)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def require_free(port: int) -> None:
    """Raises ServerProblem when another program listens on that port."""
    if not is_free(port):
        raise port_in_use(port)


def port_in_use(port: int) -> MachineProblem:
    """The problem of a port that is in use by another program, or that needs privileges."""
    return MachineProblem(
        f"port {port} on 127.0.0.1 is in use by another program (or below 1024, which needs privileges)",
        "declare another port, or none: dbdyno then uses a free one",
        exit_code=3,
    )
