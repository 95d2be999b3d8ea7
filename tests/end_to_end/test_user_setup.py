"""Setups of users with views, triggers, routines, sequences, partitions and foreign keys, on servers with
objects of the user in the same database and in another one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import SMALL
from tests.end_to_end.comparing import environment
from tests.end_to_end.mysql_server import MySQLServer
from tests.end_to_end.test_run_command import url

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

Server = LocalServer | MySQLServer
# Objects of the user; `item` in the other database has the name of a table of the workload.
MINE = {
    "mysql": [
        "CREATE DATABASE IF NOT EXISTS otherdb",
        "CREATE TABLE otherdb.item (id INT PRIMARY KEY, n INT)",
        "INSERT INTO otherdb.item VALUES (1, 10), (2, 20)",
        "CREATE TABLE dbdyno.mine (id INT PRIMARY KEY, n INT, up INT, "
        "FOREIGN KEY (up) REFERENCES dbdyno.mine (id))",
        "INSERT INTO dbdyno.mine VALUES (1, 1, NULL), (2, 2, 1)",
        "CREATE VIEW dbdyno.seen AS SELECT n FROM otherdb.item",
        "CREATE TRIGGER dbdyno.guard BEFORE INSERT ON dbdyno.mine FOR EACH ROW SET NEW.n = NEW.n + 1",
        "CREATE PROCEDURE dbdyno.nothing() SELECT 1",
    ],
    "postgresql": [
        "CREATE SCHEMA otherdb AUTHORIZATION {user}",
        "SET ROLE {user}",
        "CREATE TABLE otherdb.item (id INT PRIMARY KEY, n INT)",
        "INSERT INTO otherdb.item VALUES (1, 10), (2, 20)",
        "CREATE TABLE mine (id INT PRIMARY KEY, n INT, up INT REFERENCES mine (id))",
        "INSERT INTO mine VALUES (1, 1, NULL), (2, 2, 1)",
        "CREATE VIEW seen AS SELECT n FROM otherdb.item",
        "CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.n := NEW.n + 1; RETURN NEW; END $$",
        "CREATE TRIGGER guard BEFORE INSERT ON mine FOR EACH ROW EXECUTE FUNCTION guard()",
        "CREATE SEQUENCE numbers",
        "RESET ROLE",
    ],
}
COLUMNS = {"schemas": "table_schema", "triggers": "trigger_schema", "routines": "routine_schema"}
# Every object of the user, and the rows.
OBJECTS = {
    "mysql": [
        "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE {schemas}",
        "SELECT trigger_schema, trigger_name, event_object_table "
        "FROM information_schema.triggers WHERE {triggers}",
        "SELECT routine_schema, routine_name, routine_type FROM information_schema.routines WHERE {routines}",
        "SELECT * FROM otherdb.item ORDER BY id",
        "SELECT * FROM dbdyno.mine ORDER BY id",
        "SELECT * FROM dbdyno.seen ORDER BY n",
    ],
    "postgresql": [
        "SELECT n.nspname, c.relname, c.relkind::text, COALESCE(obj_description(c.oid, 'pg_class'), '') "
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname IN ('public', 'otherdb') ORDER BY 1, 2",
        "SELECT tgname, tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1",
        "SELECT proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "
        "WHERE n.nspname = 'public' ORDER BY 1",
        "SELECT * FROM otherdb.item ORDER BY id",
        "SELECT * FROM mine ORDER BY id",
        "SELECT * FROM seen ORDER BY n",
    ],
}
# What a workload creates.
SETUP = {
    "mysql": """
CREATE TABLE item (id INT NOT NULL PRIMARY KEY, n INT, twice INT AS (n * 2) STORED)
  PARTITION BY HASH (id) PARTITIONS 3;
CREATE TABLE parent (id INT PRIMARY KEY, n INT);
CREATE TABLE child (id INT PRIMARY KEY, parent INT, other INT, FOREIGN KEY (parent) REFERENCES parent (id),
  FOREIGN KEY (other) REFERENCES mine (id));
