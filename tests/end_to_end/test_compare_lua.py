"""Lua scripts through the lab's commands on real servers: a script of sysbench's own, and a larger one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.comparing import ROOT, VARIANTS, Comparing
from tests.end_to_end.test_run_command import Running, rows
from tests.schemas import require_valid

from dbdyno.experiment.model import ScriptWorkload
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.store import Run
from dbdyno.store.verdict import caveats_text

PACKAGED = "/usr/share/sysbench/oltp_read_write.lua"
SHOP = str(ROOT / "tests" / "fixtures" / "shop.lua")
EXPERIMENT = """
[experiment]
name = "script"
[[workload]]
script = "SCRIPT"
options = OPTIONS
[load]
connections = [2]
duration = "1s"
warmup = "100ms"
[design]
repeat_disturbed = false
"""
EXPERIMENT += VARIANTS


def comparing(folder: Path, script: str, options: str) -> Comparing:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o711)
    return Comparing(folder, EXPERIMENT.replace("SCRIPT", script).replace("OPTIONS", options))


def compared(folder: Path, script: str, options: str, blocks: int) -> Run:
    """Judged; the verdict is the last line and in the report."""
    comparison = comparing(folder, script, options)
    answer = comparison.run("--set", f"design.blocks={blocks}")
    assert answer.returncode == 0, answer.stderr
    run = comparison.newest()
    verdict = json.loads((run.path / "verdict.json").read_text())
    (judged,) = verdict["comparisons"]
    assert judged["workload"] == Path(script).stem
    (point,) = judged["points"]
    assert (point["blocks"], point["effect_percent"] is not None) == (blocks, True)
    assert (judged["curve"]["verdict"] == "too-few-blocks") == (blocks < 6)
    assert answer.stdout.splitlines()[-1] == judged["curve"]["sentence"]
    statement = judged["curve"]["sentence"].removesuffix(caveats_text(judged["curve"].get("caveats", [])))
    assert statement in (run.path / "report.html").read_text()
    assert not [finding for finding in verdict["checks"] if finding["level"] == "stop"]
    return run


@pytest.mark.long
def test_a_script_of_sysbenchs_own_is_compared(results: Path) -> None:
    run = compared(results / "packaged", PACKAGED, "{ tables = 2, table_size = 500 }", blocks=6)
    trials = run.trials()
    assert len(trials) == 12
    for trial in trials:
        assert trial.is_done
        require_valid(trial.plan, "plan")
        records = list(trial.records())
        require_valid(records[0], "events")
        (measure,) = [records[-1]["data"]["phases"]["measure"]]
        # 14 reads, 4 writes (a delete may find nothing), BEGIN and COMMIT; the edges cut some.
        assert measure["reads"] == pytest.approx(14 * measure["events"], rel=0.2, abs=56)
        assert measure["rows"] > 100 * measure["events"]


def test_a_script_in_the_style_of_large_ones_is_compared_on_restored_data(results: Path) -> None:
    run = compared(results / "shop", SHOP, '{ goods = 30, level = "RC" }', blocks=2)
    first, *others = [trial for trial in run.trials() if trial.meta["block"] == 0]
    (stored,) = run.experiment().workloads
    assert isinstance(stored, ScriptWorkload)
    assert (len(stored.digest), stored.options) == (64, {"goods": 30, "level": "RC"})
    assert others[0].plan["workload"] == first.plan["workload"]
    snapshots = results / "shop"
    made = set(snapshots.glob("**/snapshot.json"))
    assert len(made) == 1
    made_of = json.loads(made.pop().read_text())["made_of"]["data"]
    assert (made_of["script"], made_of["options"], made_of["users"]) == ("shop.lua", stored.options, 2)


@pytest.fixture
def running(mariadb: LocalServer, tmp_path: Path) -> Iterator[Running]:
    ready = Running(mariadb, tmp_path)
    yield ready
    ready.drop(*ready.tables())


def test_a_script_runs_over_a_server_that_is_there_and_leaves_nothing(running: Running) -> None:
    answer = running.run(
        SHOP, "--connections", "2,1", "--set", "goods=20", "--time", "500ms", "--warmup", "0s"
    )
    assert answer.returncode == 0, answer.stderr
    assert [row["connections"] for row in rows(answer.stdout)] == [2, 1]
    assert all(row["tps"] > 0 for row in rows(answer.stdout))
    assert running.tables() == []


def test_what_the_script_does_not_declare_is_told_before_anything_is_measured(running: Running) -> None:
    answer = running.run(SHOP, "--connections", "1", "--set", "good=30", "--set", "goods=many")
    assert answer.returncode == 2, answer.stderr
    assert "workload.script.options.good is not an option of the script" in answer.stderr
    assert "it declares goods, level, report_csv, shops" in answer.stderr
    assert 'workload.script.options.goods is "many"; the script declares a number' in answer.stderr
    assert running.tables() == []


def test_a_script_that_raises_fails_its_trial_with_its_line(running: Running, tmp_path: Path) -> None:
    script = tmp_path / "raises.lua"
    script.write_text("function event()\n  error('enough')\nend\n")
    answer = running.run(str(script), "--connections", "1", "--time", "500ms", "--warmup", "0s")
    assert answer.returncode == 4, answer.stderr
    (trial,) = running.newest().trials()
    assert "raises.lua:2: enough" in trial.meta["reason"]
    assert trial.meta["failed_by"] == "harness"


def test_a_refused_connection_of_a_script_is_an_error_of_the_server(running: Running, tmp_path: Path) -> None:
    script = tmp_path / "many.lua"
    script.write_text(
        "function thread_init()\n  held = {}\n"
        "  for i = 1, 30 do held[i] = sysbench.sql.driver():connect() end\nend\nfunction event() end\n"
    )
    user = running.address.user
    hosts = [host for (host,) in running.server.query(f"SELECT Host FROM mysql.user WHERE User = '{user}'")]
    accounts = ", ".join(f"'{user}'@'{host}'" for host in hosts)
    limit = f"ALTER USER {accounts} WITH MAX_USER_CONNECTIONS "
    running.server.query(limit + "20")
    try:
        answer = running.run(str(script), "--connections", "1", "--time", "500ms", "--warmup", "0s")
    finally:
        running.server.query(limit + "0")
    assert answer.returncode == 4, answer.stderr
    (trial,) = running.newest().trials()
    assert "many.lua:3: connection creation failed: User" in trial.meta["reason"]
    assert trial.meta["failed_by"] == "server"


def test_tables_that_are_there_are_not_a_scripts_to_drop(running: Running) -> None:
    running.server.query(f"CREATE TABLE {running.address.database}.good1 (id INT PRIMARY KEY)")
    short = ("--connections", "1", "--time", "500ms", "--warmup", "0s")
    answer = running.run(SHOP, *short)
    assert answer.returncode == 2, answer.stderr
    assert "has 1 table (good1)" in answer.stderr
    assert "prepare = false" in answer.stderr
    assert running.tables() == ["good1"]
    # With its own data in place a script may run over them, and they stay.
    running.drop("good1")
    kept = running.run(SHOP, *short, "--keep-data")
    assert kept.returncode == 0, kept.stderr
    names = ["good1", "good2", "sale1", "sale2"]
    assert running.tables() == names
    over_tables = (SHOP, *short, "--set", "workload.prepare=false")
    refusal = running.run(*over_tables)
    assert refusal.returncode == 4
    assert "stop P28 target: shop writes to tables that dbdyno has not created: unknown tables (shop)" in (
        refusal.stderr
    )
    again = running.run(*over_tables, "--writes", "replay")
    assert again.returncode == 0, again.stderr
    assert running.tables() == names
