"""Slices: their length, their rounds, the order in each round, and what cannot alternate."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dbdyno.design import planning
from dbdyno.design.planning import choose_pairing
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.reading import from_document
from dbdyno.experiment.schedule import round_order, schedule
from dbdyno.experiment.slices import load_s, rounds, slice_s
from dbdyno.run.alternating import complete_points

REMOTE = {"name": "a", "server": {"kind": "remote", "url": "mysql://u@h/d"}}


def document(**changes: Any) -> dict[str, Any]:
    """An experiment in slices; `changes` replace keys of its tables, as in load__rate=[100]."""
    tables: dict[str, Any] = {
        "experiment": {"name": "slices"},
        "workload": [{"name": "oltp_point_select"}],
        "load": {"connections": [4, 8], "duration": "2s", "warmup": "600ms"},
        "design": {"pairing": "slices", "blocks": 4},
        "variant": [{"name": "a"}, {"name": "b"}],
    }
    for key, value in changes.items():
        table, _, name = key.partition("__")
        if name:
            tables[table][name] = value
        else:
            tables[table] = value
    return tables


def read(**changes: Any) -> Experiment:
    return from_document(document(**changes), "test.toml", Path())


def errors(**changes: Any) -> dict[str, str]:
    with pytest.raises(InvalidExperiment) as raised:
        read(**changes)
    return {error.key: error.problem for error in raised.value.errors}


def sql(statement: str) -> dict[str, Any]:
    return {"name": "sql", "transactions": [{"statements": ["BEGIN", statement, "COMMIT"]}]}


@pytest.mark.parametrize(
    ("workload", "length_s"),
    [
        ({"name": "oltp_read_only"}, 0.25),
        ({"name": "oltp_read_write"}, 1.0),
        (sql("SELECT 1"), 0.25),
        (sql(" with t as (select 1) select * from t"), 0.25),
        (sql("SELECT 1 FOR UPDATE"), 1.0),
        (sql("DELETE FROM t"), 1.0),
    ],
)
def test_slices_of_writing_workloads_are_longer(workload: dict[str, Any], length_s: float) -> None:
    experiment = read(workload=[workload])
    assert slice_s(experiment, experiment.workloads[0].title, 4) == length_s


@pytest.mark.parametrize(
    ("workload", "connections", "length_s"),
    [
        ({"name": "oltp_point_select"}, 64, 0.25),
        ({"name": "oltp_point_select"}, 1024, 2.048),
        ({"name": "oltp_read_write"}, 16, 1.0),
        ({"name": "oltp_read_write"}, 64, 2.56),
        ({"name": "oltp_write_only"}, 256, 3.072),
        ({"name": "oltp_read_only", "range_selects": False}, 128, 3.072),
        (sql("SELECT 1"), 1024, 6.144),
    ],
)
def test_slices_of_many_connections_last_forty_rounds(
    workload: dict[str, Any], connections: int, length_s: float
) -> None:
    experiment = read(workload=[workload], load__duration="8s")
    assert slice_s(experiment, experiment.workloads[0].title, connections) == pytest.approx(length_s)


def test_connections_that_need_too_long_slices_are_refused() -> None:
    """A slice must have room for five rounds: 64 connections, 20 statements of 50 µs."""
    changes = {"workload": [{"name": "oltp_read_write"}], "load__connections": [4, 2048]}
    found = errors(**changes, load__duration="30s")
    assert found == {
        "load.connections": "oltp_read_write with so many needs slices of 10.24 s; the maximum here is 10 s"
    }
    assert slice_s(read(**changes, design__slice="2s"), "oltp_read_write", 2048) == 2.0
    fewer = read(workload=[{"name": "oltp_read_write"}], load__connections=[64])
    assert slice_s(fewer, "oltp_read_write", 64) == 2.0
    assert "load.connections" in errors(workload=[{"name": "oltp_read_write"}], load__duration="500ms")


@pytest.mark.parametrize(
    ("title", "rows", "length_s"),
    [
        ("micro/point-query", 200_000, 0.25),
        ("micro/random-points-1000", 200_000, 0.25),
        # 14 statements, of which two return 10,000 rows, with 4 connections.
        ("micro/read-only-10000", 200_000, 2.0),
        ("micro/scan", 25_000, 1.608),
    ],
)
def test_slices_of_long_transactions_are_longer(title: str, rows: int, length_s: float) -> None:
    experiment = read(workload=[{"name": title, "rows": rows}])
    assert slice_s(experiment, title, 4) == pytest.approx(length_s)


def test_a_scan_of_too_many_rows_is_refused_by_name() -> None:
    names = ["micro/point-query", "micro/scan"]
    found = errors(workload=[{"name": name, "rows": 10_000_000} for name in names], load__connections=[4])
    assert found == {
        "load.connections": "micro/scan with so many needs slices of 80.001 s; the maximum here is 2 s"
    }


def test_one_variant_that_writes_lengthens_the_slices_of_all() -> None:
    variants = [{"name": "a"}, {"name": "b", "workload": {"name": "oltp_read_write"}}]
    assert slice_s(read(variant=variants), "oltp_point_select", 8) == 1.0


def test_each_variant_gets_its_duration_and_its_warmup_in_whole_slices() -> None:
    assert rounds(read(), "oltp_point_select", 8, 0.6) == (3, 8)
    assert rounds(read(design__slice="100ms"), "oltp_point_select", 8, 0.3) == (3, 20)


def test_the_load_of_a_trial_is_whole_slices() -> None:
    assert load_s(read(), "oltp_point_select", 8, 0.6) == pytest.approx((0.75, 2.0))
    assert load_s(read(design__slice="1500ms"), "oltp_point_select", 8, 0.6) == pytest.approx((1.5, 3.0))
    assert load_s(read(design__pairing="trials"), "oltp_point_select", 8, 0.6) == (0.6, 2.0)


@pytest.mark.parametrize("state", ["restore", "restart"])
def test_servers_that_dbdyno_does_not_start_are_neither_restored_nor_restarted(state: str) -> None:
    commands = {name: ["true"] for name in ("start", "stop", "restore")}
    variants = [
        {"name": n, "server": {"kind": "command", "url": f"mysql://{n}@{n}/{n}", **commands}} for n in "ab"
    ]
    for allowed in ("reset", "preserve"):
        read(design__state=allowed, variant=variants)
    (problem,) = set(errors(design__state=state, variant=variants).values())
    assert problem.endswith("dbdyno restores and restarts only servers that it starts")


def test_the_order_in_a_round_is_random_and_the_same_in_a_resumed_run() -> None:
    experiment = read(variant=[{"name": "a"}, {"name": "b"}, {"name": "c"}])
    trials = schedule(experiment)
    first, other_point = trials[0], trials[1]
    other_block = next(trial for trial in trials if (trial.block, trial.point) == (1, first.point))
    orders = {
        trial.index: [tuple(round_order(experiment, trial, number)) for number in range(600)]
        for trial in (first, other_point, other_block)
    }
    counts = Counter(orders[first.index])
    assert {tuple(sorted(order)) for order in counts} == {("a", "b", "c")}
    assert len(counts) == 6
    # Five standard deviations around 100.
    assert all(55 < count < 145 for count in counts.values()), counts
    assert len({tuple(one) for one in orders.values()}) == 3
    # The partner's trial of the same point gives the same order.
    partner = next(t for t in trials if t.variant != first.variant and t.point == first.point)
    assert round_order(experiment, partner, 7) == list(orders[first.index][7])


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"load__connections": [4], "load__rate": [100]}, "load.rate"),
        ({"load__ramp": {"duration": "1s"}}, "load.ramp"),
        ({"load__think_time": "1ms"}, "load.think_time"),
        ({"load__reconnect_every": 5}, "load.reconnect_every"),
        ({"design__state": "reset"}, "design.state"),
        ({"design__state_per": "trial"}, "design.state_per"),
        ({"design__slice": "3s"}, "design.slice"),
        ({"design__slice": "10ms"}, "design.slice"),
        ({"design__pairing": "trials", "design__slice": "1s"}, "design.slice"),
        ({"variant": [{"name": "a"}]}, "design.pairing"),
        (
            {"variant": [{"name": "a"}, {"name": "b", "load": {"reconnect_every": 5}}]},
            "variant[b].load.reconnect_every",
        ),
        (
            {"variant": [{"name": n, "server": {"variables": {"port": 3399}}} for n in "ab"]},
            "variant[b].server.variables.port",
        ),
        (
            {
                "variant": [
                    {"name": n, "server": {"variables": {"port": port}}}
                    for n, port in (("a", 3399), ("b", "3399"))
                ]
            },
            "variant[b].server.variables.port",
        ),
        (
            {
                "design": {"pairing": "slices", "blocks": 4, "state": "preserve"},
                "variant": [
                    {"name": n, "server": {"kind": "remote", "url": f"mysql://{n}@host/{n}"}} for n in "ab"
                ],
            },
            "variant[b].server.url",
        ),
    ],
)
def test_what_cannot_alternate_is_refused(changes: dict[str, Any], key: str) -> None:
    assert list(errors(**changes)) == [key]


def test_a_script_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "x.lua"
    script.write_text("function event() end\n")
    assert list(errors(workload=[{"script": str(script)}])) == ["workload[x].script"]


def test_a_point_of_which_a_trial_is_missing_runs_again_for_all_variants() -> None:
    planned = schedule(read())
    (missing,) = (t for t in planned if (t.block, t.variant, t.point.connections) == (1, "b", 4))
    finished = {trial.index for trial in planned} - {missing.index}
    again = {trial.index for trial in planned} - complete_points(planned, finished)
    assert {(planned[i].block, planned[i].variant, planned[i].point.connections) for i in again} == {
        (1, "a", 4),
        (1, "b", 4),
    }


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        ({}, "slices"),
        ({"workload": [{"name": "oltp_read_write"}]}, "trials"),
        ({"workload": [sql("SELECT 1")]}, "trials"),
        ({"workload": [{"name": "oltp_read_only", "range_size": 1_000}]}, "slices"),
        ({"workload": [{"name": "oltp_read_only", "range_size": 1_001}]}, "trials"),
        ({"variant": [{"name": "a"}]}, "trials"),
        ({"load": {"connections": [4], "rate": [100.0], "duration": "2s"}}, "trials"),
        ({"load": {"connections": [1024], "duration": "1s"}}, "trials"),
        ({"design": {"pairing": "auto", "blocks": 4, "state": "restart"}}, "trials"),
        ({"variant": [{"name": "a"}, {"name": "b", "server": {"before_trial": ["sync"]}}]}, "trials"),
        ({"design": {"blocks": 4, "state": "preserve"}, "variant": [REMOTE, {"name": "b"}]}, "trials"),
        ({"design": {"pairing": "trials", "blocks": 4}}, "trials"),
    ],
)
def test_loads_that_only_read_alternate_by_default(changes: dict[str, Any], chosen: str) -> None:
    experiment = read(**{"design": {"blocks": 4}} | changes)
    assert choose_pairing(experiment).design.pairing == chosen


def test_servers_that_do_not_fit_into_the_memory_together_run_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small, large = ({"name": "oltp_point_select", "table_size": size} for size in (1_000, 10_000_000))
    pool = [{"name": name, "server": {"variables": {"innodb_buffer_pool_size": "1G"}}} for name in "ab"]
    monkeypatch.setattr(planning, "memory_bytes", lambda: 2 * 2**30)
    found = [
        choose_pairing(read(workload=[workload], variant=variants, design={"blocks": 4})).design.pairing
        for workload, variants in (
            (small, [{"name": "a"}, {"name": "b"}]),
            (large, [{"name": "a"}, {"name": "b"}]),
            (small, pool),
        )
    ]
    assert found == ["slices", "trials", "trials"]


def test_a_resumed_run_keeps_its_pairing() -> None:
    undeclared, in_slices = read(design={"blocks": 4}), read()
    assert undeclared.with_pairing_of(in_slices.design).design.pairing == "slices"
    # A run that is older than the key, and has trials.
    assert undeclared.with_pairing_of(undeclared.design) == undeclared
    assert in_slices.with_pairing_of(undeclared.design) == in_slices
