"""Records the seeds of the fuzz targets: real servers' answers to the engine, one file per kind of answer.

    .venv/bin/python -m fuzz.record_seeds

The engine connects to a MariaDB and a MySQL through a proxy, which records the requests and answers of
each connection. Existing files are kept, because they may be inputs that have revealed a bug.
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
# A larger answer does not let the fuzzer reach more code than a small one.
SEED_BYTES_MAX = 3000

COM_PREPARE = 0x16
COMMANDS: tuple[Command, ...] = ("prepare", "run", "cleanup")
# The first byte of a seed of `skim`: see engine/wire/tests/parsers/skim.rs.
PREPARED, DATA_REQUEST, NO_END_MARKERS, KEEP_ROWS = 1, 2, 4, 8


@dataclass
class RecordedConnection:
    """The requests of one connection, each with the server's answer."""

    # The first answer is the greeting, to an empty request.
    exchanges: list[tuple[bytearray, bytearray]] = field(default_factory=lambda: [(bytearray(), bytearray())])

    def add_request(self, content: bytes) -> None:
        """Adds bytes of a request. If the last request has an answer, a new request begins."""
        if self.exchanges[-1][1]:
            self.exchanges.append((bytearray(), bytearray()))
        self.exchanges[-1][0].extend(content)


@contextmanager
def proxy(port: int) -> Iterator[tuple[int, list[RecordedConnection]]]:
    """Runs a loopback proxy to `port`. Yields the proxy's port and the list of recorded connections."""
    connections: list[RecordedConnection] = []
    stopped = threading.Event()

    def forward(client: socket.socket, connection: RecordedConnection) -> None:
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            while not stopped.is_set():
                for ready in select.select([client, server], [], [], 0.05)[0]:
                    content = ready.recv(1 << 16)
                    if not content:
                        return
                    if ready is client:
                        connection.add_request(content)
                        server.sendall(content)
                    else:
                        connection.exchanges[-1][1].extend(content)
                        client.sendall(content)

    def listen(listener: socket.socket) -> None:
        while not stopped.is_set():
            if select.select([listener], [], [], 0.05)[0]:
                connections.append(RecordedConnection())
                threading.Thread(
                    target=forward, args=(listener.accept()[0], connections[-1]), daemon=True
                ).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=listen, args=(listener,), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1], connections
        finally:
            stopped.set()
            thread.join()


def write_seed(target: str, name: str, seed: bytes) -> None:
    """Writes a seed, unless the file exists or the seed is too large."""
    path = SEEDS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if len(seed) <= SEED_BYTES_MAX and not path.exists():
        path.write_bytes(seed)


def write_seeds(product: str, connection: RecordedConnection) -> None:
    """Writes the seeds of one uncompressed connection: its login, and one seed per kind of answer."""
    # The packet of a command has sequence number 0; all requests before the first command are the login.
    begin = next(
        (
            index
            for index, (request, _) in enumerate(connection.exchanges)
            if index > 1 and request[3:4] == b"\0"
        ),
        0,
    )
    # Switches: no compression, a server on another machine, and the client may request its key.
    login = b"".join(
        bytes(answer) for _, answer in connection.exchanges[: begin or len(connection.exchanges)]
    )
    write_seed("login", f"{product}-{'login' if begin else 'refused'}-{len(login)}", b"\x0c" + login)
    for index, (request, answer) in enumerate(connection.exchanges[begin:] if begin else [], begin):
        if len(request) < 5 or not answer:
            continue
        if request[3] != 0:  # The data of a LOAD DATA LOCAL continue the sequence numbers.
            write_seed("skim", f"{product}-loaded", bytes([NO_END_MARKERS, 6]) + bytes(answer))
            continue
        if answer[4] == 0xFB:
            segments = [bytes(answer), bytes(connection.exchanges[index + 1][1])]
            write_seed("session", f"{product}-load-data", b"\0" + encode_segments(segments))
        elif request[4] == COM_PREPARE and bytes(request[5:]).startswith(b"SELECT"):
            executed = [bytes(answer) for sent, answer in connection.exchanges if sent[4:5] == b"\x17"]
            write_seed(
                "session", f"{product}-prepared", b"\1" + encode_segments([bytes(answer), *executed[1:3]])
            )
        elif request[4] == 0x03:
            selector = b"\2" if bytes(request[5:]).startswith(b"SELECT") else b"\3"
            write_seed(
                "session",
                f"{product}-query-{selector[0]}",
                selector + encode_segments([bytes(answer), bytes(answer)]),
            )
        command, sql = request[4], bytes(request[5:]).decode(errors="replace")
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
            write_seed("fields", f"{product}-{kind}", first_row(bytes(answer)))
        if answer[4] == 0xFF:
            kind += "-error"
            write_seed("fields", f"{product}-{kind}", bytes(answer[4:]))
        name = "".join(letter for letter in kind if letter.isalnum() or letter == "-")
        write_seed("skim", f"{product}-{name}", bytes([switches, 6]) + bytes(answer))


