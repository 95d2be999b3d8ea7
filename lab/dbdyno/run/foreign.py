"""Computes foreign load: CPU time of other processes on the CPUs that server and client use.

::

    busy    = elapsed - idle - iowait - steal, over the CPUs of the set          (/proc/stat)
    own     = server, load generator, dbdyno, and their child processes          (/proc/PID/stat)
    foreign = busy - own - kernel threads + steal, and never less than 0

Busy time is computed from the idle counters, because the kernel measures idle time by the clock. It samples
user and system time at its ticks (for example 250 per second), which would make the share of a 1 s trial
uncertain by several per cent. Kernel threads are not foreign: they work for processes that write, send or
receive, which is mostly the server. For the same reason interrupts are left out if the kernel counts their
time separately (its irq counter increases); otherwise the kernel charges them to the interrupted process.

Resolution: the kernel shows these counters in steps of 10 ms, and charges interrupts that wake an idle CPU to
no process. This part is `unattributed`: 0 to 12 % in undisturbed trials of 1 to 3 s, the most where few
connections make the CPUs of server and client wake each other. `experiment.repeats` subtracts it.

`foreign_load` compares two readings, which `foreign_meter` takes; this module reads nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from dbdyno.checks.host import is_local
from dbdyno.experiment.base import format_cpus
from dbdyno.experiment.model import Experiment, Variant
from dbdyno.server_record import ForeignProcess, ForeignRecord
from dbdyno.servers import usage
from dbdyno.servers.kinds.process import online_cpus, server_cpus
from dbdyno.servers.server import Description
from dbdyno.servers.usage import TICKS_PER_S

# Maximum number of processes in the record, and the minimum share of such a process.
PROCESSES_MAX = 5
PROCESS_SHARE_MIN = 0.001
# If the counters explain less than this share of the elapsed time, /proc is incomplete.
COUNTED_SHARE_MIN = 0.5
# Flag of kernel threads in /proc/PID/stat (PF_KTHREAD in <linux/sched.h>).
_KERNEL_THREAD = 0x00200000


@dataclass(frozen=True)
class Scope:
    """The CPUs whose load counts, and what is not foreign there: the processes in `roots`, their descendants,
    and processes with a name in `proxies`.
    """

    cpus: frozenset[int]
    roots: frozenset[int]
    proxies: frozenset[str] = frozenset()

    def own(self, processes: Mapping[int, Process]) -> frozenset[int]:
        """Those of the processes that are not foreign."""
        named = (pid for pid, process in processes.items() if process.name in self.proxies)
        return _tree(processes, self.roots).union(named)


@dataclass(frozen=True)
class Cpu:
    """Counters of one CPU since the boot of the machine, in seconds."""

    idle: float
    interrupts: float
    steal: float
    total: float


@dataclass(frozen=True)
class Process:
    """CPU time of one process, and of its children that have ended and been waited for, in seconds."""

    pid: int
    parent: int
    name: str
    is_kernel_thread: bool
    # The CPU on which the process ran last.
    cpu: int
    started: int
    used_s: float
    waited_s: float


@dataclass(frozen=True)
class Reading:
    """All CPUs of the set and all processes at one instant."""

    at_s: float
    cpus: Mapping[int, Cpu]
    # Whether the kernel counts interrupts separately from the interrupted processes.
    interrupts_separate: bool
    online: frozenset[int]
    processes: Mapping[int, Process]
    own: frozenset[int]


def foreign_load(
    scope: Scope, begin: Reading | None, end: Reading | None, allowed: Mapping[int, frozenset[int]]
) -> ForeignRecord | None:
    """The foreign load between two readings in the format of server.json; None if it is unknown.

    `share` is foreign CPU time divided by elapsed time times CPUs; `steal` is the part that the hypervisor
    took; `processes` are the processes with the most CPU time, by name. `allowed` are the CPUs on which a
    process may run; one without an entry may run on all.
    """
    if begin is None or end is None or end.at_s <= begin.at_s:
        return None
    # If a server process ended between the readings, its CPU time would look foreign.
    if any(pid in begin.processes and pid not in end.processes for pid in scope.roots):
        return None
    elapsed_s = end.at_s - begin.at_s
    capacity_s = elapsed_s * len(scope.cpus)
    busy_s, steal_s = capacity_s, 0.0
    for cpu in scope.cpus:
        first, last = begin.cpus[cpu], end.cpus[cpu]
        if last.total - first.total < COUNTED_SHARE_MIN * elapsed_s:
            return None
        stolen_s = max(0.0, last.steal - first.steal)
        steal_s += stolen_s
        busy_s -= max(0.0, last.idle - first.idle) + stolen_s
        if end.interrupts_separate:
            busy_s -= max(0.0, last.interrupts - first.interrupts)
    used_by_pid = _used_cpu_time(begin, end)
    foreign_s = max(0.0, busy_s - _own_cpu_s(scope, used_by_pid, begin, end))
    used_by_name = _foreign_processes(scope, used_by_pid, end, allowed, foreign_s)
    unattributed_s = max(0.0, foreign_s - sum(used_by_name.values()))
    return {
        "share": round(min(1.0, (foreign_s + steal_s) / capacity_s), 4),
        "steal": round(min(1.0, steal_s / capacity_s), 4),
        "unattributed": round(min(1.0, unattributed_s / capacity_s), 4),
        "cpus": format_cpus(scope.cpus),
        "processes": _largest_processes(used_by_name, capacity_s),
    }


def _own_cpu_s(scope: Scope, used_by_pid: Mapping[int, float], begin: Reading, end: Reading) -> float:
    """CPU time of dbdyno's own processes, and of kernel threads and proxies on the CPU set."""
    total_s = 0.0
    for pid, used_s in used_by_pid.items():
        process = end.processes[pid]
        counts_by_cpu = process.is_kernel_thread or process.name in scope.proxies
        if process.cpu in scope.cpus if counts_by_cpu else pid in end.own or pid in begin.own:
            total_s += used_s
    return total_s


