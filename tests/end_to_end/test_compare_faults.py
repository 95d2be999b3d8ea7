"""What `dbdyno compare` does when a server dies under load: once, and again and again."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.comparing import Comparing, left_running

from dbdyno.store import VERDICT, Run
from dbdyno.store.preparation import read_workers

# BLOCKS: those in whose trials the server of b dies.
EXPERIMENT = """
[experiment]
name = "faults"
[[workload]]
name = "oltp_point_select"
tables = 1
table_size = 1_000
[load]
connections = [2]
duration = "500ms"
warmup = "100ms"
on_lost = "stop"
[client]
CLIENT
[design]
pairing = "PAIRING"
blocks = 4
repeat_disturbed = false
[[variant]]
name = "a"
[[variant]]
name = "b"
[variant.server]
during_trial = ["sh", "-c", "case $DBDYNO_BLOCK in BLOCKS) kill -9 $DBDYNO_SERVER_PID;; esac"]
"""
# The server of b dies in its first pilot too.
IN_PILOT = '''
before_trial = ["sh", "-c", """[ "$DBDYNO_TRIAL" -ge 0 ] || [ -e FLAG ] || {
  touch FLAG; kill -9 $DBDYNO_SERVER_PID; }"""]
'''


def experiment(pairing: str, blocks: str, client: str) -> str:
    return EXPERIMENT.replace("PAIRING", pairing).replace("BLOCKS", blocks).replace("CLIENT", client)


def failed(run: Run) -> dict[tuple[int, str], str | None]:
    """By block and variant, what failed each trial."""
    return {(one.meta["block"], one.meta["variant"]): one.failed_by for one in run.trials()}


def test_a_server_that_dies_in_a_pilot_and_in_a_trial_does_not_end_the_run(results: Path) -> None:
    flag = results / "killed"
    text = experiment("trials", "0", 'cpus = "0-1"') + IN_PILOT.replace("FLAG", str(flag))
    comparing = Comparing(results, text.replace("blocks = 4", "blocks = 2"))
    answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    run = comparing.newest()
    assert failed(run) == {(0, "a"): None, (0, "b"): "server", (1, "a"): None, (1, "b"): None}
    assert "1 of 2 trials of b failed because of their server" in answer.stderr
    # The pilot of b ran again.
    assert flag.exists()
    workers = read_workers(run)
    assert workers is not None
    assert {step["variant"] for step in workers["steps"] if step["usage"] is not None} == {"a", "b"}
    assert left_running(results) == []


def test_a_server_that_always_dies_ends_the_run_with_what_is_known(results: Path) -> None:
    comparing = Comparing(results, experiment("slices", "*", "workers = 1"))
    answer = comparing.run()
    assert answer.returncode == 4, answer.stderr
    assert "b cannot run this load (" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert "Not finished (2 of 4 blocks)" in answer.stdout
    run = comparing.newest()
    assert failed(run) == {(0, "a"): None, (0, "b"): "server", (1, "a"): None, (1, "b"): "server"}
    assert (run.path / VERDICT).exists()
    assert (run.path / "report.html").exists()
    assert left_running(results) == []
