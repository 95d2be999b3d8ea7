"""A suite: many tests of one variant are one family, and have one sentence and one table."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.stored_run import Making, experiment, judged, make
from tests.unit.test_judge_why import edges

from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import OltpWorkload
from dbdyno.experiment.reading import read_bytes
from dbdyno.experiment.schedule import Trial, schedule
from dbdyno.judge import judge
from dbdyno.report.suite_table import suite_tables
from dbdyno.stats.false_discoveries import discoveries
from dbdyno.stats.joint import sign_patterns
from dbdyno.store.verdict import VerdictFile

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
    change = verdict["comparisons"][0]["curve"]
    low, high = change["interval_percent"]
    assert suite["sentence"].startswith(
        f"b against a over 6 tests: 1 faster (best test-0 +{change['effect_percent']:.1f} % "
        f"[+{low:.1f} to +{high:.1f}]), 1 slower (worst test-1 -"
    )
    assert "4 equivalent within 2 % (declared)" in suite["sentence"]


def test_the_headline_of_many_tests_is_that_of_the_suite(tmp_path: Path) -> None:
    many = judged(tmp_path / "many", making())
    few = judged(tmp_path / "few", making(workloads=point_selects(*NAMES[:2])))
    read = [
        VerdictFile.model_validate_json((one["path"] / "verdict.json").read_text()) for one in (many, few)
    ]
    assert [len(one.headlines) for one in read] == [1, 3]


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
    assert "CPU time per transaction: 1 up, 0 down" in suite["sentence"]


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


def test_the_table_has_a_row_for_each_test_and_a_colour_for_what_is_sure(tmp_path: Path) -> None:
    path = judged(tmp_path, making())["path"]
    table = next(suite_tables(VerdictFile.model_validate_json((path / "verdict.json").read_text())))
    assert [test for test, _ in table.rows] == list(NAMES)
    strengths = [cells[0].strength for _, cells in table.rows]
    assert strengths[0] > 0 < strengths[1]
    assert strengths[2:] == [0] * 4


class TestFalseDiscoveries:
    def test_as_the_paper_defines_it(self) -> None:
        p_values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.324]
        assert discoveries(p_values, 0.05) == _benjamini_yekutieli(p_values, 0.05) == 3
        assert discoveries([], 0.05) == 0
        for seed in range(50):
            random = np.random.default_rng(seed)
            values = list(random.uniform(0.0, random.choice([0.01, 0.1, 1.0]), size=30))
            assert discoveries(values, 0.05) == _benjamini_yekutieli(values, 0.05)

    def test_verdict_and_interval_agree(self, tmp_path: Path) -> None:
        verdict = judged(tmp_path, self.making(blocks=16))
        words = [one["curve"]["verdict"] for one in verdict["comparisons"]]
        assert words == ["faster", "slower", *["undecided"] * 4]
        parts = 6 * sum(1 / number for number in range(1, 7))
        assert verdict["comparisons"][0]["curve"]["confidence"] == pytest.approx(1 - 2 * 0.05 / parts)
        assert "false discovery rate of 6 verdicts" in verdict["family"]["text"]

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


def _benjamini_yekutieli(p_values: Sequence[float], rate: float) -> int:
    count = len(p_values)
    parts = sum(1 / number for number in range(1, count + 1))
    ordered = sorted(p_values)
    within = [rank for rank, p in enumerate(ordered, 1) if p <= rate * rank / (count * parts)]
    return max(within, default=0)


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
