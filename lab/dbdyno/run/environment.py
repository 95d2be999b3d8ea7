"""Where a run took place, for environment.json: the client's host, the versions, the command line."""

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
_RELEASE = "PRETTY_NAME"


def environment(engine_version: str) -> dict[str, Any]:
    """The facts a reader needs to repeat a run or to doubt it. No secret can be among them."""
    return {
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command_line": sys.argv,
        "versions": {"dbdyno": __version__, "engine": engine_version, "python": platform.python_version()},
        "host": {
            "name": platform.node(),
            "system": _system(),
            "kernel": platform.release(),
            "architecture": platform.machine(),
            "cpu_model": _cpu_model(),
            "cpus": os.cpu_count(),
            "cpus_allowed": format_cpus(frozenset(os.sched_getaffinity(0))),
            "cpu_governor": _GOVERNOR.read_text().strip() if _GOVERNOR.exists() else None,
            "memory_bytes": psutil.virtual_memory().total,
            "load_average": list(os.getloadavg()),
        },
    }


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get(_RELEASE, platform.system())
    except OSError:
        return platform.system()


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu model"):
            return value.strip()
    return platform.processor() or "unknown"
