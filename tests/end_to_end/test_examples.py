"""Every example runs: with its smoke profile, as its users would call it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.comparing import Comparing, left_running

EXAMPLES = Path(__file__).parents[2] / "examples"

# Example -> how its verdict begins.
LOCAL = {
    "mariadb-thread-pool": "Exploratory only, pool-of-threads against one-thread-per-connection",
    "mysql-thread-pool": "Exploratory only, thread-pool against one-thread-per-connection",
}


@pytest.mark.parametrize(("name", "told"), LOCAL.items())
def test_the_smoke_profile_runs(results: Path, name: str, told: str) -> None:
    comparing = Comparing(results)
    answer = comparing.run("--profile", "smoke", file=EXAMPLES / f"{name}.toml")
    assert answer.returncode == 0, answer.stderr
    assert told in answer.stdout.splitlines()[-1]
    assert left_running(results) == []


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.toml")} == set(LOCAL)
