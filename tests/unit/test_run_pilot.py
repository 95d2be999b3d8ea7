"""The pilot's decisions: how many event loops the steps call for, when there is a pilot, what is printed."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.experiment.model import (
    Client,
    Design,
    Experiment,
    Load,
    OltpWorkload,
    ServerSpec,
    SqlStatement,
    SqlTransaction,
    SqlWorkload,
    Variant,
)
from dbdyno.experiment.shapes import Ramp
from dbdyno.run import pilot
from dbdyno.store.preparation import Step, Usage

# A step: event loops, CPU share, share of waiting for a CPU, transactions per second.
Figures = tuple[int, float, float, float]


def usage(_workers: int, busy: float, waiting: float, events_per_s: float) -> Usage:
    return {"busy": busy, "waiting": waiting, "events_per_s": events_per_s}


@pytest.mark.parametrize(
    ("steps", "largest", "decision"),
    [
        # Idle often enough, although it waits for CPUs.
        ([(1, 0.5, 0.3, 58_000)], 2, (1, None)),
        ([(1, 0.6, 0.0, 90_000)], 8, (1, None)),
        # Over 60 % of a CPU: more, whatever the throughput.
        ([(1, 0.61, 0.0, 100)], 8, (1, 2)),
        ([(1, 1.0, 0.0, 100), (2, 0.55, 0.0, 101)], 8, (2, None)),
        ([(2, 1.0, 0.0, 100)], 8, (2, 4)),
        ([(4, 0.95, 0.0, 100)], 8, (4, 7)),
        ([(4, 1.0, 0.0, 100)], 5, (4, 5)),
        ([(5, 1.0, 0.0, 100)], 5, (5, None)),
        # Running or waiting all the time: more if the throughput rises, compared with both smaller steps.
        ([(1, 0.55, 0.4, 100)], 2, (1, 2)),
        ([(1, 0.55, 0.4, 100)], 1, (1, None)),
        ([(1, 0.55, 0.4, 100), (2, 0.4, 0.3, 130)], 2, (1, 1)),
        ([(1, 0.55, 0.4, 100), (2, 0.4, 0.3, 130), (1, 0.5, 0.4, 102)], 2, (2, None)),
        ([(1, 0.55, 0.4, 100), (2, 0.4, 0.3, 104), (1, 0.5, 0.4, 90)], 2, (1, None)),
        ([(1, 0.55, 0.4, 80), (2, 0.4, 0.3, 98), (1, 0.5, 0.4, 99)], 2, (1, None)),
        # Both, one after the other.
        ([(1, 0.9, 0.0, 100), (2, 0.5, 0.45, 150)], 8, (2, 4)),
        ([(1, 0.9, 0.0, 100), (2, 0.5, 0.45, 150), (4, 0.5, 0.45, 150)], 8, (2, 2)),
        (
            [(1, 0.9, 0.0, 100), (2, 0.5, 0.45, 150), (4, 0.5, 0.45, 180), (2, 0.5, 0.45, 140)],
            8,
            (4, 7),
        ),
    ],
)
def test_more_event_loops_are_tried_if_one_may_be_the_limit_and_kept_if_they_help(
    steps: list[Figures], largest: int, decision: tuple[int, int | None]
) -> None:
    assert pilot.decide([(one[0], usage(*one)) for one in steps], largest) == decision


@pytest.mark.parametrize("usage_of_all", [(1.0, 0.0), (0.5, 0.5)])
def test_a_pilot_ends(usage_of_all: tuple[float, float]) -> None:
    for largest in range(1, 65):
        steps: list[tuple[int, Usage]] = []
        following: int | None = 1
        while following is not None:
            # Each event loop doubles the throughput.
            steps.append((following, usage(following, *usage_of_all, 2.0**following)))
            kept, following = pilot.decide(steps, largest)
        assert kept == largest
        assert len(steps) <= 20


def test_the_busiest_event_loop_has_the_most_connections() -> None:
    generator = {"cpu": 0.3, "run_queue_wait_us": 500_000}
    phase = {"start_us": 1_000_000, "end_us": 3_000_000, "events": 5_000, "generator": generator}
    # Of three connections one event loop has two, a third more than the mean.
    assert pilot.measured_usage(2, 3, phase) == pytest.approx(usage(2, 0.4, 1 / 6, 2_500))
    assert pilot.measured_usage(1, 3, phase) == pytest.approx(usage(1, 0.3, 0.25, 2_500))


def experiment(
    *, client: str | None = None, server: str | None = None, connections: int = 64, **more: Any
) -> Experiment:
    return Experiment(
        name="many",
        workloads=(
            sql_workload(more.pop("sql"))
            if "sql" in more
            else OltpWorkload(name=more.pop("workload", "oltp_read_write")),
        ),
        load=Load(connections=(1, connections), duration_s=5.0),
        client=Client(cpus=client, **more.pop("declared", {})),
        variants=(Variant(name="a", server=ServerSpec(cpus=server)), Variant(name="b")),
        **more,
    )


def sql_workload(sql: str) -> SqlWorkload:
    statement = SqlStatement(name="statement", sql=sql)
    return SqlWorkload(
        name="sql", transactions=(SqlTransaction(name="transaction", statements=(statement,)),)
    )


@pytest.mark.parametrize(
    ("keys", "limit"),
    [
        ({}, 8),
        ({"server": "0-4"}, 3),
        ({"server": "0-7"}, 1),
        ({"client": "6,7", "server": "0-1"}, 2),
        ({"client": "6-9"}, 2),
        ({"connections": 3}, 3),
    ],
)
def test_the_limit_is_the_load_generators_cpus(
    monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], limit: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(8)))
    assert pilot.max_workers(experiment(**keys)) == limit


def test_a_pilot_needs_a_choice_and_leaves_nothing_to_the_first_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(8)))
    kept = Design(state="preserve")
    assert pilot.has_pilot(experiment())
    assert pilot.has_pilot(experiment(design=kept))
    assert not pilot.has_pilot(experiment(workload="oltp_insert", design=kept))
    assert pilot.has_pilot(experiment(workload="oltp_insert"))
    assert pilot.has_pilot(experiment(sql="SELECT 1", design=kept))
    for sql in ("DELETE FROM t LIMIT 1", "INSERT INTO t VALUES (:id)", "UPDATE t SET a = :id"):
        assert not pilot.has_pilot(experiment(sql=sql, design=kept))
        assert pilot.has_pilot(experiment(sql=sql))
    assert not pilot.has_pilot(experiment(client="3"))
    assert not pilot.has_pilot(experiment(declared={"workers": 1}))
    bare = experiment()
    ramp = bare.load.model_copy(update={"ramp": Ramp(duration_s=2.0)})
    assert not pilot.has_pilot(bare.model_copy(update={"load": ramp}))
    assert [
        pilot.describe_plan(experiment()),
        pilot.describe_plan(experiment(declared={"workers": 3})),
        pilot.describe_plan(experiment(client="3")),
        pilot.describe_plan(experiment(), 2),
    ] == [
        "event loops: auto (by a pilot)",
        "3 event loops",
        "1 event loop (auto: the load generator has one CPU or one connection)",
        "2 event loops",
    ]
    without = pilot.without_pilot(experiment(client="3"))
    assert (without["workers"], without["reason"]) == (1, "the load generator has one CPU or one connection")


def step(figures: Figures | None, variant: str = "a", workers: int = 1) -> Step:
    return {
        "variant": variant,
        "workload": "oltp_read_write",
        "workers": workers if figures is None else figures[0],
        "usage": None if figures is None else usage(*figures),
        "failure": "no route to host" if figures is None else None,
        "records": "01-a.jsonl.gz",
    }


@pytest.mark.parametrize(
    ("steps", "workers"),
    [
        ([step((1, 0.4, 0.0, 100))], 1),
        ([step((1, 0.9, 0.0, 100)), step((2, 0.5, 0.0, 100)), step((2, 0.4, 0.0, 9), "b")], 2),
        ([step((1, 0.4, 0.0, 100)), step((1, 0.9, 0.0, 9), "b"), step((2, 0.5, 0.0, 9), "b")], 2),
        ([step((1, 0.9, 0.0, 100)), step(None, workers=2)], 1),
        ([step(None), step((1, 0.9, 0.0, 9), "b"), step((2, 0.5, 0.0, 9), "b")], 2),
        ([step(None)], 1),
    ],
)
def test_all_trials_have_the_number_that_the_last_pilot_has_reached(steps: list[Step], workers: int) -> None:
    assert pilot.to_document(experiment(), steps)["workers"] == workers


def test_a_failed_pilot_is_noted() -> None:
    def notes(*steps: Step) -> list[tuple[str, str, str, str]]:
        found = pilot.findings(pilot.to_document(experiment(), steps))
        return [(one.code, one.level, one.subject, one.text) for one in found]

    assert notes(step((1, 0.4, 0.0, 100)), step((1, 0.4, 0.0, 100), "b")) == []
    text = (
        "the pilot of {} on oltp_read_write failed with {} (no route to host): all trials have {}, "
        "which may be too few"
    )
    one, two = "1 event loop", "2 event loops"
    assert notes(step(None), step(None, "b")) == [
        ("D01", "note", "a", text.format("a", one, one)),
        ("D01", "note", "b", text.format("b", one, one)),
    ]
    reached = (step((1, 0.9, 0.0, 9), "b"), step((2, 0.5, 0.0, 9), "b"))
    assert notes(step(None), *reached) == [("D01", "note", "a", text.format("a", one, two))]


def test_the_steps_are_printed() -> None:
    text = pilot.describe([step((1, 0.553, 0.38, 8120.4)), step(None, workers=2)])
    assert text == (
        "1 event loop: 55 % busy, 38 % waiting for a CPU, 8120 transactions/s; "
        "2 event loops: failed (no route to host)"
    )
