"""Two MariaDB servers on a host of their own, and an experiment that compares them from a fleet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO

from tests.conftest import SMALL, variant
from tests.end_to_end.differential import DATABASE, PASSWORD, USER, give_account

from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

from .hosts import SERVER, Host

# The command line of an engine that makes load, with the ends of its arguments.
ENGINE = ("dbdyno-engine\0run\0",)
EXPERIMENT = """
[experiment]
name = "fleet"

[[workload]]
name = "oltp_point_select"
tables = 1
table_size = 2000

[load]
{load}
duration = "{seconds}s"
warmup = "0.5s"

[design]
blocks = {blocks}
state = "preserve"

[fleet]
engines = 3
per_host = {per_host}
"""
VARIANT = """
[[variant]]
name = "{name}"
[variant.server]
kind = "remote"
url = "mysql://{user}@{host}:{port}/{database}"
password_file = "{file}"
"""


class Scene:
    """Where an experiment of a fleet runs."""

    def __init__(
        self, hosts: tuple[Host, ...], environment: Mapping[str, str], folder: Path, tables: str
    ) -> None:
        self.hosts, self.environment, self.folder, self._tables = hosts, environment, folder, tables

    def write(
        self, *, blocks: int = 2, seconds: float = 3.0, per_host: int = 1, load: str = "connections = [6]"
    ) -> Path:
        """Write the experiment file, and return its path. `load`: lines of its table `[load]`."""
        file = self.folder / "fleet.toml"
        made = EXPERIMENT.format(blocks=blocks, seconds=seconds, per_host=per_host, load=load)
        file.write_text(made + self._tables)
        return file

    def start(self, *arguments: str, output: IO[str] | int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start dbdyno on the first host, which is part of the cluster."""
        return subprocess.Popen(
            self.hosts[0].argv(sys.executable, "-m", "dbdyno", *arguments),
            stdout=output,
            stderr=output,
            text=True,
            env={**os.environ, **self.environment},
            process_group=0,
        )

    def compare(self, *more: str, output: IO[str] | int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start the comparison of the file that `write` has written."""
        file = str(self.folder / "fleet.toml")
        return self.start(
            "compare", file, "--results", str(self.results), "--no-report", *more, output=output
        )

    @property
    def results(self) -> Path:
        """The folder of the runs."""
        return self.folder / "results"

    def engines(self) -> list[int]:
        """The processes of all engines."""
        return [process for host in self.hosts[:-1] for process in host.find(*ENGINE)]


@contextmanager
def servers(host: Host, workspace: Workspace, folder: Path) -> Iterator[str]:
    """Two MariaDB servers that listen on a host's address. Yields the tables of two variants."""
    file = folder / "password"
    file.write_text(PASSWORD)
    file.chmod(0o600)
    processes: list[subprocess.Popen[bytes]] = []
    with (
        closing(LocalServer(variant("one"), workspace, None)) as one,
        closing(LocalServer(variant("other"), workspace, None)) as other,
    ):
        try:
            tables = ""
            for server, name in ((one, "one"), (other, "other")):
                argv, port = _command(server)
                processes.append(
                    subprocess.Popen(host.argv(*argv), stderr=subprocess.DEVNULL, process_group=0)
                )
                tables += VARIANT.format(
                    name=name, user=USER, host=SERVER, port=port, database=DATABASE, file=file
                )
                _wait_until_open(host, port)
            yield tables
        finally:
            for process in processes:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _command(server: LocalServer) -> tuple[list[str], int]:
    """The command line of a server on its data, which has an account for other hosts, and its port."""
    server.start()
    give_account(server)
    identity = server.describe().identity
    server.stop(clean=True)
    argv = [
        str(identity["binary"]),
        "--no-defaults",
        *([f"--user={identity['user']}"] if os.geteuid() == 0 else []),
        f"--datadir={identity['datadir']}",
        f"--socket={identity['socket']}",
        f"--port={identity['port']}",
        f"--bind-address={SERVER}",
        "--skip-name-resolve",
        *(f"--{name}={value}" for name, value in SMALL.items()),
    ]
    return argv, int(identity["port"])


def _wait_until_open(host: Host, port: int) -> None:
    connect = f"import socket; socket.create_connection(('{SERVER}', {port}), 1).close()"
    deadline = time.monotonic() + 30.0
    while host.run(sys.executable, "-c", connect).returncode:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the server at {SERVER}:{port} does not answer")
        time.sleep(0.2)
