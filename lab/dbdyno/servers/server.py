"""The interface of a server of any kind; the modules of `kinds` implement it.

::

    Server.restore() -> start() -> [describe(), variables(), status(), address()] -> stop() -> close()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dbdyno.experiment.dialect import DIALECTS, Dialect
from dbdyno.experiment.model import ConnectionSettings
from dbdyno.experiment.server import Location, location
from dbdyno.finding import FreeForm
from dbdyno.passwords import VARIABLE as PASSWORD_VARIABLE
from dbdyno.problem import Problem
from dbdyno.server_record import ServerRecord

PASSWORD_FIX = (
    f"put it into the variable {PASSWORD_VARIABLE}, or into a file (in an experiment: password_file in "
    "[variant.server]; dbdyno run: --password-file)"
)


class ServerProblem(Problem):
    """A problem with a server that the user can fix."""


class StatementRefused(ServerProblem):
    """A statement that a server that answers did not accept."""


class MachineProblem(ServerProblem):
    """A problem around a server for which the server is not responsible: the disk, a port in use, or a
    command of the user.
    """


def combine_problems(problems: Sequence[ServerProblem], subject: str) -> ServerProblem:
    """Several problems as one, each with its fix; the exit code is the highest of all."""
    several = len(problems) > 1
    sentences = [problem.with_fix if several else problem.text for problem in problems]
    fix = "" if several else problems[0].fix
    return ServerProblem(f"{subject}: " + "; ".join(sentences), fix, max(p.exit_code for p in problems))


@dataclass(frozen=True)
class Address:
    """How the load reaches the server: an ordinary account without administrative privileges."""

    host: str
    port: int
    unix_socket: str | None
    user: str
    database: str
    # Plans, logs and repr() never contain the password. The engine reads it from the environment variable
    # that `target()` names.
    password: str = field(repr=False, default="")

    # Further hosts and ports. TCP connections use `host` and these in turn.
    others: tuple[tuple[str, int], ...] = ()
    connect: ConnectionSettings = field(default_factory=ConnectionSettings)
    # The protocol: "mysql" or "postgresql".
    protocol: str = "mysql"

    PASSWORD_VARIABLE = PASSWORD_VARIABLE

    @property
    def dialect(self) -> Dialect:
        """The SQL of its protocol."""
        return DIALECTS[self.protocol]

    @property
    def schema(self) -> str:
        """The schema of its tables as an expression of SQL."""
        return "current_schema()" if self.dialect.has_schemas else self.dialect.literal(self.database)

    @property
    def location(self) -> Location:
        """Server and database, without the account and how to connect, as `ServerSpec.data_location`."""
        return location(((self.host, self.port), *self.others), self.unix_socket, self.database)

    def target(self, transport: str = "tcp") -> dict[str, Any]:
        """The `target` of an engine plan; `transport` is "tcp" or "unix"."""
        if transport == "unix" and self.unix_socket:
            endpoints: list[dict[str, Any]] = [{"unix": {"path": self.unix_socket}}]
        else:
            hosts = ((self.host, self.port), *self.others)
            endpoints = [{"tcp": {"host": host, "port": port}} for host, port in hosts]
        return {
            "protocol": self.protocol,
            "endpoints": endpoints,
            "user": self.user,
            "password": {"env": self.PASSWORD_VARIABLE} if self.password else None,
            "database": self.database,
            **self.connect.plan(),
        }

    def environment(self) -> dict[str, str]:
        """The environment variables that the engine needs."""
        return {self.PASSWORD_VARIABLE: self.password} if self.password else {}


@dataclass(frozen=True)
class Description:
    """Version, identity and configuration of a server. Stored with every trial."""

    product: str
    version: str
    # datadir, socket, port, pid, start_unix_us for private servers; uuid and hostname if the server has them.
    identity: FreeForm
    # Settings that the experiment declares, as text.
    declared: Mapping[str, str]
    # Options that dbdyno sets, equal in all variants.
    set_by_dbdyno: Mapping[str, str]
    # SHOW GLOBAL VARIABLES, or every setting of pg_settings; complete.
    variables: Mapping[str, str]
    # Units of variables whose values are plain numbers, such as 8kB.
    units: Mapping[str, str] = field(default_factory=dict)
    # The source of each variable that differs from its default, such as a file, if the server reports it.
    origins: Mapping[str, str] = field(default_factory=dict)
    # How the server was built, such as its compiler, as far as it says.
    build: Mapping[str, str] = field(default_factory=dict)
    # Bytes of the load's database, indexes included; None if the server does not report it.
    data_bytes: int | None = None
    # Facts about the machine on which the server runs.
    host: FreeForm = field(default_factory=dict)
    # What the server does not report, by the names of `unreported`, and its answer to dbdyno's question.
    unreported: Mapping[str, str] = field(default_factory=dict)

    def record(self) -> ServerRecord:
        """The part of server.json that describes the server, without its counters."""
        return ServerRecord(
            product=self.product,
            version=self.version,
            identity=self.identity,
            declared=self.declared,
            set_by_dbdyno=self.set_by_dbdyno,
            variables=self.variables,
            origins=self.origins,
            build=self.build,
            data_bytes=self.data_bytes,
            host=self.host,
            unreported=self.unreported,
        )


class Server(ABC):
    """One server of one variant."""

    variant: str
    # Whether dbdyno started the server. Only then may dbdyno change its global settings, and only while it
    # loads data.
    private: ClassVar[bool] = False
    # Environment variables that hold passwords; the user's commands run without them.
    secrets: Collection[str] = ()
    # Messages of the last start for the user.
    notes: Sequence[str] = ()

    @abstractmethod
    def restore(self) -> None:
        """Restore the data of the stopped server from its snapshot. Does nothing if it has no snapshot."""

    @abstractmethod
    def start(self) -> None:
        """Start the server and wait until it answers. Raises ServerProblem with the errors in the server's
        log.
        """

    @abstractmethod
    def finish_background_work(self, tables: Sequence[str]) -> None:
        """Finish background work on freshly loaded data, such as statistics and vacuum, if the account may.

        `tables` are the SQL names of the loaded tables; on a remote server dbdyno changes no other tables.
        """

    def change_data(self, after: Sequence[str], undo: Sequence[str]) -> None:
        """Execute statements on tables that dbdyno has not created, once until `stop`, which undoes them.
        Raises ServerProblem.
        """
        raise NotImplementedError("a server that dbdyno starts has no such tables")

    @abstractmethod
    def stop(self, *, clean: bool) -> None:
        """Stop the server; `clean=False` kills a server whose data will be discarded. Idempotent."""

    @abstractmethod
    def close(self) -> None:
        """Stop the server if it runs, and remove all its files. Idempotent; safe after any failure."""

    @abstractmethod
    def address(self) -> Address:
        """The server's own address, and the account that the load uses."""

    def load_address(self) -> Address:
        """The address that the load uses: that of the server's proxy, if it has one."""
        return self.address()

    @abstractmethod
    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run an administrative statement on a connection that the load cannot block."""

    @abstractmethod
    def is_silent(self) -> bool:
        """Whether the running server answers no login any more; a refusal is an answer."""

    @abstractmethod
    def describe(self) -> Description:
        """Identity and configuration, as the running server reports them."""

    @abstractmethod
    def variables(self) -> Mapping[str, str]:
        """SHOW GLOBAL VARIABLES, complete."""

    @abstractmethod
    def status(self) -> Mapping[str, str]:
        """SHOW GLOBAL STATUS."""

    def process(self) -> Mapping[str, float]:
        """Resource use of the server's processes since the server started, by the names of
        `usage.Usage.read`; empty if dbdyno cannot read it.
        """
        return {}

    def spent(self) -> Mapping[str, float]:
        """The parts `cpu_s` and `write_bytes` of `process`, which take less time to read; empty if dbdyno
        cannot read them.
        """
        return {}

    def watch(self) -> None:
        """Record the resource use of threads that may end soon; called repeatedly during the load."""
        return

    def host(self) -> Mapping[str, float]:
        """Counters of the server's machine since its boot, by the names of `usage.host`; empty if dbdyno
        cannot read them.
        """
        return {}
