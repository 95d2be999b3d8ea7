"""`design.pairing = "slices"`: both servers run, alternate, exchange their slots, and count what was sent."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

from tests.end_to_end.comparing import VARIANTS, Comparing, left_running

from dbdyno.store import StoredTrial
from dbdyno.verdict import judge

EXPERIMENT = f"""
[experiment]
name = "slices"
[[workload]]
name = "oltp_point_select"
tables = 2
table_size = 1_000
[load]
connections = [1, 4]
duration = "600ms"
warmup = "200ms"
[client]
workers = 1
[design]
pairing = "slices"
slice = "100ms"
blocks = 2
repeat_disturbed = false
{VARIANTS}"""


# Each hook writes a line: its name, its variant, the length of the measurement, and the time.
HOOKS = "".join(
    f'{name}_trial = ["sh", "-c", "echo {name} $DBDYNO_VARIANT $DBDYNO_SECONDS $(date +%s%N) >> LOG{rest}"]\n'
    for name, rest in (("before", ""), ("during", "; exec sleep 60"), ("after", ""))
)

FAILING = """
[experiment]
name = "failing"
[[workload]]
name = "oltp_point_select"
tables = 1
table_size = 1_000
[load]
connections = [1, 2, 3, 4]
duration = "1s"
warmup = "200ms"
on_lost = "stop"
[client]
workers = 1
[design]
pairing = "slices"
slice = "100ms"
order = "given"
blocks = 1
repeat_disturbed = false
[[variant]]
name = "quiet"
[[variant]]
name = "busy"
[variant.server]
variables = { event_scheduler = "ON" }
[variant.data]
after = ["CREATE EVENT work ON SCHEDULE EVERY 1 SECOND DO DO BENCHMARK(3000000, MD5('x'))"]
"""
# Runs the command line. Before the slice number 5 of the variant `busy`, while its load is paused: with 2
# connections its engine dies, with 3 its server closes the connections of the load, and with 4 it dies.
SABOTAGE = """
import os, runpy, signal
from dbdyno.run.alternating import SlicedTrial
run_slice = SlicedTrial.run_slice

def sabotage(self, number, **more):
    if (number, self.trial.variant) == (5, "busy"):
        connections = self.trial.point.connections
        if connections == 2:
            self._engine._process.kill()
        if connections == 4:
            os.kill(int(self.description.identity["pid"]), signal.SIGKILL)
        if connections == 3:
            for (connection,) in self.server.query(
                "SELECT id FROM information_schema.processlist "
                "WHERE command = 'Sleep' AND id <> CONNECTION_ID()"
            ):
                self.server.query(f"KILL {connection}")
    run_slice(self, number, **more)

