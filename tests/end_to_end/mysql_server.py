"""A private MySQL server for tests: on loopback and a unix socket, never as root, gone with the test.

The programs come from `scripts/mysql-root` (Debian's packages, unpacked) or from a vendor's tarball in the
same place. One empty data directory is made per test session; every server gets a copy of it.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.servers import ports
from dbdyno.servers.admin.connection import AdminConnection, ConnectFailure
from dbdyno.servers.admin.mysql import MySQLAdmin, connector
from dbdyno.servers.kinds import process
from dbdyno.servers.server import Address
from dbdyno.servers.snapshots.copying import copy_tree
from dbdyno.servers.workspace import Workspace, socket_directory

ROOT = Path(__file__).parents[2] / ".servers" / "mysql-9.7"

# Generous: the machine may be busy with other tests.
START_TIMEOUT_S = 180.0
KILL_TIMEOUT_S = 60.0

USER = DATABASE = "dbdyno"

# As small as it goes, so that several fit on a small machine. Options of a test come after these and win.
SMALL = (
    "--innodb-buffer-pool-size=64M",
    "--innodb-redo-log-capacity=16M",
    "--performance-schema=OFF",
    "--skip-log-bin",
    "--skip-name-resolve",
    "--mysqlx=OFF",
    # The packaged server refuses to start while its compiled-in folder does not exist.
    "--secure-file-priv=",
)


@dataclass(frozen=True)
class Programs:
    """One unpacked MySQL that the servers' user can reach."""

    root: Path

    def mysqld(self, *options: str) -> list[str]:
        """The command line of the server, with its own C library where it brings one."""
        tarball = self.root / "bin" / "mysqld"
        if tarball.is_file():
            return [str(tarball), "--no-defaults", f"--basedir={self.root}", *options]
        loader = next(self.root.glob("usr/lib*/ld-linux*.so.*"), None)
        assert loader is not None, f"{self.root} has no mysqld; remove it and run make test again"
        libraries = [*self.root.glob("usr/lib/*-linux-gnu*"), self.root / "usr/lib/mysql/private"]
        share = self.root / "usr/share/mysql"
        return [
            str(loader),
            "--library-path",
            ":".join(str(folder) for folder in libraries),
            str(self.root / "usr/sbin/mysqld"),
            "--no-defaults",
            f"--basedir={self.root / 'usr'}",
            f"--plugin-dir={self.root / 'usr/lib/mysql/plugin'}",
            f"--lc-messages-dir={share}",
            f"--character-sets-dir={share / 'charsets'}",
            *options,
        ]


def programs(workspace: Workspace) -> Programs:
    """The unpacked MySQL, copied to where the servers' user can go when it lies in a closed directory."""
    assert ROOT.is_dir(), f"{ROOT} is missing; `make test` unpacks it, and so does scripts/mysql-root {ROOT}"
    if workspace.user.may_enter(ROOT):
        return Programs(ROOT)
    copy = workspace.base / "mysql-programs"
    if not copy.exists():
        shutil.copytree(ROOT, copy, symlinks=True)
    return Programs(copy)


def initialised(found: Programs, workspace: Workspace) -> Path:
    """An empty data directory with no password for root, to be copied by servers; made once per workspace."""
    ready = workspace.base / "mysql-empty"
    if ready.exists():
        return ready
    directory = workspace.server_directory("mysql-initialise")
    log = directory / "error.log"
    data = directory / "data"
    options = [*SMALL, f"--datadir={data}", "--initialize-insecure"]
    running = process.start(
        found.mysqld(*options), user=workspace.user, cpus=None, directory=directory, output=log
    )
    status = running.wait(timeout=START_TIMEOUT_S)
    assert status == 0, f"mysqld --initialize-insecure: exit {status}\n{log.read_text()[-3000:]}"
    # A copy with an identity of its own makes another one at its first start.
    (data / "auto.cnf").unlink()
    data.rename(ready)
    workspace.discard(directory)
    return ready


