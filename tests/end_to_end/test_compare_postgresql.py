"""`dbdyno compare` and `check` on private PostgreSQL servers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.comparing import Comparing, environment

EXPERIMENT = """
[experiment]
name = "postgresql"
[[workload]]
name = "oltp_read_write"
tables = 2
table_size = 1_000
[load]
connections = [4]
duration = "500ms"
warmup = "200ms"
[design]
repeat_disturbed = false
blocks = 2
state = "{state}"
[[variant]]
name = "plain"
[variant.server]
product = "postgresql"
version = "15"
variables = {{ shared_buffers = "32MB" }}
[[variant]]
name = "asynchronous"
[variant.server]
product = "postgresql"
variables = {{ shared_buffers = "32MB", synchronous_commit = false, work_mem = 8192 }}
"""
# Transactions that lock two rows in opposite order.
DEADLOCKS = """
[experiment]
name = "postgresql-deadlocks"
[[workload]]
name = "sql"
setup = ["CREATE TABLE pair (id BIGINT PRIMARY KEY, n BIGINT)", "INSERT INTO pair VALUES (1, 0), (2, 0)"]
parameters = { one = [1], two = [2] }
[[workload.transactions]]
name = "up"
statements = ["BEGIN", { sql = "UPDATE pair SET n = n + 1 WHERE id = :one", rows = 1 },
    { sql = "UPDATE pair SET n = n + 1 WHERE id = :two", rows = 1 }, "COMMIT"]
[[workload.transactions]]
name = "down"
statements = ["BEGIN", { sql = "UPDATE pair SET n = n + 1 WHERE id = :two", rows = 1 },
    { sql = "UPDATE pair SET n = n + 1 WHERE id = :one", rows = 1 }, "COMMIT"]
"""


@pytest.mark.parametrize("state", ["restore", pytest.param("reset", marks=pytest.mark.long)])
def test_settings_are_compared(results: Path, state: str) -> None:
    comparing = Comparing(results, EXPERIMENT.format(state=state))
    answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    trials = comparing.newest().trials()
    assert len(trials) == 4
    for trial in trials:
        server: Any = trial.server
        slow = trial.meta["variant"] == "plain"
        assert trial.is_done
        assert server["product"] == "postgresql"
        assert server["identity"]["system_identifier"]
        assert server["variables"]["synchronous_commit"] == ("on" if slow else "off")
        assert server["origins"]["shared_buffers"] == "configuration file"
        assert server["set_by_dbdyno"]["restart_after_crash"] == "off"
        assert server["data_bytes"] > 0
        commits = [
            int(server[f"status_{when}"]["pg_stat_database.xact_commit"]) for when in ("before", "after")
        ]
        assert commits[1] > commits[0]
        assert server["process"]["after"]["cpu_user_s"] > server["process"]["before"]["cpu_user_s"]
        assert trial.session()["authentication"] == "scram-sha-256"


def test_retried_deadlocks_are_judged(results: Path) -> None:
    comparing = Comparing(
        results, f"{DEADLOCKS}{EXPERIMENT[EXPERIMENT.index('[load]') :].format(state='restore')}"
    )
    # By default the server looks for deadlocks after a second, which is half a trial.
    changes = ["load.duration='2s'", "variant.server.variables.deadlock_timeout='10ms'"]
    answer = comparing.run("--no-report", *(word for change in changes for word in ("--set", change)))
    assert answer.returncode == 0, answer.stderr
    run = comparing.newest()
    trials = run.trials()
    assert len(trials) == 4
    for trial in trials:
        assert trial.is_done
        end = next(record["data"] for record in trial.records() if record["type"] == "end")
        totals = end["phases"]["measure"]
        assert totals["errors"]["40P01"] > 0
        assert totals["error_classes"] == {"40P01": "deadlock"}
    verdict = json.loads((run.path / "verdict.json").read_text())
    curve = verdict["comparisons"][0]["curve"]
    assert (curve["blocks"], curve["verdict"]) == (2, "too-few-blocks")
    assert curve["effect_percent"] is not None
    checks = {check["code"]: check for check in verdict["checks"]}
    assert checks["D03"]["evidence"]["classes"] == {"40P01": "deadlock"}
    assert "server error 40P01 (deadlock)" in checks["D03"]["text"]
    assert "D05" not in checks


def test_rows_are_inserted_in_bulk(results: Path) -> None:
    comparing = Comparing(results, EXPERIMENT.format(state="restore"))
    # Long enough for an INSERT of half a MiB on a busy machine: with none there would be no figure.
    changes = ["workload.name='bulk_insert'", "load.duration='2s'", "design.blocks=1"]
    answer = comparing.run("--no-report", *(word for change in changes for word in ("--set", change)))
    assert answer.returncode == 0, answer.stderr
    trials = comparing.newest().trials()
    assert len(trials) == 2
    for trial in trials:
        before, after = (
            int(status["pg_stat_database.tup_inserted"])
            for status in (trial.server["status_before"], trial.server["status_after"])
        )
        assert after > before
        end = next(record["data"] for record in trial.records() if record["type"] == "end")
        assert end["phases"]["measure"]["writes"] > 0


def test_checks_speak_of_it(results: Path) -> None:
    comparing = Comparing(results, EXPERIMENT.format(state="restore"))
    command = [
        sys.executable,
        "-m",
        "dbdyno",
        "check",
        str(comparing.file),
        "--with-data",
        "--results",
        str(results),
    ]
    asked = ["--set", "load.connections=[2000]", "--set", "variant.server.variables.max_connections=100"]
    answer = subprocess.run(
        [*command, *asked], capture_output=True, text=True, env=environment(), timeout=300, check=False
    )
    assert answer.returncode == 4, answer.stderr
    assert "2,000 connections of oltp_read_write need" in answer.stdout
    assert "max_connections is 100" in answer.stdout
    assert "Set max_connections = " in answer.stdout