SlicedTrial.run_slice = sabotage
runpy.run_module("dbdyno", run_name="__main__", alter_sys=True)
"""


class Sabotaged(Comparing):
    """The command with SABOTAGE."""

    def command(self, *arguments: str, file: Path | None = None) -> list[str]:
        return [sys.executable, "-c", SABOTAGE, *super().command(*arguments, file=file)[3:]]


def slices_of(trial: StoredTrial) -> list[dict[str, Any]]:
    return [record["data"] for record in trial.records() if record["type"] == "slice"]


def begins_at(trial: StoredTrial) -> int:
    return next(int(r["data"]["at_unix_us"]) for r in trial.records() if r["type"] == "phase")


def test_two_servers_alternate_in_their_slots(results: Path) -> None:
    log = results / "hooks"
    hooks = f"[variant.server]\n{HOOKS.replace('LOG', str(log))}"
    comparing = Comparing(results, EXPERIMENT.replace("[variant.server]\n", hooks))
    answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    trials = comparing.newest().trials()
    assert [trial.is_done for trial in trials] == [True] * 8
    slots: dict[str, set[int]] = {}
    for trial in trials:
        slots.setdefault(trial.meta["variant"], set()).add(trial.meta["slot"])
        assert trial.meta["slices"] == {"warmup": 2, "length_us": 100_000}
        assert [one["slice"] for one in slices_of(trial)] == list(range(8))
        before, after = trial.server["status_before"], trial.server["status_after"]
        (phase,) = [one for one in list(trial.records())[-1]["data"]["phases"].values() if one["events"]]
        # A pause waits for the statements in flight, so none is missing.
        assert int(after["Com_select"]) - int(before["Com_select"]) == phase["reads"]
        work = trial.server["slices"]
        assert 0.1 < work["own"]["seconds"] < 2.0
        assert work["own"]["cpu_s"] / work["own"]["seconds"] > work["idle"]["cpu_s"] / work["idle"]["seconds"]
    assert list(slots.values()) == [{0, 1}, {0, 1}]
    keys = sorted({(t.meta["block"], t.meta["at"]["connections"]) for t in trials})
    for block, connections in keys:
        pair = [t for t in trials if (t.meta["block"], t.meta["at"]["connections"]) == (block, connections)]
        assert len({trial.server["identity"]["pid"] for trial in pair}) == 2
        spans = sorted(
            (begins_at(t) + one["resumed_us"], begins_at(t) + one["paused_us"], one["slice"])
            for t in pair
            for one in slices_of(t)
        )
        # The rounds follow one another, and never two servers have load at the same time.
        assert [number for *_, number in spans] == sorted([*range(8), *range(8)])
        assert all(one[1] <= later[0] for one, later in itertools.pairwise(spans))
    assert_hooks(log.read_text(), trials)


def assert_hooks(log: str, trials: list[StoredTrial]) -> None:
    """A hook runs for all variants before the next step begins for any of them."""
    lines = [line.split() for line in log.splitlines()]
    assert [line[0] for line in lines] == 4 * [*2 * ["before"], *2 * ["during"], *2 * ["after"]]
    # 6 slices of 100 ms of each variant count.
    assert {line[2] for line in lines} == {"1.2"}
    keys = sorted({(t.meta["block"], t.meta["at"]["connections"]) for t in trials})
    groups = [[t for t in trials if (t.meta["block"], t.meta["at"]["connections"]) == key] for key in keys]
    groups.sort(key=lambda group: group[0].index)
    for number, group in enumerate(groups):
        times = [int(line[3]) // 1000 for line in lines[6 * number : 6 * number + 6]]
        assert max(times[:2]) < min(next(iter(t.records()))["data"]["unix_us"] for t in group)
        ends = [begins_at(t) + slices_of(t)[-1]["paused_us"] for t in group]
        assert max(ends) < min(times[4:])


def test_what_fails_in_a_pause_is_told_apart_and_idle_work_is_reported(results: Path) -> None:
    comparing = Sabotaged(results, FAILING)
    answer = comparing.run("--no-report")
    assert "Traceback" not in answer.stderr, answer.stderr
    run = comparing.newest()
    by_key = {(one.meta["at"]["connections"], one.meta["variant"]): one for one in run.trials()}
    assert len(by_key) == 8
    failed = {key: trial.meta for key, trial in by_key.items() if not trial.is_done}
    assert {key: meta["failed_by"] for key, meta in failed.items()} == {
        (2, "busy"): "harness",
        (2, "quiet"): "harness",
        (3, "busy"): "server",
        (4, "busy"): "server",
    }
    assert "ended by SIGKILL" in failed[2, "busy"]["reason"]
    assert "the trial of busy failed, with which it alternated" in failed[2, "quiet"]["reason"]
    assert "connections are idle" in failed[3, "busy"]["reason"]
    assert "connections are idle" not in failed[4, "busy"]["reason"]
    (idle,) = (one for one in judge(run).checks if one.code == "R11")
    assert idle.subject == "busy"
    assert "took this from them" in idle.text
    assert left_running(results) == []
