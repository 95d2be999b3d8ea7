"""The facts in README.md agree with the benchmarks' results, the code, the packaging and the Makefile."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from tests.unit.stored_run import make

from dbdyno.binary import DROP_INS
from dbdyno.commands import COMMANDS, app
from dbdyno.commands.option_document import write_experiment
from dbdyno.commands.read import read as read_documents
from dbdyno.commands.report import Format
from dbdyno.experiment.reading import read
from dbdyno.problem import ExitCode
from dbdyno.terminal import result
from dbdyno.verdict import judge

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()
README = " ".join(TEXT.split())
COMMANDS_PAGE = " ".join((ROOT / "docs/commands.md").read_text().split())
RESULTS = (ROOT / "benchmarks/results.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]


def found(pattern: str, text: str = README) -> tuple[str, ...]:
    match = re.search(pattern, text)
    assert match is not None, pattern
    return match.groups()


def test_the_exit_codes_are_those_of_the_code() -> None:
    (codes,) = found(r"Exit codes: (.*?)\.", COMMANDS_PAGE)
    assert [int(code) for code in re.findall(r"\d+", codes)] == sorted(ExitCode)


def test_the_requirements_are_those_of_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (python,) = found(r"Python ([\d.]+) or newer")
    assert project["requires-python"] == f">={python}"
    wheels = (ROOT / "scripts/wheels").read_text()
    first, second, glibc = found(r"on (\w+) and (\w+) with glibc ([\d.]+) or newer")
    assert f"architectures=({first} {second})" in wheels
    assert f"glibc={glibc}\n" in wheels


def test_the_versions_are_those_of_the_tests_and_benchmarks() -> None:
    mariadb, mysql, postgresql = found(r"Tested with MariaDB ([\d.]+), MySQL ([\d.]+) and PostgreSQL (\d+)\.")
    assert f".servers/mysql-{mysql}" in MAKEFILE
    assert f"MariaDB {mariadb}." in RESULTS
    assert f"PostgreSQL {postgresql}." in RESULTS
    faq = " ".join((ROOT / "docs/faq.md").read_text().split())
    assert f"MySQL {mysql}, MariaDB {mariadb} and PostgreSQL {postgresql}" in faq


def test_the_demo_is_that_of_the_makefile() -> None:
    (command,) = found(r"console\n\$ (dbdyno compare .*)\n", TEXT)
    assert f"$(BIN)/{command}\n" in MAKEFILE
    build, run = found(r"about (\d+) minutes to build, (\d+) to measure")
    assert f"about {build} minutes to build, {run} to measure" in MAKEFILE
    assert int(build) + int(run) <= 8, "a demo is short"
    (minutes,) = found(r"runs all tests on real servers, in about (\d+) minutes on two cores")
    assert f"{minutes} min from a cold clone" in (ROOT / "CONTRIBUTING.md").read_text()


def tasks() -> dict[str, list[str]]:
    """The tasks -> the lines of their only block of a console."""
    section = TEXT.split("\n## Five tasks\n")[1].split("\n## ")[0]
    blocks = {
        title: re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        for title, text in (part.split("\n", 1) for part in section.split("\n### ")[1:])
    }
    return {title: block.splitlines() for title, (block,) in blocks.items()}


def test_each_of_the_five_tasks_is_one_line_with_the_end_of_its_output() -> None:
    names = ["compare", "compare", "capacity", "compare", "read"]
    assert [shlex.split(lines[0])[:3] for lines in tasks().values()] == [
        ["$", "dbdyno", name] for name in names
    ]
    for command, *output in tasks().values():
        assert output, command
        assert not [line for line in output if line.startswith("$")]
        assert len(command) <= 120
        assert not re.search("FILE|URL|RUN", command), "it can be typed as it is"


def test_the_servers_and_queries_of_the_tasks_are_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (sql,) = re.findall(r"^```sql\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    (tmp_path / "orders.sql").write_text(sql)
    for line, *_ in list(tasks().values())[:4]:
        _, command, *words = shlex.split(line)[1:]
        options: dict[str, Any] = dict(zip((word[2:] for word in words[::2]), words[1::2], strict=True))
        if command == "compare":
            options["b"] = [options["b"]]
        else:
            options |= {"latency_objective": {"p99": options.pop("p99")}, "blocks": 6}
        assert read(write_experiment(options, [], Path())).variants


def test_the_results_of_others_are_read_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("before", "after"):
        shutil.copy(ROOT / f"tests/fixtures/readme/{name}.txt", tmp_path)
    monkeypatch.chdir(tmp_path)
    command, *output = tasks()["Read results of others"]
    assert command == "$ dbdyno read before.txt after.txt"
    with pytest.raises(typer.Exit) as end:
        read_documents([Path("before.txt"), Path("after.txt")])
    assert end.value.exit_code == 0
    printed = capsys.readouterr().out
    assert " ".join(printed.split()).endswith(" ".join("\n".join(output).split()))


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_output_of_compare_is_that_of_the_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], page: str
) -> None:
    run = make(tmp_path)
    judge(run)
    result.show(run, run.experiment())
    printed = capsys.readouterr().out
    shown = (ROOT / page).read_text()
    (heading,) = found(r"(?m)^ +(connections .*verdict) *$", printed)
    assert heading.split() == found(r"(?m)^ +(connections .*verdict)$", shown)[0].split()
    (family,) = found(r"(?m)^(The chance that .*)$", printed)
    assert f"{family}\n" in shown


def test_the_formats_are_those_of_the_command() -> None:
    formats = ", ".join(
        found(r"renders a stored run as ([A-Za-z, ]+), or for \[([A-Za-z, ]+)\]", COMMANDS_PAGE)
    )
    short = {"markdown": "md"}
    names = {short.get(name.lower(), name.lower()) for name in re.split(r", | or ", formats)}
    assert names == set(get_args(Format))


def test_the_number_of_published_benchmarks_is_that_of_the_case_studies() -> None:
    studies = re.findall(r"^## (\d)\. ", (ROOT / "docs/case-studies.md").read_text(), re.MULTILINE)
    assert "Of five published benchmarks" in README
    assert len(studies) == 5


def command_lines(page: Path) -> list[str]:
    """The commands of dbdyno in a document: in blocks, and in code within a sentence."""
    _, *parts = re.split(r"^```", "text\n```" + page.read_text(), flags=re.MULTILINE)
    inline = [line for part in parts[::2] for line in re.findall(r"`(dbdyno [^`\n]+)`", part)]
    blocks = [part for part in parts[1::2] if part.startswith(("console", "sh"))]
    return inline + [line for part in blocks for line in re.findall(r"(?m)^(?:\$ )?(dbdyno .*)$", part)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_and_option_of_a_document_exists(page: Path) -> None:
    for line in command_lines(page):
        name, *words = shlex.split(line.replace("…", ""))[1:] or ["--version"]
        if name in DROP_INS or name.startswith("-"):
            continue
        if line == "dbdyno loading":  # The comment of a table.
            continue
        assert name in COMMANDS, line
        group = typer.main.get_command(app([name]))
        assert isinstance(group, typer.core.TyperGroup)
        options = {option for parameter in group.commands[name].params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_make_target_of_a_document_exists(page: Path) -> None:
    targets = set(re.findall(r"(?:`|^\$ )make ([a-z-]+)", page.read_text(), re.MULTILINE))
    assert targets - {"help"} <= set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
