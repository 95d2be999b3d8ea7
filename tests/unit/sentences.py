"""The sentences that tests expect: tests/fixtures/sentences.toml, one table per test module.

A test names its input and calls `check_sentences`. After a change of the wording, this writes the file:

    .venv/bin/python -m tests.unit.sentences

Read the difference before you commit it: each line is a sentence that a user sees.
"""

from __future__ import annotations

import fcntl
import inspect
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "fixtures" / "sentences.toml"
# Set, `check_sentences` writes instead of comparing.
WRITE = "DBDYNO_WRITE_SENTENCES"

Tables = Mapping[str, Mapping[str, Sequence[str]]]


def check_sentences(name: str, *sentences: str) -> None:
    """Assert that the input `name` of the calling test module has these sentences."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    module = Path(frame.f_back.f_code.co_filename).stem
    if os.environ.get(WRITE):
        _write(module, name, sentences)
    else:
        assert list(sentences) == read()[module][name]


def read() -> Tables:
    """Module -> name of an input -> its sentences."""
    return tomllib.loads(FILE.read_text())


def users() -> list[Path]:
    """The test modules that have a table."""
    return sorted(path for path in FILE.parents[1].rglob("test_*.py") if "unit.sentences" in path.read_text())


def _write(module: str, name: str, sentences: Sequence[str]) -> None:
    with FILE.open("r+") as file:
        # Tests may run in several processes.
        fcntl.flock(file, fcntl.LOCK_EX)
        tables = {key: dict(table) for key, table in tomllib.loads(file.read()).items()}
        tables.setdefault(module, {})[name] = list(sentences)
        file.seek(0)
        file.truncate()
        file.write(as_toml(tables))


def as_toml(tables: Tables) -> str:
    """The text of the file, in alphabetical order, with one sentence per line."""
    lines: list[str] = []
    for module in sorted(tables):
        lines += ["", f"[{module}]"]
        for name, sentences in sorted(tables[module].items()):
            lines += [f"{_quoted(name)} = [", *(f"  {_quoted(one)}," for one in sentences), "]"]
    return "\n".join([*lines[1:], ""])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


if __name__ == "__main__":
    FILE.write_text("")
    command = [sys.executable, "-m", "pytest", "-q", *map(str, users())]
    sys.exit(subprocess.run(command, env=os.environ | {WRITE: "1"}, check=False).returncode)
