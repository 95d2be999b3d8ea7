"""A hostile PostgreSQL gets nothing: no password, no memory, no time without end, and never a panic."""

from __future__ import annotations

import base64
import re
import struct

import pytest
from tests.end_to_end import attacks
from tests.end_to_end.attacks import CONNECT_S, DRAIN_S, MEASURE_S, SECONDS_MAX, Attack
from tests.end_to_end.hostile_postgresql import (
    AUTH_OK,
    BOUND,
    CLEAR,
    COPY_IN,
    GSS,
    LET_IN,
    MD5,
    READY,
    RESULT,
    SASL,
    SASL_CONTINUE,
    SASL_FINAL,
    HostilePostgreSQL,
    PostgreSQLPeer,
    answer,
    authentication,
    described,
    done,
    error,
    hostile,
    message,
    row,
    status,
)
from tests.end_to_end.hostile_server import (
    Misdeed,
    Peer,
    State,
    drips,
    is_silent,
    sends,
    sends_and_closes,
)

# A server that is slow by design must not make a run longer than what was planned for it.
PLANNED_S = CONNECT_S + MEASURE_S + DRAIN_S
BLOCK = 1 << 18
SCRAM = b"SCRAM-SHA-256"


def attack(server: HostilePostgreSQL, command: str = "run", **target: object) -> Attack:
    return attacks.attack(server, command, target={"protocol": "postgresql", **target})


# --- the answer to the request for TLS

