"""Copies, locks, places and ports: files only, no server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dbdyno.servers import owned_folder, ports
from dbdyno.servers.account import ServerUser, server_user
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.snapshots.copying import copy_tree, sync_tree, tree_bytes
from dbdyno.servers.snapshots.slots import Slots
from dbdyno.servers.workspace import Lock, Workspace, filesystem_of, socket_directory

STRANGER = ServerUser("stranger", 12345, 12345, switches=True)


def test_a_copy_has_the_same_bytes_and_no_holes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "db" / "deep").mkdir(parents=True)
    (source / "db" / "empty").touch()
    with (source / "db" / "deep" / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(3_000_000)
        file.write(b"end")
    assert (source / "db" / "deep" / "sparse").stat().st_blocks * 512 < 1_000_000
    assert copy_tree(source, tmp_path / "copy", server_user()) == 3_000_003
    copy = tmp_path / "copy" / "db" / "deep" / "sparse"
    assert copy.read_bytes() == (source / "db" / "deep" / "sparse").read_bytes()
    assert copy.stat().st_blocks * 512 >= 3_000_003
    assert (tmp_path / "copy" / "db" / "empty").stat().st_size == 0
    assert tree_bytes(tmp_path / "copy") == 3_000_003
    sync_tree(tmp_path / "copy")


def test_a_copy_never_writes_over_anything(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "copy").mkdir()
    with pytest.raises(FileExistsError):
        copy_tree(tmp_path / "source", tmp_path / "copy", server_user())


def test_a_lock_is_held_against_others_and_shared_with_readers(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, second, third = Lock(path), Lock(path), Lock(path)
    assert first.acquire(wait=False)
    assert not second.acquire(wait=False)
    assert first.acquire(shared=True)
    assert second.acquire(shared=True, wait=False)
    assert not third.acquire(wait=False)
    first.release()
    second.release()
    second.release()
    assert third.acquire(wait=False)


def test_a_lock_on_a_file_that_was_removed_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    old, waiting = Lock(path), Lock(path)
    assert old.acquire()
    path.unlink()
    old.release()
    assert waiting.acquire(wait=False)
    assert not Lock(path).acquire(wait=False)


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    code = (
        "import os; from dbdyno.servers.workspace import Lock, Path; "
        f"Lock(Path({str(tmp_path / 'lock')!r})).acquire(); os._exit(9)"
    )
    environment = {"PYTHONPATH": str(Path(__file__).parents[2] / "lab"), "PATH": os.environ["PATH"]}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 9
    assert Lock(tmp_path / "lock").acquire(wait=False)


def test_what_a_killed_run_left_behind_is_removed(results: Path) -> None:
    with closing(Workspace.open(results / "leftovers")) as workspace:
        gone, used = workspace.servers / "gone", workspace.server_directory("used")
        owned_folder.create(gone, workspace.root)
        (gone / "data").touch()
        Lock(gone.with_suffix(".lock")).release()
        with closing(Workspace.open(results / "leftovers")) as reader:
            # A command that only reads removes nothing, and uses other names.
            assert reader.server_directory("gone").name == "gone-2"
            assert (gone / "data").exists()
        with closing(Workspace.open(results / "leftovers", removes=True)):
            assert not gone.exists()
            assert not gone.with_suffix(".lock").exists()
            assert used.exists()
    assert not used.exists()


def test_a_name_gives_the_same_directory_unless_it_is_in_use(results: Path) -> None:
    with closing(Workspace.open(results / "names")) as workspace:
        first, second = (
            workspace.server_directory("Pool of/threads"),
            workspace.server_directory("Pool of/threads"),
        )
        assert [first.name, second.name] == ["pool-of-threads", "pool-of-threads-2"]
        workspace.discard(first)
        workspace.discard(first)
        assert workspace.server_directory("Pool of/threads") == first


def test_the_places_of_a_comparison_are_equally_long(results: Path) -> None:
    with closing(Workspace.open(results / "slots")) as workspace:
        with closing(Slots(workspace, 12)) as slots:
            places = [slots[number] for number in range(len(slots))]
            assert [place.directory.name for place in places][:2] == ["slot-01", "slot-02"]
            assert len({len(str(place.directory)) for place in places}) == 1
            assert len({len(str(place.sockets)) for place in places}) == 1
            used = [port for place in places for port in (place.port, place.admin_port)]
            assert len(set(used)) == 24
            assert {len(str(port)) for port in used} == {5}
            assert all(place.directory.is_dir() for place in places)
        assert not any(place.directory.exists() for place in places)
        assert [path.name for path in workspace.slot_directories(2)] == ["slot-1", "slot-2"]


def test_a_place_in_use_gives_all_places_another_name(results: Path) -> None:
    """Another run's directory and its content stay, and no place is longer than the others."""
    with (
        closing(Workspace.open(results / "used")) as other,
        closing(Workspace.open(results / "used")) as mine,
    ):
        (_, used) = other.slot_directories(2)
        other.discard(used.with_name("slot-1"))
        (used / "data").touch()
        with closing(Slots(mine, 2)) as slots:
            assert [slots[0].directory.name, slots[1].directory.name] == ["run-2-slot-1", "run-2-slot-2"]
            # The name that was free is not held for nothing.
            assert Lock(used.with_name("slot-1.lock")).acquire(wait=False)
        assert (used / "data").exists()