def _foreign_processes(
    scope: Scope,
    used_by_pid: Mapping[int, float],
    end: Reading,
    allowed: Mapping[int, frozenset[int]],
    foreign_s: float,
) -> dict[str, float]:
    """CPU time of the processes that are not dbdyno's own, by name. A process that can run only on the CPU
    set used all its CPU time there; the others share the rest of `foreign_s`.
    """
    confined: dict[str, float] = {}
    others: dict[str, float] = {}
    for pid, used_s in used_by_pid.items():
        process, cpus = end.processes[pid], allowed.get(pid, end.online)
        if used_s > 0 and pid not in end.own and not process.is_kernel_thread and cpus & scope.cpus:
            times = confined if cpus <= scope.cpus else others
            times[process.name] = times.get(process.name, 0.0) + used_s
    rest_s = max(0.0, foreign_s - sum(confined.values()))
    scale = min(1.0, rest_s / max(sum(others.values()), 1e-9))
    return {
        name: min(foreign_s, confined.get(name, 0.0) + scale * others.get(name, 0.0))
        for name in {**confined, **others}
    }


def _largest_processes(used_by_name: Mapping[str, float], capacity_s: float) -> list[ForeignProcess]:
    """The processes with the most CPU time, in descending order."""
    largest = sorted(used_by_name.items(), key=lambda item: -item[1])[:PROCESSES_MAX]
    shares = ((name, used_s / capacity_s) for name, used_s in largest)
    return [{"name": name, "share": round(part, 4)} for name, part in shares if part >= PROCESS_SHARE_MIN]


def parse_cpus(text: str) -> tuple[dict[int, Cpu], bool]:
    """The CPUs of /proc/stat, and whether interrupts are counted separately. Raises ValueError,
    IndexError.
    """
    cpus: dict[int, Cpu] = {}
    is_separate = False
    for line in text.splitlines():
        name, *fields = line.split()
        if not name.startswith("cpu"):
            break
        seconds = [int(number) / TICKS_PER_S for number in fields[:8]]
        _, _, _, idle, iowait, irq, softirq, steal = seconds
        if name == "cpu":
            # Without separate accounting, irq stays 0, because a tick never occurs within an interrupt.
            is_separate = irq > 0
        else:
            cpu = int(name.removeprefix("cpu"))
            cpus[cpu] = Cpu(idle + iowait, irq + softirq, steal, sum(seconds))
    return cpus, is_separate


