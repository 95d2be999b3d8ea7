"""Style as a test: what a reviewer would otherwise have to say again and again.

Held over every tracked source file: an opening sentence, nothing left unfinished, and
nothing that belongs to one machine.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Words are put together here so that this file does not find itself.
UNFINISHED = re.compile(
    "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "unimplemented" + "!", r"todo" + r"!\("])
)
MACHINE = re.compile(
    "|".join(["/ro" + "ot/", "/wo" + "rk/", "arti" + "factory", "pypi\\.o" + "rg", "deb\\.deb" + "ian"])
)


def sources(*endings: str) -> list[Path]:
    """Tracked files with these endings."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.split("\0") if name.endswith(endings)]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def test_every_file_says_what_it_is() -> None:
    silent = []
    for path in sources(".rs", ".py"):
        text = path.read_text()
        opening = text.startswith("//!") if path.suffix == ".rs" else ast.get_docstring(ast.parse(text))
        if not opening:
            silent.append(str(path.relative_to(ROOT)))
    assert not silent, "files without an opening sentence"


@pytest.mark.parametrize(("what", "pattern"), [("unfinished", UNFINISHED), ("of one machine", MACHINE)])
def test_nothing_is_left_over(what: str, pattern: re.Pattern[str]) -> None:
    endings = (".rs", ".py", ".toml", ".md", ".sh", "Makefile", ".html", ".j2", ".lock", ".txt")
    found = []
    for path in sources(*endings):
        if path.name == "Cargo.lock":
            continue  # Names the public registry by itself, as every Cargo.lock does.
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found, what
