"""The three layouts: server and client share all CPUs, run on separate CPUs, or in two network namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.servers.server import Address

# A /30 of a private range, inside namespaces that nothing else is connected to.
SERVER_ADDRESS, CLIENT_ADDRESS = "10.213.77.1", "10.213.77.2"


@dataclass(frozen=True)
class Laid:
    """A running server, its version, and the prefix of every client command."""

    address: Address
    version: str
    launcher: tuple[str, ...]


@contextmanager
def shared(scratch: Path, product: str = "mariadb") -> Iterator[Laid]:
    """Client and server share all CPUs and loopback."""
    with _server(scratch, (), ("--product", product)) as (address, version):
        yield Laid(address, version, ())


@contextmanager
def apart(scratch: Path) -> Iterator[Laid]:
    """The server is pinned to the first CPU, the client to the others."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise SystemExit("the layout 'apart' needs two CPUs")
    client = ",".join(map(str, cpus[1:]))
    with _server(scratch, (), ("--cpus", str(cpus[0]))) as (address, version):
        yield Laid(address, version, ("taskset", "--cpu-list", client))


@contextmanager
def namespaces(scratch: Path) -> Iterator[Laid]:
    """Server and client share all CPUs, in two network namespaces joined by a veth pair."""
    if os.geteuid() != 0:
        raise SystemExit(
            "the layout 'namespaces' needs root: run the benchmark as root, or choose others by --layout"
        )
    server, client = (f"dbdyno-bench-{os.getpid()}-{end}" for end in ("server", "client"))
    with ExitStack() as stack:
        for name in (server, client):
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "delete", name)
        ends = (f"dbs{os.getpid()}", f"dbc{os.getpid()}")
        _ip("link", "add", ends[0], "netns", server, "type", "veth", "peer", "name", ends[1], "netns", client)
        for name, end, ip in zip((server, client), ends, (SERVER_ADDRESS, CLIENT_ADDRESS), strict=True):
            _ip("-netns", name, "address", "add", f"{ip}/30", "dev", end)
            _ip("-netns", name, "link", "set", end, "up")
            _ip("-netns", name, "link", "set", "lo", "up")
        inside = ("ip", "netns", "exec", server)
        local, version = stack.enter_context(_server(scratch, inside, ("--reachable",)))
        address = Address(SERVER_ADDRESS, local.port, None, local.user, local.database, local.password)
        yield Laid(address, version, ("ip", "netns", "exec", client))


LAYOUTS = {"shared": shared, "apart": apart, "namespaces": namespaces}


@contextmanager
def _server(scratch: Path, launcher: Sequence[str], options: Sequence[str]) -> Iterator[tuple[Address, str]]:
    serve = Path(__file__).with_name("serve.py")
    command = [*launcher, sys.executable, str(serve), "--scratch", str(scratch), *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"the benchmark's server did not start (exit code {process.wait()})")
        description = json.loads(line)
        version = description.pop("version")
        try:
            yield Address(unix_socket=None, **description), version
        finally:
            process.stdin.close()
            process.wait(timeout=120)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
