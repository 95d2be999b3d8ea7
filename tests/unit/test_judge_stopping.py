"""Runs that may stop after any block: what the judge says of them, and what it answers after each block."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sentences import check_sentences
from tests.unit.simulated_trials import experiment, measured
from tests.unit.stored_run import Arms, Making, judged, make, store, verdict_of

from dbdyno.decide import decision, factorial
from dbdyno.decide.decision import compare_all
from dbdyno.decide.effects import judge_family
from dbdyno.decide.stopping import Progress, decide, progress
from dbdyno.experiment.model import Experiment, Factor, Stop
from dbdyno.experiment.schedule import Trial, top_up
from dbdyno.finding import Finding
from dbdyno.measure import evidence
from dbdyno.say.sentence import sentence
from dbdyno.say.wording import duration
from dbdyno.stats.verdict_rule import Verdict
from dbdyno.store.endings import Ending, add_ending
from dbdyno.store.measured import MeasuredTrial, ScheduleEntry
from dbdyno.verdict import judge

FACTORS = (Factor(name="version", levels=("x", "y")), Factor(name="threads", levels=("s", "t")))


def stopping(of: Experiment, **stop: Any) -> Experiment:
    """The experiment with `design.stop`."""
    return of.model_copy(
        update={"design": type(of.design)(**of.design.model_dump() | {"stop": Stop(**stop)})}
    )


def trials(of: Experiment, blocks: int, effect: float, noise: float = 0.02) -> list[MeasuredTrial]:
    """The trials of the first blocks; variants other than a are faster by `effect`."""
    draw = random.Random(3)

    def throughput(trial: Trial) -> float:
        return 1000.0 * math.exp((trial.variant != "a") * effect + draw.gauss(0.0, noise))

    return [trial for trial in measured(of, throughput) if trial.block < blocks]


def text(of: Experiment, found: list[MeasuredTrial], block_s: float | None = None) -> str:
    """The sentence of the first comparison."""
    return sentence(compare_all(found, of, [])[0], [], block_s)


def test_a_sentence_says_after_how_many_blocks_a_run_stopped() -> None:
    of = stopping(experiment())
    check_sentences("stopped", text(of, trials(of, 10, -0.3)))


def test_too_few_blocks_are_counted_against_those_that_the_looks_need() -> None:
    of = stopping(experiment())
    check_sentences("stopped with too few blocks", text(of, trials(of, 7, -0.3)))


def test_an_undecided_verdict_says_what_would_settle_it() -> None:
    of = stopping(experiment())
    check_sentences("stopped undecided", text(of, trials(of, 20, 0.0, noise=0.1), 40.0))
    check_sentences("undecided", text(experiment(), trials(experiment(), 8, 0.0, noise=0.1), 40.0))


def test_durations_are_rough() -> None:
    assert [duration(seconds) for seconds in (50, 100, 2400, 7200, 12_600, 90_000)] == [
        "50 s",
        "2 minutes",
        "40 minutes",
        "2 hours",
        "3.5 hours",
        "25 hours",
    ]


def test_a_run_is_sure_as_soon_as_every_comparison_has_its_word() -> None:
    of = stopping(experiment(variants="abcd"))
    assert not progress(trials(of, 8, -0.3), of).is_decided
    assert progress(trials(of, 9, -0.3), of).is_decided
    one = progress(trials(of, 9, 0.0), of)
    assert not one.is_decided
    assert [(c.variant, c.workload) for c in one.comparisons] == [
        ("b", "oltp_read_write"),
        ("c", "oltp_read_write"),
        ("d", "oltp_read_write"),
    ]


def test_a_run_without_comparisons_is_never_decided() -> None:
    of = stopping(experiment(variants="a"))
    assert progress(trials(of, 9, 0.0), of) == Progress(is_decided=False, comparisons=())


def test_equivalence_and_crossing_curves_are_answers_too() -> None:
    of = stopping(experiment(delta_percent=5.0))
    assert progress(trials(of, 12, 0.0, noise=0.01), of).is_decided
    of = stopping(experiment(loads=2))
    crossing = [
        replace(trial, figures=replace(trial.figures, throughput=500.0))
        if trial.figures and trial.variant == "b" and trial.at == {"connections": 10}
        else trial
        for trial in trials(of, 12, 0.7)
    ]
    assert compare_all(crossing, of, [])[0].verdict == Verdict.MIXED
    assert progress(crossing, of).is_decided


def test_the_blocks_still_expected_follow_from_estimate_and_variation() -> None:
    of = stopping(experiment())

    def expected(blocks: int, effect: float, noise: float) -> int | None:
        return progress(trials(of, blocks, effect, noise), of).comparisons[0].blocks_still_expected

    assert expected(1, -0.1, 0.02) is None
    assert expected(3, -0.3, 0.02) == 5
    assert expected(8, 0.06, 0.06) == 17
    assert expected(12, -0.3, 0.02) == 0
    # No number of blocks gives a verdict that a finding forbids.
    stop = Finding("P04", "stop", "a setting is not effective")
    assert progress(trials(of, 12, -0.3), of, [stop]).comparisons[0].blocks_still_expected is None


def test_a_half_width_is_a_rule_of_its_own() -> None:
    of = stopping(experiment(), half_width_percent=3.0)

    def half_width(found: Progress) -> float:
        return found.comparisons[0].half_width_percent or math.inf

    results = {blocks: progress(trials(of, blocks, -0.3), of) for blocks in (7, 8, 20)}
    assert not results[7].is_decided
    assert all(one.is_decided == (half_width(one) <= 3.0) for one in results.values())
    assert results[20].is_decided
    narrow = stopping(experiment(), half_width_percent=0.01)
    assert not progress(trials(narrow, 20, -0.3), narrow).is_decided


def test_identical_variants_have_no_answer_to_wait_for(tmp_path: Path) -> None:
    making = Making(
        names=("a", "b", "again"),
        identical=("again",),
        stop=Stop(max_blocks=9),
        connections=(10,),
        speed=lambda trial, _tick: 100 - 10 * (trial.variant == "b") + trial.block % 3,
    )
    run = make(tmp_path, making)
    assert [one.variant for one in decide(run).comparisons] == ["b"]
    assert decide(run).is_decided


def interrupted(blocks: int) -> Callable[[Trial], bool]:
    """The trials that have not run after so many blocks and one trial of the next one."""
    seen: list[int] = []

    def absent(trial: Trial) -> bool:
        if trial.block == blocks and not seen:
            seen.append(trial.index)
        return trial.block > blocks or (trial.block == blocks and trial.index not in seen)

    return absent


def test_only_finished_blocks_count_and_they_have_a_verdict(tmp_path: Path) -> None:
    making = Making(stop=Stop(), connections=(10,), speed=Arms(b=lambda trial: 80 + trial.block % 3))
    run = make(tmp_path, replace(making, absent=interrupted(9)))
    add_ending(run, Ending(began_unix_us=0, ended_unix_us=1, why="decided"))
    judge(run)
    verdict = verdict_of(run)
    curve = verdict["comparisons"][0]["curve"]
    assert (curve["verdict"], curve["blocks"]) == ("slower", 9)
    assert "stopped after 9 of at most 20 blocks; the interval allows for every look" in curve["sentence"]
    assert verdict["stopping"] == {
        "blocks": 9,
        "blocks_at_most": 20,
        "half_width_percent": None,
        "is_met": True,
        "why": "decided",
        "looks": [6, 7, 8, 9],
        "spending": "alpha (1 - 5 / n)",
    }
    assert not any("have not run" in finding["text"] for finding in verdict["checks"])


def test_a_run_that_cannot_be_extended_names_the_blocks_of_a_new_one(tmp_path: Path) -> None:
    making = Making(
        stop=Stop(max_blocks=9, top_up=False),
        connections=(10,),
        speed=lambda trial, _tick: 100 + 3 * ((trial.block * 7 + 3 * (trial.variant == "b")) % 9),
    )
    run = make(tmp_path, making)
    judge(run)
    curve = verdict_of(run)["comparisons"][0]["curve"]
    assert curve["verdict"] == "undecided"
    assert re.search(r"±\d+ % needs about \d+ blocks in a new run\.", curve["sentence"])


def test_a_top_up_that_was_interrupted_counts_its_blocks(tmp_path: Path) -> None:
    making = Making(stop=Stop(max_blocks=8), connections=(10,), speed=Arms(b=lambda t: 99 + t.block % 3))
    run = make(tmp_path, making)
    added = top_up(run.experiment(), run.schedule(), 2)
    run.append_schedule(added)
    for trial in added[:2]:
        store(run, trial, run.experiment(), making)
    judge(run)
    verdict = verdict_of(run)
    assert verdict["stopping"]["blocks_at_most"] == 10
    assert "stopped after 9 of at most 10 blocks" in verdict["comparisons"][0]["curve"]["sentence"]


@pytest.mark.parametrize("factors", [(), FACTORS])
def test_a_run_is_judged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factors: tuple[Factor, ...]
) -> None:
    calls: list[int] = []

    def counted(*arguments: Any, **more: Any) -> Any:
        calls.append(1)
        return judge_family(*arguments, **more)

    run = make(tmp_path, Making(stop=Stop(max_blocks=9), connections=(10,), factors=factors))
    for module in (decision, factorial):
        monkeypatch.setattr(module, "judge_family", counted)
    judge(run)
    # The comparisons of a factorial run are an empty family.
    assert len(calls) == 1 + bool(factors)


def test_a_run_without_a_finished_block_is_unfinished(tmp_path: Path) -> None:
    verdict = judged(tmp_path, Making(stop=Stop(), connections=(10,), absent=interrupted(0)))
    assert verdict["comparisons"][0]["curve"]["verdict"] == "unfinished"
    assert verdict["comparisons"][0]["curve"]["sentence"].startswith("Not finished (0 of 20 blocks)")


def test_a_fixed_number_of_blocks_has_no_word_before_the_last_one(tmp_path: Path) -> None:
    verdict = judged(tmp_path, Making(connections=(10,), blocks=20, absent=interrupted(12)))
    assert verdict["comparisons"][0]["curve"]["verdict"] == "unfinished"
    assert verdict["comparisons"][0]["curve"]["interval_percent"] is None
    assert "stopping" not in verdict


def test_a_trial_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = interrupted(8)
    run = make(tmp_path, Making(stop=Stop(max_blocks=9), connections=(10,), absent=absent))
    first = decide(run)
    assert not first.comparisons[0].blocks_still_expected
    monkeypatch.setattr(evidence, "_measure_group", lambda *_: pytest.fail("read again"))
    assert decide(run) == first


def test_a_trial_that_gave_no_result_is_read_again_because_it_may_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    making = Making(stop=Stop(max_blocks=9), connections=(10,), failed_by="harness")
    run = make(tmp_path, replace(making, failed=lambda trial: "no space left" if trial.index == 4 else None))
    before = decide(run).comparisons[0]
    read: list[int] = []
    measure = evidence._measure_group

    def listen(entries: Sequence[ScheduleEntry], *more: Any) -> None:
        read.extend(entry.index for entry in entries)
        measure(entries, *more)

    monkeypatch.setattr(evidence, "_measure_group", listen)
    assert decide(run).comparisons[0] == before
    assert sorted(read) == [4, 5]


def test_a_repeated_block_counts_at_the_time_at_which_it_ran(tmp_path: Path) -> None:
    run = make(tmp_path, Making(stop=Stop(max_blocks=9), connections=(10,), repeated=(2,)))
    gathered = evidence.gather(run, run.experiment())
    assert list(dict.fromkeys(trial.block for trial in gathered.trials)) == [0, 1, 3, 4, 5, 6, 7, 8, 9]
    assert {trial.block for trial in gathered.replaced} == {2}
    assert decide(run).comparisons[0].interval_percent is not None


def test_a_word_that_was_given_stays_when_blocks_are_added(tmp_path: Path) -> None:
    """The later blocks do not differ."""
    making = Making(stop=Stop(max_blocks=16), connections=(10,), speed=Arms(b=lambda t: 85 + t.block % 3))
    late = replace(making, speed=Arms(b=lambda t: 85 + t.block % 3 if t.block < 8 else 99 + t.block % 3))
    early = judged(tmp_path / "early", replace(late, absent=lambda trial: trial.block > 7))
    topped_up = judged(tmp_path / "late", late)
    for verdict in (early, topped_up):
        assert verdict["comparisons"][0]["curve"]["verdict"] == "slower"
        assert verdict["comparisons"][0]["curve"]["interval_percent"][1] < 0.0


def test_the_factors_of_a_run_are_its_comparisons(tmp_path: Path) -> None:
    def speed(trial: Trial, _tick: int) -> int:
        return round(1000 * 1.2 ** ("y" in trial.variant) * 0.8 ** ("t" in trial.variant)) + trial.block % 3

    making = Making(factors=FACTORS, stop=Stop(), connections=(10,), speed=speed)
    run = make(tmp_path, replace(making, absent=lambda trial: trial.block > 9))
    found = decide(run)
    assert [one.variant for one in found.comparisons] == [
        "version y against x",
        "threads t against s",
        "whether the effect of threads depends on version",
    ]
    assert [one.blocks_still_expected == 0 for one in found.comparisons][:2] == [True, True]
    factor = judge(run).factors
    assert factor is not None
    assert factor[0].verdict == "faster"
    assert "stopped after 10 of at most 20 blocks; the interval allows for every look" in factor[0].sentence


def test_too_few_blocks_are_those_with_which_the_test_cannot_be_significant() -> None:
    """The interval has the level 0.05 / K, the test 0.04 / K, which needs a block more."""
    of = stopping(experiment(variants="abc"))
    assert text(of, trials(of, 8, -0.7)).startswith(
        "Too few blocks for a verdict (8 of at most 20; 9 are needed)"
    )
    assert text(of, trials(of, 9, -0.7)).startswith("b is slower than a")
    fixed = experiment(variants="abcd")
    found = [
        replace(one, figures=None, failed_by="harness", failure="x") if one.block == 3 else one
        for one in trials(fixed, 8, -0.7)
    ]
    assert text(fixed, found).startswith("Too few blocks for a verdict (7 of 8; 8 are needed)")


def test_a_run_goes_on_until_the_further_metrics_can_have_verdicts() -> None:
    of = stopping(experiment())
    design = of.design.model_copy(update={"metrics": ("throughput", "p99", "p95", "mean")})
    further = of.model_copy(update={"design": design})
    assert progress(trials(of, 8, -0.7), of).is_decided
    one = progress(trials(further, 8, -0.7), further)
    assert (one.is_decided, one.comparisons[0].blocks_still_expected) == (False, 1)
    assert progress(trials(further, 9, -0.7), further).is_decided


def test_loads_with_opposite_effects_are_mixed_at_the_level_of_the_test() -> None:
    """Both loads have p-values of at most 0.05, and one of them above 0.04."""
    of = experiment(loads=2, blocks=9)
    levels: set[str] = set()
    for seed in range(60):
        draw = random.Random(seed)

        def throughput(trial: Trial, draw: random.Random = draw) -> float:
            sign = -1.0 if trial.point.connections == 10 else 1.0
            return 1000.0 * math.exp((trial.variant != "a") * sign * 0.03 + draw.gauss(0.0, 0.022))

        (one,) = compare_all(measured(of, throughput), of, [])
        effects = [load for load in one.judged.load_effects if load]
        if all(load.p_value <= 0.05 for load in one.judged.assessment.load_effects if load):
            is_decided = all(load.p_value <= 0.04 for load in one.judged.assessment.load_effects if load)
            assert (one.judged.verdict is Verdict.MIXED) == is_decided, (seed, effects)
            levels.add(str(is_decided))
    assert levels == {"True", "False"}
