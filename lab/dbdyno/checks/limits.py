"""P07: the limits of server and client must suffice for the highest load.

Each connection needs a part of a limit, from which follow the highest number of connections that fits, and
the limit that would suffice.
"""

from __future__ import annotations

import math
import resource
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dbdyno.checks.connections import server_connections
from dbdyno.checks.register import Context, Moment, check, make_finding
from dbdyno.checks.settings import declared_settings
from dbdyno.experiment.model import Experiment, ScriptWorkload, Variant, Workload
from dbdyno.experiment.quantities import number
from dbdyno.experiment.sql_reading import dialect_of
from dbdyno.finding import Finding
from dbdyno.run.description import describe
from dbdyno.servers.products.declaration import PRODUCTS
from dbdyno.text import Text, compose, compose_count, join, mark

# A fix where dbdyno starts the server.
IN_EXPERIMENT = mark("Set {name} = {value} in [variant.server.variables]")
# Share of a limit that the load may use; the rest is for the server itself and for other clients.
USABLE = Fraction(9, 10)

_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")

# Status counters of the prepared statements and connections that clients hold on the server.
_HELD_BY_CLIENTS = ("Prepared_stmt_count", "Threads_connected", "pg_stat_activity.client_backends")


@check(
    "P07",
    "Limits suffice for the highest load",
    Moment.DESIGN,
    Moment.READY,
    in_sweep=(Moment.DESIGN, Moment.READY),
    caveat=mark("connections or statements are near a limit"),
)
def limits_of_highest_load(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds limits that are too low for the highest number of connections.

    Catches sweeps whose last points could not run as described. A published benchmark planned 500 connections
    x 46 prepared statements = 23,000, but 356 connections reach the limit of 16,382; another benchmark
    reached the limit and switched prepared statements off without reporting it.

    Rule: at the highest number of connections, prepared statements, connections, open tables, open files,
    local ports and the client's own files must each need at most 90 % of their limit, including what
    other clients and background loads use. Otherwise the finding is a stop, which names the highest number of
    connections that fits and the limit that would suffice. Before a server runs, the check uses the limits
    that the experiment declares.
    """
    if moment is Moment.DESIGN:
        for variant in context.experiment.variants:
            declared, protocol = declared_settings(variant), dialect_of(variant.server).protocol
            for workload in context.experiment.workloads_of(variant):
                demand = _demand(context.experiment, workload, protocol, variant)
                limits = _CAPACITIES[protocol](declared, demand, {}, started=True)
                yield from _limit_findings(limits, demand, workload, variant.name)
        connections = max(point.connections for point in context.experiment.load.points())
        yield from _limit_findings(_client_limits(context), Demand(connections, 0, 0), None)
        return
    if context.description is None:
        return
    in_use = _held_by_clients(context)
    protocol = PRODUCTS[context.description.product].protocol
    for workload in context.workloads:
        demand = _demand(context.experiment, workload, protocol, context.variant)
        started = context.variant is None or context.variant.server.is_private
        limits = _CAPACITIES[protocol](context.description.variables, demand, in_use, started=started)
        yield from _limit_findings(limits, demand, workload)


def _demand(experiment: Experiment, workload: Workload, protocol: str, variant: Variant | None) -> Demand:
    connections = max(point.connections for point in experiment.load.points())
    prepared = describe(experiment, workload, protocol, variant).prepared_per_connection
    if variant is not None:
        connections = server_connections(variant, connections)
    loads = () if isinstance(workload, ScriptWorkload) else workload.background
    return Demand(
        connections,
        workload.table_count,
        prepared,
        sum(load.connections for load in loads),
        sum(
            load.connections * describe(experiment, load, protocol, variant).prepared_per_connection
            for load in loads
        ),
    )


def _held_by_clients(context: Context) -> Mapping[str, int]:
    """The counters' current values, which include dbdyno's own administrative connection."""
    if context.server is None:
        return {}
    status = context.server.status()
    return {name: int(status[name]) for name in _HELD_BY_CLIENTS if status.get(name, "").isdigit()}


def _client_limits(context: Context) -> list[Capacity]:
    ports = None
    loads = (context.experiment.load_for(variant) for variant in context.experiment.variants)
    if any(load.transport == "tcp" for load in loads) and _PORT_RANGE.exists():
        first, last = _PORT_RANGE.read_text().split()
        ports = int(first), int(last)
    # The engine inherits this limit; `run.engine.Engine` has raised it to the hard limit.
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    background = max(
        sum(entry.connections for entry in context.experiment.backgrounds(variant, workload.title))
        for variant in context.experiment.variants
        for workload in context.experiment.workloads
    )
    return client_capacities(ports, 1 << 30 if files == resource.RLIM_INFINITY else files, background)


def _limit_findings(
    capacities: Iterable[Capacity], demand: Demand, workload: Workload | None, subject: str = ""
) -> Iterator[Finding]:
    for capacity in capacities:
        if capacity.fits(demand.connections):
            continue
        need, largest = capacity.required(demand.connections), capacity.max_connections()
        of_workload = compose(" of {title}", title=workload.title) if workload is not None else ""
        parts = (
            [compose("{per_connection} each", per_connection=capacity.per_connection)]
            if capacity.per_connection > 1
            else []
        )
        parts += [compose("{fixed:,} in addition", fixed=capacity.fixed)] if capacity.fixed else []
        sum_of = compose(" ({parts})", parts=join(", ", parts)) if parts else ""
        fix = capacity.fix_text(capacity.sufficient_limit(demand.connections))
        yield make_finding(
            "stop",
            compose(
                "{limit_name} is {limit:,}, of which 90 % may be used; {connections}{of_workload} need "
                "{need:,} {unit}{sum_of}. ",
                limit_name=capacity.limit_name,
                limit=capacity.limit,
                connections=_connections(demand.connections),
                of_workload=of_workload,
                need=need,
                unit=capacity.unit,
                sum_of=sum_of,
            )
            + (
                compose("The largest point that fits is {connections}", connections=_connections(largest))
                if largest
                else compose("No point fits")
            ),
            {
                "limit": capacity.limit_name,
                "value": capacity.limit,
                "need": need,
                "connections": demand.connections,
                "per_connection": capacity.per_connection,
                "largest_connections": largest,
                "value_needed": capacity.sufficient_limit(demand.connections),
                "workload": workload.title if workload is not None else None,
            },
            compose("{fix}, or lower [load] connections", fix=fix),
            subject,
        )


def _connections(number: int) -> str:
    return compose_count(number, "{number:,} connection", "{number:,} connections")


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


# The limits of servers, by protocol.
_CAPACITIES = {"mysql": server_capacities, "postgresql": postgresql_capacities}


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
