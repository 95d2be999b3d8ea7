"""A client process seen from outside: its CPU time between two instants of the run, and its peak memory.

Every side is watched alike. The clock starts at the line with which a side says that its load begins; CPU
time is the system's account of the process (`/proc/PID/stat`, user and system) at `count_from` and at the
end, so neither connecting nor saying goodbye is in it.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Watched:
    """What a finished process printed and used. CPU in s, memory (VmHWM) in MiB, connecting in s."""

    output: str
    cpu_s: float
    memory_mib: float
    connected_in_s: float


def watch(
    command: Sequence[str],
    environment: Mapping[str, str],
    given: str,
    begins: Callable[[str], bool] | None = None,
    window: tuple[float, float] = (0.0, 0.0),
) -> Watched:
    """Run `command`, feed it `given`, and watch it from `window[0]` to `window[1]` s after the line that
    `begins` knows; without one nothing is watched. Raises SystemExit with the end of its output when it
    fails.
    """
    started = time.monotonic()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=dict(environment),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(given)
        process.stdin.close()
        lines: list[str] = []
        began = 0.0
        samples: list[float] = []
        memory: list[float] = []
        watcher: threading.Thread | None = None
        for line in process.stdout:
            lines.append(line)
            if begins is not None and watcher is None and begins(line):
                began = time.monotonic()
                watcher = threading.Thread(
                    target=_sample, args=(process.pid, began, window, samples, memory), daemon=True
                )
                watcher.start()
        if watcher is not None:
            watcher.join()
    output = "".join(lines)
    # What has just ended still has its times, and no memory; something must have been seen of it alive.
    if process.returncode != 0 or (begins is not None and (len(samples) != len(window) or not memory)):
        raise SystemExit(f"{command[0]} ended with {process.returncode}:\n{output[-3000:]}")
    if begins is None:
        return Watched(output, 0.0, 0.0, 0.0)
    return Watched(output, samples[1] - samples[0], memory[-1], began - started)


def cpu_s(pid: int) -> float:
    """The CPU time that a process has used, user and system. Raises OSError when it is gone."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def _sample(
    pid: int, began: float, window: tuple[float, float], samples: list[float], memory: list[float]
) -> None:
    for at in window:
        time.sleep(max(0.0, began + at - time.monotonic()))
        try:
            used_s = cpu_s(pid)
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return  # It ended early, which its exit code or its output will tell.
        samples.append(used_s)
        if found := re.search(r"VmHWM:\s+(\d+)", status):
            memory.append(int(found.group(1)) / 1024)
