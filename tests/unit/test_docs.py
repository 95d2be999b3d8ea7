"""The documentation against the code: every key of the experiment file and every command is described."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from pydantic import BaseModel

from dbdyno.cli import COMMANDS
from dbdyno.experiment.model import (
    Client,
    Design,
    Experiment,
    Keys,
    Load,
    Loading,
    OltpWorkload,
    ScriptWorkload,
    ServerSpec,
    SqlReplay,
    SqlStatement,
    SqlTable,
    SqlTransaction,
    SqlWorkload,
    Variant,
)
from dbdyno.experiment.shapes import TABLES
from dbdyno.store.document import Document
from dbdyno.store.schemas import DOCUMENTS

ROOT = Path(__file__).resolve().parents[2]
# Not keys of the file: the target of `dbdyno run`, where a statement stands in a .sql file, a digest.
NOT_IN_A_FILE = {"levels", "url", "line", "digest"}


@pytest.mark.parametrize(
    "model",
    [
        *(Client, Design, Keys, Load, Loading, OltpWorkload, ServerSpec, SqlReplay, SqlStatement),
        *(ScriptWorkload, SqlTable, SqlTransaction, SqlWorkload, Variant, *TABLES.values()),
    ],
)
def test_every_key_of_the_experiment_file_is_described(model: type[BaseModel]) -> None:
    described = set(re.findall(r"`([a-z_]+)`", (ROOT / "docs/experiment.md").read_text()))
    keys = {name.removesuffix("_s") for name in model.model_fields} - NOT_IN_A_FILE
    assert keys <= described, f"docs/experiment.md lacks {sorted(keys - described)}"


def test_every_table_of_the_experiment_file_is_described() -> None:
    text = (ROOT / "docs/experiment.md").read_text()
    for field in set(Experiment.model_fields) - {"name", "question"}:
        assert re.search(rf"^## `\[+{field.removesuffix('s')}", text, re.MULTILINE), field


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")))
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_command_is_in_the_readme_or_the_docs() -> None:
    text = "".join(page.read_text() for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")])
    for name in COMMANDS:
        assert f"dbdyno {name}" in text, name


def test_every_option_that_sysbench_has_not_is_described() -> None:
    rows = (ROOT / "compat/sysbench/src/options.rs").read_text().split("pub const EXTENSIONS")[1]
    names = re.findall(r'option\(\s*"([a-z-]+)"', rows.split("];")[0])
    described = (ROOT / "docs/sysbench.md").read_text()
    assert names
    for name in names:
        assert re.search(rf"^\| `--{name}[=`]", described, re.M), name


@pytest.mark.parametrize(("name", "document"), DOCUMENTS.items())
def test_the_schemas_of_the_judges_files_are_those_of_the_code(name: str, document: type[Document]) -> None:
    text = (ROOT / f"schema/{name}.schema.json").read_text()
    assert text == document.schema_text(), "run make docs"
    schema = json.loads(text)
    for part in (schema, *schema["$defs"].values()):
        for key, value in part.get("properties", {}).items():
            assert value.get("description"), f"{part['title']}.{key}"


@pytest.mark.parametrize(("name", "document"), DOCUMENTS.items())
def test_the_examples_of_a_real_run_obey_the_schemas(name: str, document: type[Document]) -> None:
    path = ROOT / f"schema/examples/{name}.json"
    value = json.loads(path.read_text())
    jsonschema.validate(value, json.loads((ROOT / f"schema/{name}.schema.json").read_text()))
    read = document.read(path)
    assert read is not None
    # Nothing is lost or added on the way.
    assert read.model_dump(mode="json") == value