def parse_process(text: str) -> Process:
    """The process of /proc/PID/stat. Raises ValueError, IndexError."""
    # The name may contain spaces and parentheses; field 3 of proc(5) follows the last parenthesis.
    head, _, rest = text.rpartition(")")
    pid, _, name = head.partition(" (")
    fields = rest.split()
    ticks = [int(number) for number in fields[11:15]]
    return Process(
        pid=int(pid),
        parent=int(fields[1]),
        name=name,
        is_kernel_thread=bool(int(fields[6]) & _KERNEL_THREAD),
        cpu=int(fields[36]),
        started=int(fields[19]),
        used_s=sum(ticks[:2]) / TICKS_PER_S,
        waited_s=sum(ticks[2:]) / TICKS_PER_S,
    )


def _tree(processes: Mapping[int, Process], roots: frozenset[int]) -> frozenset[int]:
    """The roots and all their descendants."""
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    tree: set[int] = set()
    waiting = [pid for pid in roots if pid in processes]
    while waiting:
        pid = waiting.pop()
        if pid not in tree:
            tree.add(pid)
            waiting += children.get(pid, [])
    return frozenset(tree)


def _used_cpu_time(begin: Reading, end: Reading) -> dict[int, float]:
    """CPU time that each process of `end` has used since `begin`, including that of ended children.

    When a child ends, the kernel adds its CPU time since its start to the process that waits for it: the
    parent or, if that has ended, an ancestor. This function subtracts the part that the child had used before
    `begin`.
    """
    survivors = {
        pid
        for pid, process in end.processes.items()
        if pid in begin.processes and begin.processes[pid].started == process.started
    }
    table: dict[int, float] = {}
    waited: dict[int, float] = {}
    for pid, process in end.processes.items():
        before = begin.processes[pid] if pid in survivors else None
        table[pid] = process.used_s - (before.used_s if before else 0.0)
        waited[pid] = process.waited_s - (before.waited_s if before else 0.0)
    for pid, process in begin.processes.items():
        if pid in survivors:
            continue
        remaining_s, ancestor = process.used_s + process.waited_s, process.parent
        while remaining_s > 0 and ancestor in begin.processes:
            if ancestor in survivors:
                taken_s = min(remaining_s, waited[ancestor])
                waited[ancestor] -= taken_s
                remaining_s -= taken_s
            ancestor = begin.processes[ancestor].parent
    return {pid: max(0.0, table[pid] + waited[pid]) for pid in table}


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
        own_processes = self.scope.own(processes)
        best: tuple[float, Reading] | None = None
        # While server and client keep all CPUs busy, this thread may have to wait between reading two files.
        for _ in range(ATTEMPTS):
            began = time.monotonic()
            reading = self._read_once(processes, own_processes)
            took_s = time.monotonic() - began
            if reading is not None and (best is None or took_s < best[0]):
                best = took_s, reading
            if took_s <= READING_S_MAX:
                break
        return best[1] if best else None

    def _read_once(self, processes: Mapping[int, Process], own_processes: frozenset[int]) -> Reading | None:
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
        for pid in own_processes:
            with suppress(OSError, ValueError, IndexError):
                current[pid] = _read_process(pid)
        used = {cpu: cpus[cpu] for cpu in self.scope.cpus}
        return Reading(at_s, used, interrupts_separate, frozenset(cpus), current, own_processes)

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
    sets_of_variant = (
        online_cpus() if anywhere and cpus is None else server_cpus(cpus) for cpus in variant.cpu_sets
    )
    server = frozenset[int]().union(*sets_of_variant)
    pid = description.identity.get("pid")
    roots = {os.getpid(), *([pid] if isinstance(pid, int) else [])}
    return ForeignMeter(client | server, roots, _PROXIES if docker else frozenset())


def combine(meters: Sequence[ForeignMeter | None]) -> ForeignMeter | None:
    """A meter for several servers that run at the same time; None if one of them has none."""
    readable = [meter for meter in meters if meter is not None]
    if not readable or len(readable) < len(meters):
        return None
    return ForeignMeter(
        frozenset().union(*(meter.scope.cpus for meter in readable)),
        frozenset().union(*(meter.scope.roots for meter in readable)),
        frozenset().union(*(meter.scope.proxies for meter in readable)),
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
