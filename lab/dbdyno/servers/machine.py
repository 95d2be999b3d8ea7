"""Facts about this machine, for the record of a server that runs here."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import psutil


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
