"""The set-up that `make` does: lock files, versions, and what it says when something is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import dbdyno

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text())
RELEASE = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]


def normal(requirement: str) -> str:
    """A package's name as indexes compare it."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


def run(script: Path, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path, "HOME": "/nonexistent"}
    command = ["/bin/bash", str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)


def test_one_version_everywhere() -> None:
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "dbdyno.__version__"}
    assert CARGO["workspace"]["package"]["version"] == dbdyno.__version__
    newest = re.findall(
        r"^## (\d\S*) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )[0]
    assert newest == dbdyno.__version__


def test_the_lock_pins_every_package_with_hashes() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pinned = {
        normal(name)
        for name in re.findall(r"^([A-Za-z0-9._-]+)==\S+ \\\n +--hash=sha256:", lock, re.MULTILINE)
    }
    project = PROJECT["project"]
    wanted = [
        *project["dependencies"],
        *project["optional-dependencies"]["dev"],
        *PROJECT["build-system"]["requires"],
    ]
    assert {normal(requirement) for requirement in wanted} <= pinned
    assert "://" not in lock


def test_cargos_lock_is_committed_and_holds_every_crate() -> None:
    locked = {package["name"] for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    crates = {tomllib.loads(path.read_text())["package"]["name"] for path in ROOT.glob("engine/*/Cargo.toml")}
    assert crates <= locked


def test_debian_packages_come_from_one_list() -> None:
    lines = (ROOT / "packaging" / "debian-packages.txt").read_text().splitlines()
    entries = [line.split(maxsplit=2) for line in lines if line.strip() and not line.startswith("#")]
    purposes = {"build", "servers", "peers", "browser", "fuzz", "faults", "docker"}
    assert all(len(entry) == 3 and entry[1] in purposes for entry in entries)
    tracked = [*ROOT.glob("scripts/*"), ROOT / "Makefile", ROOT / ".ci" / "run"]
    assert [path.name for path in tracked if "apt-get install" in path.read_text()] == ["debian-packages"]


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with the few programs the scripts need, and nothing else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "dirname", "sed", "cut", "sort", "head"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def test_a_missing_or_old_cargo_gives_one_command(tools: Path) -> None:
    script = ROOT / "scripts" / "rust-toolchain"
    needed = CARGO["workspace"]["package"]["rust-version"]
    missing = run(script, path=str(tools))
    assert missing.returncode == 1
    assert f"cargo is not installed; dbdyno's engine needs Rust {needed} or newer." in missing.stderr
    assert missing.stderr.count("\n") == 2
    program(tools, "cargo", "echo cargo 1.9.0")
    program(tools, "rustup", "exit 0")
    old = run(script, path=str(tools))
    assert old.returncode == 1
    assert old.stderr.splitlines()[1].strip() == "rustup update stable"
    program(tools, "cargo", f"echo cargo {needed}.0-nightly")
    assert run(script, path=str(tools)).returncode == 0


@pytest.fixture
def package_script(tmp_path: Path) -> Path:
    """The script with a list of its own: one package that is there, and two that are not."""
    for folder in ("scripts", "packaging"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "scripts" / "debian-packages", tmp_path / "scripts")
    (tmp_path / "packaging" / "debian-packages.txt").write_text(
        "# a comment\nthere build true\ngone build false\nlost build exit 3\nother peers false\n"
    )
    return tmp_path / "scripts" / "debian-packages"


def test_who_is_not_root_is_told_what_to_install(package_script: Path, tools: Path) -> None:
    program(tools, "apt-get", "exit 9")
    program(tools, "id", "echo 1000")
    answer = run(package_script, "build", path=str(tools))
    assert answer.returncode == 1
    assert "Missing packages: gone lost." in answer.stderr
    assert "sudo apt-get install --no-install-recommends gone lost" in answer.stderr
    assert run(package_script, "servers", path=str(tools)).returncode == 0


def test_root_installs_what_is_missing_and_nothing_else(
    package_script: Path, tools: Path, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    # The first attempt fails, as with package lists that were never fetched.
    program(tools, "apt-get", f'echo "$@" >>{calls}; [[ "$1" == update || $(wc -l <{calls}) -gt 1 ]]')
    program(tools, "id", "echo 0")
    (tools / "wc").symlink_to(shutil.which("wc") or "")
    answer = run(package_script, "build", path=str(tools))
    assert answer.returncode == 0, answer.stderr
    install = "install --yes --quiet --no-install-recommends gone lost"
    assert calls.read_text().splitlines() == [install, "update --quiet", install]


def test_a_machine_without_debian_is_told_how_to_get_mysql(tools: Path, tmp_path: Path) -> None:
    script = ROOT / "scripts" / "mysql-root"
    (tools / "realpath").symlink_to(shutil.which("realpath") or "")
    place = tmp_path / "mysql"
    answer = run(script, str(place), path=str(tools))
    assert answer.returncode == 1
    assert "apt-get is not installed" in answer.stderr
    assert f"so that {place}/bin/mysqld exists" in answer.stderr
    assert not place.exists()
    # What is there already is taken as it is, and a folder with something else in it is not touched.
    (place / "bin").mkdir(parents=True)
    other = run(script, str(place), path=str(tools))
    assert other.returncode == 1
    assert f"{place} exists and contains no mysqld" in other.stderr
    program(place / "bin", "mysqld", "exit 0")
    assert run(script, str(place), path=str(tools)).returncode == 0


def test_apt_without_lists_or_network_says_so(tools: Path, tmp_path: Path) -> None:
    script = ROOT / "scripts" / "mysql-root"
    for name in ("realpath", "mkdir", "rm", "flock"):
        (tools / name).symlink_to(shutil.which(name) or "")
    program(tools, "dpkg", "exit 0")
    program(tools, "apt-get", "exit 0")
    place = tmp_path / "servers" / "mysql"
    unlisted = run(script, str(place), path=str(tools))
    assert unlisted.returncode == 1
    assert "apt has no Debian mirror" in unlisted.stderr
    program(
        tools,
        "apt-get",
        '[[ "$1" == indextargets ]] && echo mirror:/debian/ || { echo "E: no route" >&2; exit 100; }',
    )
    unreachable = run(script, str(place), path=str(tools))
    assert unreachable.returncode == 1
    assert "E: no route" in unreachable.stderr
    assert "the lists of unstable could not be fetched" in unreachable.stderr
    assert not [path for path in place.parent.iterdir() if path.is_dir()], "nothing half done is left"


def test_scripts_can_be_run() -> None:
    scripts = [*(ROOT / "scripts").iterdir(), ROOT / ".ci" / "run"]
    assert all(os.access(path, os.X_OK) for path in scripts if path.is_file())


def test_every_file_that_the_makefile_names_exists() -> None:
    # A target without a rule, such as a source that was renamed, ends make at once. Targets that call make
    # themselves would run.
    command = ["make", "--dry-run", "build", "check", "test"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def step(job: str, name: str) -> str:
    """The commands of a step of the release workflow."""
    steps: list[dict[str, Any]] = RELEASE[job]["steps"]
    return next(str(each["run"]) for each in steps if each.get("name") == name)


def run_step(job: str, name: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A step as GitHub runs it."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step(job, name)]
    environment = {"PATH": os.environ["PATH"], **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_release_has_a_wheel_for_each_architecture_of_the_script() -> None:
    (architectures,) = re.findall(r"architectures=\((\w+ \w+)\)", (ROOT / "scripts/wheels").read_text())
    matrix = RELEASE["wheel"]["strategy"]["matrix"]["include"]
    assert [each["architecture"] for each in matrix] == architectures.split()
    # Of the runners only those for ARM name their architecture.
    assert [each["runner"].endswith("-arm") for each in matrix] == [False, True]


def test_a_release_builds_only_the_version_of_its_tag() -> None:
    right = run_step("wheel", "Check the tag", ROOT, GITHUB_REF_NAME=f"v{dbdyno.__version__}")
    assert right.returncode == 0, right.stderr
    wrong = run_step("wheel", "Check the tag", ROOT, GITHUB_REF_NAME="v0.0.1")
    assert wrong.returncode == 1
    assert f"The tag is v0.0.1, but lab/dbdyno/__init__.py has version {dbdyno.__version__}." in wrong.stderr


def test_the_steps_of_a_release_call_what_exists() -> None:
    """tests/wheel runs the steps that build and test."""
    called = "\n".join(step("wheel", name) for name in ("Install packages", "Build", "Test"))
    files = re.findall(r"(?:scripts|tests)/[\w-]+", called)
    assert files == ["scripts/debian-packages", "scripts/wheels", "tests/wheel"]
    assert all((ROOT / file).exists() for file in files)
    targets = re.findall(r"make ([\w-]+)", called)
    assert targets == ["build"]
    assert re.search(r"^build:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_a_release_publishes_all_wheels(tmp_path: Path) -> None:
    programs, dist = tmp_path / "bin", tmp_path / "dist"
    programs.mkdir()
    dist.mkdir()
    wheels = [f"dbdyno-1.2.3-py3-none-manylinux_2_17_{name}.whl" for name in ("aarch64", "x86_64")]
    for name in wheels:
        (dist / name).touch()
    program(programs, "gh", 'printf "%s\\n" "$@"')
    path = f"{programs}:{os.environ['PATH']}"
    variables = {"GITHUB_REF_NAME": "v1.2.3", "GITHUB_REPOSITORY": "owner/dbdyno", "PATH": path}
    published = run_step("release", "Publish", tmp_path, **variables)
    assert published.returncode == 0, published.stderr
    assert published.stdout.splitlines() == [
        *("release", "create", "v1.2.3", "--repo", "owner/dbdyno", "--verify-tag", "--title", "dbdyno 1.2.3"),
        *(f"dist/{name}" for name in wheels),
    ]
