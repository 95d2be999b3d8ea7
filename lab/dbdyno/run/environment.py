"""The environment of a run, for environment.json: client host, versions, command line."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno import __version__
from dbdyno.experiment.base import format_cpus
from dbdyno.servers.usage import this_machine

_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def environment(engine_version: str) -> dict[str, Any]:
    """The facts needed to repeat a run or to question its result. They contain no secret."""
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
