"""The machine of a run or of a server that runs here, and the resource usage of the server since its start:
all its processes and threads, including ended ones.

All values are read from /proc (proc(5)), and are exact except for threads that end (see below). A server is
the process that dbdyno started and all its descendants: PostgreSQL's backends, for example, or the processes
in a container.

CPU time and storage traffic: when a child is reaped, the kernel adds its values to those of its parent, so
sums over the running processes are complete.

Context switches and the wait for a CPU: the kernel counts them per thread and discards the counters when the
thread ends. A `Usage` keeps the last values of each thread, so only the usage between the last reading and
the end of a thread is lost.
"""

from __future__ import annotations

import itertools
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from dbdyno import __version__
from dbdyno.experiment.base import format_cpus

PROC = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
# Bytes per sector in diskstats, for every device.
SECTOR_BYTES = 512
NS = 1e9
# Counter of context switches in a thread's status file -> field of `_Thread`.
_SWITCHES = {"voluntary_ctxt_switches": "voluntary", "nonvoluntary_ctxt_switches": "involuntary"}
# Counter in a process's io file -> name in `Usage.read`.
_IO = {
    "read_bytes": "read_bytes",
    "write_bytes": "write_bytes",
    "syscr": "read_calls",
    "syscw": "write_calls",
}


@dataclass(frozen=True)
class _Thread:
    """The counters of one thread when they were last read."""

    voluntary: int
    involuntary: int
    # Time that the thread was runnable but had no CPU.
    wait_ns: int


@dataclass
class Usage:
    """Measures the resource usage of the server whose first process is `pid`. Not thread-safe."""

    pid: int
    # The threads at the last reading, by thread id, and the threads that have ended.
    _last: dict[int, _Thread] = field(default_factory=dict)
    _ended: list[_Thread] = field(default_factory=list)

    def read(self) -> dict[str, float]:
        """Totals since the start, without values that dbdyno may not read; empty when the server has ended.

        cpu_user_s, cpu_system_s, cpu_wait_s (runnable without a CPU), context_switches with its parts
        context_switches_voluntary and context_switches_involuntary, major_faults; read_bytes and write_bytes
        of storage; read_calls and write_calls of files, pipes and sockets. Gauges: rss_bytes, threads,
        processes. threads_ended is the number of ended threads that are included.
        """
        processes = list(process_tree(self.pid))
        if not processes:
            return {}
        totals: dict[str, float] = {"processes": float(len(processes))}
        for pid, counters in itertools.product(processes, (_stat, _io)):
            with suppress(OSError):
                for name, value in counters(pid).items():
                    totals[name] = totals.get(name, 0.0) + value
        return totals | self.watch(processes)

    def spent(self) -> dict[str, float]:
        """CPU time `cpu_s` and storage traffic `write_bytes` since the start; empty when the server has
        ended.
        """
        totals: dict[str, float] = {}
        for pid in process_tree(self.pid):
            with suppress(OSError):
                stat = _stat(pid)
                totals["cpu_s"] = totals.get("cpu_s", 0.0) + stat["cpu_user_s"] + stat["cpu_system_s"]
                totals["write_bytes"] = totals.get("write_bytes", 0.0) + _io(pid).get("write_bytes", 0.0)
        return totals

    def watch(self, processes: list[int] | None = None) -> dict[str, float]:
        """The per-thread values of `read`; call it repeatedly while threads may end."""
        current = dict(_threads(list(process_tree(self.pid)) if processes is None else processes))
        for thread_id, earlier in self._last.items():
            now = current.get(thread_id)
            # A thread with lower counters than before is a new thread that reuses the id.
            if now is None or now.voluntary < earlier.voluntary or now.involuntary < earlier.involuntary:
                self._ended.append(earlier)
        self._last = current
        threads = [*current.values(), *self._ended]
        voluntary = sum(thread.voluntary for thread in threads)
        involuntary = sum(thread.involuntary for thread in threads)
        return {
            "context_switches": float(voluntary + involuntary),
            "context_switches_voluntary": float(voluntary),
            "context_switches_involuntary": float(involuntary),
            "cpu_wait_s": sum(thread.wait_ns for thread in threads) / NS,
            "threads": float(len(current)),
            "threads_ended": float(len(self._ended)),
        }


