"""Documents with the words of version 0.2.0 are read as those of today; the error of a file names today's."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.stored_run import Making, make

from dbdyno.experiment.errors import RENAMED, InvalidExperiment
from dbdyno.experiment.model import Stop
from dbdyno.experiment.reading import read_bytes
from dbdyno.report.replication import BEGIN, END, embedded, read_published
from dbdyno.store import VERDICT, Run, StoreProblem
from dbdyno.store.endings import FILE as ENDINGS
from dbdyno.store.endings import Ending, add_ending, read_endings
from dbdyno.store.older_versions import current_assignment, current_experiment, current_file
from dbdyno.store.run import stored_experiment
from dbdyno.verdict import judge

FILE = """
[experiment]
name = "made"
[[workload]]
name = "sql"
label = "shop"
main_statement = "read"
transactions = [{ name = "read", statements = [{ name = "read", sql = "SELECT 1" }] }]
[load]
connections = [64]
latency_objective = { p99 = "20ms" }
duration = "10s"
[design]
identical_copy = true
stop = { when = "decided", max_blocks = 12 }
[[variant]]
name = "a"
[[variant]]
name = "b"
server.variables = { join_buffer_size = "8M" }
workload.main_statement = "read"
[profile.quick]
"load.latency_objective.p99" = "30ms"
"design.stop.when" = "decided"
[profile.long.design]
identical_copy = true
"""


def older(text: str) -> str:
    """A document as version 0.2.0 wrote it."""
    for old, new in RENAMED.items():
        text = re.sub(rf"\b{new}\b", old, text)
    return text


def of_file(text: str, *assignments: str) -> Any:
    return read_bytes(text.encode(), Path("made.toml"), None, list(assignments))


def test_an_old_key_and_an_old_value_are_errors_that_name_the_new_ones() -> None:
    with pytest.raises(InvalidExperiment) as refused:
        of_file(older(FILE))
    text = str(refused.value)
    for key in ("main_statement", "latency_objective", "identical_copy"):
        assert f"It is called {key} since version 0.3." in text
    assert 'Write when = "decided" or when =' in text
    with pytest.raises(InvalidExperiment, match=r"called latency_objective since"):
        of_file(FILE, "load.promise.p99=10ms")


def test_a_stored_experiment_is_that_of_today() -> None:
    experiment = of_file(FILE)
    stored = experiment.model_dump(mode="json")
    old = json.loads(older(json.dumps(stored)))
    assert old != stored
    assert stored_experiment(old) == experiment
    assert current_experiment(stored) == stored


def test_an_old_file_and_its_assignments_are_those_of_today() -> None:
    assert current_file(tomllib.loads(older(FILE))) == tomllib.loads(FILE)
    assert current_assignment("load.promise.p99=10ms") == "load.latency_objective.p99=10ms"
    assert current_assignment('design.stop.when="sure"') == 'design.stop.when="decided"'
    assert current_assignment("variant[a].server.variables.promise=twin") == (
        "variant[a].server.variables.promise=twin"
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A judged run that stopped when it was decided, with the files of today."""
    made = make(tmp_path, replace(Making(connections=(10,)), stop=Stop(max_blocks=8)))
    add_ending(made, Ending(began_unix_us=0, ended_unix_us=1, why="decided"))
    judge(made)
    return made


def test_the_verdict_of_an_older_run_is_read_and_its_sentences_are_composed_again(run: Run) -> None:
    path = run.path / VERDICT
    verdict = run.verdict()
    assert verdict is not None
    assert verdict.comparisons[0].secondary_metrics
    path.write_text(older(path.read_text()).replace('"schema": 3', '"schema": 2'))
    assert '"second_lines"' in path.read_text()
    assert run.verdict() == verdict
    assert run.judge_files() is None
    judge(run)
    assert run.verdict() == verdict


def test_the_calls_of_an_older_run_ended_in_words_of_today(run: Run) -> None:
    path = run.path / ENDINGS
    path.write_text(older(path.read_text()).replace('"schema": 2', '"schema": 1'))
    assert '"sure"' in path.read_text()
    assert [ending.why for ending in read_endings(run)] == ["decided"]


@pytest.mark.parametrize("content", ['{"schema": 2}', '{"schema": 2, "comparisons": 1, "stopping": 2}'])
def test_a_damaged_older_file_is_a_problem(run: Run, content: str) -> None:
    (run.path / VERDICT).write_text(content)
    with pytest.raises(StoreProblem, match="does not match the schema"):
        run.verdict()
    (run.path / ENDINGS).write_text('{"schema": 1, "calls": 3}')
    with pytest.raises(StoreProblem, match="does not match the schema"):
        read_endings(run)


def test_the_report_of_an_older_run_can_be_replicated(run: Run) -> None:
    verdict = run.verdict()
    assert verdict is not None
    page = run.path / "report.html"
    page.write_text(f"{BEGIN}{embedded(run, verdict, {})}{END}")
    published = read_published(page)
    before, _, rest = page.read_text().partition(BEGIN)
    content, _, after = rest.partition(END)
    old = older(content).replace('"format":2', '"format":1').replace('"schema":3', '"schema":2')
    assert old != content
    page.write_text(f"{before}{BEGIN}{old}{END}{after}")
    again = read_published(page)
    assert again.verdict == published.verdict
    assert stored_experiment(again.experiment) == stored_experiment(published.experiment)
