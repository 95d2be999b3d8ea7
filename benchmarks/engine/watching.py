"""Measures the CPU time of a client process during its load, and its peak memory.

The clock starts when the client prints that its load begins. The CPU time (user and system, from
`/proc/PID/stat`) is the difference between `count_from` and the end, so it includes neither connecting nor
disconnecting.
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
    stdin: str,
    begins: Callable[[str], bool] | None = None,
    window: tuple[float, float] = (0.0, 0.0),
) -> Watched:
    """Run `command` with `stdin`, and measure its CPU time from `window[0]` to `window[1]` seconds after the
    first line for which `begins` is true; without `begins` only the output is returned. Raises SystemExit
    with the end of the output if the command fails.
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
        process.stdin.write(stdin)
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
    # A process that has just ended still has CPU times but no memory, so at least one sample needs memory.
    if process.returncode != 0 or (begins is not None and (len(samples) != len(window) or not memory)):
        raise SystemExit(f"{command[0]} ended with {process.returncode}:\n{output[-3000:]}")
    if begins is None:
        return Watched(output, 0.0, 0.0, 0.0)
    return Watched(output, samples[1] - samples[0], memory[-1], began - started)


def cpu_s(pid: int) -> float:
    """The CPU time that a process has used, user and system. Raises OSError if the process has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def _sample(
    pid: int, began: float, window: tuple[float, float], samples: list[float], memory: list[float]
) -> None:
    for second in window:
        time.sleep(max(0.0, began + second - time.monotonic()))
        try:
            used_s = cpu_s(pid)
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return  # The process ended early; the caller reports its exit code and output.
        samples.append(used_s)
        if found := re.search(r"VmHWM:\s+(\d+)", status):
            memory.append(int(found.group(1)) / 1024)
