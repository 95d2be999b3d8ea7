"""Loops, pauses, dependent values and conditions of consistency in workloads of SQL."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.checks.statements import parameter_values
from dbdyno.experiment import bundled, generators
from dbdyno.experiment.dialect import MYSQL
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import SqlWorkload
from dbdyno.experiment.reading import from_document
from dbdyno.experiment.sql_file import read

FILE = """
-- @option customers = 300 Customers
-- @pauses false
-- @parameter w = connection(1, 4, every=2)
-- @parameter elsewhere = uniform(1, 4, other_than=w)
-- @parameter supply = choice(w, elsewhere, weights=[99, 1])
-- @parameter last = words('BAR OUGHT ABLE', nurand(0, 8, a=7, c=3))
-- @parameter lines = uniform(5, 15)
-- @parameter line = repetition()
-- @parameter next = result(counter, type='integer')
-- @table orders rows=10*customers
-- @column id = cycle(1, customers)
-- @column district = cycle(1, 10, every=customers)
-- @column customer = shuffle(1, customers, of=customers)
-- @column lines = shuffle(5, 15, of=customers)
-- @column carrier = below(id, 211, uniform(1, 10), null)
-- @column last = below(id, 10, words('A B', cycle(0, 3)), 'x')
-- @column data = text(26, 50, word='ORIGINAL', share=0.1, suffix='11')
-- @table line rows=100*customers parent=orders.lines
-- @column id = parent(id)
-- @column number = child_number()
-- @setup
CREATE TABLE IF NOT EXISTS orders (id INT);
CREATE TABLE IF NOT EXISTS line (id INT);
-- @transaction order weight=9 keying=18s think=500ms
BEGIN;
-- @statement name=counter rows=1
SELECT 1;
-- @loop times=lines
-- @statement draw=elsewhere,supply
SELECT :line, :supply, :next;
SELECT :last;
-- @end
COMMIT;
-- @consistency total
SELECT 1 FROM orders WHERE id > {customers};
"""


def workload(sections: dict[str, Any] | None = None, /, **changes: Any) -> SqlWorkload:
    """The workload of FILE with other keys, in an experiment with more keys in its sections."""
    keys = read(FILE, "f.sql", MYSQL).keys
    # Only a file has lines.
    lists = [*(one["statements"] for one in keys["transactions"]), keys["consistency"]]
    for one in (one for several in lists for one in several):
        del one["line"]
    document: dict[str, Any] = {
        "experiment": {"name": "x"},
        "workload": [{"name": "sql", **keys, **changes}],
        "variant": [{"name": name, "server": {"product": "mariadb"}} for name in "ab"],
        "load": {"connections": [2], "duration": "1s"},
    }
    for section, more in (sections or {}).items():
        document[section] = {**document.get(section, {}), **more}
    experiment = from_document(document, "f.toml", bundled.path("tpcc").parent)
    found = experiment.workloads[0]
    assert isinstance(found, SqlWorkload)
    return found


def test_a_plan_has_loops_and_dependent_values() -> None:
    plan = workload().plan()["sql"]
    (transaction,) = plan["transactions"]
    assert transaction["loops"] == [{"first": 3, "last": 4, "times": "lines"}]
    assert not transaction.keys() & {"keying_us", "think_us"}
    parameters = plan["parameters"]
    assert parameters["w"] == {"connection": {"low": 1, "high": 4, "every": 2}}
    assert parameters["elsewhere"]["integer"]["other_than"] == "w"
    assert parameters["supply"] == {"choice": {"parameters": ["w", "elsewhere"], "weights": [99, 1]}}
    assert parameters["last"]["words"] == {
        "words": ["BAR", "OUGHT", "ABLE"],
        "low": 0,
        "high": 8,
        "distribution": {"nurand": {"a": 7, "c": 3}},
    }
    assert (parameters["line"], parameters["next"]["result"]["type"]) == ({"repetition": {}}, "integer")
    orders, lines = plan["tables"]
    columns = {one["name"]: one["values"] for one in orders["columns"]}
    assert columns["customer"] == {"shuffle": {"low": 1, "high": 300, "of": 300}}
    assert columns["carrier"]["below"]["otherwise"] == {"one_of": {"values": [None]}}
    assert columns["last"]["below"]["otherwise"] == {"constant": {"value": "x"}}
    assert columns["data"]["text"]["word"] == {"text": "ORIGINAL", "share": 0.1}
    assert lines["parent"] == {"table": "orders", "rows": "lines"}
    assert [one["values"] for one in lines["columns"]] == [{"parent": {"column": "id"}}, {"child_number": {}}]


def test_pauses_are_sent_if_they_are_switched_on() -> None:
    (transaction,) = workload(pauses=True).plan()["sql"]["transactions"]
    assert (transaction["keying_us"], transaction["think_us"]) == (18_000_000, 500_000)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"load": {"think_time": "1s"}}, "workload[sql].pauses"),
        ({"load": {"rate": [10]}}, "workload[sql].pauses"),
        ({"design": {"pairing": "slices", "blocks": 6}}, "workload[sql].pauses"),
    ],
)
def test_pauses_are_for_closed_loops_without_slices(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(InvalidExperiment) as raised:
        workload(changes, pauses=True)
    assert key in [error.key for error in raised.value.errors]


def test_a_condition_has_the_options_of_its_file() -> None:
    (condition,) = workload().consistency
    assert (condition.name, condition.sql) == ("total", "SELECT 1 FROM orders WHERE id > 300")


def test_samples_have_values_of_dependent_parameters() -> None:
    sample = parameter_values(workload(), 2)
    assert (sample["w"], sample["supply"], sample["line"], sample["last"]) == (2, 2, 1, "BARABLE")
    assert "next" not in sample


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("-- @loop times=3\nSELECT 1;", "a loop is a part of a transaction"),
        ("-- @transaction a\n-- @end\nSELECT 1;", "@end follows no statement of a loop"),
        ("-- @transaction a\n-- @loop times=3\nSELECT 1;", "a loop of this transaction has no end"),
        ("-- @transaction a\n-- @loop times=3\n-- @end\nSELECT 1;", "@end follows no statement of a loop"),
        ("-- @consistency\nSELECT 1;", "a condition needs a name"),
        ("-- @pauses off\nSELECT 1;", "pauses are true or false"),
    ],
)
def test_wrong_annotations_are_errors(text: str, problem: str) -> None:
    assert problem in " ".join(error.problem for error in read(text, "f.sql", MYSQL).errors)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nurand(0, 9, a=3, c=4)", "its constant c is 4"),
        ("nurand(-1, 9, a=3)", "it begins at -1"),
        ("choice()", "parameters"),
        ("words('ONE', uniform(0, 9))", "words"),
        ("result(s, 1, type='date')", "type"),
    ],
)
def test_wrong_parameters_are_errors(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        generators.parameter(text, {})


def test_a_column_leaves_out_no_parameter() -> None:
    with pytest.raises(ValueError, match="columns have none"):
        generators.column("a", "uniform(1, 2, other_than=w)", {})


def test_a_pause_needs_a_unit() -> None:
    transaction = {"name": "a", "statements": ["SELECT 1"], "keying": 18}
    with pytest.raises(InvalidExperiment, match="a duration needs a unit"):
        workload(transactions=[transaction])
