"""The documentation against the code: every key of the experiment file and every command is described."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.schemas import require_valid

from dbdyno.commands import COMMANDS
from dbdyno.experiment.file_schema import file_schema, with_tables
from dbdyno.experiment.model import TITLE_KEYS, Experiment
from dbdyno.generate import DOCUMENTS
from dbdyno.store.document import Document

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["experiment", "workloads"])
def test_the_generated_tables_are_up_to_date(name: str) -> None:
    text = (ROOT / f"docs/{name}.md").read_text()
    assert with_tables(text) == text, "run make texts"


def test_a_table_that_is_new_leaves_the_next_one() -> None:
    made = with_tables("<!-- keys of Ramp -->\n<!-- end -->\n\n<!-- keys of Step -->\n\n<!-- end -->\n")
    assert made.count("| key | meaning |") == 2
    assert made.count("<!-- end -->") == 2


def test_every_table_of_keys_is_shown() -> None:
    # Made from other tables, or a list.
    derived = {"BundledWorkload", "Level", "Profile", "SqlTransactionOfOneStatement", "Steps"}
    tables = {name for name in file_schema()["$defs"] if not name.startswith("Changed-")} - derived
    shown = re.findall("<!-- keys of (.*) -->", (ROOT / "docs/experiment.md").read_text())
    assert tables <= set(shown), "docs/experiment.md lacks a line: <!-- keys of MODEL -->"


def test_every_table_of_the_experiment_file_is_described() -> None:
    text = (ROOT / "docs/experiment.md").read_text()
    for field in set(Experiment.model_fields) - set(TITLE_KEYS):
        assert re.search(rf"^## `\[+{field.removesuffix('s')}", text, re.MULTILINE), field


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")))
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_entry_of_the_changelog_is_complete_and_occurs_once() -> None:
    lines = re.sub(r"\n  +", " ", (ROOT / "CHANGELOG.md").read_text()).splitlines()
    entries = [line for line in lines if line.startswith("- ")]
    assert [entry for entry in entries if not entry.endswith((".", ")"))] == []
    beginnings = [entry[:60] for entry in entries]
    assert len(set(beginnings)) == len(beginnings)


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
    assert text == document.schema_text(), "run make texts"
    schema = json.loads(text)
    for part in (schema, *schema["$defs"].values()):
        for key, value in part.get("properties", {}).items():
            assert value.get("description"), f"{part['title']}.{key}"


@pytest.mark.parametrize(("name", "document"), DOCUMENTS.items())
def test_the_examples_of_a_real_run_obey_the_schemas(name: str, document: type[Document]) -> None:
    path = ROOT / f"schema/examples/{name}.json"
    value = json.loads(path.read_text())
    require_valid(value, name)
    read = document.read(path)
    assert read is not None
    # Nothing is lost or added on the way.
    assert read.model_dump(mode="json") == value


def test_the_files_with_unsafe_code_are_listed_with_a_reason() -> None:
    sources = [
        path for folder in ("engine", "compat", "benchmarks") for path in (ROOT / folder).rglob("*.rs")
    ]
    unsafe = {str(path.relative_to(ROOT)) for path in sources if "allow(unsafe_code)" in path.read_text()}
    listed = re.findall(r"^\| `(\S+\.rs)` \| ..", (ROOT / "docs/security.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(unsafe)
