"""Checks of the machines: whether those of the servers are equal (P10), and whether CPUs (P11) and memory
(P19) suffice for client and servers.
"""

from __future__ import annotations

import math
import os
import platform
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from dbdyno.checks.register import Context, Moment, check
from dbdyno.checks.settings import declared_settings
from dbdyno.experiment.base import format_cpus, parse_cpus
from dbdyno.experiment.model import Experiment, Variant
from dbdyno.experiment.quantities import number
from dbdyno.experiment.server import size_bytes
from dbdyno.experiment.workload import ROW_BYTES
from dbdyno.finding import Finding
from dbdyno.servers.products.declaration import PRODUCTS
from dbdyno.servers.server import Description
from dbdyno.servers.url import parse_url
from dbdyno.text import compose, join, mark

# The machine for which a PostgreSQL server was built, in the answer of version().
_BUILT_FOR = re.compile(r" on ([A-Za-z0-9_]+)-")

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
# Other server -> when it was looked at last, and its CPU time then. One that has been idle since need not
# be observed again before every group.
_LAST_LOOK: dict[psutil.Process, tuple[float, float]] = {}

# Share of the memory that caches may use. A server also needs memory for connections, logs and the OS page
# cache.
CACHE_SHARE = 0.8

# Variables with the sizes of caches, which do not depend on the load.
CACHES = frozenset(product.cache_variable for product in PRODUCTS.values())

# Default of innodb_buffer_pool_size, and about that of shared_buffers.
DEFAULT_CACHE_BYTES = 128 << 20

# Files with the limits of this process's control group: CPU time and its period in microseconds (cgroups v2),
# and memory (v2 and v1).
_CPU_FILE = Path("/sys/fs/cgroup/cpu.max")
_LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@check(
    "P10",
    "Servers run on equal machines",
    Moment.READY,
    at_first_start=True,
    caveat=mark("the machines differ"),
)
def machines(
    context: Context, variant: Variant, description: Description, baseline_description: Description
) -> Iterator[Finding]:
    """Finds servers on machines that differ in place, architecture or number of CPUs.

    Catches a difference of machines that is taken for one of settings or versions. In a published benchmark
    one version ran on another operating system and another virtual machine than the other one.

    Rule: what the servers say about their machines must be the same: whether it is this machine, its
    architecture, and its CPUs as far as SQL shows them; otherwise the finding is a warning. Servers that
    dbdyno starts run on this machine. After the run the judge reports P10 too, if the machine of these
    servers (kernel, processor, CPUs, memory) has changed between trials.
    """
    baseline = context.baseline
    before, after = _machine_facts(baseline_description, baseline), _machine_facts(description, variant)
    different = [key for key, value in after.items() if key in before and before[key] != value]
    if not different:
        return
    listed = join(
        "; ",
        (
            compose("{key} {before} and {after}", key=key, before=before[key], after=after[key])
            for key in different
        ),
    )
    yield Finding(
        "P10",
        "warn",
        compose(
            "the servers of {baseline} and {name} run on different machines: {listed}. A difference between "
            "them may be one of the machines",
            baseline=baseline.name,
            name=variant.name,
            listed=listed,
        ),
        {key: {baseline.name: before[key], variant.name: after[key]} for key in different},
        variant.name,
        fix=compose("Run both servers on equal machines, or one after the other on one machine"),
    )


def _machine_facts(description: Description, variant: Variant) -> dict[str, str]:
    """What is known about the machine of a server."""
    host = description.host
    built = _BUILT_FOR.search(str(host.get("built", "")))
    built_for = host.get("architecture") or host.get("version_compile_machine") or (built and built[1])
    cpus = host.get("cpus") or PRODUCTS[description.product].cpu_count(
        description.variables, description.origins
    )
    where = compose("this machine") if is_local(variant) else compose("another machine")
    facts = {"place": where, "architecture": architecture(str(built_for or ""))}
    facts["CPUs"] = str(cpus or "")
    return {key: value for key, value in facts.items() if value}


@check(
    "P11",
    "Load generator and server have separate CPUs",
    Moment.DESIGN,
    Moment.READY,
    in_sweep=(Moment.DESIGN,),
    caveat={
        "cpus": mark("client and server share CPU {cpus}"),
        "": mark("another database server was busy"),
    },
)
def shared_cpus(moment: Moment, context: Context) -> Iterator[Finding]:
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
            fix=_fix_of_overlap(context, available),
            evidence={"cpus": cpus, "variants": names, "client_cpus": format_cpus(client_cpus)},
        )


def _fix_of_overlap(context: Context, available: frozenset[int]) -> str:
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
    process = psutil.Process()
    pids = {process.pid, *(child.pid for child in process.children(recursive=True))}
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
    watched = [process for process in others if not _has_been_idle(process)]
    before = {process: _cpu_s(process) for process in watched}
    began = time.monotonic()
    if watched:
        time.sleep(_WATCH_S)
    elapsed_s = time.monotonic() - began
    _LAST_LOOK.clear()
    _LAST_LOOK.update({process: (time.monotonic(), _cpu_s(process)) for process in others})
    shares = {process: (_cpu_s(process) - used) / elapsed_s for process, used in before.items()}
    return [
        _BusyServer(process.info["name"], process.pid, share)
        for process, share in sorted(shares.items(), key=lambda item: -item[1])
        if share > BUSY_SHARE
    ]


