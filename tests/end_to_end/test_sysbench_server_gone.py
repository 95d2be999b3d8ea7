"""A server that dies in a run whose errors are ignored: the run ends with --time, and says since when."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from tests.end_to_end.differential import Case, Database, drop_in, said

PREPARED = "oltp_point_select --tables=1 --table-size=100"
# Beyond the time limit: connecting, the report, and a machine with other work.
GRACE_S = 5.0


@contextmanager
def dying(host: str, port: int, after_s: float) -> Iterator[int]:
    """The port of a server that dies so long after its first connection."""
    ends: list[socket.socket] = []

    def pump(source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                to.sendall(data)

    def die() -> None:
        for end in [listener, *ends]:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def accept() -> None:
        timer = threading.Timer(after_s, die)
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection((host, port))
                ends.extend((client, server))
                if not timer.is_alive():
                    timer.start()
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]


def run_until_the_server_dies(database: Database, options: str, way: tuple[str, ...]) -> str:
    """All that the drop-in prints, of a run of 2 s whose server is there for 1.2 s; checks its end."""
    address = database.server.address()
    with dying(str(address.host), address.port, 1.2) as port:
        run = f"sysbench {PREPARED} {{db}} --threads=3 --time=2 {options.format(port=port)} {{only}} run"
        began = time.monotonic()
        done = said(drop_in(database.folder, *way), Case("gone", run, tables=PREPARED), database)
        took_s = time.monotonic() - began
    assert done.exit_code == 1, done.raw
    assert took_s < 2 + GRACE_S
    assert re.search(r"FATAL: server gone since second [01]: ", done.raw), done.raw
    return done.raw


def reported_seconds(raw: str) -> float:
    """How long the run took by its own report."""
    total = re.search(r"total time: +([\d.]+)s", raw)
    assert total, raw
    return float(total[1])


def test_a_run_ends_although_its_server_is_gone(sbtest: Database, way: tuple[str, ...]) -> None:
    raw = run_until_the_server_dies(sbtest, "--mysql-ignore-errors=all --mysql-port={port}", way)
    assert 2.0 <= reported_seconds(raw) < 3.0, "what was measured is reported"


def test_a_run_on_postgresql_ends_too(pgsbtest: Database, way: tuple[str, ...]) -> None:
    raw = run_until_the_server_dies(pgsbtest, "--db-ignore-errors=all --pgsql-port={port}", way)
    assert 2.0 <= reported_seconds(raw) < 3.0
