"""`dbdyno history --confirm` on real servers: nightly builds, of which the seventh is slower."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# The reference and the first builds evaluate the function of the load so often, the later ones ten times.
LOOPS = {"old": 4_000, "new": 40_000}
PROGRAMS = ("mariadb-install-db", "my_print_defaults", "resolveip")
FILE = """
[experiment]
name = "nightly"
[[workload]]
name = "sql"
label = "loops"
transactions = [{ name = "loop", sql = "SELECT BENCHMARK(@@max_error_count, MD5('dbdyno'))", rows = 1 }]
[load]
connections = [2]
duration = "500ms"
warmup = "100ms"
[design]
blocks = 1
state = "preserve"
repeat_disturbed = false
[override]
D06 = "other tests run at the same time"
[[variant]]
name = "reference"
server = { variables = { max_error_count = 4000 } }
[[variant]]
name = "nightly"
server = { basedir = "old" }
"""


def build(folder: Path, loops: int) -> None:
    """A folder with this machine's MariaDB, whose server evaluates so many loops."""
    server = shutil.which("mariadbd")
    assert server is not None
    (folder / "bin").mkdir(parents=True)
    script = folder / "bin" / "mariadbd"
    call = f'exec {server} "$@"'
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *--version*|*--help*) {call};; esac\n{call} --max-error-count={loops}\n'
    )
    script.chmod(0o755)
    for program in filter(None, map(shutil.which, PROGRAMS)):
        (folder / "bin" / Path(program).name).symlink_to(program)
    (folder / "sbin").symlink_to("bin")
    for name in ("share", "lib"):
        (folder / name).symlink_to(f"/usr/{name}")


def dbdyno(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dbdyno", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)


def changes(answer: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    (series,) = json.loads(answer.stdout)["series"]
    found: list[dict[str, Any]] = series["changes"]
    return found


@pytest.mark.long
def test_a_slower_build_is_an_alert_when_both_builds_were_compared(tmp_path: Path) -> None:
    (tmp_path / "nightly.toml").write_text(FILE)
    for name, loops in LOOPS.items():
        build(tmp_path / name, loops)
    for name in ("old",) * 6 + ("new",) * 3:
        change = f"variant[nightly].server.basedir={name}"
        done = dbdyno(tmp_path, "compare", "nightly.toml", "--no-report", "--set", change)
        assert done.returncode == 0, done.stderr
    before = dbdyno(tmp_path, "history", "nightly", "--format", "json")
    assert before.returncode == 0, before.stderr
    (candidate,) = [one for one in changes(before) if one["after"] == 7]
    assert (candidate["state"], candidate["change_percent"] < -70.0) == ("candidate", True)
    confirmed = dbdyno(tmp_path, "history", "nightly", "--confirm", "--yes", "--format", "json")
    assert confirmed.returncode == 1, confirmed.stderr
    (alert,) = [one for one in changes(confirmed) if one["after"] == 7]
    assert (alert["state"], alert["is_alert"]) == ("confirmed", True)
    assert alert["confirmation"]["effect_percent"] < -70.0
    # Its report has an experiment file that others can run.
    confirmation = alert["confirmation"]
    page = Path(confirmation["path"]) / "report.html"
    repeated = dbdyno(tmp_path, "replicate", str(page), "--yes", "--no-report")
    assert repeated.returncode == 0, repeated.stderr
    names = [f"nightly run {confirmation[key]}" for key in ("after", "before")]
    assert repeated.stdout.splitlines()[-1].startswith(f"Replicates: {' against '.join(names)}, ")
    # A build that is gone cannot be compared.
    shutil.rmtree(tmp_path / "old")
    shutil.rmtree(tmp_path / "results" / "nightly-confirm")
    gone = dbdyno(tmp_path, "history", "nightly", "--confirm", "--yes")
    assert gone.returncode == 2
    assert "is not available any more" in gone.stderr
