"""`dbdyno docs`: every page and code can be printed, and what names a topic names one that exists."""

from __future__ import annotations

import ast
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.commands.docs import docs, pages
from dbdyno.finding import codes
from dbdyno.problem import Problem

ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "lab/dbdyno"


def printed(capsys: pytest.CaptureFixture[str], topic: str | None = None) -> str:
    docs(topic)
    return capsys.readouterr().out


def texts(path: Path) -> list[str]:
    """The texts of a file that a user may see: of Python its strings without docstrings."""
    if path.suffix != ".py":
        return [path.read_text()]
    nodes = list(ast.walk(ast.parse(path.read_text())))
    documented = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented
    ]


def test_the_list_has_every_page_with_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    heading, *rows = printed(capsys).splitlines()
    assert heading.split() == ["topic", "title"]
    titles = dict(row.split(maxsplit=1) for row in rows)
    assert titles.keys() == {str(path.relative_to(ROOT / "docs"))[:-3] for path in ROOT.glob("docs/**/*.md")}
    assert titles["experiment"] == "The experiment file"


@pytest.mark.parametrize("page", pages())
def test_a_page_names_topics_instead_of_links(capsys: pytest.CaptureFixture[str], page: str) -> None:
    text = printed(capsys, page)
    assert text.startswith("# ")
    assert "<!--" not in text
    assert not re.findall(r"\]\([^)\s:]*\)", re.sub(r"(?ms)^```.*?^```$", "", text))
    for topic in re.findall(r"`dbdyno docs ([a-z][^`\s]*|[A-Z]\d\d)`", text):
        assert printed(capsys, topic)


@pytest.mark.parametrize("code", [*codes(), "P01", "Q03"])
def test_a_code_has_its_section_alone(capsys: pytest.CaptureFixture[str], code: str) -> None:
    text = printed(capsys, code.lower())
    assert re.findall(r"(?m)^## (\w+)", text) == [code]
    assert len(text.splitlines()) > 2


def test_a_code_has_what_is_examined_in_documents_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "P07")
    assert "Fix: " in text
    assert "`dbdyno read`: " in text


def test_an_unknown_topic_gets_a_suggestion() -> None:
    with pytest.raises(Problem) as problem:
        docs("experimnt")
    assert problem.value.text == "the documentation has no page 'experimnt'"
    assert problem.value.fix == "Did you mean experiment?"


@pytest.mark.parametrize(("pager", "is_paged"), [("sed s/^/paged:/", True), ("/no/such/pager", False)])
def test_a_terminal_shows_formatted_text_in_the_pager(tmp_path: Path, pager: str, is_paged: bool) -> None:
    first, second = pty.openpty()
    environment = {**os.environ, "PAGER": pager, "TERM": "xterm", "COLUMNS": "80"}
    command = [sys.executable, "-m", "dbdyno", "docs", "glossary"]
    with subprocess.Popen(command, stdin=second, stdout=second, env=environment) as process:
        os.close(second)
        shown = b""
        try:
            while part := os.read(first, 65536):
                shown += part
        except OSError:
            pass  # Nobody has the terminal any more.
    os.close(first)
    assert process.returncode == 0
    plain = re.sub("\x1b\\[[0-9;]*m", "", shown.decode()).replace("\r", "")
    assert ("paged:" in plain) == is_paged
    lines = [line.removeprefix("paged:") for line in plain.splitlines()]
    assert "Glossary" in [line.strip() for line in lines]
    assert max(map(len, lines)) <= 80


def test_what_a_user_sees_names_existing_topics_and_no_file_of_the_repository() -> None:
    endings = {".html", ".j2", ".po", ".py", ".sql", ".toml"}
    named = set()
    for path in (path for path in LAB.rglob("*") if path.suffix in endings and path.is_file()):
        for text in texts(path):
            assert not re.search(r"\bdocs/[\w-]+\.(?:md|ipynb)\b", text), path
            named |= set(re.findall(r"dbdyno docs ([a-z][\w/-]*)", text))
    assert named >= {"connections", "experiment", "fleet"}
    assert named <= set(pages())
