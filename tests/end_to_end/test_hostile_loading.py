"""LOAD DATA LOCAL against a server that means harm: it gets generated rows, once, and never a file."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.attacks import attack
from tests.end_to_end.hostile_server import (
    CLIENT_LOCAL_FILES,
    END_OF_ROWS,
    OK,
    Misdeed,
    Peer,
    asking_for,
    definition,
    header,
    hostile,
    result,
)
from tests.end_to_end.watched_file import WatchedFile

# What `attacks.plan` loads.
ROWS = 100
STORED = bytes([0x00, ROWS]) + OK[2:]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[WatchedFile]:
    """A file that no server may have."""
    watched = WatchedFile(tmp_path / "private.txt")
    yield watched
    watched.close()


def loading(file: WatchedFile, after: Callable[[Peer, bytes], bool | None]) -> Misdeed:
    """Ask for `file` in answer to LOAD DATA, take what comes, and then do `after`; all else is in order."""

    def misdeed(peer: Peer, asked: bytes) -> bool | None:
        if asked.startswith(b"LOAD DATA LOCAL"):
            peer.send(asking_for(str(file.path)))
            data = b"".join(iter(peer.read, b""))
            return after(peer, data)
        if asked.startswith(b"SELECT"):
            peer.send(*result())
        else:
            peer.send(OK)
        return True

    return misdeed


def test_a_loading_server_gets_generated_rows_and_no_file(file: WatchedFile) -> None:
    got: list[bytes] = []

    def store(peer: Peer, data: bytes) -> bool:
        got.append(data)
        peer.send(STORED)
        return True

    with hostile({"query": loading(file, store)}) as server:
        attack(server, "prepare", loading={"streams": 1}).held(0)
    assert not file.opened()
    assert WatchedFile.SECRET not in server.received
    *rows, rest = b"".join(got).split(b";")
    assert rest == b""
    assert [int(row.split(b",")[0]) for row in rows] == list(range(1, ROWS + 1))


def test_a_second_request_is_refused(file: WatchedFile) -> None:
    def ask_again(peer: Peer, _data: bytes) -> None:
        peer.send(asking_for(str(file.path)))
        peer.read_until_closed()

    with hostile({"query": loading(file, ask_again)}) as server:
        attack(server, "prepare").refused(4, "asked for a local file")
    assert not file.opened()


def test_more_rows_than_were_sent_are_not_believed(file: WatchedFile) -> None:
    def boast(peer: Peer, _data: bytes) -> bool:
        peer.send(b"\x00\xfe" + struct.pack("<Q", 2**64 - 1) + OK[2:])
        return True

    with hostile({"query": loading(file, boast)}) as server:
        attack(server, "prepare").refused(4, "LOAD DATA LOCAL stored 18446744073709551615 of 50 rows")


@pytest.mark.parametrize("closes", ["before the answer", "in the answer"])
def test_a_server_that_leaves_while_loading_is_a_lost_connection(file: WatchedFile, closes: str) -> None:
    def leave(peer: Peer, _data: bytes) -> None:
        if closes == "in the answer":
            peer.raw(header(7, 9) + b"\0\0")

    with hostile({"query": loading(file, leave)}) as server:
        attack(server, "prepare").refused(4, "the server closed the connection")


def test_an_answer_without_end_after_the_data_is_refused(file: WatchedFile) -> None:
    def never_end(peer: Peer, _data: bytes) -> None:
        peer.send(b"\x01", definition())
        while True:
            peer.raw((header(3, 1) + b"\0\0\0") * 100_000)

    with hostile({"query": loading(file, never_end)}) as server:
        attack(server, "prepare").refused(4, "protocol error")


@pytest.mark.parametrize("answer", [OK, END_OF_ROWS], ids=["ok", "rows"])
def test_load_data_that_is_answered_without_a_request(answer: bytes) -> None:
    def misdeed(peer: Peer, asked: bytes) -> bool:
        if asked.startswith(b"SELECT"):
            peer.send(*result())
        else:
            peer.send(answer if asked.startswith(b"LOAD DATA") else OK)
        return True

    with hostile({"query": misdeed}) as server:
        attack(server, "prepare").refused(4, "protocol error")


@pytest.mark.parametrize("command", ["run", "cleanup"])
def test_local_files_are_announced_by_loading_connections_only(command: str) -> None:
    seen: list[int] = []

    def look(peer: Peer, response: bytes) -> bool:
        seen.append(int.from_bytes(response[:4], "little"))
        peer.send(OK)
        return True

    with hostile({"login": look}) as server:
        attack(server, command).held(0)
    assert seen
    assert not any(capabilities & CLIENT_LOCAL_FILES for capabilities in seen)
