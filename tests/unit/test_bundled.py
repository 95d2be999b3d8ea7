"""The bundled workloads that are SQL files: how they are named, sized, shared and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.schemas import require_valid
from tests.unit.test_sql_experiment import HEAD, TARGET, errors, own, write

from dbdyno.commands.workloads import workloads
from dbdyno.experiment import bundled
from dbdyno.experiment.model import Experiment, SqlWorkload
from dbdyno.experiment.oltp_name import DESCRIPTIONS
from dbdyno.experiment.reading import read, read_bytes
from dbdyno.problem import Problem
from dbdyno.run.plan import plan

ROOT = Path(__file__).parents[2]
BOTH = HEAD + '[[variant]]\nname = "b"\nserver = { product = "postgresql" }\n'


def experiment(workload: str, profile: str | None = None, *assignments: str) -> Experiment:
    text = f"{BOTH}[[workload]]\n{workload}\n"
    return read_bytes(text.encode(), Path("own.toml"), profile, assignments)


def sql_workloads(given: Experiment) -> list[SqlWorkload]:
    return [one for one in given.workloads if isinstance(one, SqlWorkload)]


@pytest.mark.parametrize("name", bundled.names())
def test_a_workload_is_valid_for_both_protocols(name: str) -> None:
    """What the engine gets is by its schema, one sentence says what it does, and each row count is stated."""
    (workload,) = sql_workloads(experiment(f'name = "{name}"'))
    assert workload.title == name
    for protocol in ("mysql", "postgresql"):
        asked = plan(experiment(f'name = "{name}"'), workload, {**TARGET, "protocol": protocol})
        require_valid(asked, "plan")
    assert bundled.description(name).endswith(".")
    assert bundled.description(name).count(". ") == 0
    for _, _, statement in workload.named_statements():
        # In tpcc an order has 5 to 15 lines, and a delivery may find no order.
        is_open = name == "tpcc" and ("order_line" in statement.sql or ":line" in statement.sql)
        if statement.sql.upper() not in ("BEGIN", "COMMIT", "ROLLBACK") and not is_open:
            assert statement.rows is not None or statement.rows_parameter, statement.sql


@pytest.mark.parametrize("name", bundled.names())
def test_what_is_shown_is_a_file_that_does_the_same(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workloads(name)
    (tmp_path / "mine.sql").write_text(capsys.readouterr().out)
    path = tmp_path / "own.toml"
    path.write_text(BOTH + f'[[workload]]\nname = "sql"\nfile = "mine.sql"\nlabel = "{name}"\n')
    shown = own(read(path))
    (workload,) = sql_workloads(experiment(f'name = "{name}"'))
    assert shown.data() == workload.data()
    assert shown.plan() == workload.plan()


def test_a_pattern_and_a_list_select_workloads_that_share_their_data() -> None:
    micro = [name for name in bundled.names() if name.startswith("micro/")]
    given = experiment('name = "micro/*"\nrows = 20_000')
    assert [one.title for one in given.workloads] == micro
    assert len({json.dumps(one.data()) for one in given.workloads}) == 1
    assert {one.rows for one in given.workloads} == {20_000}
    given = experiment('name = ["oltp_read_only", "micro/point-*", "micro/point-query", "micro/delete"]')
    titles = [one.title for one in given.workloads]
    assert titles == ["oltp_read_only", "micro/point-query", "micro/delete"]


def test_profiles_and_assignments_choose_workloads_before_they_change_them() -> None:
    text = (
        'name = "micro/*"\n[profile.small]\n"workload.rows" = 5_000\n"workload[micro/point-*].rows" = 2_000\n'
        '"workload[micro/delete]".label = "gone"\n"workload.name" = ["micro/delete", "micro/point-query"]'
    )
    small = experiment(text, "small")
    assert [(one.title, one.rows) for one in small.workloads] == [
        ("gone", 5_000),
        ("micro/point-query", 2_000),
    ]
    (one,) = experiment(text, None, "workload.name=micro/point-query", "workload.rows=7").workloads
    assert (one.title, one.rows) == ("micro/point-query", 7)


def test_a_variant_may_have_another_size() -> None:
    text = BOTH + '[variant.workload]\nrows = 3_000\n[[workload]]\nname = "micro/delete"\n'
    given = read_bytes(text.encode(), Path("own.toml"))
    assert [given.workload_for(one, "micro/delete").rows for one in given.variants] == [1_000_000, 3_000]


@pytest.mark.parametrize(
    ("workload", "problem"),
    [
        ('name = "micro/poi-query"', "there is no such workload. Did you mean micro/point-query?"),
        ('name = "micro/x*"', 'workload[micro/x*].name = "micro/x*": no bundled workload has such a name.'),
        (
            'name = "micro/point-query"\nrowz = 5',
            "workload[micro/point-query].rowz = 5: there is no such key. Did you mean rows?",
        ),
        (
            'name = "micro/point-query"\nrows = 0',
            "workload[micro/point-query].rows = 0: this must be a whole number, at least 1.",
        ),
        (
            'name = "micro/point-query"\nrows = "many"',
            'workload[micro/point-query].rows = "many": this must be a whole number, at least 1.',
        ),
        ('name = "micro/point-query"\nfile = "a.sql"', "a bundled workload has no such key."),
        ('name = "micro/*"\nlabel = "one"', "several workloads share it."),
        (
            'name = "micro/random-points-100"\nrows = 50',
            "its range has fewer than 100 values, so they cannot be distinct.",
        ),
    ],
)
def test_a_mistake_is_one_error(tmp_path: Path, workload: str, problem: str) -> None:
    (error,) = errors(write(tmp_path, f"[[workload]]\n{workload}\n"))
    assert problem in error


def test_a_file_of_ones_own_has_options_parts_and_statements_for_one_protocol(tmp_path: Path) -> None:
    text = """
