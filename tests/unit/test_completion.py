"""Completion: bash executes its script; the variables that the scripts of zsh and fish set imitate these."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.binary import DROP_INS
from dbdyno.commands import COMMANDS

EXPERIMENT = "[experiment]\nname = 'x'\n[profile.quick]\n[profile.'$(touch executed)']\n"
FILES = {
    "bin/dbdyno": f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dbdyno "$@"\n',
    "x.toml": EXPERIMENT,
    "more/y.toml": EXPERIMENT,
    "more/\\$(touch executed).toml": EXPERIMENT,
    "more/other.toml": "[project]\n",
    "invalid.toml": "[[",
    "own.sql": "SELECT 1\n",
    "results/flush/20261122T200000/experiment.json": "{}",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program `dbdyno`, experiment files and a run."""
    path = tmp_path_factory.mktemp("completion")
    for name, text in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    (path / "binary.toml").write_bytes(b"\xff\xfe")
    os.mkfifo(path / "pipe.toml")
    (path / "bin/dbdyno").chmod(0o755)
    return path


def run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder}/bin:{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def in_bash(folder: Path, *words: str) -> list[str]:
    """The candidates for the last word."""
    script = f"""
    source <(dbdyno completion bash)
    COMP_WORDS=({shlex.join(words)}) COMP_CWORD={len(words) - 1}
    _dbdyno_completion dbdyno
    printf '%s\\n' "${{COMPREPLY[@]}}"
    complete -p dbdyno >&2
    """
    done = run(folder, "bash", "--norc", "-c", script)
    assert done.stderr == "complete -o default -F _dbdyno_completion dbdyno\n"
    assert not (folder / "executed").exists()
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        ([""], list(COMMANDS)),
        (["compare", ""], ["more/y.toml", "x.toml"]),
        (["compare", "more/"], ["more/y.toml"]),
        (["check", "invalid.toml", "--profile", ""], []),
        (["compare", "x.toml", "--profile", ""], ["quick"]),
        (["run", "o"], [*(f"oltp_{name}" for name in ("read_write", "read_only", "write_only", "point_select",
                        "update_index", "update_non_index", "delete", "insert")), "own.sql"]),
        (["run", "x.toml", "--table"], ["--tables", "--table-size"]),
        (["report", ""], ["results/flush/20261122T200000"]),
        (["report", ".", "--format", "m"], ["md"]),
        (["report", ".", "--format", "b"], ["bencher", "benchstat"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
    ],
)  # fmt: skip
def test_bash_completes(folder: Path, words: list[str], candidates: list[str]) -> None:
    assert in_bash(folder, "dbdyno", *words) == candidates


@pytest.mark.parametrize("command", DROP_INS)
def test_completion_never_starts_a_drop_in(folder: Path, command: str) -> None:
    """The shell itself completes its arguments, as file names."""
    assert in_bash(folder, "dbdyno", command, "--threads=4", "'unclosed", "--tab") == []


def test_zsh_receives_candidates_with_help_or_asks_for_files(folder: Path) -> None:
    script = run(folder, "dbdyno", "completion", "zsh").stdout
    assert 'env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _DBDYNO_COMPLETE=complete_zsh dbdyno' in script

    def ask(line: str) -> str:
        return run(folder, "dbdyno", _DBDYNO_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line).stdout

    assert '"--profile":"Apply the profile of this name in the experiment file."' in ask(
        "dbdyno compare x.toml --pro"
    )
    assert ask("dbdyno sysbench scripts/") == "_files\n"


def test_fish_receives_candidates_with_help(folder: Path) -> None:
    script = run(folder, "dbdyno", "completion", "fish").stdout
    assert "_DBDYNO_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args" in script
    variables = {"_DBDYNO_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": "dbdyno shi"}
    shown = run(folder, "dbdyno", **variables, _TYPER_COMPLETE_FISH_ACTION="get-args").stdout
    assert shown.startswith("shims\tCreate sysbench")
    for line, code in {"dbdyno shi": 0, "dbdyno shims ": 1}.items():
        variables["_TYPER_COMPLETE_ARGS"] = line
        asked = run(folder, "dbdyno", **variables, _TYPER_COMPLETE_FISH_ACTION="is-args")
        assert (asked.returncode, asked.stdout, asked.stderr) == (code, "", ""), line


def test_another_shell_is_a_usage_error(folder: Path) -> None:
    done = run(folder, "dbdyno", "completion", "tcsh")
    assert done.returncode == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.stderr
    assert "Traceback" not in done.stderr
