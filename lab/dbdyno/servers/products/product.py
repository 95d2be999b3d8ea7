"""The interface of a database product, which `kinds.local` uses to run private servers of any product.

Each product has a module with a class that implements `Product`; `PRODUCTS` in `declaration` lists them.
"""

from __future__ import annotations

import re
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    # The address that the server listens on.
    listen_address: str = "127.0.0.1"
    # The address from which its clients connect; "%" means any.
    client_address: str = "127.0.0.1"

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
        """The generated configuration file."""
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
    # The dynamic loader that must start the programs of an unpacked root, with its arguments; empty
    # elsewhere.
    loader: tuple[str, ...] = ()
    # Options that tell these programs where their own files are.
    options: tuple[str, ...] = ()
    # Whether the programs can run directly on this machine; those of an image cannot.
    runnable: bool = True

    def command(self) -> list[str]:
        """The beginning of a command line that runs the server's program."""
        return [*self.loader, str(self.server)]


@dataclass(frozen=True)
class Failure:
    """Facts about a server that did not start or that died."""

    # The end of the log, since this start.
    log: str
    exit_status: int | None
    place: Place
    # The options that the experiment declares, by normalized name.
    declared: Mapping[str, str]
    binaries: Binaries
    # The product's name in messages.
    title: str = "MariaDB"
    # The error lines of the log.
    errors: Sequence[str] = ()
    # The system account under which the server runs.
    user: str = ""


Explanation = Callable[[re.Match[str], Failure], ServerProblem]
# Patterns for the log of a failed server; the first one that matches gives the explanation.
Patterns = Sequence[tuple[re.Pattern[str], Explanation]]


@dataclass(frozen=True)
class ConfigOptions:
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
    # Options that only dbdyno may set, each with the reason; a variant must not declare them.
    reserved_options: ClassVar[Mapping[str, str]]
    # Options that determine the data files; a variant that sets one needs its own snapshot.
    init_options: ClassVar[frozenset[str]]
    # Settings of the server that loads a snapshot, the same for all variants.
    loading_options: ClassVar[Mapping[str, str | int]]
    # Explanations of failed starts, by patterns in the server's log.
    patterns: ClassVar[Patterns]
    # Arguments with which the server's program prints its version.
    version_arguments: ClassVar[Sequence[str]] = ("--version",)
    # Text in that output that only this product prints.
    version_mark: ClassVar[str]
    # The variable with the version of a running server.
    version_variable: ClassVar[str] = "version"
    # Characters that the path of its directory must not have, besides line breaks, each with the reason.
    path_separators: ClassVar[Mapping[str, str]] = {}
    # Files and folders of a data directory that the next start creates again.
    transient_files: ClassVar[frozenset[str]]

    @abstractmethod
    def binaries(self, basedir: Path | None) -> Binaries:
        """Find the product's programs. Raises ServerProblem with the package to install if they are
        missing.
        """

    def system_folders(self) -> Sequence[Path | None]:
        """The places of this machine's packages, for `binaries`; None: where programs usually are."""
        return (None,)

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
        if answer.returncode != 0 or not self.is_version_of(text):
            raise ServerProblem(
                f"{binaries.server} is not a {self.title} server: it prints "
                f"{(text or answer.stderr.strip())[:200]!r}",
                f"set server.basedir to a folder that contains {self.title}, or change server.product",
            )
        return text

    def is_version_of(self, version: str) -> bool:
        """Whether a version line belongs to a server of this product."""
        return self.version_mark in version

    def socket_name(self, port: int) -> str:  # noqa: ARG002 — only PostgreSQL needs the port.
        """The file name of the unix socket."""
        return "server.sock"

    def format_value(self, name: str, value: configuration.Value) -> str:
        """A declared value in the server's syntax. Raises ServerProblem if the syntax cannot express it."""
        return configuration.format_value(name, value)

    def file_options(self, text: str) -> dict[str, str]:
        """The options of the user's configuration file, by normalized name."""
        return configuration.file_options(text)

    def loose_options(self, text: str) -> Iterable[str]:  # noqa: ARG002 — PostgreSQL has none.
        """The options of that file that the server ignores if it does not know them, as written."""
        return ()

    def file_variables(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """The declared variables that go into the generated file."""
        return options

    @abstractmethod
    def dbdyno_options(self, open_files: int) -> Mapping[str, str]:
        """Limits and switches that dbdyno sets, for a process that may open that many files."""

    def tls_options(self, certificate: Path, key: Path) -> Mapping[str, str]:
        """The options with which the server offers TLS."""
        return {"ssl_cert": str(certificate), "ssl_key": str(key)}

    @abstractmethod
    def files(
        self, place: Place, options: ConfigOptions, load: Address, admin_password: str
    ) -> Mapping[Path, str]:
        """The files that dbdyno writes before each start: the configuration, with the server's directories
        and ports, and the statements or rules for accounts.
        """

    @abstractmethod
    def init_command(self, binaries: Binaries, place: Place, options: Mapping[str, str]) -> Sequence[str]:
        """The command that creates an empty data directory."""

    @abstractmethod
    def start_command(self, binaries: Binaries, place: Place, arguments: Sequence[str]) -> Sequence[str]:
        """The command that starts the server."""

    @abstractmethod
    def admin(self, place: Place, password: str) -> AdminConnection:
        """An administrative connection that works even if the load uses all other connections."""

    @abstractmethod
    def create_accounts(self, admin: AdminConnection, load: Address) -> None:
        """Create the load's schema and account, unless a file of `files` has created them."""

    @abstractmethod
    def finish_background_work(self, admin: AdminConnection, database: str) -> None:
        """Finish background work on freshly loaded data, such as statistics and purge."""

    def prepare_snapshot(self, admin: AdminConnection) -> None:  # noqa: B027 — not every product needs it.
        """Change settings so that a clean stop completes all background work."""

    @abstractmethod
    def status(self, admin: AdminConnection) -> Mapping[str, str]:
        """Counters and gauges by name, complete."""

    @abstractmethod
    def variables(self, admin: AdminConnection) -> Mapping[str, str]:
        """Effective settings by name, complete."""

    def units(self, admin: AdminConnection) -> Mapping[str, str]:  # noqa: ARG002 — only PostgreSQL reports units.
        """Units of settings whose values are plain numbers, by name."""
        return {}

    def origins(self, admin: AdminConnection) -> Mapping[str, str]:  # noqa: ARG002 — optional.
        """The source of each setting that differs from its default, such as a file, by name."""
        return {}

    def server_version(self, variables: Mapping[str, str]) -> str:
        """The version of the running server."""
        return variables.get(self.version_variable, "")

    @abstractmethod
    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> Mapping[str, str]:
        """Values that identify the data permanently, if the product has any."""

    def build(self, admin: AdminConnection, variables: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002 — optional.
        """How the server was built, as far as it says: its compiler, options and libraries, by name."""
        return {}

    @abstractmethod
    def data_bytes(self, admin: AdminConnection, database: str) -> int | None:
        """Bytes of a database, indexes included, as the server reports them."""

    def startup_error(self, log: str) -> str:  # noqa: ARG002 — optional.
        """The error in the log of a server that started but ignored a declared setting; empty if there is
        none.
        """
        return ""

    @staticmethod
    @abstractmethod
    def error_lines(log: str) -> list[str]:
        """The error lines of a log in order, without time stamps."""
