"""The guarantees of the verdict, measured on fewer experiments than `make bench-truth` takes."""

from __future__ import annotations

import pytest
from benchmarks.truth.guarantees import common_practice, guarantees, measure
from benchmarks.truth.row import Row, Sample, merge
from benchmarks.truth.simulation import experiment

from dbdyno.experiment.differences import is_identical

EXPERIMENTS = 30


# A third of the guarantees runs often; test-long runs the others.
@pytest.mark.parametrize(
    "index",
    [
        pytest.param(index, marks=() if index % 3 == 0 else pytest.mark.long)
        for index in range(len(guarantees()))
    ],
)
def test_a_guarantee_is_kept(index: int) -> None:
    for row in measure(index, Sample(max(1, EXPERIMENTS // guarantees()[index].cost))):
        assert row.holds, f"{row.guarantee}: {row.measured:.1%} of {row.experiments}, limit {row.limit:.1%}"


def test_parts_of_a_guarantee_make_one_row() -> None:
    row = merge([Row("p", 100, 0.02, 0.05), Row("p", 300, 0.06, 0.05)])
    assert row.experiments == 400
    assert row.measured == pytest.approx(0.05)
    assert row.error == pytest.approx(0.0109, abs=1e-4)
    # A rate of 5 % needs 2,970 experiments for a standard error of 0.4 points.
    assert Row("p", 10_000, 0.05, 0.05).experiments_needed == pytest.approx(2_970, abs=10)
    means = merge([Row("p", 100, 0.3, 0.3, deviation=0.4), Row("p", 100, 0.4, 0.3, deviation=0.2)])
    assert means.measured == pytest.approx(0.35)
    assert means.error == pytest.approx(0.1**0.5 / 200**0.5)


def test_an_experiment_is_in_one_part_only() -> None:
    assert len({Sample(10, part).seed(seed) for part in range(50) for seed in range(1, 40)}) == 50 * 39


def test_an_identical_copy_is_the_baseline_again() -> None:
    of = experiment(variants=3, identical_copy=True)
    assert {variant.name: is_identical(of, variant) for variant in of.variants} == {
        "a": True,
        "a-again": True,
        "b": False,
    }


def test_what_people_do_today_finds_differences_between_equal_servers() -> None:
    assert all(row.measured > 0.5 for row in common_practice(200))
