"""P19: the caches must fit into the available memory, and nothing must emulate or throttle the CPUs."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.checks.declarations import settings
from dbdyno.checks.topology import architecture, is_local
from dbdyno.experiment.model import Experiment, Variant
from dbdyno.experiment.quantities import number
from dbdyno.experiment.server import size_bytes
from dbdyno.finding import Finding
from dbdyno.run.times import ROW_BYTES
from dbdyno.text import compose, mark

# Share of the memory that caches may use. A server also needs memory for connections, logs and the OS page
# cache.
CACHE_SHARE = 0.8

# Caches whose size does not depend on the load.
CACHES = ("innodb_buffer_pool_size", "shared_buffers")

# Default of innodb_buffer_pool_size, and about that of shared_buffers.
DEFAULT_CACHE_BYTES = 128 << 20

# Files with the limits of this process's control group: CPU time and its period in microseconds (cgroups v2),
# and memory (v2 and v1).
_CPU_FILE = Path("/sys/fs/cgroup/cpu.max")
_LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def find(moment: Moment, context: Context) -> Iterator[Finding]:
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
    """Whether the data of the variant surely stay in the cache that it declares, or has by default."""
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
    return _cache_bytes(settings(variant))


def _cache_bytes(variables: Mapping[str, str]) -> int:
    sizes = (number(variables.get(name, "")) for name in CACHES)
    return int(sum(size for size in sizes if size is not None))


def _check_private(variant: Variant) -> Iterator[Finding]:
    cache = _declared_cache_bytes(variant)
    machine = memory_bytes()
    limit = machine if variant.server.memory is None else min(machine, size_bytes(variant.server.memory))
    if cache > CACHE_SHARE * limit:
        whose = compose("this machine") if limit == machine else compose("its container")
        yield _finding(
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
        yield _finding(
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
            yield _finding(
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
        known = context.description if variant.name == context.subject else context.peers.get(variant.name)
        if known is not None and not variant.server.is_private and is_local(variant):
            # Variants may share a server; `set_global` configures it for one variant at a time.
            caches[str(known.identity.get("url"))] = _cache_bytes(known.variables)
    total, limit = sum(caches.values()), memory_bytes()
    if len(caches) > 1 and total > CACHE_SHARE * limit:
        yield _finding(
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
    build, own = context.description.build, platform.machine()
    configured = re.search(r"--build=([A-Za-z0-9_]+)-", build.get("CONFIGURE", ""))
    built_for = build.get("compile_machine") or (configured[1] if configured else "")
    if built_for and architecture(built_for) != architecture(own):
        yield Finding(
            "P19",
            "stop",
            compose(
                "the server is built for {built_for}, but this machine is {own}: an emulator runs it, which "
                "is many times slower",
                built_for=built_for,
                own=own,
            ),
            {"built_for": built_for, "machine": own},
            context.subject,
            fix=compose("Use a server or an image for {own}", own=own),
        )


def _finding(text: str, fix: str, subject: str, need: int, limit: int) -> Finding:
    return Finding("P19", "stop", text, {"need_bytes": need, "limit_bytes": limit}, subject, fix=fix)


def _gib(size: int) -> str:
    return compose("{size:.2f} GiB", size=size / 1024**3)


CHECK = Check(
    "P19",
    "Caches fit into memory, and CPUs are whole",
    frozenset({Moment.DESIGN, Moment.READY}),
    find,
    caveat={
        "quota_cpus": mark("a control group limits the CPU time of client and server"),
        "": mark("the memory or disk is unusual"),
    },
)
