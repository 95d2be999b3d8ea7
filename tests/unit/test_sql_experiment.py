"""SQL of the user's own in an experiment: how it is written, what it becomes, and how mistakes are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.schemas import require_valid

from dbdyno.experiment.dialect import MYSQL, POSTGRESQL, Dialect
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.generators import Call, column, parameter, parse
from dbdyno.experiment.model import Experiment, SqlWorkload
from dbdyno.experiment.reading import read
from dbdyno.experiment.schedule import schedule
from dbdyno.experiment.sql_text import (
    annotation_lines,
    count_placeholders,
    created_objects,
    drop_statements,
    parameter_names,
    split_statements,
    table_names,
    tables_without_key,
)
from dbdyno.run.plan import SEQUENCE_DISTANCE, plan, trial_plan

ROOT = Path(__file__).parents[2]
TARGET = {"protocol": "mysql", "endpoints": [{"tcp": {"host": "h", "port": 1}}], "user": "u", "database": "d"}
HEAD = """
[experiment]
name = "own"
[load]
connections = [2]
duration = "1s"
[[variant]]
name = "a"
"""
SHOP = """
-- What comes before a note is nothing.
-- @parameter id = zipfian(1, rows(item) - 1, exponent=0.9)
-- @parameter owner = result(look)
-- @table item rows=1_000
-- @column id = sequence()
-- @column owner = text(5, 20, nulls=0.5)
-- @setup
CREATE TABLE item (id INT PRIMARY KEY, owner VARCHAR(20)); -- the only table
-- @transaction browse weight=9
-- @statement rows=1 repeat=3 draw=id,id
SELECT /*+ MAX_EXECUTION_TIME(1000) */ ';
-- @setup
' FROM item WHERE id = :id;
-- @transaction buy
BEGIN;
-- @statement name=look
SELECT owner FROM item WHERE id = :id;
UPDATE item SET owner = :owner WHERE id = :id;
COMMIT
"""


def write(tmp_path: Path, workload: str, **files: str) -> Path:
    for name, text in files.items():
        (tmp_path / f"{name}.sql").write_text(text)
    path = tmp_path / "own.toml"
    path.write_text(HEAD + workload)
    return path


def own(experiment: Experiment) -> SqlWorkload:
    workload = experiment.workloads[0]
    assert isinstance(workload, SqlWorkload)
    return workload


def errors(path: Path) -> list[str]:
    with pytest.raises(InvalidExperiment) as caught:
        read(path)
    return [str(error) for error in caught.value.errors]


def test_a_file_becomes_a_plan_of_the_schema(tmp_path: Path) -> None:
    path = write(tmp_path, '[[workload]]\nname = "sql"\nfile = "shop.sql"\n', shop=SHOP)
    experiment = read(path)
    asked = plan(experiment, own(experiment), TARGET)
    require_valid(asked, "plan")
    sql = asked["workload"]["sql"]
    assert sql["parameters"]["id"]["integer"] == {
        "low": 1,
        "high": 999,
        "distribution": {"zipfian": {"exponent": 0.9}},
    }
    browse, buy = sql["transactions"]
    assert (browse["name"], browse["weight"], buy["weight"]) == ("browse", 9.0, 1.0)
    assert browse["statements"] == [
        {
            "sql": "SELECT /*+ MAX_EXECUTION_TIME(1000) */ ';\n-- @setup\n' FROM item WHERE id = :id",
            "rows": 1,
            "draw": ["id", "id"],
            "repeat": 3,
        }
    ]
    assert [one["sql"] for one in buy["statements"]][::3] == ["BEGIN", "COMMIT"]
    assert sql["setup"] == ["CREATE TABLE item (id INT PRIMARY KEY, owner VARCHAR(20))"]
    assert sql["cleanup"] == ["DROP TABLE IF EXISTS item"]
    assert list(own(experiment).scans("mysql")) == [
        "SELECT SUM(LENGTH(CAST(`id` AS CHAR))), SUM(LENGTH(CAST(`owner` AS CHAR))) FROM item"
    ]
    assert sql["tables"] == [
        {
            "name": "item",
            "rows": 1000,
            "columns": [
                {"name": "id", "values": {"sequence": {"first": 1, "step": 1}}},
                {"name": "owner", "values": {"text": {"length": {"low": 5, "high": 20}}}, "nulls": 0.5},
            ],
        }
    ]
    assert (
        Experiment.model_validate_json(experiment.model_dump_json()).workloads[0].plan()
        == own(experiment).plan()
    )


def test_what_the_experiment_says_goes_before_the_file(tmp_path: Path) -> None:
    workload = """
