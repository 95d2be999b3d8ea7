"""A database product: what differs between products when dbdyno runs a private server.

Each product's module implements `Product`; `PRODUCTS` in `declaration` lists them. `kinds.local` starts,
copies and stops all of them alike.
"""

from __future__ import annotations

import re
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.products import configuration
from dbdyno.servers.server import Address, ServerProblem


@dataclass(frozen=True)
class Place:
    """The directories, socket and ports of one private server."""

    directory: Path
    socket: Path
    port: int
    # A second port that the load does not use, where the product has one; 0 for none.
    admin_port: int
    # The address it listens on, and where its clients come from ("%" for anywhere).
    listens: str = "127.0.0.1"
    clients: str = "127.0.0.1"

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.directory / "data"

    @property
    def temporary(self) -> Path:
        """For temporary tables and files."""
        return self.directory / "tmp"

    @property
    def option_file(self) -> Path:
        """The generated configuration."""
        return self.directory / "server.cnf"

    @property
    def init_file(self) -> Path:
        """Statements for the next start, with passwords; removed as soon as the server is up."""
        return self.directory / "init.sql"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.directory / "error.log"


@dataclass(frozen=True)
class Binaries:
    """The programs of one installed server."""

    server: Path
    install: Path
    # The folder the user named, or None for what is installed on the machine.
    basedir: Path | None
    # What the programs are started with: a root's own dynamic loader.
    loader: tuple[str, ...] = ()
    # Options without which these programs do not find their own files.
    options: tuple[str, ...] = ()
    # Whether they can be run on this machine as they are; an image's cannot.
    runnable: bool = True

    def command(self) -> list[str]:
        """The beginning of a command line of the server's program."""
        return [*self.loader, str(self.server)]


@dataclass(frozen=True)
class Failure:
    """What is known about a server that did not start or that died."""

    # The end of its log since this start.
    log: str
    exit_status: int | None
    place: Place
    # What the experiment declared, by normal name.
    declared: Mapping[str, str]
    binaries: Binaries
    # The product's name for people.
    title: str = "MariaDB"
    # The lines of the log that are errors.
    errors: Sequence[str] = ()
    # The system account that the server runs under.
    user: str = ""


Explanation = Callable[[re.Match[str], Failure], ServerProblem]
# The first pattern that the log matches explains a failure.
Patterns = Sequence[tuple[re.Pattern[str], Explanation]]


@dataclass(frozen=True)
class Options:
    """What goes into a generated configuration, in the order in which the last value wins."""

    # Limits and switches that only serve the harness.
    harness: Mapping[str, str]
    # The user's own file, as it is.
    config: str
    # What the experiment declares, rendered.
    declared: Mapping[str, str]