-- @include part
-- @parameter id = uniform(1, 2 * size)
-- @parameter ids = list(3, uniform(1, rows(t)), pick='distinct')
-- @parameter next = sequence(1, rows(t), order='random')
-- @transaction look weight=size
-- @statement rows=size repeat="2 * size" access=primary
SELECT id, '{size} {other}' FROM t WHERE id = :id LIMIT {size + 1};
-- @statement draw=ids,next
SELECT ':ids' FROM t WHERE id IN (:ids) OR id = :next;
-- @only mysql
-- @statement rows=7
SELECT SLEEP(0);
-- @only postgresql
SELECT pg_sleep(0);
"""
    part = "-- @option size = 4 Rows\n-- @table t rows=size\n-- @column id = sequence(1, 3, last=size)\n"
    part += "-- @setup\nCREATE TABLE t (id INT);\n"
    path = write(tmp_path, '[[workload]]\nname = "sql"\nfile = "own.sql"\noptions = { size = 6 }\n', own=text)
    (tmp_path / "part").write_text(part)
    workload = own(read(path))
    assert workload.rows == 6
    (transaction,) = workload.transactions
    assert transaction.weight == 6
    look, listed, asleep = transaction.statements
    assert (look.rows, look.repeat, look.access) == (6, 12, "primary")
    assert look.sql == "SELECT id, '6 {other}' FROM t WHERE id = :id LIMIT 7"
    assert (asleep.sql, asleep.rows) == ("SELECT SLEEP(0)", 7)
    asked = workload.plan()["sql"]
    assert asked["parameters"]["id"]["integer"]["high"] == 12
    ranges = [asked["parameters"][f"ids_{number}"]["integer"] for number in (1, 2, 3)]
    assert [(one["low"], one["high"]) for one in ranges] == [(1, 2), (3, 4), (5, 6)]
    assert asked["parameters"]["next"] == {"sequence": {"first": 1, "last": 6, "order": "random"}}
    sent = asked["transactions"][0]["statements"][1]
    assert sent["sql"] == "SELECT ':ids' FROM t WHERE id IN (:ids_1, :ids_2, :ids_3) OR id = :next"
    assert sent["draw"] == ["ids_1", "ids_2", "ids_3", "next"]
    assert listed.sql == "SELECT ':ids' FROM t WHERE id IN (:ids) OR id = :next"
    assert asked["tables"][0]["columns"][0]["values"] == {"sequence": {"first": 1, "step": 3, "last": 6}}
    # Each variant sends the statements of its own protocol.
    path.write_text(path.read_text() + '[[variant]]\nname = "b"\nserver.product = "postgresql"\n')
    given = read(path)
    last = []
    for one in given.variants:
        resolved = given.workload_for(one, "sql")
        assert isinstance(resolved, SqlWorkload)
        last.append(resolved.transactions[0].statements[-1].sql)
    assert last == ["SELECT SLEEP(0)", "SELECT pg_sleep(0)"]
    assert len(json.loads(given.model_dump_json())["variants"][0]["workloads"]) == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("-- @option Size = 4\nSELECT 1;", "own.sql:1: expected NAME = NUMBER DESCRIPTION."),
        ("-- @include nothing.sql\nSELECT 1;", "own.sql:1: nothing.sql cannot be read"),
        ("-- @only oracle\nSELECT 1;\nSELECT 2;", "own.sql:1: there is no dialect oracle."),
        ("-- @statement access=\nSELECT 1;", "own.sql:1"),
        ("-- @parameter a = sequence(order='random')\nSELECT :a;", "needs a last number"),
        (
            "-- @parameter a = list(2, zipfian(1, 9), pick='distinct')\nSELECT :a;",
            "is for uniform(low, high)",
        ),
        ("-- @parameter a = list(0, uniform(1, 9))\nSELECT :a;", "own.sql:1: a: count = 0 is invalid"),
        ("-- @parameter a = list(2, 5)\nSELECT :a;", "own.sql:1: a: values = 5 is invalid"),
        ("SELECT 1;", "options.size = 6: the file has no such option"),
    ],
)
def test_a_mistake_in_a_file_names_its_line(tmp_path: Path, text: str, problem: str) -> None:
    options = "options = { size = 6 }\n" if "options" in problem else ""
    if "access" in text:
        text = text.replace("access=", "access=two,words\n-- @transaction a\n-- @statement access=a,b")
        problem = "access"
    path = write(tmp_path, f'[[workload]]\nname = "sql"\nfile = "own.sql"\n{options}', own=text)
    assert any(problem in error for error in errors(path)), errors(path)


def test_a_value_of_a_list_may_not_have_the_name_of_a_parameter(tmp_path: Path) -> None:
    text = "-- @parameter a = list(2, uniform(1, 9))\n-- @parameter a_2 = sequence()\nSELECT :a, :a_2;"
    path = write(tmp_path, '[[workload]]\nname = "sql"\nfile = "own.sql"\n', own=text)
    assert errors(path) == [
        "workload[sql].parameters.a_2: a value of the list a has this name. Rename the parameter."
    ]


def test_all_workloads_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    workloads()
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [*DESCRIPTIONS, *bundled.names()]
    assert all(line.endswith(".") for line in lines)
    workloads(output_format="json")
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert listed["micro/delete"]["options"]["rows"]["default"] == 1_000_000
    assert listed["oltp_read_only"]["options"]["table_size"]["default"] == 10_000
    workloads("oltp_read_only")
    shown = capsys.readouterr().out
    assert "table_size = 10000\n" in shown
    read_bytes(f"{BOTH}{shown}".encode(), Path("own.toml"))
    with pytest.raises(Problem, match="there is no bundled workload 'micro/scam'"):
        workloads("micro/scam")
