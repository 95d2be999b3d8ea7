"""dbdyno measures servers of other products that use one of the protocols, and reports what they lack."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.comparing import environment
from tests.end_to_end.foreign import SERVERS, running

from dbdyno.store import Run

pytestmark = pytest.mark.long

# Users create the tables: two lack comments of tables, or functions of sequences, that dbdyno needs. Another
# may lose rows of two connections that insert at the same time, which P02 finds.
OWN_SETUP = {"questdb", "h2", "go-mysql-server"}
READ = """
-- @parameter id = uniform(1, 3)
-- @setup
CREATE TABLE item (id INT, k INT);
INSERT INTO item VALUES (1, 10), (2, 20), (3, 30);
-- @transaction read
-- @statement rows=1
SELECT k FROM item WHERE id = :id;
"""


def dbdyno(*arguments: str, password: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dbdyno", *arguments, "--share-machine"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**environment(), "DBDYNO_PASSWORD": password},
        check=False,
    )


@pytest.fixture(params=SERVERS)
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    with running(request.param, tmp_path) as (url, password):
        yield request.param, url, password


def test_it_is_probed(foreign: tuple[str, str, str]) -> None:
    _name, url, password = foreign
    answer = dbdyno("probe", "--target", url, password=password)
    assert answer.returncode == 0, answer.stderr
    assert "| several rows in one INSERT | yes |" in answer.stdout
    again = dbdyno("probe", "--target", url, password=password)
    assert again.returncode == 0, "it has dropped what it created: " + again.stderr


def test_it_is_measured_and_what_is_missing_is_said_once(
    foreign: tuple[str, str, str], results: Path, tmp_path: Path
) -> None:
    name, url, password = foreign
    workload, load = ["oltp_point_select", "--table-size", "300"], "--connections 2 --time 1s --warmup 0s"
    if name in OWN_SETUP:
        file = tmp_path / "read.sql"
        file.write_text(READ)
        workload = [str(file)]
    place = ["--target", url, "--results", str(results)]
    answer = dbdyno("run", *workload, *place, *load.split(), password=password)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    newest = max(results.glob("*/*/experiment.json"), key=os.path.getmtime)
    run = Run.open(newest.parent)
    assert [trial.is_done for trial in run.trials()] == [True]
    assert len([one for one in run.findings() if one.code == "P26"]) <= 1
