"""A hostile server gets nothing: no file, no memory, no time without end, and never a panic.

Passwords are in `test_hostile_login`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.attacks import (
    CONNECT_S,
    DRAIN_S,
    MEASURE_S,
    attack,
    interrupt,
)
from tests.end_to_end.hostile_server import (
    END_OF_ROWS,
    OK,
    Misdeed,
    Peer,
    State,
    asking_for,
    definition,
    drips,
    error,
    greeting,
    header,
    hostile,
    is_silent,
    prepared,
    result,
    sends,
    sends_and_closes,
)
from tests.end_to_end.watched_file import WatchedFile

# A server that is slow by design must not make a run longer than what was planned for it.
PLANNED_S = CONNECT_S + MEASURE_S + DRAIN_S
BLOCK = 1 << 20


@pytest.fixture
def file(tmp_path: Path) -> Iterator[WatchedFile]:
    """A file that no server may have."""
    watched = WatchedFile(tmp_path / "private.txt")
    yield watched
    watched.close()


def test_the_watch_on_a_file_sees_a_look_at_it(file: WatchedFile) -> None:
    assert not file.opened()
    assert file.path.read_bytes() == WatchedFile.SECRET
    assert file.opened()


# --- files


@pytest.mark.parametrize(
    ("state", "command", "exit_code"),
    [
        ("greeting", "run", 3),
        ("login", "run", 3),
        ("prepare", "run", 3),
        ("execute", "run", 4),
        ("query", "prepare", 4),
        ("query", "cleanup", 4),
    ],
)
def test_a_file_a_server_asks_for_is_never_opened(
    state: State, command: str, exit_code: int, file: WatchedFile
) -> None:
    def ask(peer: Peer, _asked: bytes) -> None:
        peer.send(asking_for(str(file.path)))
        peer.read_until_closed()

    with hostile({state: ask}) as server:
        done = attack(server, command).refused(exit_code, "protocol error")
        if state in {"prepare", "execute", "query"}:
            assert "asked for a local file" in done.words
    assert not file.opened()
    assert WatchedFile.SECRET not in server.received


def test_a_file_is_refused_to_statements_sent_as_text(file: WatchedFile) -> None:
    def ask(peer: Peer, _asked: bytes) -> None:
        peer.send(asking_for(str(file.path)))
        peer.read_until_closed()

    workload = {"name": "oltp_point_select", "options": {"table_size": 100}, "statements": "text"}
    with hostile({"query": ask}) as server:
        attack(server, workload=workload).refused(4, "asked for a local file")
    assert not file.opened()


# --- the greeting and the login


def packet(payload: bytes, sequence: int = 0) -> bytes:
    return header(len(payload), sequence) + payload


NO_GREETING = {
    "another protocol": sends(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
    "a web server": sends(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "nothing in a packet": sends(packet(b"")),
    "an old protocol": sends(packet(b"\x095.0.1\0" + bytes(40))),
    "only a version": sends(packet(b"\x0a8.0.1")),
    "a short nonce": sends(packet(greeting()[:-30])),
    "all ones": sends(packet(b"\xff" * 200)),
    "zeros": sends(packet(bytes(200))),
    "sixteen megabytes announced": sends(b"\xff\xff\xff\x00" + bytes(BLOCK)),
}


@pytest.mark.parametrize("what", NO_GREETING)
def test_what_is_no_greeting_is_one_sentence(what: str) -> None:
    with hostile({"greeting": NO_GREETING[what]}) as server:
        done = attack(server)
        assert done.seconds < CONNECT_S, "it waited for more"
        done.refused(3, "error")


CUT = {
    "at once": sends_and_closes(),
    "in the header": sends_and_closes(b"\x40\x00"),
    "in the greeting": sends_and_closes(packet(greeting())[:30]),
}


@pytest.mark.parametrize("what", CUT)
def test_a_greeting_that_is_cut_off_is_one_sentence(what: str) -> None:
    with hostile({"greeting": CUT[what]}) as server:
        attack(server).refused(3, "the server closed the connection")


def never_ends(peer: Peer, _asked: bytes) -> None:
    """A packet that announces a little less than what is believed, and never gets there."""
    peer.raw(header(60_000) + b"\x0a")
    while True:
        peer.raw(b"5")
        peer.wait(0.01)


@pytest.mark.parametrize("state", ["greeting", "login", "prepare"])
@pytest.mark.parametrize(
    "misdeed", [drips(packet(greeting()), 1.0), never_ends, is_silent], ids=["slow", "endless", "silent"]
)
def test_opening_ends_with_the_connect_timeout(state: State, misdeed: Misdeed) -> None:
    with hostile({state: misdeed}) as server:
        done = attack(server).refused(3, "no answer within 1.0 s")
        assert done.seconds > CONNECT_S
        assert done.end["reason"] == "connect-failed"


def endless(*payloads: bytes) -> Misdeed:
    """The same packets for ever."""

    def misdeed(peer: Peer, _asked: bytes) -> None:
        block = b"".join(packet(payload, 1) for payload in payloads)
        block *= max(1, BLOCK // len(block))
        while True:
            peer.raw(block)

    return misdeed


@pytest.mark.parametrize(
    "payload",
    [b"\x01", b"\x01\x03", b"\xfemysql_native_password\0" + bytes(range(1, 21)) + b"\0", b"\x01\x04"],
    ids=["data", "fast", "switch", "full"],
)
def test_a_login_that_never_ends_ends(payload: bytes) -> None:
    with hostile({"login": endless(payload)}) as server:
        attack(server).refused(3, "")


@pytest.mark.parametrize("seed", range(40))
def test_noise_in_a_login_is_one_sentence(seed: int) -> None:
    noise = bytes((seed * 7919 + place * place * 31 + place * 17) % 256 for place in range(40 + seed * 5))
    state: State = "greeting" if seed % 2 else "login"
    with hostile({state: sends_and_closes(packet(noise, 2 * (seed % 2 == 0)))}) as server:
        attack(server).held(3)


def test_a_servers_words_cannot_drive_the_terminal() -> None:
    words = b"\x1b]0;owned\x07\x1b[2J\r\nfake: all is well\n" + b"x" * 3000

    def refuse(peer: Peer, _asked: bytes) -> None:
        peer.send(error(1045, words, b"\x1b[31m"))
        peer.read_until_closed()

    with hostile({"login": refuse}) as server:
        done = attack(server).refused(3, "1045")
        assert "all is well" in done.words


def test_a_version_is_a_short_word() -> None:
    version = b"8.0.1\x1b[31m\n" + b"v" * 50_000

    def greet(peer: Peer, _asked: bytes) -> bool:
        peer.send(greeting(version=version))
        return True

    with hostile({"greeting": greet}) as server:
        done = attack(server).held(0)
        versions = [data["data"]["server_version"] for data in done.records if data["type"] == "ready"]
        assert len(versions) == 1
        assert versions[0].startswith("8.0.1")
        assert versions[0].isprintable()
        assert len(versions[0]) <= 512


# --- answers


def answers(*payloads: bytes) -> Misdeed:
    """Packets of an answer, and then nothing."""

    def misdeed(peer: Peer, _asked: bytes) -> None:
        peer.send(*payloads)
        peer.read_until_closed()

    return misdeed


BROKEN_ANSWERS = {
    "an empty packet": b"",
    "an error without a number": b"\xff",
    "an error with half a number": b"\xff\x15",
    "an OK that is cut short": b"\x00\x00",
    "no columns": b"\xfc\x00\x00",
    "as many columns as fit in a number": b"\xfe" + b"\xff" * 8,
    "a million columns": b"\xfd\x40\x42\x0f",
    "a length that is none": b"\xff\x00",
    "half a length": b"\xfd\x01",
}


@pytest.mark.parametrize("what", BROKEN_ANSWERS)
@pytest.mark.parametrize(("state", "exit_code"), [("prepare", 3), ("execute", 4)])
def test_a_broken_answer_is_a_protocol_error(what: str, state: State, exit_code: int) -> None:
    with hostile({state: answers(BROKEN_ANSWERS[what])}) as server:
        attack(server).refused(exit_code, "protocol error")


def test_bytes_after_an_answer_are_a_protocol_error() -> None:
    with hostile({"execute": answers(*result(b"\0\0\x01x"), OK)}) as server:
        attack(server).refused(4, "bytes after the end of an answer")


@pytest.mark.parametrize("count", [4096, 65_535])
def test_the_most_columns_and_parameters_there_can_be(count: int) -> None:
    def prepare(peer: Peer, _asked: bytes) -> bool:
        peer.send(prepared(count, count), *[definition()] * (2 * count))
        return True

    with hostile({"prepare": prepare}) as server:
        attack(server).held(0)


ENDLESS_RESULTS = {
    "definitions": (b"\xfc\xff\xff", definition()),
    "rows": (b"\x01", definition(), b"\0\0\x01x"),
    "empty rows": (b"\x01", definition(), b""),
    "results": (b"\x00\x00\x00\x0a\x00\x00\x00",),
}


def begins_and_never_ends(what: str) -> Misdeed:
    """The first packets of a result in order, and then the last one for ever."""
    *first, last = ENDLESS_RESULTS[what]

    def misdeed(peer: Peer, asked: bytes) -> None:
        if first:
            peer.send(*first)
        endless(last)(peer, asked)

    return misdeed


def one_row_for_ever(peer: Peer, _asked: bytes) -> None:
    peer.send(b"\x01", definition())
    while True:
        peer.raw(header(0xFF_FFFF, 5) + bytes(0xFF_FFFF))


@pytest.mark.parametrize("what", [*ENDLESS_RESULTS, "one row"])
def test_an_answer_without_end_ends_with_the_run(what: str) -> None:
    misdeed = one_row_for_ever if what == "one row" else begins_and_never_ends(what)
    with hostile({"execute": misdeed}) as server:
        done = attack(server).held(0)
        # One event at most was begun, and none was ended.
        assert done.end["phases"]["measure"]["accounting"]["done"] == 0
        assert done.seconds < PLANNED_S + 5


@pytest.mark.parametrize("what", [*ENDLESS_RESULTS, "one row"])
@pytest.mark.parametrize("command", ["prepare", "cleanup"])
def test_the_loader_believes_no_answer_without_end(what: str, command: str) -> None:
    misdeed = one_row_for_ever if what == "one row" else begins_and_never_ends(what)
    with hostile({"query": misdeed}) as server:
        attack(server, command).refused(4, "protocol error")


def test_a_row_of_very_many_columns_is_a_protocol_error() -> None:
    rows = [b"\x02", definition(), definition()]
    with hostile({"query": answers(*rows, bytes(10_000_000), END_OF_ROWS)}) as server:
        attack(server, "prepare").refused(4, "protocol error")


@pytest.mark.parametrize("state", ["prepare", "execute"])
def test_an_answer_that_is_cut_off_is_a_lost_connection(state: State) -> None:
    whole = b"".join(packet(payload, 1) for payload in result(b"\0\0\x01x"))
    if state == "prepare":
        whole = packet(prepared(1), 1) + packet(definition(), 2)
    for length in (0, 1, 3, 4, 5, len(whole) // 2, len(whole) - 1):
        with hostile({state: sends_and_closes(whole[:length])}) as server:
            if state == "prepare":
                attack(server).refused(3, "the server closed the connection")
                continue
            # The run goes on with new connections, and counts each loss as CR_SERVER_LOST.
            done = attack(server).held(0)
            errors = done.end["phases"]["measure"]["errors"]
            assert set(errors) == {"2013"}, (length, done.out)


def test_a_packet_that_never_comes_ends_with_the_run() -> None:
    with hostile({"execute": sends(header(0xFF_FFFF, 1) + b"\x01")}) as server:
        done = attack(server).held(0)
        assert done.seconds < PLANNED_S + 5


@pytest.mark.parametrize("command", ["prepare", "run", "cleanup"])
def test_a_signal_ends_the_wait_for_a_silent_server(command: str) -> None:
    state: State = "execute" if command == "run" else "query"
    with hostile({state: is_silent}) as server:
        interrupt(server, command)
