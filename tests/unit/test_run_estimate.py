"""The time left: what is planned, and what has been learnt."""

from __future__ import annotations

import pytest

from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload, Variant
from dbdyno.experiment.schedule import schedule
from dbdyno.run.estimate import COPY_BYTES_PER_S, GROUP_S, LOADING_S, ROW_BYTES, ROWS_PER_S, TRIAL_S, Estimate

EXPERIMENT = Experiment(
    name="test",
    workloads=(OltpWorkload(name="oltp_read_only"),),
    load=Load(connections=(1, 2, 4), duration_s=5.0, warmup_s=2.0),
    design=Design(blocks=8),
    variants=(Variant(name="a"), Variant(name="b")),
)


def test_the_first_estimate_is_all_of_the_plan() -> None:
    estimate = Estimate(EXPERIMENT, list(schedule(EXPERIMENT)), rows=120_000, rehearsals=2)
    expected = 48 * (7.0 + TRIAL_S) + (16 + 2) * GROUP_S + LOADING_S + 120_000 / ROWS_PER_S
    assert estimate.left_s() == pytest.approx(expected)


def test_a_group_costs_the_copy_of_its_data() -> None:
    todo = list(schedule(EXPERIMENT))
    bare, large = Estimate(EXPERIMENT, todo), Estimate(EXPERIMENT, todo, group_rows=50_000_000)
    assert large.left_s() - bare.left_s() == pytest.approx(16 * 50e6 * ROW_BYTES / COPY_BYTES_PER_S)


def test_it_learns_what_a_group_costs_and_ends_at_nothing() -> None:
    todo = list(schedule(EXPERIMENT))
    estimate = Estimate(EXPERIMENT, list(todo))
    for group in range(16):
        for trial in todo[3 * group : 3 * group + 3]:
            estimate.trial_ended(trial)
        # Ten seconds on top of what was planned.
        estimate.group_ended(3 * estimate.trial_s + 10.0, trials=3)
        left = 15 - group
        assert estimate.left_s() == pytest.approx(left * (3 * estimate.trial_s + 10.0))
    assert estimate.left_s() == 0.0


def test_a_rehearsal_teaches_before_the_first_group() -> None:
    estimate = Estimate(EXPERIMENT, list(schedule(EXPERIMENT)), rehearsals=2)
    estimate.rehearsed(1.0)
    estimate.rehearsed(2.0)
    assert estimate.left_s() == pytest.approx(48 * estimate.trial_s + 16 * 1.5)


def test_loaded_data_cost_no_more_time() -> None:
    estimate = Estimate(EXPERIMENT, [], rows=10**9)
    estimate.loaded()
    assert estimate.left_s() == 0.0


def test_trials_that_find_the_warm_up_take_their_time_and_change_the_rest() -> None:
    todo = list(schedule(EXPERIMENT))
    bare, rehearsed = Estimate(EXPERIMENT, todo), Estimate(EXPERIMENT, todo, long_trials=2, long_trial_s=60.0)
    assert rehearsed.left_s() - bare.left_s() == pytest.approx(2 * (60.0 + GROUP_S))
    rehearsed.long_trial_ended()
    rehearsed.long_trial_ended()
    rehearsed.warmup_s = 12.0
    assert rehearsed.left_s() - bare.left_s() == pytest.approx(48 * (12.0 - 2.0))
