"""Records the seeds of the fuzz targets: what real servers answer to the engine, one file per kind of answer.

    .venv/bin/python -m fuzz.record_seeds

The engine talks to a MariaDB and a MySQL through a proxy that keeps what the server sent, split where the
client spoke. Files that are there already are kept: they may be findings.
"""

from __future__ import annotations

import select
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.conftest import variant
from tests.end_to_end.mysql_server import starting

from dbdyno.run.engine import Command, Engine
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import Address
from dbdyno.servers.workspace import Workspace

SEEDS = Path(__file__).parent / "seeds"
# A larger answer teaches a fuzzer nothing that a smaller one does not.
SEED_BYTES_MAX = 3000

COM_PREPARE = 0x16
COMMANDS: tuple[Command, ...] = ("prepare", "run", "cleanup")
# The first byte of a seed of `skim`: see engine/wire/tests/parsers/skim.rs.
PREPARED, DATA_REQUEST, NO_END_MARKERS, KEEP_ROWS = 1, 2, 4, 8


@dataclass
class Talk:
    """One connection: what the client said, and what the server said to it."""

    # The server speaks first.
    turns: list[tuple[bytearray, bytearray]] = field(default_factory=lambda: [(bytearray(), bytearray())])

    def client(self, content: bytes) -> None:
        """The client has spoken; a new turn begins when the server had answered."""
        if self.turns[-1][1]:
            self.turns.append((bytearray(), bytearray()))
        self.turns[-1][0].extend(content)


@contextmanager
def proxy(port: int) -> Iterator[tuple[int, list[Talk]]]:
    """A proxy on loopback to `port` of loopback: its own port, and what went through it."""
    talks: list[Talk] = []
    over = threading.Event()

    def carry(client: socket.socket, talk: Talk) -> None:
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            while not over.is_set():
                for ready in select.select([client, server], [], [], 0.05)[0]:
                    content = ready.recv(1 << 16)
                    if not content:
                        return
                    if ready is client:
                        talk.client(content)
                        server.sendall(content)
                    else:
                        talk.turns[-1][1].extend(content)
                        client.sendall(content)

    def listen(listener: socket.socket) -> None:
        while not over.is_set():
            if select.select([listener], [], [], 0.05)[0]:
                talks.append(Talk())
                threading.Thread(target=carry, args=(listener.accept()[0], talks[-1]), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=listen, args=(listener,), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1], talks
        finally:
            over.set()
            thread.join()


def keep(target: str, name: str, seed: bytes) -> None:
    """Write a seed, unless there is one of that name."""
    path = SEEDS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if len(seed) <= SEED_BYTES_MAX and not path.exists():
        path.write_bytes(seed)


def split(product: str, talk: Talk) -> None:
    """The seeds of one plain connection: the login, and a seed per kind of answer."""
    # A command is numbered 0; everything before the first one is the login.
    begin = next(
        (place for place, (asked, _) in enumerate(talk.turns) if place > 1 and asked[3:4] == b"\0"), 0
    )
    # Switches: no compression, at an address far away whose key may be asked for.
    login = b"".join(bytes(answer) for _, answer in talk.turns[: begin or len(talk.turns)])
    keep("login", f"{product}-{'login' if begin else 'refused'}-{len(login)}", b"\x0c" + login)
    for place, (asked, answer) in enumerate(talk.turns[begin:] if begin else [], begin):
        if len(asked) < 5 or not answer:
            continue
        if asked[3] != 0:  # The data of a LOAD DATA LOCAL go on numbering.
            keep("skim", f"{product}-loaded", bytes([NO_END_MARKERS, 6]) + bytes(answer))
            continue
        if answer[4] == 0xFB:
            segments = [bytes(answer), bytes(talk.turns[place + 1][1])]
            keep("session", f"{product}-load-data", b"\0" + in_segments(segments))
        elif asked[4] == COM_PREPARE and bytes(asked[5:]).startswith(b"SELECT"):
            executed = [bytes(answer) for request, answer in talk.turns if request[4:5] == b"\x17"]
            keep("session", f"{product}-prepared", b"\1" + in_segments([bytes(answer), *executed[1:3]]))
        elif asked[4] == 0x03:
            what = b"\2" if bytes(asked[5:]).startswith(b"SELECT") else b"\3"
            keep("session", f"{product}-asked-{what[0]}", what + in_segments([bytes(answer), bytes(answer)]))
        command, sql = asked[4], bytes(asked[5:]).decode(errors="replace")
        first, second = ([*sql.split(), "", ""])[:2]
        if command == 0x17:
            kind = f"execute-{'rows' if answer[4] not in (0, 0xFF) else 'ok'}"
        else:
            kind = f"{'prepare' if command == COM_PREPARE else 'query'}-{first.lower()}"
            kind += f"-{second.lower()}" if first in {"CREATE", "LOAD", "SHOW"} else ""
        switches = NO_END_MARKERS
        if command == COM_PREPARE:
            switches |= PREPARED
        elif answer[4] == 0xFB:
            switches |= DATA_REQUEST
        elif command == 0x03 and first == "SELECT":
            switches |= KEEP_ROWS
            keep("fields", f"{product}-{kind}", rows_of(bytes(answer)))
        if answer[4] == 0xFF:
            kind += "-error"
            keep("fields", f"{product}-{kind}", bytes(answer[4:]))
        name = "".join(letter for letter in kind if letter.isalnum() or letter == "-")
        keep("skim", f"{product}-{name}", bytes([switches, 6]) + bytes(answer))