def _has_been_idle(process: psutil.Process) -> bool:
    """Whether the process was looked at before, and has used little CPU time since then."""
    at, used_s = _LAST_LOOK.get(process, (math.inf, 0.0))
    since_s = time.monotonic() - at
    return since_s >= _WATCH_S and _cpu_s(process) - used_s <= BUSY_SHARE * since_s


def _cpu_s(process: psutil.Process) -> float:
    """CPU time used so far; 0 for a process that has ended."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


@check(
    "P19",
    "Caches fit into memory, and CPUs are whole",
    Moment.DESIGN,
    Moment.READY,
    caveat={
        "quota_cpus": mark("a control group limits the CPU time"),
        "": mark("the memory or disk is unusual"),
    },
)
def memory_and_cpus(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds caches that are too large for the machine or the container, and emulated or throttled CPUs.

    Catches servers that swap or are killed, but only under load, and programs for another architecture. A
    published benchmark ran its server in a container inside a small virtual machine, for amd64, probably on
    an ARM machine.

    Rule: the declared cache must be at most 80 % of the container's limit, or of the memory that dbdyno may
    use; a larger cache is a stop. Servers that dbdyno does not start run at the same time, and in slices
    (`design.pairing`) all servers do, so the limit applies to the sum of their caches. In slices the data
    must also fit into 80 % of the cache of every server: what a cache keeps depends on time too (InnoDB's
    `innodb_old_blocks_time`), and in slices each server has load for a part of the time only. A server that
    dbdyno starts must be built for the architecture of this machine, otherwise it is a stop; dbdyno's control
    group must not limit CPU time to less than the CPUs that it shows, otherwise it is a warning.
    """
    if moment is Moment.DESIGN:
        yield from _check_quota()
        private = [variant for variant in context.experiment.variants if variant.server.is_private]
        for variant in private:
            yield from _check_private(variant)
        if context.experiment.design.pairing == "slices" and len(private) > 1:
            yield from _check_together(private)
            yield from _check_data(context.experiment, private)
        return
    yield from _check_remote(context)
    yield from _check_emulation(context)


def data_bytes(experiment: Experiment, variant: Variant) -> float:
    """The estimated size of the variant's largest data."""
    return max(workload.rows for workload in experiment.workloads_of(variant)) * ROW_BYTES


def data_fit_into_cache(experiment: Experiment, variant: Variant) -> bool:
    """Whether the data of the variant stay in the cache that it declares, or has by default."""
    return data_bytes(experiment, variant) <= CACHE_SHARE * cache_bytes(variant)


def memory_bytes() -> int:
    """The memory that this process and its children may use."""
    limit = int(psutil.virtual_memory().total)
    for path in _LIMIT_FILES:
        with suppress(OSError, ValueError):
            limit = min(limit, int(path.read_text()))
    return limit


def cache_bytes(variant: Variant) -> int:
    """The size of the caches that a variant declares, else the default."""
    return _declared_cache_bytes(variant) or DEFAULT_CACHE_BYTES


def _declared_cache_bytes(variant: Variant) -> int:
    return _bytes_of_caches(declared_settings(variant))


def _bytes_of_caches(variables: Mapping[str, str]) -> int:
    sizes = (number(variables.get(name, "")) for name in CACHES)
    return int(sum(size for size in sizes if size is not None))


def _check_private(variant: Variant) -> Iterator[Finding]:
    cache = _declared_cache_bytes(variant)
    machine = memory_bytes()
    limit = machine if variant.server.memory is None else min(machine, size_bytes(variant.server.memory))
    if cache > CACHE_SHARE * limit:
        whose = compose("this machine") if limit == machine else compose("its container")
        yield _memory_finding(
            compose(
                "{whose} has {gib} of memory, of which 80 % may be used; {name} declares a cache of {gib_2}",
                whose=whose,
                gib=_gib(limit),
                name=variant.name,
                gib_2=_gib(cache),
            ),
            compose("Declare at most {gib}", gib=_gib(int(CACHE_SHARE * limit))),
            variant.name,
            cache,
            limit,
        )


def _check_together(variants: Sequence[Variant]) -> Iterator[Finding]:
    """A finding if the caches of servers that run at the same time are too large in total."""
    caches, limit = [_declared_cache_bytes(variant) for variant in variants], memory_bytes()
    # A cache that is too large by itself has its own finding.
    if max(caches) <= CACHE_SHARE * limit < sum(caches):
        yield _memory_finding(
            compose(
                "this machine has {gib} of memory, of which 80 % may be used; in slices the servers of "
                "{number} variants run at the same time, and declare caches of {gib_2}",
                gib=_gib(limit),
                number=len(variants),
                gib_2=_gib(sum(caches)),
            ),
            compose('Make them smaller, or set pairing = "trials" in [design]'),
            "",
            sum(caches),
            limit,
        )


