"""Every example runs: with its smoke profile, as its users would call it. Those that need images are in
test_compare_docker.py.
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.conftest import variant
from tests.end_to_end.comparing import Comparing, environment, left_running

from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

EXAMPLES = Path(__file__).parents[2] / "examples"

# Example -> what its last verdict is about, and how many tests it has. These start their servers here.
LOCAL = {
    "buffer-pool-instances": ("8-instances against 1-instance", 2),
    "mariadb-flush-at-commit": ("every-second against every-commit", 1),
    "mariadb-thread-pool": ("pool-of-threads against one-thread-per-connection", 1),
    "mysql-thread-pool": ("thread-pool against one-thread-per-connection", 1),
    "shop": ("postgresql against mariadb", 1),
    "postgres-settings": ("buffers large: too few blocks", 1),
}
# `make test` runs this one, and `make test-long` the others: each takes half a minute. Factors and settings
# of PostgreSQL are compared in test_compare_factors.py and test_compare_postgresql.py.
OFTEN = ("mariadb-flush-at-commit",)
# Example -> its variants and tests: these go to servers that are there.
ENDPOINTS = {
    "aurora-instances": (("x64", "graviton2"), 1),
    "endpoints": (("before", "after"), 3),
}
# Example -> the versions that it compares.
RELEASES = {"mariadb-releases": ("10.11", "11.4"), "postgres-releases": ("14", "16", "18")}
IMAGES = {"mysql-versions": "8.4.5 against 8.0.42"}


def smoke(results: Path, name: str, *arguments: str) -> list[str]:
    """The lines that the example's smoke profile prints."""
    answer = Comparing(results).run("--profile", "smoke", *arguments, file=EXAMPLES / f"{name}.toml")
    assert answer.returncode == 0, answer.stderr
    assert left_running(results) == []
    return answer.stdout.splitlines()


def has_too_few_blocks(line: str, comparison: str, tests: int) -> bool:
    """Whether a line says that a comparison has no verdict: every smoke profile has too few blocks."""
    if tests == 1:
        return "oo few blocks" in line and comparison in line
    return line.startswith(
        f"{comparison} over {tests} tests: {tests} without a verdict, for which there are too few blocks"
    )


@pytest.mark.parametrize(
    ("name", "comparison", "tests"),
    [
        pytest.param(name, *last, marks=[] if name in OFTEN else pytest.mark.long)
        for name, last in LOCAL.items()
    ],
)
def test_the_smoke_profile_runs(results: Path, name: str, comparison: str, tests: int) -> None:
    last = smoke(results, name)[-1]
    assert has_too_few_blocks(last, comparison, tests)
    report = max((results / name).glob("*/report.html"), key=lambda path: path.stat().st_mtime_ns)
    page = html.unescape(report.read_text())
    # The page has the caveats of one test one by one.
    shown = re.split(" Caveats?: ", last)[0] + "</p>" if tests == 1 else last
    assert f'<p class="sentence">{shown}' in page
    assert "charts could not be rendered" not in page
    assert page.count("<svg") >= 2
    # Only this example has an account whose privileges decide how it connects.
    reason = "which lacks TP_CONNECTION_ADMIN: its connections go through MySQL"
    assert (reason in page) == (name == "mysql-thread-pool")


@pytest.fixture(scope="module")
def pair(workspace: Workspace) -> Iterator[tuple[LocalServer, LocalServer]]:
    """Two servers that were there before: what the examples expect of them is set."""
    with ExitStack() as stack:
        servers = []
        for name in ("example one", "example other"):
            given = variant(name, variables={"max_connections": 2000})
            servers.append(stack.enter_context(closing(LocalServer(given, workspace, None))))
            servers[-1].start()
        yield servers[0], servers[1]


@pytest.mark.long
@pytest.mark.parametrize(("name", "variants", "tests"), [(n, v, t) for n, (v, t) in ENDPOINTS.items()])
def test_the_smoke_profile_runs_on_endpoints(  # noqa: PLR0917 — fixtures, by name.
    results: Path,
    tmp_path: Path,
    pair: tuple[LocalServer, LocalServer],
    name: str,
    variants: tuple[str, str],
    tests: int,
) -> None:
    assignments = []
    for one, server in zip(variants, pair, strict=True):
        address, secret = server.address(), tmp_path / one
        secret.write_text(address.password)
        url = f"mysql://{address.user}@{address.host}:{address.port}/{address.database}"
        assignments += ["--set", f'variant[{one}].server.url="{url}"']
        assignments += ["--set", f'variant[{one}].server.password_file="{secret}"']
    last = smoke(results, name, *assignments)[-1]
    assert has_too_few_blocks(last, f"{variants[1]} against {variants[0]}", tests)
    # What was loaded is gone.
    for server in pair:
        assert server.query(f"SHOW TABLES FROM `{server.address().database}`") == []


@pytest.mark.long
@pytest.mark.parametrize(("name", "versions"), RELEASES.items())
def test_the_smoke_profile_runs_on_versions(
    results: Path, monkeypatch: pytest.MonkeyPatch, name: str, versions: tuple[str, ...]
) -> None:
    # The downloads are kept, as other servers of tests are.
    monkeypatch.setenv("DBDYNO_SERVERS", str(EXAMPLES.parent / ".servers" / "versions"))
    product = "mariadb" if name == "mariadb-releases" else "postgresql"
    for version in versions:
        command = [sys.executable, "-m", "dbdyno", "servers", "install", product, version]
        subprocess.run([*command, "--source", "maven"], check=True, env=environment())
    lines = smoke(results, name)
    assert [line.split(":")[0] for line in lines if " against " in line and " over " in line] == [
        f"{version} against {versions[0]} over 3 tests" for version in versions[1:]
    ]


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.toml")} == {*LOCAL, *ENDPOINTS, *IMAGES, *RELEASES}
