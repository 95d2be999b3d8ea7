"""What dbdyno removes and kills: only what has its mark, and nothing behind a link."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from dbdyno.commands.clean import clean
from dbdyno.servers import commits, owned_folder
from dbdyno.servers.account import ServerUser, server_user
from dbdyno.servers.kinds import process
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.snapshots.copying import copy_tree
from dbdyno.servers.snapshots.directories import remove_unused_snapshots
from dbdyno.servers.workspace import Lock, Workspace

SELF = ServerUser("self", os.geteuid(), os.getegid(), switches=False)


@pytest.fixture
def place(results: Path) -> Iterator[Path]:
    """A new results directory."""
    folder = results / "owned"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder of the user with everything that dbdyno might take for its own."""
    folder = tmp_path / "precious"
    for name in ("slot-1", "a", "key.unfinished"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text("precious")
    (folder / "a" / "snapshot.json").write_text('{"bytes": 1, "made_of": {}}')
    for name in ("slot-1.lock", "a.lock", "key.lock"):
        (folder / name).touch()
    return folder


def content(folder: Path) -> dict[str, object]:
    """Every file with its content, owner and mode."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_uid,
            path.read_text() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


@contextmanager
def running(*command: str, cwd: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(command, cwd=cwd)
    try:
        time.sleep(0.3)
        yield child
    finally:
        child.kill()
        child.wait()


def use(results: Path) -> None:
    """What a run does with its directories."""
    with closing(Workspace.open(results, removes=True)) as workspace:
        workspace.server_directory("a")
        workspace.slot_directories(2)
        remove_unused_snapshots(workspace, 0)


@pytest.mark.parametrize("link", [".servers", ".servers/servers", ".servers/snapshots"])
def test_a_link_to_a_folder_of_the_user_is_refused(place: Path, precious: Path, link: str) -> None:
    (precious / "servers").mkdir()
    before = content(precious)
    (place / link).parent.mkdir(exist_ok=True)
    (place / link).symlink_to(precious)
    with pytest.raises(ServerProblem, match="is a symbolic link"):
        use(place)
    for keep in (None, 0):
        with pytest.raises(ServerProblem, match="is a symbolic link"):
            clean(place, keep)
    assert content(precious) == before


def test_the_results_folder_itself_may_be_a_link(place: Path) -> None:
    (place / "real").mkdir(mode=0o711)
    (place / "results").symlink_to("real")
    use(place / "results")
    assert not list((place / "real/.servers/servers").iterdir())


@pytest.mark.parametrize("removes", [False, True])
def test_entries_that_are_links_or_have_no_mark_stay(
    place: Path, precious: Path, removes: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(Workspace.open(place)) as workspace:
        servers, snapshots = workspace.servers, workspace.snapshots
    for folder in (servers, snapshots):
        (folder / "a").symlink_to(precious / "a")
        (folder / "slot-1").symlink_to(precious / "slot-1")
        (folder / "key.unfinished").symlink_to(precious / "key.unfinished")
        (folder / "b.lock").symlink_to(precious / "new.lock")
        (folder / "c.lock").symlink_to(precious / "a.lock")
        (folder / "mine.lock").touch()
        shutil.copytree(precious / "a", folder / "of-an-earlier-version")
        (folder / "of-an-earlier-version.lock").touch()
    before, inside = content(precious), content(servers.parent)
    if removes:
        use(place)
        clean(place, 0)
    clean(place, None)
    assert content(precious) == before
    left = content(servers.parent)
    assert {name: left.get(name) for name in inside} == inside
    assert f"{servers / 'of-an-earlier-version'} has no mark" in capsys.readouterr().err


def test_a_link_in_a_directory_of_dbdyno_is_removed_and_not_followed(place: Path, precious: Path) -> None:
    before = content(precious)
    with closing(Workspace.open(place)) as workspace:
        directory = workspace.server_directory("a")
        (directory / "data").mkdir()
        (directory / "link").symlink_to(precious)
        (directory / "data" / "deep").symlink_to(precious)
        os.link(precious / "a" / "file", directory / "data" / "hard")
    assert not directory.exists()
    assert content(precious) == before


def test_a_mark_is_valid_for_its_own_directory_only(place: Path) -> None:
    owned_folder.create(place / "a", place)
    assert owned_folder.is_owned(place / "a", place)
    (place / "a").rename(place / "a.unfinished")
    assert owned_folder.is_owned(place / "a.unfinished", place)
    shutil.copytree(place / "a.unfinished", place / "copied")
    (place / "linked").symlink_to(place / "a.unfinished")
    for name in ("copied", "linked"):
        assert not owned_folder.remove(place / name, place)
    mark = place / "a.unfinished" / owned_folder.MARK
    os.link(mark, place / "second name")
    assert not owned_folder.remove(place / "a.unfinished", place)
    (place / "second name").unlink()
    assert owned_folder.remove(place / "a.unfinished", place)


def test_an_interrupted_removal_keeps_the_mark(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owned_folder.create(place / "a", place)
    (place / "a" / "data").mkdir()
    (place / "a" / ".early").touch()
    (place / "a" / "late").touch()

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        owned_folder.remove(place / "a", place)
    monkeypatch.undo()
    assert owned_folder.remove(place / "a", place)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_mounted_folder_is_not_emptied(place: Path, precious: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from dbdyno.servers import owned_folder as o; "
        "root = Path(sys.argv[1]); print(o.remove(root / 'a', root))"
    )
    owned_folder.create(place / "a", place)
    (place / "a" / "with blank").mkdir()
    before = content(precious)
    mount = f'mount --bind "{precious}" "{place}/a/with blank" && exec "$0" -c "$1" "{place}"'
    command = ["unshare", "--mount", "sh", "-c", mount, sys.executable, script]
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (output.stdout.strip(), output.stderr) == ("False", "")
    assert content(precious) == before


def test_processes_of_the_user_live_on(place: Path) -> None:
    """They have files of a leftover directory open: a log, a data file for writing, the mark for reading."""
    with closing(Workspace.open(place)) as workspace:
        directory = workspace.servers / "a"
        owned_folder.create(directory, place)
        Lock(directory.with_suffix(".lock")).release()
    (directory / "error.log").touch()
    write = f"import time; files = [open({str(directory / 'error.log')!r}, 'a')]; time.sleep(60)"
    mark = str(directory / owned_folder.MARK)
    with (
        running(sys.executable, "-c", write, cwd=directory) as editor,
        running("tail", "-f", str(directory / "error.log"), mark) as reader,
        running("sh", "-c", "sleep 60; :", cwd=directory) as shell,
    ):
        use(place)
        assert not directory.exists()
        assert [one.poll() for one in (editor, reader, shell)] == [None] * 3


@pytest.mark.parametrize("closes", [False, True], ids=["inherits the mark", "closes inherited files"])
def test_a_process_that_dbdyno_has_left_is_killed(place: Path, closes: bool) -> None:
    """A server's child that is not killed with dbdyno, such as a backend of PostgreSQL."""
    with closing(Workspace.open(place)) as workspace:
        directory = workspace.servers / "a"
        owned_folder.create(directory, place)
        Lock(directory.with_suffix(".lock")).release()
    code = (
        "import os, sys, time; from pathlib import Path; "
        "os.closerange(3, 100) if sys.argv[1] == 'True' else None; "
        "file = open('error.log', 'a') if sys.argv[1] == 'True' else None; "
        "os.setsid() if os.fork() == 0 else os._exit(0); "
        "Path('pid').write_text(str(os.getpid())); time.sleep(60)"
    )
    # The log is not what tells it: the standard streams are closed too.
    command = [sys.executable, "-c", code, str(closes)]
    child = process.start(command, user=SELF, cpus=None, directory=directory, output=directory / "out")
    child.wait()
    deadline = time.monotonic() + 10
    while not (directory / "pid").exists() or not (directory / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    left = int((directory / "pid").read_text())
    try:
        # A command that only reads kills nothing.
        Workspace.open(place).close()
        clean(place, None)
        os.kill(left, 0)
        use(place)
        stat = Path("/proc", str(left), "stat")
        assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"
    finally:
        with suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)


def test_no_file_behind_a_link_gets_another_owner_or_mode(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o640)
    link, hard = tmp_path / "link", tmp_path / "hard"
    link.symlink_to(secret)
    os.link(secret, hard)
    for path in (link, hard):
        with pytest.raises(ServerProblem, match="dbdyno did not create it"):
            server_user().own(path, 0o600)
    assert (secret.stat().st_mode & 0o777, secret.stat().st_uid) == (0o640, os.geteuid())
    server_user().write_file(link, "new")
    assert secret.read_text() == "secret"
    assert not link.is_symlink()


def test_a_snapshot_with_a_link_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "ibdata1").symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="is a symbolic link"):
        copy_tree(tmp_path / "data", tmp_path / "copy", SELF)
    assert not (tmp_path / "copy").exists()


