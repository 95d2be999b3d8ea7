"""Whether the machines and the network of a document are alike, known, and not what is measured."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from dbdyno.reading.attribution import Series
from dbdyno.reading.call import Call
from dbdyno.reading.checks.register import Mistake, check
from dbdyno.reading.claim import Claim
from dbdyno.reading.document import Document
from dbdyno.reading.limits import LISTED_MAX, linear
from dbdyno.reading.result import Result
from dbdyno.result_text import connections_count
from dbdyno.text import compose

# The name in a command that creates a server of a cloud.
_CREATED = linear(
    r"--db-instance-identifier[ =]+([\w\-]+)|gcloud sql instances create ([\w\-]+)|"
    r"(?:postgres|mysql) flexible-server create .{0,300}?--name[ =]+([\w\-]+)"
)
_CREATE = linear(r"create-db-instance|sql instances create|flexible-server create")
_COMMAND_LINES = 8
# The host of a managed server begins with the server's name.
_MANAGED = linear(
    r"(?<![\w.\-])([a-zA-Z][\w\-]{1,62}+)\.(?:[\w\-]{1,62}+\.){0,9}(?:rds\.amazonaws\.com|database\.azure\.com|\bsql\.goog)"
)


@check("P03")
def server(document: Document, calls: Sequence[Call]) -> Iterator[Mistake]:
    """Looks for servers that were measured and not created, and for a host that makes clients ignore the
    port.

    Catches results of another server. A published benchmark creates an instance of size 16x and measures one
    of size 8x, whose creation it does not show.

    Rule: the server that was measured must be the one that the document describes.
    """
    yield from _not_created(document)
    seen = False
    for call in calls:
        if seen or call.options.get("mysql-host") != "localhost" or "mysql-port" not in call.options:
            continue
        if "mysql-socket" not in call.options:
            seen = True
            yield Mistake(
                "warn",
                compose(
                    "--mysql-host=localhost connects to the client library's default socket and ignores "
                    "--mysql-port={port}, so which server answered is not known",
                    port=call.options["mysql-port"],
                ),
                [call.first],
                fix=compose("Name 127.0.0.1, or the socket"),
            )


def _not_created(document: Document) -> Iterator[Mistake]:
    created: dict[str, int] = {}
    used: dict[str, int] = {}
    command_at = -_COMMAND_LINES
    for index, text in document.lines():
        if _CREATE.search(text):
            command_at = index
        if index - command_at <= _COMMAND_LINES and (match := _CREATED.search(text)):
            created.setdefault(next(name for name in match.groups() if name), index)
        for match in _MANAGED.finditer(text):
            used.setdefault(match[1], index)
    names = ", ".join(itertools.islice(created, LISTED_MAX)) + (" …" if len(created) > LISTED_MAX else "")
    for name, index in used.items():
        if created and name not in created:
            yield Mistake(
                "stop",
                compose(
                    "{name} is measured, but the document creates {created}",
                    name=name,
                    created=names,
                ),
                (index, *itertools.islice(created.values(), LISTED_MAX)),
                fix=compose("Store the server's own answer about its class and version with every result"),
            )


_LINE = linear(
    r"(?<![\s*#|\-])[\s*#|\-]*+(OS|operating system|운영 "
    r"?체제|操作系统|kernel|커널|CPU|processor|memory|RAM|메모리|内存|disk|storage|디스크|"
    r"filesystem|instance(?: type| class)?|machine type)\s*+[:：|]\s*+([^|]{1,200}+)\|?[\s*]*+$",
    re.IGNORECASE,
)
_CLASS = linear(
    r"\bdb\.[a-z]\d\w*\.\w+\b|\b[cmrti]\d\w*\.\d*x?large\b|\bStandard_[A-Z]\d+\w*\b|\b(?:n1|n2|e2|c2)d?-\w+-\d+\b"
)


@check("P10")
def hosts(
    document: Document, series: Sequence[Series], claims: Sequence[Claim], varied: str
) -> Iterator[Mistake]:
    """Compares what the document says of each host, and the classes of its instances.

    Catches a difference of machines that is taken for one of servers. In a published benchmark the versions
    run on different operating systems.

    Rule: the hosts of the variants must be alike, and known.
    """
    if len(series) < 2 and not claims:
        return
    by_name: dict[str, dict[str, int]] = {}
    for index, text in document.lines():
        if match := _LINE.match(text):
            by_name.setdefault(match[1].lower(), {}).setdefault(" ".join(match[2].strip("*").split()), index)
    if classes := _instance_classes(document):
        by_name["instance"] = {**by_name.get("instance", {}), **classes}
    for name, values in by_name.items():
        if len(values) == 2 and not any(value in varied for value in values):
            first, second = values
            yield Mistake(
                "warn",
                compose(
                    "the hosts differ: {name} {first} and {second}", name=name, first=first, second=second
                ),
                values.values(),
                fix=compose("Run both variants on both hosts, or on one"),
            )


def _instance_classes(document: Document) -> dict[str, int]:
    """The classes of cloud instances that the document names, each with its first line."""
    classes: dict[str, int] = {}
    for index, text in document.lines():
        for match in _CLASS.finditer(text):
            classes.setdefault(match[0], index)
    return classes


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


@check("P11")
def shared_cpus(document: Document, calls: Sequence[Call]) -> Iterator[Mistake]:
    """Looks at the host of the first call that names one.

    Catches throughput of a server that shares its CPUs with the load generator. In a published benchmark both
    run on one CPU.

    Rule: a load generator on the server's machine takes the CPU time that it measures.
    """
    local = next((call for call in calls if call.phase != "prepare" and _is_local(call)), None)
    if local is not None and (_is_forwarded(document, local) or _is_elsewhere(document, local)):
        return
    if local is not None:
        yield Mistake(
            "warn",
            compose(
                "the load generator runs on the server's machine, and its CPU time is charged to the server"
            ),
            [local.first],
            fix=compose("Run it on another machine, or give both their own CPUs"),
        )


def _is_local(call: Call) -> bool:
    """Whether a call goes to a server on the same machine."""
    host = next((call.options[name] for name in _HOSTS if name in call.options), None)
    if host is None:
        return call.tool == "pgbench" or any(name in call.options for name in _SOCKETS)
    return _LOCAL.fullmatch(host) is not None


def _is_elsewhere(document: Document, call: Call) -> bool:
    """Whether a line names the server of a call without a host, or the call is in a sentence, which may leave
    the host out.
    """
    if any(name in call.options for name in (*_HOSTS, *_SOCKETS)):
        return False
    texts = document.texts
    is_command = document.is_script or _COMMAND.search(texts[call.first]) is not None
    return not is_command or any(_ELSEWHERE.search(text) for text in texts)


def _is_forwarded(document: Document, call: Call) -> bool:
    """Whether a proxy or a tunnel listens at the address of a call, and no line says that it forwards to this
    machine.
    """
    port = next((call.options[name] for name in _PORTS if name in call.options), "")
    texts = document.texts
    listeners = [
        index for index, text in document.lines() if _LISTENER.search(text) and port and port in text
    ]
    for index in listeners:
        near = texts[max(0, index - _NEAR) : index + _NEAR]
        hosts = {match[1] for text in near for match in _ADDRESS.finditer(text) if match[2] != port}
        if not hosts or any(not _LOCAL.fullmatch(host) for host in hosts):
            return True
    return False


# A statement of sysbench's OLTP tests takes a server with cached data about a tenth of this.
_STATEMENT_MS = 0.7
_FEW_CONNECTIONS = 4


@check("P12")
def round_trips(results: Sequence[Result], calls: Sequence[Call]) -> Iterator[Mistake]:
    """Divides the mean latency at few connections by the statements of a transaction.

    Catches round trips that are taken for the server's time. In a published benchmark each of 20 statements
    takes 1.3 ms at two connections, for both variants.

    Rule: where the network takes most of the time, the server is not what is measured.
    """
    few = [
        result
        for result in results
        if result.connections and result.connections <= _FEW_CONNECTIONS and not result.is_rate_limited
    ]
    slow = [entry for entry in few if (_statement_ms(entry) or 0) > _STATEMENT_MS]
    if slow and not any(_is_local(call) for call in calls):
        yield Mistake(
            "note",
            compose(
                "each statement takes {time:,.1f} ms at {connections}: the round trip of the network was not "
                "measured, and may be most of it",
                time=_statement_ms(slow[0]),
                connections=connections_count(slow[0].connections or 0),
            ),
            (entry.first for entry in slow),
            fix=compose("Measure SELECT 1 from the same client to every variant"),
        )


def _statement_ms(result: Result) -> float | None:
    mean, tps, qps = (result.value(name) for name in ("mean_ms", "tps", "qps"))
    return mean * tps / qps if mean and tps and qps and qps > tps else None


# From this number on, one load generator has more threads than most machines have CPUs to run them.
_MANY = 256
# A figure of a machine that generates load, in the words of the tools that print it, or in a sentence.
_MEASURED = linear(
    r"%Cpu\(s\)|\b(?:mpstat|vmstat|pidstat|sar -u|htop)\b|"
    r"(?:client|load generator|sysbench|pgbench|클라이언트|客户端)\W[^.\n]{0,60}(?:CPU|idle)|"
    r"CPU[^.\n]{0,40}(?:client|load generator|클라이언트|客户端)",
    re.IGNORECASE,
)


@check("P13")
def client_cpu(document: Document, results: Sequence[Result], loads: Mapping[int, int]) -> Iterator[Mistake]:
    """Looks for a figure of the load generator's CPU, if the document has 256 connections or more.

    Catches a limit of the client that is taken for one of the server. In three published benchmarks one
    machine has 500 to 3,000 threads of sysbench, and its CPU is not shown.

    Rule: with many connections the load generator itself may be the limit.
    """
    lines = dict(loads)
    for result in results:
        if result.connections is not None:
            lines.setdefault(result.connections, result.first)
    many = max(lines, default=0)
    if many < _MANY or any(_MEASURED.search(text) for _, text in document.lines()):
        return
    yield Mistake(
        "note",
        compose(
            "nothing shows the CPU of the load generator, which may be the limit at {many} connections",
            many=many,
        ),
        [lines[many]],
        fix=compose("Show its CPU, or what it reaches without a server (dbdyno measures both)"),
    )


_PRICE = linear(
    r"[$€£¥₩]\s?\d|\d\s?(?:USD|EUR|KRW|원|元|円)\b|per hour|/hour|/hr\b|\bpric(?:e|ing)\b|"
    r"\bcosts?\b|가격|비용|价格|成本|価格|料金|\bPreis|\bprix\b|цен[аы]",
    re.IGNORECASE,
)


@check("Q09")
def prices(document: Document, series: Sequence[Series]) -> Iterator[Mistake]:
    """Looks for a price, if the document compares classes of instances.

    Catches a class that is faster and dearer. A published benchmark compares two generations of instances of
    different prices, and concludes from the throughput alone.

    Rule: machines of different classes have different prices.
    """
    classes = _instance_classes(document)
    if len(classes) < 2 or len(series) < 2:
        return
    if any(_PRICE.search(text) for _, text in document.lines()):
        return
    yield Mistake(
        "note",
        compose("{classes} may have different prices, which are not stated", classes=", ".join(classes)),
        classes.values(),
        fix=compose("State the throughput per price too"),
    )
