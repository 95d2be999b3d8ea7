"""The interface of a program that forwards the load to a server, and what a load needs to know about it."""

from __future__ import annotations

import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dbdyno.experiment.quantities import as_text
from dbdyno.experiment.variant import PROXY_TITLES, Proxy
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.server import Address, ServerProblem, combine_problems
from dbdyno.servers.sources import programs

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")


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
