"""A comparison that ends when it is decided: interrupted, it has a verdict, and gets more blocks later."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from tests.end_to_end.comparing import EXPERIMENT, Comparing, left_running

from dbdyno.store.endings import read_endings
from dbdyno.store.records import read_lines

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


@pytest.mark.alone
def test_a_block_that_crosses_max_time_is_interrupted_and_continued(results: Path) -> None:
    text = EXPERIMENT
    # The load of a block takes 24.4 s of the 25 s, so it cannot end in time.
    for old, new in (*SHORT, ('duration = "500ms"', 'duration = "12s"')):
        text = text.replace(old, new)
    comparing = Comparing(results, text.replace('name = "small"', 'name = "slow"'))
    ended = comparing.run("--no-report", "--max-time", "25s")
    assert ended.returncode == 0, ended.stderr
    assert "at most 2 blocks and 25 s per call" in ended.stderr
    assert "max_time (25 s) is over: block 1 was interrupted, and is not judged" in ended.stderr
    assert left_running(results) == []
    run = comparing.newest()
    (ending,) = read_endings(run)
    assert (ending.why, ending.interrupted) == ("time", 0)
    assert 25.0 <= (ending.ended_unix_us - ending.began_unix_us) / 1e6 <= 30.0
    verdict = run.verdict()
    assert verdict is not None
    assert verdict.stopping is not None
    assert (verdict.stopping.blocks, verdict.stopping.why) == (0, "time")
    # The first trial is kept, and the records of the second one end with the interruption.
    assert [trial.index for trial in run.trials()] == [0]
    last = json.loads(list(read_lines(run.path / "trials" / "0002" / "events.jsonl"))[-1])
    assert (last["type"], last["data"]["reason"]) == ("end", "interrupted")
    resumed = comparing.run("--no-report", "--resume", "--blocks", "+1", "--max-time", "10m")
    assert resumed.returncode == 0, resumed.stderr
    assert [trial.index for trial in run.trials()] == [0, 1]
    assert [one.why for one in read_endings(run)] == ["time", "blocks"]
