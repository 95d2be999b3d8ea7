"""The remaining time: by the plan, and by what the parts of a run have taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.decide.stopping import ComparisonProgress
from dbdyno.decide.stopping import Progress as Look
from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload, Variant
from dbdyno.experiment.schedule import Trial, schedule
from dbdyno.experiment.workload import ROW_BYTES
from dbdyno.run import progress
from dbdyno.run.times import (
    COPY_BYTES_PER_S,
    GROUP_S,
    LOADING_S,
    ROWS_PER_S,
    TRIAL_OVERHEAD_S,
    Estimate,
)
from dbdyno.store.document import Why

EXPERIMENT = Experiment(
    name="test",
    workloads=(OltpWorkload(name="oltp_read_only"),),
    load=Load(connections=(1, 2, 4), duration_s=5.0, warmup_s=2.0),
    design=Design(blocks=8),
    variants=(Variant(name="a"), Variant(name="b")),
)
PLANNED = schedule(EXPERIMENT)
TRIAL_S = 7.0 + TRIAL_OVERHEAD_S


def begun(todo: tuple[Trial, ...] = PLANNED, **plan: float) -> Estimate:
    estimate = Estimate(EXPERIMENT)
    estimate.listen(progress.Began(Path("run"), todo, 0, **plan))  # type: ignore[arg-type]
    return estimate


def test_the_first_estimate_is_all_of_the_plan() -> None:
    estimate = begun(rows=120_000, test_starts=2)
    expected = 48 * (7.0 + TRIAL_OVERHEAD_S) + (16 + 2) * GROUP_S + LOADING_S + 120_000 / ROWS_PER_S
    assert estimate.left_s() == pytest.approx(expected)


def test_slices_are_whole() -> None:
    design = EXPERIMENT.design.model_copy(update={"pairing": "slices", "slice_s": 3.0})
    estimate = Estimate(EXPERIMENT.model_copy(update={"design": design}))
    assert estimate.trials_s(PLANNED[:1]) == pytest.approx(3.0 + 6.0 + TRIAL_OVERHEAD_S)


def test_a_group_costs_the_copy_of_its_data() -> None:
    difference_s = begun(group_rows=50_000_000).left_s() - begun().left_s()
    assert difference_s == pytest.approx(16 * 50e6 * ROW_BYTES / COPY_BYTES_PER_S)


def test_it_learns_what_a_group_costs_and_ends_at_nothing() -> None:
    estimate = begun()
    for group in range(16):
        for trial in PLANNED[3 * group : 3 * group + 3]:
            estimate.listen(progress.TrialEnded(trial, "", 1.0))
        # Ten seconds on top of what was planned.
        trials = PLANNED[3 * group : 3 * group + 3]
        estimate.listen(progress.GroupEnded(trials, 3 * TRIAL_S + 10.0))
        left = 15 - group
        assert estimate.left_s() == pytest.approx(left * (3 * TRIAL_S + 10.0))
    assert estimate.left_s() == 0.0


def test_the_test_starts_teach_before_the_first_group() -> None:
    estimate = begun(test_starts=2)
    estimate.listen(progress.TestStartEnded(1.0))
    estimate.listen(progress.TestStartEnded(2.0))
    assert estimate.left_s() == pytest.approx(48 * TRIAL_S + 16 * 1.5)


def test_loaded_data_cost_no_more_time() -> None:
    estimate = begun((), rows=10**9)
    estimate.listen(progress.Loaded())
    assert estimate.left_s() == 0.0


def test_repeated_blocks_take_their_time() -> None:
    estimate = begun(PLANNED[:3])
    before_s = estimate.left_s()
    estimate.listen(progress.Extended("1 of 8 blocks is repeated", PLANNED[3:6]))
    assert estimate.left_s() == pytest.approx(2 * before_s)


def test_trials_that_find_the_warm_up_take_their_time_and_change_the_rest() -> None:
    bare, with_warmup = begun(), begun(warmup_trials=2, warmup_trial_s=60.0)
    assert with_warmup.left_s() - bare.left_s() == pytest.approx(2 * (60.0 + GROUP_S))
    with_warmup.listen(progress.WarmupTrialEnded())
    with_warmup.listen(progress.WarmupTrialEnded())
    with_warmup.listen(progress.WarmupChosen(12.0))
    assert with_warmup.left_s() - bare.left_s() == pytest.approx(48 * (12.0 - 2.0))


def test_nothing_is_known_before_the_run_begins() -> None:
    assert Estimate(EXPERIMENT).left_s() == 0.0


def test_with_a_stop_only_the_blocks_that_the_judge_expects_are_left() -> None:
    def after_a_block(expected: int, why: Why | None = None, **plan: float) -> float:
        estimate = begun(PLANNED[6:], **plan)
        look = Look(False, (ComparisonProgress("b", "w", None, None, expected),))
        estimate.listen(progress.BlockEnded(1, 8, look, 100.0, why))
        return estimate.left_s()

    block_s = 6 * (7.0 + TRIAL_OVERHEAD_S) + 2 * GROUP_S
    assert begun().block_s == pytest.approx(block_s)
    assert after_a_block(3) == pytest.approx(3 * block_s)
    # No more than are planned, and no longer than the time.
    assert after_a_block(30) == pytest.approx(7 * block_s)
    assert after_a_block(3, max_time_s=50.0) == pytest.approx(50.0, abs=5.0)
    assert after_a_block(3, "time") == 0.0
