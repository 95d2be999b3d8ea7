"""Reads the CPUs and all processes from /proc, for the foreign load of a trial (`foreign`)."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from dbdyno.checks.host import is_local
from dbdyno.experiment.model import Experiment, Variant
from dbdyno.run.foreign import Process, Reading, Scope, foreign_load, parse_cpus, parse_process
from dbdyno.server_record import ForeignRecord
from dbdyno.servers import usage
from dbdyno.servers.kinds.process import online_cpus, server_cpus
from dbdyno.servers.server import Description

# Maximum seconds for one reading of the CPUs and dbdyno's processes. A slower reading is repeated, up to
# ATTEMPTS times.
READING_S_MAX = 0.005
ATTEMPTS = 3
# Programs that forward a container's connections.
_PROXIES = frozenset({"docker-proxy", "rootlesskit", "slirp4netns", "pasta"})


class ForeignMeter:
    """Measures the foreign load of a scope."""

    def __init__(
        self, cpus: frozenset[int], roots: Collection[int], proxies: Collection[str] = frozenset()
    ) -> None:
        """The parameters are those of `Scope`."""
        self.scope = Scope(cpus, frozenset(roots), frozenset(proxies))

    def read(self) -> Reading | None:
        """Read the counters now; None if they cannot be read, or the kernel does not show every CPU of the
        set.
        """
        processes: dict[int, Process] = {}
        try:
            names = os.listdir(usage.PROC)  # noqa: PTH208 — faster than thousands of Path objects.
        except OSError:
            # For example without a free file handle.
            return None
        for name in names:
            if name.isdecimal():
                # A process may end between listing and reading.
                with suppress(OSError, ValueError, IndexError):
                    processes[int(name)] = _read_process(int(name))
        own = self.scope.own(processes)
        best: tuple[float, Reading] | None = None
        # While server and client keep all CPUs busy, this thread may have to wait between reading two files.
        for _ in range(ATTEMPTS):
            began = time.monotonic()
            reading = self._read_once(processes, own)
            took_s = time.monotonic() - began
            if reading is not None and (best is None or took_s < best[0]):
                best = took_s, reading
            if took_s <= READING_S_MAX:
                break
        return best[1] if best else None

    def _read_once(self, processes: Mapping[int, Process], own: frozenset[int]) -> Reading | None:
        """Read the CPUs and immediately afterwards the processes in `own`; take the other processes from
        `processes`.
        """
        try:
            text = (usage.PROC / "stat").read_text()
            at_s = time.monotonic()
            cpus, interrupts_separate = parse_cpus(text)
        except (OSError, ValueError, IndexError):
            return None
        if not self.scope.cpus <= cpus.keys():
            return None
        current = dict(processes)
        for pid in own:
            with suppress(OSError, ValueError, IndexError):
                current[pid] = _read_process(pid)
        used = {cpu: cpus[cpu] for cpu in self.scope.cpus}
        return Reading(at_s, used, interrupts_separate, frozenset(cpus), current, own)

    def foreign_load(self, begin: Reading | None, end: Reading | None) -> ForeignRecord | None:
        """The foreign load between two readings (`foreign.foreign_load`)."""
        allowed = {pid: cpus for pid in end.processes if (cpus := _allowed_cpus(pid))} if end else {}
        return foreign_load(self.scope, begin, end, allowed)


def create_meter(experiment: Experiment, variant: Variant, description: Description) -> ForeignMeter | None:
    """The meter for a variant's trials.

    None for a server on this machine that dbdyno has not started, because its processes are unknown.
    """
    client = server_cpus(experiment.client.cpus)
    if not variant.server.is_private:
        return None if is_local(variant) else ForeignMeter(client, {os.getpid()})
    docker = variant.server.kind == "docker"
    # A container without a CPU set may run on any CPU, also outside dbdyno's own set.
    anywhere = docker and variant.server.cpus is None
    own = (online_cpus() if anywhere and cpus is None else server_cpus(cpus) for cpus in variant.cpu_sets)
    server = frozenset[int]().union(*own)
    pid = description.identity.get("pid")
    roots = {os.getpid(), *([pid] if isinstance(pid, int) else [])}
    return ForeignMeter(client | server, roots, _PROXIES if docker else frozenset())


def combine(meters: Sequence[ForeignMeter | None]) -> ForeignMeter | None:
    """A meter for several servers that run at the same time; None if one of them has none."""
    known = [meter for meter in meters if meter is not None]
    if not known or len(known) < len(meters):
        return None
    return ForeignMeter(
        frozenset().union(*(meter.scope.cpus for meter in known)),
        frozenset().union(*(meter.scope.roots for meter in known)),
        frozenset().union(*(meter.scope.proxies for meter in known)),
    )


def _read_process(pid: int) -> Process:
    with open(f"{usage.PROC}/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return parse_process(file.read())


def _allowed_cpus(pid: int) -> frozenset[int]:
    """The CPUs on which a process may run; empty if the kernel does not show them."""
    try:
        return frozenset(os.sched_getaffinity(pid))
    except OSError:
        return frozenset()
