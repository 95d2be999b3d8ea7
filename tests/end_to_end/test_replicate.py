"""`dbdyno replicate` and `dbdyno diff` on real servers: the effect of a report is in both runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.comparing import Comparing, environment, left_running

# The pause makes b much slower on any machine, and other tests may use its CPUs.
EXPERIMENT = """
[experiment]
name = "small"
question = "Is </template> a pause? <script>"
[[workload]]
name = "oltp_point_select"
table_size = 1_000
[load]
connections = [1]
duration = "500ms"
warmup = "0s"
[design]
repeat_disturbed = false
pairing = "trials"
state = "preserve"
[client]
workers = 1
[override]
D06 = "other tests run beside this one"
[[variant]]
name = "a"
[[variant]]
name = "b"
load.think_time = "20ms"
"""
TIME_LIMIT_S = 300.0


def dbdyno(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dbdyno", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=TIME_LIMIT_S,
        env=environment(),
        cwd=folder,
        check=False,
    )


@pytest.mark.long
def test_a_report_is_repeated_and_its_effect_replicates(results: Path, tmp_path: Path) -> None:
    comparing = Comparing(results, EXPERIMENT)
    compared = comparing.run("--blocks", "6")
    assert compared.returncode == 0, compared.stderr
    first = comparing.newest()
    page = shutil.copy(first.path / "report.html", tmp_path / "page.html")
    place = ("--results", str(results))

    refused = dbdyno("replicate", str(page), *place, folder=tmp_path)
    assert refused.returncode == 2
    assert "repeat the command with --yes" in refused.stderr

    repeated = dbdyno("replicate", str(page), *place, "--yes", "--no-report", folder=tmp_path)
    assert repeated.returncode == 0, repeated.stderr
    assert repeated.stdout.splitlines()[-1].startswith("Replicates: b against a, ")
    assert (tmp_path / "small.toml").read_text() == EXPERIMENT
    second = comparing.newest()
    assert second.path != first.path
    assert second.assignments == ["design.blocks=6"]
    assert len(second.trials()) == len(first.trials()) == 12

    compared = dbdyno("diff", str(first.path), str(second.path), "--format", "json", folder=tmp_path)
    answer = json.loads(compared.stdout)
    (comparison,) = answer["comparisons"]
    assert comparison["curve"]["word"] == "replicates"
    # The report and the stored run have the same effects.
    said = repeated.stdout.splitlines()[-1].replace("published", "first")
    said = said.replace("the report", "the first run").replace("this run", "the second run")
    assert comparison["curve"]["sentence"] == said
    assert left_running(results) == []
