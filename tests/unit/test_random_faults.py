"""Random faults of fleets: cases follow from a seed, and several calls make one table."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from benchmarks.fleet.random_faults import KINDS, draw_cases
from benchmarks.fleet.results_of_faults import CaseResult, Results


def facts(seed: int) -> list[Any]:
    return [
        (case.delay_s, [(fault.kind.name, fault.host, fault.pause_s) for fault in case.faults])
        for case in islice(draw_cases(seed), 50)
    ]


def test_a_seed_gives_the_same_cases_each_time() -> None:
    assert facts(1) == facts(1)
    assert facts(1) != facts(2)
    assert {len(faults) for _, faults in facts(1)} == {0, 1, 2, 3}


def test_the_table_has_the_results_of_all_calls(tmp_path: Path) -> None:
    path, kinds = tmp_path / "results", [kind.name for kind in KINDS[:2]]
    for seed, seconds in ((1, 1.5), (2, 2.5)):
        results = Results(path, seed)
        fault = f"{kinds[0]} on host{seed}"
        results.add(CaseResult(seed, 1, [fault], "measure", seconds, seconds / 2.0, "it was lost"))
        results.add_comparison(10, 1, [f"problem {seed}"])
        assert (results.faults(), results.problems()) == (1, [f"problem {seed}"])
    lines = results.table(kinds).splitlines()
    assert lines[2:4] == [f"| {kinds[0]} | 2 | 2.5 s | 1.2 s |", f"| {kinds[1]} | 0 | - | - |"]
    assert lines[-1] == (
        "2 faults (seeds: 2; phases: 2 measure); 2 attempts were lost, 20 trials are complete, "
        "the sums of three engines and what the server counted; 2 problems."
    )
    with pytest.raises(SystemExit, match="has the seed 2 already"):
        Results(path, 2)
