"""P11: a load generator on the server's machine takes the CPU time that it measures."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.call import Call
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_LOCAL = linear(r"localhost|127\.\d+\.\d+\.\d+|::1")
_HOSTS = ("mysql-host", "pgsql-host", "host")
_SOCKETS = ("mysql-socket", "socket")


def find(reading: Reading) -> Iterator[Finding]:
    """Looks at the host of the first call that names one.

    Catches throughput of a server that shares its CPUs with the load generator. In a published benchmark both
    run on one CPU.
    """
    local = next((call for call in reading.calls if call.phase != "prepare" and is_local(call)), None)
    if local is not None:
        yield finding(
            reading,
            "P11",
            "warn",
            compose(
                "the load generator runs on the server's machine, and its CPU time is charged to the server"
            ),
            [local.first],
            fix=compose("Run it on another machine, or give both their own CPUs"),
        )


def is_local(call: Call) -> bool:
    """Whether a call goes to a server on the same machine."""
    host = next((call.options[name] for name in _HOSTS if name in call.options), None)
    if host is None:
        return call.tool == "pgbench" or any(name in call.options for name in _SOCKETS)
    return _LOCAL.fullmatch(host) is not None


CHECK = DocumentCheck("P11", find)
