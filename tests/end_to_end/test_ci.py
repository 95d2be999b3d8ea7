"""The jobs of docs/ci.md: their steps in a shell, as a runner of GitHub or GitLab runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"
# The variant evaluates a function as often as a server variable says.
FILE = """
[experiment]
name = "ci"
[[workload]]
name = "sql"
label = "loops"
transactions = [{{ name = "loop", sql = "SELECT BENCHMARK(@@max_error_count, MD5('dbdyno'))", rows = 1 }}]
[load]
connections = [2]
duration = "500ms"
warmup = "100ms"
[design]
blocks = 6
state = "preserve"
[override]
D06 = "other tests run at the same time"
[[variant]]
name = "release"
server.variables = {{ max_error_count = 4000 }}
[[variant]]
name = "commit"
server.variables = {{ max_error_count = {loops} }}
"""


def jobs() -> list[dict[str, Any]]:
    """The documents of the page: the workflow of GitHub, and the job of GitLab."""
    return [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)]


def prepare(folder: Path, loops: int) -> None:
    """A checkout with an experiment, and an environment in which dbdyno is installed already."""
    (folder / "ci.toml").write_text(FILE.format(loops=loops))
    (folder / ".venv-dbdyno").mkdir()
    (folder / ".venv-dbdyno" / "bin").symlink_to(Path(sys.executable).parent)


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """A script as GitHub's runner starts it: bash that ends with the first error."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=os.environ | {"GITHUB_STEP_SUMMARY": str(folder / "summary.md")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_page_has_a_job_for_each_service() -> None:
    github, gitlab = jobs()
    assert "jobs" in github
    assert gitlab["compare"]["allow_failure"]["exit_codes"] == 5
    # An index of packages is what pip is configured for.
    assert "://" not in "".join(re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL))


@pytest.mark.long
def test_a_slower_build_fails_the_job_of_github(tmp_path: Path) -> None:
    prepare(tmp_path, loops=40_000)
    steps = {step.get("name"): step["run"] for step in jobs()[0]["jobs"]["compare"]["steps"] if "run" in step}
    # The environment exists: creating it again would replace the one of the tests.
    install = "\n".join(line for line in steps["Install"].splitlines() if "venv " not in line)
    assert run(tmp_path, install).returncode == 0
    compared = run(tmp_path, steps["Compare"])
    assert compared.returncode == 1, compared.stderr
    assert "more than the 3 % allowed" in compared.stdout
    assert run(tmp_path, steps["Summary"]).returncode == 0
    summary = (tmp_path / "summary.md").read_text()
    assert "commit is slower than release" in summary


@pytest.mark.long
def test_an_equal_build_does_not_fail_the_job_of_gitlab(tmp_path: Path) -> None:
    prepare(tmp_path, loops=3_900)
    job = jobs()[1]["compare"]
    compared = run(tmp_path, "\n".join(job["script"]))
    # Undecided is a warning by `allow_failure`.
    assert compared.returncode in (0, job["allow_failure"]["exit_codes"]), compared.stderr
    assert run(tmp_path, "\n".join(job["after_script"])).returncode == 0
    assert all((tmp_path / path).exists() for path in job["artifacts"]["paths"])
