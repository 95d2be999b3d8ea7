"""`dbdyno compare --a SERVER --b SERVER` on real servers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.end_to_end.comparing import environment, left_running

SHORT = "--connections 1,2 --time 1s --warmup 200ms --tables 1 --table-size 1000 --blocks 1 --no-report"


def test_one_line_is_a_comparison_and_a_file(results: Path, tmp_path: Path) -> None:
    setting = "postgresql:synchronous_commit=off"
    command = [sys.executable, "-m", "dbdyno", "compare"]
    servers = ["--a", "postgresql", "--b", setting, "--workload", "oltp_write_only"]
    answer = subprocess.run(
        [*command, *servers, *SHORT.split(), "--results", str(results)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment(),
    )
    assert answer.returncode == 0, answer.stderr
    (file,) = tmp_path.iterdir()
    assert file.name == "oltp_write_only-postgresql-synchronous_commit-off.toml"
    assert f"experiment file: {file.name}\n" in answer.stderr
    assert answer.stdout.splitlines()[-1].startswith("Too few blocks for a verdict")
    (run,) = (results / file.stem).iterdir()
    assert (run / "experiment.toml").read_text() == file.read_text()
    measured = json.loads((run / "measured.json").read_text())
    assert len(measured["trials"]) == 4
    assert all(trial["figures"]["throughput"] > 0 for trial in measured["trials"])
    assert left_running(results) == []
