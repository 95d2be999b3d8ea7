"""`dbdyno report`: where it writes, in which language, and what it opens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.stored_run import Making, make

from dbdyno.store import Run
from dbdyno.store.endings import Ending, add_ending
from dbdyno.verdict import judge


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One load has the fewest charts."""
    run = make(tmp_path_factory.mktemp("results"), Making(blocks=2, connections=(10,)))
    judge(run)
    run.release()
    return run


def dbdyno(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dbdyno", *map(str, arguments)],
        capture_output=True, text=True, check=False, env=os.environ | environment,
    )  # fmt: skip


def test_the_files_go_into_another_folder(run: Run, tmp_path: Path) -> None:
    before = sorted(run.path.rglob("*"))
    out = tmp_path / "published" / "one"
    answer = dbdyno("report", run.path, "--output", out)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == f"{out / 'report.html'}\n"
    assert (out / "report.md").is_file()
    assert list((out / "charts").glob("*.svg"))
    assert sorted(run.path.rglob("*")) == before
    answer = dbdyno("report", run.path, "--output", out, "--lang", "ko")
    assert answer.stdout == f"{out / 'ko' / 'report.html'}\n"


def test_a_browser_opens_the_page(run: Run, tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o700)
    answer = dbdyno("report", run.path, "--open", BROWSER=str(browser))
    assert answer.returncode == 0, answer.stderr
    assert opened.read_text().strip() == (run.path / "report.html").resolve().as_uri()


def test_a_missing_browser_is_one_line(run: Run, tmp_path: Path) -> None:
    answer = dbdyno("report", run.path, "--open", BROWSER=str(tmp_path / "none"), PATH=str(tmp_path))
    assert answer.returncode == 0
    assert "no browser was found to open file://" in answer.stderr


def test_the_language_comes_from_the_environment_too(run: Run) -> None:
    answer = dbdyno("show", run.path, DBDYNO_LANG="ko")
    assert answer.returncode == 0, answer.stderr
    assert "판정하기에 블록이 부족함" in answer.stdout
    answer = dbdyno("report", run.path, "--lang", "xx")
    assert answer.returncode == 2
    assert "there are no texts in the language 'xx' Choose one of en, ko" in " ".join(answer.stderr.split())


def test_list_obeys_the_variable_of_the_language(run: Run) -> None:
    answer = dbdyno("list", "--results", run.path.parents[1], DBDYNO_LANG="ko")
    assert answer.returncode == 0, answer.stderr
    heading, line = answer.stdout.splitlines()
    assert heading.split()[0] == "번호"
    assert "블록 부족" in line


def test_show_says_why_a_run_has_not_finished(tmp_path: Path) -> None:
    stopped = make(tmp_path, Making(blocks=6, connections=(10,), absent=lambda trial: trial.block > 1))
    ending = Ending(began_unix_us=1, ended_unix_us=2, why="failed", error="db1 does not answer")
    add_ending(stopped, ending)
    stopped.release()
    answer = dbdyno("show", stopped.path)
    expected = "The run has not finished: it failed: db1 does not answer; compare --resume continues it"
    assert expected in answer.stderr.splitlines()
