"""The interface of a program that forwards the load to a server, what a load needs to know about it, and the
proxy of one private server: its process, its place and what it uses.
"""

from __future__ import annotations

import re
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.experiment.base import format_cpus
from dbdyno.experiment.model import Variant
from dbdyno.experiment.quantities import as_text
from dbdyno.experiment.variant import PROXY_TITLES, Proxy
from dbdyno.servers import ports
from dbdyno.servers.admin.connection import AdminConnection, ConnectFailure
from dbdyno.servers.kinds import process
from dbdyno.servers.kinds.remote_protocol import PROTOCOLS
from dbdyno.servers.server import Address, ServerProblem, combine_problems
from dbdyno.servers.sources import programs
from dbdyno.servers.url import Target
from dbdyno.servers.usage import Usage
from dbdyno.servers.workspace import Workspace
from dbdyno.waiting import waiting_for

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")

# Maximum seconds from the start of a proxy until a client reaches the server through it.
START_TIMEOUT_S = 30.0
KILL_TIMEOUT_S = 10.0
# Characters at the end of a log that messages quote.
_LOG_LENGTH = 400


@dataclass(frozen=True)
class ProxyPlace:
    """The directory and the ports of one proxy, all on loopback."""

    directory: Path
    # The folder of the server's unix socket, whose path is short enough for the kernel.
    sockets: Path
    # For the load.
    port: int
    # For the program's own commands, if it has a port for them.
    control_port: int

    @property
    def config(self) -> Path:
        """The generated configuration file."""
        return self.directory / "proxy.conf"

    @property
    def log(self) -> Path:
        """What the program prints."""
        return self.directory / "proxy.log"


@dataclass(frozen=True)
class Pool:
    """How a proxy serves its clients with connections to the server."""

    # The setting that limits the number of clients, and its value; 0: no limit.
    clients_setting: str
    clients: int
    # The setting that limits the connections to the server, and its value; 0: one for each client.
    size_setting: str = ""
    size: int = 0
    # Whether a client keeps its connection to the server between two transactions.
    is_per_session: bool = True
    # Whether prepared statements work although it does not; otherwise the fix.
    keeps_prepared: bool = True
    prepared_fix: str = ""


class ProxyProgram(ABC):
    """One program."""

    # Its name in the experiment file.
    name: ClassVar[str]
    package: ClassVar[str]
    version_arguments: ClassVar[Sequence[str]] = ("--version",)
    # Settings that only dbdyno may set, with the reason.
    reserved: ClassVar[Mapping[str, str]]

    @property
    def title(self) -> str:
        """The program's name in messages."""
        return PROXY_TITLES[self.name]

    def find(self, basedir: Path | None) -> tuple[str, ...]:
        """The beginning of its command line. Raises ServerProblem if it is not installed."""
        path = programs.find((self.name,), basedir)
        if path is None:
            where = "is not installed (neither in PATH nor in /usr)"
            if basedir is not None:
                where = f"is not in proxy.basedir, {str(basedir)!r}, nor in its subfolders"
            raise ServerProblem(
                f"the program {self.name} of {self.title} {where}",
                f"install the Debian package {self.package}, or name a folder with it as proxy.basedir",
            )
        return (*programs.loader_command(basedir), str(path))

    def version(self, command: Sequence[str]) -> str:
        """The version that the program prints, such as 1.18.0. Raises ServerProblem."""
        try:
            answer = subprocess.run(
                [*command, *self.version_arguments], capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServerProblem(f"{command[-1]} cannot be run: {error}", "check proxy.basedir") from error
        match = _VERSION.search(answer.stdout + answer.stderr)
        if match is None:
            raise ServerProblem(
                f"{command[-1]} {' '.join(self.version_arguments)} prints no version",
                f"set proxy.basedir to a folder that contains {self.title}",
            )
        return match[0]

    def declared(self, proxy: Proxy, variant: str) -> dict[str, str]:
        """The settings of a variant in the program's syntax. Raises ServerProblem with all errors."""
        problems, settings = [], {}
        for name, value in proxy.settings.items():
            text = self.format_value(value)
            if reason := self.reserved.get(name):
                problems.append(ServerProblem(f"proxy.settings.{name}: {reason}", "remove it"))
            elif any(character in text for character in "\n\r\0"):
                problems.append(ServerProblem(f"proxy.settings.{name} is more than one line"))
            settings[name] = text
        if problems:
            raise combine_problems(problems, f"variant {variant!r}")
        return settings

    def format_value(self, value: str | int | float | bool) -> str:
        """A value in the program's configuration file."""
        return as_text(value)

    @abstractmethod
    def own_settings(self, open_files: int) -> Mapping[str, str]:
        """What dbdyno sets if the variant does not, for a process that may open that many files."""

    @abstractmethod
    def files(self, place: ProxyPlace, server: Address, settings: Mapping[str, str]) -> Mapping[Path, str]:
        """The configuration with its passwords; `server` is what it forwards to."""

    @abstractmethod
    def arguments(self, place: ProxyPlace) -> Sequence[str]:
        """The arguments that start the program in the foreground."""

    @abstractmethod
    def pool(self, settings: Mapping[str, str], version: str) -> Pool:
        """How it serves its clients with these settings, which include those of dbdyno."""

    def ignored(self, log: str, client: AdminConnection, declared: Iterable[str]) -> str:  # noqa: ARG002 — optional.
        """The message about a setting that a started program ignores; empty if there is none. `client` is
        connected to the program, and `declared` are the names of the variant's settings.
        """
        return ""


def as_number(settings: Mapping[str, str], name: str, default: int) -> int:
    """The value of a setting that is a whole number."""
    text = settings.get(name, "")
    return int(text) if text.isdecimal() else default


def version_numbers(version: str) -> tuple[int, ...]:
    """A version for comparisons."""
    return tuple(int(part) for part in version.split("."))


class RunningProxy:
    """The proxy of a variant, in the directory of its server. Raises ServerProblem if it cannot be run.

    `move` gives it its ports, and `start` and `stop` belong to those of the server.
    """

    def __init__(self, program: ProxyProgram, variant: Variant, workspace: Workspace) -> None:
        assert variant.proxy is not None, "a variant with a proxy"
        self._variant, self._spec, self._user = variant.name, variant.proxy, workspace.user
        self._program = program
        self._command = self._program.find(workspace.reachable(self._spec.basedir))
        self._version = self._program.version(self._command)
        declared = self._program.declared(self._spec, variant.name)
        settings = self._program.own_settings(process.open_files_max())
        self._set_by_dbdyno = {name: text for name, text in settings.items() if name not in declared}
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
        usage = self._usage.read()
        together = {name: value + usage.get(name, 0.0) for name, value in server.items()}
        return {**together, "proxy_cpu_s": usage.get("cpu_user_s", 0.0) + usage.get("cpu_system_s", 0.0)}

    def with_spent(self, server: Mapping[str, float]) -> Mapping[str, float]:
        """The same of `Usage.spent`."""
        if self._usage is None or not server:
            return server
        spent_here = self._usage.spent()
        return {name: value + spent_here.get(name, 0.0) for name, value in server.items()}

    def watch(self) -> None:
        """See `Usage.watch`."""
        if self._usage is not None:
            self._usage.watch()


def _connection(address: Address) -> AdminConnection:
    parts = {name: value for name, value in vars(address).items() if name != "password"}
    return PROTOCOLS[address.protocol].admin(Target(**parts), address.password)
