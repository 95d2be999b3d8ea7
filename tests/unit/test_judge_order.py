"""R10: a planted position effect is found, taken out of the cross-over interval, and shifts no verdict."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.truth import simulation
from tests.unit.simulated_trials import experiment, measured
from tests.unit.stored_run import Making, Speed, judged

from dbdyno.decide.decision import compare_all
from dbdyno.decide.order_effect import order_effect
from dbdyno.experiment.model import Stop
from dbdyno.experiment.schedule import Trial, schedule
from dbdyno.rules.design import order_finding
from dbdyno.stats.paired import Ratios
from dbdyno.store.verdict import OrderEffect

# What two blocks differ by, in log units; balanced.
STEPS = (-0.004, -0.001, 0.002, 0.005, -0.005, -0.002, 0.001, 0.004)


def positions(of: Any) -> dict[tuple[int, str], int]:
    """Block and variant -> 0 where the variant runs first in the block."""
    first: dict[tuple[int, str], int] = {}
    for trial in schedule(of):
        taken = sum(block == trial.block for block, _ in first)
        first.setdefault((trial.block, trial.variant), taken)
    return first


def simulated(
    position: float, effect: float, noise: Callable[[], float], *, seed: int = 1, blocks: int = 8
) -> OrderEffect | None:
    """The order of one simulated comparison: b differs by `effect`, what runs second by `position`."""
    of = experiment(blocks=blocks).with_order_seed(seed)
    second = positions(of)

    def throughput(trial: Trial) -> float:
        planted = effect if trial.variant == "b" else 0.0
        return 1000.0 * math.exp(planted + position * second[trial.block, trial.variant] + noise())

    (comparison,) = compare_all(measured(of, throughput), of, [])
    return comparison.order


def test_by_hand() -> None:
    """Without noise: a position effect of 5 %, a variant of -10 %, blocks with their sum or difference."""
    found = simulated(math.log(1.05), math.log(0.9), lambda: 0.0)
    assert found is not None
    assert found.effect_percent == pytest.approx(5.0)
    assert found.interval_percent == pytest.approx((5.0, 5.0))
    assert found.crossover_percent == pytest.approx(-10.0)
    assert found.crossover_interval_percent == pytest.approx((-10.0, -10.0))
    assert sum(found.blocks) == 8
    assert found.is_significant


def test_a_position_effect_of_5_percent_is_found_and_taken_out() -> None:
    random = np.random.default_rng(1)
    count, significant, covers, crossover_covers = 300, 0, 0, 0
    widths = []
    for seed in range(count):
        found = simulated(math.log(0.95), math.log(0.9), lambda: random.normal(0.0, 0.01), seed=seed)
        assert found is not None
        significant += found.is_significant and found.effect_percent < 0.0
        covers += found.interval_percent[0] <= -5.0 <= found.interval_percent[1]
        low, high = found.crossover_interval_percent
        crossover_covers += low <= -10.0 <= high
        widths.append(high - low)
    error = 3.0 * math.sqrt(0.029 * 0.971 / count)
    assert significant / count > 0.95
    # 4 and 4 blocks have a level of 2 / 70.
    assert covers / count >= 0.971 - error
    assert crossover_covers / count >= 0.971 - error
    # Half of it is about two standard errors of 0.5 %: what the position does is not in it.
    assert np.mean(widths) < 4.0


def test_without_one_it_is_seldom_significant() -> None:
    random = np.random.default_rng(2)
    count = 300
    significant = 0
    for seed in range(count):
        found = simulated(0.0, math.log(0.9), lambda: random.normal(0.0, 0.02), seed=seed)
        assert found is not None
        significant += found.is_significant
    assert significant / count <= 2 / 70 + 3.0 * math.sqrt(2 / 70 * 68 / 70 / count)


@pytest.mark.parametrize("variants", ["ab", "abcd"])
@pytest.mark.parametrize("seed", range(6))
def test_an_order_effect_is_no_effect_of_a_variant(seed: int, variants: str) -> None:
    """After any number of blocks, also when the variants are not equally often first."""
    of = experiment(variants=variants, blocks=20).with_order_seed(seed)
    of = of.model_copy(update={"design": of.design.model_copy(update={"stop": Stop(max_blocks=20)})})
    second = positions(of)
    trials = measured(of, lambda trial: 1000.0 * 0.95 ** second[trial.block, trial.variant])
    for blocks in range(8, 21):
        for one in compare_all([trial for trial in trials if trial.block < blocks], of, []):
            assert one.verdict in ("undecided", "too-few-blocks")


def test_a_periodic_disturbance_is_no_effect() -> None:
    """Pairs of blocks AB BA would have the period of this disturbance: 17 % false verdicts."""
    of, world = simulation.experiment(), simulation.World(sd=0.02, period=(1.9, 0.15))
    results = simulation.repeat(of, world, 400, seed=3)
    false = sum(result.is_false() for result in results) / 400
    assert false <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / 400)


def test_it_is_known_where_the_smallest_samples_reach_5_percent() -> None:
    assert simulated(0.05, 0.0, lambda: 0.0, blocks=8) is not None
    # Three and three blocks reach 2 / 20, three and four 2 / 35.
    assert simulated(0.05, 0.0, lambda: 0.0, blocks=6) is None
    assert simulated(0.05, 0.0, lambda: 0.0, blocks=7) is None


def test_a_ratio_without_a_number_has_no_order() -> None:
    of = experiment()
    trials = measured(of, lambda trial: 0.0 if (trial.block, trial.variant) == (3, "b") else 1000.0)
    (comparison,) = compare_all(trials, of, [])
    assert comparison.order is None
    bounded = Ratios(dict.fromkeys(range(8), 0.1), dict.fromkeys(range(8), 0.2))
    assert order_effect(bounded, trials, "a", "b") is None


SURE = OrderEffect(
    effect_percent=-5.0,
    interval_percent=(-6.0, -4.0),
    blocks=(4, 4),
    crossover_percent=-9.96,
    crossover_interval_percent=(-10.5, -9.04),
)
NAMES = ("a", "b", "oltp_read_write")


def changed(**values: Any) -> OrderEffect:
    """`SURE` with other values."""
    return SURE.model_copy(update=values)


def test_the_finding() -> None:
    (found,) = order_finding(SURE, NAMES, "throughput", None)
    assert (found.code, found.level, found.subject) == ("R10", "warn", "b")
    assert found.text == (
        "the variant that runs later in a block has -5.0 % throughput (95 % interval -6.0 to -4.0) on "
        "oltp_read_write: each trial affects the next one. The order is random, so the interval of the "
        "verdict allows for it; without the order effect b against a is -10.0 % (95 % interval -10.5 to -9.0)"
    )
    assert found.fix.startswith("To reduce it, use a longer warmup")
    assert found.evidence["crossover_interval_percent"] == [-10.5, -9.04]
    (found,) = order_finding(SURE, NAMES, "latency_p95_us", None)
    assert "has -5.0 % p95 latency" in found.text


@pytest.mark.parametrize(
    ("order", "delta_percent", "findings"),
    [
        (None, None, 0),
        (changed(interval_percent=(-10.0, 0.5)), None, 0),
        # Less than 1 %, or than half of the declared delta, is of no interest.
        (changed(effect_percent=0.9, interval_percent=(0.5, 1.3)), None, 0),
        (changed(effect_percent=1.1, interval_percent=(0.5, 1.7)), None, 1),
        (changed(effect_percent=1.1, interval_percent=(0.5, 1.7)), 3.0, 0),
        (changed(effect_percent=0.9, interval_percent=(0.5, 1.3)), 1.0, 1),
    ],
)
def test_what_is_a_finding(order: OrderEffect | None, delta_percent: float | None, findings: int) -> None:
    assert len(list(order_finding(order, NAMES, "throughput", delta_percent))) == findings


def ordered(position: float) -> Speed:
    """b is 10 % slower; what runs second in a block is slower or faster besides."""
    second = positions(experiment(blocks=8).with_order_seed(7))

    def speed(trial: Trial, _tick: int) -> int:
        effect = 0.9 if trial.variant == "b" else 1.0
        return round(
            10_000
            * effect
            * (1 + position * second[trial.block, trial.variant] + STEPS[trial.block] * effect)
        )

    return speed


def test_a_stored_run_has_it_beside_the_verdict(tmp_path: Path) -> None:
    making = Making(connections=(10,), order_seed=7, speed=ordered(-0.05))
    verdict = judged(tmp_path, making)
    (comparison,) = verdict["comparisons"]
    order = comparison["order"]
    assert order["effect_percent"] == pytest.approx(-5.0, abs=0.2)
    assert order["blocks"] == [4, 4]
    assert order["crossover_percent"] == pytest.approx(-10.0, abs=0.2)
    # What the position does is in the interval of the signed rank, and not in the cross-over's.
    (low, high), (left, right) = comparison["curve"]["interval_percent"], order["crossover_interval_percent"]
    assert low < left < -10.0 < right < high
    assert right - left < (high - low) / 2
    (check,) = [check for check in verdict["checks"] if check["code"] == "R10"]
    assert check["evidence"]["effect_percent"] == order["effect_percent"]
    assert "order effect -5.0 %, without it -10.0 % (R10)" in comparison["curve"]["sentence"]


def test_a_run_without_one_has_the_figures_and_no_finding(tmp_path: Path) -> None:
    verdict = judged(tmp_path, Making(connections=(10,), order_seed=7, speed=ordered(0.0)))
    (comparison,) = verdict["comparisons"]
    assert abs(comparison["order"]["effect_percent"]) < 0.5
    assert "R10" not in {check["code"] for check in verdict["checks"]}
    assert "later" not in comparison["curve"]["sentence"]
