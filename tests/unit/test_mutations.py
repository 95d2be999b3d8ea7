"""Mutated experiment files and plans are accepted or refused, never a traceback or a hang.

`python -m benchmarks.mutations` reads many more, and stored runs.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from benchmarks.mutations import experiments, plans, runs
from benchmarks.mutations.mutate import mutate_json_text, mutate_text
from benchmarks.mutations.trial import Tally
from tests.conftest import READ_BYTES

from dbdyno.experiment.reading import read_bytes

SEED = 1


def require_none_wrong(tally: Tally, count: int) -> None:
    print(tally.text())  # noqa: T201 — the counts, for pytest -rP.
    assert tally.total == count
    assert not tally.counts, tally.text()
    # Documents of both kinds were tried.
    assert tally.accepted > 0
    assert tally.refused > 0


@pytest.fixture(autouse=True)
def examples_with_servers(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "EXAMPLES", examples)


def test_mutated_experiment_files(monkeypatch: pytest.MonkeyPatch) -> None:
    # The schema does not agree about profiles that were not chosen.
    monkeypatch.setattr("benchmarks.mutations.experiments.read_bytes", READ_BYTES)
    require_none_wrong(experiments.measure(200, SEED), 200)


def test_mutated_plans() -> None:
    require_none_wrong(plans.measure(30, SEED), 30)


def test_mutated_stored_runs(tmp_path: Path) -> None:
    require_none_wrong(runs.measure(60, SEED, tmp_path), 60)


def test_what_is_mutated_is_valid() -> None:
    for path, source in experiments.documents():
        read_bytes(source, path)


def test_equal_seeds_give_equal_documents() -> None:
    source = experiments.MORE
    for change in (mutate_text, mutate_json_text):
        assert change(source, random.Random(3)) == change(source, random.Random(3)) != source


def test_errors_and_hangs_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.mutations.trial.TIME_LIMIT_S", 0.05)

    def loop() -> None:
        while True:
            pass

    tally = Tally("tries")
    documents: dict[str, bytes] = {}
    tally.add(b"", lambda: documents["missing"])
    tally.add(b"", loop)
    assert sorted(tally.counts) == ["KeyError", "not ended after 0.05 s"]
    assert tally.total == 2
