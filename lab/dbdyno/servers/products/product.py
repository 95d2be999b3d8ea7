"""The interface of a database product, which `kinds.local` uses to run private servers of any product; and
why a server failed, as its log says (`diagnose`), with the explanations that products share.

Each product has a module with a class that implements `Product`; `PRODUCTS` in `declaration` lists them.
"""

from __future__ import annotations

import difflib
import functools
import re
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dbdyno.servers import ports
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.server import Address, MachineProblem, ServerProblem
from dbdyno.text import Text, compose, join

# The account of dbdyno's administrative connections to private servers.
ADMIN_USER = "dbdyno_admin"
# Why a variant must not set some options.
PRIVATE = "dbdyno gives every private server its own"

# Of a declared variable.
Value = str | int | float | bool

# What is quoted of a log without a known error.
_LINES_QUOTED = 6
_CHARACTERS_QUOTED = 400
# Maximum seconds for a program to list its options.
_LIST_S_MAX = 30


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
    product: Product
    # The system account under which the server runs.
    user: str = ""

    @property
    def title(self) -> str:
        """The product's name in messages."""
        return self.product.title

    @functools.cached_property
    def errors(self) -> Sequence[str]:
        """The error lines of the log."""
        return self.product.error_lines(self.log)


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

    def text(self, place: Mapping[str, str], literal: Callable[[str], str], section: str = "") -> str:
        """The complete generated file. It is read from top to bottom and the last value wins, so `place`, the
        server's directories and ports, keeps it private.

        `literal` formats a value, and `section` is the header of each group of options.
        """

        def group(title: str, options: Mapping[str, str]) -> list[str]:
            settings = (f"{name} = {literal(value)}" for name, value in options.items())
            return [f"# {title}", *filter(None, [section]), *settings, ""]

        lines = [
            *group("Options that dbdyno sets, equal in all variants", self.set_by_dbdyno),
            *(["# Your file (`config`), unchanged", self.config.rstrip(), ""] if self.config else []),
            *group("Options that the experiment declares", self.declared),
            *group("Paths and ports of this server", place),
        ]
        return "\n".join(lines)


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
    # Limits each statement of a session to a minute.
    time_limit: ClassVar[str]
    # The variable with the size of the cache, and what texts call the cache.
    cache_variable: ClassVar[str]
    cache_title: ClassVar[str]
    # Defaults that guarantee less than those of the other products with its protocol.
    defaults: ClassVar[Mapping[str, str]] = {}

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
        # seekdb writes it to its standard error.
        output = answer.stdout or answer.stderr
        text = " ".join(output.replace(str(binaries.server), binaries.server.name).split())
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

    @abstractmethod
    def format_value(self, name: str, value: Value) -> str:
        """A declared value in the server's syntax. Raises ServerProblem if the syntax cannot express it."""

    @abstractmethod
    def file_options(self, text: str) -> dict[str, str]:
        """The options of the user's configuration file, by normalized name; if a name occurs more than once,
        the last value wins.
        """

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

    def read_plan(self, admin: AdminConnection, sql: str) -> Plan:
        """The plan of a statement without parameters. Raises ServerProblem if the server rejects it, or
        explains it in another form than this product.
        """
        try:
            return self.plan(admin, sql)
        except (ValueError, TypeError, LookupError) as error:
            raise ServerProblem(f"the server's plan has another form than that of {self.name}") from error

    @abstractmethod
    def plan(self, admin: AdminConnection, sql: str) -> Plan:
        """What `read_plan` returns. Also raises ValueError, TypeError and LookupError for another form."""

    def cpu_count(self, variables: Mapping[str, str], origins: Mapping[str, str]) -> int | None:  # noqa: ARG002 — optional.
        """The CPUs of the server's machine, if its settings tell them."""
        return None

    def startup_error(self, log: str) -> str:  # noqa: ARG002 — optional.
        """The error in the log of a server that started but ignored a declared setting; empty if there is
        none.
        """
        return ""

    @staticmethod
    @abstractmethod
    def error_lines(log: str) -> list[str]:
        """The error lines of a log in order, without time stamps."""


