"""A factorial experiment with three workloads over the same data, on real servers."""

from __future__ import annotations

import json
from pathlib import Path

from tests.end_to_end.comparing import Comparing, left_running

EXPERIMENT = """
[experiment]
name = "factors"
[[workload]]
name = "oltp_read_only"
tables = 2
table_size = 1_000
[[workload]]
name = "oltp_read_only"
label = "reads-alone"
skip_trx = true
tables = 2
table_size = 1_000
[load]
connections = [2]
duration = "1s"
warmup = "100ms"
[design]
repeat_disturbed = false
blocks = 1
[factor.threads]
per-connection = { server.variables.thread_handling = "one-thread-per-connection" }
pool = { server.variables.thread_handling = "pool-of-threads" }
[factor.flush]
every-commit = {}
every-second = { server.variables.innodb_flush_log_at_trx_commit = 0 }
[[variant]]
server.variables.innodb_buffer_pool_size = "64M"
"""


def test_a_factorial_experiment_runs_and_tells_what_each_factor_does(results: Path) -> None:
    comparing = Comparing(results, EXPERIMENT)
    answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    run = comparing.newest()
    verdict = json.loads((run.path / "verdict.json").read_text())
    combinations = ["per-connection+every-second", "pool+every-commit", "pool+every-second"]
    compared = [(entry["variant"], entry["workload"]) for entry in verdict["comparisons"]]
    assert compared == [(name, label) for name in combinations for label in ("oltp_read_only", "reads-alone")]
    # Per workload: two factors and the two together.
    assert len(verdict["factors"]) == 6
    servers = [(trial.meta["variant"], trial.meta["workload"], trial.server) for trial in run.trials()]
    for variant, _, server in servers:
        handling = "pool-of-threads" if variant.startswith("pool+") else "one-thread-per-connection"
        assert server["variables"]["thread_handling"] == handling
        flush = "0" if variant.endswith("+every-second") else "1"
        assert server["variables"]["innodb_flush_log_at_trx_commit"] == flush
    # One place per variant serves both workloads, restored in between.
    places = {server["identity"]["datadir"] for _, _, server in servers}
    assert len(places) == 4, places
    # Why is there; where a machine is so slow that a trial ends before both edges are read, not for all.
    explained = json.loads((run.path / "explained.json").read_text())
    assert explained["costs"]
    for row in explained["costs"]:
        assert row["costs"]["context_switches"] > 0
        assert row["costs"]["cpu_us"] > 0
    # What a label stands for is what was run.
    begins = {
        trial.meta["workload"]: [
            k for k in next(trial.records())["data"]["statements"] if k["kind"] == "begin"
        ]
        for trial in run.trials()
    }
    assert begins["oltp_read_only"]
    assert not begins["reads-alone"]
    assert left_running(results) == []
