"""The bundled workloads on the three products: expected row counts, plans, and data that all share."""

from __future__ import annotations

import fnmatch
import itertools
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from tests.end_to_end.comparing import Comparing
from tests.end_to_end.mysql_server import ROOT as MYSQL_ROOT
from tests.end_to_end.mysql_server import MySQLServer

from dbdyno.experiment import bundled
from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace
from dbdyno.store import Run

# One of each kind: long IN list, secondary index, scan, a replaced row. test_suite.py has points and updates.
OFTEN = ("random-points-1000", "range-notcovered-si", "scan", "delete")
EXPERIMENT = """
[experiment]
name = "bundled"
[[workload]]
name = NAMES
rows = ROWS
[load]
connections = [4]
duration = "500ms"
warmup = "100ms"
[design]
blocks = 1
state = "STATE"
pairing = "trials"
repeat_disturbed = false
[client]
workers = 1
"""


# Transactions that update random rows while others replace rows: now and then one finds its row deleted.
MAY_CONFLICT = ("micro/read-write-10", "micro/read-write-100", "micro/write-only")


@pytest.fixture(scope="module")
def postgresql(workspace: Workspace) -> Iterator[LocalServer]:
    spec = Variant(name="bundled workloads", server=ServerSpec(product="postgresql"))
    with closing(LocalServer(spec, workspace, None)) as server:
        server.start()
        yield server


def experiment(names: list[str], state: str, rows: int | None = None) -> str:
    """An experiment file without variants."""
    text = EXPERIMENT.replace("NAMES", json.dumps(names)).replace("STATE", state)
    return text.replace("rows = ROWS\n", "" if rows is None else f"rows = {rows}\n")


def compare_on(
    servers: Mapping[str, LocalServer | MySQLServer], text: str, results: Path, folder: Path
) -> Run:
    """The run of an experiment on servers that run already: their data are kept from trial to trial."""
    for name, server in servers.items():
        address, secret = server.address(), folder / name
        secret.write_text(address.password)
        url = f"{address.protocol}://{address.user}@{address.host}:{address.port}/{address.database}"
        text += f'[[variant]]\nname = "{name}"\n[variant.server]\nkind = "remote"\nurl = "{url}"\n'
        text += f'password_file = "{secret}"\n'
    comparing = Comparing(results, text)
    answer = comparing.run("--no-report", "--share-machine")
    assert answer.returncode == 0, answer.stderr
    return comparing.newest()


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        pytest.param([f"micro/{name}" for name in OFTEN], 20_000, id="four"),
        # In a small table PostgreSQL reads a range of 10,000 rows without the index.
        pytest.param(["micro/*"], 200_000, id="all", marks=pytest.mark.long),
        # An insert, rows that their connection inserted, and a row count that is a parameter.
        pytest.param(["ycsb/d", "ycsb/e"], 5_000, id="ycsb-inserts"),
        pytest.param(["ycsb/*"], 20_000, id="ycsb", marks=pytest.mark.long),
    ],
)
def test_a_group_runs_on_three_products_with_the_expected_rows_and_plans(  # noqa: PLR0917 — fixtures, by name.
    names: list[str],
    rows: int,
    results: Path,
    tmp_path: Path,
    mariadb: LocalServer,
    mysql: MySQLServer,
    postgresql: LocalServer,
) -> None:
    servers: dict[str, LocalServer | MySQLServer]
    servers = {"mariadb": mariadb, "mysql": mysql, "postgresql": postgresql}
    # Only some of ycsb change the number of rows.
    state = "reset" if names[0].startswith("ycsb/") else "preserve"
    run = compare_on(servers, experiment(names, state, rows), results, tmp_path)
    titles = [workload.title for workload in run.experiment().workloads]
    assert titles == [name for pattern in names for name in fnmatch.filter(bundled.names(), pattern)]
    trials = [(trial.workload, trial.variant) for trial in run.schedule()]
    assert sorted(trials) == sorted(itertools.product(titles, servers))
    found = run.findings()
    # EXPLAIN was read for each, and shows what the files state.
    plans = {(one.subject, one.evidence["workload"]) for one in found if one.code == "P08"}
    with_plan = [title for title in titles if title not in ("micro/insert", "micro/select-1")]
    assert set(itertools.product(servers, with_plan)) <= plans
    codes = ("P02", "P08", "P09")
    wrong = [f"{one.subject}: {one.text}" for one in found if one.code in codes and one.level != "note"]
    assert not wrong, "\n".join(wrong)
    verdict = run.verdict()
    assert verdict is not None
    unexpected = [one for one in verdict.checks if one.code == "D04"]
    assert all(one.level == "note" for one in unexpected)
    assert {one.evidence["workload"] for one in unexpected} <= set(MAY_CONFLICT)
    for server in servers.values():
        tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_name IN ('micro', 'usertable')"
        assert server.query(tables) == [(0,)]