def diagnose(failure: Failure) -> ServerProblem:
    """Why a server did not start or why it died: the explanation of the product's first pattern that matches
    the log; without a match, the log's errors.
    """
    for pattern, explain in failure.product.patterns:
        if match := pattern.search(failure.log):
            return explain(match, failure)
    quoted = "; ".join(failure.errors[-_LINES_QUOTED:])
    if not quoted:
        text = " / ".join(line for line in failure.log.splitlines() if line.strip())[-_CHARACTERS_QUOTED:]
        quoted = f"its log has no error and ends with: {text}" if text else "its log is empty"
    status = "" if failure.exit_status is None else f" (exit status {failure.exit_status})"
    return ServerProblem(
        f"the {failure.title} server ended{status}: {quoted}", "fix the reported problem", exit_code=4
    )


def unknown_names(names: Sequence[str], known_names: Collection[str], failure: Failure) -> ServerProblem:
    """Names that the server does not know, each with the most similar known name, if any."""
    parts = []
    for name in names:
        similar = difflib.get_close_matches(name, known_names, n=1, cutoff=0.75)
        parts.append(f"{name!r}" + (f" (did you mean {similar[0]!r}?)" if similar else ""))
    word = "variable" if len(parts) == 1 else "variables"
    return ServerProblem(
        f"this {failure.title} server does not know the {word} {', '.join(parts)}",
        "correct or remove the setting in the variant's variables, config or arguments",
    )


def refused_value(failure: Failure, name: str, value: str, fix: str = "") -> ServerProblem:
    """A value that the server does not accept for a variable."""
    return ServerProblem(
        f"this {failure.title} server refuses the value {value!r} for {name!r}",
        fix or "see the server's manual for the accepted values",
    )


def list_options(failure: Failure, *arguments: str) -> str:
    """The options that the server's program lists when called with `arguments`; empty if the call fails."""
    if not failure.binaries.runnable:
        return ""
    try:
        answer = subprocess.run(
            [*failure.binaries.command(), *arguments],
            capture_output=True,
            text=True,
            timeout=_LIST_S_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout


def explanation(text: str, fix: str) -> Explanation:
    """An explanation whose text needs only the groups of its pattern, and {title}, the product's name."""

    def explain(match: re.Match[str], failure: Failure) -> ServerProblem:
        return ServerProblem(text.format(title=failure.title, **match.groupdict()), fix)

    return explain


def port_in_use(_: re.Match[str], failure: Failure) -> ServerProblem:
    """Another program uses the port."""
    return ports.port_in_use(failure.place.port)


def disk_full(_: re.Match[str], failure: Failure) -> ServerProblem:
    """The file system is full."""
    return MachineProblem(
        f"no space left for the {failure.title} server's files in {failure.place.directory}: "
        + "; ".join(failure.errors[:2]),
        "free some space or choose another results directory",
        exit_code=4,
    )


def permission_denied(_: re.Match[str], failure: Failure) -> ServerProblem:
    """The server's user has no permission for a file."""
    return ServerProblem(
        f"the {failure.title} server, which runs as {failure.user}, may not read or write a file: "
        + "; ".join(failure.errors[:2]),
        "give that user access to the files that the experiment names, or choose another results directory",
    )


@dataclass(frozen=True)
class Access:
    """How the server reads one table."""

    table: str
    # The server's name of the access method: "ALL", "ref", "Index Scan".
    method: str
    index: str | None
    # The server's estimate of rows examined, or of rows returned if it shows only that.
    rows: int
    # Whether the access reads every row of the table, or every entry of an index.
    is_full_scan: bool
    # Whether it reads the index alone, which has all columns that the statement needs.
    is_covering: bool = False

    def is_as(self, expected: str) -> bool:
        """Whether it is as a statement's `access` says: `scan`, or an index, which may be `,covering`."""
        if expected == "scan":
            return self.is_full_scan
        index, _, covering = expected.partition(",")
        names = ("PRIMARY", f"{self.table}_pkey") if index == "primary" else (index,)
        return self.index in names and not self.is_full_scan and (self.is_covering or not covering)

    def text(self) -> Text:
        """Table, access method and index."""
        if self.index:
            return compose(
                "{table} by {method} on {index}", table=self.table, method=self.method, index=self.index
            )
        return compose("{table} by {method}", table=self.table, method=self.method)


@dataclass(frozen=True)
class Plan:
    """How the server executes a statement."""

    accesses: tuple[Access, ...]
    # Type conversions that prevent the use of an index, as the server describes them.
    conversions: tuple[str, ...] = ()

    def text(self) -> Text:
        """The accesses of all tables."""
        return (
            join(", ", [access.text() for access in self.accesses]) if self.accesses else compose("no table")
        )
