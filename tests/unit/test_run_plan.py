"""The plans the lab writes are the plans the engine reads: held against the committed schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import ValidationError
from tests.schemas import require_valid

from dbdyno.experiment.model import (
    Client,
    Design,
    Experiment,
    Load,
    Loading,
    OltpWorkload,
    ServerSpec,
    Variant,
)
from dbdyno.experiment.reading import read
from dbdyno.experiment.schedule import engine_seed, schedule
from dbdyno.run.plan import plan, scheduling, trial_plan
from dbdyno.servers.server import Address

ROOT = Path(__file__).parents[2]
ADDRESS = Address("127.0.0.1", 3306, "/run/server.sock", "dbdyno", "dbdyno", "canary-password")


def experiment(client: str | None = "1", server: str | None = "0", **load: Any) -> Experiment:
    return Experiment(
        name="test",
        workloads=(OltpWorkload(name="oltp_read_write", tables=2),),
        load=Load(**{"connections": (10,), "duration_s": 5.0, "warmup_s": 2.0, **load}),
        client=Client(cpus=client),
        design=Design(seed=7),
        variants=(
            Variant(name="a", server=ServerSpec(cpus=server)),
            Variant(name="b", server=ServerSpec(cpus="0")),
        ),
    )


def read_example(path: Path) -> Experiment:
    """An example; where it names unpacked programs, they need not be there for this."""
    assignments = [f"variant.server.basedir={ROOT}"] if "basedir =" in path.read_text() else []
    return read(path, None, assignments)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("transport", ["tcp", "unix"])
def test_every_plan_of_every_example_fits_the_schema(path: Path, transport: str) -> None:
    given = read_example(path)
    # Every block has the same loads.
    for trial in (trial for trial in schedule(given) if trial.block == 0):
        require_valid(trial_plan(given, trial, ADDRESS.target(transport)), "plan")
    for workload in given.workloads:
        require_valid(plan(given, workload, ADDRESS.target(transport)), "plan")


def test_the_schema_would_notice() -> None:
    given = experiment()
    wrong = plan(given, given.workloads[0], ADDRESS.target()) | {"colour": "red"}
    with pytest.raises(ValidationError, match="colour"):
        require_valid(wrong, "plan")


def test_a_trials_plan_says_what_the_experiment_says() -> None:
    given = experiment()
    trial = schedule(given)[0]
    asked = trial_plan(given, trial, ADDRESS.target())
    assert asked["load"] == {"connections": 10, "shape": "closed", "answer_timeout_us": 60_000_000}
    assert asked["phases"] == {"warmup_us": 2_000_000, "measure_us": 5_000_000}
    assert asked["workload"]["options"]["tables"] == 2
    assert asked["seed"] == engine_seed(given, trial)
    assert asked["start"] == {"on-command": {"start_timeout_us": 120_000_000}}


def test_what_becomes_of_connections_is_in_the_plan() -> None:
    given = experiment(on_lost="stop", give_up_s=2.5, reconnect_every=100)
    asked = trial_plan(given, schedule(given)[0], ADDRESS.target())
    assert asked["load"]["reconnect_every"] == 100
    assert asked["reconnect"] == {"on_lost": "stop", "give_up_us": 2_500_000}
    require_valid(asked, "plan")


def test_loading_uses_the_experiments_own_seed_so_that_all_trials_share_the_rows() -> None:
    given = experiment()
    asked = plan(given, given.workloads[0], ADDRESS.target())
    assert asked["seed"] == 7
    assert "start" not in asked


@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
def test_a_rate_is_an_open_loop_with_the_connections_as_cap(arrivals: str) -> None:
    given = experiment(rate=(50.0,), connections=(64,), arrivals=arrivals)
    asked = trial_plan(given, schedule(given)[0], ADDRESS.target())
    shape = {arrivals: {"rate_per_s": 50.0}}
    assert asked["load"] == {"connections": 64, "shape": shape, "answer_timeout_us": 60_000_000}
    require_valid(asked, "plan")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (experiment("1", "0"), "normal"),
        (experiment("0-1", "0"), "batch"),
        (experiment(None, "0"), "batch"),
        # One variant that shares is enough: both must be loaded alike.
        (experiment("1", "1"), "batch"),
        (experiment("0-1", "0", rate=(5.0,)), "normal"),
    ],
)
def test_batch_scheduling_only_where_cpus_are_shared_and_the_loop_is_closed(
    given: Experiment, expected: str
) -> None:
    assert [scheduling(given, variant) for variant in given.variants] == [expected, expected]


def test_no_plan_holds_a_password() -> None:
    given = experiment()
    assert "canary-password" not in json.dumps(trial_plan(given, schedule(given)[0], ADDRESS.target()))
    assert ADDRESS.environment() == {"DBDYNO_PASSWORD": "canary-password"}


def test_prewarm_and_loading_are_handed_on() -> None:
    given = experiment(prewarm="scan")
    given = given.model_copy(update={"loading": Loading(streams=7, method="insert")})
    asked = trial_plan(given, schedule(given)[0], ADDRESS.target())
    assert asked["prewarm"] == "scan"
    assert asked["loading"] == {"streams": 7, "method": "insert"}
    require_valid(asked, "plan")
