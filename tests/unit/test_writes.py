"""P28: which statements write to tables that dbdyno has not created, and how changes of them are undone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.commands.option_document import make_document
from dbdyno.experiment.dialect import MYSQL, POSTGRESQL, Dialect
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.reading import from_document
from dbdyno.experiment.sql_text import created_index, written_tables
from dbdyno.finding import Finding
from dbdyno.run.plan import plan

BOTH = (MYSQL, POSTGRESQL)
URL = "mysql://bench@127.0.0.1:3306/shop"

# Statement, dialects, and the tables that it writes to: None for none, [] if its text does not tell them.
STATEMENTS: Sequence[tuple[str, Sequence[Dialect], list[str] | None]] = [
    ("SELECT c FROM t WHERE a = 'INSERT INTO t'", BOTH, None),
    ("SELECT c FROM t WHERE a = 'INTO' FOR UPDATE", BOTH, None),
    ("SELECT REPLACE(a, 'x', 'y'), INSERT(b, 1, 2, 'z') FROM t", [MYSQL], None),
    ("SELECT a INTO @b FROM t", [MYSQL], None),
    ("SELECT a INTO copied FROM t", [POSTGRESQL], ["copied"]),
    ("WITH d AS (SELECT 1) SELECT * FROM d", BOTH, None),
    ("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", [POSTGRESQL], ["t"]),
    ("INSERT INTO shop.t (a) SELECT a FROM u", BOTH, ["shop.t"]),
    ("INSERT INTO t VALUES (:a) ON DUPLICATE KEY UPDATE a = :a", [MYSQL], ["t"]),
    ("UPDATE `or der` SET a = ?", [MYSQL], ["or der"]),
    ("DELETE t FROM t JOIN u ON t.id = u.id", [MYSQL], ["t"]),
    ("REPLACE INTO t VALUES (1)", [MYSQL], ["t"]),
    ("LOAD DATA INFILE 'x' INTO TABLE db.t", [MYSQL], ["db.t"]),
    ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE", [POSTGRESQL], ["t"]),
    ("TRUNCATE TABLE t", BOTH, ["t"]),
    ("DROP TABLE a, b", BOTH, ["a", "b"]),
    ("CREATE INDEX i ON orders (customer, day)", BOTH, ["orders"]),
    ("ALTER TABLE x ADD INDEX i (a)", [MYSQL], ["x"]),
    ("CALL p()", BOTH, []),
    ("LOCK TABLES t WRITE", [MYSQL], []),
    ("BEGIN", BOTH, None),
    ("SET a = 1", BOTH, None),
]


@pytest.mark.parametrize(("sql", "dialects", "tables"), STATEMENTS)
def test_the_tables_that_a_statement_writes_to(
    sql: str, dialects: Sequence[Dialect], tables: list[str] | None
) -> None:
    for dialect in dialects:
        assert written_tables(sql, dialect) == tables, dialect.sqlglot


INDEXES = [
    ("CREATE INDEX i ON orders (a, b)", MYSQL, "DROP INDEX i ON orders"),
    ("CREATE UNIQUE INDEX `i x` ON shop.orders (a)", MYSQL, "DROP INDEX `i x` ON shop.orders"),
    ("ALTER TABLE orders ADD INDEX i (a, b)", MYSQL, "DROP INDEX i ON orders"),
    ("ALTER TABLE orders ADD UNIQUE KEY i (a)", MYSQL, "DROP INDEX i ON orders"),
    ("ALTER TABLE orders ADD INDEX i (a), DROP COLUMN b", MYSQL, None),
    ("ALTER TABLE orders ADD COLUMN i INT", MYSQL, None),
    ("CREATE INDEX IF NOT EXISTS i ON orders (a)", MYSQL, None),
    ("CREATE INDEX i ON orders (a)", POSTGRESQL, "DROP INDEX i"),
    ("CREATE INDEX CONCURRENTLY i ON ONLY sales.orders (a)", POSTGRESQL, "DROP INDEX sales.i"),
    ("CREATE INDEX ON orders (a)", POSTGRESQL, None),
    ("ANALYZE orders", POSTGRESQL, None),
]


@pytest.mark.parametrize(("sql", "dialect", "drop"), INDEXES)
def test_what_undoes_an_index(sql: str, dialect: Dialect, drop: str | None) -> None:
    index = created_index(sql, dialect)
    assert (index.drop if index else None) == drop


def experiment(*statements: str, load: dict[str, Any] | None = None, **parts: Any) -> Experiment:
    document = {
        "experiment": {"name": "x"},
        "workload": [
            {"name": "sql", "label": "shop", "transactions": list(statements), **parts.get("workload", {})}
        ],
        "load": {"connections": [2], "duration": "10s", "warmup": "0s", **(load or {})},
        "design": {"blocks": 1, "state": "preserve"},
        "variant": [{"name": "a", "server": parts.get("server", {"kind": "remote", "url": URL})}],
    }
    return from_document(document, "x", Path())


def findings(given: Experiment) -> list[Finding]:
    return checks.run(Moment.DESIGN, Context(given), ["P28"])


def test_writes_are_refused_before_anything_is_written() -> None:
    buy = "INSERT INTO orders VALUES (1)"
    (stop,) = findings(experiment("SELECT 1 FROM orders", buy, load={"connections": [2], "rate": [100]}))
    assert (stop.level, stop.subject) == ("stop", "a")
    # Half of the transactions, in ten seconds.
    assert "orders (transaction2.1). In 10 s of load about 500 of these run" in stop.text
    (per_rate,) = findings(experiment(buy))
    assert "In 10 s of load about 1,000 of these run for every 100 transactions/s" in per_rate.text
    (note,) = findings(experiment(buy, load={"writes": "replay"}))
    assert (note.level, note.fix) == ("note", "")


def test_what_is_not_refused() -> None:
    assert findings(experiment("SELECT 1 FROM orders FOR UPDATE")) == []
    assert findings(experiment("INSERT INTO orders VALUES (1)", server={"product": "mariadb"})) == []
    own = {"setup": ["CREATE TABLE orders (id INT)"]}
    assert findings(experiment("INSERT INTO Orders VALUES (1)", workload=own)) == []
    (stop,) = findings(experiment("INSERT INTO stock VALUES (1)", workload=own))
    assert "that dbdyno has not created: stock (transaction1.1). In" in stop.text
    fills = {"setup": ["CREATE TABLE orders (id INT)", "INSERT INTO log VALUES (1)"]}
    assert "log (setup)" in findings(experiment("SELECT 1", workload=fills))[0].text


def test_the_writes_of_a_log_are_counted_or_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log.sql"
    log.write_text("SELECT 1 FROM t;" + "INSERT INTO t VALUES (1);" * 3 + "CALL p(2);")
    replay = {"transactions": [], "replay": {"file": str(log), "format": "queries"}}
    (stop,) = findings(experiment(workload=replay))
    assert "t (INSERT), unknown tables (CALL)" in stop.text
    assert "Each pass through the log executes 4 such statements" in stop.text
    assert "--writes skip" in stop.fix
    skipping = experiment(workload=replay, load={"writes": "skip"})
    assert findings(skipping) == []
    target = {"protocol": "mysql", "endpoints": [], "user": "u", "database": "d"}
    assert plan(skipping, skipping.workloads[0], target)["workload"]["sql"]["replay"]["skip_writes"] is True
    with pytest.raises(
        InvalidExperiment, match="only statements of a recorded log can be left out, and shop"
    ):
        experiment("DELETE FROM t", load={"writes": "skip"})


def test_a_change_that_cannot_be_undone_is_refused() -> None:
    document = make_document(
        {"target": URL, "a": "", "b": ["after='CREATE INDEX i ON orders (customer, day)',max_connections=9"]},
        [], Path(), "dbdyno compare",
    )  # fmt: skip
    unchanged, changed = document["variant"]
    assert unchanged == {"name": "unchanged", "server": {"kind": "remote", "url": URL}}
    assert changed["data"] == {"after": ["CREATE INDEX i ON orders (customer, day)"]}
    assert changed["server"] == {
        "kind": "remote", "url": URL, "variables": {"max_connections": 9}, "set_global": True
    }  # fmt: skip

    def changing(data: dict[str, Any]) -> None:
        text = {
            "experiment": {"name": "x"},
            "workload": [{"name": "sql", "transactions": ["SELECT 1 FROM orders"]}],
            "load": {"connections": [2], "duration": "1s"},
            "design": {"state": "preserve"},
            "variant": [
                {"name": "a", "server": {"kind": "remote", "url": URL}},
                {"name": "b", "server": {"kind": "remote", "url": URL}, "data": data},
            ],
        }
        from_document(text, "x", Path())

    changing({"after": ["CREATE INDEX i ON orders (a)"]})
    changing({"after": ["ALTER TABLE orders ADD c INT"], "undo": ["ALTER TABLE orders DROP c"]})
    with pytest.raises(
        InvalidExperiment, match=r"does not know how to undo 'ALTER TABLE orders ADD c INT' of 'b'"
    ):
        changing({"after": ["CREATE INDEX i ON orders (a)", "ALTER TABLE orders ADD c INT"]})
    with pytest.raises(InvalidExperiment, match="no effect without after"):
        changing({"undo": ["SELECT 1"]})
