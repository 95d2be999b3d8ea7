"""P11: load generator and server must have separate CPUs, and no other database server may be busy."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.topology import is_local
from dbdyno.experiment.base import format_cpus, parse_cpus
from dbdyno.finding import Finding
from dbdyno.text import compose, join, mark

# Process names of database servers.
DATABASES = frozenset(
    {
        "mariadbd",
        "mysqld",
        "postgres",
        "postmaster",
        "mongod",
        "oracle",
        "sqlservr",
        "cockroach",
        "tidb-server",
    }
)

# How long other servers are observed, and the share of one CPU above which a server counts as busy.
_WATCH_S = 0.3
BUSY_SHARE = 0.05


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds CPUs that client and server share, and other database servers that are busy on this machine.

    Catches results in which the load generator takes the server's CPU time. In a published benchmark both
    shared the only CPU of the machine; in another one the other server ran on the client's machine.

    Rule: the CPU sets of client and server must not overlap; otherwise a warning says that results do not
    apply to a server with its own CPUs. Without `cpus` the set contains all CPUs, unless dbdyno divides them.
    A warning also names any other database server that uses more than 5 % of a CPU while no load runs.
    """
    if moment is Moment.DESIGN:
        yield from _overlaps(context)
    yield from _busy_servers(context)


def _overlaps(context: Context) -> Iterator[Finding]:
    available = frozenset(os.sched_getaffinity(0))
    client = context.experiment.client.cpus
    client_cpus = available if client is None else parse_cpus(client)
    sharing: dict[str, list[str]] = {}
    for variant in filter(is_local, context.experiment.variants):
        sets = (available if cpus is None else parse_cpus(cpus) for cpus in variant.cpu_sets)
        shared = client_cpus & frozenset().union(*sets)
        if shared:
            sharing.setdefault(format_cpus(shared), []).append(variant.name)
    for cpus, names in sharing.items():
        yield Finding(
            code="P11",
            level="warn",
            text=compose(
                "client and server share CPU {cpus} ({listed}): results do not transfer to a server with "
                "its own CPUs",
                cpus=cpus,
                listed=join(", ", names),
            ),
            fix=_fix(context, available),
            evidence={"cpus": cpus, "variants": names, "client_cpus": format_cpus(client_cpus)},
        )


def _fix(context: Context, available: frozenset[int]) -> str:
    """How to give client and server separate CPUs."""
    if not all(variant.server.is_private for variant in context.experiment.variants):
        return compose("Run dbdyno on another machine")
    if len(available) < 2:
        return compose("Run it on a machine with more than one CPU")
    return compose(
        "Set different [client] cpus and [variant.server] cpus, or neither: then dbdyno divides the CPUs"
    )


@dataclass(frozen=True)
class _BusyServer:
    name: str
    pid: int
    # Share of one CPU that the server used while it was observed.
    cpu_share: float


def _busy_servers(context: Context) -> Iterator[Finding]:
    busy = _busy_databases(_own_pids(context))
    if busy:
        # The text contains no measured values, so that dbdyno reports a process once and not for every group.
        names = join(
            ", ", sorted(compose("{name} (pid {pid})", name=server.name, pid=server.pid) for server in busy)
        )
        yield Finding(
            code="P11",
            level="warn",
            text=compose(
                "another database server is busy on this machine: {names}. It takes CPU time from client "
                "and server, so results do not transfer",
                names=names,
            ),
            fix=compose("Stop it while measuring, or measure on another machine"),
            evidence={
                "busy": [
                    {"name": server.name, "pid": server.pid, "cpu": round(server.cpu_share, 2)}
                    for server in busy
                ]
            },
        )


def _own_pids(context: Context) -> frozenset[int]:
    """Process ids of this program, its children, and the server under test."""
    own = psutil.Process()
    pids = {own.pid, *(child.pid for child in own.children(recursive=True))}
    if context.description is not None and isinstance(context.description.identity.get("pid"), int):
        pids.add(context.description.identity["pid"])
    return frozenset(pids)


def _busy_databases(own_pids: frozenset[int]) -> list[_BusyServer]:
    """Other database servers that use more than 5 % of a CPU while they are observed."""
    others = [
        process
        for process in psutil.process_iter(["name"])
        if process.info["name"] in DATABASES and process.pid not in own_pids
    ]
    if not others:
        return []
    before = {process: _cpu_s(process) for process in others}
    began = time.monotonic()
    time.sleep(_WATCH_S)
    elapsed_s = time.monotonic() - began
    shares = {process: (_cpu_s(process) - used) / elapsed_s for process, used in before.items()}
    return [
        _BusyServer(process.info["name"], process.pid, share)
        for process, share in sorted(shares.items(), key=lambda item: -item[1])
        if share > BUSY_SHARE
    ]


def _cpu_s(process: psutil.Process) -> float:
    """CPU time used so far; 0 for a process that has ended."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


CHECK = Check(
    "P11",
    "Load generator and server have separate CPUs",
    frozenset({Moment.DESIGN, Moment.READY}),
    find,
    caveat={
        "cpus": mark("client and server share CPU {cpus}: the result holds for this arrangement"),
        "": mark("another database server was busy on this machine"),
    },
)
