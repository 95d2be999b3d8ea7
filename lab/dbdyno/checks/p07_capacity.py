"""P07: the limits of server and client must suffice for the highest load."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from dbdyno.checks.capacities import (
    Capacity,
    Demand,
    client_capacities,
    postgresql_capacities,
    server_capacities,
)
from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.declarations import settings
from dbdyno.checks.p25_proxy import server_connections
from dbdyno.experiment.model import Experiment, ScriptWorkload, Variant, Workload
from dbdyno.experiment.sql_reading import protocol_of
from dbdyno.finding import Finding
from dbdyno.run.description import describe
from dbdyno.text import compose, compose_count, join, mark

_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")

# Status counters of the prepared statements and connections that clients hold on the server.
_IN_USE = ("Prepared_stmt_count", "Threads_connected", "pg_stat_activity.client_backends")


def find(moment: Moment, context: Context) -> Iterator[Finding]:
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
            declared = settings(variant)
            for workload in context.experiment.workloads_of(variant):
                demand = _demand(context.experiment, workload, protocol_of(variant.server), variant)
                limits = _capacity_function(variant.server.product)(declared, demand, {}, started=True)
                yield from _findings(limits, demand, workload, variant.name)
        connections = max(point.connections for point in context.experiment.load.points())
        yield from _findings(_client(context), Demand(connections, 0, 0), None, "")
        return
    if context.description is None:
        return
    in_use = _in_use(context)
    for workload in context.workloads:
        protocol = _protocol(context.description.product)
        demand = _demand(context.experiment, workload, protocol, context.variant)
        started = context.variant is None or context.variant.server.is_private
        capacities = _capacity_function(context.description.product)
        limits = capacities(context.description.variables, demand, in_use, started=started)
        yield from _findings(limits, demand, workload, context.subject)


def _capacity_function(product: str | None) -> Callable[..., list[Capacity]]:
    return postgresql_capacities if product == "postgresql" else server_capacities


def _protocol(product: str) -> str:
    return "postgresql" if product == "postgresql" else "mysql"


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
        sum(one.connections for one in loads),
        sum(
            one.connections * describe(experiment, one, protocol, variant).prepared_per_connection
            for one in loads
        ),
    )


def _in_use(context: Context) -> Mapping[str, int]:
    """The counters' current values, which include dbdyno's own administrative connection."""
    if context.server is None:
        return {}
    status = context.server.status()
    return {name: int(status[name]) for name in _IN_USE if status.get(name, "").isdigit()}


def _client(context: Context) -> list[Capacity]:
    ports = None
    loads = (context.experiment.load_for(variant) for variant in context.experiment.variants)
    if any(load.transport == "tcp" for load in loads) and _PORT_RANGE.exists():
        first, last = _PORT_RANGE.read_text().split()
        ports = int(first), int(last)
    # The engine inherits this limit; `run.engine.Engine` has raised it to the hard limit.
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    background = max(
        sum(one.connections for one in context.experiment.backgrounds(variant, workload.title))
        for variant in context.experiment.variants
        for workload in context.experiment.workloads
    )
    return client_capacities(ports, 1 << 30 if files == resource.RLIM_INFINITY else files, background)


def _findings(
    capacities: Iterable[Capacity], demand: Demand, workload: Workload | None, subject: str
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
        yield Finding(
            code="P07",
            level="stop",
            text=compose(
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
            fix=compose("{fix}, or lower [load] connections", fix=fix),
            evidence={
                "limit": capacity.limit_name,
                "value": capacity.limit,
                "need": need,
                "connections": demand.connections,
                "per_connection": capacity.per_connection,
                "largest_connections": largest,
                "value_needed": capacity.sufficient_limit(demand.connections),
                "workload": workload.title if workload is not None else None,
            },
            subject=subject,
        )


def _connections(number: int) -> str:
    return compose_count(number, "{number:,} connection", "{number:,} connections")


CHECK = Check(
    "P07",
    "Limits suffice for the highest load",
    frozenset({Moment.DESIGN, Moment.READY}),
    find,
    caveat=mark("connections or statements are near a limit"),
)
