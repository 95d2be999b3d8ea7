"""`dbdyno compare` on private MySQL 9.7 servers: the thread pool, prewarm, LOAD DATA, bulk_insert."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.comparing import Comparing
from tests.end_to_end.mysql_server import ROOT

SMALL = """
[variant.server.variables]
innodb_buffer_pool_size = "64M"
innodb_redo_log_capacity = "16M"
performance_schema = false
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


@pytest.fixture
def comparing(results: Path) -> Comparing:
    return Comparing(results, EXPERIMENT)


def test_the_thread_pool_is_compared(comparing: Comparing) -> None:
    answer = comparing.run()
    assert answer.returncode == 0, answer.stderr
    run = comparing.newest()
    trials = run.trials()
    assert len(trials) == 4
    for trial in trials:
        server = trial.server
        pooled = trial.meta["variant"] == "pool"
        assert trial.done
        assert server["product"] == "mysql"
        assert server["version"].startswith("9.7")
        assert ("thread_pool_size" in server["variables"]) == pooled
        assert server["origins"]["innodb_buffer_pool_size"] == "explicit"
        assert int(server["status_after"]["Com_commit"]) > int(server["status_before"]["Com_commit"])
        # The tables were read before the clock started.
        assert "loading" in [record["type"] for record in trial.records()]
        assert trial.session()["authentication"] == "caching_sha2_password"
    found = {(check["code"], check["subject"]) for check in run.findings()}
    # The account is named, and goes through the pool.
    assert ("P22", "pool") in found
    assert ("P22", "threads") not in found
    page = (run.path / "report.html").read_text()
    assert "How the load's connections were made" in page
    assert "caching_sha2_password" in page


def test_rows_are_inserted_in_bulk(comparing: Comparing) -> None:
    # Long enough for an INSERT of half a MiB on a busy machine: with none there would be no figure.
    changes = ["workload.name='bulk_insert'", "load.prewarm='none'", "load.duration='4s'"]
    changes += ["design.blocks=1", "design.state='restore'"]
    answer = comparing.run("--no-report", *(word for change in changes for word in ("--set", change)))
    assert answer.returncode == 0, answer.stderr
    for trial in comparing.newest().trials():
        before, after = trial.server["status_before"], trial.server["status_after"]
        assert int(after["Innodb_rows_inserted"]) > int(before["Innodb_rows_inserted"])
