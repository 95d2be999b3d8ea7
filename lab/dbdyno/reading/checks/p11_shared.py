"""P11: a load generator on the server's machine takes the CPU time that it measures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_LOCAL = re.compile(r"localhost|127\.\d+\.\d+\.\d+|::1")
_HOSTS = ("mysql-host", "pgsql-host", "host")
_SOCKETS = ("mysql-socket", "socket")


def find(reading: Reading) -> Iterator[Finding]:
    """Looks at the host of the first call that names one.

    Catches throughput of a server that shares its CPUs with the load generator. In a published benchmark both run on one CPU.
    """
    for call in reading.calls:
        if call.phase == "prepare":
            continue
        host = next((call.options[name] for name in _HOSTS if name in call.options), None)
        socket = any(name in call.options for name in _SOCKETS)
        if (host is not None and _LOCAL.fullmatch(host)) or (host is None and socket):
            yield finding(
                reading,
                "P11",
                "warn",
                compose("the load generator runs on the server's machine, and its CPU time is charged to the server"),
                [call.first],
                fix=compose("Run it on another machine, or give both their own CPUs"),
            )
            return


CHECK = DocumentCheck("P11", find)
