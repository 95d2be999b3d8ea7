"""The JSON Schema of the experiment file. tests/conftest.py compares it with `reading` in every test."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema_rs
import pytest
import typer
from tests.conftest import SCHEMA

from dbdyno.binary import DROP_INS
from dbdyno.commands import COMMANDS, app
from dbdyno.commands.schema import SchemaName, schema
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.file_schema import file_schema, schema_text
from dbdyno.experiment.reading import read_bytes

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = [
    (page.name, block)
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))
    for block in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)
]
# An experiment in which each table of the file occurs, and each short form.
FULL = """
[experiment]
name = "full"
[[workload]]
name = "oltp_read_only"
keys = { distribution = "zipfian", exponent = 1 }
[[workload]]
name = "oltp_read_only"
label = "other"
keys = "pareto"
[[workload]]
name = "sql"
parameters = { id = "uniform(1, rows(t))", word = ["a", 2, 3.5] }
setup = ["CREATE TABLE t (id INT)"]
tables.t = { rows = 5, columns = { id = "sequence()" } }
transactions = [
  "SELECT :id",
  { name = "one", sql = "SELECT :word", weight = 2, rows = 1 },
  { name = "two", statements = ["BEGIN", { sql = "SELECT 1", repeat = 2, mode = "text" }, "COMMIT"] },
]
[load]
connections = [1]
duration = "2s"
warmup = "auto"
steps = [{ percent = 50, duration = "1s" }, { percent = 100, duration = " 0.5 s " }]
[design]
stop = { when = { half_width = "1 %" }, max_time = "5m" }
[override]
P07 = "on purpose"
[[variant]]
name = "a"
server = { variables = { x = 1, y = "2G", z = true, u = 0.5 }, hook_timeout = "500ms" }
workload = { oltp_read_only = { table_size = 5 }, sql = { parameters = { id = "uniform(1, 2)" } } }
load = { reconnect_every = 5, give_up = "1s" }
session = { isolation = "read committed", variables = { x = 1 }, sql = ["SET @a = 1"] }
data = { after = [] }
[[variant]]
name = "b"
"""
FACTORS = FULL.partition("[[variant]]")[0] + (
    '[[variant]]\nserver.cpus = "0"\n'
    "[factor.pool]\non.server.variables.x = 1\noff = {}\n"
    "[factor.size]\nsmall.server.variables.y = 1\nlarge = {}\n"
)


def given(text: str, profile: str | None = None) -> None:
    read_bytes(text.encode(), Path("test.toml"), profile)


def test_the_committed_schema_is_that_of_the_models() -> None:
    assert (ROOT / "schema/experiment.schema.json").read_text() == schema_text(), "run make texts"


@pytest.mark.parametrize("name", get_args(SchemaName))
def test_the_lab_has_the_schemas(name: SchemaName, capsys: pytest.CaptureFixture[str]) -> None:
    schema(name)
    assert capsys.readouterr().out == (ROOT / f"schema/{name}.schema.json").read_text()


@pytest.mark.parametrize(
    "changes",
    [
        '"load.duration" = "5s"\n"workload[other].table_size" = 20\n"variant.server.variables.x" = "512M"',
        'load.duration = "5s"\n"workload[other]".keys = { distribution = "zipfian", exponent = 0.5 }',
        '"workload[other]".keys.distribution = "zipfian"\n"design.stop.when.half_width" = "2%"',
        "[profile.p.variant]\n\"server.cpus\" = '0'\nserver.variables.new = false",
        '"variant.session.variables.x" = "1"\n"variant[a].workload.sql.setup" = []',
        '"variant[a]"."server.kind" = "local"\n"workload[sql].tables.t.rows" = 7\n"load.steps" = []',
        '"workload[sql].tables.t" = { rows = 7 }\n"override.P08" = "yes"\nexperiment.question = "?"',
    ],
)
def test_profiles_are_accepted_in_every_form(changes: str) -> None:
    text = FULL.replace('keys = "pareto"', "")
    given(f"{text}[profile.p]\n{changes}\n", "p")


def test_a_session_variable_has_a_valid_name() -> None:
    document = tomllib.loads(FULL)
    document["variant"][0]["session"]["variables"] = {"a b": 1}
    assert not SCHEMA.is_valid(document)


@pytest.mark.parametrize("text", [FULL, FACTORS])
def test_an_unknown_key_is_rejected_in_every_table(text: str) -> None:
    tables = list(_tables(tomllib.loads(text), ()))
    assert len(tables) > 10
    for path in tables:
        document = tomllib.loads(text)
        table: Any = document
        for part in path:
            table = table[part]
        table["no_such_key"] = 1
        assert not SCHEMA.is_valid(document), path


def _tables(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """The paths of the tables whose keys dbdyno names."""
    free = (
        path[-1:] in (("variables",), ("parameters",), ("columns",), ("override",))
        or "factor" in path[-2:]
        # A workload's title in [variant.workload].
        or (path[-2:-1] == ("workload",) and isinstance(path[-1], str))
    )
    if isinstance(value, dict) and not free:
        yield path
    for key, child in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from _tables(child, (*path, key))


@pytest.mark.parametrize(
    "changes",
    [
        '"load.duratoin" = "5s"', 'load.duratoin = "5s"', '"variant.server.cpu" = "0"',
        '"laod.duration" = "5s"',
        "variant.cpus = '0'",
        "\"variant[a].server\" = { cpu = '0' }", '"workload.tabels" = 5', "duration = '5s'",
        "[profile.p.variant]\n\"server.cpu\" = '0'", '"design.stop.wen" = "decided"',
        '"load.ramp.over" = "1s"',
        '"workload[sql].tables.t.row" = 7', '"experiment.nam" = "x"',
    ],
)  # fmt: skip
def test_an_unknown_key_is_rejected_in_every_form_of_a_profile(changes: str) -> None:
    text = f"{FULL}[profile.p]\n{changes}\n"
    with pytest.raises(InvalidExperiment):
        given(text, "p")
    assert not SCHEMA.is_valid(tomllib.loads(text))


@pytest.mark.parametrize(
    "statement", ['sql = "SELECT 1", line = 3', 'statements = [{ sql = "SELECT 1", line = 3 }]']
)
def test_a_statement_has_no_line_outside_its_sql_file(statement: str) -> None:
    with pytest.raises(InvalidExperiment, match=r"transactions\.line = 3: there is no such key"):
        given(FULL.replace('"SELECT :id",', f"{{ {statement} }},"))


@pytest.mark.parametrize("text", [FULL, FACTORS])
def test_every_short_form_is_read(text: str) -> None:
    given(text)


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=[f"{page}-{n}" for n, (page, _) in enumerate(BLOCKS)])
def test_the_documents_obey_the_schema(page: str, block: str) -> None:
    document = tomllib.loads(block)
    if "experiment" not in document:
        # A part of a file.
        if isinstance(document.get("variant"), dict):
            document["variant"] = [{"name": "a", **document["variant"]}]
        rest = tomllib.loads(FULL)
        document = {
            **{key: rest[key] for key in rest if key != "variant" or "factor" not in document},
            **document,
        }
    SCHEMA.validate(document)


def test_the_examples_name_the_schema() -> None:
    for path in ROOT.glob("examples/*.toml"):
        assert path.read_text().splitlines()[0] == "#:schema ../schema/experiment.schema.json", path
        SCHEMA.validate(tomllib.loads(path.read_text()))


def test_every_key_has_a_description() -> None:
    whole = file_schema()
    tables = {
        "": whole,
        **{name: table for name, table in whole["$defs"].items() if "Changed-" not in name},
    }
    del tables["Profile"]
    for name, table in tables.items():
        for key, value in table.get("properties", {}).items():
            target = value if "$ref" not in value else whole["$defs"][value["$ref"].rsplit("/", 1)[-1]]
            assert value.get("description") or target.get("description"), f"{name}.{key} has no docstring"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in DROP_INS])
def test_every_option_has_a_description(name: str) -> None:
    group = typer.main.get_command(app([name]))
    assert isinstance(group, typer.core.TyperGroup)
    for parameter in group.commands[name].params:
        assert getattr(parameter, "help", None), f"dbdyno {name}: {parameter.name}"


def test_the_schema_is_itself_valid() -> None:
    jsonschema_rs.meta.validate(json.loads(schema_text()))