[[workload]]
name = "sql"
file = "shop.sql"
tables = { item = { rows = 10 } }
parameters = { owner = ["a", "b"] }
"""
    found = own(read(write(tmp_path, workload, shop=SHOP)))
    assert found.rows == 10
    assert found.generator("id").plan()["integer"]["high"] == 9
    assert found.generator("owner").plan() == {"one_of": {"values": ["a", "b"]}}
    assert "text(5, 20, nulls=0.5)" in found.tables["item"].columns.values()


def test_a_plain_file_is_a_list_of_queries(tmp_path: Path) -> None:
    text = "SELECT 1;\n\nBEGIN; SELECT 2; COMMIT;\nSELECT 'a;b';START TRANSACTION;SELECT 3"
    found = own(read(write(tmp_path, '[[workload]]\nname = "sql"\nfile = "q.sql"\n', q=text)))
    assert [[one.sql for one in transaction.statements] for transaction in found.transactions] == [
        ["SELECT 1"],
        ["BEGIN", "SELECT 2", "COMMIT"],
        ["SELECT 'a;b'"],
        ["START TRANSACTION", "SELECT 3"],
    ]
    assert [one.line for _, _, one in found.named_statements()] == [1, 3, 3, 3, 4, 4, 4]


def test_all_mistakes_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    bad = """-- @parametr id = zipfian(1, 500)
-- @parameter next = sequenz()
-- @setup now
-- @transaction a weigth=9
SELECT 1 FROM item
-- @setup
WHERE id = :id;
DELIMITER //
"""
    workload = """
[[workload]]
name = "sql"
label = "of a file"
file = "bad.sql"
[[workload]]
name = "sql"
label = "inline"
order = "randm"
transactions = ["SELECT 1"]
[[workload]]
name = "sql"
label = "third"
parameters = { low = "uniform(5)", r = "result(x)", c = "csv('no.csv', 'a')" }
transactions = ["SELECT :idd, ?, :r", "SELECT 'a", "SELECT 1; SELECT 2"]
tables = { t = { rows = 5, columns = { id = "uniform(1, rows(u))" } } }
"""
    found = errors(write(tmp_path, workload, bad=bad))
    for part in [
        "bad.sql:1: there is no annotation @parametr. Did you mean parameter?",
        "bad.sql:2: next: there is no generator sequenz. Did you mean sequence?",
        "bad.sql:3: @setup must be alone on its line.",
        "bad.sql:4: there is no setting weigth. Did you mean weight?",
        "bad.sql:6: an annotation is inside a statement.",
        "bad.sql:8: DELIMITER is a command of the mysql client.",
        'workload[inline].order = "randm": there is no such choice.',
        "workload[third].parameters.c = \"csv('no.csv', 'a')\": there is no such file.",
        'workload[third].parameters.low = "uniform(5)": uniform needs high. Write',
        'workload[third].tables.t.columns.id = "uniform(1, rows(u))": rows(u): there is no generated table u',
        "it uses :idd, but there is no such parameter; there are: low, r, c.",
        "it has a ? for a parameter.",
        "it uses a result of x, but no earlier statement has this name.",
        '"SELECT \'a": a quoted text or a comment that begins here has no end.',
        "it has 2 statements.",
    ]:
        assert sum(part in error for error in found) == 1, (part, found)


def test_a_wrong_column_alone_is_an_error_of_the_file(tmp_path: Path) -> None:
    workload = """
