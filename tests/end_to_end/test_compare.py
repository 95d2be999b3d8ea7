"""`dbdyno compare` as its users meet it: the command, real servers, exit codes, what stays in the store."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.comparing import Comparing, left_running
from tests.schemas import require_valid

from dbdyno.store import Run, StoredTrial
from dbdyno.store.verdict import caveats_text

SCHEMA = Path(__file__).parents[2] / "schema"


@pytest.fixture(scope="module")
def comparing(results: Path) -> Comparing:
    return Comparing(results)


@pytest.fixture(scope="module")
def done(comparing: Comparing) -> tuple[Any, Run]:
    """One comparison of two variants at two points, in two blocks."""
    answer = comparing.run()
    assert answer.returncode == 0, answer.stderr
    return answer, comparing.newest()


def test_the_last_line_is_the_verdict_of_the_file_and_of_the_report(done: tuple[Any, Run]) -> None:
    answer, run = done
    verdict = json.loads((run.path / "verdict.json").read_text())
    (comparison,) = verdict["comparisons"]
    sentence = comparison["curve"]["sentence"]
    assert answer.stdout.splitlines()[-1] == sentence
    statement = sentence.removesuffix(caveats_text(comparison["curve"].get("caveats", [])))
    page = html.unescape((run.path / "report.html").read_text())
    assert all(text in page for text in (statement, *comparison["curve"].get("caveats", [])))
    assert comparison["curve"]["verdict"] == "too-few-blocks"
    assert [point["at"] for point in comparison["points"]] == [{"connections": 1}, {"connections": 4}]
    assert all(point["blocks"] == 2 and point["effect_percent"] is not None for point in comparison["points"])


def test_the_latencies_of_each_statement_are_in_the_report(done: tuple[Any, Run]) -> None:
    _, run = done
    measured = json.loads((run.path / "measured.json").read_text())
    for trial in measured["trials"]:
        kinds, figures = trial["statements"], trial["figures"]
        assert sum(one["per_transaction"] for one in kinds.values()) == pytest.approx(
            figures["statements"] / figures["events"], rel=0.05
        )
        for one in kinds.values():
            assert 0 < one["latency_p50_us"] <= one["latency_p95_us"] <= one["latency_p99_us"]
        assert trial["distribution_us"][4] == pytest.approx(figures["latency_p50_us"], rel=0.01)
    page = (run.path / "report.html").read_text()
    assert "Statements of " in page
    assert all(f'<th scope="row" class="text">{name}</th>' in page for name in kinds)


def test_progress_goes_to_standard_error_and_the_result_to_standard_output(done: tuple[Any, Run]) -> None:
    answer, run = done
    assert "[8/8]" in answer.stderr
    assert "left" in answer.stderr
    assert "[8/8]" not in answer.stdout
    # The report is written when the verdict is out.
    assert answer.stderr.splitlines()[-1] == f"report: {run.path / 'report.html'}"
    assert "report:" not in answer.stdout
    assert "one-thread" in answer.stdout
    assert "\x1b[" not in answer.stdout + answer.stderr


def test_every_trial_keeps_what_was_asked_what_came_and_who_answered(done: tuple[Any, Run]) -> None:
    _, run = done
    trials = run.trials()
    assert [trial.index for trial in trials] == list(range(8))
    for trial in trials:
        assert trial.is_done
        require_valid(trial.plan, "plan")
        records = list(trial.records())
        for record in (records[0], records[1], records[-1]):
            require_valid(record, "events")
        server = trial.server
        assert server["declared"]["thread_handling"] == server["variables"]["thread_handling"]
        assert server["variables"]["thread_handling"] == trial.meta["variant"]
        assert server["identity"]["pid"] > 0
        assert len(server["variables"]) > 500
        assert server["process"]["after"]["cpu_user_s"] >= server["process"]["before"]["cpu_user_s"]


def test_variants_exchange_equal_places_and_every_group_is_a_new_process(done: tuple[Any, Run]) -> None:
    _, run = done
    places: dict[str, set[str]] = {}
    pids: dict[int, set[int]] = {}
    for trial in run.trials():
        identity = trial.server["identity"]
        places.setdefault(trial.meta["variant"], set()).add(f"{identity['datadir']} {identity['port']}")
        pids.setdefault(trial.meta["group"], set()).add(identity["pid"])
    # Two blocks: each variant has had both places.
    first, second = places.values()
    assert first == second
    assert len(first) == 2
    assert len({len(place) for place in first}) == 1
    assert all(len(found) == 1 for found in pids.values())
    assert len(set.union(*pids.values())) == 4


def counted(trial: StoredTrial) -> dict[str, int]:
    """Statements the engine counted over both phases, by the server's name for them."""
    end = list(trial.records())[-1]["data"]
    phases = end["phases"].values()
    return {
        "Com_select": sum(phase["reads"] for phase in phases),
        "events": sum(phase["events"] for phase in phases),
    }


def test_the_servers_own_counters_agree(done: tuple[Any, Run]) -> None:
    _, run = done
    trials = run.trials()
    assert len(trials) == 8
    for trial in trials:
        before, after = trial.server["status_before"], trial.server["status_after"]
        mine, connections = counted(trial), trial.meta["at"]["connections"]
        moved = {
            name: int(after[name]) - int(before[name]) for name in ("Com_select", "Com_update", "Com_commit")
        }
        # Events under way when the time was over ran to their end and are not counted: one per connection.
        assert 0 <= moved["Com_commit"] - mine["events"] <= connections
        assert 0 <= moved["Com_select"] - mine["Com_select"] <= 14 * connections
        assert 0 <= moved["Com_update"] - 2 * mine["events"] <= 2 * connections


