"""Drawn runs through the whole judge: a few of those of `python -m benchmarks.truth.fuzz`."""

from __future__ import annotations

import math
from pathlib import Path
from unittest import mock

import pytest
from benchmarks.truth import fuzz
from benchmarks.truth.fuzz_cases import draw
from tests.unit.simulated_trials import experiment, measured

from dbdyno.decide.decision import compare_all
from dbdyno.rules.design import below_resolution
from dbdyno.stats.repeated import Looks
from dbdyno.stats.repeated_joint import repeated_joint_intervals

SEED = 11


@pytest.mark.parametrize("number", range(1, 13))
def test_a_drawn_run_has_no_fault(number: int) -> None:
    assert fuzz.check(SEED, number) == []


@pytest.mark.long
@pytest.mark.parametrize("tens", range(20))
def test_more_drawn_runs_have_no_fault(tens: int) -> None:
    faults = {number: fuzz.check(SEED, number) for number in range(100 + 10 * tens, 110 + 10 * tens)}
    assert {number: found for number, found in faults.items() if found} == {}


def test_a_case_is_determined_by_seed_and_number(tmp_path: Path) -> None:
    first, second, other = (
        draw(SEED, number, tmp_path / name) for number, name in ((5, "1"), (5, "2"), (6, "3"))
    )
    assert first.experiment == second.experiment
    assert first.measured == second.measured
    assert first.measured != other.measured


def test_the_fuzz_names_an_exception_and_its_place() -> None:
    with mock.patch("dbdyno.rules.register.scaling", side_effect=ValueError("no difference")):
        (fault,) = fuzz.check(SEED, 1)
    assert fault.startswith("ValueError: no difference, in ")


@pytest.mark.parametrize(
    ("effect", "is_fault"),
    [
        ({"verdict": "faster", "metric": "throughput"}, False),
        ({"verdict": "slower", "metric": "throughput"}, True),
        ({"verdict": "faster", "metric": "latency_p99_us"}, True),
        ({"verdict": "faster", "metric": "throughput", "interval_percent": None}, True),
        ({"verdict": "faster", "metric": "throughput", "interval_percent": [-1.0, 9.0]}, True),
        ({"verdict": "equivalent", "metric": "throughput", "interval_percent": None}, True),
        ({"verdict": "too-few-blocks", "metric": "throughput"}, True),
        ({"verdict": "undecided", "metric": "throughput"}, False),
    ],
)
def test_the_fuzz_compares_words_and_intervals(effect: dict[str, object], is_fault: bool) -> None:
    complete = {"effect_percent": 4.0, "interval_percent": [2.0, 6.0], **effect}
    assert bool(list(fuzz.find_word_faults(complete))) == is_fault


@pytest.mark.parametrize(("text", "is_fault"), [("by nan %", True), ("+inf", True), ("info, nano", False)])
def test_the_fuzz_finds_texts_with_what_is_no_number(text: str, is_fault: bool) -> None:
    assert bool(fuzz.NOT_A_NUMBER.search(text)) == is_fault


def test_a_baseline_that_fails_in_most_blocks_has_no_resolution() -> None:
    of = experiment(blocks=8)
    of = of.model_copy(update={"design": of.design.model_copy(update={"metrics": ("p95",)})})
    trials = measured(of, lambda trial: 0.0 if trial.variant == "a" else 1000.0)
    (comparison,) = compare_all(trials, of, [])
    assert comparison.judged.overall is not None
    assert comparison.judged.overall.is_significant
    assert list(below_resolution([comparison])) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("blocks", [9, 10, 12])
def test_rows_without_variation_and_with_missing_blocks_give_no_warning(blocks: int) -> None:
    missing = [math.nan if block in {0, 1, 2, 4, 7} else 0.1 for block in range(blocks)]
    for rows in ([missing, [0.3] * blocks, [0.3] * blocks], [missing, missing[::-1]]):
        found = repeated_joint_intervals(rows, 0.05, Looks(blocks, planned=blocks))
        for one, row in zip(found, rows, strict=True):
            value = max(value for value in row if not math.isnan(value))
            assert one is None or one.low - 1e-9 <= value <= one.high + 1e-9
