"""A comparison that ends when it is decided: interrupted, it has a verdict, and gets more blocks later."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from tests.end_to_end.comparing import EXPERIMENT, Comparing, left_running

from dbdyno.store.endings import read_endings

SHORT = (
    ("connections = [1, 4]", "connections = [1]"),
    ('duration = "1s"', 'duration = "500ms"'),
    ('warmup = "500ms"', 'warmup = "200ms"'),
    ("blocks = 2", "stop = { max_blocks = 2 }"),
)


@pytest.fixture(scope="module")
def comparing(results: Path) -> Comparing:
    text = EXPERIMENT
    for old, new in SHORT:
        assert old in text
        text = text.replace(old, new)
    return Comparing(results, text)


def test_an_interrupted_run_has_a_verdict_and_gets_more_blocks(comparing: Comparing, results: Path) -> None:
    code, words = comparing.interrupt("block 1 of at most 2", signal.SIGINT, "--no-report")
    assert code == 130, words
    assert "block 1 of at most 2; no verdict is possible yet" in words
    run = comparing.newest()
    verdict = run.verdict()
    assert verdict is not None, words
    assert (verdict.comparisons[0].curve.verdict, verdict.comparisons[0].curve.blocks) == (
        "too-few-blocks",
        1,
    )
    assert 2 <= len(run.trials()) < 4
    answer = comparing.run("--no-report", "--resume", "--blocks", "+1", "--max-time", "10m")
    assert answer.returncode == 0, answer.stderr
    # The interrupted block.
    assert "block 2 of at most 2" in answer.stderr
    assert re.search(r"done in .*: measuring \d+ % of the time", answer.stderr)
    assert answer.stdout.splitlines()[-1].startswith("Too few blocks")
    assert (len(run.trials()), [one.why for one in read_endings(run)]) == (4, ["interrupted", "blocks"])
    assert left_running(results) == []
