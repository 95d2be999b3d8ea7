"""The man pages that go into the wheel: complete, and without warnings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno import __version__
from dbdyno.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man") / "man1"
    subprocess.run([sys.executable, ROOT / "packaging/man_pages.py", folder], check=True)
    assert {path.name for path in folder.iterdir()} == {
        "dbdyno.1",
        *(f"dbdyno-{name}.1" for name in COMMANDS),
    }
    return folder


def shown(page: Path) -> str:
    """A page as `man` shows it, or its source without man; on one line."""
    text = page.read_text().replace(r"\-", "-").replace(r"\(aq", "'")
    if shutil.which("man"):
        done = subprocess.run(
            ["man", "--warnings", "--local-file", str(page)],
            env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "1000", "MAN_KEEP_FORMATTING": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == "", page.name
        text = done.stdout
    return " ".join(text.split())


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_a_page_has_everything_that_the_help_has(pages: Path, command: str) -> None:
    text = shown(pages / f"{'-'.join(filter(None, ('dbdyno', command)))}.1")
    assert f"dbdyno {__version__}" in text
    done = subprocess.run(
        [sys.executable, "-m", "dbdyno", *filter(None, [command]), "--help"],
        env={**os.environ, "COLUMNS": "1000"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith(("  ", "    "))]
    assert len(lines) > 2
    for line in lines:
        for part in re.split(r"\s{2,}", line.strip()):
            assert part in text, line


def test_the_main_page_names_the_others(pages: Path) -> None:
    text = shown(pages / "dbdyno.1")
    for name in COMMANDS:
        assert f"dbdyno-{name}(1)" in text
