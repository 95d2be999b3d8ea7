"""What a report of equal variants says besides its verdicts is seldom false, however large the run is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.truth.reports import with_costs
from benchmarks.truth.simulation import World, experiment, simulate
from scipy import stats

from dbdyno.decide.cost_changes import explain
from dbdyno.decide.order_effect import shift_p_value
from dbdyno.stats.family import ADVISORY_ALPHA, COSTS_ALPHA, costs_levels
from dbdyno.stats.joint import family_p_values
from dbdyno.stats.paired import ALPHA


def test_a_large_run_seldom_names_a_cost_that_did_not_change() -> None:
    """Four variants and two loads are three comparisons with three families each: 5 % of each was 20 %."""
    random, of, runs = np.random.default_rng(8), experiment(variants=4, loads=2), 40
    false = 0
    for _ in range(runs):
        trials = simulate(of, World(), random)
        comparisons = explain(trials, with_costs(trials, random), of).comparisons
        false += any(
            one.significant
            for comparison in comparisons
            for one in (*comparison.measures, *(each for at in comparison.points for each in at.measures))
        )
    assert false / runs <= COSTS_ALPHA + 3.0 * math.sqrt(COSTS_ALPHA * (1.0 - COSTS_ALPHA) / runs)


def test_what_a_report_says_besides_its_verdicts_has_5_percent() -> None:
    total = COSTS_ALPHA + 3 * ADVISORY_ALPHA
    assert total == pytest.approx(ALPHA)
    assert costs_levels(8, several_loads=False) == (COSTS_ALPHA, 0.0)
    assert costs_levels(8, several_loads=True) == (COSTS_ALPHA / 2.0, COSTS_ALPHA / 2.0)
    # The checks need eight blocks; with six, half of 5 % is beyond the reach of the costs at single loads.
    assert costs_levels(7, several_loads=True) == (ALPHA / 2.0, ALPHA / 2.0)
    assert costs_levels(6, several_loads=True) == (ALPHA, 0.0)
    assert costs_levels(0, several_loads=True) == (ALPHA, 0.0)


def test_a_row_without_some_blocks_is_tested_on_the_others() -> None:
    row = [0.1, 0.2, 0.3, math.nan, 0.2, 0.1, 0.3, 0.2]
    present = [one for one in row if not math.isnan(one)]
    assert family_p_values([row]) == family_p_values([present])
    assert family_p_values([[math.nan] * 7 + [0.1]]) == [1.0]


def test_the_p_value_of_a_shift_is_that_of_students_test() -> None:
    random = np.random.default_rng(1)
    one, other = random.normal(0.0, 1.0, 4).tolist(), random.normal(1.0, 1.0, 5).tolist()
    assert shift_p_value(one, other) == pytest.approx(stats.ttest_ind(one, other).pvalue)
    assert shift_p_value([0.1, 0.1], [0.2, 0.2]) == 0.0
    assert shift_p_value([0.1, 0.1], [0.1, 0.1]) == 1.0
    assert shift_p_value([0.1], [0.2]) == shift_p_value([], [0.1, 0.2, 0.3]) == 1.0
