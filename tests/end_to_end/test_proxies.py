"""Every proxy in front of a real server: `make packages-proxies` unpacks the programs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from tests.conftest import SMALL
from tests.end_to_end.comparing import Comparing, environment, left_running, wait_until

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.experiment.variant import Proxy
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.proxies import PROGRAMS
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.workspace import Workspace

ROOT = Path(__file__).parents[2] / ".servers" / "proxies"
Start = Callable[..., LocalServer]

COMPARISON = f"""
[experiment]
name = "hop"
[[workload]]
name = "oltp_point_select"
table_size = 1_000
[load]
connections = [4]
# Long enough that the edges of the measurement do not contradict its mean (R03) on a busy machine.
duration = "3s"
warmup = "200ms"
[design]
repeat_disturbed = false
pairing = "PAIRING"
blocks = 1
metrics = ["throughput", "cpu_per_transaction"]
[[variant]]
name = "direct"
server = {{ product = "postgresql", variables = {{ shared_buffers = "32MB" }} }}
[[variant]]
name = "proxied"
server = {{ product = "postgresql", variables = {{ shared_buffers = "32MB" }} }}
proxy = {{ program = "PROGRAM", basedir = "{ROOT}" }}
"""


@pytest.fixture
def start(workspace: Workspace) -> Iterator[Start]:
    """Start servers behind a proxy; all are closed at the end of the test."""
    servers: list[LocalServer] = []

    def start(program: Any, product: Any = "postgresql", **settings: Any) -> LocalServer:
        variables: Any = {"shared_buffers": "32MB"} if product == "postgresql" else SMALL
        spec = ServerSpec(product=product, variables=variables)
        proxy = Proxy(program=program, basedir=ROOT, settings=settings)
        servers.append(LocalServer(Variant(name=program, server=spec, proxy=proxy), workspace, None))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def ask(server: LocalServer, sql: str) -> Any:
    """The answer that a client of the proxy gets."""
    address = server.load_address()
    account: Any = {"user": address.user, "password": address.password, "dbname": address.database}
    with psycopg.connect(host=address.host, port=address.port, **account) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_load_reaches_the_server_through_the_proxy(start: Start, program: str) -> None:
    server = start(program)
    address, own = server.load_address(), server.address()
    assert (address.host, address.unix_socket) == ("127.0.0.1", None)
    assert address.port != own.port
    # The proxy is the server's client.
    assert ask(server, "SELECT inet_server_port()") == [(own.port,)]
    facts = server.describe().identity["proxy"]
    assert (facts["program"], facts["port"]) == (program, address.port)
    assert facts["version"][0].isdecimal()
    listening = {
        connection.laddr.ip
        for process in [psutil.Process(facts["pid"]), *psutil.Process(facts["pid"]).children(recursive=True)]
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}
    assert all(one.uids().real != 0 for one in psutil.Process(facts["pid"]).children(recursive=True))


def test_the_time_of_the_proxy_is_counted_with_that_of_the_server(start: Start) -> None:
    server = start("pgbouncer")
    before = server.process()
    for _ in range(300):
        ask(server, "SELECT 1")
    after = server.process()
    own = after["proxy_cpu_s"] - before["proxy_cpu_s"]
    together = sum(after[name] - before[name] for name in ("cpu_user_s", "cpu_system_s"))
    assert 0 < own < together
    pid = server.describe().identity["proxy"]["pid"]
    tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    assert after["proxy_cpu_s"] == pytest.approx(sum(sum(one.cpu_times()[:2]) for one in tree), abs=0.05)


def test_haproxy_forwards_mariadb(start: Start) -> None:
    server = start("haproxy", "mariadb", nbthread=1)
    assert server.load_address().port != server.address().port
    assert server.describe().identity["proxy"]["settings"]["nbthread"] == "1"


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_setting_that_the_program_does_not_know_is_an_error(start: Start, program: str) -> None:
    with pytest.raises(ServerProblem, match=r"no_such_setting|proxy\.conf:\d+ unknown parameter") as caught:
        start(program, no_such_setting="1")
    assert "[variant.proxy.settings]" in caught.value.fix


def test_a_proxy_that_ends_is_named(start: Start) -> None:
    server = start("pgbouncer")
    proxy = psutil.Process(server.describe().identity["proxy"]["pid"])
    for process in [*proxy.children(recursive=True), proxy]:
        process.kill()
    wait_until(lambda: not proxy.is_running() or proxy.status() == psutil.STATUS_ZOMBIE, "it has ended")
    with pytest.raises(ServerProblem, match=r"PgBouncer [\d.]+ of 'pgbouncer' ended"):
        server.query("SELECT 1")
    server.stop(clean=True)
    server.start()
    assert ask(server, "SELECT 1") == [(1,)]


def test_a_program_that_is_not_there_is_an_error(workspace: Workspace, tmp_path: Path) -> None:
    spec, proxy = ServerSpec(product="postgresql"), Proxy(program="odyssey", basedir=tmp_path)
    with pytest.raises(ServerProblem, match=r"is not in proxy\.basedir"):
        LocalServer(Variant(name="a", server=spec, proxy=proxy), workspace, None)


@pytest.mark.parametrize(
    ("program", "pairing"),
    [pytest.param("pgpool", "trials", marks=pytest.mark.long), ("pgbouncer", "slices")],
)
def test_the_time_of_the_proxy_is_stored_with_every_trial(results: Path, program: str, pairing: str) -> None:
    text = COMPARISON.replace("PROGRAM", program).replace("PAIRING", pairing)
    comparing = Comparing(results, text)
    answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    run = comparing.newest()
    trials = run.trials()
    assert len(trials) == 2
    assert all(trial.is_done for trial in trials), [trial.meta for trial in trials]
    for trial in trials:
        server, plan = trial.server, trial.plan
        port = plan["target"]["endpoints"][0]["tcp"]["port"]
        proxy = server["identity"].get("proxy")
        assert (proxy is None) == (trial.meta["variant"] == "direct")
        assert port == (proxy or server["identity"])["port"]
        edges = server["edges"]
        assert edges is not None
        has_own = "proxy_cpu_s" in edges["end"]["process"]
        assert has_own == (trial.meta["variant"] == "proxied")
    assert left_running(results) == []


def command_line(process: psutil.Process) -> str:
    """Empty if it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def test_nothing_outlives_a_killed_command(results: Path) -> None:
    """Pgpool-II forks for its clients, and none of these stays."""
    text = COMPARISON.replace("PROGRAM", "pgpool").replace("PAIRING", "trials").replace('"3s"', '"60s"')
    comparing = Comparing(results, text)
    process = subprocess.Popen(
        comparing.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    )

    def proxies() -> list[psutil.Process]:
        """The program's processes, whose title does not name their files."""
        own = psutil.Process(process.pid).children(recursive=True)
        return [one for one in own if "pgpool" in command_line(one)]

    wait_until(lambda: len(proxies()) > 3, "Pgpool-II runs")
    started = proxies()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_until(
        lambda: all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in started),
        "all have ended",
    )