def test_places_have_short_sockets_together_and_no_port_that_is_declared(results: Path) -> None:
    deep = results / ("x" * (100 - len(str(results))))
    with closing(Workspace.open(deep)) as workspace:
        with closing(Slots(workspace, 2)) as slots:
            first, second = slots[0], slots[1]
            assert first.sockets != first.directory
            assert len(str(first.sockets)) == len(str(second.sockets)) < 40
            assert first.sockets != second.sockets
        assert not first.sockets.exists()
        with closing(Slots(workspace, 2, [first.port, second.admin_port])) as slots:
            ports_now = {slots[0].port, slots[0].admin_port, slots[1].port, slots[1].admin_port}
            assert not ports_now & {first.port, second.admin_port}


def test_space_is_asked_for_before_it_is_needed(workspace: Workspace) -> None:
    workspace.require_space(1, "a byte")
    with pytest.raises(
        ServerProblem, match=r"no space left for a snapshot: it needs 1,000,000,000 MB"
    ) as caught:
        workspace.require_space(10**15, "a snapshot")
    assert caught.value.exit_code == 4


def test_a_closed_directory_on_the_way_keeps_the_servers_user_out(tmp_path: Path) -> None:
    inner = tmp_path / "closed" / "open"
    inner.mkdir(parents=True)
    inner.chmod(0o755)
    (tmp_path / "closed").chmod(0o700)
    assert not STRANGER.may_enter(inner)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to give its rights away")
def test_root_gives_its_rights_away_and_looks_for_another_place(tmp_path: Path) -> None:
    assert server_user().uid != 0
    (tmp_path / "closed").mkdir(mode=0o700)
    with closing(Workspace.open(tmp_path / "closed" / "results")) as workspace:
        assert not workspace.base.is_relative_to(tmp_path)
        assert workspace.user.may_enter(workspace.base)


def test_data_in_memory_are_a_warning() -> None:
    shared_memory = Path("/dev/shm")
    if filesystem_of(shared_memory) != "tmpfs":
        pytest.fail("/dev/shm is no tmpfs here, so there is nothing to try this on")
    with closing(Workspace.open(shared_memory / f"dbdyno-test-{os.getpid()}")) as workspace:
        assert "the data are in memory" in workspace.warnings[0]
        assert workspace.filesystem == "tmpfs"
        for name in ("servers", "snapshots", "empty", ""):
            (workspace.base / name).rmdir()
    (shared_memory / f"dbdyno-test-{os.getpid()}").rmdir()


def test_a_socket_moves_to_a_short_path_when_the_kernel_could_not_hold_the_long_one(tmp_path: Path) -> None:
    assert socket_directory(tmp_path, server_user()) == tmp_path
    short = socket_directory(tmp_path / ("x" * 120), server_user())
    assert len(str(short / "server.sock")) < 108
    short.rmdir()


def test_ports_are_the_same_for_the_same_name_and_never_used_ones() -> None:
    first = ports.reserve_pair("/data/a", None)
    assert first == ports.reserve_pair("/data/a", None)
    assert len(set(first)) == 2
    assert ports.reserve_pair("/data/a", 4711)[0] == 4711
    with socket.socket() as other:
        other.bind(("127.0.0.1", first[0]))
        other.listen()
        assert first[0] not in ports.reserve_pair("/data/a", None)
        with pytest.raises(ServerProblem, match=f"port {first[0]} on 127.0.0.1 is in use") as caught:
            ports.require_free(first[0])
        assert caught.value.exit_code == 3
    ports.release("/data/a")


def test_ports_belong_to_one_server_until_it_releases_them_or_its_process_ends(tmp_path: Path) -> None:
    """Minutes can pass between the choice of a port and the start of its server, and several dbdyno run at
    a time on machines of CI.
    """
    name = str(tmp_path)
    reserve = f"from dbdyno.servers import ports; print(*ports.reserve_pair({name!r}, None), flush=True)"
    command = [sys.executable, "-c", f"{reserve}; input()"]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdin is not None
    assert other.stdout is not None
    first = {int(port) for port in other.stdout.readline().split()}
    assert len(first) == 2
    assert first.isdisjoint(ports.reserve_pair(name, None))
    other.kill()
    other.wait()
    assert first == set(ports.reserve_pair(name, None))
    ports.release(name)


def test_a_user_namespace_needs_a_user_for_servers() -> None:
    """There chown to nobody fails: the kernel maps root alone."""
    code = "from dbdyno.servers.account import server_user; server_user()"
    namespace = ["unshare", "--user", "--map-root-user", sys.executable, "-c", code]
    answer = subprocess.run(namespace, capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == 1
    assert "ServerProblem: dbdyno runs as root of a user namespace without the user " in answer.stderr
