"""The promises of the verdict, measured on fewer experiments than `make bench-truth` takes."""

from __future__ import annotations

import pytest
from benchmarks.truth.guarantees import common_practice, measure, promises
from benchmarks.truth.simulation import experiment

from dbdyno.experiment.differences import is_identical

EXPERIMENTS = 120


@pytest.mark.parametrize("index", range(len(promises())))
def test_a_promise_is_kept(index: int) -> None:
    row = measure(index, EXPERIMENTS)
    assert row.holds, f"{row.promise}: {row.measured:.1%} of {row.experiments}, limit {row.limit:.1%}"


def test_a_twin_is_the_baseline_again() -> None:
    of = experiment(variants=3, twin=True)
    assert {variant.name: is_identical(of, variant) for variant in of.variants} == {
        "a": True,
        "a-again": True,
        "b": False,
    }


def test_what_people_do_today_finds_differences_between_equal_servers() -> None:
    assert all(row.measured > 0.5 for row in common_practice(200))
