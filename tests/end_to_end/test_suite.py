"""A suite whose tests share one start of the server in each block, on a real server."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from tests.end_to_end.comparing import Comparing, left_running

EXPERIMENT = """
[experiment]
name = "suite"
[[workload]]
name = "micro/point-query"
rows = 1_000
[[workload]]
name = "micro/update-index"
rows = 1_000
[[workload]]
name = "oltp_point_select"
table_size = 1_000
[load]
connections = [2]
duration = "500ms"
warmup = "100ms"
[design]
blocks = 2
state_per = "block"
repeat_disturbed = false
[[variant]]
name = "every-commit"
[[variant]]
name = "every-second"
server.variables.innodb_flush_log_at_trx_commit = 0
"""


@pytest.mark.parametrize("pairing", [pytest.param("trials", marks=pytest.mark.long), "slices"])
def test_the_tests_on_equal_tables_share_a_start(results: Path, pairing: str) -> None:
    own = f'pairing = "{pairing}"' + ('\nslice = "100ms"' if pairing == "slices" else "")
    comparing = Comparing(results, EXPERIMENT.replace("blocks = 2", f"blocks = 2\n{own}"))
    answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    run = comparing.newest()
    trials = run.trials()
    assert len(trials) == 2 * 2 * 3
    groups = [list(group) for _, group in itertools.groupby(trials, lambda trial: trial.meta["group"])]
    micro = ["micro/point-query", "micro/update-index"]
    found = sorted(sorted(trial.meta["workload"] for trial in group) for group in groups)
    assert found == [micro] * 4 + [["oltp_point_select"]] * 4
    servers = [{trial.server["identity"]["start_unix_us"] for trial in group} for group in groups]
    assert all(len(one) == 1 for one in servers)
    assert len(set.union(*servers)) == len(groups)
    times = [(trial.meta["started_unix_us"], trial.meta["ended_unix_us"]) for trial in trials]
    overlap = sum(one[0] < other[1] and other[0] < one[1] for one, other in itertools.combinations(times, 2))
    # In slices, both variants run at the same time, one workload after another.
    assert overlap == (6 if pairing == "slices" else 0)
    verdict = json.loads((run.path / "verdict.json").read_text())
    (suite,) = verdict["suites"]
    assert len(suite["tests"]["too-few-blocks"]) == 3
    # The terminal shows the suite, not three sentences.
    assert answer.stdout.strip().splitlines()[-1].startswith("every-second against every-commit over 3 tests")
    assert not left_running(results)
