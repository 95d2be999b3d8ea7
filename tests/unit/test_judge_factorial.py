"""Factorial experiments through the judge: planted effects come back, alone and together."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.stored_run import Making, make

from dbdyno import report
from dbdyno.experiment.model import Factor, OltpWorkload
from dbdyno.experiment.schedule import Trial
from dbdyno.judge import judge
from dbdyno.judge.factorial import contrasts
from dbdyno.report import tables

VERSIONS = Factor(name="version", levels=("8.0", "8.4", "9.7"))
THREADS = Factor(name="threads", levels=("per-connection", "pool"))
NOISE = np.random.default_rng(5)


def speed(trial: Trial, _tick: int) -> int:
    """1.1 times with 8.4, 0.8 times with 9.7; the pool makes 1.2 times, and 1.5 times on 9.7."""
    version, threads = trial.variant.split("+")
    factor = {"8.0": 1.0, "8.4": 1.1, "9.7": 0.8}[version]
    pool = (1.5 if version == "9.7" else 1.2) if threads == "pool" else 1.0
    # What drifts from block to block meets all alike.
    return round(10_000 * factor * pool * (1.0 + 0.1 * trial.block))


def factors(folder: Path, **making: Any) -> dict[tuple[str, ...], dict[str, Any]]:
    run = make(folder, Making(factors=(VERSIONS, THREADS), connections=(10, 20), speed=speed, **making))
    verdict = judge(run)
    return {(entry["workload"], *entry["levels"]): entry for entry in verdict["factors"]}


def test_main_effects_and_interactions_are_those_that_were_planted(tmp_path: Path) -> None:
    found = factors(tmp_path)
    name = "oltp_read_write"
    # Means of logarithms over the levels of the other factor.
    pool = math.exp((2 * math.log(1.2) + math.log(1.5)) / 3)
    newest = 0.8 * math.sqrt(1.5 / 1.2)
    expected = {
        (name, "8.4"): 1.1,
        (name, "9.7"): newest,
        (name, "pool"): pool,
        (name, "8.4", "pool"): 1.0,
        (name, "9.7", "pool"): 1.5 / 1.2,
    }
    assert found.keys() == expected.keys()
    for key, ratio in expected.items():
        entry = found[key]
        assert entry["effect_percent"] == pytest.approx((ratio - 1) * 100, abs=0.05), key
        low, high = entry["interval_percent"]
        assert low <= entry["effect_percent"] <= high
        assert entry["blocks"] == 8
    assert found[name, "8.4"]["verdict"] == "faster"
    assert found[name, "9.7"]["verdict"] == "slower"
    assert found[name, "8.4", "pool"]["verdict"] == "equivalent"
    assert (
        "threads pool is faster than per-connection on average over the other factors"
        in (found[name, "pool"]["sentence"])
    )
    told = found[name, "9.7", "pool"]["sentence"]
    assert told.startswith("The factors do not act alone: what threads pool does on oltp_read_write with")
    assert "with version 9.7 instead of 8.0 differs by +25" in told


def test_each_workload_has_its_own(tmp_path: Path) -> None:
    workloads = (OltpWorkload(name="oltp_read_write"), OltpWorkload(name="oltp_read_only", label="reads"))
    found = factors(tmp_path, workloads=workloads)
    assert {key[0] for key in found} == {"oltp_read_write", "reads"}
    assert len(found) == 10


def test_a_block_that_lacks_a_cell_is_left_out_of_what_needs_it(tmp_path: Path) -> None:
    found = factors(tmp_path, absent=lambda trial: trial.block == 3 and trial.variant == "9.7+pool")
    name = "oltp_read_write"
    # 8.4 against 8.0 needs no trial of 9.7.
    assert found[name, "8.4"]["blocks"] == 8
    assert found[name, "pool"]["blocks"] == found[name, "9.7"]["blocks"] == 7


def overwhelmed(trial: Trial, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """9.7 leaves half of what is due undone in every block; 8.4 with the pool, in one."""
    if trial.variant.startswith("9.7") or (trial.variant, trial.block) == ("8.4+pool", 3):
        # As many again were due and had not ended after two seconds.
        totals = records[-1]["data"]["phases"]["measure"]
        totals["censored_us"] = [[2_000_000, totals["events"]]]
        totals["accounting"]["unfinished"] = totals["events"]
        totals["accounting"]["due"] += totals["events"]
    return records


def test_latencies_that_were_cut_off_bear_on_a_factor_by_their_bounds(tmp_path: Path) -> None:
    """A block in which a server was overwhelmed is the answer, and none is left out for it."""
    making = Making(
        factors=(VERSIONS, THREADS), connections=(64,), rates=(500.0,), speed=speed, spoil=overwhelmed
    )
    run = make(tmp_path, making)
    verdict = judge(run)
    found = {tuple(entry["levels"]): entry for entry in verdict["factors"]}
    assert {entry["blocks"] for entry in found.values()} == {8}
    newest = found["9.7",]
    assert (newest["bound"], newest["verdict"]) == ("at-least", "slower")
    assert newest["interval_percent"][1] is None
    assert "version 9.7 is slower than 8.0" in newest["sentence"]
    assert "more than +" in newest["sentence"]
    assert newest["effect_percent"] == pytest.approx(_at_least(run.path, "9.7", "8.0"))
    # A single bound in one of eight blocks leaves the estimate, the median of averages, as it was.
    assert found["8.4",]["effect_percent"] == pytest.approx((1 / 1.1 - 1) * 100, abs=0.05)
    assert found["8.4",]["interval_percent"][1] is None
    # What is subtracted from what is not known either: nothing is certain.
    pool = found["pool",]
    assert pool["interval_percent"] == [-100.0, None]
    assert pool["verdict"] == found["9.7", "pool"]["verdict"] == "not-distinguishable"
    run.write_verdict(verdict)
    assert "≥ +" in report.write(run).read_text()


def _at_least(folder: Path, version: str, base: str) -> float:
    """The estimate at the p95 as they stand: the median of all averages of two blocks, in percent."""
    stored = json.loads((folder / "measured.json").read_text())["trials"]
    p95 = {(t["place"]["variant"], t["place"]["block"]): t["figures"]["latency_p95_us"] for t in stored}
    by_block = [
        np.mean([math.log(p95[f"{version}+{t}", b] / p95[f"{base}+{t}", b]) for t in THREADS.levels])
        for b in range(8)
    ]
    averages = [(by_block[i] + by_block[j]) / 2 for i in range(8) for j in range(i, 8)]
    return (math.exp(float(np.median(averages))) - 1) * 100


def test_few_blocks_are_exploratory(tmp_path: Path) -> None:
    found = factors(tmp_path, blocks=2)
    assert {entry["verdict"] for entry in found.values()} == {"exploratory"}
    assert "exploratory only" in found["oltp_read_write", "pool"]["sentence"]


def test_contrasts_are_those_of_a_linear_model() -> None:
    """Against an independent computation: least squares on the cells with effect-coded factors."""
    rng = np.random.default_rng(1)
    values: dict[tuple[str, ...], float] = {cell: float(rng.normal()) for cell in _cells()}
    for contrast in (*contrasts((VERSIONS, THREADS), 1), *contrasts((VERSIONS, THREADS), 2)):
        assert sum(contrast.weights.values()) == pytest.approx(0.0)
        mine = sum(weight * values[cell] for cell, weight in contrast.weights.items())
        assert mine == pytest.approx(_by_least_squares(values, contrast.levels))


def _cells() -> list[tuple[str, str]]:
    return [(version, threads) for version in VERSIONS.levels for threads in THREADS.levels]


def _by_least_squares(values: dict[tuple[str, ...], float], levels: tuple[str, ...]) -> float:
    """The same from a regression on effect-coded factors (each level's effects add up to 0)."""
    versions, threads = VERSIONS.levels, THREADS.levels
    coded_version = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    coded_threads = np.array([[1.0], [-1.0]])
    rows = []
    for version, thread in _cells():
        v, t = coded_version[versions.index(version)], coded_threads[threads.index(thread)]
        rows.append(np.concatenate([[1.0], v, t, v * t]))
    solution = np.linalg.lstsq(np.array(rows), np.array([values[cell] for cell in _cells()]), rcond=None)[0]
    of_version, of_threads = coded_version @ solution[1:3], coded_threads @ solution[3:4]
    of_both = coded_version @ np.outer(solution[4:6], coded_threads.T)
    if len(levels) == 2:
        row = versions.index(levels[0])
        return float((of_both[row, 1] - of_both[row, 0]) - (of_both[0, 1] - of_both[0, 0]))
    if levels[0] in versions:
        return float(of_version[versions.index(levels[0])] - of_version[0])
    return float(of_threads[1] - of_threads[0])


def test_an_experiment_without_factors_says_nothing_of_them(tmp_path: Path) -> None:
    assert "factors" not in judge(make(tmp_path))


def test_the_report_tells_what_each_factor_does(tmp_path: Path) -> None:
    run = make(tmp_path, Making(factors=(VERSIONS, THREADS), connections=(10, 20), speed=speed, blocks=10))
    run.write_verdict(judge(run))
    page = report.write(run).read_text()
    assert "Effect of each factor on the throughput of oltp_read_write" in page
    assert ">interact</span>" in page
    for row in judge(run)["factors"]:
        assert row["sentence"] in page
        assert "The effect of" in tables.as_markdown(run)
