"""The short form of `make bench-faults`: a handful of faults in real comparisons, and the table of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.comparing import ROOT, TIME_LIMIT_S, environment

CELLS = (
    "engine-killed.measure.remote.mariadb",
    "lab-killed.measure.local.mariadb",
    "reset.measure.remote.mariadb",
)


@pytest.mark.alone
def test_faults_lose_nothing_and_are_reported(results: Path) -> None:
    page = results / "reliability.md"
    page.write_text("<!-- table of make bench-faults -->\n<!-- end of the table -->\n")
    command = [sys.executable, "-m", "benchmarks.faults", "--results", str(results / "faults")]
    answer = subprocess.run(
        [*command, "--output", str(page), "--cells", *CELLS],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        env=environment(),
        cwd=ROOT,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = {name: json.loads((results / f"faults/cells/{name}.json").read_text()) for name in CELLS}
    killed = found["lab-killed.measure.local.mariadb"]
    assert (killed["outcome"], killed["exit_code"]) == ("ended; --resume finished it", -9)
    # The first trial was over when dbdyno was killed.
    assert (killed["before"], killed["kept"], killed["finished"]) == (1, 1, 4)
    assert "| `lab-killed` | measure | local, mariadb |" in page.read_text()
