"""What the engine says of a workload, as the lab reads it; and the limits that the lab has a copy of."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from tests.schemas import require_valid

from dbdyno import checks
from dbdyno.binary import COMPAT, ENGINE, find_program
from dbdyno.checks import Context, Moment
from dbdyno.experiment.base import LIMITS
from dbdyno.experiment.model import Experiment, Load, OltpWorkload, SqlWorkload, Variant, Workload
from dbdyno.experiment.variant import SessionSettings
from dbdyno.problem import Problem
from dbdyno.run.description import Column, Index, describe
from dbdyno.run.plan import plan

TARGET = {"protocol": "mysql", "endpoints": [{"unix": {"path": "/"}}], "user": "u", "database": "d"}


def experiment(workload: Workload) -> Experiment:
    load = Load(connections=(3,), duration_s=1.0)
    return Experiment(name="it", workloads=(workload,), load=load, variants=(Variant(name="a"),))


def printed(program: str, asked: Any) -> subprocess.CompletedProcess[str]:
    """The program gets no password and an address where nothing listens: it must use neither."""
    asked["target"] |= {"password": {"env": "NOT_SET"}}
    return subprocess.run(
        [find_program(program), "describe"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        # Nine kinds over tables, and BEGIN and COMMIT.
        (OltpWorkload(name="oltp_read_write", tables=5), 47),
        (OltpWorkload(name="oltp_read_write", tables=10), 92),
        (OltpWorkload(name="oltp_write_only", tables=10), 42),
        (OltpWorkload(name="oltp_read_only", tables=10, skip_trx=True), 50),
        (OltpWorkload(name="oltp_read_only", tables=10, range_selects=False), 12),
        (OltpWorkload(name="oltp_point_select", tables=32), 32),
        (OltpWorkload(name="oltp_insert", tables=32), 0),
        (OltpWorkload(name="bulk_insert"), 0),
        (OltpWorkload(name="select_random_points", tables=7), 1),
        (OltpWorkload(name="oltp_point_select", tables=32, statements="text"), 0),
        (OltpWorkload(name="oltp_read_write", tables=1, delete_inserts=0, index_updates=0), 8),
        (OltpWorkload(name="oltp_read_only", tables=3, point_selects=0, sum_ranges=0), 11),
    ],
)
def test_prepared_statements_of_a_connection(workload: OltpWorkload, expected: int) -> None:
    assert describe(experiment(workload), workload, "mysql").prepared_per_connection == expected


def test_tables_have_the_shape_that_the_options_ask_for() -> None:
    workload = OltpWorkload(name="oltp_read_only", tables=2, table_size=2**31, secondary=True)
    (group,) = describe(experiment(workload), workload, "mysql").tables
    assert (group.names, group.engine, group.rows) == (("sbtest1", "sbtest2"), "innodb", 2**31)
    assert group.columns[:3] == (
        Column("id", "bigint", auto_increment=True),
        Column("k", "bigint"),
        Column("c", "char", 120),
    )
    assert group.indexes == (Index(("id",), primary=False), Index(("k",), primary=False))
    bulk = experiment(OltpWorkload(name="bulk_insert"))
    (group,) = describe(bulk, bulk.workloads[0], "postgresql").tables
    assert (len(group.names), group.engine, len(group.columns), group.rows) == (3, None, 2, 0)


def test_parameters_are_found_in_the_users_own_sql() -> None:
    sql = "SELECT '\u00e9:no' FROM t WHERE a=:id AND b=:id"
    workload = SqlWorkload.model_validate(
        {
            "name": "sql",
            "parameters": {"id": "uniform(1, 9)"},
            "transactions": ({"statements": ({"sql": sql, "rows": 1},)},),
        }
    )
    (statement,) = describe(experiment(workload), workload, "mysql").statements
    assert (statement.kind, statement.prepared, statement.rows) == ("transaction1.1", True, 1)
    assert [sql[one.at : one.at + 3] for one in statement.parameters] == [":id", ":id"]


def test_every_error_of_the_plan_comes_at_once() -> None:
    workload = SqlWorkload.model_validate(
        {"name": "sql", "transactions": ({"statements": ({"sql": "DO :a"}, {"sql": "DO :b"})},)}
    )
    with pytest.raises(Problem) as caught:
        describe(experiment(workload), workload, "mysql")
    assert "uses :a" in caught.value.text
    assert "uses :b" in caught.value.text


def test_the_session_of_a_variant_is_part_of_the_plan_before_a_server_runs() -> None:
    # A value that the type refuses, so that the engine is the one to report it.
    blank = SessionSettings().model_copy(update={"sql": (" ",)})
    variant = Variant(name="b").model_copy(update={"session": blank})
    asked = experiment(OltpWorkload(name="oltp_point_select")).model_copy(update={"variants": (variant,)})
    with pytest.raises(Problem, match="session contains an empty statement"):
        list(checks.run(Moment.DESIGN, Context(asked), ["P07"]))


def test_both_programs_print_what_the_schema_says() -> None:
    oltp = OltpWorkload(name="oltp_read_write", tables=2)
    script = {"name": "lua", "script": {"path": "/nowhere/it.lua"}}
    native = plan(experiment(oltp), oltp, TARGET)
    described = []
    for program, asked, other in (
        (ENGINE, native, {**native, "workload": script}),
        (COMPAT, {**native, "workload": script}, native),
    ):
        answer = printed(program, asked)
        assert (answer.returncode, answer.stderr) == (0, "")
        described.append(json.loads(answer.stdout))
        require_valid(described[-1], "describe")
        assert printed(program, other).returncode == 2
    assert (described[1]["statements"], described[1]["prepared_per_connection"]) == ([], 0)
    assert described[0]["error_classes"]["1213"] == "deadlock"
    assert described[0]["limits"] == described[1]["limits"] == LIMITS
