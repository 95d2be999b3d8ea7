"""`dbdyno compare` on private MySQL 9.7 servers: the thread pool, prewarm, LOAD DATA, bulk_insert."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.comparing import Comparing
from tests.end_to_end.mysql_server import ROOT

SMALL = """
[variant.server.variables]
innodb_buffer_pool_size = "64M"
innodb_redo_log_capacity = "16M"
disable_log_bin = true
"""
EXPERIMENT = f"""
[experiment]
name = "mysql"
[[workload]]
name = "oltp_read_write"
tables = 2
table_size = 500
[load]
connections = [4]
duration = "500ms"
warmup = "200ms"
prewarm = "scan"
[loading]
method = "load-data"
[design]
repeat_disturbed = false
blocks = 2
state = "preserve"
[[variant]]
name = "threads"
[variant.server]
product = "mysql"
version = "9.7"
basedir = "{ROOT}"
{SMALL}
[[variant]]
name = "pool"
[variant.server]
product = "mysql"
version = "9.7"
basedir = "{ROOT}"
arguments = ["--plugin-load-add=thread_pool.so"]
{SMALL}
"""


# A wait of performance_schema, which MySQL counts unless it is told otherwise.
LOG = "wait/io/file/innodb/innodb_log_file"


@pytest.fixture
def comparing(results: Path) -> Comparing:
    return Comparing(results, EXPERIMENT)


# Counters that are read one after the other must agree: other tests would take the CPUs in between.
@pytest.mark.alone
@pytest.mark.long
def test_the_thread_pool_is_compared(comparing: Comparing) -> None:
    # Long enough for counters to be read at both edges on a busy machine, and soon enough after one another.
    answer = comparing.run("--set", "load.duration='3s'")
    assert answer.returncode == 0, answer.stderr
    run = comparing.newest()
    trials = run.trials()
    assert len(trials) == 4
    for trial in trials:
        server: Any = trial.server
        pooled = trial.meta["variant"] == "pool"
        assert trial.is_done
        assert server["product"] == "mysql"
        assert server["version"].startswith("9.7")
        assert ("thread_pool_size" in server["variables"]) == pooled
        assert server["origins"]["innodb_buffer_pool_size"] == "explicit"
        assert int(server["status_after"]["Com_commit"]) > int(server["status_before"]["Com_commit"])
        # The tables were read before the clock started.
        assert "loading" in [record["type"] for record in trial.records()]
        assert trial.session()["authentication"] == "caching_sha2_password"
        edges = server["edges"]
        begin, end = (edges[edge]["waits"][LOG] for edge in ("begin", "end"))
        # By InnoDB's own counters: each write and each sync of the log is one wait for its file.
        made = _grown(edges, "Innodb_log_writes") + _grown(edges, "Innodb_os_log_fsyncs")
        assert end[0] - begin[0] == pytest.approx(made, rel=0.25)
        assert end[1] > begin[1]
    found = {(check.code, check.subject) for check in run.findings()}
    # The account is named, and goes through the pool.
    assert ("P22", "pool") in found
    assert ("P22", "threads") not in found
    (comparison,) = json.loads((run.path / "explained.json").read_text())["comparisons"]
    (log,) = (one for one in comparison["measures"] if one["key"] == f"{LOG} (time)")
    assert (log["group"], log["unit"], log["per"], log["blocks"]) == ("wait", "us", "transaction", 2)
    assert min(log["baseline"], log["variant"]) > 0
    page = (run.path / "report.html").read_text()
    assert "Connections of the load generator" in page
    assert "caching_sha2_password" in page


def _grown(edges: dict[str, Any], name: str) -> int:
    return int(edges["end"]["status"][name]) - int(edges["begin"]["status"][name])


@pytest.mark.long
def test_rows_are_inserted_in_bulk(comparing: Comparing) -> None:
    # Long enough for an INSERT of half a MiB on a busy machine: with none there would be no figure.
    changes = ["workload.name='bulk_insert'", "load.prewarm='none'", "load.duration='4s'"]
    changes += ["design.blocks=1", "design.state='restore'"]
    answer = comparing.run("--no-report", *(word for change in changes for word in ("--set", change)))
    assert answer.returncode == 0, answer.stderr
    trials = comparing.newest().trials()
    assert len(trials) == 2
    for trial in trials:
        before, after = trial.server["status_before"], trial.server["status_after"]
        assert int(after["Innodb_rows_inserted"]) > int(before["Innodb_rows_inserted"])
