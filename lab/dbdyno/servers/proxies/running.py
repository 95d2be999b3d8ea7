"""The proxy of one private server: its process, its place and what it uses."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbdyno.experiment.base import format_cpus
from dbdyno.experiment.model import Variant
from dbdyno.servers import ports
from dbdyno.servers.admin.connection import AdminConnection, ConnectFailure
from dbdyno.servers.kinds import process
from dbdyno.servers.kinds.remote_protocol import PROTOCOLS
from dbdyno.servers.proxies import PROGRAMS
from dbdyno.servers.proxies.proxy import ProxyPlace
from dbdyno.servers.server import Address, ServerProblem
from dbdyno.servers.url import Target
from dbdyno.servers.usage import Usage
from dbdyno.servers.workspace import Workspace
from dbdyno.waiting import waiting_for

# Maximum seconds from the start of a proxy until a client reaches the server through it.
START_TIMEOUT_S = 30.0
KILL_TIMEOUT_S = 10.0
# Characters at the end of a log that messages quote.
_LOG_LENGTH = 400


class RunningProxy:
    """The proxy of a variant, in the directory of its server. Raises ServerProblem if it cannot be run.

    `move` gives it its ports, and `start` and `stop` belong to those of the server.
    """

    def __init__(self, variant: Variant, workspace: Workspace) -> None:
        assert variant.proxy is not None, "a variant with a proxy"
        self._variant, self._spec, self._user = variant.name, variant.proxy, workspace.user
        self._program = PROGRAMS[self._spec.program]
        self._command = self._program.find(workspace.reachable(self._spec.basedir))
        self._version = self._program.version(self._command)
        declared = self._program.declared(self._spec, variant.name)
        own = self._program.own_settings(process.open_files_max())
        self._set_by_dbdyno = {name: text for name, text in own.items() if name not in declared}
        self._settings = {**self._set_by_dbdyno, **declared}
        self._cpus = self._spec.cpus or variant.server.cpus
        self._place: ProxyPlace | None = None
        self._process: process.Child | None = None
        self._usage: Usage | None = None

    def move(self, directory: Path, sockets: Path) -> None:
        """Use the directory of a server, the folder of its unix socket, and ports that belong to it."""
        port, control_port = ports.reserve_pair(ports.proxy_name(directory), None)
        self._place = ProxyPlace(directory / "proxy", sockets, port, control_port)

    def address(self, server: Address) -> Address:
        """How the load reaches the server at `server` through the proxy."""
        assert self._place is not None, "the server has a directory"
        return replace(server, host="127.0.0.1", port=self._place.port, unix_socket=None)

    def start(self, server: Address) -> None:
        """Start the program, and wait until a client reaches the server through it. Raises ServerProblem."""
        assert self._place is not None, "the server has a directory"
        place = self._place
        for port in (place.port, place.control_port):
            ports.require_free(port)
        place.directory.mkdir(mode=0o700, exist_ok=True)
        self._user.own(place.directory)
        files = self._program.files(place, server, self._settings)
        for path, text in {**files, place.log: ""}.items():
            # Some have passwords.
            self._user.write_file(path, text)
        self._process = process.start(
            [*self._command, *self._program.arguments(place)],
            user=self._user,
            cpus=self._cpus,
            directory=place.directory,
            output=place.log,
            has_children=True,
        )
        self._usage = Usage(self._process.pid)
        with closing(_connection(self.address(server))) as client:
            with waiting_for(f"the proxy of {self._variant} to start"):
                self._wait_until_ready(client)
            error = self._program.ignored(self._log(), client, self._spec.settings)
        if error:
            raise ServerProblem(
                f"{self._title} of {self._variant!r} started, but ignored a setting: {error}",
                "correct or remove it under [variant.proxy.settings]",
            )

    def _wait_until_ready(self, client: AdminConnection) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                client.open()
                client.query("SELECT 1")
                return
            except (ConnectFailure, ServerProblem) as failure:
                self.require_running()
                if time.monotonic() > deadline:
                    text = f"no client reached the server through {self._title} of {self._variant!r} within"
                    raise ServerProblem(
                        f"{text} {START_TIMEOUT_S:g} s: {failure}; its log ends with: {self._log_end()}",
                        "correct its settings under [variant.proxy.settings]",
                        exit_code=4,
                    ) from failure
            time.sleep(0.02)

    def require_running(self) -> None:
        """Raise ServerProblem if the program has been started and has ended."""
        if self._process is not None and (status := self._process.poll()) is not None:
            raise ServerProblem(
                f"{self._title} of {self._variant!r} ended with status {status}: {self._log_end()}",
                "correct its settings under [variant.proxy.settings]",
                exit_code=4,
            )

    def stop(self) -> None:
        """Kill the program, which keeps nothing. Idempotent."""
        running, self._process, self._usage = self._process, None, None
        if running is not None:
            process.end(running, clean=False, timeout_s=KILL_TIMEOUT_S)

    @property
    def _title(self) -> str:
        return f"{self._program.title} {self._version}"

    def _log(self) -> str:
        assert self._place is not None, "the server has a directory"
        return self._place.log.read_text(errors="replace")

    def _log_end(self) -> str:
        return " ".join(self._log()[-_LOG_LENGTH:].split()) or "it printed nothing"

    # --- state

    def identity(self) -> dict[str, Any]:
        """Facts about the running program, for the record of a trial."""
        assert self._place is not None, "a server describes itself while it runs"
        assert self._process is not None, "a server describes itself while it runs"
        return {
            "program": self._program.name,
            "version": self._version,
            "binary": self._command[-1],
            "port": self._place.port,
            "pid": self._process.pid,
            "cpus": format_cpus(process.server_cpus(self._cpus)),
            "settings": {**self._settings},
            "set_by_dbdyno": {**self._set_by_dbdyno},
        }

    def with_usage(self, server: Mapping[str, float]) -> Mapping[str, float]:
        """What the server's processes used, with what the proxy's did; its own CPU time is also apart."""
        if self._usage is None or not server:
            return server
        own = self._usage.read()
        together = {name: value + own.get(name, 0.0) for name, value in server.items()}
        return {**together, "proxy_cpu_s": own.get("cpu_user_s", 0.0) + own.get("cpu_system_s", 0.0)}

    def with_spent(self, server: Mapping[str, float]) -> Mapping[str, float]:
        """The same of `Usage.spent`."""
        if self._usage is None or not server:
            return server
        own = self._usage.spent()
        return {name: value + own.get(name, 0.0) for name, value in server.items()}

    def watch(self) -> None:
        """See `Usage.watch`."""
        if self._usage is not None:
            self._usage.watch()


def _connection(address: Address) -> AdminConnection:
    parts = {name: value for name, value in vars(address).items() if name != "password"}
    return PROTOCOLS[address.protocol].admin(Target(**parts), address.password)
