"""Loads on a server that others use: `max_rate` and `abort_if`, in `dbdyno run` and `dbdyno compare`."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from tests.end_to_end.comparing import VARIANTS, Comparing, left_running, wait_until
from tests.end_to_end.test_run_command import SHORT, Running, rows, running, swept

from dbdyno.servers.kinds.remote_protocol import open_load_connection

__all__ = ["running", "swept"]

COMPARED = """
[experiment]
name = "limited"
[[workload]]
name = "oltp_point_select"
tables = 1
table_size = 1_000
[load]
connections = [4]
duration = "1s"
warmup = "200ms"
LIMITS
[design]
blocks = 3
[client]
workers = 1
"""
COMPARED += VARIANTS


def executed(server: Running) -> int:
    """Number of statements that the MySQL or MariaDB server has executed for prepared statements."""
    ((_, value),) = server.server.query("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")
    return int(value)


def test_the_rate_stays_below_its_limit(running: Running) -> None:
    before = executed(running)
    answer = running.run("oltp_point_select", *SHORT, "--connections", "3,4", "--max-rate", "200")
    assert answer.returncode == 0, answer.stderr
    # A stall of a busy machine is not caught up; without the limit there would be thousands.
    rates = [row["tps"] for row in rows(answer.stdout)]
    assert max(rates) <= 204.0
    assert min(rates) > 100.0
    # The server's own counter; the rest are statements of the load's sessions.
    assert 300 < executed(running) - before <= 412


LOCKED = """
-- transaction: pay
BEGIN;
SELECT k FROM sbtest1 WHERE id = 1 FOR UPDATE NOWAIT;
SELECT SLEEP(0.05);
COMMIT;
"""


def test_retries_count_towards_the_limit(running: Running, tmp_path: Path) -> None:
    """All connections want one row and fail at once, so that most attempts are retries."""
    running.server.query(f"CREATE TABLE {running.address.database}.sbtest1 (id INT PRIMARY KEY, k INT)")
    running.server.query(f"INSERT INTO {running.address.database}.sbtest1 VALUES (1, 1)")
    file = tmp_path / "locked.sql"
    file.write_text(LOCKED)
    before = begun(running)
    limited = ("--connections", "8", "--max-rate", "50", "--time", "2s", "--warmup", "0s", "--workers", "1")
    answer = running.run(str(file), *limited)
    running.drop("sbtest1")
    (row,) = rows(answer.stdout)
    assert row["errors"] > 10, answer.stderr
    (trial,) = running.newest().trials()
    end = next(one["data"] for one in trial.records() if one["type"] == "end")
    counts = end["phases"]["measure"]
    assert counts["events"] + counts["retries"] <= 110
    assert counts["rate_limit_wait_us"] > 8_000_000
    # One BEGIN for each place, also at the end of the load, and those of the checks.
    assert begun(running) - before < 150


def begun(server: Running) -> int:
    """Number of transactions that the MySQL or MariaDB server has begun by BEGIN."""
    ((_, value),) = server.server.query("SHOW GLOBAL STATUS LIKE 'Com_begin'")
    return int(value)


def test_a_load_ends_within_a_second_of_its_limit(swept: Running) -> None:
    """Another session locks the table for some seconds: all transactions wait."""
    locked: list[float] = []

    def lock() -> None:
        wait_until(lambda: is_measured(swept.results), "the load runs")
        with open_load_connection(swept.address) as admin:
            if swept.address.protocol == "postgresql":
                admin.query("BEGIN")
                admin.query("LOCK TABLE sbtest1 IN ACCESS EXCLUSIVE MODE")
            else:
                admin.query("LOCK TABLES sbtest1 WRITE")
            locked.append(time.time())
            time.sleep(4.0)

    other = threading.Thread(target=lock)
    other.start()
    time_and_limit = ["--time", "60s", "--abort-if", "p99=500ms"]
    answer = swept.run("oltp_point_select", *SHORT, *time_and_limit, "--connections", "4")
    other.join()
    assert answer.returncode == 4
    assert "dbdyno: the load was ended: p99 exceeds 500 ms" in answer.stderr
    assert "lower load.connections or load.max_rate, or raise the limit, in a new run" in answer.stderr
    (trial,) = swept.newest().trials()
    ended_after_s = trial.meta["ended_unix_us"] / 1e6 - locked[0]
    # 0.5 s until the limit, the rest of a second's interval, and what a busy machine adds.
    assert 0.4 < ended_after_s < 3.0
    assert swept.tables() == []


def test_a_comparison_ends_with_what_is_known(results: Path) -> None:
    comparing = Comparing(results, compared('abort_if = { p50 = "1ms", errors_per_1000 = 10 }'))
    stopped = comparing.run("--set", 'load.abort_if.p50="0.001ms"', "--no-report")
    assert stopped.returncode == 4
    assert "dbdyno: the load was ended: p50 exceeds 0.001 ms: in the last" in stopped.stderr
    assert "Continue with: dbdyno compare" in stopped.stderr
    (trial,) = comparing.newest().trials()
    assert (trial.is_done, trial.is_result) == (False, False), "--resume runs it again"
    assert left_running(results) == []


def test_throughput_at_the_limit_has_no_verdict(results: Path) -> None:
    comparing = Comparing(results, compared("max_rate = 100"))
    refused = comparing.run("--no-report")
    assert refused.returncode == 4
    assert "stop R17" in refused.stderr + refused.stdout
    assert (
        "because of load.max_rate, 100 transactions/s, the connections of " in refused.stderr + refused.stdout
    )
    measured = json.loads((comparing.newest().path / "measured.json").read_text())
    throughputs = [trial["figures"]["throughput"] for trial in measured["trials"] if trial["figures"]]
    # A busy machine may lose a trial, or some transactions.
    assert len(throughputs) >= 4
    assert 80.0 < max(throughputs) <= 102.0


def compared(limits: str) -> str:
    return COMPARED.replace("LIMITS", limits)


def is_measured(results: Path) -> bool:
    """Whether the trial's measurement has lasted over a second."""
    events = next(results.glob("*/*/trials/0001/events.jsonl"), None)
    return events is not None and '"type":"interval"' in events.read_text()