def test_a_lock_is_not_opened_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        Lock(tmp_path / "link.lock")
    assert not (tmp_path / "elsewhere").exists()


def test_a_build_changes_no_folder_behind_a_link(tmp_path: Path) -> None:
    repository, other = tmp_path / "repository", tmp_path / "other"
    for folder in (repository, other):
        folder.mkdir()
        git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "commit", "-qm", "one", "--allow-empty"], check=True)
    (other / "untracked").write_text("precious")
    builds, how = tmp_path / "results" / ".builds", commits.Build(("true",), 10.0)
    for name in ("source", "HEAD"):
        shutil.rmtree(builds, ignore_errors=True)
        builds.parent.mkdir(exist_ok=True)
        owned_folder.create(builds, builds.parent)
        (builds / name).symlink_to(other)
        with pytest.raises(ServerProblem, match="is not a folder of dbdyno"):
            commits.build(repository, "HEAD", how, builds)
    builds.rename(tmp_path / "moved")
    builds.symlink_to(other)
    with pytest.raises(ServerProblem):
        commits.build(repository, "HEAD", how, builds)
    assert (other / "untracked").read_text() == "precious"
    assert {path.name for path in other.iterdir()} == {".git", "untracked"}


def test_the_search_for_processes_reads_no_flags_of_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def flags(_process: Path, descriptor: str) -> int:
        read.append(descriptor)
        return os.O_RDONLY

    monkeypatch.setattr(owned_folder, "_flags", flags)
    directory = tmp_path / "server"
    owned_folder.create(directory, tmp_path)
    with (directory / "data").open("wb") as other:
        code = "import sys; sys.stdin.read()"
        files = [other.fileno()]
        with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, pass_fds=files) as process:
            owned_folder.end_processes(directory, tmp_path)
            assert process.poll() is None
            process.communicate()
    # A machine has thousands of open files, and every start of a server looks at them.
    assert read == []
