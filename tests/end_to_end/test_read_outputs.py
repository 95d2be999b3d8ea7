"""`dbdyno read` on outputs that pgbench and mariadb-slap print here, against what the servers counted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.reading.checks import examine
from dbdyno.reading.document import parse
from dbdyno.reading.reading import Reading, read
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

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


@pytest.fixture
def postgresql(workspace: Workspace) -> Iterator[LocalServer]:
    spec = ServerSpec(product="postgresql", variables={"shared_buffers": "32MB"})
    with closing(LocalServer(Variant(name="pgbench", server=spec), workspace, None)) as server:
        server.start()
        yield server


def test_pgbench(postgresql: LocalServer) -> None:
    server = postgresql
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


def slap(server: LocalServer, schema: str) -> Reading:
    address = server.address()
    return output_of(
        "mariadb-slap",
        *("--host=127.0.0.1", f"--port={address.port}", f"--user={address.user}"),
        *("--concurrency=2", "--iterations=3", "--number-of-queries=60", "--query=SELECT 1"),
        f"--create-schema={schema}",
        MYSQL_PWD=address.password,
    )


def test_mariadb_slap(mariadb: LocalServer) -> None:
    before = int(mariadb.status()["Com_select"])
    reading = slap(mariadb, mariadb.address().database)
    (result,) = reading.results
    assert (result.connections, result.value("queries")) == (2, 60)
    assert int(mariadb.status()["Com_select"]) - before == pytest.approx(3 * 60, abs=10)
    seconds = [result.value(name) for name in ("min_s", "mean_s", "max_s")]
    assert None not in seconds
    assert seconds == sorted(seconds, key=lambda one: one or 0.0)
    assert "D03" not in {one.code for one in examine(reading)}


def test_mariadb_slap_that_could_not_connect(mariadb: LocalServer) -> None:
    """It prints the time of a benchmark, and ends with 0."""
    before = int(mariadb.status()["Com_select"])
    reading = slap(mariadb, "not_allowed")
    assert len(reading.results) == 1
    assert int(mariadb.status()["Com_select"]) == before
    assert "D03" in {one.code for one in examine(reading)}
