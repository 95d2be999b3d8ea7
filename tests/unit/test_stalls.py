"""Stalls: the ticks of a trial's window, the longest gap, and how a report shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.stored_run import Making, make
from tests.unit.test_judge_golden import recorded

from dbdyno.measure.figures import SPANS_MAX, ticks
from dbdyno.measure.recording import Recording
from dbdyno.report import writing as report
from dbdyno.report.model import gather
from dbdyno.report.tables import gap_text, has_stall
from dbdyno.report.time_chart import stall_charts
from dbdyno.store.measured import MeasuredTrial, Window
from dbdyno.verdict import judge


def recording(ends_us: list[int]) -> Recording:
    return Recording(plan={"load": {"shape": "closed"}}, ticks=[(end_us, 10) for end_us in ends_us])


def test_ticks_are_those_of_the_window_and_a_part_of_one_is_left_out() -> None:
    found = ticks(recording([100_000 * number for number in range(1, 20)]), Window(300_000, 1_250_000, None))
    assert found is not None
    assert (found.start_us, found.width_us, found.events) == (300_000, 100_000, (10,) * 9)


def test_a_long_window_has_wider_spans() -> None:
    hour = 3_600_000_000
    found = ticks(recording(list(range(100_000, hour + 1, 100_000))), Window(0, hour, None))
    assert found is not None
    assert len(found.events) == SPANS_MAX
    assert found.width_us == hour // SPANS_MAX
    assert sum(found.events) == 10 * hour // 100_000


def test_slices_and_records_without_ticks_have_none() -> None:
    assert ticks(recorded("slices"), Window(0, 10_000_000, None)) is None
    assert ticks(recording([]), Window(0, 1_000_000, None)) is None
    golden = recorded("closed-loop")
    measure = golden.measure
    found = ticks(golden, Window(measure["start_us"], measure["end_us"], None))
    assert found is not None
    assert sum(found.events) == measure["events"]


@pytest.fixture
def trials(tmp_path: Path) -> tuple[Any, list[MeasuredTrial]]:
    run = make(tmp_path, Making(speed=lambda _trial, _second: 100))
    judge(run)
    shown = gather(run)
    return shown, list(shown.trials)


def with_gap(trial: MeasuredTrial, gap_us: int | None) -> MeasuredTrial:
    assert trial.figures is not None
    start_us = trial.window.start_us if trial.window and gap_us else None
    return replace(
        trial, figures=replace(trial.figures, longest_gap_us=gap_us, longest_gap_start_us=start_us)
    )


def test_the_longest_gap_is_named_and_a_long_one_unfolds_the_charts(trials: Any) -> None:
    shown, all_trials = trials
    assert gap_text([with_gap(one, None) for one in all_trials]) == ""
    assert gap_text([with_gap(one, 0) for one in all_trials]) == ""
    short = [with_gap(one, 1_000 * (one.index + 1)) for one in all_trials]
    last = short[-1]
    assert f"({last.variant}, trial {last.index + 1})" in gap_text(short)
    assert not has_stall(short)
    assert has_stall([with_gap(one, 600_000) for one in all_trials])
    (first, *_) = [one for one in all_trials if one.ticks]
    load = [with_gap(one, 600_000) for one in all_trials if one.ticks and one.point == first.point]
    (chart,) = stall_charts(shown, first.workload, load)
    drawn = chart.specification.to_dict()
    assert len(drawn["layer"]) == 3
    marks = drawn["datasets"][drawn["layer"][2]["data"]["name"]]
    assert {one["variant"] for one in marks} == set(shown.variants)
    assert all(one["end"] - one["s"] == pytest.approx(0.6) for one in marks)


def test_the_page_has_the_charts_folded_if_no_gap_is_long(tmp_path: Path) -> None:
    run = make(tmp_path, Making(speed=lambda _trial, _second: 100))
    judge(run)
    page = report.write(run).read_text()
    # The records of these runs are those of an older engine, which did not record gaps.
    assert "Stalls: the longest gap" not in page
