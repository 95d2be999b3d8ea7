"""The tables of benchmarks/engine: sysbench in its default scheduling class, and in SCHED_BATCH."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from tests.unit.figures import tables

from dbdyno.servers.server import Address

ENGINE = Path(__file__).resolve().parents[2] / "benchmarks/engine"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    for folder in (ENGINE, ENGINE.parent):
        monkeypatch.syspath_prepend(str(folder))
    for name in ("peer", "sides", "table", "watching"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module("sides"), import_module("table")


@pytest.mark.parametrize("has_batch", [False, True])
def test_the_columns_of_sysbench_in_batch_follow_its_runs(
    modules: tuple[ModuleType, ModuleType], has_batch: bool
) -> None:
    sides, table = modules
    slow, fast = ([sides.Measured(rate, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)] * 6 for rate in (500.0, 2000.0))
    runs = {"dbdyno": [sides.Measured(1000.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)] * 6, "sysbench": slow}
    if has_batch:
        runs["sysbench batch"] = fast
    text, missed = table.table("t", [table.Point.of(16, runs, "bare loop")], table.Targets(), 90)
    header, rule, *lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in (header, rule, *lines)} == {14 if has_batch else 11}
    (row,) = [row for row in tables(text) if row.is_named("throughput")]
    assert row.cells["dbdyno / sysbench"] == "2.000"
    assert row.cells.get("dbdyno / sysbench batch") == ("0.500" if has_batch else None)
    assert not missed


@pytest.mark.parametrize(("scheduling", "names"), [("batch", ["", "batch"]), ("normal", [""])])
def test_sysbench_runs_in_batch_too_where_dbdyno_does(
    modules: tuple[ModuleType, ModuleType], scheduling: str, names: list[str]
) -> None:
    peers = modules[0].sysbenches(Address("127.0.0.1", 3306, None, "root", "sbtest", ""), scheduling)
    assert [peer.name for peer in peers] == [f"sysbench {name}".strip() for name in names]
    assert [peer.scheduler[:2] for peer in peers] == [("chrt", "--batch") if name else () for name in names]
