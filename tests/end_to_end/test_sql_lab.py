"""SQL of the user's own through the commands, on real servers: what is refused, loaded, and left behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import variant
from tests.end_to_end.comparing import TIME_LIMIT_S, environment

from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

ROWS = 20_000
# One good statement, and one of each kind that is told.
SANITY = f"""
[experiment]
name = "sanity"
[[workload]]
name = "sql"
label = "mixed"
setup = [
  "CREATE TABLE item (id INT PRIMARY KEY, k VARCHAR(20) NOT NULL, c VARCHAR(60) NOT NULL)",
  "CREATE INDEX k ON item (k)",
]
[workload.tables.item]
rows = {ROWS}
columns = {{ id = "sequence()", k = "uniform(1, 1000)", c = "text(60)" }}
[workload.parameters]
id = "uniform(1, rows(item))"
k = "uniform(1, 1000)"
far = "uniform(1, 2 * rows(item))"
found = "result(look)"
[[workload.transactions]]
statements = [
  {{ name = "look", sql = "SELECT k FROM item WHERE id = :id", rows = 1 }},
  {{ name = "again", sql = "SELECT COUNT(*) FROM item WHERE k = :found", rows = 1 }},
  {{ name = "published", sql = "SELECT * FROM item WHERE id = FLOOR(RAND() * {ROWS})" }},
  {{ name = "converted", sql = "SELECT id FROM item WHERE k = :k" }},
  {{ name = "sum", sql = "SELECT COUNT(*) FROM item WHERE c = 'x'", rows = 1 }},
  {{ name = "scan", sql = "SELECT id FROM item WHERE c = 'x'", rows = 0 }},
  {{ name = "missing", sql = "SELECT id FROM item WHERE id = :far", rows = 1 }},
  {{ name = "refused", sql = "SELECT nothing FROM item", rows = 1 }},
]
[load]
connections = [2]
duration = "1s"
[[variant]]
name = "server"
server = {{ product = "PRODUCT" }}
"""
SHOP = """
-- @parameter id = uniform(1, rows(item))
-- @parameter next = sequence()
-- @table item rows=500
-- @column id = sequence()
-- @column n = constant(0)
-- @setup
CREATE TABLE item (id INT PRIMARY KEY, n INT NOT NULL);
CREATE TABLE log (id BIGINT PRIMARY KEY, item INT);
-- @transaction browse weight=2
-- @statement rows=1
SELECT n FROM item WHERE id = :id;
-- @transaction change
BEGIN;
-- @statement rows=1
UPDATE item SET n = n + 1 WHERE id = :id;
-- @statement rows=1
INSERT INTO log VALUES (:next, :id);
COMMIT;
"""


def dbdyno(*arguments: str, password: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dbdyno", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=TIME_LIMIT_S,
        env={**environment(), "DBDYNO_PASSWORD": password},
        check=False,
    )


@pytest.mark.parametrize(
    ("product", "drawn", "converted"),
    [("mariadb", "RAND", "of type `varchar`"), ("postgresql", "RANDOM", "")],
)
def test_statements_are_read_explained_and_tried_before_the_load(
    results: Path, product: str, drawn: str, converted: str
) -> None:
    text = SANITY.replace("PRODUCT", product).replace("RAND()", f"{drawn}()")
    if not converted:
        # There a comparison of text with a number is no conversion but an error.
        text = text.replace("= :k", "= CAST(:k AS varchar)")
    file = results / "sanity.toml"
    file.write_text(text)
    answer = dbdyno("check", str(file), "--with-data", "--results", str(results))
    assert answer.returncode == 4, answer.stderr
    stops, _, rest = answer.stdout.partition("Warnings (printed with the result):")
    assert (
        "P08: full table scan by statement published of mixed, which returns a random number of rows: "
        f"{drawn}() in id = FLOOR({drawn}() * {ROWS}) is evaluated per row"
    ) in stops
    assert f'Use WHERE id = :id, with the parameter id = "uniform(0, {ROWS - 1})".' in stops
    assert "P08 server: full table scan on item by statement scan of mixed" in stops
    assert (
        "P09 server: statement missing of mixed returned an unexpected row count in 2 of 5 executions"
        in stops
    )
    assert "0 rows with far = 30000; expected 1." in stops
    assert "P09 server: the server refused statement refused of mixed" in stops
    assert stops.count("\n  P") == 4, stops
    assert "P08 server: full table scan on item by statement published of mixed" in rest
    assert "P08 server: full table scan on item by statement sum of mixed" in rest
    assert ("P08 server: statement converted of mixed compares values of different types" in rest) == bool(
        converted
    )
    assert converted in rest
    # By the server's counters: one row for the look-up, all of them for the scan.
    examined = rest.partition("maximum rows examined per execution, by the server's counters: ")[2]
    counts = dict(one.rsplit(" ", 1) for one in examined.partition(".\n")[0].split(", "))
    assert counts["look"] == "1"
    assert ROWS <= int(counts["published"].replace(",", "")) <= ROWS + 5


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[LocalServer]:
    with closing(LocalServer(variant("sql of one's own"), workspace, None)) as server:
        server.start()
        yield server


def test_a_file_runs_on_a_server_that_is_there_and_leaves_nothing(server: LocalServer, results: Path) -> None:
    address = server.address()
    place = f"mysql://{address.user}@127.0.0.1:{address.port}/{address.database}"
    file = results / "shop.sql"
    file.write_text(SHOP)

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        short = ("--time", "1s", "--warmup", "0s", "--connections", "2", "--results", str(results))
        return dbdyno("run", str(file), "--target", place, *short, *more, password=address.password)

    def tables() -> list[str]:
        return sorted(name for (name,) in server.query(f"SHOW TABLES FROM `{address.database}`"))

    answer = run("--keep-data")
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.splitlines()) == 2
    assert tables() == ["item", "log"]
    database = f"`{address.database}`"
    ((changed, rows),) = server.query(
        f"SELECT (SELECT SUM(n) FROM {database}.item), (SELECT COUNT(*) FROM {database}.log)"
    )
    assert changed == rows > 0
    # Tables that are there are used, and stay: their sequence goes on where nothing is.
    server.query(f"DELETE FROM {database}.log")
    answer = run()
    assert answer.returncode == 0, answer.stderr
    assert "using the existing tables, which are not dropped" in answer.stderr
    assert tables() == ["item", "log"]
    # Of some of them nobody could tell whose they are.
    server.query(f"DROP TABLE {database}.item")
    answer = run()
    assert answer.returncode == 2, answer.stderr
    assert "dbdyno drops only tables that it has created" in answer.stderr
    assert tables() == ["log"]
    server.query(f"DROP TABLE {database}.log")
    answer = run()
    assert answer.returncode == 0, answer.stderr
    assert tables() == []


def test_a_set_up_that_breaks_off_is_left_to_its_author(server: LocalServer, results: Path) -> None:
    address = server.address()
    place = f"mysql://{address.user}@127.0.0.1:{address.port}/{address.database}"
    file = results / "broken.sql"
    file.write_text(SHOP.replace("CREATE TABLE log (id", "CREATE TABLE log (id WRONG, id"))
    answer = dbdyno("run", str(file), "--target", place, "--time", "1s", password=address.password)
    assert answer.returncode == 4, answer.stderr
    assert "setup was interrupted" in answer.stderr
    assert "Traceback" not in answer.stderr
    server.query(f"DROP TABLE `{address.database}`.item")
