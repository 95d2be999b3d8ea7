"""Limits of server and client that a load may reach, with the need of each connection.

P07 computes the highest number of connections that fits, and the limit that would suffice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dbdyno.experiment.quantities import number
from dbdyno.text import Text, compose, mark

# A fix where dbdyno starts the server.
IN_EXPERIMENT = mark("Set {name} = {value} in [variant.server.variables]")
# Share of a limit that the load may use; the rest is for the server itself and for other clients.
USABLE = Fraction(9, 10)


@dataclass(frozen=True)
class Capacity:
    """One limit: the load needs `fixed + per_connection x connections`, and may use 90 % of `limit`."""

    # The variable, or the limit of the operating system.
    limit_name: str
    limit: int
    # What the limit counts, in the plural, such as compose("open files").
    unit: str
    per_connection: int
    # Need that does not depend on the number of connections, including what other clients use.
    fixed: int
    # A pattern that says how to raise the limit: {name} stands for the variable, {value} for the new limit.
    fix: str

    def required(self, connections: int) -> int:
        """The part of the limit that this number of connections needs."""
        return self.fixed + self.per_connection * connections

    def fits(self, connections: int) -> bool:
        """Whether the connections fit within 90 % of the limit."""
        return self.required(connections) <= USABLE * self.limit

    def max_connections(self) -> int:
        """The maximum number of connections that fit; 0 if none fits."""
        return max(0, math.floor((USABLE * self.limit - self.fixed) / self.per_connection))

    def fix_text(self, value: int) -> Text:
        """How to raise the limit to this value."""
        return compose(self.fix, name=self.limit_name.partition(" ")[0], value=value)

    def sufficient_limit(self, connections: int) -> int:
        """The smallest limit under which the connections fit."""
        return math.ceil(self.required(connections) / USABLE)


@dataclass(frozen=True)
class Demand:
    """The resources that a workload needs at its highest load."""

    connections: int
    tables: int
    statements_per_connection: int
    # Connections and prepared statements of the background loads.
    background_connections: int = 0
    background_statements: int = 0


def server_capacities(
    limits: Mapping[str, str], demand: Demand, in_use: Mapping[str, int], *, started: bool
) -> list[Capacity]:
    """The server's limits that `limits` contains: its variables, or the declared ones.

    `in_use` counts what other clients hold, under the names of SHOW GLOBAL STATUS. If dbdyno starts
    the server (`started`), the fix is a key of the experiment, otherwise a SET GLOBAL statement.
    """
    set_global = IN_EXPERIMENT if started else mark("SET GLOBAL {name} = {value}")
    at_start = IN_EXPERIMENT if started else mark("Start the server with {name} = {value}")
    background = demand.background_connections

    rows = (
        (
            "max_prepared_stmt_count",
            compose("prepared statements"),
            demand.statements_per_connection,
            in_use.get("Prepared_stmt_count", 0) + demand.background_statements,
            set_global,
        ),
        (
            "max_connections",
            compose("connections"),
            1,
            in_use.get("Threads_connected", 0) + background,
            set_global,
        ),
        ("max_user_connections", compose("connections of one account"), 1, background, set_global),
        # A connection has one table open at a time, and each table is open once. With fewer entries the
        # server closes and opens tables all the time.
        ("table_open_cache", compose("open tables"), 1, demand.tables + background, set_global),
        # A socket per connection, a file per table, and 50 files that every server has open (logs, system
        # tablespaces).
        ("open_files_limit", compose("open files"), 1, demand.tables + 50 + background, at_start),
    )
    # For each of these variables 0 means "no limit" or "automatic".
    return [
        Capacity(name, int(limit), unit, per_connection, fixed, fix_text)
        for name, unit, per_connection, fixed, fix_text in rows
        if (limit := number(limits.get(name, ""))) and per_connection
    ]


def postgresql_capacities(
    limits: Mapping[str, str], demand: Demand, in_use: Mapping[str, int], *, started: bool
) -> list[Capacity]:
    """PostgreSQL's limits: connections except those reserved for administrators, and locks.

    A transaction of the OLTP workloads locks at most each of its tables and their two indexes. The lock table
    has room for max_locks_per_transaction x max_connections.
    """
    fix = IN_EXPERIMENT if started else mark("ALTER SYSTEM SET {name} = {value}, and a restart")

    allowed = number(limits.get("max_connections", ""))
    if not allowed:
        return []
    reserved = number(limits.get("superuser_reserved_connections", "3")) or 0
    reserved += number(limits.get("reserved_connections", "0")) or 0
    held = in_use.get("pg_stat_activity.client_backends", 0) + demand.background_connections
    capacities = [
        Capacity("max_connections", int(allowed), compose("connections"), 1, int(reserved) + held, fix)
    ]
    locks = number(limits.get("max_locks_per_transaction", ""))
    if locks:
        capacities.append(
            Capacity(
                "max_locks_per_transaction x max_connections",
                int(locks * allowed),
                compose("locks"),
                3 * demand.tables,
                0,
                fix,
            )
        )
    return capacities


def client_capacities(ports: tuple[int, int] | None, files: int, background: int = 0) -> list[Capacity]:
    """The client's limits: `ports` is the range of ephemeral ports, None if the load does not use TCP, and
    `background` the number of connections of background loads.
    """
    capacities = [
        Capacity(
            compose("open files of the client"),
            files,
            compose("sockets"),
            1,
            50 + background,
            mark("ulimit -n {value}"),
        )
    ]
    if ports is not None:
        first, last = ports
        fix = mark('Widen it to at least {value} ports, or use transport = "unix"')
        name = "net.ipv4.ip_local_port_range"
        capacities.append(Capacity(name, last - first + 1, compose("local ports"), 1, background, fix))
    return capacities