NO_TLS_ANSWER = {
    "a web server": sends(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "another protocol": sends(b"\x4a\0\0\0\x0a8.0.1-mysql\0" + bytes(60)),
    "more than a byte": sends(b"N" + LET_IN),
    "data before TLS": sends(b"S" + LET_IN),
    "no TLS after all": sends(b"S", b"no TLS record" * 10),
    "an error that is cut": sends_and_closes(b"E\0\0\0\xffSFATAL"),
    "an error of a gigabyte": sends(b"E\x3f\xff\xff\xff" + bytes(BLOCK)),
    "nothing": sends_and_closes(),
}


@pytest.mark.parametrize("what", NO_TLS_ANSWER)
def test_what_is_no_answer_to_a_request_for_tls_is_one_sentence(what: str) -> None:
    with hostile({"greeting": NO_TLS_ANSWER[what]}) as server:
        done = attack(server, tls={"mode": "preferred"})
        assert done.seconds < CONNECT_S, "it waited for more"
        done.refused(3, "")


def test_a_server_that_denies_tls_is_not_talked_to_without_it() -> None:
    with hostile() as server:
        attack(server, tls={"mode": "required"}).refused(3, "offers no TLS")
    assert b"victim" not in server.received


# --- the login


def scram(server_first: bytes, server_final: bytes | None = None) -> Misdeed:
    """SCRAM up to what the server says first (`NONCE` is the client's), and last."""

    def misdeed(peer: Peer, _asked: bytes) -> None:
        assert isinstance(peer, PostgreSQLPeer)
        peer.raw(authentication(SASL, SCRAM + b"\0\0"))
        _, first = peer.message()
        nonce = first.rpartition(b",r=")[2]
        peer.raw(authentication(SASL_CONTINUE, server_first.replace(b"NONCE", nonce)))
        if server_final is not None:
            peer.message()
            peer.raw(server_final)
        peer.read_until_closed()

    return misdeed


SALT = base64.b64encode(b"sixteen bytes!!!")
FIRST = b"r=NONCEserver,s=" + SALT + b",i=4096"
FORGED = b"v=" + base64.b64encode(bytes(32))

BROKEN_LOGINS = {
    "nothing of what was asked": sends(READY),
    "a key before the login": sends(message(b"K", bytes(8))),
    "rows": sends(row(b"x")),
    "a length of zero": sends(b"R\0\0\0\0"),
    "a length shorter than itself": sends(b"R\0\0\0\x03\0\0\0\0"),
    "a negative length": sends(b"R\xff\xff\xff\xff\0\0\0\0"),
    "more than a login can have": sends(b"R\0\x7f\xff\xff" + bytes(BLOCK)),
    "half a request": sends(message(b"R", b"\0\0")),
    "a method without a name": sends(authentication(99)),
    "GSSAPI": sends(authentication(GSS)),
    "SSPI": sends(authentication(9)),
    "Kerberos 5": sends(authentication(2)),
    "a certificate of SCM": sends(authentication(6)),
    "md5 without salt": sends(authentication(MD5, b"ab")),
    "SASL without methods": sends(authentication(SASL, b"\0")),
    "SASL with none that is known": sends(authentication(SASL, b"OAUTHBEARER\0PLAIN\0\0")),
    "SASL that does not end": sends(authentication(SASL, SCRAM)),
    "the middle of SCRAM first": sends(authentication(SASL_CONTINUE, FIRST)),
    "the end of SCRAM first": sends(authentication(SASL_FINAL, FORGED)),
    "a nonce of its own": scram(b"r=server,s=" + SALT + b",i=4096"),
    "a salt that is none": scram(b"r=NONCEserver,s=*,i=4096"),
    "a negative number of rounds": scram(b"r=NONCEserver,s=" + SALT + b",i=-1"),
    "rounds for hours": scram(b"r=NONCEserver,s=" + SALT + b",i=4294967295"),
    "nothing in SCRAM": scram(b""),
    "noise in SCRAM": scram(bytes(range(256))),
    "a forged proof without rounds": scram(
        b"r=NONCEserver,s=" + SALT + b",i=0", authentication(SASL_FINAL, FORGED)
    ),
    "a forged proof": scram(FIRST, authentication(SASL_FINAL, FORGED)),
    "no proof": scram(FIRST, LET_IN),
    "an error for a proof": scram(FIRST, authentication(SASL_FINAL, b"e=other-error")),
    "SCRAM once more": scram(FIRST, authentication(SASL_CONTINUE, FIRST)),
    "a setting without an end": sends(authentication(AUTH_OK) + message(b"S", b"server_version")),
    "a statement's answer": sends(authentication(AUTH_OK) + RESULT),
    "a version to negotiate": sends(message(b"v", struct.pack("!II", 0, 0))),
}


@pytest.mark.parametrize("what", BROKEN_LOGINS)
def test_a_broken_login_is_one_sentence(what: str) -> None:
    with hostile({"login": BROKEN_LOGINS[what]}) as server:
        done = attack(server)
        assert done.seconds < CONNECT_S, "it waited for more"
        done.refused(3, "")


def test_no_method_gets_the_password() -> None:
    def clear(peer: Peer, _asked: bytes) -> None:
        peer.raw(authentication(CLEAR))
        peer.read_until_closed()

    def md5(peer: Peer, _asked: bytes) -> bool:
        peer.raw(authentication(MD5, b"salt"))
        assert isinstance(peer, PostgreSQLPeer)
        kind, hashed = peer.message()
        assert kind == b"p"
        assert re.fullmatch(rb"md5[0-9a-f]{32}\0", hashed)
        peer.raw(LET_IN)
        return True

    with hostile({"login": clear}) as server:
        attack(server).refused(3, "asks for the password itself")
    with hostile({"login": md5}) as server:
        attack(server).held(0)


def endless(*pieces: bytes, pause_s: float = 0.0) -> Misdeed:
    """The last piece for ever, after the others, with pauses between blocks of it."""
    *first, last = pieces

    def misdeed(peer: Peer, _asked: bytes) -> None:
        peer.raw(b"".join(first))
        block = last * max(1, BLOCK // len(last))
        while True:
            peer.raw(block)
            if pause_s:
                peer.wait(pause_s)

    return misdeed


ENDLESS_LOGINS = {
    "settings": (authentication(AUTH_OK), status(b"a", b"b" * 1000)),
    "notices": (error(b"00000", b"word " * 1000, b"NOTICE", b"N"),),
    "md5": (authentication(MD5, b"salt"),),
    "SASL": (authentication(SASL, SCRAM + b"\0\0"),),
    "methods of SASL": (b"R\0\0\xff\0" + struct.pack("!I", SASL), b"X\0"),
    "zeros": (bytes(BLOCK),),
}


@pytest.mark.parametrize("what", ENDLESS_LOGINS)
def test_a_login_that_never_ends_ends(what: str) -> None:
    with hostile({"login": endless(*ENDLESS_LOGINS[what])}) as server:
        attack(server).refused(3, "")


@pytest.mark.parametrize(
    ("state", "misdeed"),
    [
        ("greeting", is_silent),
        ("login", is_silent),
        ("login", drips(LET_IN, 1.0)),
        ("prepare", is_silent),
        ("prepare", drips(message(b"1"), 1.0)),
    ],
    ids=["silent", "silent login", "slow login", "silent prepare", "slow prepare"],
)
def test_opening_ends_with_the_connect_timeout(state: State, misdeed: Misdeed) -> None:
    with hostile({state: misdeed}) as server:
        done = attack(server, tls={"mode": "preferred"}).refused(3, "no answer within 1.0 s")
        assert done.seconds > CONNECT_S


@pytest.mark.parametrize("seed", range(12))
def test_noise_is_one_sentence(seed: int) -> None:
    noise = bytes((seed * 7919 + place * place * 31 + place * 17) % 256 for place in range(40 + seed * 5))
    state: State = ("greeting", "login", "prepare")[seed % 3]
    with hostile({state: sends_and_closes(noise)}) as server:
        attack(server, tls={"mode": "preferred"}).held(3)


def test_a_servers_words_cannot_drive_the_terminal() -> None:
    words = b"\x1b]0;owned\x07\x1b[2J\r\nfake: all is well\n" + b"x" * 3000
    with hostile({"login": sends(error(b"28P01", words, b"FATAL"))}) as server:
        assert "all is well" in attack(server).refused(3, "28P01").words
    version = b"15.1\x1b[31m\n" + b"v" * 50_000
    let_in = authentication(AUTH_OK) + status(b"server_version", version) + READY

    def greet(peer: Peer, _asked: bytes) -> bool:
        peer.raw(let_in)
        return True

    with hostile({"login": greet}) as server:
        done = attack(server).held(0)
        (told,) = [data["data"]["server_version"] for data in done.records if data["type"] == "ready"]
        assert told.startswith("15.1")
        assert told.isprintable()
        assert len(told) <= 512


# --- answers

BROKEN_ANSWERS = {
    "the end without an answer": READY,
    "a length shorter than itself": b"C\0\0\0\x03",
    "a negative length": b"D\xff\xff\xff\xff",
    "a row larger than a server's memory": b"D\x7f\xff\xff\xff",
    "a tag of a megabyte": b"C\0\x10\0\0",
    "a notice of a gigabyte": b"N\x3f\xff\xff\xff",
    "an unknown message": message(b"\x01", b"x"),
    "a login": authentication(CLEAR),
    "a request for data": COPY_IN,
    "a copy in both directions": message(b"W", b"\0\0\0"),
}


@pytest.mark.parametrize("what", BROKEN_ANSWERS)
@pytest.mark.parametrize(("state", "exit_code"), [("prepare", 3), ("execute", 4)])
def test_a_broken_answer_is_a_protocol_error(what: str, state: State, exit_code: int) -> None:
    with hostile({state: sends(BROKEN_ANSWERS[what])}) as server:
        attack(server).refused(exit_code, "protocol error")


def test_what_follows_an_answer_is_a_protocol_error() -> None:
    def says_more(peer: Peer, _asked: bytes) -> bool:
        peer.raw(RESULT + row(b"y"))
        return True

    with hostile({"execute": says_more}) as server:
        attack(server).refused(4, "after the end of an answer")


ODD_ERRORS = {
    "empty": message(b"E"),
    "without an end": message(b"E", b"SERROR\0C42P01"),
    "of fields without words": message(b"E", b"SERROR\0VERROR\0\0"),
    "of a state that is none": error(b"\x1b[2J", b"words"),
    "of very many fields": message(b"E", b"Dx\0" * 20_000 + b"\0"),
}


@pytest.mark.parametrize("what", ODD_ERRORS)
def test_an_odd_error_is_one_sentence(what: str) -> None:
    with hostile({"prepare": sends(ODD_ERRORS[what] + READY)}) as server:
        attack(server).refused(3, "")
    with hostile({"execute": sends(ODD_ERRORS[what] + READY)}) as server:
        attack(server).refused(4, "")


@pytest.mark.parametrize("columns", [4096, 65_535])
def test_the_most_columns_and_parameters_there_can_be(columns: int) -> None:
    def prepare(peer: Peer, _asked: bytes) -> bool:
        types = struct.pack("!H", columns) + bytes(4 * columns)
        peer.raw(message(b"1") + message(b"t", types) + described(columns) + READY)
        return True

    with hostile({"prepare": prepare}) as server:
        attack(server).held(0)


ENDLESS_ANSWERS = {
    "rows": (row(b"x"),),
    "empty rows": (message(b"D"),),
    "results": (done(b"SELECT 1"),),
    "descriptions": (described(),),
    "notices": (error(b"00000", b"word " * 1000, b"NOTICE", b"N"),),
    "settings": (status(b"a", b"b"),),
    "errors": (error(b"P0001", b"no"),),
    "one row": (b"D\x3f\xff\xff\xff", bytes(BLOCK)),
}


# At full speed these exceed a limit of the reader before the time limit ends the run.
LIMITED = ("notices", "settings", "one row")


@pytest.mark.parametrize("what", ENDLESS_ANSWERS)
def test_an_answer_without_end_ends_with_the_run(what: str) -> None:
    pause_s = 0.01 if what in LIMITED else 0.0
    with hostile({"execute": endless(BOUND, *ENDLESS_ANSWERS[what], pause_s=pause_s)}) as server:
        done = attack(server).held(0)
        assert done.end["reason"] == "time-limit"
        # One event at most was begun, and none was ended.
        assert done.end["phases"]["measure"]["accounting"]["done"] == 0
        assert done.seconds < PLANNED_S + 5


@pytest.mark.parametrize("what", ["notices", "settings"])
def test_messages_that_nobody_requested_have_a_limit(what: str) -> None:
    with hostile({"execute": endless(BOUND, *ENDLESS_ANSWERS[what])}) as server:
        done = attacks.attack(
            server, target={"protocol": "postgresql"}, phases={"measure_us": round(SECONDS_MAX * 1e6)}
        )
        done.refused(4, "protocol error: more than 67108864 bytes of notices")


@pytest.mark.parametrize("what", ENDLESS_ANSWERS)
def test_neither_opening_nor_loading_believes_an_answer_without_end(what: str) -> None:
    for state, command, exit_code in (
        ("prepare", "run", 3),
        ("query", "prepare", 4),
        ("query", "cleanup", 4),
    ):
        misdeeds: dict[State, Misdeed] = {state: endless(*ENDLESS_ANSWERS[what])}  # type: ignore[dict-item]
        with hostile(misdeeds) as server:
            attack(server, command).refused(exit_code, "")


def test_a_row_of_very_many_columns_is_a_protocol_error() -> None:
    rows = {
        "columns": row(*[b""] * 60_000),
        "a column that is longer than its row": message(b"D", b"\0\x02\0\0\xff\xff"),
        "no columns": message(b"D", b"\0\x02"),
        "half a number": message(b"D", b"\0"),
    }
    for content in rows.values():
        with hostile({"query": sends(described(2) + content + done(b"SELECT 1") + READY)}) as server:
            attack(server, "prepare").refused(4, "protocol error")


@pytest.mark.parametrize("state", ["login", "prepare", "execute"])
def test_an_answer_that_is_cut_off_is_a_lost_connection(state: State) -> None:
    whole = {"login": LET_IN, "prepare": message(b"1") + described() + READY, "execute": RESULT}[state]
    for length in (0, 1, 4, 5, len(whole) // 2, len(whole) - 1):
        with hostile({state: sends_and_closes(whole[:length])}) as server:
            if state != "execute":
                attack(server).refused(3, "the server closed the connection")
                continue
            # The run goes on with new connections, and counts each loss.
            done = attack(server).held(0)
            errors = done.end["phases"]["measure"]["errors"]
            assert set(errors) == {"08006"}, (length, done.out)


def test_a_farewell_is_heard() -> None:
    """An error that ends the connection, in the middle of an answer and between two."""
    last = error(b"57P01", b"terminating", b"FATAL")

    def after(peer: Peer, _asked: bytes) -> bool:
        peer.raw(RESULT + last)
        return False

    for misdeed in (sends_and_closes(BOUND + row(b"x") + last), after):
        with hostile({"execute": misdeed}) as server:
            # The run goes on with new connections, and counts the error of the server, not the loss.
            errors = attack(server).held(0).end["phases"]["measure"]["errors"]
            assert set(errors) == {"57P01"}


# --- COPY


def loads(misdeed: Misdeed) -> dict[State, Misdeed]:
    """All is in order up to the end of the rows."""
    return {"copy": misdeed}


BROKEN_COPIES = {
    "one row fewer": done(b"COPY 49") + READY,
    "no number": done(b"COPY") + READY,
    "another tag": done(b"SELECT 50") + done(b"DROP TABLE") + READY,
    "the end without an answer": READY,
    "another request for data": COPY_IN + done(b"COPY 50") + READY,
    "rows": row(b"x") + READY,
    "an error": error(b"53100", b"could not extend file") + READY,
    "an error that ends the session": error(b"57P01", b"terminating", b"FATAL"),
    "an unknown message": message(b"?", b"x"),
}


@pytest.mark.parametrize("what", BROKEN_COPIES)
def test_a_copy_that_ends_wrongly_is_told(what: str) -> None:
    with hostile(loads(sends(BROKEN_COPIES[what]))) as server:
        attack(server, "prepare").refused(4, "")


@pytest.mark.parametrize("what", ["notices", "results", "errors", "settings"])
def test_a_copy_that_never_ends_ends(what: str) -> None:
    with hostile(loads(endless(*ENDLESS_ANSWERS[what]))) as server:
        attack(server, "prepare").refused(4, "")


NO_REQUESTS = {
    "done before it began": done(b"COPY 100") + READY,
    "its own data": message(b"H", b"\0\0\0") + message(b"d", b"x") + message(b"c") + done(b"COPY 1") + READY,
    "data in both directions": message(b"W", b"\0\0\0"),
    "nothing": READY,
    "a request that is cut": b"G\0\0\0\x03",
}


@pytest.mark.parametrize("what", NO_REQUESTS)
def test_a_server_that_does_not_ask_for_rows_gets_none(what: str) -> None:
    def misdeed(peer: Peer, sql: bytes) -> bool | None:
        if not sql.startswith(b"COPY"):
            peer.raw(answer(sql))
            return True
        return sends(NO_REQUESTS[what])(peer, sql)

    with hostile({"query": misdeed}) as server:
        attack(server, "prepare").refused(4, "")
    assert b"PGCOPY" not in server.received


@pytest.mark.parametrize("command", ["prepare", "run", "cleanup"])
def test_a_signal_ends_the_wait_for_a_silent_server(command: str) -> None:
    state: State = "execute" if command == "run" else "query"
    with hostile({state: is_silent}) as server:
        attacks.interrupt(server, command, target={"protocol": "postgresql"})


def test_a_signal_ends_the_wait_for_the_end_of_a_copy() -> None:
    with hostile(loads(is_silent)) as server:
        attacks.interrupt(server, "prepare", target={"protocol": "postgresql"})


# More rows than sockets take by themselves.
MANY_ROWS = {"name": "oltp_point_select", "options": {"tables": 1, "table_size": 100_000}}


def asks_for_rows_and(then: Misdeed) -> Misdeed:
    """A COPY is begun rightly; what comes after its first bytes is not read."""

    def misdeed(peer: Peer, sql: bytes) -> bool | None:
        if not sql.startswith(b"COPY"):
            peer.raw(answer(sql))
            return True
        peer.raw(COPY_IN)
        assert isinstance(peer, PostgreSQLPeer)
        peer.message()
        return then(peer, sql)

    return misdeed


def test_a_signal_ends_the_wait_for_a_server_that_reads_no_rows() -> None:
    with hostile({"query": asks_for_rows_and(is_silent)}) as server:
        attacks.interrupt(server, "prepare", target={"protocol": "postgresql"}, workload=MANY_ROWS)


@pytest.mark.parametrize(
    ("last", "words"),
    [
        # Whether a read or a write meets the reset first decides the system's words after this.
        (b"", "the connection broke: "),
        (error(b"53100", b"no room", b"FATAL"), "the server answered with error 53100: no room"),
        (b"\xff" * 100, "the connection broke: "),
    ],
    ids=["nothing", "an error", "noise"],
)
def test_a_server_that_leaves_in_the_middle_of_rows_is_told(last: bytes, words: str) -> None:
    with hostile({"query": asks_for_rows_and(sends_and_closes(last))}) as server:
        attack = attacks.attack(server, "prepare", target={"protocol": "postgresql"}, workload=MANY_ROWS)
        attack.refused(4, words)