INSERT INTO parent VALUES (1, 0), (2, 0), (3, 0);
INSERT INTO item (id, n) VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO child VALUES (1, 1, 1), (2, 2, 1);
CREATE VIEW both_of AS SELECT item.n FROM item JOIN parent ON parent.id = item.id;
CREATE TRIGGER count_items AFTER UPDATE ON item FOR EACH ROW UPDATE parent SET n = n + 1 WHERE id = 1;
CREATE FUNCTION triple(x INT) RETURNS INT DETERMINISTIC RETURN 3 * x;
""",
    "postgresql": """
CREATE TABLE item (id INT NOT NULL PRIMARY KEY, n INT, twice INT GENERATED ALWAYS AS (n * 2) STORED)
  PARTITION BY RANGE (id);
CREATE TABLE item_low PARTITION OF item FOR VALUES FROM (0) TO (2);
CREATE TABLE item_high PARTITION OF item DEFAULT;
CREATE TABLE parent (id INT PRIMARY KEY, n INT);
CREATE TABLE child (id INT PRIMARY KEY, parent INT REFERENCES parent (id), other INT REFERENCES mine (id));
INSERT INTO parent VALUES (1, 0), (2, 0), (3, 0);
INSERT INTO item (id, n) VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO child VALUES (1, 1, 1), (2, 2, 1);
CREATE VIEW both_of AS SELECT item.n FROM item JOIN parent ON parent.id = item.id;
CREATE FUNCTION triple(x INT) RETURNS INT IMMUTABLE LANGUAGE sql AS 'SELECT 3 * x';
CREATE SEQUENCE counting;
""",
}
TABLES = "DROP TABLE child;\nDROP TABLE parent;\nDROP TABLE item;\n"
CLEANUP = {
    "mysql": "DROP VIEW both_of;\nDROP FUNCTION triple;\n" + TABLES,
    "postgresql": "DROP VIEW both_of;\nDROP FUNCTION triple;\nDROP SEQUENCE counting;\n" + TABLES,
}
LOAD = """
-- @transaction one
-- @statement rows=1
SELECT both_of.n, triple(2) FROM both_of WHERE both_of.n = :id;
UPDATE item SET n = n WHERE id = :id;
"""


class User:
    """A user with objects on a server."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder, self.address = server, folder, server.address()
        self.protocol = self.address.protocol
        for sql in MINE[self.protocol]:
            self.query(sql)
        if isinstance(server, MySQLServer):
            self.query("GRANT ALL ON otherdb.* TO {user}@'%'")
        elif self.protocol == "mysql":
            # The administrator of a private MariaDB may not GRANT.
            self.query("UPDATE mysql.db SET Db = '%' WHERE User = '{user}'")
            self.query("FLUSH PRIVILEGES")
        self.before = self.objects()

    def query(self, sql: str) -> Sequence[tuple[object, ...]]:
        filled = sql.replace("{user}", self.address.user)
        for name, column in COLUMNS.items():
            filled = filled.replace(f"{{{name}}}", f"{column} IN ('dbdyno', 'otherdb') ORDER BY 1, 2")
        return [tuple(row) for row in self.server.query(filled)]

    def objects(self) -> list[Sequence[tuple[object, ...]]]:
        return [self.query(sql) for sql in OBJECTS[self.protocol]]

    def dbdyno(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "dbdyno", *words, "--target", url(self.address)],
            capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
            env={**environment(), "DBDYNO_PASSWORD": self.address.password},
        )  # fmt: skip

    def run(self, setup: str, *, load: str = LOAD, cleanup: str = "") -> subprocess.CompletedProcess[str]:
        text = f"-- @parameter id = uniform(1, 3)\n-- @setup\n{setup}"
        text += f"-- @cleanup\n{cleanup}" if cleanup else ""
        file = self.folder / "own.sql"
        file.write_text(text + load)
        short = (
            "--connections",
            "2",
            "--time",
            "500ms",
            "--warmup",
            "0s",
            "--workers",
            "1",
            "--share-machine",
        )
        return self.dbdyno("run", str(file), *short, "--results", str(self.folder / "results"))


PRODUCTS = [
    "mariadb",
    pytest.param("postgresql", marks=pytest.mark.long),
    pytest.param("mysql", marks=pytest.mark.long),
    pytest.param("mariadb lower_case_table_names", marks=pytest.mark.long),
]


