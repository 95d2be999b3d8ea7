"""What `dbdyno compare` does when a server dies under load: once, and again and again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.comparing import Comparing, left_running

from dbdyno.store import VERDICT
from dbdyno.store.workers import read_workers

# The server of b dies in the first pilot, and in the trials of three blocks.
EXPERIMENT = '''
[experiment]
name = "faults"
[[workload]]
name = "oltp_point_select"
tables = 1
table_size = 1_000
[load]
connections = [2]
duration = "300ms"
warmup = "100ms"
on_lost = "stop"
[client]
cpus = "0-1"
[design]
pairing = "PAIRING"
slice = "100ms"
blocks = 5
repeat_disturbed = false
[[variant]]
name = "a"
[[variant]]
name = "b"
[variant.server]
during_trial = ["sh", "-c", "case $DBDYNO_BLOCK in 0|2|3) kill -9 $DBDYNO_SERVER_PID;; esac"]
before_trial = ["sh", "-c", """[ "$DBDYNO_TRIAL" -ge 0 ] || [ -e FLAG ] || {
  touch FLAG; kill -9 $DBDYNO_SERVER_PID; }"""]
'''


@pytest.mark.parametrize("pairing", ["trials", "slices"])
def test_a_dead_server_is_a_result_and_two_blocks_of_them_end_the_run(results: Path, pairing: str) -> None:
    flag = results / f"killed-{pairing}"
    text = EXPERIMENT.replace("PAIRING", pairing).replace("FLAG", str(flag))
    if pairing == "trials":
        text = text.replace('slice = "100ms"\n', "")
    comparing = Comparing(results, text)
    answer = comparing.run()
    assert answer.returncode == 4, answer.stderr
    assert "b cannot run this load (" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert "8 trials" in answer.stdout or "unfinished" in answer.stdout, answer.stdout
    run = comparing.newest()
    outcomes = {(one.meta["block"], one.meta["variant"]): one.failed_by for one in run.trials()}
    ended = {key for key, failed_by in outcomes.items() if failed_by == "server"}
    assert ended == {(0, "b"), (2, "b"), (3, "b")}
    assert {key for key, failed_by in outcomes.items() if failed_by is None} >= {
        (0, "a"), (1, "a"), (1, "b"), (2, "a")
    }  # fmt: skip
    assert {block for block, _ in outcomes} == {0, 1, 2, 3}
    assert (run.path / VERDICT).exists()
    assert (run.path / "report.html").exists()
    # The pilot of b ran again after its server had died.
    assert flag.exists()
    workers = read_workers(run)
    assert workers is not None
    assert {step["variant"] for step in workers["steps"] if step["usage"] is not None} == {"a", "b"}
    assert left_running(results) == []
