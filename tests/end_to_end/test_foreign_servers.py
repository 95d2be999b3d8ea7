"""Servers that speak a protocol and are other products: they are measured, and what is missing is said."""

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
    foreign: tuple[str, str, str], results: Path
) -> None:
    _name, url, password = foreign
    place = ["--target", url, "--results", str(results)]
    load = ["--connections", "2", "--time", "1s", "--warmup", "0s", "--table-size", "300"]
    answer = dbdyno("run", "oltp_point_select", *place, *load, password=password)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    newest = max(results.glob("*/*/experiment.json"), key=os.path.getmtime)
    run = Run.open(newest.parent)
    assert [trial.is_done for trial in run.trials()] == [True]
    assert len([one for one in run.findings() if one.code == "P26"]) <= 1
