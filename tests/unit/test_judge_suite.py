"""A suite: many tests of one variant are one family, and have one sentence and one table."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.truth.simulation import World, simulate, with_values
from benchmarks.truth.stopping import stopping
from benchmarks.truth.suites import suite, verdict_file
from scipy import stats
from tests.unit.sentences import check_sentences
from tests.unit.stored_run import Making, experiment, judged, make
from tests.unit.test_judge_why import edges

from dbdyno.decide.comparison import comparison_entry
from dbdyno.decide.decision import compare_all, share_of_verdicts
from dbdyno.decide.gate import decided_limits, gate
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import Experiment, OltpWorkload, Stop
from dbdyno.experiment.reading import read_bytes
from dbdyno.experiment.schedule import Trial, schedule
from dbdyno.report.tables import suite_tables
from dbdyno.stats.joint import sign_patterns
from dbdyno.stats.paired import joint_effects
from dbdyno.stats.verdict_rule import Verdict
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import VerdictFile
from dbdyno.verdict import judge

BLOCKS = 8


def point_selects(*names: str) -> tuple[OltpWorkload, ...]:
    return tuple(OltpWorkload(name="oltp_point_select", label=name) for name in names)


FILE = """
[experiment]
name = "made"
[[workload]]
name = "oltp_point_select"
[load]
connections = [{connections}]
duration = "1s"
[design]
error_rate = "false-discovery"
{design}
[[variant]]
name = "a"
[[variant]]
name = "b"
[variant.server]
variables = {{ max_connections = 500 }}
"""
NAMES = tuple(f"test-{number}" for number in range(6))


def speed(trial: Trial, _tick: int) -> int:
    """test-0 is 10 % faster, test-1 is 6 % slower, the others only vary."""
    base = 1000 if trial.variant == "a" else {"test-0": 1100, "test-1": 940}.get(trial.workload, 1000)
    seed = [trial.block, trial.variant == "a", int(trial.workload[-1])]
    return round(base * (1.0 + np.random.default_rng(seed).normal(0.0, 0.004)))


def making(**changes: Any) -> Making:
    return Making(**{"connections": (10,), "workloads": point_selects(*NAMES), "speed": speed, **changes})


def test_one_sentence_sums_up_all_tests(tmp_path: Path) -> None:
    verdict = judged(tmp_path, making(delta_percent=2.0))
    (suite,) = verdict["suites"]
    assert suite["variant"] == "b"
    assert suite["tests"]["faster"] == ["test-0"]
    assert suite["tests"]["slower"] == ["test-1"]
    assert suite["tests"]["equivalent"] == ["test-2", "test-3", "test-4", "test-5"]
    check_sentences("all words", suite["sentence"])


def test_the_headline_of_many_tests_is_that_of_the_suite(tmp_path: Path) -> None:
    many = judged(tmp_path / "many", making())
    few = judged(tmp_path / "few", making(workloads=point_selects(*NAMES[:2])))
    read = [
        VerdictFile.model_validate_json((one["path"] / "verdict.json").read_text()) for one in (many, few)
    ]
    assert [len(one.summary_sentences) for one in read] == [1, 3]


def test_the_costs_of_a_suite_are_tested_together(tmp_path: Path) -> None:
    def process(trial: Trial) -> dict[str, float]:
        factor = 1.2 if (trial.variant, trial.workload) == ("b", "test-0") else 1.0
        noise = float(np.random.default_rng(trial.index).normal(1.0, 0.005))
        return {"cpu_user_s": 100e-6 * factor * noise, "cpu_system_s": 20e-6 * factor * noise}

    run = make(
        tmp_path,
        making(
            speed=lambda t, _: {"a": 100, "b": 90}[t.variant], edges=lambda t: edges(t, lambda _: {}, process)
        ),
    )
    judge(run)
    (suite,) = json.loads((run.path / "verdict.json").read_text())["suites"]
    (cost,) = [one for one in suite["costs"] if one["key"] == "cpu_us"]
    assert [one["direction"] for one in cost["tests"]] == ["more", *[None] * 5]
    assert cost["tests"][0]["effect_percent"] == pytest.approx(20.0, abs=1.0)
    check_sentences("costs", suite["sentence"])


def test_intervals_of_a_variant_hold_together(tmp_path: Path) -> None:
    """They are those of the joint sign-flip test, computed here by its definition."""
    verdict = judged(tmp_path, making())
    assert {one["curve"]["confidence"] for one in verdict["comparisons"]} == {0.95}
    trials = json.loads((verdict["path"] / "measured.json").read_text())["trials"]
    rates = {one["place"]["index"]: (one["place"]["block"], one["figures"]["throughput"]) for one in trials}
    rows = []
    for comparison in verdict["comparisons"]:
        (point,) = comparison["points"]
        of = [dict(rates[index] for index in point["trials"][side]) for side in ("baseline", "variant")]
        rows.append([float(np.log(of[1][block] / of[0][block])) for block in range(BLOCKS)])
    for row, comparison in enumerate(verdict["comparisons"]):
        assert comparison["curve"]["p_value"] == pytest.approx(_joint_p_value(rows, row))


def _joint_p_value(rows: Sequence[Sequence[float]], row: int) -> float:
    """Every row but the tested one is centred, because it may have an effect of its own."""

    def statistic(values: Any) -> Any:
        return abs(values.mean()) / (values.std(ddof=1) / np.sqrt(BLOCKS))

    values = np.array(rows)
    centred = values - values.mean(axis=1, keepdims=True)
    centred[row] = values[row]
    observed = statistic(values[row])
    patterns = list(itertools.product((1.0, -1.0), repeat=BLOCKS))
    assert len(patterns) == 2 * len(sign_patterns(BLOCKS, 16))
    reached = [max(map(statistic, centred * np.array(signs))) >= observed * (1 - 1e-9) for signs in patterns]
    return float(np.mean(reached))


def test_the_table_has_a_row_for_each_test_and_a_colour_for_what_is_significant(tmp_path: Path) -> None:
    path = judged(tmp_path, making())["path"]
    table = next(suite_tables(VerdictFile.model_validate_json((path / "verdict.json").read_text())))
    assert [test for test, _ in table.rows] == list(NAMES)
    strengths = [cells[0].strength for _, cells in table.rows]
    assert strengths[0] > 0 < strengths[1]
    assert strengths[2:] == [0] * 4


class TestFalseDiscoveries:
    @pytest.mark.parametrize("effects", [0, 3, 12])
    def test_as_many_directions_as_the_paper_allows(self, effects: int) -> None:
        random, found = np.random.default_rng(effects), 0
        of = _suite(blocks=16, tests=12, error_rate="false-discovery")
        for _ in range(5):
            trials = simulate(of, World(sd=0.02), random)
            changed = _with_effects(trials, {f"test-{n:02}": (0.94,) for n in range(effects)})
            comparisons = compare_all(changed, of, [])
            p_values = [one.judged.overall.p_value for one in comparisons if one.judged.overall]
            share = share_of_verdicts(of)
            allowed = stats.false_discovery_control(p_values, method="by") <= share * 0.05
            words = [one.judged.verdict in DIRECTIONS for one in comparisons]
            assert words == allowed.tolist()
            found += sum(words)
        assert (found > 0) == (effects > 0)

    def test_directions_that_cannot_be_do_not_raise_the_level(self) -> None:
        """Five tests are significantly faster by less than the declared 5 %, and one is slower at a level
        that only six directions would allow."""
        small = {f"test-{n:02}": (1.01,) for n in range(5)}
        words = []
        for delta_percent in (None, 5.0):
            of = _suite(blocks=10, tests=6, error_rate="false-discovery", delta_percent=delta_percent)
            trials = simulate(of, World(sd=0.0001), np.random.default_rng(1))
            comparisons = compare_all(_with_effects(trials, small | {"test-05": SLOWER_IN_9_OF_10}), of, [])
            words.append([str(one.judged.verdict) for one in comparisons])
        assert words == [[*["faster"] * 5, "slower"], [*["equivalent"] * 5, "undecided"]]

    def test_verdict_and_interval_agree(self, tmp_path: Path) -> None:
        verdict = judged(tmp_path, self.making(blocks=16, metrics=("throughput", "p95", "p99")))
        words = [one["curve"]["verdict"] for one in verdict["comparisons"]]
        assert words == ["faster", "slower", *["undecided"] * 4]
        parts = 6 * sum(1 / number for number in range(1, 7))
        assert verdict["comparisons"][0]["curve"]["confidence"] == pytest.approx(1 - 2 * 0.05 / parts)
        text = verdict["family"]["text"]
        assert "false discovery rate of 6 verdicts" in text
        # The further metrics have one rate for all of them.
        further = [one["curve"] for each in verdict["comparisons"] for one in each["metrics"]]
        directions = sum(one["verdict"] in DIRECTIONS for one in further)
        parts = 12 * sum(1 / number for number in range(1, 13))
        assert {one["confidence"] for one in further} == {1 - max(1, directions) * 0.05 / parts}
        assert (
            "p95 latency and p99 latency with a direction, at most 5 % are expected to be wrong too" in text
        )
        assert "false discovery rate of 12 verdicts" in text
        assert "The chance" not in text

    @pytest.mark.parametrize(
        ("design", "connections", "problem"),
        [
            ("blocks = 20", "1, 2", "single loads have a family-wise error rate"),
            ("blocks = 20\nmax_loss_percent = 2", "1", "the gate of max_loss has a family-wise error rate"),
            ("", "1", "with design.stop a verdict may come after any block"),
        ],
    )
    def test_what_it_cannot_be_combined_with(self, design: str, connections: str, problem: str) -> None:
        text = FILE.format(design=design, connections=connections)
        with pytest.raises(InvalidExperiment) as raised:
            read_bytes(text.encode(), Path("a.toml"))
        assert [(one.key, one.problem) for one in raised.value.errors] == [("design.error_rate", problem)]

    @staticmethod
    def making(**changes: Any) -> Making:
        return making(error_rate="false-discovery", **changes)


def test_the_order_effect_of_a_suite_is_that_of_all_its_tests(tmp_path: Path) -> None:
    """Each test alone would have a chance of 5 % of a false warning."""
    of_block = making(state_per="block")
    first = {trial.block: trial.variant for trial in reversed(schedule(experiment(of_block)))}

    def later_is_slower(trial: Trial, tick: int) -> int:
        return round(speed(trial, tick) * (1.0 if trial.variant == first[trial.block] else 0.97))

    verdict = judged(tmp_path, making(state_per="block", speed=later_is_slower))
    (found,) = [one for one in verdict["checks"] if one["code"] == "R10"]
    assert "on average of 6 tests" in found["text"]
    assert found["evidence"]["effect_percent"] == pytest.approx(-3.0, abs=0.5)
    # Every verdict sentence of the suite has it.
    sentences = [one["curve"]["sentence"] for one in verdict["comparisons"]]
    sentences.append(verdict["suites"][0]["sentence"])
    pattern = r"order effect -[0-9.]+ % on average of 6 tests, without it \+[^;]* \(R10\)"
    assert all(re.search(pattern, one) for one in sentences)


class TestSingleLoads:
    def test_a_test_that_depends_on_the_load_is_mixed_among_many(self) -> None:
        """Its mean over the loads is positive, and the gate must not pass."""
        of = _suite(blocks=8, tests=10, loads=2, max_loss_percent=3.0)
        trials = simulate(of, World(sd=0.005), np.random.default_rng(1))
        comparisons = compare_all(_with_effects(trials, {"test-00": (1.28, 0.82)}), of, [])
        assert [str(word) for word in comparisons[0].judged.load_verdicts] == ["faster", "slower"]
        assert [str(one.verdict) for one in comparisons] == ["mixed", *["undecided"] * 9]
        found = gate(verdict_file(of, comparisons), 3.0, decided_limits(comparisons))
        assert [one.result for one in found.comparisons] == ["undecided", *["not-inferior"] * 9]
        assert found.result == "undecided"

    def test_all_loads_of_all_tests_have_intervals_after_eight_blocks(self) -> None:
        """Also in a run that may stop, which must not be decided while a load is significantly worse."""
        of = stopping(_suite(blocks=8, tests=3, loads=2))
        trials = simulate(of, World(sd=0.005), np.random.default_rng(2))
        trials = [one for one in trials if one.block < 8]
        changed = _with_effects(trials, {"test-00": (1.28, 0.82), "test-01": (1.1, 1.1)})
        comparisons = compare_all(changed, of, [])
        assert [str(one.verdict) for one in comparisons] == ["mixed", "faster", "undecided"]
        ends = [one.interval_percent for each in comparisons for one in each.judged.load_effects if one]
        assert len(ends) == 6
        assert None not in ends

    def test_they_are_one_joint_test(self) -> None:
        of = _suite(blocks=8, tests=4, loads=2, delta_percent=5.0)
        comparisons = compare_all(simulate(of, World(sd=0.005), np.random.default_rng(3)), of, [])
        rows = [ratios for one in comparisons for ratios in one.judged.assessment.ratios]
        found = [one.judged.assessment.load_effects for one in comparisons]
        assert tuple(itertools.chain(*found)) == joint_effects(rows)
        assert [str(one.verdict) for one in comparisons] == ["equivalent"] * 4
        assert comparison_entry(comparisons[0], "").points[0].confidence == pytest.approx(0.95)


class TestFailedTrials:
    @pytest.mark.parametrize(("failed", "blocks"), [(1, 8), (8, 8), (2, 10)])
    def test_a_test_with_failed_trials_keeps_its_place_among_thirty(self, failed: int, blocks: int) -> None:
        of = _suite(blocks=blocks, tests=30)
        trials = _with_effects(
            simulate(of, World(sd=0.01), np.random.default_rng(4)), {"test-07": (0.74,)}, failed=failed
        )
        comparisons = {one.workload: one for one in compare_all(trials, of, [])}
        assert str(comparisons["test-07"].verdict) == "slower"
        effect = comparisons["test-07"].judged.overall
        assert effect is not None
        assert effect.interval_percent is not None
        assert effect.interval_percent[0] == -100.0
        others = [str(one.verdict) for name, one in comparisons.items() if name != "test-07"]
        assert others == ["undecided"] * 29


def test_costs_allow_for_every_look_and_wait_for_the_end(tmp_path: Path) -> None:
    def process(trial: Trial) -> dict[str, float]:
        factor = 1.2 if trial.variant == "b" else 1.0
        noise = float(np.random.default_rng(trial.index).normal(1.0, 0.005))
        return {"cpu_user_s": 100e-6 * factor * noise, "cpu_system_s": 20e-6 * factor * noise}

    def costs(folder: Path, **changes: Any) -> list[dict[str, Any]]:
        made = making(
            workloads=point_selects(*NAMES[:2]),
            speed=lambda _trial, _tick: 100,
            edges=lambda t: edges(t, lambda _: {}, process),
            **changes,
        )
        (suite,) = judged(folder, made)["suites"]
        return [one for one in suite["costs"] if one["key"] == "cpu_us"]

    (fixed,) = costs(tmp_path / "fixed", blocks=10)
    stop = Stop(max_blocks=10)
    (looks,) = costs(tmp_path / "looks", stop=stop)
    for narrow, wide in zip(fixed["tests"], looks["tests"], strict=True):
        assert wide["interval_percent"][0] < narrow["interval_percent"][0]
        assert wide["interval_percent"][1] > narrow["interval_percent"][1]
        assert wide["direction"] == "more"
    # The first look that can exclude a value at 5 % / 3 is after nine blocks.
    (few,) = costs(tmp_path / "few", stop=stop, absent=lambda trial: trial.block > 7)
    assert [one["interval_percent"] for one in few["tests"]] == [None, None]
    assert costs(tmp_path / "open", blocks=10, absent=lambda trial: trial.block > 7) == []


def test_the_sentence_of_a_suite_has_failures_and_caveats(tmp_path: Path) -> None:
    found = [
        {"code": "P04", "level": "warn", "text": "t", "subject": "", "evidence": {}},
        {"code": "P14", "level": "warn", "text": "t", "subject": "", "evidence": {"workload": NAMES[2]}},
    ]
    made = making(findings=found, failed=lambda t: "server went away" if t.index in (3, 40) else None)
    # P14 is about one test, whose own sentence has it.
    check_sentences("failures and caveats", judged(tmp_path, made)["suites"][0]["sentence"])


# Of ten blocks one is contrary, so the p-value is 2 x 2/2^10.
SLOWER_IN_9_OF_10 = (*[0.9] * 9, 1.0001)
DIRECTIONS = (Verdict.FASTER, Verdict.SLOWER, Verdict.MIXED)


def _suite(*, blocks: int, tests: int, loads: int = 1, **design: Any) -> Experiment:
    of = suite(blocks=blocks, tests=tests, loads=loads)
    return of.model_copy(update={"design": of.design.model_copy(update=design)})


def _with_effects(
    trials: Sequence[MeasuredTrial], factors: Mapping[str, Sequence[float]], failed: int = 0
) -> list[MeasuredTrial]:
    """The trials, with other throughputs of b: test -> factors of the loads, or, if there is one load, also
    of the blocks. In the first `failed` blocks the servers of these tests fail.
    """
    loads = sorted({trial.point.value for trial in trials})

    def changed(trial: MeasuredTrial) -> MeasuredTrial:
        of_test = factors.get(trial.workload)
        if trial.figures is None or trial.variant != "b" or of_test is None:
            return trial
        if trial.block < failed:
            return MeasuredTrial(trial.planned, "the server went away", "server")
        place = trial.block if len(of_test) > len(loads) else loads.index(trial.point.value)
        throughput = trial.figures.throughput * of_test[place]
        return replace(trial, figures=with_values(trial.figures, throughput=throughput))

    return [changed(trial) for trial in trials]
