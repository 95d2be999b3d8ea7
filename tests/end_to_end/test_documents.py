"""The commands of the tutorial and the recipes are executed; their output has the shape that the page shows.

A private MySQL takes the place of the reader's server. Comparisons are shortened to one block of short
trials, so the table has the rows of the document, but neither its numbers nor its verdict.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.end_to_end.comparing import environment
from tests.end_to_end.mysql_server import ROOT as MYSQL
from tests.end_to_end.mysql_server import MySQLServer, starting

from dbdyno.servers.workspace import Workspace

ROOT = Path(__file__).parents[2]
SHORT = ("load.duration=1s", "load.warmup=200ms", "design.blocks=1", "design.repeat_disturbed=false")
TIME_LIMIT_S = 300.0
LOG = """2024-01-01T00:00:00.000000Z\t 8 Connect\tapp@localhost on shop using TCP/IP
2024-01-01T00:00:00.100000Z\t 8 Query\tSELECT name FROM item WHERE id = 1
2024-01-01T00:00:00.200000Z\t 8 Query\tSELECT name FROM item WHERE id = 2
"""


@dataclass(frozen=True)
class Command:
    line: str
    output: str


def commands(page: str) -> list[Command]:
    """The commands in the console blocks of a document, each with the output that the block shows."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [Command(*part.split("\n", 1)) for part in parts]


def experiments(page: str) -> dict[str, str]:
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    return {match[1]: block for block in blocks if (match := re.match(r"# ([\w-]+\.toml)", block))}


def shape(output: str) -> list[str]:
    """Each line's kind: a row of a table by its first cell, any other line by its first word.

    A rule counts as a rule, however long: the numbers of a run decide how wide its table is.
    """
    words = [line.split()[0] for line in output.splitlines() if line.strip()]
    return ["─" if set(word) == {"─"} else word for word in words]


ONE_LINES = [command for command in commands("docs/recipes.md") if " compare --a " in command.line]
RUNS = [command for command in commands("docs/recipes.md") if " run " in command.line]


class Reader:
    """A folder with the experiments of the documents, and a server in place of the one that they name."""

    def __init__(self, folder: Path, server: MySQLServer) -> None:
        self.folder, self.server = folder, server
        for page in ("docs/tutorial.md", "docs/recipes.md"):
            for name, text in experiments(page).items():
                (folder / name).write_text(self.to_own_server(text))
        (folder / "shop.sql").write_text((ROOT / "examples/shop.sql").read_text().replace("_000_000", "_000"))
        (folder / "shop.lua").write_text((ROOT / "tests/fixtures/shop.lua").read_text())
        (folder / "general.log").write_text(LOG)

    def to_own_server(self, text: str) -> str:
        text = re.sub(r'basedir = "/opt/[^"]+"', f'basedir = "{MYSQL}"', text)
        return re.sub(r"127\.0\.0\.1:330[67]", f"127.0.0.1:{self.server.port}", text)

    def run(self, line: str, *more: str) -> str:
        name, *arguments = shlex.split(self.to_own_server(line))
        assert name == "dbdyno", line
        answer = subprocess.run(
            [sys.executable, "-m", "dbdyno", *arguments, *more],
            cwd=self.folder,
            env={**environment(), "DBDYNO_PASSWORD": self.server.password, "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        assert answer.returncode == 0, f"{line}\n{answer.stdout}{answer.stderr}"
        return answer.stdout

    def compare(self, line: str) -> str:
        return self.run(line, *(part for value in SHORT for part in ("--set", value)))


@pytest.fixture(scope="module")
def reader(results: Path, workspace: Workspace) -> Iterator[Reader]:
    folder = results / "reader"
    folder.mkdir(mode=0o711)
    with starting(workspace) as start:
        mysql = start("the reader's")
        for database in ("sbtest", "shop"):
            mysql.sql(f"CREATE DATABASE {database}")
        mysql.sql(f"CREATE USER bench@'%' IDENTIFIED BY '{mysql.password}'")
        mysql.sql("GRANT ALL ON *.* TO bench@'%'")
        mysql.sql("CREATE TABLE shop.item (id INT PRIMARY KEY, name TEXT)")
        mysql.sql("INSERT INTO shop.item VALUES (1, 'cup'), (2, 'plate')")
        yield Reader(folder, mysql)


def test_the_tutorial(reader: Reader) -> None:
    check, compare = commands("docs/tutorial.md")
    checked = reader.run(check.line)
    assert checked.endswith("'flush' is ready for dbdyno compare\n")
    # Above are warnings that depend on the machine, such as other processes that use its CPUs.
    assert shape(checked[checked.index("Time:") :]) == shape(check.output)
    result = shape(reader.compare(compare.line))
    shown = shape(compare.output)
    # The table, down to its last row; warnings and reasons depend on the run.
    rows = shown.index("every-second") + 1
    assert result[:rows] == shown[:rows]
    (run,) = (reader.folder / "results/flush").iterdir()
    assert reader.run(f"dbdyno report {run} --format md").startswith("# flush")
    assert len(reader.run(f"dbdyno report {run} --format csv").splitlines()) == 3


# Experiments that are only checked, to save time; others of the same kind are run.
# `make test` runs these experiments, and `make test-long` all.
OFTEN = ("setting.toml", "index.toml")
CHECKED = ("query.toml", "prepared.toml", "isolation.toml")


@pytest.mark.parametrize("name", CHECKED)
def test_a_recipe_is_ready(reader: Reader, name: str) -> None:
    assert "is ready for dbdyno compare" in reader.run(f"dbdyno check {name} --with-data")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in OFTEN else pytest.mark.long)
        for name in experiments("docs/recipes.md")
        if name not in CHECKED
    ],
)
def test_an_experiment_of_the_recipes(reader: Reader, name: str) -> None:
    last = reader.compare(f"dbdyno compare {name} --no-report").splitlines()[-1]
    assert last.startswith("Too few blocks for a verdict"), last


@pytest.mark.parametrize("command", ONE_LINES, ids=lambda command: command.line)
def test_a_comparison_in_one_line(reader: Reader, command: Command) -> None:
    last = reader.compare(f"{command.line} --no-report").splitlines()[-1]
    assert last.startswith("Too few blocks for a verdict"), last


@pytest.mark.parametrize("command", RUNS, ids=lambda command: command.line.split("--")[-1])
def test_a_command_of_the_recipes(reader: Reader, command: Command) -> None:
    rows = reader.run(command.line, "--time", "1s", "--warmup", "0s").splitlines()
    loads = re.search(r"--(?:rate|connections) ([\d,]+)", command.line)
    assert loads is not None
    assert sum(1 for row in rows if re.match(r" *\d+ ", row)) == len(loads[1].split(","))


def test_the_links_of_the_recipes(reader: Reader) -> None:
    (command,) = [c for c in commands("docs/recipes.md") if "shims" in c.line]
    reader.run(command.line.replace("~", str(reader.folder)))
    version = subprocess.run(
        [reader.folder / "bin/sysbench", "--version"],
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert version.stdout.startswith("sysbench 1.0")
