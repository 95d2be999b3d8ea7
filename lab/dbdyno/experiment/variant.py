"""What a `[[variant]]` changes besides its server and workloads: the session, the load, the data, and a
proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dbdyno.experiment.base import CpuList, Duration, DurationOrZero, Model, VariableValue
from dbdyno.experiment.dialect import DIALECTS, IsolationLevel
from dbdyno.experiment.quantities import variable_name
from dbdyno.experiment.server import ConnectionSettings
from dbdyno.experiment.workload import Sql

ProxyName = Literal["haproxy", "odyssey", "pgbouncer", "pgpool"]

PROXY_TITLES: Mapping[str, str] = {
    "haproxy": "HAProxy",
    "odyssey": "Odyssey",
    "pgbouncer": "PgBouncer",
    "pgpool": "Pgpool-II",
}
_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_.-]*$"


class SessionSettings(ConnectionSettings):
    """`[variant.session]`: how the load's connections are made, and what they set."""

    prepared: bool | None = None
    """Prepared statements, or statements sent as text; by default as the workload's `statements`."""
    isolation: IsolationLevel | None = None
    """Isolation level of the load's transactions, by default the server's."""
    variables: dict[Annotated[str, Field(pattern=_VARIABLE)], VariableValue] = Field(default_factory=dict)
    """Session variables, which every connection sets (SET SESSION) and P04 reads back."""
    sql: tuple[Sql, ...] = ()
    """Further statements that every new connection sends, after those of the workload; not counted."""

    @property
    def statement_mode(self) -> dict[str, str]:
        """The key `statements` of the workloads, if the session decides it."""
        return {} if self.prepared is None else {"statements": "prepared" if self.prepared else "text"}

    def connection_settings(self) -> ConnectionSettings:
        """How the connections are made."""
        return ConnectionSettings(**{name: getattr(self, name) for name in ConnectionSettings.model_fields})

    def settings(self, protocol: str) -> list[str]:
        """The statements that set the isolation level and the variables."""
        # The engine's target without a server has no dialect, and such variants set nothing.
        if self.isolation is None and not self.variables:
            return []
        dialect = DIALECTS[protocol]
        isolation = [dialect.set_isolation(self.isolation)] if self.isolation else []
        variables = (
            dialect.set_variable(variable_name(name), variable) for name, variable in self.variables.items()
        )
        return [*isolation, *variables]

    def statements(self, protocol: str) -> list[str]:
        """All statements of a new connection, in order."""
        return [*self.settings(protocol), *self.sql]


class VariantLoad(Model):
    """`[variant.load]`: the keys of `[load]` that may differ between variants. None: as in `[load]`."""

    transport: Literal["tcp", "unix"] | None = None
    """As in `[load]`, as for all keys of this table."""
    prewarm: Literal["none", "scan"] | None = None
    """Whether all tables and indexes are read before each trial."""
    reconnect_every: int | None = Field(default=None, ge=0, le=2**32 - 1)
    """Number of transactions after which a connection is closed and reopened; 0 for never."""
    think_time_s: Duration | None = None
    """Closed loop: the pause of a connection between two transactions."""
    think: Literal["constant", "exponential"] | None = None
    """Distribution of the pauses."""
    queue_limit: int | None = Field(default=None, ge=0, le=2**32 - 1)
    """Open loop: maximum number of transactions that wait for a connection."""
    on_lost: Literal["reconnect", "stop"] | None = None
    """When a connection is lost: reconnect, or end the trial."""
    give_up_s: DurationOrZero | None = None
    """Reconnect timeout."""

    def changes(self) -> dict[str, Any]:
        """The keys that the variant sets."""
        return self.model_dump(exclude_none=True)


class VariantData(Model):
    """`[variant.data]`: what the variant changes in the loaded data."""

    after: tuple[Sql, ...] = ()
    """Statements that run once after the data are loaded, such as `CREATE INDEX`; restored with the data. On
    tables that exist already they run before each group of trials, and are undone after it.
    """
    undo: tuple[Sql, ...] = ()
    """Statements that undo `after` on tables that exist already; not needed for CREATE INDEX and ADD INDEX.
    """


class Proxy(Model):
    """`[variant.proxy]`: a proxy or pooler that dbdyno starts in front of the variant's server."""

    program: ProxyName
    """The program. The load connects to it; data are loaded and checked on the server's own port."""
    settings: dict[Annotated[str, Field(pattern=r"^[a-z_][A-Za-z0-9_. -]*$")], VariableValue] = Field(
        default_factory=dict
    )
    """Settings in the words of its configuration file, such as `pool_mode`."""
    cpus: CpuList | None = None
    """CPUs to which it is pinned, by default those of the server."""
    basedir: Path | None = None
    """Folder of a program that is not on PATH: an unpacked root file system."""


class VariantSettings(Model):
    """What a variant changes, except its server and its workloads."""

    session: SessionSettings = Field(default_factory=SessionSettings)
    """How the load connects, and what its sessions set."""
    load: VariantLoad = Field(default_factory=VariantLoad)
    """Keys of `[load]` that differ in this variant."""
    data: VariantData = Field(default_factory=VariantData)
    """What the variant changes in the loaded data."""
    proxy: Proxy | None = None
    """A proxy that dbdyno starts in front of the variant's server, and that the load connects to."""


def move_connection_settings(variant: dict[str, Any]) -> dict[str, Any]:
    """A variant, as JSON, whose connection settings are those of the session: version 0.2.0 had them among
    the server's. A key that the session has too keeps the session's value.
    """
    server, session = variant.get("server"), variant.get("session", {})
    if not isinstance(server, dict) or not isinstance(session, dict):
        return variant
    settings = {key: server[key] for key in ConnectionSettings.model_fields if key in server}
    rest = {key: value for key, value in server.items() if key not in settings}
    return {**variant, "server": rest, "session": {**settings, **session}} if settings else variant
