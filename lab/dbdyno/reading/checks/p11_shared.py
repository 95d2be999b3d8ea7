"""P11: a load generator on the server's machine takes the CPU time that it measures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.call import Call
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_LOCAL = linear(r"localhost|127\.\d+\.\d+\.\d+|::1")
_HOSTS = ("mysql-host", "pgsql-host", "host")
_PORTS = ("mysql-port", "pgsql-port", "port")
# What listens for another server: a proxy, a tunnel, a forwarded port.
_LISTENER = linear(
    r"\bbind\b|\blisten|-L\s*\S*\d|port-forward|tunnel|proxy|haproxy|proxysql|maxscale|pgbouncer|pgcat|"
    r"pgpool|odyssey|"
    r"\brouter\b|stunnel|socat|frontend|forward|프록시|터널|代理|プロキシ|прокси",
    re.IGNORECASE,
)
_ADDRESS = linear(r"(?<![\w.])([a-zA-Z0-9][\w.\-]*):(\d{2,5})(?!\d)")
# Where a client of PostgreSQL has its server from, besides options; and a pod or a container of its own.
_ELSEWHERE = linear(
    r"(?<!\w)(?:PGHOST|PGHOSTADDR|PGSERVICE|PGSERVICEFILE|host|hostaddr|service)\s?[=:]|postgres(?:ql)?://|"
    r"\bkubectl\s++(?!exec\b)|\b(?:docker|podman|nerdctl)\s++(?:compose\s++)?run\b|-compose\s++run\b|"
    r"\bkind:\s*+(?:Job|Pod|CronJob)\b"
)
# A command at the start of a line, after a prompt or in quotes.
_COMMAND = linear(
    r"(?:^|[$#>`|;&(\"'])\s*+(?:[-*]\s++)?(?:(?:sudo|time|nohup|exec|su|numactl|taskset|do|then|-\S+|postgres|\w+=\S*)\s++){0,9}"
    r"(?:\S{0,200}/)?pgbench\s"
)
# Lines of a configuration that belong together.
_NEAR = 8
_SOCKETS = ("mysql-socket", "socket")


def find(reading: Reading) -> Iterator[Finding]:
    """Looks at the host of the first call that names one.

    Catches throughput of a server that shares its CPUs with the load generator. In a published benchmark both
    run on one CPU.
    """
    local = next((call for call in reading.calls if call.phase != "prepare" and is_local(call)), None)
    if local is not None and (_is_forwarded(reading, local) or _is_elsewhere(reading, local)):
        return
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


def _is_elsewhere(reading: Reading, call: Call) -> bool:
    """Whether a line names the server of a call without a host, or the call is in a sentence, which may leave
    the host out.
    """
    if any(name in call.options for name in (*_HOSTS, *_SOCKETS)):
        return False
    texts = reading.document.texts
    is_command = reading.document.is_script or _COMMAND.search(texts[call.first]) is not None
    return not is_command or any(_ELSEWHERE.search(text) for text in texts)


def _is_forwarded(reading: Reading, call: Call) -> bool:
    """Whether a proxy or a tunnel listens at the address of a call, and no line says that it forwards to this
    machine.
    """
    port = next((call.options[name] for name in _PORTS if name in call.options), "")
    texts = reading.document.texts
    listeners = [
        index for index, text in reading.document.lines() if _LISTENER.search(text) and port and port in text
    ]
    for index in listeners:
        near = texts[max(0, index - _NEAR) : index + _NEAR]
        hosts = {match[1] for text in near for match in _ADDRESS.finditer(text) if match[2] != port}
        if not hosts or any(not _LOCAL.fullmatch(host) for host in hosts):
            return True
    return False


CHECK = DocumentCheck("P11", find)
