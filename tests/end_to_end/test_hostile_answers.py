"""Wrong answers to administrative statements end in a message within seconds, never in a traceback."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import Any

import pytest
from tests.end_to_end import hostile_postgresql, hostile_server
from tests.end_to_end.hostile_postgresql import HostilePostgreSQL, described, done, message
from tests.end_to_end.hostile_server import OK, Misdeed, Peer, definition, header

from dbdyno.checks import tables
from dbdyno.checks.connections import _account, _has_privilege
from dbdyno.problem import Problem
from dbdyno.run.loading import list_tables
from dbdyno.run.marked_tables import marked_tables
from dbdyno.run.sampling import _waits
from dbdyno.servers.admin import mysql, postgresql
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.kinds.remote import Password, RemoteServer
from dbdyno.servers.kinds.remote_protocol import PROTOCOLS
from dbdyno.servers.products.declaration import PRODUCTS
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.url import parse_url

# Far below the ten minutes that a statement may take.
SECONDS_MAX = 8.0
# Instead of ten seconds.
SILENCE_S_MAX = 0.1
DIGITS = b"9" * 6000
Row = Sequence[bytes | None]

# The rows of an answer that has another form than every administrative statement expects.
WRONG_ROWS: dict[str, tuple[Row, ...]] = {
    "no row": (),
    "text instead of numbers": ((b"id", b"id", b"id"), (b"id", b"id", b"id")),
    "one column": ((b"x",),),
    "too many columns": (tuple(b"%d" % number for number in range(40)),),
    "nothing but NULL": ((None, None), (None, None)),
    "numbers without end": ((DIGITS, DIGITS),),
    "bytes that are no text": ((b"\xff\xfe\x00", b"\x80"),),
    "many rows": ((b"1", b"2"),) * 500,
}


def length_encoded(value: bytes | None) -> bytes:
    if value is None:
        return b"\xfb"
    if len(value) < 251:
        return bytes([len(value)]) + value
    return b"\xfc" + struct.pack("<H", len(value)) + value


def mysql_result(rows: Sequence[Row]) -> list[bytes]:
    """The packets of a result as text, with end markers."""
    columns, end = max((len(row) for row in rows), default=1), b"\xfe\x00\x00\x02\x00"
    texts = (b"".join(map(length_encoded, row)) for row in rows)
    return [bytes([columns]), *[definition()] * columns, end, *texts, end]


def postgresql_result(rows: Sequence[Row]) -> bytes:
    columns = max((len(row) for row in rows), default=1)
    out = described(columns)
    for row in rows:
        cells = (
            struct.pack("!i", -1) if cell is None else struct.pack("!i", len(cell)) + cell for cell in row
        )
        out += message(b"D", struct.pack("!H", len(row)) + b"".join(cells))
    return out + done(b"SELECT %d" % len(rows)) + hostile_postgresql.READY


def is_setting(sql: bytes) -> bool:
    return sql.upper().startswith((b"SET", b"ROLLBACK", b"BEGIN"))


def mysql_answers(answer: Callable[[Peer, bytes], None]) -> Misdeed:
    def misdeed(peer: Peer, sql: bytes) -> bool:
        if is_setting(sql):
            peer.send(OK)
        else:
            answer(peer, sql)
        return True

    return misdeed


def sends_rows(rows: Sequence[Row]) -> Callable[[Peer, bytes], None]:
    return lambda peer, _sql: peer.send(*mysql_result(rows))


def duplicates(peer: Peer, sql: bytes) -> None:
    """Every answer twice."""
    for _ in range(2):
        peer.send(*mysql_result(((b"max_connections", b"151"),)))
        peer.sequence = 0


class Shifted:
    """Answers each statement with the answer to the one before."""

    def __init__(self) -> None:
        self._before: bytes = b"id"

    def __call__(self, peer: Peer, sql: bytes) -> None:
        peer.send(*mysql_result(((self._before, self._before),)))
        self._before = sql[:40]


def sends_raw(content: bytes) -> Callable[[Peer, bytes], None]:
    def answer(peer: Peer, _sql: bytes) -> None:
        peer.raw(content)
        peer.read_until_closed()

    return answer


WHOLE = b"".join(
    header(len(payload), number) + payload for number, payload in enumerate(mysql_result(((b"a", b"1"),)), 1)
)
WRONG_LENGTHS = {
    "sixteen megabytes announced": b"\xff\xff\xff\x01\x02",
    "one byte too many announced": header(2, 1) + b"\x02",
    "half a head": b"\x05\x00",
    "a byte less than there is": WHOLE.replace(
        header(len(definition()), 2), header(len(definition()) - 1, 2)
    ),
    "half an answer": WHOLE[: len(WHOLE) // 2],
    "a length of zero": header(0, 1),
    "columns without end": header(1, 1) + b"\xfa" + header(len(definition()), 2) + definition(),
}
MYSQL: dict[str, Callable[[], Callable[[Peer, bytes], None]]] = {
    **{what: lambda rows=rows: sends_rows(rows) for what, rows in WRONG_ROWS.items()},  # type: ignore[misc]
    **{what: lambda content=content: sends_raw(content) for what, content in WRONG_LENGTHS.items()},  # type: ignore[misc]
    "duplicated answers": lambda: duplicates,
    "answers shifted by one": Shifted,
    "no answer but OK": lambda: lambda peer, _sql: peer.send(OK),
}
POSTGRESQL_PIECES = {
    "a gigabyte announced": b"T\x3f\xff\xff\xff\0\x01",
    "a row longer than its content": described(2) + b"D\0\0\0\x40\0\x02",
    "a length of zero": b"T\0\0\0\0",
    "a negative length": b"D\xff\xff\xff\xff",
    "half an answer": postgresql_result(((b"a", b"1"),))[:-8],
    "half a head": b"T\0\0",
    "more columns than described": described(1)
    + message(b"D", struct.pack("!H", 3) + (struct.pack("!i", 1) + b"x") * 3),
    "every answer twice": postgresql_result(((b"id", b"id"),)) * 2,
}


def refused_or_done(ask: Callable[[], object]) -> str:
    """The message of a question that the server answers wrongly; "" if dbdyno can use the answer."""
    began, text = time.monotonic(), ""
    try:
        ask()
    except Problem as problem:
        text = problem.text
    assert time.monotonic() - began < SECONDS_MAX
    assert text.isprintable()
    assert len(text) < 500, text
    return text


def questions(server: RemoteServer) -> dict[str, Callable[[], object]]:
    """What dbdyno asks a server that it does not start."""
    is_postgresql = server.address().protocol == "postgresql"
    reader = tables.READERS[server.address().protocol]
    admin: AdminConnection = server._admin
    of_protocol = PROTOCOLS[server.address().protocol].variables
    shape = tables.Shape(columns=[], indexes={})
    asked: dict[str, Callable[[], object]] = {
        "describe": server.describe,
        "status": server.status,
        "variables": server.variables,
        "tables": lambda: marked_tables(server, everywhere=True),
        "list": lambda: list_tables(server),
        "waits": lambda: _waits(server),
        "shapes": lambda: reader.read_shapes(server.query, "dbdyno", ["sbtest1"]),
        "states": lambda: reader.read_states(server.query, "dbdyno"),
        "extent": lambda: reader.read_extent(server.query, "dbdyno", "sbtest1", shape),
        "plan": lambda: PRODUCTS["postgresql" if is_postgresql else "mysql"].read_plan(admin, "SELECT 1"),
        "read": lambda: of_protocol.read(admin, "work_mem"),
        "changeable": lambda: of_protocol.require_changeable(admin, "work_mem"),
        "values": lambda: of_protocol.values(admin),
        "connection": lambda: of_protocol.connection(admin),
        "apply": lambda: of_protocol.apply(admin),
    }
    if not is_postgresql:
        asked |= {"account": lambda: _account(admin), "grants": lambda: _has_privilege(admin, "SHOW GRANTS")}
    return asked


def ask_all(url: str) -> dict[str, str]:
    with closing(RemoteServer(parse_url(url), Password("x"))) as server:
        with suppress(ServerProblem):
            server.start()
        return {name: refused_or_done(ask) for name, ask in questions(server).items()}


@pytest.fixture(autouse=True)
def _short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql, "PACKET_SILENCE_S_MAX", SILENCE_S_MAX)
    monkeypatch.setattr(postgresql, "PART_SILENCE_S_MAX", SILENCE_S_MAX)


@pytest.mark.parametrize("what", MYSQL)
def test_mysql_answers_in_another_form_are_reported(what: str) -> None:
    misdeeds: Any = {"query": mysql_answers(MYSQL[what]())}
    with hostile_server.hostile(misdeeds) as server:
        messages = ask_all(f"mysql://victim@127.0.0.1:{server.port}/dbdyno")
    if what == "duplicated answers":
        assert any("an answer that nobody asked for" in one for one in messages.values()), messages
    if what == "sixteen megabytes announced":
        assert "after 1 of 16777215 bytes" in messages["list"], messages
    if what == "text instead of numbers":
        assert "'id'" in messages["extent"], messages
        assert "instead of rows of an integer" in messages["extent"], messages


@pytest.mark.parametrize("what", [*WRONG_ROWS, *POSTGRESQL_PIECES])
def test_postgresql_answers_in_another_form_are_reported(what: str) -> None:
    def misdeed(peer: Peer, sql: bytes) -> bool:
        if is_setting(sql):
            peer.raw(hostile_postgresql.answer(sql))
        elif what in WRONG_ROWS:
            peer.raw(postgresql_result(WRONG_ROWS[what]))
        else:
            peer.raw(POSTGRESQL_PIECES[what])
        return True

    server = HostilePostgreSQL({"query": misdeed})
    with closing(server):
        messages = ask_all(f"postgresql://victim@127.0.0.1:{server.port}/dbdyno")
    if what == "a gigabyte announced":
        assert all(messages[name] for name in ("list", "tables", "extent")), messages
