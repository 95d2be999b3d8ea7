"""Servers that dbdyno does not start: two of each product, each behind a proxy, kept for all cells."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from tests.end_to_end.own_server import Own

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.run.loading import list_tables
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.workspace import Workspace

from .experiment import MYSQL, SMALL, Reached
from .proxy import Proxy


@dataclass
class Existing:
    """A running server behind a proxy."""

    server: LocalServer
    proxy: Proxy
    directory: str
    reached: Reached

    def process(self) -> psutil.Process | None:
        """The server's process; None if it has ended."""
        return find_server(self.directory)

    def tables(self) -> list[str]:
        """Its tables; raises ServerProblem if it does not answer."""
        return list_tables(self.server)

    def qualified(self, table: str) -> str:
        """The name of a table for `server.query`, which has no current database on MySQL and MariaDB."""
        address = self.server.address()
        return table if address.protocol == "postgresql" else f"{address.database}.{table}"

    def drop_tables(self) -> None:
        """Drop what a run has left."""
        for name in self.tables():
            self.server.query(f"DROP TABLE {self.qualified(name)}")


def find_server(directory: str) -> psutil.Process | None:
    """The oldest process with that directory in its command line."""
    matches = [
        process
        for process in psutil.process_iter(["cmdline", "create_time", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(directory in word for word in process.info["cmdline"] or [])
    ]
    return min(matches, key=lambda process: process.info["create_time"], default=None)


class ServerPool:
    """Existing servers of every product; one that a fault has ended is started again for the next cell."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._workspace = self._stack.enter_context(closing(Workspace.open(folder / "existing")))
        self._servers: dict[str, list[Existing]] = {}
        # Numbers their names.
        self._started = 0

    def pair(self, product: str) -> list[Existing]:
        """Two running servers without tables."""
        servers = self._servers.setdefault(product, [])
        for one in list(servers):
            try:
                one.drop_tables()
            except ServerProblem:
                servers.remove(one)
                one.proxy.close()
                one.server.close()
        for one in servers:
            one.proxy.mode = "pass"
        while len(servers) < 2:
            servers.append(self._start(product))
        return servers

    def _start(self, product: str) -> Existing:
        self._started += 1
        name = f"existing-{product}-{self._started}"
        spec = ServerSpec(
            product=product,
            basedir=MYSQL if product == "mysql" else None,
            variables=dict(SMALL[product]),
        )
        server = LocalServer(Variant(name=name, server=spec), self._workspace, None)
        self._stack.callback(server.close)
        server.start()
        address = server.address()
        proxy = Proxy(address.host, address.port)
        secret = self._folder / f"{name}.password"
        secret.write_text(address.password)
        secret.chmod(0o600)
        scheme = "postgresql" if address.protocol == "postgresql" else "mysql"
        url = f"{scheme}://{address.user}@127.0.0.1:{proxy.port}/{address.database}"
        directory = str(Path(str(server.describe().identity["datadir"])).parent)
        return Existing(server, proxy, directory, Reached(url, secret, {}))

    def close(self) -> None:
        """Stop all servers."""
        for servers in self._servers.values():
            for one in servers:
                one.proxy.close()
        self._stack.close()


def _kill(directory: str) -> None:
    """End a server that a command line has started, if it still runs."""
    while process := find_server(directory):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
            process.wait(10.0)


@contextmanager
def started_by_commands(folder: Path) -> Iterator[Sequence[tuple[Reached, str, Proxy]]]:
    """Two MariaDB servers that command lines start and stop: URL, data directory and proxy of each."""
    with ExitStack() as stack:
        workspace = stack.enter_context(closing(Workspace.open(folder / "commands")))
        servers = []
        for number in (1, 2):
            name = f"command-{number}"
            spec = ServerSpec(variables=dict(SMALL["mariadb"]))
            server = LocalServer(Variant(name=name, server=spec), workspace, None)
            stack.callback(server.close)
            server.start()
            address, identity = server.address(), server.describe().identity
            place = folder / name
            place.mkdir(exist_ok=True)
            for old in place.iterdir():
                old.unlink()
            own = Own(server, place)
            secret = place / "password"
            secret.write_text(address.password)
            proxy = Proxy("127.0.0.1", address.port)
            stack.callback(proxy.close)
            url = f"mysql://{address.user}@127.0.0.1:{proxy.port}/{address.database}"
            commands = {word: own.argv(word) for word in ("start", "stop")}
            directory = str(Path(str(identity["datadir"])).parent)
            stack.callback(_kill, directory)
            servers.append((Reached(url, secret, commands), directory, proxy))
        yield servers
