"""A fleet on Ray, on three hosts that are network namespaces, with servers on a fourth one."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.fleet.faults import FAULTS, Fault, observe, scene
from benchmarks.fleet.scene import Scene
from benchmarks.fleet.sums import check_sum

from dbdyno.store import Run
from dbdyno.store.listing import list_runs


@pytest.fixture(scope="module")
def made() -> Iterator[Scene]:
    with scene() as one:
        yield one


def fault(words: str) -> Fault:
    return next(one for one in FAULTS if words in one.name)


def test_doctor_examines_every_host_and_the_way_to_the_servers(made: Scene) -> None:
    file = made.write()
    answer = made.hosts[0].run(
        sys.executable, "-m", "dbdyno", "fleet", "doctor", str(file), environment=made.environment
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert [line.split()[0] for line in answer.stdout.splitlines()[1:4]] == [
        "10.231.7.1", "10.231.7.2", "10.231.7.3",
    ]  # fmt: skip
    assert answer.stdout.splitlines()[-1] == "3 hosts are ready"
    assert "TCP connection to one (10.231.7.100:" in answer.stdout
    assert "fails" not in answer.stdout


@pytest.mark.alone
def test_a_trial_that_loses_an_engine_runs_again(made: Scene) -> None:
    outcome = observe(made, fault("`kill -9` of an engine"))
    assert outcome.problems == []
    assert outcome.exit_code == 0
    assert outcome.seen.startswith("the engine on 10.231.7.3 was lost: it ended with status -9")
    run = Run.open(list_runs(made.results, "fleet")[0])
    for trial in run.trials():
        assert check_sum(trial) == []
        assert [one["host"] for one in trial.meta["fleet"]] == ["10.231.7.1", "10.231.7.2", "10.231.7.3"]
    # The check of the sums notices the numbers of a part.
    shutil.copy(trial.path / "engine-1.jsonl.gz", trial.path / "events.jsonl.gz")
    problems = "\n".join(check_sum(trial))
    assert "events of the phase measure is not the sum of the engines" in problems
    assert "the server executed" in problems


@pytest.mark.long
@pytest.mark.parametrize("words", ["an actor hangs", "a raylet; the other hosts have room"])
def test_the_experiment_goes_on_with_the_hosts_that_are_left(made: Scene, words: str) -> None:
    outcome = observe(made, fault(words))
    assert outcome.problems == []
    assert outcome.exit_code == 0
    assert "was lost" in outcome.seen


# A program for the first host: it runs a plan with a file twice, each time with new places of three engines.
RUN_TWICE = """
import json, os, sys
from contextlib import closing
from dbdyno.experiment.model import Fleet
from dbdyno.fleet.fleet_engine import FleetEngine
from dbdyno.fleet.ray_carrier import RayCarrier
plan = json.load(sys.stdin)
for _ in range(2):
    carrier = RayCarrier("auto")
    with closing(FleetEngine(Fleet(engines=3, address="auto"), carrier=carrier)) as engine:
        result = engine.run("run", plan)
        places = carrier.place(3, 1)
        cpus = [place.call("pin").result(10) for place in places]
    print(json.dumps({"failure": result.failure(), "plan": (result.hello or {}).get("plan"), "cpus": cpus}))
"""


@pytest.mark.long
def test_hosts_get_files_and_keep_a_cpu_for_ray_each_time(made: Scene, tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("name\nanna\nberta\n")
    parameter = {"csv": {"from": {"path": str(names)}, "column": "name"}}
    plan = {
        "schema": 1,
        "target": {"protocol": "null"},
        "workload": {
            "name": "sql",
            "sql": {
                "parameters": {"name": parameter},
                "transactions": [{"statements": [{"sql": "SELECT * FROM t WHERE name = :name"}]}],
            },
        },
        "load": {"connections": 6, "shape": "closed"},
        "phases": {"warmup_us": 0, "measure_us": 500_000},
        "seed": 1,
        "start": {"on-command": {"start_timeout_us": 20_000_000}},
    }
    answer = made.hosts[0].run(
        sys.executable, "-c", RUN_TWICE, environment=made.environment, stdin=json.dumps(plan)
    )
    runs = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [one["failure"] for one in runs] == ["", ""], answer.stderr
    count = len(os.sched_getaffinity(0))
    for one in runs:
        assert one["plan"]["workload"]["sql"]["parameters"]["name"]["csv"]["from"] == {"path": str(names)}
        for cpus in one["cpus"]:
            assert len(cpus["daemons"]) == 1
            assert len({*cpus["daemons"], *cpus["engines"]}) == count
