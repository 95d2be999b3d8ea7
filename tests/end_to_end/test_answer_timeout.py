"""A server that stops answering for good: in a trial, between trials, and to dbdyno's own statements."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import variant
from tests.end_to_end.comparing import TWO_EQUAL, Comparing, left_running
from tests.end_to_end.stopping import continue_all, stop_all

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.admin.connection import answers_within
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.workspace import Workspace

PRODUCTS = ("mariadb", "postgresql")
# The server of b stops with all its processes: PostgreSQL has one for each connection.
EXPERIMENT = """
[experiment]
name = "stopped"
[[workload]]
name = "oltp_point_select"
tables = 1
table_size = 1_000
[load]
connections = [2]
duration = "7s"
warmup = "100ms"
answer_timeout = "6s"
[design]
pairing = "trials"
blocks = 1
[client]
workers = 1
"""
STOP = (
    'server.during_trial = ["sh", "-c", "kill -STOP $DBDYNO_SERVER_PID $(pgrep -P $DBDYNO_SERVER_PID || :)"]'
)
EXPERIMENT += f"{TWO_EQUAL}{STOP}\n"


@pytest.mark.parametrize("product", ["mariadb", pytest.param("postgresql", marks=pytest.mark.long)])
def test_a_server_stopped_for_good_ends_its_trial_within_the_limit(product: str, results: Path) -> None:
    comparing = Comparing(results, EXPERIMENT.replace("PRODUCT", product))
    answer = comparing.run("--no-report")
    (failed,) = [one for one in comparing.newest().trials() if one.meta["variant"] == "b"]
    assert failed.failed_by == "server"
    reason = str(failed.meta["reason"])
    waited = re.search(r"has waited (\d+\.\d+) s", reason)
    assert waited is not None
    assert 6.0 <= float(waited[1]) < 8.0
    assert "for the answer to: SELECT c FROM sbtest1 WHERE id=" in reason
    assert "raise load.answer_timeout" in reason
    took_s = (failed.meta["ended_unix_us"] - failed.meta["started_unix_us"]) / 1e6
    assert took_s < 25.0
    assert "waiting for the server's answers to 2 transactions in progress" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert left_running(results) == []


@pytest.mark.parametrize(
    "spec", [variant(), Variant(name="small", server=ServerSpec(product="postgresql"))], ids=PRODUCTS
)
def test_a_statement_of_dbdyno_has_a_limit(spec: Variant, workspace: Workspace) -> None:
    with closing(LocalServer(spec, workspace, None)) as server:
        server.start()
        require_limit(server, server.describe().identity["pid"])


def require_limit(server: LocalServer, pid: int) -> None:
    """Require that a statement fails while the server is stopped, and the next one succeeds."""
    assert server.query("SELECT 1") == [(1,)]
    stop_all(pid)
    try:
        began = time.monotonic()
        with (
            answers_within(0.5),
            pytest.raises(ServerProblem, match=r"has not answered 'SELECT 2' within 0\.5 s"),
        ):
            server.query("SELECT 2")
        assert time.monotonic() - began < 10.0
    finally:
        continue_all(pid)
    assert server.query("SELECT 3") == [(3,)]