@pytest.fixture(params=PRODUCTS)
def user(request: pytest.FixtureRequest, workspace: Workspace, tmp_path: Path) -> Iterator[User]:
    if request.param == "mysql":
        start = request.getfixturevalue("start_mysql")
        yield User(start("users"), tmp_path)
        return
    product, _, more = request.param.partition(" ")
    variables = SMALL if product == "mariadb" else {"shared_buffers": "32MB"}
    spec = ServerSpec(product=product, variables={**variables, **({more: 1} if more else {})})
    with closing(LocalServer(Variant(name="users", server=spec), workspace, None)) as server:
        server.start()
        yield User(server, tmp_path)


@pytest.mark.parametrize("has_cleanup", [True, False], ids=["own cleanup", "default cleanup"])
def test_only_what_the_setup_created_is_gone(user: User, has_cleanup: bool) -> None:
    setup = SETUP[user.protocol]
    if not has_cleanup and user.protocol == "postgresql":
        # Only the arguments tell PostgreSQL's functions apart, so dbdyno drops none.
        setup = "\n".join(line for line in setup.splitlines() if "FUNCTION" not in line) + "\n"
    load = LOAD if has_cleanup or user.protocol == "mysql" else LOAD.replace(", triple(2)", "")
    for _ in range(2):
        answer = user.run(setup, load=load, cleanup=CLEANUP[user.protocol] if has_cleanup else "")
        assert answer.returncode == 0, answer.stderr
        assert user.objects() == user.before


def test_tables_that_views_and_foreign_keys_use_are_listed_and_dropped(user: User) -> None:
    answer = user.run(SETUP[user.protocol], cleanup="SELECT 1;\n")
    assert answer.returncode == 0, answer.stderr
    is_postgresql = user.protocol == "postgresql"
    if is_postgresql:
        # It drops no table that a view uses, and says so.
        answer = user.dbdyno("data", "drop", "--yes", "--share-machine")
        assert answer.returncode == 4
        assert "depend on it" in answer.stderr
        user.query("DROP VIEW both_of")
    listed = user.dbdyno("data", "list").stdout
    assert all(name in listed for name in ("item", "parent")), listed
    assert "mine" not in listed
    answer = user.dbdyno("data", "drop", "--yes", "--share-machine")
    assert answer.returncode == 0, answer.stderr
    others = (
        ("DROP FUNCTION triple", "DROP SEQUENCE counting")
        if is_postgresql
        else ("DROP VIEW dbdyno.both_of", "DROP FUNCTION dbdyno.triple")
    )
    for sql in others:
        user.query(sql)
    assert user.objects() == user.before


def test_the_users_table_is_never_taken_for_one_of_the_setup(user: User) -> None:
    columns = "(id INT PRIMARY KEY, n INT)"
    use = "USE otherdb" if user.protocol == "mysql" else "SET search_path = otherdb"
    outside = {
        "another database": f"CREATE TABLE IF NOT EXISTS otherdb.item {columns};\n",
        "a new table in another database": f"CREATE TABLE otherdb.fresh {columns};\n",
        "another current database": f"{use};\nCREATE TABLE IF NOT EXISTS item {columns};\n",
    }
    for setup in outside.values():
        answer = user.run(setup, load="-- @transaction one\nSELECT n FROM otherdb.item WHERE id = :id;\n")
        assert answer.returncode == 2, answer.stderr
        assert "another database or schema" in answer.stderr
        assert user.objects() == user.before
    # PostgreSQL, and MySQL with lower_case_table_names, take it for `mine`.
    answer = user.run(
        f"CREATE TABLE IF NOT EXISTS Mine {columns};\n",
        load="-- @transaction one\nSELECT COUNT(n) FROM Mine WHERE id <= :id;\n",
    )
    assert "Traceback" not in answer.stderr
    assert user.objects() == user.before
    # Other databases are the user's, and may be read.
    answer = user.run(
        f"CREATE TABLE fresh {columns};\n",
        load="-- @transaction one\nSELECT COUNT(n) FROM otherdb.item WHERE id <= :id;\n",
    )
    assert answer.returncode == 0, answer.stderr
    assert user.objects() == user.before