[[workload]]
name = "sql"
transactions = ["SELECT 1"]
tables = { t = { rows = 5, columns = { id = "sequence(" } } }
"""
    found = errors(write(tmp_path, workload))
    assert len(found) == 1, found
    assert "a generator is a name and its arguments" in found[0]


def test_a_replay_takes_the_place_of_transactions(tmp_path: Path) -> None:
    (tmp_path / "general.log").write_text("")
    replay = 'replay = { file = "general.log", format = "general-log", database = "shop" }\n'
    experiment = read(write(tmp_path, f'[[workload]]\nname = "sql"\norder = "in-order"\n{replay}'))
    asked = plan(experiment, own(experiment), TARGET)
    require_valid(asked, "plan")
    assert asked["workload"]["sql"]["replay"] == {
        "file": str(tmp_path / "general.log"),
        "format": "general-log",
        "database": "shop",
    }
    for wrong, told in [
        ("", "workload[sql]: it has no transactions."),
        (replay + 'transactions = ["SELECT 1"]', "workload[sql]: it has both transactions and a replay."),
        (
            replay.replace("general.log", "no.log"),
            'workload[sql].replay.file = "no.log": there is no such file.',
        ),
        (replay.replace('"general-log"', '"generallog"'), "Did you mean general-log?"),
    ]:
        (found,) = errors(write(tmp_path, f'[[workload]]\nname = "sql"\n{wrong}'))
        assert told in found


def test_a_prewarm_that_knows_nothing_to_read_is_told(tmp_path: Path) -> None:
    workload = '[[workload]]\nname = "sql"\ntransactions = ["SELECT 1"]\n'
    path = write(tmp_path, workload)
    path.write_text(path.read_text().replace("[load]", '[load]\nprewarm = "scan"'))
    assert errors(path) == [
        'load.prewarm = "scan": sql has no generated tables, so dbdyno does not know '
        "what to read. Give workload[sql].prewarm, a list of statements that read its data."
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("5", "a generator is a name and its arguments"),
        ("uniform(1,", "a generator is a name and its arguments"),
        ("__import__('os').system('x')", "is not an argument"),
        ("uniform(1, open('x'))", "high = Call("),
        ("uniform(1, 2, 'w', 3)", "uniform has at most 3 arguments: uniform(low, high, other_than=none)"),
        ("uniform(1, 2, low=3)", "low occurs twice"),
        ("uniform(2, 1)", "write the lower value first"),
        ("uniform(1, 'a')", "high = 'a' is invalid"),
        (
            "zipfian(1, 2, exponant=1)",
            "zipfian has no exponant. Write zipfian(low, high, exponent=0.8, scattered=false)",
        ),
        ("one_of()", "one_of"),
        ("one_of(1, 2, weights=[1])", "it has values: 2, and weights: 1; each value needs one"),
        ("sequence(5, 1)", "it goes from 5 to 1"),
        ("uniform(1, 2 ** 9)", "is not an argument"),
        ("uniform(**x)", "is not an argument"),
    ],
)
def test_a_wrong_generator_is_told_with_the_right_form(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parameter(text, {})
    assert told in str(caught.value)


def test_arguments_are_read_as_written() -> None:
    text = "f(1_000, -2.5, 'a', null, true, [1, 'b'], word, x=rows(t) * 2 - 1)"
    assert parse(text, {"t": 10}) == Call("f", (1000, -2.5, "a", None, True, [1, "b"], "word"), {"x": 19})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "zipfian(1, rows(t), exponent=0.99, scattered=true)",
            {
                "integer": {
                    "low": 1,
                    "high": 10,
                    "distribution": {"zipfian": {"exponent": 0.99, "scattered": True}},
                }
            },
        ),
        ("zipfian(1, 2)", {"integer": {"low": 1, "high": 2, "distribution": {"zipfian": {"exponent": 0.8}}}}),
        (
            "latest(fresh, 1, rows(t))",
            {
                "latest": {
                    "sequence": "fresh",
                    "low": 1,
                    "high": 10,
                    "distribution": {"zipfian": {"exponent": 0.8}},
                }
            },
        ),
        ("text(2, 5)", {"text": {"length": {"low": 2, "high": 5}}}),
    ],
)
def test_parameters_become_the_plans(text: str, values: dict[str, Any]) -> None:
    assert parameter(text, {"t": 10}).plan() == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "decimal(0, 500, scale=1)",
            {"decimal": {"low": 0.0, "high": 500.0, "scale": 1, "distribution": "uniform"}},
        ),
        (
            "foreign_key('item', 'id', distribution=zipfian(exponent=1.1))",
            {
                "foreign_key": {
                    "table": "item",
                    "column": "id",
                    "distribution": {"zipfian": {"exponent": 1.1}},
                }
            },
        ),
        (
            "timestamp('2024-01-01 00:00:00', '2024-02-01 00:00:00', order='rising')",
            {
                "timestamp": {
                    "from": "2024-01-01 00:00:00",
                    "to": "2024-02-01 00:00:00",
                    "digits": 0,
                    "order": "rising",
                    "distribution": "uniform",
                }
            },
        ),
        ("text(3, alphabet='ab')", {"text": {"length": 3, "alphabet": "ab"}}),
        ("constant(null)", {"constant": {"value": None}}),
    ],
)
def test_columns_become_the_plans(text: str, values: dict[str, Any]) -> None:
    assert column("c", text, {}) == {"name": "c", "values": values}


def test_quotes_and_comments_are_left_alone() -> None:
    sql = "SELECT ':a', `:b`, x::int, :c, y:=1, a[1:2], '\\':d' /* :e */ -- :f\n, :c, :from # :g"
    assert parameter_names(sql, MYSQL) == ["c", "from"]
    assert parameter_names("SELECT $$ :a $$, '\\', :b", POSTGRESQL) == ["b"]
    assert (
        count_placeholders("SELECT '?', ?, `?` -- ?", MYSQL),
        count_placeholders("SELECT 1", MYSQL),
    ) == (1, 0)
    assert annotation_lines("/*\n-- @setup\n*/ SELECT '\n-- @after\n'\n-- @cleanup\n;", MYSQL) == [
        (6, "cleanup")
    ]
    assert [piece.sql for piece in split_statements(";; SELECT 1 ; ; -- x\n SELECT 2 -- y", MYSQL)] == [
        "SELECT 1",
        "SELECT 2",
    ]


@pytest.mark.parametrize(
    ("dialect", "sql", "created"),
    [
        (
            MYSQL,
            "CREATE TABLE `A b`.`t``x` (i INT) PARTITION BY HASH (i) PARTITIONS 3",
            ("TABLE", "A b", "t`x", True),
        ),
        (MYSQL, "CREATE OR REPLACE DEFINER=`a`@`b` VIEW V AS SELECT 1", ("VIEW", "", "V", False)),
        (
            MYSQL,
            "CREATE DEFINER = 'a'@'b' FUNCTION f(x INT) RETURNS INT RETURN 1",
            ("FUNCTION", "", "f", True),
        ),
        (MYSQL, "/* c */ CREATE /* d */ TABLE IF NOT EXISTS -- x\n t LIKE u", ("TABLE", "", "t", False)),
        (MYSQL, "CREATE TRIGGER k BEFORE INSERT ON t FOR EACH ROW SET NEW.x = 1", None),
        (MYSQL, "CREATE TEMPORARY TABLE x (i INT)", None),
        (MYSQL, "CREATE TABLE", None),
        (
            POSTGRESQL,
            'CREATE UNLOGGED TABLE "S".Item (a INT) PARTITION BY RANGE (a)',
            ("TABLE", "S", "item", True),
        ),
        (POSTGRESQL, "CREATE TABLE p PARTITION OF item FOR VALUES FROM (1) TO (2)", ("TABLE", "", "p", True)),
        (POSTGRESQL, "SELECT 1 AS a INTO UNLOGGED Neu FROM (SELECT 1) x", ("TABLE", "", "neu", True)),
        (POSTGRESQL, "SELECT 1 AS a INTO TEMP neu", None),
        (POSTGRESQL, "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", None),
        (POSTGRESQL, "CREATE MATERIALIZED VIEW v AS SELECT 1", ("MATERIALIZED VIEW", "", "v", True)),
        (POSTGRESQL, "CREATE INDEX k ON t (i)", None),
    ],
)
def test_what_a_statement_creates(
    dialect: Dialect, sql: str, created: tuple[str, str, str, bool] | None
) -> None:
    found = [(one.kind, one.place, one.name, one.must_be_new) for one in created_objects([sql], dialect)]
    assert found == ([created] if created else [])


def test_only_what_must_be_new_is_dropped_and_what_uses_it_first() -> None:
    setup = ["CREATE SEQUENCE s", "CREATE TABLE IF NOT EXISTS t (i INT)", "CREATE TABLE u (i INT)"]
    setup += [
        "CREATE VIEW v AS SELECT 1",
        "CREATE OR REPLACE VIEW w AS SELECT 1",
        "CREATE FUNCTION f() RETURNS INT RETURN 1",
    ]
    drops = [
        "DROP VIEW IF EXISTS v",
        "DROP TABLE IF EXISTS u",
        "DROP TABLE IF EXISTS t",
        "DROP SEQUENCE IF EXISTS s",
    ]
    assert drop_statements(created_objects(setup, POSTGRESQL), POSTGRESQL) == drops
    drops.insert(1, "DROP FUNCTION IF EXISTS f")
    assert drop_statements(created_objects(setup, MYSQL), MYSQL) == drops


@pytest.mark.parametrize(
    ("sql", "lacks_key"),
    [
        ("CREATE TABLE t (i INT)", True),
        ("CREATE TABLE t (`primary key` INT, note TEXT DEFAULT 'PRIMARY KEY')", True),
        ("CREATE TABLE t (i INT CHECK (i LIKE '1%'), UNIQUE (i))", True),
        ("CREATE TABLE t AS SELECT 1", True),
        ("CREATE TABLE IF NOT EXISTS t (i INT PRIMARY  KEY)", False),
        ("create table t (i int, constraint c primary key (i))", False),
        ("CREATE TABLE t LIKE u", False),
        ("CREATE TABLE t (LIKE u)", False),
        ("CREATE VIEW t AS SELECT 1", False),
    ],
)
def test_tables_without_a_primary_key(sql: str, *, lacks_key: bool) -> None:
    assert tables_without_key([sql], MYSQL) == (["t"] if lacks_key else [])


def test_tables_are_named_once() -> None:
    texts = [
        "CREATE TABLE IF NOT EXISTS a.t (i INT)",
        "CREATE TEMPORARY TABLE x (i INT)",
        "CREATE INDEX k ON t (i)",
    ]
    assert [one.written for one in created_objects(texts, MYSQL)] == ["a.t"]
    assert table_names(["WITH c AS (SELECT * FROM t) SELECT * FROM c JOIN u USING (i), t"], MYSQL) == [
        "u",
        "t",
    ]


@pytest.mark.parametrize(("state", "rooms"), [("restore", [0, 1, 0, 1]), ("preserve", [0, 1, 2, 3])])
def test_trials_on_the_same_data_have_sequences_of_their_own(
    tmp_path: Path, state: str, rooms: list[int]
) -> None:
    """Two loads in a group, two blocks: what the first trial inserted is there when the second begins."""
    text = SHOP.replace(
        "-- @table", "-- @parameter fresh = sequence(7)\n-- @parameter wheel = sequence(1, 9)\n-- @table"
    )
    path = write(tmp_path, '[[workload]]\nname = "sql"\nfile = "shop.sql"\n', shop=text)
    path.write_text(
        path.read_text().replace("connections = [2]", "connections = [2, 4]")
        + f'[design]\nblocks = 2\nstate = "{state}"\n'
    )
    experiment = read(path)
    firsts = []
    for trial in schedule(experiment):
        asked = trial_plan(experiment, trial, TARGET)["workload"]["sql"]["parameters"]
        firsts.append(asked["fresh"]["sequence"]["first"])
        assert asked["wheel"]["sequence"] == {"first": 1, "last": 9}
    assert firsts == [7 + room * SEQUENCE_DISTANCE for room in rooms]