@dataclass
class MySQLServer:
    """One server. `options` are further arguments of mysqld, such as `--require-secure-transport=ON`."""

    programs: Programs
    workspace: Workspace
    name: str
    options: Sequence[str] = ()
    port: int = 0
    # Root's password and that of the ordinary account.
    root_password: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    _process: subprocess.Popen[bytes] | None = None
    _admin: AdminConnection | None = None

    def __post_init__(self) -> None:
        self.directory = self.workspace.server_directory(self.name)
        self.socket = socket_directory(self.directory, self.workspace.user) / "server.sock"
        self.data = self.directory / "data"
        self.log = self.directory / "error.log"
        if not self.port:
            self.port = ports.reserve_pair(str(self.directory), None)[0]

    def start(self) -> None:
        """Start and wait until root has its password, given through the socket, and an ordinary account is
        there: `dbdyno`, with `caching_sha2_password` and all rights on the schema `dbdyno`.
        """
        first = not self.data.exists()
        if first:
            copy_tree(initialised(self.programs, self.workspace), self.data, self.workspace.user)
        self._process = process.start(
            self.programs.mysqld(*SMALL, *self._placement(), *self.options),
            user=self.workspace.user,
            cpus=None,
            directory=self.directory,
            output=self.log,
        )
        self._admin = MySQLAdmin(
            connector(unix_socket=str(self.socket), user="root", password="" if first else self.root_password)
        )
        self._wait(self._admin)
        if first:
            self.sql(f"ALTER USER root@localhost IDENTIFIED BY '{self.root_password}'")
            self.sql(f"CREATE DATABASE {DATABASE}")
            self.sql(f"CREATE USER {USER}@'%' IDENTIFIED BY '{self.password}'")
            self.sql(f"GRANT ALL ON {DATABASE}.* TO {USER}@'%'")
            self._admin.close()
            self._admin = MySQLAdmin(
                connector(unix_socket=str(self.socket), user="root", password=self.root_password)
            )

    def _placement(self) -> list[str]:
        return [
            f"--datadir={self.data}",
            f"--socket={self.socket}",
            f"--pid-file={self.directory / 'server.pid'}",
            "--bind-address=127.0.0.1",
            f"--port={self.port}",
        ]

    def _wait(self, admin: AdminConnection) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                return admin.open()
            except ConnectFailure as error:
                dead = self._process.poll()
                if dead is not None or time.monotonic() > deadline:
                    raise AssertionError(
                        f"{self.name}: exit {dead}: {error}\n{self.log_text()[-3000:]}"
                    ) from error
            time.sleep(0.05)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement as root through the socket."""
        assert self._admin is not None, "the server is not running"
        return self._admin.query(statement)

    # As the lab's own servers call it.
    query = sql

    def status(self) -> dict[str, str]:
        """SHOW GLOBAL STATUS."""
        assert self._admin is not None, "the server is not running"
        return dict(self._admin.pairs("SHOW GLOBAL STATUS"))

    def variables(self) -> dict[str, str]:
        """SHOW GLOBAL VARIABLES."""
        assert self._admin is not None, "the server is not running"
        return dict(self._admin.pairs("SHOW GLOBAL VARIABLES"))

    def address(self, user: str = USER, password: str | None = None) -> Address:
        """How the engine reaches it: by TCP or the socket, see `Address.target`."""
        secret = self.password if password is None else password
        return Address("127.0.0.1", self.port, str(self.socket), user, DATABASE, secret)

    def log_text(self) -> str:
        """What the server has said."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def pid(self) -> int:
        """The server's process."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def stop(self) -> None:
        """Kill it; `start` brings it back with its data. Idempotent."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        if self._process is not None:
            process.end(self._process, clean=False, timeout_s=KILL_TIMEOUT_S)
            self._process = None

    def close(self) -> None:
        """Kill it and remove everything. Idempotent."""
        try:
            self.stop()
        finally:
            if self.socket.parent != self.directory:
                shutil.rmtree(self.socket.parent, ignore_errors=True)
            self.workspace.discard(self.directory)
            ports.release(str(self.directory))


# How a test asks for servers: a name, then further arguments of mysqld.
Start = Callable[..., MySQLServer]


@contextlib.contextmanager
def starting(workspace: Workspace) -> Iterator[Start]:
    """A function that starts servers; all of them are closed at the end."""
    servers: list[MySQLServer] = []
    found = programs(workspace)

    def start(name: str, *options: str) -> MySQLServer:
        server = MySQLServer(found, workspace, name, options)
        servers.append(server)
        server.start()
        return server

    try:
        yield start
    finally:
        for server in servers:
            server.close()