def test_transfers_keep_the_sums_of_balances_equal(
    results: Path, tmp_path: Path, mariadb: LocalServer, mysql: MySQLServer, postgresql: LocalServer
) -> None:
    """Eight connections update the one branch of the smallest scale, and wait for each other."""
    servers: dict[str, LocalServer | MySQLServer]
    servers = {"mariadb": mariadb, "mysql": mysql, "postgresql": postgresql}
    text = experiment(["tpcb", "connect"], "preserve").replace("[4]", "[8]") + "[loading]\nkeep = true\n"
    run = compare_on(servers, text, results, tmp_path)
    verdict = run.verdict()
    assert verdict is not None
    assert [one for one in verdict.checks if one.code == "D04"] == []
    trials = run.trials()
    assert len(trials) == 2 * len(servers)
    for trial in trials:
        intervals = [record["data"] for record in trial.records() if record["type"] == "interval"]
        # Each transaction of connect has a connection of its own.
        connections = sum(one["events"] for one in intervals) if trial.meta["workload"] == "connect" else 0
        assert sum(one["reconnects"] for one in intervals) == pytest.approx(connections, abs=8)
    columns = {"accounts": "abalance", "tellers": "tbalance", "branches": "bbalance", "history": "delta"}
    for server in servers.values():
        database = server.address().database
        prefix = "" if server.address().protocol == "postgresql" else f"{database}."
        sums = {
            int(server.query(f"SELECT SUM({column}) FROM {prefix}pgbench_{table}")[0][0])
            for table, column in columns.items()
        }
        assert len(sums) == 1
        ((count,),) = server.query(f"SELECT COUNT(*) FROM {prefix}pgbench_history")
        assert count > 0
        for table in columns:
            server.query(f"DROP TABLE {prefix}pgbench_{table}")


@pytest.mark.parametrize(
    "product",
    [
        "mariadb",
        pytest.param("postgresql", marks=pytest.mark.long),
        pytest.param("mysql", marks=pytest.mark.long),
    ],
)
def test_a_private_server_offers_tls_without_a_certificate_of_the_user(results: Path, product: str) -> None:
    server = f'product = "{product}"' + (f', basedir = "{MYSQL_ROOT}"' if product == "mysql" else "")
    text = experiment(["connect"], "restore")
    for name, mode in (("plain", "disabled"), ("encrypted", "required")):
        text += f'[[variant]]\nname = "{name}"\nserver = {{ {server} }}\nsession = {{ tls = "{mode}" }}\n'
    comparing = Comparing(results, text)
    answer = comparing.run("--no-report", "--share-machine")
    assert answer.returncode == 0, answer.stderr
    used = {trial.meta["variant"]: trial.session()["tls"] for trial in comparing.newest().trials()}
    assert used["plain"] is None
    assert str(used["encrypted"]).startswith("TLSv1.")


@pytest.mark.long
def test_the_insert_benchmark_runs_on_three_products(
    results: Path,
    tmp_path: Path,
    mariadb: LocalServer,
    mysql: MySQLServer,
    postgresql: LocalServer,
) -> None:
    servers: dict[str, LocalServer | MySQLServer]
    servers = {"mariadb": mariadb, "mysql": mysql, "postgresql": postgresql}
    # Each trial begins with the rows that were loaded, because writers delete the oldest ones.
    text = EXPERIMENT.replace("NAMES", '"insert/*"').replace("ROWS", "5_000\nreserve = 20_000")
    text = text.replace("STATE", "reset").replace('"500ms"', '"1s"')
    run = compare_on(servers, text, results, tmp_path)
    found = run.findings()
    codes = ("P02", "P08", "P09")
    wrong = [f"{one.subject}: {one.text}" for one in found if one.code in codes and one.level != "note"]
    assert not wrong, "\n".join(wrong)
    judged = run.judge_files()
    assert judged is not None
    assert not [one.text for one in judged[0].checks if one.code == "D04"]
    for trial in judged[1].trials:
        assert trial.figures is not None, trial.failure
        has_writer = trial.workload.split("/")[1].startswith(("points", "ranges"))
        assert list(trial.background) == (["writes"] if has_writer else [])
        for one in trial.background.values():
            assert one.figures is not None
            assert (one.figures.row_count_mismatches, one.figures.errors) == (0, {})