def write_frame_seeds(product: str, compression: str, connection: RecordedConnection) -> None:
    """Writes the seeds of one compressed connection: the first answers after the uncompressed login."""
    login = next(
        (index for index, (_, answer) in enumerate(connection.exchanges) if answer[4:7] == b"\0\0\0"), 0
    )
    for index, (_, answer) in enumerate(connection.exchanges[login + 1 : login + 40]):
        seed = bytes([compression == "zstd", 30]) + bytes(answer)
        # The compressed answers, and the first three answers.
        if (index < 3 and answer) or bytes(answer[4:7]) != b"\0\0\0":
            write_seed("frames", f"{product}-{compression}-{len(answer) // 50 * 50}", seed)


def encode_segments(segments: list[bytes]) -> bytes:
    """The input of engine/wire/tests/parsers/session.rs: each segment after its length in two bytes."""
    return b"".join(len(segment).to_bytes(2, "little") + segment for segment in segments)


def packets(answer: bytes) -> list[bytes]:
    """The payloads of the packets in an answer."""
    payloads = []
    while answer:
        length = int.from_bytes(answer[:3], "little")
        payloads.append(answer[4 : 4 + length])
        answer = answer[4 + length :]
    return payloads


def first_row(answer: bytes) -> bytes:
    """The first row of a result without end markers, or the last packet."""
    payloads = packets(answer)
    columns = payloads[0][0]
    return payloads[1 + columns] if len(payloads) > columns + 1 else payloads[-1]


def plan(address: Address, **changes: Any) -> dict[str, Any]:
    """A plan that runs oltp_read_write for 0.1 s."""
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
    """Runs the engine against one server, and writes the seeds."""
    with proxy(address.port) as (port, connections):
        proxied = replace(address, port=port)
        environment = proxied.environment()
        for command in COMMANDS:
            Engine().run(command, plan(proxied), environment)
        text = plan(proxied)["workload"] | {"statements": "text"}
        # After cleanup the tables do not exist, so the server answers with errors.
        Engine().run("run", plan(proxied, workload=text), environment)
        Engine().run("run", plan(proxied), environment)
        Engine().run("run", plan(proxied), dict.fromkeys(environment, "wrong"))
    for connection in connections:
        write_seeds(product, connection)
    for compression in ("zlib", "zstd") if product == "mysql" else ("zlib",):
        with proxy(address.port) as (port, connections):
            proxied = replace(address, port=port)
            compressed = plan(proxied)
            compressed["target"]["compression"] = {"zstd": {"level": 3}} if compression == "zstd" else "zlib"
            for command in COMMANDS:
                Engine().run(command, compressed, proxied.environment())
        for connection in connections:
            write_frame_seeds(product, compression, connection)


def main() -> None:
    """Records the seeds of MariaDB and MySQL."""
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