def host(path: Path) -> Mapping[str, float]:
    """Counters of the machine and of the device that holds `path`, since the machine's boot.

    host_cpu_s, host_iowait_s, host_steal_s, host_switches, host_swapped_pages, and host_memory_wait_s, in
    which at least one process waited for memory; disk_reads, disk_writes, disk_read_bytes,
    disk_write_bytes if the kernel has statistics of the device.
    """
    counters: dict[str, float] = {}
    with suppress(OSError, ValueError, IndexError):
        for line in (PROC / "stat").read_text().splitlines():
            name, *fields = line.split()
            if name == "cpu":
                user, nice, system, _, iowait, irq, softirq, steal, *_ = (int(field) for field in fields)
                counters["host_cpu_s"] = (user + nice + system + irq + softirq) / TICKS_PER_S
                counters["host_iowait_s"], counters["host_steal_s"] = (
                    iowait / TICKS_PER_S,
                    steal / TICKS_PER_S,
                )
            elif name == "ctxt":
                counters["host_switches"] = float(fields[0])
    with suppress(OSError, ValueError, IndexError):
        pages = re.findall(r"^pswp(?:in|out) (\d+)$", (PROC / "vmstat").read_text(), re.MULTILINE)
        counters["host_swapped_pages"] = float(sum(map(int, pages)))
    # Kernels without pressure stall information do not have the file.
    with suppress(OSError, ValueError, IndexError):
        some, *_ = (PROC / "pressure/memory").read_text().splitlines()
        counters["host_memory_wait_s"] = int(some.rpartition("total=")[2]) / 1e6
    with suppress(OSError, ValueError, IndexError):
        device = path.stat().st_dev
        device_number = (str(os.major(device)), str(os.minor(device)))
        for line in (PROC / "diskstats").read_text().splitlines():
            words = line.split()
            if (words[0], words[1]) == device_number:
                counters |= {"disk_reads": float(words[3]), "disk_read_bytes": float(words[5]) * SECTOR_BYTES}
                counters |= {
                    "disk_writes": float(words[7]),
                    "disk_write_bytes": float(words[9]) * SECTOR_BYTES,
                }
    return counters


def process_tree(pid: int) -> Iterator[int]:
    """The process and its descendants, from the kernel's list of children; empty if the process has ended.

    Servers fork from their first thread, so only the children of first threads are read.
    """
    try:
        children = (PROC / f"{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    yield pid
    for child in children:
        yield from process_tree(int(child))


def _stat(pid: int) -> dict[str, float]:
    # The name in parentheses may contain spaces and parentheses; the numbers follow the last parenthesis.
    words = (PROC / f"{pid}/stat").read_text().rpartition(")")[2].split()
    # The first of these words is field 3 in proc(5).
    value = {name: int(words[number - 3]) for name, number in _STAT.items()}
    return {
        "cpu_user_s": (value["utime"] + value["cutime"]) / TICKS_PER_S,
        "cpu_system_s": (value["stime"] + value["cstime"]) / TICKS_PER_S,
        "major_faults": float(value["majflt"] + value["cmajflt"]),
        "rss_bytes": float(value["rss"] * PAGE_BYTES),
    }


_STAT = {"majflt": 12, "cmajflt": 13, "utime": 14, "stime": 15, "cutime": 16, "cstime": 17, "rss": 24}


def _io(pid: int) -> dict[str, float]:
    lines = (PROC / f"{pid}/io").read_text().splitlines()
    pairs = (line.split(": ") for line in lines)
    return {_IO[name]: float(value) for name, value in pairs if name in _IO}


def _threads(processes: list[int]) -> Iterator[tuple[int, _Thread]]:
    for pid in processes:
        with suppress(OSError):
            for task in os.listdir(PROC / f"{pid}/task"):  # noqa: PTH208 — faster than thousands of Path objects.
                # A thread may end between listing and reading.
                with suppress(OSError):
                    yield int(task), _thread(f"{PROC}/{pid}/task/{task}")


def _thread(task: str) -> _Thread:
    counts = dict.fromkeys(_SWITCHES.values(), 0)
    with open(f"{task}/status") as file:  # noqa: PTH123 — faster than Path.open.
        for line in file:
            name, _, value = line.partition(":")
            if name in _SWITCHES:
                counts[_SWITCHES[name]] = int(value)
    wait_ns = 0
    # Some kernels do not provide schedstat.
    with suppress(OSError, ValueError, IndexError), open(f"{task}/schedstat") as file:  # noqa: PTH123
        wait_ns = int(file.read().split()[1])
    return _Thread(counts["voluntary"], counts["involuntary"], wait_ns)


def this_machine() -> dict[str, Any]:
    """Name, system, kernel, processor and memory, for the record of a server that runs here."""
    return {
        "name": platform.node(),
        "system": _system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu_model": _cpu_model(),
        "cpus": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
    }


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _cpu_model() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu model"):
            return value.strip()
    return platform.processor() or "unknown"


def environment(engine_version: str) -> dict[str, Any]:
    """The content of environment.json: what is needed to repeat a run or question its result. No secret."""
    return {
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command_line": sys.argv,
        "versions": {"dbdyno": __version__, "engine": engine_version, "python": platform.python_version()},
        "host": {
            **this_machine(),
            "cpus_allowed": format_cpus(frozenset(os.sched_getaffinity(0))),
            "cpu_governor": _GOVERNOR.read_text().strip() if _GOVERNOR.exists() else None,
            "load_average": list(os.getloadavg()),
        },
    }