def _check_data(experiment: Experiment, variants: Sequence[Variant]) -> Iterator[Finding]:
    """A finding for each variant whose data are too large for its cache."""
    for variant in variants:
        if not data_fit_into_cache(experiment, variant):
            need, cache = data_bytes(experiment, variant), cache_bytes(variant)
            yield _memory_finding(
                compose(
                    "in slices the data must fit into 80 % of the cache, because what a cache keeps depends "
                    "on time; {name} has {gib} of cache, and its data about {gib_2}",
                    name=variant.name,
                    gib=_gib(cache),
                    gib_2=_gib(int(need)),
                ),
                compose('Set pairing = "trials" in [design], fewer rows, or a larger cache'),
                variant.name,
                int(need),
                cache,
            )


def _check_remote(context: Context) -> Iterator[Finding]:
    """A finding if the servers on this machine that dbdyno does not start have too large caches in total."""
    if context.variant is None or context.description is None or context.variant.server.is_private:
        return
    caches: dict[str, int] = {}
    for variant in context.experiment.variants:
        description_of_variant = (
            context.description if variant.name == context.subject else context.peers.get(variant.name)
        )
        if description_of_variant is not None and not variant.server.is_private and is_local(variant):
            # Variants may share a server; `set_global` configures it for one variant at a time.
            caches[str(description_of_variant.identity.get("url"))] = _bytes_of_caches(
                description_of_variant.variables
            )
    total, limit = sum(caches.values()), memory_bytes()
    if len(caches) > 1 and total > CACHE_SHARE * limit:
        yield _memory_finding(
            compose(
                "this machine has {gib} of memory, of which 80 % may be used; the caches of {number} "
                "servers that run at the same time have {gib_2}",
                gib=_gib(limit),
                number=len(caches),
                gib_2=_gib(total),
            ),
            compose(
                "Make them smaller, or let dbdyno start them one at a time (kind = local, docker or command)"
            ),
            context.subject,
            total,
            limit,
        )


def _check_quota() -> Iterator[Finding]:
    """A finding if the control group of dbdyno has less CPU time than CPUs."""
    try:
        quota, period = map(int, _CPU_FILE.read_text().split())
    except (OSError, ValueError):
        # There is no limit ("max"), or no such file.
        return
    cpus, visible = quota / period, len(os.sched_getaffinity(0))
    if cpus < visible:
        yield Finding(
            "P19",
            "warn",
            compose(
                "the control group of dbdyno may use the time of {cpus:g} CPUs, but shows {visible}: when "
                "client and server have used it up, the kernel stops them until the next period of "
                "{period_ms:g} ms",
                cpus=cpus,
                visible=visible,
                period_ms=period / 1000.0,
            ),
            {"quota_cpus": cpus, "visible_cpus": visible},
            fix=compose(
                "Give the container whole CPUs (docker run --cpuset-cpus) in place of a share (--cpus)"
            ),
        )


def _check_emulation(context: Context) -> Iterator[Finding]:
    """A finding if the programs of a server that dbdyno starts are for another architecture."""
    if context.description is None or context.variant is None or not context.variant.server.is_private:
        return
    build, own_machine = context.description.build, platform.machine()
    configured = re.search(r"--build=([A-Za-z0-9_]+)-", build.get("CONFIGURE", ""))
    built_for = build.get("compile_machine") or (configured[1] if configured else "")
    if built_for and architecture(built_for) != architecture(own_machine):
        yield Finding(
            "P19",
            "stop",
            compose(
                "the server is built for {built_for}, but this machine is {own}: an emulator runs it, which "
                "is many times slower",
                built_for=built_for,
                own=own_machine,
            ),
            {"built_for": built_for, "machine": own_machine},
            context.subject,
            fix=compose("Use a server or an image for {own}", own=own_machine),
        )


def _memory_finding(text: str, fix: str, subject: str, need: int, limit: int) -> Finding:
    return Finding("P19", "stop", text, {"need_bytes": need, "limit_bytes": limit}, subject, fix=fix)


def _gib(size: int) -> str:
    return compose("{size:.2f} GiB", size=size / 1024**3)


def is_local(variant: Variant) -> bool:
    """Whether a variant's server runs on this machine, as far as its address shows.

    A forwarded port, or a container with its own network, looks like another machine.
    """
    if variant.server.is_private or variant.server.url is None:
        return True
    target = parse_url(variant.server.url)
    return target.unix_socket is not None or all(
        is_this_machine(host) for host, _ in target.hosts_and_ports()
    )


def is_this_machine(host: str) -> bool:
    """Whether a host name or address belongs to this machine; False if it cannot be resolved."""
    try:
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    host_addresses = {
        address.address.partition("%")[0]
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family in (socket.AF_INET, socket.AF_INET6)
    }
    return bool(addresses & (host_addresses | {"127.0.0.1", "::1"})) or any(
        address.startswith("127.") for address in addresses
    )


def architecture(name: str) -> str:
    """The same name for one architecture, whatever its spelling."""
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name.lower(), name.lower())
