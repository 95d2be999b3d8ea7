"""`dbdyno servers remove`: it waits for comparisons, and leaves no part of a version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from dbdyno.commands.servers import servers
from dbdyno.problem import Problem
from dbdyno.servers import owned_folder
from dbdyno.servers.sources.installed import install, list_installed
from dbdyno.servers.sources.source import Release

# Measures until its standard input ends.
MEASURING = """
import sys
from dbdyno.run.machine_lock import only_measurement
with only_measurement("dbdyno compare x.toml", print, share=False):
    print("measures", flush=True)
    sys.stdin.read()
"""
REMOVE = [sys.executable, "-m", "dbdyno", "servers", "remove", "postgresql", "18"]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed version, which is the only one."""
    monkeypatch.setenv("DBDYNO_SERVERS", str(tmp_path))
    release = Release("postgresql", "18.4", "maven", "item", "")
    folder = tmp_path / release.name
    owned_folder.create(folder, tmp_path)
    (folder / "server" / "bin").mkdir(parents=True)
    (folder / "release.json").write_text(json.dumps(asdict(release)))
    return folder


def test_a_removal_that_is_interrupted_leaves_no_installed_version(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dbdyno.servers.owned_folder.shutil.rmtree", interrupt)
    with pytest.raises(KeyboardInterrupt):
        servers("remove", "postgresql", "18")
    assert list_installed() == []
    assert not installed.exists()


def test_a_removal_waits_for_a_comparison(installed: Path) -> None:
    environment = {**os.environ, "DBDYNO_SERVERS": str(installed.parent)}
    with subprocess.Popen(
        [sys.executable, "-c", MEASURING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as measuring:
        assert measuring.stdout is not None
        assert measuring.stdout.readline() == "measures\n"
        with subprocess.Popen(REMOVE, stderr=subprocess.PIPE, text=True, env=environment) as removing:
            assert removing.stderr is not None
            assert removing.stderr.readline().startswith("waiting for dbdyno compare x.toml")
            assert installed.is_dir()
            measuring.communicate()
            assert removing.stderr.read() == "postgresql 18.4 (maven) is removed\n"
    assert removing.returncode == 0
    assert not installed.exists()


def test_only_an_installed_version_with_a_mark_is_removed(installed: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    installed.rename(elsewhere)
    installed.symlink_to(elsewhere)
    with pytest.raises(Problem, match="is a symbolic link, or has no mark"):
        servers("remove", "postgresql", "18", share_machine=True)
    installed.unlink()
    elsewhere.rename(installed)
    (installed / owned_folder.MARK).unlink()
    with pytest.raises(Problem, match="has no mark of dbdyno"):
        servers("remove", "postgresql", "18", share_machine=True)
    assert (installed / "server" / "bin").is_dir()


@pytest.mark.parametrize("link", ["downloads", "downloads/NAME", "NAME.unfinished", "NAME.lock"])
def test_an_installation_follows_no_link(tmp_path: Path, link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBDYNO_SERVERS", str(tmp_path / "cache"))
    release = Release("postgresql", "18.4", "url", str(tmp_path / "missing.tar.xz"), "")
    precious = tmp_path / "precious"
    (precious / release.name).mkdir(parents=True)
    (precious / release.name / "file").touch()
    path = tmp_path / "cache" / link.replace("NAME", release.name)
    path.parent.mkdir(parents=True)
    path.symlink_to(precious)
    with pytest.raises(Problem) as caught:
        install(release, print)
    assert "missing.tar.xz" not in str(caught.value), "it is refused before it downloads"
    assert sorted(one.name for one in precious.rglob("*")) == sorted([release.name, "file"])
    with pytest.raises(Problem, match="cannot be the name of a folder"):
        install(Release("postgresql", "../../18", "url", "x", ""), print)


def test_a_removal_need_not_wait(installed: Path) -> None:
    with pytest.raises(Problem, match="--share-machine is for remove"):
        servers("list", share_machine=True)
    servers("remove", "postgresql", "18", share_machine=True)
    assert not installed.exists()
