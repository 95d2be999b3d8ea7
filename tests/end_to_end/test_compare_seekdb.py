"""`dbdyno compare` on private seekdb servers: parameters, snapshots, plans, a network, and a verdict."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.end_to_end.comparing import TIME_LIMIT_S, Comparing, environment, wait_until
from tests.end_to_end.foreign import ROOT

pytestmark = pytest.mark.long

EXPERIMENT = f"""
[experiment]
name = "seekdb"
[[workload]]
name = "WORKLOAD"
[load]
connections = [2]
transport = "unix"
duration = "500ms"
warmup = "200ms"
[design]
repeat_disturbed = false
pairing = "trials"
state = "preserve"
blocks = 6
[[variant]]
name = "connected"
[variant.server]
product = "seekdb"
basedir = "{ROOT / "seekdb"}"
variables = {{ kvcache_memory_limit = "64M" }}
[[variant]]
name = "connecting"
load.reconnect_every = 1
[variant.server]
product = "seekdb"
basedir = "{ROOT / "seekdb"}"
variables = {{ kvcache_memory_limit = "128M" }}
"""


def comparing(results: Path, workload: str) -> Comparing:
    return Comparing(results, EXPERIMENT.replace("WORKLOAD", workload))


def test_two_variants_get_a_verdict(results: Path) -> None:
    small = ("--set", "workload.tables=1", "--set", "workload.table_size=1000")
    one = comparing(results, "oltp_point_select")
    answer = one.run(*small)
    assert answer.returncode == 0, answer.stderr
    run = one.newest()
    (comparison,) = json.loads((run.path / "verdict.json").read_text())["comparisons"]
    assert comparison["curve"]["verdict"] == "slower", comparison["curve"]
    servers = {trial.meta["variant"]: trial.server for trial in run.trials() if trial.is_done}
    limits: dict[str, Any] = {name: one["variables"]["kvcache_memory_limit"] for name, one in servers.items()}
    assert limits == {"connected": "64M", "connecting": "128M"}
    (product,) = {(one["product"], one["version"].split(".")[0]) for one in servers.values()}
    assert product == ("seekdb", "1")
    assert not [one for one in run.findings() if one.level == "stop"]


def test_a_bundled_workload_is_restored_from_its_snapshot_and_its_plans_are_read(results: Path) -> None:
    one = comparing(results, "micro/points-notcovered-si")
    changes = ("workload.rows=5000", "design.state='restore'", "design.blocks=1")
    answer = one.run("--no-report", *(word for change in changes for word in ("--set", change)))
    assert answer.returncode == 0, answer.stderr
    run = one.newest()
    trials = run.trials()
    assert [trial.is_done for trial in trials] == [True, True]
    assert len({trial.server["identity"]["snapshot"] for trial in trials}) == 1
    codes = {one.code for one in run.findings() if one.level != "note"}
    assert not codes & {"P02", "P03", "P08", "P09"}, run.findings()
    plans = [one.evidence["plans"] for one in run.findings() if "plans" in one.evidence]
    assert plans


def test_its_network_is_its_own(results: Path) -> None:
    comparison = comparing(results, "oltp_point_select")
    command = comparison.command("--no-report", "--set", "design.blocks=1")
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment())
    networks: set[str] = set()

    def has_server() -> bool:
        for process in psutil.process_iter(["name", "cmdline"]):
            if process.info["name"] == "seekdb" and "--nodaemon" in (process.info["cmdline"] or ()):
                with suppress(OSError):
                    networks.add(str(Path(f"/proc/{process.pid}/ns/net").readlink()))
        return bool(networks) or running.poll() is not None

    wait_until(has_server, "a server runs")
    _, printed = running.communicate(timeout=TIME_LIMIT_S)
    assert running.returncode == 0, printed
    assert networks
    assert str(Path("/proc/self/ns/net").readlink()) not in networks


def test_tcp_is_refused_before_anything_runs(results: Path) -> None:
    answer = comparing(results, "oltp_point_select").run("--set", "load.transport=tcp")
    assert answer.returncode == 2
    assert "seekdb listens on all interfaces" in answer.stderr
    assert 'Write transport = "unix"' in answer.stderr


def test_the_load_uses_tls(results: Path) -> None:
    text = EXPERIMENT.replace("WORKLOAD", "oltp_point_select").replace("load.reconnect_every = 1", "")
    text = text.replace("\n[variant.server]", '\nsession.tls = "required"\n[variant.server]')
    one = Comparing(results, text)
    answer = one.run("--no-report", "--set", "workload.table_size=500", "--set", "design.blocks=1")
    assert answer.returncode == 0, answer.stderr
    trials = one.newest().trials()
    assert [trial.is_done for trial in trials] == [True, True]
    assert all(str(trial.session()["tls"]).startswith("TLS") for trial in trials)


def test_a_refused_value_names_what_was_declared(results: Path) -> None:
    text = EXPERIMENT.replace("WORKLOAD", "oltp_point_select").replace('"64M"', '"64M", cpu_count = "x"')
    answer = Comparing(results, text).run()
    assert answer.returncode == 4, answer.stderr
    assert "named no reason" in answer.stderr
    assert "cpu_count = x" in answer.stderr
