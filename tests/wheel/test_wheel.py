"""The wheel that .github/workflows/release.yml builds, in a new environment and in a container.

Neither has a compiler; the container, which the Dockerfile makes, is this machine's Debian with nothing but
Python, and has no network.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.end_to_end.docker_engine import SERVERS, running
from tests.unit.stored_run import make
from tests.unit.test_packaging import run_step

from dbdyno import __version__
from dbdyno.commands import COMMANDS

ROOT = Path(__file__).parents[2]
PLAN = (
    '{"schema":1,"target":{"protocol":"null"},"workload":{"name":"oltp_read_write"},"load":{"connections":2},'
    '"phases":{"warmup_us":0,"measure_us":200000},"seed":1}'
)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and those of the packages that it requires."""
    built = run_step("wheel", "Build", ROOT, HOME=os.environ["HOME"])
    assert built.returncode == 0, built.stderr
    found = list((ROOT / "dist").glob(f"dbdyno-{__version__}-*_{platform.machine()}.whl"))
    assert len(found) == 1, f"dist/ has {len(found)} wheels of this version"
    folder = tmp_path_factory.mktemp("wheels") / "dist"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--only-binary=:all:", "--dest", folder, found[0]], check=True)
    return folder


@pytest.fixture(scope="module")
def environment(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment in which the wheel is installed."""
    folder = tmp_path_factory.mktemp("user") / "environment"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = ["install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links"]
    environment = {"PATH": f"{folder}/bin"}
    subprocess.run([folder / "bin/pip", *install, wheels, "dbdyno"], env=environment, check=True)
    return folder


def run(environment: Path, *command: str | Path, stdin: str = "", **variables: str) -> str:
    """Standard output of a command, with the programs of the environment only."""
    name, *arguments = command
    done = subprocess.run(
        [environment / "bin" / name, *arguments],
        cwd=environment.parent,
        env={"PATH": f"{environment}/bin", "HOME": str(environment.parent), **variables},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_program_runs_without_a_compiler(environment: Path) -> None:
    assert shutil.which("cc", path=f"{environment}/bin") is None
    assert run(environment, "dbdyno", "--version") == f"dbdyno {__version__}\n"
    assert run(environment, "dbdyno-engine", "--version") == f"dbdyno-engine {__version__}\n"
    assert '"reason":"time-limit"' in run(environment, "dbdyno-engine", "run", stdin=PLAN)
    assert "events per second:" in run(environment, "dbdyno", "sysbench", "cpu", "--time=1", "run")


def test_the_wheel_has_the_files_of_the_lab(environment: Path, tmp_path: Path) -> None:
    """Templates, limits, pages, schemas and the chart library."""
    stored = make(tmp_path).path
    (report,) = run(environment, "dbdyno", "report", stored).splitlines()
    assert "<svg" in Path(report).read_text()
    assert run(environment, "dbdyno", "docs", "experiment").startswith("# The experiment file\n")
    assert run(environment, "dbdyno", "schema") == (ROOT / "schema/experiment.schema.json").read_text()
    path = tmp_path / "x.toml"
    path.write_text((ROOT / "examples/endpoints.toml").read_text().replace("blocks = ", "blocks = 0 # "))
    done = subprocess.run(
        [environment / "bin/dbdyno", "check", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "design.blocks" in done.stderr


def test_manual_and_completion(environment: Path) -> None:
    pages = environment / "share/man/man1"
    assert {path.stem for path in pages.iterdir()} == {
        "dbdyno",
        *(f"dbdyno-{name}" for name in COMMANDS),
    }
    if shutil.which("man"):
        # In an activated environment.
        variables = {**os.environ, "PATH": f"{environment}/bin:{os.environ['PATH']}"}
        shown = subprocess.run(
            ["man", "--where", "dbdyno-run"], env=variables, capture_output=True, text=True, check=False
        )
        assert shown.stdout == f"{pages}/dbdyno-run.1\n"
    words = {"COMP_WORDS": "dbdyno\nrun\noltp_read", "COMP_CWORD": "2", "_DBDYNO_COMPLETE": "complete_bash"}
    assert run(environment, "dbdyno", **words).split() == ["oltp_read_write", "oltp_read_only"]


def test_the_dockerfile_makes_a_container_without_compiler_and_network(wheels: Path) -> None:
    root = SERVERS / "docker-python.tar"
    assert root.is_file(), f"{root} is missing; make test-long makes it"
    base, image = "dbdyno-test/python:debian", "dbdyno-test/dbdyno:wheel"
    with running() as engine:
        # No package index can be reached: pip takes everything from the folder that the Dockerfile copies.
        offline = "ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/dist"
        engine.docker("import", "--change", offline, str(root), base)
        build = ["build", "--network=none", "--build-arg", f"BASE={base}", "--tag", image]
        engine.docker(*build, "--file", str(ROOT / "Dockerfile"), str(wheels.parent))
        container = ["run", "--rm", "--network=none"]
        assert engine.docker(*container, image, "--version") == f"dbdyno {__version__}\n"
        script = f"command -v cc gcc; echo '{PLAN}' | dbdyno-engine run && dbdyno sysbench --version"
        output = engine.docker(*container, "--entrypoint", "sh", image, "-c", script).splitlines()
        assert output[0].startswith('{"type":"hello"'), "a compiler is installed"
        assert '"reason":"time-limit"' in output[-2]
        assert output[-1].startswith("sysbench 1.0")
