"""The scalability law in the verdict: the planted knee with an interval, and sweeps that do not hold it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.stored_run import Making, Speed, make

from dbdyno import report
from dbdyno.experiment.schedule import Trial
from dbdyno.judge import judge
from dbdyno.stats.usl import Law

SWEEP = (2, 8, 16, 32, 64, 128)
LAWS = {"a": Law(4000.0, 0.03, 1e-3), "b": Law(4000.0, 0.01, 2e-4)}


def speed(laws: dict[str, Law]) -> Speed:
    """The law's throughput, which moves by some percent from block to block."""

    def per_tick(trial: Trial, _tick: int) -> int:
        noise = 1.0 + 0.01 * ((trial.block * 7 + trial.point.connections) % 5 - 2)
        return round(laws[trial.variant].throughput(trial.point.connections) * noise / 10)

    return per_tick


def judged(folder: Path, laws: dict[str, Law], **making: Any) -> dict[str, Any]:
    run = make(folder, Making(connections=SWEEP, speed=speed(laws), duration_s=1.0, warmup_s=0.0, **making))
    verdict = judge(run)
    run.write_verdict(json.loads(json.dumps(verdict, allow_nan=False)))
    verdict["page"] = report.write(run).read_text()
    return verdict


def test_the_planted_knees_are_found_with_their_intervals(tmp_path: Path) -> None:
    verdict = judged(tmp_path, LAWS)
    found = {entry["variant"]: entry for entry in verdict["scaling"]}
    assert found.keys() == LAWS.keys()
    for name, law in LAWS.items():
        entry = found[name]
        low, high = entry["knee_interval"]
        assert low <= law.knee * 1.02
        assert high >= law.knee * 0.98
        assert low <= entry["knee_connections"] <= high
        assert entry["knee_connections"] == pytest.approx(law.knee, rel=0.1)
        assert entry["knee_throughput"] == pytest.approx(law.throughput(law.knee), rel=0.03)
        assert entry["fit_error_percent"] < 3
        assert (entry["levels"], entry["blocks"], entry["model"]) == ([2, 128], 8, "usl")
    assert not [check for check in verdict["checks"] if check["code"] == "R07"]
    assert "How oltp_read_write scales with connections" in verdict["page"]


def test_a_peak_outside_the_sweep_is_not_told_as_a_number(tmp_path: Path) -> None:
    laws = {"a": Law(4000.0, 0.03, 0.0), "b": Law(4000.0, 0.9, 0.5)}
    verdict = judged(tmp_path, laws)
    found = {entry["variant"]: entry for entry in verdict["scaling"]}
    assert (found["a"]["knee"], found["b"]["knee"]) == ("above", "below")
    assert found["a"]["knee_connections"] is found["b"]["knee_connections"] is None
    notes = [check["text"] for check in verdict["checks"] if check["code"] == "R07"]
    assert "oltp_read_write on a: throughput had not fallen at 128 connections" in notes[0]
    assert "oltp_read_write on b: throughput fell from 2 connections on" in notes[1]
    assert "not reached at 128" in verdict["page"]


def test_few_blocks_have_no_interval_and_few_levels_no_law(tmp_path: Path) -> None:
    exploratory = judged(tmp_path / "few", LAWS, blocks=3)
    assert {entry["knee_interval"] for entry in exploratory["scaling"]} == {None}
    assert "scaling" not in judge(make(tmp_path / "levels", Making(connections=(10, 20, 40), blocks=2)))
    assert "scaling" not in judge(
        make(tmp_path / "open", Making(connections=(9,), rates=(100, 200, 300, 400), blocks=2))
    )


def test_a_variant_without_results_at_some_levels_is_told_by_the_others(tmp_path: Path) -> None:
    verdict = judged(tmp_path, LAWS, absent=lambda t: t.variant == "b" and t.point.connections >= 16)
    assert [entry["variant"] for entry in verdict["scaling"]] == ["a"]
