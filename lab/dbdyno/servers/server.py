"""The interface of a server of any kind; the modules of `kinds` implement it.

::

    Server.restore() -> start() -> [describe(), variables(), status(), address()] -> stop() -> close()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dbdyno.experiment.model import Connect
from dbdyno.problem import Problem

PASSWORD_VARIABLE = "DBDYNO_PASSWORD"  # noqa: S105 — a name, not a password.
PASSWORD_FIX = (
    f"put it into the variable {PASSWORD_VARIABLE}, a file for --password-file, or type it when asked"
)


class ServerProblem(Problem):
    """Something about a server that a user can fix."""


def combine_problems(problems: Sequence[ServerProblem], subject: str) -> ServerProblem:
    """Several problems as one, each with its fix; the exit code is the highest one."""
    several = len(problems) > 1
    sentences = [p.text + (f" ({p.fix})" if p.fix and several else "") for p in problems]
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
    # Never in a plan, a log or a repr: handed to the engine through the environment variable named in
    # `target()`.
    password: str = field(repr=False, default="")

    # Further hosts and ports, which connections over TCP take in turn with the first.
    others: tuple[tuple[str, int], ...] = ()
    connect: Connect = field(default_factory=Connect)
    # What the engine speaks: "mysql" or "postgresql".
    protocol: str = "mysql"

    PASSWORD_VARIABLE = PASSWORD_VARIABLE

    def target(self, transport: str = "tcp") -> dict[str, Any]:
        """The `target` of an engine plan; `transport` is "tcp" or "unix"."""
        if transport == "unix" and self.unix_socket:
            endpoints: list[dict[str, Any]] = [{"unix": {"path": self.unix_socket}}]
        else:
            places = ((self.host, self.port), *self.others)
            endpoints = [{"tcp": {"host": host, "port": port}} for host, port in places]
        return {
            "protocol": self.protocol,
            "endpoints": endpoints,
            "user": self.user,
            "password": {"env": self.PASSWORD_VARIABLE} if self.password else None,
            "database": self.database,
            **self.connect.plan(),
        }

    def environment(self) -> dict[str, str]:
        """The variables that the engine needs in its environment."""
        return {self.PASSWORD_VARIABLE: self.password} if self.password else {}


@dataclass(frozen=True)
class Description:
    """Who the server is: version, identity, configuration. Written into every trial."""

    product: str
    version: str
    # datadir, socket, port, pid, start_unix_us for private servers; uuid, hostname where the server has
    # them.
    identity: Mapping[str, Any]
    # What the experiment declared, as text.
    declared: Mapping[str, str]
    # Limits that only serve the harness, raised alike in all variants.
    harness: Mapping[str, str]
    # SHOW GLOBAL VARIABLES, or every setting of pg_settings; complete.
    variables: Mapping[str, str]
    # The unit of variables that are written as numbers without one, such as 8kB.
    units: Mapping[str, str] = field(default_factory=dict)
    # Where variables that are no defaults come from, where the server says.
    origins: Mapping[str, str] = field(default_factory=dict)
    # Bytes of the load's database, indexes included; None where the server does not say.
    data_bytes: int | None = None
    # What is known of the machine it runs on.
    host: Mapping[str, Any] = field(default_factory=dict)


class Server(ABC):
    """One server of one variant."""

    variant: str
    # Whether dbdyno started it: only then may dbdyno change its global settings, for as long as loading
    # takes.
    private: ClassVar[bool] = False
    # Variables of the environment that hold passwords; commands of the user run without them.
    secrets: Collection[str] = ()

    @abstractmethod
    def restore(self) -> None:
        """Bring the data back to the snapshot, or do nothing where there is none. The server is stopped."""

    @abstractmethod
    def start(self) -> None:
        """Start and wait until it answers. Raises ServerProblem with the errors of the server's log."""

    @abstractmethod
    def settle(self, tables: Sequence[str]) -> None:
        """Finish background work on freshly loaded data of a running server, as far as dbdyno may.

        `tables` are those that were loaded, as SQL names them; on remote servers dbdyno touches no other.
        """

    @abstractmethod
    def stop(self, *, clean: bool) -> None:
        """Stop it; `clean=False` kills a server whose data will be thrown away. Idempotent."""

    @abstractmethod
    def close(self) -> None:
        """Stop it if need be and remove everything it left behind. Idempotent; safe after any failure."""

    @abstractmethod
    def address(self) -> Address:
        """How the load reaches it."""

    @abstractmethod
    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run an administrative statement on a connection the load does not compete for."""

    @abstractmethod
    def describe(self) -> Description:
        """Identity and configuration as the running server gives them."""

    @abstractmethod
    def variables(self) -> Mapping[str, str]:
        """SHOW GLOBAL VARIABLES, complete."""

    @abstractmethod
    def status(self) -> Mapping[str, str]:
        """SHOW GLOBAL STATUS."""

    def process(self) -> Mapping[str, float]:
        """Resource use of the server's processes since it started, by the names of `usage.Usage.read`; empty
        where it cannot be seen.
        """
        return {}

    def watch(self) -> None:
        """Count the use of threads that may end soon; called once in a while during the load."""
        return

    def host(self) -> Mapping[str, float]:
        """Counters of the server's machine since it was started, by the names of `usage.host`; empty where it
        cannot be seen.
        """
        return {}