def split_frames(product: str, compression: str, talk: Talk) -> None:
    """The seeds of one compressed connection: the first answers after the login, which is not compressed."""
    login = next((place for place, (_, answer) in enumerate(talk.turns) if answer[4:7] == b"\0\0\0"), 0)
    for place, (_, answer) in enumerate(talk.turns[login + 1 : login + 40]):
        seed = bytes([compression == "zstd", 30]) + bytes(answer)
        # An answer that was worth compressing, and a few of the short ones.
        if (place < 3 and answer) or bytes(answer[4:7]) != b"\0\0\0":
            keep("frames", f"{product}-{compression}-{len(answer) // 50 * 50}", seed)


def in_segments(segments: list[bytes]) -> bytes:
    """As engine/wire/tests/parsers/session.rs takes them."""
    return b"".join(len(segment).to_bytes(2, "little") + segment for segment in segments)


def packets(answer: bytes) -> list[bytes]:
    """The payloads of an answer."""
    payloads = []
    while answer:
        length = int.from_bytes(answer[:3], "little")
        payloads.append(answer[4 : 4 + length])
        answer = answer[4 + length :]
    return payloads


def rows_of(answer: bytes) -> bytes:
    """The first row of a result without end markers, or the last packet."""
    payloads = packets(answer)
    columns = payloads[0][0]
    return payloads[1 + columns] if len(payloads) > columns + 1 else payloads[-1]


def plan(address: Address, **changes: Any) -> dict[str, Any]:
    """A tenth of a second of oltp_read_write."""
    return {
        "schema": 1,
        "target": address.target(),
        "workload": {"name": "oltp_read_write", "options": {"tables": 1, "table_size": 50, "range_size": 3}},
        "load": {"connections": 1},
        "phases": {"measure_us": 100_000},
        "seed": 1,
        **changes,
    }


def record(product: str, address: Address) -> None:
    """Record everything one server says to the engine."""
    with proxy(address.port) as (port, talks):
        through = replace(address, port=port)
        environment = through.environment()
        for command in COMMANDS:
            Engine().run(command, plan(through), environment)
        text = plan(through)["workload"] | {"statements": "text"}
        # Without tables: errors.
        Engine().run("run", plan(through, workload=text), environment)
        Engine().run("run", plan(through), environment)
        Engine().run("run", plan(through), dict.fromkeys(environment, "wrong"))
    for talk in talks:
        split(product, talk)
    for compression in ("zlib", "zstd") if product == "mysql" else ("zlib",):
        with proxy(address.port) as (port, talks):
            through = replace(address, port=port)
            compressed = plan(through)
            compressed["target"]["compression"] = {"zstd": {"level": 3}} if compression == "zstd" else "zlib"
            for command in COMMANDS:
                Engine().run(command, compressed, through.environment())
        for talk in talks:
            split_frames(product, compression, talk)


def main() -> None:
    """Record MariaDB and MySQL."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-seeds-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o711)
        with closing(Workspace.open(Path(folder))) as workspace:
            with closing(LocalServer(variant("seeds"), workspace, None)) as mariadb:
                mariadb.start()
                mariadb.query("SET GLOBAL local_infile = 1")
                record("mariadb", mariadb.address())
            with starting(workspace) as start:
                mysql = start("mysql seeds", "--local-infile=ON")
                record("mysql", mysql.address())


if __name__ == "__main__":
    main()
