"""Style as a test: what a reviewer would otherwise have to say again and again.

Held over every tracked source file: length of files and functions, an opening sentence, nothing left
unfinished, and nothing that belongs to one machine.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60

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


def is_test(path: Path) -> bool:
    """Whether a file holds tests only; those may be long."""
    return "tests" in path.relative_to(ROOT).parts


def rust_functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and length of each function; formatted code closes it at the indentation it opened with."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        match = re.match(r"( *)(?:pub(?:\([a-z]+\))? )?(?:const )?(?:async )?(?:unsafe )?fn (\w+)", line)
        if match is None:
            continue
        indent, name = match.groups()
        opening = next(line for line in lines[start:] if line.endswith(("{", "}", ";")))
        if opening.endswith(";"):
            continue  # A declaration.
        end = next(end for end in range(start, len(lines)) if lines[end] in (f"{indent}}}", f"{indent};"))
        yield name, end - start + 1


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and length of each function."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def test_no_file_is_two_ideas() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in sources(".rs", ".py")
        if not is_test(path) and (count := len(path.read_text().splitlines())) > FILE_LINES_MAX
    }
    assert not long, f"files over {FILE_LINES_MAX} lines"


def test_no_function_is_two_ideas() -> None:
    long = []
    for path in sources(".rs", ".py"):
        functions = rust_functions if path.suffix == ".rs" else python_functions
        for name, count in functions(path.read_text()):
            if count > FUNCTION_LINES_MAX:
                long.append(f"{path.relative_to(ROOT)}: {name} has {count} lines")
    assert not long, f"functions over {FUNCTION_LINES_MAX} lines"


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


def test_the_ratchet_sees_long_functions() -> None:
    body = "\n".join("    let x = 1;" for _ in range(70))
    assert dict(rust_functions(f"pub(crate) async fn long() {{\n{body}\n}}\n")) == {"long": 72}
    assert dict(python_functions("def f():\n" + "    x = 1\n" * 70)) == {"f": 71}