class Product(ABC):
    """One database product."""

    name: ClassVar[str]
    # Its name for people.
    title: ClassVar[str]
    # The engine's protocol: `target.protocol` of a plan.
    protocol: ClassVar[str]
    # Names of the server program, and of the program that creates data directories.
    programs: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]]
    # Signals for a clean stop, and for a stop whose data are discarded.
    stop_signal: ClassVar[int] = signal.SIGTERM
    kill_signal: ClassVar[int] = signal.SIGKILL
    # Options dbdyno sets itself, each with the reason; declaring one is a mistake.
    reserved: ClassVar[Mapping[str, str]]
    # Options that determine the data files; a variant that sets one needs its own snapshot.
    init_options: ClassVar[frozenset[str]]
    # Settings under which snapshots are loaded, the same for all variants.
    neutral: ClassVar[Mapping[str, str | int]]
    # What the server's log says when a start fails.
    patterns: ClassVar[Patterns]
    # Arguments with which the server's program prints its version.
    version_arguments: ClassVar[Sequence[str]] = ("--version",)
    # Part of what it prints then, which other products do not print.
    version_mark: ClassVar[str]
    # The variable with the version of a running server.
    version_variable: ClassVar[str] = "version"
    # Files and folders of a data directory that the next start creates again.
    transient: ClassVar[frozenset[str]]

    @abstractmethod
    def binaries(self, basedir: Path | None) -> Binaries:
        """The programs. Raises ServerProblem with the package to install when there are none."""

    def version(self, binaries: Binaries) -> str:
        """The version line of the server's program. Raises ServerProblem.

        For example "mariadbd Ver 10.11.6-MariaDB for debian-linux-gnu on x86_64".
        """
        try:
            answer = subprocess.run(
                [*binaries.command(), *self.version_arguments],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServerProblem(
                f"{binaries.server} cannot be run: {error}", "check server.basedir"
            ) from error
        text = " ".join(answer.stdout.replace(str(binaries.server), binaries.server.name).split())
        if answer.returncode != 0 or not self.is_named(text):
            raise ServerProblem(
                f"{binaries.server} is not a {self.title} server: it prints "
                f"{(text or answer.stderr.strip())[:200]!r}",
                f"name a folder that holds {self.title} as server.basedir, or another product",
            )
        return text

    def is_named(self, version: str) -> bool:
        """Whether the version that a program prints is a server of this product."""
        return self.version_mark in version

    def socket_name(self, port: int) -> str:  # noqa: ARG002 — only PostgreSQL's depends on the port.
        """The name of its unix socket."""
        return "server.sock"

    def rendered(self, name: str, value: configuration.Value) -> str:
        """A declared value as the server wants it. Raises ServerProblem for what no file can hold."""
        return configuration.rendered(name, value)

    def file_options(self, text: str) -> dict[str, str]:
        """The options of the user's own file, by normal name."""
        return configuration.file_options(text)

    def listed(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """The declared variables that go into the generated file."""
        return options

    @abstractmethod
    def harness(self, open_files: int) -> Mapping[str, str]:
        """Limits and switches that only serve the harness, for a process that may open that many files."""

    @abstractmethod
    def files(self, place: Place, options: Options, load: Address, admin_password: str) -> Mapping[Path, str]:
        """The files that a start reads, written before it: the configuration, with where this server keeps
        things and where it listens, and what makes the accounts.
        """

    @abstractmethod
    def initialise(self, binaries: Binaries, place: Place, options: Mapping[str, str]) -> Sequence[str]:
        """The command that makes an empty data directory."""

    @abstractmethod
    def command(self, binaries: Binaries, place: Place, arguments: Sequence[str]) -> Sequence[str]:
        """The command that starts the server."""

    @abstractmethod
    def admin(self, place: Place, password: str) -> AdminConnection:
        """An administrative connection that the load does not compete with."""

    @abstractmethod
    def ready(self, admin: AdminConnection, load: Address) -> None:
        """Make the load's schema and account on a new server, unless a file of `files` did."""

    @abstractmethod
    def settle(self, admin: AdminConnection, database: str) -> None:
        """Finish background work on freshly loaded data: statistics, purge."""

    def before_snapshot(self, admin: AdminConnection) -> None:  # noqa: B027 — not every product needs it.
        """Prepare the clean stop after which a snapshot is taken."""

    @abstractmethod
    def status(self, admin: AdminConnection) -> Mapping[str, str]:
        """Counters and gauges by name, complete."""

    @abstractmethod
    def variables(self, admin: AdminConnection) -> Mapping[str, str]:
        """Effective settings by name, complete."""

    def units(self, admin: AdminConnection) -> Mapping[str, str]:  # noqa: ARG002 — most settings are numbers of one.
        """The unit of settings that are written without one, by name."""
        return {}

    def origins(self, admin: AdminConnection) -> Mapping[str, str]:  # noqa: ARG002 — not every server says.
        """Where the settings that are no defaults come from, by name."""
        return {}

    def release(self, variables: Mapping[str, str]) -> str:
        """The version of the running server."""
        return variables.get(self.version_variable, "")

    @abstractmethod
    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> Mapping[str, str]:
        """What identifies the data permanently, where the product has that."""

    @abstractmethod
    def data_bytes(self, admin: AdminConnection, database: str) -> int | None:
        """Bytes of a database, indexes included, as the server reports."""

    def startup_error(self, log: str) -> str:  # noqa: ARG002 — not every server starts without it.
        """An error in the log of a server that started without something that the variant declares."""
        return ""

    @staticmethod
    @abstractmethod
    def error_lines(log: str) -> list[str]:
        """The lines of a log that are errors, in order, without time stamps."""
