"""R01: the test for drift keeps its error rate on simulated trials, and says by how much and whose."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from benchmarks.truth.warmup import (
    AUTO_3,
    AUTO_5,
    AUTO_10,
    AUTO_30,
    DECLARED_3,
    DECLARED_5,
    NAMES,
    TICKS_PER_S,
    TITLE,
    Plan,
    experiment,
    recording,
    simulate,
)

from dbdyno.experiment.model import Design, OltpWorkload
from dbdyno.experiment.shapes import Ramp
from dbdyno.measure.figures import drift, windows
from dbdyno.measure.recording import Recording
from dbdyno.rules import warmth
from dbdyno.rules.warmth import warm_state
from dbdyno.stats.family import ADVISORY_ALPHA
from dbdyno.store.measured import Drift, MeasuredTrial, ScheduleEntry, Window

FALSE_MAX, TRUE_MIN = ADVISORY_ALPHA, 0.80


def monte_carlo(share: float, experiments: int) -> float:
    """Three standard errors of a share among so many experiments."""
    return 3.0 * math.sqrt(share * (1.0 - share) / experiments)


@pytest.mark.parametrize(
    ("plan", "shocks"),
    [
        pytest.param(AUTO_3, "normal", id="auto 3 s"),
        pytest.param(replace(AUTO_5, levels=3), "normal", id="auto 5 s, 3 levels"),
        pytest.param(AUTO_5, "heavy", id="auto 5 s, heavy tails"),
        pytest.param(replace(DECLARED_5, blocks=12), "walk", id="2 s and 5 s, random walk, 12 blocks"),
        pytest.param(DECLARED_3, "normal", id="1 s and 3 s"),
        pytest.param(replace(AUTO_5, variants=6), "normal", id="auto 5 s, 6 variants"),
    ],
)
def test_warm_servers_are_seldom_called_cold(plan: Plan, shocks: str) -> None:
    experiments = 150
    warned, bias = simulate(plan, 0.0, experiments, shocks)
    assert abs(bias) < 0.01
    assert warned <= FALSE_MAX + monte_carlo(FALSE_MAX, experiments)


@pytest.mark.parametrize(
    ("plan", "tau_s"),
    [
        (AUTO_3, 2.5),
        (AUTO_3, 8.0),
        (AUTO_5, 3.0),
        (AUTO_5, 10.0),
        (AUTO_10, 6.0),
        (AUTO_10, 20.0),
        (AUTO_30, 17.0),
        (AUTO_30, 60.0),
        (replace(AUTO_3, levels=3), 2.5),
        (replace(AUTO_3, levels=3), 8.0),
        (DECLARED_3, 0.8),
        (DECLARED_3, 4.0),
        (DECLARED_5, 1.5),
        (DECLARED_5, 7.0),
    ],
)
def test_a_bias_above_two_percent_is_reported(plan: Plan, tau_s: float) -> None:
    """From the shortest time constant with such a bias to as long as what is recorded."""
    experiments = 40
    assert tau_s <= plan.recorded_s
    warned, bias = simulate(plan, tau_s, experiments)
    assert bias < -0.02
    assert warned >= TRUE_MIN - monte_carlo(TRUE_MIN, experiments)


def test_a_warm_up_that_did_its_work_is_no_finding() -> None:
    """b needs 8 s to become warm, and gets 30 s: the measurement lacks 0.1 %."""
    warned, bias = simulate(replace(AUTO_30, levels=3), 5.0, 40)
    assert abs(bias) < 0.002
    assert warned <= FALSE_MAX + monte_carlo(FALSE_MAX, 40)


def made(
    of_b: Drift | None,
    of_a: Drift | None = None,
    blocks: int = 8,
    jitter: float = 0.0,
    plan: Plan = DECLARED_5,
) -> list[MeasuredTrial]:
    """Trials whose drift is given, with differences between blocks that cancel; only a and b drift."""
    warmup_us, end_us = round(plan.warmup_s * 1e6), round(plan.recorded_s * 1e6)
    found = []
    still = Drift(0.0, 0.0, 0.0)
    drifts = (of_a or still, of_b, *[still] * (plan.variants - 2))
    for block, (arm, of) in product(range(blocks), enumerate(drifts)):
        shift = jitter * (-1) ** block
        moved = None if of is None else Drift(*(None if one is None else one + shift for one in of))
        found.append(
            MeasuredTrial(
                ScheduleEntry(len(drifts) * block + arm, block, NAMES[arm], TITLE, {"connections": 10}),
                failure=None,
                window=Window(warmup_us, end_us, None),
                warmup_end_us=warmup_us,
                drift=moved,
            )
        )
    return found


def test_it_says_by_how_much_and_whose() -> None:
    plan = experiment(DECLARED_5)
    (found,) = warm_state(
        made(Drift(math.log(1.071), 0.0, 0.0), blocks=10, jitter=0.001), plan, has_warmup_trials=False
    )
    assert (found.code, found.level, found.subject) == ("R01", "warn", "b")
    assert found.text.startswith(
        "throughput of b still rose by 7.1 % from the first to the second half of the measurement (99 % CI 7."
    )
    assert found.fix.endswith('Set warmup in [load] to more than 2 s, or warmup = "auto"')
    evidence = found.evidence
    assert (evidence["variant"], evidence["workload"], evidence["what"]) == ("b", TITLE, "within")
    assert evidence["change_percent"] == pytest.approx(7.1)
    low, high = evidence["interval_percent"]
    assert low < 7.1 < high < 7.4


@pytest.mark.parametrize(
    ("drifted", "what", "words"),
    [
        (Drift(0.0, -0.05, -0.08), "before", "fell by 4.9 % from the second half of the warm-up to the"),
        (Drift(0.0, 0.002, 0.1), None, ""),
        # The change since the second half is too uncertain to tell, that since the first is not.
        (Drift(None, None, 0.1), None, ""),
        (Drift(0.009, 0.0, 0.0), None, ""),
        (Drift(None, None, None), None, ""),
        (None, None, ""),
    ],
)
def test_what_is_a_finding(drifted: Drift | None, what: str | None, words: str) -> None:
    found = warm_state(made(drifted, blocks=10, jitter=0.001), experiment(DECLARED_5), has_warmup_trials=True)
    assert [one.evidence["what"] for one in found] == ([what] if what else [])
    assert all(words in one.text for one in found)


def test_a_difference_alone_is_told_as_one() -> None:
    """Both waver alike from block to block; only their difference is significant."""
    found = warm_state(
        made(Drift(0.03, 0.0, 0.0), Drift(-0.03, 0.0, 0.0), blocks=10, jitter=0.2),
        experiment(DECLARED_5),
        has_warmup_trials=True,
    )
    assert [one.subject for one in found] == ["b"]
    assert "throughput of b still rose by 6.2 % more than that of a from the first to" in found[0].text
    assert found[0].evidence["baseline"] == "a"


def test_half_of_the_declared_delta_is_the_limit() -> None:
    plan = experiment(DECLARED_5)
    wide = plan.model_copy(update={"design": Design(blocks=8, delta_percent=10.0)})
    drifted = made(Drift(0.04, 0.0, 0.0), blocks=10, jitter=0.001)
    assert [one.level for one in warm_state(drifted, plan, has_warmup_trials=True)] == ["warn"]
    assert warm_state(drifted, wide, has_warmup_trials=True) == []


@pytest.mark.parametrize(
    ("plan", "load", "blocks", "has_warmup_trials", "why"),
    [
        (DECLARED_5, {}, 8, False, "a warm-up of 2 s and a measurement of 5 s are too short"),
        (DECLARED_5, {}, 8, True, None),
        (Plan(20, 20), {}, 8, False, None),
        (Plan(20, 20), {}, 7, False, "the test for drift needs 8 blocks and has 7"),
        (AUTO_5, {}, 8, False, None),
        (AUTO_5, {}, 3, False, "the test for drift needs 8 blocks and has 3"),
        (Plan(20, 20), {"connections": (8,), "rate": (100.0,)}, 8, False, "at a fixed rate"),
        (Plan(20, 20, variants=4), {}, 8, False, None),
        (
            Plan(20, 20, variants=4),
            {},
            6,
            False,
            "the test for drift needs 8 blocks and has 6",
        ),
        (
            Plan(20, 20, variants=1),
            {},
            1,
            False,
            "the trials of one variant do not show whether the server was warm",
        ),
        (DECLARED_5, {"ramp": Ramp(from_percent=10, duration_s=3)}, 3, False, None),
    ],
)
def test_what_was_not_checked_is_said(
    plan: Plan, load: dict[str, Any], blocks: int, has_warmup_trials: bool, why: str | None
) -> None:
    # Too few blocks have no warning, whatever they show.
    drifted = Drift(0.1 if why and "the test for drift" in why else 0.0, 0.0, 0.0)
    found = warm_state(
        made(drifted, blocks=blocks, plan=plan), experiment(plan, **load), has_warmup_trials=has_warmup_trials
    )
    assert [one.level for one in found] == (["note"] if why else [])
    for one in found:
        assert one.text.startswith(f"warm state not checked: {why}")


@pytest.mark.parametrize(
    ("plan", "blocks", "fix"),
    [
        (DECLARED_5, 8, "Use trials of 30 s or more"),
        (Plan(20, 20), 5, "Use 8 blocks or more"),
        (DECLARED_5, 3, "Use 8 blocks or more and trials of 30 s or more"),
        (replace(DECLARED_5, variants=1), 1, "Use trials of 30 s or more"),
    ],
)
def test_the_fix_names_what_is_missing(plan: Plan, blocks: int, fix: str) -> None:
    planned = experiment(plan)
    kept = planned.model_copy(update={"design": planned.design.model_copy(update={"state": "preserve"})})
    (found,) = warm_state(made(Drift(0.0, 0.0, 0.0), blocks=blocks, plan=plan), kept, has_warmup_trials=False)
    assert found.fix == fix


def test_a_change_of_one_variant_of_a_large_run_is_found() -> None:
    """All rows of a run share one joint test, so the number of blocks does not grow with the comparisons."""
    plan = Plan(20, 20, variants=4)
    random = np.random.default_rng(3)
    drifted = [
        replace(trial, drift=Drift(trial.drift.within + float(random.normal(0.0, 0.005)), 0.0, 0.0))
        for trial in made(Drift(math.log(1.071), 0.0, 0.0), plan=plan)
        if trial.drift is not None and trial.drift.within is not None
    ]
    (found,) = warm_state(drifted, experiment(plan), has_warmup_trials=True)
    assert found.subject == "b"
    assert "from the first to the second half of the measurement (99 % CI " in found.text
    assert found.evidence["confidence"] == pytest.approx(0.99)


def test_a_run_is_one_statement() -> None:
    """Four variants under three workloads, all warm: at most 1 % of such runs have a false finding."""
    plan = Plan(20, 20, variants=4)
    of = experiment(plan)
    workloads = tuple(OltpWorkload(name=name) for name in (TITLE, "oltp_read_only", "oltp_write_only"))
    of = of.model_copy(update={"workloads": workloads})
    random, experiments, warned = np.random.default_rng(4), 400, 0
    for _ in range(experiments):
        trials = [
            MeasuredTrial(
                ScheduleEntry(trial.index, trial.block, trial.variant, workload.title, trial.at),
                failure=None,
                window=trial.window,
                warmup_end_us=trial.warmup_end_us,
                drift=Drift(*(float(one) for one in random.normal(0.0, 0.1, 3))),
            )
            for workload in workloads
            for trial in made(Drift(0.0, 0.0, 0.0), plan=plan)
        ]
        warned += bool(warm_state(trials, of, has_warmup_trials=True))
    assert warned / experiments <= FALSE_MAX + monte_carlo(FALSE_MAX, experiments)


@pytest.mark.parametrize(
    ("change", "interval", "words", "ends"),
    [
        (0.05, (0.01, math.inf), "rose by 5.1 % from", [pytest.approx(1.005, abs=1e-3), None]),
        (-0.05, (-math.inf, -0.01), "fell by 4.9 % from", [None, pytest.approx(-0.995, abs=1e-3)]),
        (1.0, (-math.inf, math.inf), "rose to 2.7 times from", [None, None]),
    ],
)
def test_an_end_that_is_not_known_is_none(
    change: float, interval: tuple[float, float], words: str, ends: list[Any]
) -> None:
    found = warmth._drift(
        warmth.Change("b", warmth.WITHIN, change, interval), TITLE, experiment(DECLARED_5), "Fix it"
    )
    assert found.evidence["interval_percent"] == ends
    assert words in found.text
    known = "unknown" if ends == [None, None] else "1.0"
    assert f"(99 % CI {known} to unknown)" in found.text
    json.dumps(asdict(found), allow_nan=False)


def creeping(cold_s: float, plan: Plan) -> Recording:
    """A trial at a fifth of its speed for its first seconds."""
    count = round(plan.recorded_s * TICKS_PER_S)
    at_s = (np.arange(count) + 0.5) / TICKS_PER_S
    return recording(plan, np.where(at_s < cold_s, 20.0, 100.0) + np.arange(count) % 2)


def test_the_trials_of_a_block_share_the_largest_cut() -> None:
    plan = Plan(10, 20, automatic=True)
    spans = windows([creeping(0.0, plan), creeping(12.5, plan)], automatic=True)
    # To whole intervals, as latencies are only known by those.
    assert spans == [Window(13_000_000, 30_000_000, 12_500_000)] * 2
    declared = windows([creeping(0.0, plan), creeping(12.5, plan)], automatic=False)
    assert declared == [Window(10_000_000, 30_000_000, None)] * 2


@pytest.mark.parametrize(("short_blocks", "noted"), [(7, True), (6, False)])
def test_a_cut_that_chance_may_have_made_is_a_note(short_blocks: int, noted: bool) -> None:
    """A block has the largest cut of its variants, so the more variants, the more windows are short."""
    plan = Plan(10, 20, automatic=True, variants=6)
    (*_, cut), (*_, whole) = (
        windows([creeping(0.0, plan)] * 5 + [creeping(cold_s, plan)], automatic=True)
        for cold_s in (12.5, 0.0)
    )
    trials = [
        replace(trial, window=cut if trial.block < short_blocks else whole)
        for trial in made(Drift(0.0, 0.0, 0.0), plan=plan)
    ]
    found = warm_state(trials, experiment(plan), has_warmup_trials=True)
    assert [(one.level, one.subject, one.evidence["what"]) for one in found] == (
        [("note", "", "cut")] if noted else []
    )
    assert all("in 42 of 48 trials: 17.0 of 20.0 s count in the shortest" in one.text for one in found)


@pytest.mark.parametrize("cold_s", [15.0, 20.0, 29.0])
def test_half_of_the_measurement_stays(cold_s: float) -> None:
    plan = Plan(10, 20, automatic=True)
    (span,) = windows([creeping(cold_s, plan)], automatic=True)
    assert 10_000_000 <= span.start_us <= 20_000_000
    # Behind a cold start that is too long for it the cut is the longest there may be.
    assert cold_s > 20.0 or span.start_us == 1e6 * cold_s


def test_a_short_trial_is_not_cut() -> None:
    plan = Plan(1, 3, automatic=True)
    assert windows([creeping(1.5, plan)], automatic=True) == [Window(1_000_000, 4_000_000, None)]


def test_drift_is_the_change_between_parts_of_a_trial() -> None:
    plan = Plan(4, 4)
    events = np.repeat([50.0, 80.0, 100.0, 125.0], 20)
    of = recording(plan, events)
    (span,) = windows([of], automatic=False)
    assert drift(of, span) == pytest.approx((math.log(1.25), math.log(112.5 / 80.0), math.log(112.5 / 50.0)))
    silent = recording(plan, np.repeat([0.0, 80.0, 0.0, 125.0], 20))
    assert drift(silent, span) == Drift(None, math.log(62.5 / 80.0), None)
    without = recording(Plan(0, 8), np.full(80, 100.0))
    assert drift(without, windows([without], automatic=False)[0]) == (0.0, None, None)
