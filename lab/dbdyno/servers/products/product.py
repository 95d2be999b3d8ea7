"""A database product: what differs between products when dbdyno runs a private server.

Each product's module implements `Product`; `PRODUCTS` in `declaration` lists them. `kinds.local` uses this
interface to start, copy and stop the servers of all products.
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
    # A second port that the load does not use; 0 if the product has none.
    admin_port: int
    # The address that the server listens on, and the address from which its clients connect ("%" for any).
    listens: str = "127.0.0.1"
    clients: str = "127.0.0.1"

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.directory / "data"

    @property
    def temporary(self) -> Path:
        """The directory for temporary tables and files."""
        return self.directory / "tmp"

    @property
    def option_file(self) -> Path:
        """The generated configuration."""
        return self.directory / "server.cnf"

    @property
    def init_file(self) -> Path:
        """Statements for the next start, with passwords; removed as soon as the server answers."""
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
    # The folder that the user declared; None for programs installed on this machine.
    basedir: Path | None
    # Command that starts the programs of an unpacked root: the dynamic loader of that root. Empty elsewhere.
    loader: tuple[str, ...] = ()
    # Options without which these programs do not find their own files.
    options: tuple[str, ...] = ()
    # Whether the programs can run directly on this machine; those of an image cannot.
    runnable: bool = True

    def command(self) -> list[str]:
        """The beginning of a command line that runs the server's program."""
        return [*self.loader, str(self.server)]


@dataclass(frozen=True)
class Failure:
    """What is known about a server that did not start or that died."""

    # The end of the log, since this start.
    log: str
    exit_status: int | None
    place: Place
    # The options that the experiment declares, by normal name.
    declared: Mapping[str, str]
    binaries: Binaries
    # The product's name in messages.
    title: str = "MariaDB"
    # The lines of the log that are errors.
    errors: Sequence[str] = ()
    # The system account that the server runs under.
    user: str = ""


Explanation = Callable[[re.Match[str], Failure], ServerProblem]
# Patterns for the log of a failed server; the first one that matches gives the explanation.
Patterns = Sequence[tuple[re.Pattern[str], Explanation]]


@dataclass(frozen=True)
class Options:
    """The options of a generated configuration, in order of precedence: a later group overrides an earlier
    one.
    """

    # Limits and switches that dbdyno sets, such as the number of connections.
    set_by_dbdyno: Mapping[str, str]
    # The content of the user's configuration file, unchanged.
    config: str
    # The declared variables in the server's syntax.
    declared: Mapping[str, str]


class Product(ABC):
    """One database product."""

    name: ClassVar[str]
    # The product's name in messages.
    title: ClassVar[str]
    # The protocol's name in a plan (`target.protocol`).
    protocol: ClassVar[str]
    # Names of the server program, and of the program that creates data directories.
    programs: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]]
    # Signal for a clean stop, and signal for a stop after which the data are discarded.
    stop_signal: ClassVar[int] = signal.SIGTERM
    kill_signal: ClassVar[int] = signal.SIGKILL
    # Options that dbdyno sets itself, each with the reason; a variant must not declare them.
    reserved: ClassVar[Mapping[str, str]]
    # Options that determine the data files; a variant that sets one needs its own snapshot.
    init_options: ClassVar[frozenset[str]]
    # Settings under which snapshots are loaded, the same for all variants.
    neutral: ClassVar[Mapping[str, str | int]]
    # Explanations of failed starts, by patterns in the server's log.
    patterns: ClassVar[Patterns]
    # Arguments with which the server's program prints its version.
    version_arguments: ClassVar[Sequence[str]] = ("--version",)
    # A part of that output that no other product prints.
    version_mark: ClassVar[str]
    # The variable with the version of a running server.
    version_variable: ClassVar[str] = "version"
    # Files and folders of a data directory that the next start creates again.
    transient: ClassVar[frozenset[str]]

    @abstractmethod
    def binaries(self, basedir: Path | None) -> Binaries:
        """Find the product's programs. Raises ServerProblem with the package to install if they are
        missing.
        """

    def version(self, binaries: Binaries) -> str:
        """The version line that the server's program prints. Raises ServerProblem.

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
        """Whether a version line belongs to a server of this product."""
        return self.version_mark in version

    def socket_name(self, port: int) -> str:  # noqa: ARG002 — only PostgreSQL's depends on the port.
        """The file name of the unix socket."""
        return "server.sock"

    def rendered(self, name: str, value: configuration.Value) -> str:
        """A declared value in the server's syntax. Raises ServerProblem for a value that a file
        cannot hold.
        """
        return configuration.rendered(name, value)

    def file_options(self, text: str) -> dict[str, str]:
        """The options of the user's configuration file, by normal name."""
        return configuration.file_options(text)

    def listed(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """The declared variables that go into the generated file."""
        return options

    @abstractmethod
    def dbdyno_options(self, open_files: int) -> Mapping[str, str]:
        """Limits and switches that dbdyno sets, for a process that may open that many files."""

    @abstractmethod
    def files(self, place: Place, options: Options, load: Address, admin_password: str) -> Mapping[Path, str]:
        """The files that dbdyno writes before each start: the configuration, with the server's directories
        and ports, and the statements or rules for accounts.
        """

    @abstractmethod
    def initialise(self, binaries: Binaries, place: Place, options: Mapping[str, str]) -> Sequence[str]:
        """The command that creates an empty data directory."""

    @abstractmethod
    def command(self, binaries: Binaries, place: Place, arguments: Sequence[str]) -> Sequence[str]:
        """The command that starts the server."""

    @abstractmethod
    def admin(self, place: Place, password: str) -> AdminConnection:
        """An administrative connection that the load does not compete with."""

    @abstractmethod
    def ready(self, admin: AdminConnection, load: Address) -> None:
        """Create the load's schema and account on a new server, unless a file of `files` has done this."""

    @abstractmethod
    def settle(self, admin: AdminConnection, database: str) -> None:
        """Finish background work on freshly loaded data, such as statistics and purge."""

    def before_snapshot(self, admin: AdminConnection) -> None:  # noqa: B027 — not every product needs it.
        """Prepare the clean stop after which a snapshot is taken."""

    @abstractmethod
    def status(self, admin: AdminConnection) -> Mapping[str, str]:
        """Counters and gauges by name, complete."""

    @abstractmethod
    def variables(self, admin: AdminConnection) -> Mapping[str, str]:
        """Effective settings by name, complete."""

    def units(self, admin: AdminConnection) -> Mapping[str, str]:  # noqa: ARG002 — most settings are numbers of one.
        """Units of settings whose values are written without one, by name."""
        return {}

    def origins(self, admin: AdminConnection) -> Mapping[str, str]:  # noqa: ARG002 — not every server says.
        """Where settings that differ from their defaults come from, by name."""
        return {}

    def release(self, variables: Mapping[str, str]) -> str:
        """The version of the running server."""
        return variables.get(self.version_variable, "")

    @abstractmethod
    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> Mapping[str, str]:
        """What identifies the data permanently, if the product has that."""

    @abstractmethod
    def data_bytes(self, admin: AdminConnection, database: str) -> int | None:
        """Bytes of a database, indexes included, as the server reports them."""

    def startup_error(self, log: str) -> str:  # noqa: ARG002 — not every server starts without it.
        """An error in the log of a server that started without something that the variant declares; empty if
        none.
        """
        return ""

    @staticmethod
    @abstractmethod
    def error_lines(log: str) -> list[str]:
        """The lines of a log that are errors, in order, without time stamps."""