def test_no_server_remains(done: tuple[Any, Run], results: Path) -> None:
    assert left_running(results) == []
    # Other tests' servers may stand there too.
    mine = [*(variant.name for variant in done[1].experiment().variants), "slot-", "run-"]
    there = [path.name for path in (results / ".servers" / "servers").iterdir()]
    assert [name for name in there if any(name.startswith(own) for own in mine)] == []


def test_a_finished_run_is_judged_again_and_not_measured_again(
    comparing: Comparing, done: tuple[Any, Run], tmp_path: Path
) -> None:
    answer, run = done
    before = {path: path.stat().st_mtime_ns for path in (run.path / "trials").rglob("*")}
    again = comparing.run("--resume", "--output", str(tmp_path / "public"))
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "public" / "report.html").exists()
    # The caveats may name another test's server, which this call met and the first one did not.
    first, second = (one.stdout.splitlines()[-1].partition(" Caveat")[0] for one in (answer, again))
    assert first == second
    assert {path: path.stat().st_mtime_ns for path in (run.path / "trials").rglob("*")} == before


def test_a_finished_run_is_judged_again_with_other_choices(
    comparing: Comparing, done: tuple[Any, Run]
) -> None:
    _, run = done
    planned = json.loads((run.path / "verdict.json").read_text())
    choice = ["--leave-out", "connections=1", "--reason", "a backup ran"]
    words = ["dbdyno", "report", str(run.path), "--format", "json", *choice]
    answer = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    (comparison,) = json.loads(answer.stdout)["comparisons"]
    assert [point["at"] for point in comparison["points"]] == [{"connections": 4}]
    assert comparison["curve"]["sentence"].startswith("Chosen afterwards (connections 1 left out): ")
    # An override concerns the judgement alone, so the run is not one of another experiment.
    resumed = comparing.run("--resume", "--no-report", "--set", "override.P07=the limit is known")
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout.splitlines()[-1].startswith("Chosen afterwards (override of P07): ")
    assert "chosen_afterwards" not in json.loads((run.path / "verdict.json").read_text())
    assert json.loads((run.path / "verdict.json").read_text())["comparisons"] == planned["comparisons"]
    assert run.changed_files() == []


def test_a_run_with_a_changed_byte_is_refused(done: tuple[Any, Run], comparing: Comparing) -> None:
    _, run = done
    assert run.changed_files() == []
    path = run.path / "trials/0001/trial.json"
    before = path.read_bytes()
    path.write_bytes(before.replace(b'"done"', b'"Done"'))
    try:
        for command in (["report", str(run.path), "--format", "md"], comparing.command("--resume")[3:]):
            answer = subprocess.run(
                [sys.executable, "-m", "dbdyno", *command], capture_output=True, text=True, check=False
            )
            assert answer.returncode == 4, answer.stderr
            assert "changed since it was measured: trials/0001/trial.json" in answer.stderr
            assert "internal error" not in answer.stderr
    finally:
        path.write_bytes(before)
    assert run.changed_files() == []


def test_resume_refuses_another_experiment(comparing: Comparing, done: tuple[Any, Run]) -> None:
    answer = comparing.run("--resume", "--set", "design.seed=2")
    assert answer.returncode == 2
    assert "design.seed was 1 and is 2" in answer.stderr
    assert answer.stdout == ""


def test_an_open_loop_is_judged_by_its_latency(comparing: Comparing) -> None:
    answer = comparing.run("--set", "load.rate=[40]", "--set", "load.connections=[16]", "--no-report")
    assert answer.returncode == 0, answer.stderr
    run = comparing.newest()
    verdict = json.loads((run.path / "verdict.json").read_text())
    (point,) = verdict["comparisons"][0]["points"]
    assert (point["at"], point["metric"]) == ({"rate": 40.0}, "latency_p95_us")
    assert not (run.path / "report.html").exists()
    trials = run.trials()
    assert len(trials) == 4
    for trial in trials:
        totals = list(trial.records())[-1]["data"]["phases"]["measure"]
        # Poisson arrivals, 40 a second for one second: within 5 standard deviations.
        assert 8 <= totals["accounting"]["due"] <= 72


@pytest.mark.parametrize("change", ["design.state=restart", "design.state_per=trial"])
def test_the_other_ways_to_hold_the_data_with_hooks_around_each_trial(
    comparing: Comparing, change: str, tmp_path: Path
) -> None:
    look = tmp_path / "look"
    # A shell begins in time for a trial of 1 s on a busy machine.
    look.write_text(
        'read -r name < /proc/$DBDYNO_SERVER_PID/comm; echo "$1 $DBDYNO_SERVER_PID $name"\n'
        "[ $1 != during ] || exec sleep 600\n"
    )
    hooks = {
        name: f"variant.server.{name}_trial={json.dumps(['/bin/sh', str(look), name])}"
        for name in ("before", "during", "after")
    }
    words = [word for hook in hooks.values() for word in ("--set", hook)]
    answer = comparing.run("--set", change, "--set", "design.blocks=1", "--no-report", *words)
    assert answer.returncode == 0, answer.stderr
    trials = comparing.newest().trials()
    starts = {trial.server["identity"]["pid"] for trial in trials}
    assert len(starts) == (4 if "trial" in change else 2)
    for trial in trials:
        for name in hooks:
            told = (trial.path / f"hook-{name}_trial.txt").read_text().splitlines()[0]
            assert told == f"{name} {trial.server['identity']['pid']} mariadbd"
            assert trial.meta["hooks"][f"{name}_trial"]["exit_status"] == 0
