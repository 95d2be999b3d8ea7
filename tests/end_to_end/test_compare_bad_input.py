"""What goes wrong in `dbdyno compare`: one message, its exit code, finished trials kept, no server left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.comparing import Comparing, environment, left_running, refused

BLOCKS_1 = ("--set", "design.blocks=1", "--no-report")


@pytest.fixture(scope="module")
def comparing(results: Path) -> Comparing:
    return Comparing(results)


@pytest.fixture(autouse=True)
def _nothing_remains(results: Path) -> Iterator[None]:
    yield
    assert left_running(results) == []


def test_a_file_with_errors_lists_them_all(comparing: Comparing) -> None:
    answer = comparing.run("--set", "load.conections=[1]", "--set", "workload.name=oltp_nothing")
    refused(answer, 2, "Did you mean connections?", "there is no such workload", "oltp_point_select")
    refused(comparing.run(file=comparing.results / "nope.toml"), 2, "nope.toml", "No such file")
    refused(comparing.run("--profile", "quick"), 2, "no such profile")
    refused(comparing.run("--colour"), 2, "--colour")
    refused(comparing.run("--no-report", "--open", "--output", "x"), 2, "--open and --output: --no-report")


def test_an_unknown_variable_is_named_before_anything_is_loaded(comparing: Comparing) -> None:
    runs = comparing.runs()
    answer = comparing.run("--set", "variant[pool-of-threads].server.variables.inodb_typo=1")
    refused(answer, 2, "inodb_typo")
    assert "loading" not in answer.stderr
    # A run that could not begin leaves nothing to wonder about.
    assert comparing.runs() == runs


def test_a_value_the_server_refuses_is_told_in_its_words(comparing: Comparing) -> None:
    answer = comparing.run("--set", "variant.server.variables.thread_handling=sometimes")
    refused(answer, 2, "thread_handling", "sometimes")


def test_what_a_variant_sets_is_tried_before_the_first_trial(comparing: Comparing) -> None:
    answer = comparing.run("--set", "variant.session.variables.sort_bufer_size=1")
    assert answer.returncode == 4
    assert "Unknown system variable 'sort_bufer_size'" in answer.stderr
    assert "loading" not in answer.stderr
    after = "variant.data.after=['CREATE INDEX c ON sbtest1 (nix)']"
    answer = comparing.run("--set", after, "--set", "workload.table_size=100", "--set", "workload.tables=1")
    refused(answer, 2, "data.after of '", "nix")


def test_a_missing_server_binary_says_where_it_was_looked_for(comparing: Comparing, tmp_path: Path) -> None:
    refused(comparing.run("--set", f"variant.server.basedir={tmp_path}"), 2, str(tmp_path), "mariadbd")


def test_a_cpu_that_is_not_there(comparing: Comparing) -> None:
    refused(
        comparing.run("--set", "client.cpus='4000'"), 2, 'client.cpus = "4000"', "dbdyno may not use CPU 4000"
    )


def test_a_missing_engine(comparing: Comparing, tmp_path: Path) -> None:
    # A Python with nothing beside it, and a PATH with nothing in it.
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to(Path(sys.executable).resolve())
    answer = subprocess.run(
        [str(python), *comparing.command()[1:]],
        capture_output=True,
        text=True,
        timeout=60,
        env={**environment(), "PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    refused(answer, 2, "dbdyno-engine was not found", str(tmp_path), "make build")


def test_a_silently_adjusted_variable_is_not_comparable_unless_overridden(comparing: Comparing) -> None:
    # The server takes this value, and keeps 65536.
    adjusted = ("--set", "variant[pool-of-threads].server.variables.thread_pool_max_threads=70000")
    answer = comparing.run(*adjusted, *BLOCKS_1)
    assert answer.returncode == 4, answer.stderr
    assert "P04" in answer.stderr
    assert "70000" in answer.stderr
    assert "65536" in answer.stderr
    assert "not comparable" in answer.stdout.splitlines()[-1]
    passed = comparing.run(*adjusted, *BLOCKS_1, "--set", "override.P04=a test of overrides")
    assert passed.returncode == 0, passed.stderr
    assert "a test of overrides" in passed.stdout.splitlines()[-1]


def test_a_port_in_use_is_named(comparing: Comparing) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = comparing.run("--set", f"variant.server.variables.port={port}")
    assert answer.returncode == 3
    assert str(port) in answer.stderr
    assert "Traceback" not in answer.stderr


def test_more_connections_than_the_server_takes_stop_before_the_load(comparing: Comparing) -> None:
    few = ("--set", "variant[pool-of-threads].server.variables.max_connections=10")
    answer = comparing.run(*few, "--set", "load.connections=[64]", *BLOCKS_1)
    assert answer.returncode == 4, answer.stderr
    assert "P07" in answer.stderr
    assert "max_connections" in answer.stderr


@pytest.mark.parametrize(
    ("number", "blocks"), [(signal.SIGINT, 2), pytest.param(signal.SIGTERM, 1, marks=pytest.mark.long)]
)
def test_interrupted_in_the_middle_and_continued(
    comparing: Comparing, number: signal.Signals, blocks: int
) -> None:
    # Sent while the second trial runs.
    planned, options = 4 * blocks, ("--no-report", "--set", f"design.blocks={blocks}")
    code, words = comparing.interrupt(f"[1/{planned}]", number, *options)
    assert code == 130, words
    assert "interrupted" in words
    assert "Traceback" not in words
    # Two signals of a burst are one request.
    assert "interrupt once more to end at once" not in words
    assert "Continue with: dbdyno compare" in words
    assert "--resume" in words
    run = comparing.newest()
    kept = {trial.index: (trial.path / "trial.json").read_bytes() for trial in run.trials()}
    assert 1 <= len(kept) < planned
    answer = comparing.run(*options, "--resume")
    assert answer.returncode == 0, answer.stderr
    assert comparing.newest().path == run.path
    trials = run.trials()
    assert [trial.index for trial in trials if trial.is_done] == list(range(planned))
    assert {index: (trials[index].path / "trial.json").read_bytes() for index in kept} == kept


def test_killed_without_warning_no_server_and_no_engine_outlive_it(
    comparing: Comparing, results: Path
) -> None:
    code, _ = comparing.interrupt("[1/4]", signal.SIGKILL, *BLOCKS_1)
    assert code == -signal.SIGKILL
    deadline = time.monotonic() + 20
    while left_running(results) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left_running(results) == []
    # What it left on disk is cleared away by the next run, which can continue.
    answer = comparing.run(*BLOCKS_1, "--resume")
    assert answer.returncode == 0, answer.stderr


def test_no_space_left_for_the_results(comparing: Comparing, tmp_path: Path) -> None:
    # The servers' data are elsewhere: a file stands where their directory would be.
    small = tmp_path / "small"
    small.mkdir()
    inside = Comparing(comparing.results).command("--no-report")
    inside[inside.index("--results") + 1] = str(small)
    script = (
        'mount -t tmpfs -o size=260k tmpfs "$0" && touch "$0/.servers" && "$@"; '
        'code=$?; find "$0" -name trial.json >&2; exit $code'
    )
    # Only root may mount; others are root in a namespace of their own.
    alone = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    answer = subprocess.run(
        [*alone, "sh", "-c", script, str(small), *inside],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
        check=False,
    )
    refused(answer, 4, "no space left for", "--resume", "are finished and kept", "trial.json")
