"""Facts about this machine, for the record of a server that runs here, and of a run."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from dbdyno import __version__
from dbdyno.experiment.cpus import format_cpus

_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def this_machine() -> dict[str, Any]:
    """Name, system, kernel, processor and memory."""
    return {
        "name": platform.node(),
        "system": _system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu_model": cpu_model(),
        "cpus": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
    }


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def cpu_model() -> str:
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
