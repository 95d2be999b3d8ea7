"""A fleet on Ray, on three hosts that are network namespaces, with servers on a fourth one."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from benchmarks.fleet.faults import FAULTS, Fault, check_sum, observe, scene
from benchmarks.fleet.scene import Scene

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


def test_a_trial_that_loses_an_engine_runs_again(made: Scene) -> None:
    outcome = observe(made, fault("`kill -9` of an engine"))
    assert outcome.problems == []
    assert outcome.exit_code == 0
    assert outcome.seen.startswith("the engine on 10.231.7.3 was lost: it ended with status -9")
    run = Run.open(list_runs(made.results, "fleet")[0])
    for trial in run.trials():
        assert check_sum(trial) == []
        assert [one["host"] for one in trial.meta["fleet"]] == ["10.231.7.1", "10.231.7.2", "10.231.7.3"]


@pytest.mark.long
def test_the_experiment_goes_on_with_the_hosts_that_are_left(made: Scene) -> None:
    outcome = observe(made, fault("a raylet; the other hosts have room"))
    assert outcome.problems == []
    assert outcome.exit_code == 0
    assert "was lost" in outcome.seen
