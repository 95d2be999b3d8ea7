"""How a drop-in starts: before anything heavy is imported, as the same process; and the links to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.binary import DROP_INS, LINKS
from dbdyno.commands import COMMANDS

# What `import dbdyno.__main__` may load beyond a bare Python: names of packages. Each costs every start.
LIGHT = {
    "dbdyno",
    "signal",
    "enum",
    "types",
    "operator",
    "functools",
    "itertools",
    "collections",
    "reprlib",
    "keyword",
    "future__",
}
LOADED = """
import sys
before = set(sys.modules)
import os
def told(path, arguments):
    print(*arguments)
    print(*sorted(set(sys.modules) - before))
    sys.stdout.flush()
    os._exit(7)
os.execv = told
sys.argv = ["dbdyno", "{command}", "--threads=2", "cpu", "run"]
from dbdyno.__main__ import main
main()
"""


@pytest.fixture
def no_engine_beside(tmp_path: Path) -> str:
    """A Python with no engine beside it: a link in a folder of its own."""
    (tmp_path / "python").symlink_to(sys.executable)
    return str(tmp_path / "python")


@pytest.mark.parametrize("command", DROP_INS)
def test_nothing_heavy_is_imported_before_the_engine_takes_over(command: str, tmp_path: Path) -> None:
    engine = tmp_path / "dbdyno-compat"
    engine.write_text("")
    engine.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", LOADED.replace("{command}", command)],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    started, loaded = done.stdout.splitlines()
    assert started == f"{DROP_INS[command]} --threads=2 cpu run"
    assert "dbdyno.binary" in loaded
    heavy = {name.partition(".")[0].lstrip("_") for name in loaded.split()} - LIGHT
    assert not heavy, f"imported before the engine takes over: {sorted(heavy)}"


def test_the_list_would_see_the_command_line() -> None:
    code = "import sys; import dbdyno.commands; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"typer", "importlib"} <= {name.partition(".")[0] for name in done.stdout.split()}


def test_the_engine_has_the_process_its_input_and_its_exit_code(
    tmp_path: Path, no_engine_beside: str
) -> None:
    engine = tmp_path / "dbdyno-compat"
    # Python would ignore SIGPIPE by itself: a shell tells what it was started with.
    engine.write_text('#!/bin/sh\necho "$$" "$*"\ngrep SigIgn /proc/self/status\ncat\nexit 42\n')
    engine.chmod(0o755)
    with subprocess.Popen(
        [no_engine_beside, "-m", "dbdyno", "sysbench", "-", "a b", "--x="],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        restore_signals=True,
    ) as process:
        output, _ = process.communicate("a script\n")
    first, ignored, script = output.splitlines()
    assert first == f"{process.pid} - a b --x="
    assert int(ignored.split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0
    assert (script, process.returncode) == ("a script", 42)


def test_a_missing_engine_is_told(no_engine_beside: str) -> None:
    done = subprocess.run(
        [no_engine_beside, "-m", "dbdyno", "sysbench", "--version"],
        env={"PATH": "/nowhere", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("dbdyno: dbdyno-compat was not found")
    assert "Traceback" not in done.stderr


def engine_in(folder: Path) -> Path:
    """An engine to lead links to."""
    path = folder / "dbdyno-compat"
    path.write_text("#!/bin/sh\necho I am $(basename $0), asked for $*\n")
    path.chmod(0o755)
    return path


def shims(folder: Path, python: str, engine: Path) -> subprocess.CompletedProcess[str]:
    """`dbdyno shims FOLDER`."""
    return subprocess.run(
        [python, "-m", "dbdyno", "shims", str(folder)],
        env={"PATH": f"{engine.parent}:/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_links_are_made_and_made_again(tmp_path: Path, no_engine_beside: str) -> None:
    first, second = (tmp_path / "first", tmp_path / "second")
    for folder in (first, second):
        folder.mkdir()
    bin_folder = tmp_path / "new" / "bin"
    for engine in (engine_in(first), engine_in(second)):
        made = shims(bin_folder, no_engine_beside, engine)
        assert (made.returncode, made.stdout.splitlines()) == (
            0,
            [str(bin_folder / name) for name in LINKS],
        )
        assert f'export PATH="{bin_folder}:$PATH"' in made.stderr
        assert sorted(path.name for path in bin_folder.iterdir()) == sorted(LINKS)
        for name in LINKS:
            assert (bin_folder / name).resolve() == engine
            said = subprocess.run(
                ["sh", "-c", f"{name} --version"],
                env={"PATH": f"{bin_folder}:/usr/bin:/bin"},
                capture_output=True,
                text=True,
                check=True,
            )
            assert said.stdout == f"I am {name}, asked for --version\n"


@pytest.mark.parametrize("taken", ["file", "link"])
def test_what_is_not_ours_is_left_alone(tmp_path: Path, no_engine_beside: str, taken: str) -> None:
    engine = engine_in(tmp_path)
    theirs = tmp_path / "bin" / "sysbench"
    theirs.parent.mkdir()
    if taken == "file":
        theirs.write_text("the original")
    else:
        theirs.symlink_to("/usr/bin/sysbench")
    done = shims(theirs.parent, no_engine_beside, engine)
    assert done.returncode == 2
    assert str(theirs) in done.stderr
    assert "is not a link to dbdyno" in done.stderr
    assert theirs.read_text() == "the original" if taken == "file" else theirs.is_symlink()
    assert list(theirs.parent.iterdir()) == [theirs]


def test_a_folder_that_cannot_be_made(tmp_path: Path, no_engine_beside: str) -> None:
    engine = engine_in(tmp_path)
    (tmp_path / "file").write_text("")
    done = shims(tmp_path / "file" / "bin", no_engine_beside, engine)
    assert done.returncode == 2
    assert "no link could be created in" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in DROP_INS])
def test_the_help_of_a_command_imports_nothing_slow(name: str) -> None:
    code = f"import sys; import dbdyno.commands; dbdyno.commands.app([{name!r}]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = {"altair", "numpy", "psycopg", "pydantic", "pymysql", "rich", "scipy", "sqlglot"}
    assert not slow & {loaded.partition(".")[0] for loaded in done.stdout.split()}


def test_a_comparison_starts_without_what_only_some_runs_need() -> None:
    code = "import sys; import dbdyno.commands.comparison, dbdyno.commands.stored_run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = {
        "altair",
        "docker",
        "pandas",
        "scipy.optimize",
        "scipy.stats",
        "sqlglot",
        "dbdyno.reading.reading",
    }
    assert not slow & set(done.stdout.split())
