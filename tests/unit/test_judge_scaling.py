"""The scalability law in the verdict: the planted knee with an interval, and sweeps that do not hold it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit import simulated_trials
from tests.unit.pages import undrawn
from tests.unit.stored_run import Making, Speed, make, verdict_of

from dbdyno.decide.scaling import scaling
from dbdyno.experiment.model import Load
from dbdyno.experiment.schedule import Trial
from dbdyno.report import writing as report
from dbdyno.rules.design import peaks
from dbdyno.stats.usl import Law
from dbdyno.store.verdict import Scaling
from dbdyno.verdict import judge

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
    judge(run)
    return verdict_of(run) | {"run": run, "page": undrawn(run)}


def test_the_planted_knees_are_found_with_their_intervals(tmp_path: Path) -> None:
    verdict = judged(tmp_path, LAWS)
    found = {entry["variant"]: entry for entry in verdict["scaling"]}
    assert found.keys() == LAWS.keys()
    for name, law in LAWS.items():
        entry = found[name]
        low, high = entry["knee_interval"]
        assert low <= law.peak * 1.02
        assert high >= law.peak * 0.98
        assert low <= entry["knee_connections"] <= high
        assert entry["knee_connections"] == pytest.approx(law.peak, rel=0.1)
        assert entry["knee_throughput"] == pytest.approx(law.throughput(law.peak), rel=0.03)
        assert entry["fit_error_percent"] < 3
        assert (entry["levels"], entry["blocks"], entry["model"]) == ([2, 128], 8, "usl")
        assert entry["knee_throughput"] <= entry["highest"]["throughput"]
    assert not [check for check in verdict["checks"] if check["code"] == "R07"]
    assert "How oltp_read_write scales with connections" in verdict["page"]


def test_a_peak_outside_the_sweep_is_not_told_as_a_number(tmp_path: Path) -> None:
    laws = {"a": Law(4000.0, 0.03, 0.0), "b": Law(4000.0, 0.9, 0.5)}
    verdict = judged(tmp_path, laws)
    found = {entry["variant"]: entry for entry in verdict["scaling"]}
    assert (found["a"]["knee"], found["b"]["knee"]) == ("above", "below")
    assert found["a"]["knee_connections"] is found["b"]["knee_connections"] is None
    notes = [check["text"] for check in verdict["checks"] if check["code"] == "R07"]
    assert "oltp_read_write on a: throughput had not fallen at the highest load (128 connections)" in notes[0]
    assert "oltp_read_write on b: throughput already fell from the lowest load (2 connections) on" in notes[1]
    assert "not reached at 128" in verdict["page"]


def test_few_blocks_have_no_interval_and_few_levels_no_law(tmp_path: Path) -> None:
    exploratory = judged(tmp_path / "few", LAWS, blocks=3)
    for entry in exploratory["scaling"]:
        assert {entry[key] for key in entry if key.startswith("knee")} == {None}
    assert not [check for check in exploratory["checks"] if check["code"] == "R07"]
    assert "not reached at" not in exploratory["page"]
    for making in (
        Making(connections=(10, 20, 40), blocks=2),
        Making(connections=(9,), rates=(100, 200, 300, 400), blocks=2),
    ):
        run = make(tmp_path / str(len(making.connections)), making)
        assert judge(run).scaling is None
        assert "scaling" not in verdict_of(run)


def test_a_variant_without_results_at_some_levels_is_told_by_the_others(tmp_path: Path) -> None:
    verdict = judged(tmp_path, LAWS, absent=lambda t: t.variant == "b" and t.point.connections >= 16)
    assert [entry["variant"] for entry in verdict["scaling"]] == ["a"]


DOUBLING = (1, 2, 4, 8, 16, 32, 64)


def simulate(
    truth: Callable[[float], float],
    noise: float,
    experiments: int,
    levels: tuple[int, ...] = DOUBLING,
    blocks: int = 8,
) -> list[dict[str, Any]]:
    """Entries of `scaling` of one variant, whose trials differ from the truth by log-normal noise."""
    generator = np.random.default_rng([6, round(1000 * noise), blocks, *levels])
    plain = simulated_trials.experiment(variants="a", blocks=blocks)
    of = plain.model_copy(update={"load": Load(connections=levels, duration_s=10.0)})

    def throughput(trial: Trial) -> float:
        return truth(trial.point.connections) * math.exp(generator.normal(0.0, noise))

    return [
        scaling(simulated_trials.measured(of, throughput), of)[0].model_dump(mode="json")
        for _ in range(experiments)
    ]


def plateau_of_8(connections: float) -> float:
    """A server whose CPUs are busy from 8 connections on."""
    return 100.0 * min(connections, 8.0)


@pytest.mark.parametrize(
    ("noise", "levels", "blocks"),
    [
        (0.03, DOUBLING, 8),
        (0.20, DOUBLING, 8),
        # Loads so far apart that a law meets them all, and a flat sweep that every law meets.
        (0.03, (1, 4, 8, 64), 8),
        (0.10, (4, 8, 16, 32), 6),
        (0.03, (8, 16, 32, 64), 8),
    ],
)
def test_a_plateau_has_no_knee(noise: float, levels: tuple[int, ...], blocks: int) -> None:
    experiments = 40
    found = simulate(plateau_of_8, noise, experiments, levels, blocks)
    misses = [
        entry["knee_interval"]
        for entry in found
        if entry["knee_interval"] is not None
        and not (entry["knee_interval"][0] or 0.0) <= 8.0 <= (entry["knee_interval"][1] or math.inf)
    ]
    hits = [entry["plateau"][0] <= 8.0 and entry["plateau"][1] == levels[-1] for entry in found]
    # 5 % and three standard errors.
    assert len(misses) <= 0.155 * experiments
    assert sum(hits) >= 0.845 * experiments
    assert all(
        entry["knee_throughput"] is None or entry["knee_throughput"] <= entry["highest"]["throughput"]
        for entry in found
    )


def test_a_plateau_is_told_by_its_ends(tmp_path: Path) -> None:
    (entry,) = simulate(plateau_of_8, 0.01, 1)
    assert (entry["model"], entry["plateau"]) == (None, [8.0, 64.0])
    assert entry["highest"]["connections"] in {8.0, 16.0, 32.0, 64.0}
    assert entry["highest"]["throughput"] == pytest.approx(800.0, rel=0.03)
    assert entry["fit_error_percent"] > 20.0
    assert {entry[key] for key in entry if key.startswith("knee")} == {None}
    assert entry["curve"] == []
    assert list(peaks([Scaling.model_validate(entry)])) == []


@pytest.mark.parametrize(("noise", "told"), [(0.03, 0.9), (0.10, 0.2)])
def test_a_true_law_keeps_its_knee(noise: float, told: float) -> None:
    """Where noise hides that 64 connections are 17 % slower than 31, there is no knee."""
    experiments = 40
    law = Law(100.0, 0.02, 1e-3)
    found = simulate(law.throughput, noise, experiments)
    knees = [entry["knee_interval"] for entry in found if entry["knee"] == "inside"]
    hits = [(low or 0.0) <= law.peak <= (high or math.inf) for low, high in knees]
    assert len(knees) >= told * experiments
    assert sum(hits) >= 0.845 * len(knees)


def test_few_blocks_have_no_plateau() -> None:
    (entry,) = simulate(plateau_of_8, 0.01, 1, blocks=5)
    assert (entry["model"], entry["plateau"], entry["knee"]) == (None, None, None)
    assert entry["highest"]["throughput"] == pytest.approx(800.0, rel=0.03)


@pytest.mark.parametrize(("blocks", "place"), [(2, None), (5, None), (6, "inside")])
def test_a_knee_needs_the_blocks_that_show_the_rise_and_the_fall(blocks: int, place: str | None) -> None:
    """From two blocks on there is a law; below six nothing shows that throughput falls behind its knee."""
    found = simulate(Law(100.0, 0.02, 1e-3).throughput, 0.01, 10, blocks=blocks)
    assert {entry["model"] for entry in found} == {"usl"}
    assert {entry["knee"] for entry in found} == {place}


@pytest.mark.parametrize(("blocks", "kind"), [(3, "above"), (6, "above"), (3, "below"), (6, "below")])
def test_few_blocks_have_no_note_about_a_peak_outside_the_loads(blocks: int, kind: str) -> None:
    law = Law(100.0, 0.03, 0.0) if kind == "above" else Law(100.0, 0.9, 0.5)
    (entry,) = simulate(law.throughput, 0.005, 1, blocks=blocks)
    notes = list(peaks([Scaling.model_validate(entry)]))
    assert [note.evidence["knee"] for note in notes] == ([kind] if blocks == 6 else [])


def failing(blocks_failed: int, connections: int) -> dict[str, Any] | None:
    """The entry of a variant whose server fails at one load in so many of 8 blocks."""
    law = Law(100.0, 0.02, 1e-3)
    plain = simulated_trials.experiment(variants="a", blocks=8)
    of = plain.model_copy(update={"load": Load(connections=DOUBLING, duration_s=10.0)})

    def throughput(trial: Trial) -> float:
        failed = trial.block < blocks_failed and trial.point.connections == connections
        return 0.0 if failed else law.throughput(trial.point.connections)

    (entry,) = scaling(simulated_trials.measured(of, throughput), of)
    return entry.model_dump(mode="json")


@pytest.mark.parametrize(("blocks_failed", "highest"), [(1, 32.0), (5, 16.0)])
def test_a_server_that_fails_has_no_law_and_counts_as_zero(blocks_failed: int, highest: float) -> None:
    """32 connections are the best by far, unless most of their trials failed."""
    entry = failing(blocks_failed, 32)
    assert entry is not None
    assert entry["highest"]["connections"] == highest
    assert entry["highest"]["throughput"] == pytest.approx(Law(100.0, 0.02, 1e-3).throughput(highest))
    assert (entry["model"], entry["plateau"], entry["fit_error_percent"]) == (None, None, None)
    assert {entry[key] for key in entry if key.startswith("knee")} == {None}
    assert entry["curve"] == []
    assert failing(0, 32) != entry


def test_a_variant_that_fails_everywhere_does_not_scale() -> None:
    of = simulated_trials.experiment(variants="a", loads=4)
    assert scaling(simulated_trials.measured(of, lambda _trial: 0.0), of) == []


def test_the_report_says_why_a_failing_variant_has_no_law(tmp_path: Path) -> None:
    def crash(trial: Trial) -> str | None:
        fails = trial.variant == "b" and trial.point.connections == 128 and trial.block < 2
        return "server went away" if fails else None

    verdict = judged(tmp_path, LAWS, failed=crash)
    assert [entry["model"] for entry in verdict["scaling"]] == ["usl", None]
    page = report.write(verdict["run"]).read_text()
    assert "The server failed in trials of b, which count as 0: no line and no peak" in page
    assert "The law does not fit" not in page
