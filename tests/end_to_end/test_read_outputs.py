"""`dbdyno read` on outputs that pgbench and mariadb-slap print here, against what the servers counted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.reading.document import parse
from dbdyno.reading.reading import Reading, read
from dbdyno.servers.kinds.local import LocalServer

PGBENCH = sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"))[-1]


def output_of(program: str | Path, *arguments: str, **environment: str) -> Reading:
    """The reading of the command line and of what it prints."""
    answer = subprocess.run(
        [str(program), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    command = " ".join([Path(program).name, *arguments])
    return read(parse(f"$ {command}\n{answer.stdout}{answer.stderr}".encode(), "output"))


def test_pgbench(started: Callable[..., LocalServer]) -> None:
    server = started(product="postgresql", variables={"shared_buffers": "32MB"})
    address = server.address()
    where = ("-h", "127.0.0.1", "-p", str(address.port), "-U", address.user, address.database)
    secret = {"PGPASSWORD": address.password}
    output_of(PGBENCH, "-i", "-q", "-s", "1", *where, **secret)
    reading = output_of(PGBENCH, "-c", "3", "-T", "1", "-P", "1", *where, **secret)
    (result,) = reading.results
    ((rows,),) = server.query("SELECT COUNT(*) FROM pgbench_history")
    assert result.value("transactions") == int(rows) > 0
    assert (result.connections, result.value("elapsed_s"), result.workload) == (3, 1, "TPC-B (sort of)")
    tps = result.value("tps")
    assert tps == pytest.approx(int(rows), rel=0.2)
    (call,) = reading.calls
    assert (call.tool, call.phase, call.connections) == ("pgbench", "run", 3)


def test_mariadb_slap(mariadb: LocalServer) -> None:
    address = mariadb.address()
    before = int(mariadb.status()["Com_select"])
    reading = output_of(
        "mariadb-slap",
        *("--host=127.0.0.1", f"--port={address.port}", f"--user={address.user}"),
        *("--concurrency=2", "--iterations=3", "--number-of-queries=60", "--query=SELECT 1"),
        MYSQL_PWD=address.password,
    )
    (result,) = reading.results
    queries = result.value("queries")
    assert (result.connections, queries) == (2, 60)
    assert int(mariadb.status()["Com_select"]) - before == pytest.approx(3 * 60, abs=10)
    seconds = [result.value(name) for name in ("min_s", "mean_s", "max_s")]
    assert None not in seconds
    assert seconds == sorted(seconds, key=lambda one: one or 0.0)
