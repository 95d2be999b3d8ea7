"""Servers that require a primary key of every table, and workloads with a table that has none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.comparing import Comparing
from tests.end_to_end.mysql_server import ROOT, MySQLServer, Start

from dbdyno.run.loading import FORCE_KEY, REQUIRE_KEY

# A log without a key, which every transaction appends to.
WORKLOAD = """
-- @table balance rows=200
-- @column id = sequence()
-- @column amount = constant(0)
-- @setup
CREATE TABLE balance (id INT PRIMARY KEY, amount INT);
CREATE TABLE journal (id INT, amount INT, note VARCHAR(20) DEFAULT 'PRIMARY KEY');
-- @parameter id = uniform(1, 200)
-- @transaction change
BEGIN;
-- @statement name=change rows=1
UPDATE balance SET amount = amount + 1 WHERE id = :id;
-- @statement name=note rows=1
INSERT INTO journal (id, amount) VALUES (:id, 1);
COMMIT;
"""
EXPERIMENT = """
[experiment]
name = "keys"
[[workload]]
name = "sql"
file = "journal.sql"
[load]
connections = [2]
duration = "500ms"
warmup = "200ms"
[design]
repeat_disturbed = false
blocks = 1
"""
SERVER = """
[[variant]]
name = "{name}"
[variant.server]
product = "{product}"
{place}
[variant.server.variables]
{variable} = {value}
innodb_buffer_pool_size = "64M"
"""


def servers(product: str, variable: str, place: str = "") -> str:
    """Two variants, of which one requires keys."""
    return "".join(
        SERVER.format(name=name, product=product, place=place, variable=variable, value=value)
        for name, value in (("free", "false"), ("strict", "true"))
    )


MYSQL = servers("mysql", REQUIRE_KEY, f'version = "9.7"\nbasedir = "{ROOT}"')


@pytest.mark.parametrize(
    ("variable", "variants"),
    [
        pytest.param(REQUIRE_KEY, MYSQL, marks=pytest.mark.long),
        (FORCE_KEY, servers("mariadb", FORCE_KEY)),
    ],
)
def test_a_private_server_gets_the_table_and_keeps_its_setting(
    variable: str, variants: str, results: Path
) -> None:
    comparing = Comparing(results, EXPERIMENT + variants)
    (comparing.file.parent / "journal.sql").write_text(WORKLOAD)
    answer = comparing.run("--no-report", "--share-machine")
    assert answer.returncode == 0, answer.stderr
    trials = comparing.newest().trials()
    assert {trial.meta["variant"]: trial.server["variables"][variable] for trial in trials} == {
        "free": "OFF",
        "strict": "ON",
    }
    assert all(trial.is_done for trial in trials)


def run(server: MySQLServer, workload: Path | str, results: Path) -> subprocess.CompletedProcess[str]:
    address = server.address()
    target = f"mysql://{address.user}@127.0.0.1:{address.port}/{address.database}"
    command = [sys.executable, "-m", "dbdyno", "run", str(workload), "--target", target, "--connections", "2"]
    command += ["--time", "500ms", "--warmup", "0s", "--results", str(results), "--workers", "1"]
    command.append("--keep-data")
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"DBDYNO_PASSWORD": address.password},
    )


def test_a_session_of_a_remote_server_allows_it_if_the_account_may(
    start_mysql: Start, results: Path, tmp_path: Path
) -> None:
    server = start_mysql("requires keys", f"--{REQUIRE_KEY.replace('_', '-')}=ON")
    file = tmp_path / "journal.sql"
    file.write_text(WORKLOAD)
    refused = run(server, file, results)
    assert refused.returncode == 4, refused.stderr
    assert f"{REQUIRE_KEY} is ON" in refused.stderr
    assert "(journal)" in refused.stderr
    assert "Grant the account SESSION_VARIABLES_ADMIN" in refused.stderr
    # Nothing was created before the refusal.
    tables = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'dbdyno' ORDER BY 1"
    assert server.sql(tables) == []
    server.sql(f"GRANT SESSION_VARIABLES_ADMIN ON *.* TO {server.address().user}")
    allowed = run(server, file, results)
    assert allowed.returncode == 0, allowed.stderr
    assert [name for (name,) in server.sql(tables)] == ["balance", "journal"]
    assert server.variables()[REQUIRE_KEY] == "ON"
    bundled = run(server, "tpcb", results)
    assert bundled.returncode == 0, bundled.stderr
