"""The judge on real noise: stored series of experiments on a private MariaDB, whose truth is known.

`python -m benchmarks.truth.series` measured them, `python -m benchmarks.truth.archive` packed them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from benchmarks.truth.archive import unpack
from benchmarks.truth.thinning import thin

from dbdyno.decide.comparison import Comparison
from dbdyno.decide.decision import compare_all
from dbdyno.measure.evidence import gather
from dbdyno.store import Run
from dbdyno.verdict import judge

SERIES = Path(__file__).parents[1] / "fixtures/series"
DIRECTED = {"faster", "slower", "mixed"}
KEEP = 0.9


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """20 experiments with equal variants."""
    return unpack(SERIES / "aa.tar.xz", tmp_path_factory.mktemp("aa"))


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """10 experiments whose variant is 20 % slower."""
    return unpack(SERIES / "planted.tar.xz", tmp_path_factory.mktemp("planted"))


def words(verdict: Mapping[str, Any]) -> set[str]:
    """Every word that a verdict uses."""
    (comparison,) = verdict["comparisons"]
    return {comparison["curve"]["verdict"], *(point["verdict"] for point in comparison["points"])}


def judged(path: Path) -> Comparison:
    """The comparison of a run, its words standing in spite of other processes on the machine (D06)."""
    run = Run.open(path)
    experiment = run.experiment()
    # Without findings nothing takes a direction away.
    (comparison,) = compare_all(gather(run, experiment).trials, experiment, [])
    return comparison


@pytest.mark.long
def test_equal_variants_have_at_most_three_false_words_in_twenty(equal: list[Path]) -> None:
    assert len(equal) == 20
    assert sum(bool(words(judge(Run.open(path)).model_dump(mode="json")) & DIRECTED) for path in equal) <= 3


@pytest.mark.long
def test_also_where_words_stand_in_spite_of_other_processes(equal: list[Path]) -> None:
    found = [judged(path) for path in equal]
    used = [{str(one.verdict), *map(str, one.judged.load_verdicts)} for one in found]
    assert sum(bool(one & DIRECTED) for one in used) <= 3


def test_an_exact_slow_down_in_real_noise_lies_within_the_interval(equal: list[Path]) -> None:
    held = wrong = 0
    for path in equal:
        thin(path, "b", KEEP)
        comparison = judged(path)
        held += holds(comparison, (KEEP - 1.0) * 100.0)
        wrong += str(comparison.verdict) == "faster"
    # 95 % of 20, less three standard errors of a share.
    assert held >= 17
    assert wrong == 0


def test_a_planted_slow_down_is_found(planted: list[Path]) -> None:
    assert len(planted) == 10
    found = [judged(path) for path in planted]
    assert sum(str(one.verdict) == "slower" and holds(one, -20.0) for one in found) >= 9


def holds(comparison: Comparison, percent: float) -> bool:
    """Whether the interval over all loads holds a change."""
    overall = comparison.judged.overall
    assert overall is not None
    assert overall.interval_percent is not None
    low, high = overall.interval_percent
    return low <= percent <= high
