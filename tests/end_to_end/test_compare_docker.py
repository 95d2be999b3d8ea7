"""Servers in containers, for real: compared, limited, restored, refused in words, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.comparing import Comparing, environment, refused
from tests.end_to_end.docker_engine import IMAGE, DockerEngine, running

EXPERIMENT = f"""
[experiment]
name = "containers"
[[workload]]
name = "oltp_read_write"
tables = 2
table_size = 500
[load]
connections = [4]
duration = "500ms"
warmup = "200ms"
[design]
blocks = 2
[[variant]]
name = "one thread each"
[variant.server]
kind = "docker"
image = "{IMAGE}"
memory = "512M"
cpu_limit = 1.5
variables = {{ innodb_buffer_pool_size = "64M", innodb_log_file_size = "16M" }}
[[variant]]
name = "pool"
[variant.server]
kind = "docker"
image = "{IMAGE}"
memory = "512M"
cpu_limit = 1.5
version = "10"
[variant.server.variables]
innodb_buffer_pool_size = "64M"
innodb_log_file_size = "16M"
thread_handling = "pool-of-threads"
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerEngine]:
    with running() as started:
        before = os.environ.get("DOCKER_HOST")
        os.environ["DOCKER_HOST"] = started.host
        yield started
        os.environ.pop("DOCKER_HOST")
        if before is not None:
            os.environ["DOCKER_HOST"] = before


@pytest.fixture
def comparing(results: Path) -> Comparing:
    return Comparing(results, EXPERIMENT)


def test_containers_are_compared_and_gone_afterwards(comparing: Comparing, engine: DockerEngine) -> None:
    answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    trials = comparing.newest().trials()
    assert len(trials) == 4
    snapshots = set()
    for trial in trials:
        server, identity = trial.server, trial.server["identity"]
        assert trial.done
        assert identity["image"] == IMAGE
        assert identity["image_id"].startswith("sha256:")
        assert (identity["memory_limit"], identity["cpu_limit"]) == ("512M", 1.5)
        assert server["variables"]["thread_handling"] == server["declared"].get(
            "thread_handling", "one-thread-per-connection"
        )
        assert server["variables"]["datadir"].rstrip("/") == identity["datadir"]
        assert server["process"]["after"]["cpu_user_s"] > server["process"]["before"]["cpu_user_s"]
        assert server["data_bytes"] > 0
        assert server["host"]["cpus"] == os.cpu_count()
        snapshots.add(identity["snapshot"])
    assert len(snapshots) == 1
    assert engine.containers() == []


def test_a_container_may_have_a_network_of_its_own(comparing: Comparing, engine: DockerEngine) -> None:
    """Its port is published on loopback; the other variant, on the host's network, is as it was."""
    changes = ["variant[pool].server.network='bridge'", "design.blocks=1", "design.state='reset'"]
    answer = comparing.run("--no-report", *(word for change in changes for word in ("--set", change)))
    assert answer.returncode == 0, answer.stderr
    networks = {}
    for trial in comparing.newest().trials():
        assert trial.done
        server = trial.server
        networks[trial.meta["variant"]] = server["identity"]["network"], server["variables"]["bind_address"]
        end = next(record["data"] for record in trial.records() if record["type"] == "end")
        assert end["phases"]["measure"]["events"] > 0
    assert networks == {"one thread each": ("host", "127.0.0.1"), "pool": ("bridge", "0.0.0.0")}
    assert engine.containers() == []


def test_what_keeps_a_container_from_serving_is_told(comparing: Comparing, engine: DockerEngine) -> None:
    here = [
        (
            ["variant[pool].server.image='no-such:1'"],
            2,
            ["there is no image 'no-such:1'", "docker pull no-such:1"],
        ),
        (["variant.server.product='postgresql'"], 2, [f"image '{IMAGE}' has no PostgreSQL server"]),
        # P19 would say it before: a server whose buffers are larger than its memory.
        (
            ["variant[pool].server.memory='64K'", "override.P19='the engine is to say it'"],
            4,
            ["the Docker engine refuses", "memory"],
        ),
        (["variant.server.basedir='/usr'"], 2, ["basedir is for kind = local"]),
    ]
    for changes, code, words in here:
        asked = [word for change in changes for word in ("--set", change)]
        refused(comparing.run("--no-report", *asked), code, *words)
    answer = comparing.run("--no-report", "--set", "variant[pool].server.version='9.7'")
    assert answer.returncode == 4
    assert "asks for version 9.7" in answer.stdout + answer.stderr
    os.environ["DOCKER_HOST"] = "unix:///nowhere/docker.sock"
    try:
        refused(comparing.run("--no-report"), 3, "the Docker engine does not answer", "start it")
    finally:
        os.environ["DOCKER_HOST"] = engine.host
    assert engine.containers() == []


def test_a_killed_comparison_leaves_no_container(comparing: Comparing, engine: DockerEngine) -> None:
    process = subprocess.Popen(
        comparing.command("--no-report"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    _until(lambda: bool(engine.containers()))
    process.send_signal(signal.SIGKILL)
    process.wait()
    _until(lambda: not engine.containers())


def _until(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_without_the_extra_it_is_one_sentence(comparing: Comparing, engine: DockerEngine) -> None:
    """A Python that finds no package `docker`."""
    hidden = comparing.results / "hidden"
    (hidden / "docker").mkdir(parents=True, exist_ok=True)
    (hidden / "docker" / "__init__.py").write_text("raise ImportError('hidden')\n")
    surroundings = environment()
    answer = subprocess.run(
        [sys.executable, "-m", *comparing.command("--no-report")[2:]],
        capture_output=True,
        text=True,
        env={**surroundings, "PYTHONPATH": f"{hidden}{os.pathsep}{surroundings['PYTHONPATH']}"},
        check=False,
        timeout=300,
    )
    refused(
        answer, 2, "servers of kind docker need the Python package docker", "pip install 'dbdyno[docker]'"
    )
