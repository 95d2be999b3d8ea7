"""The checks on servers that dbdyno does not start: variables, durability, round trips, and their cost."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.comparing import TWO_CONNECTIONS, Comparing, environment
from tests.end_to_end.mysql_server import MySQLServer
from tests.end_to_end.stalling import ThreadServer

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.model import Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.finding import Finding
from dbdyno.run.engine import Engine
from dbdyno.run.loading import prepare
from dbdyno.run.sampling import STATEMENTS, measure_round_trips
from dbdyno.servers import open_remote
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import Description, Server
from dbdyno.servers.workspace import Workspace

DELAY_S = 0.003
# What a check must not execute.
CHANGES = (
    *("Com_insert", "Com_update", "Com_delete", "Com_truncate", "Com_create_table", "Com_alter_table"),
    *("Com_drop_table", "Com_analyze", "Com_flush", "Com_grant"),
)


def url(server: Server | MySQLServer, port: int | None = None) -> str:
    scheme = "postgresql" if server.address().protocol == "postgresql" else "mysql"
    return f"{scheme}://dbdyno@127.0.0.1:{port or server.address().port}/dbdyno"


def experiment(server: Server) -> Experiment:
    spec = ServerSpec(kind="remote", url=url(server))
    return Experiment(
        name="remote",
        workloads=(OltpWorkload(name="oltp_read_write", tables=2, table_size=1000),),
        load=Load(connections=(4,), duration_s=1.0),
        variants=(Variant(name="base", server=spec), Variant(name="own", server=spec)),
    )


def context(of: Experiment, server: Server, base: Description, own: Description) -> Context:
    """The second variant, with the first as its only peer."""
    return Context(
        of,
        variant=of.variants[1],
        server=server,
        description=own,
        peers={"base": base},
        workload=of.workloads[0],
    )


def find(code: str, server: Server, base: Description, own: Description) -> list[Finding]:
    return checks.run(Moment.READY, context(experiment(server), server, base, own), [code])


def test_a_changed_variable_is_found_and_equal_servers_are_silent(mariadb: LocalServer) -> None:
    base = mariadb.describe()
    assert find("P05", mariadb, base, mariadb.describe()) == []
    assert [one.level for one in find("P06", mariadb, base, mariadb.describe())] == ["note"]
    ((before,),) = mariadb.query("SELECT @@GLOBAL.sort_buffer_size")
    mariadb.query("SET GLOBAL sort_buffer_size = 262144, GLOBAL innodb_flush_log_at_trx_commit = 0")
    try:
        own = mariadb.describe()
    finally:
        mariadb.query(f"SET GLOBAL sort_buffer_size = {before}, GLOBAL innodb_flush_log_at_trx_commit = 1")
    (warning, *_) = find("P05", mariadb, base, own)
    assert warning.level == "warn"
    assert warning.evidence["variables"] == {"sort_buffer_size": {"base": str(before), "own": "262144"}}
    texts = [one.text for one in find("P06", mariadb, base, own) if one.level == "warn"]
    assert len(texts) == 2
    assert "innodb_flush_log_at_trx_commit = 0 guarantees less" in texts[0]
    assert "innodb_flush_log_at_trx_commit (1 and 0)" in texts[1]


def test_the_same_with_postgresql(workspace: Workspace) -> None:
    spec = ServerSpec(product="postgresql", variables={"shared_buffers": "32MB"})
    with closing(LocalServer(Variant(name="postgresql", server=spec), workspace, None)) as server:
        server.start()
        _check_postgresql(server)


def _check_postgresql(server: LocalServer) -> None:
    base = server.describe()
    assert find("P05", server, base, server.describe()) == []
    server.query("ALTER SYSTEM SET random_page_cost = 1.5")
    server.query("SELECT pg_reload_conf()")
    deadline = time.monotonic() + 10.0
    while server.variables()["random_page_cost"] != "1.5":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (warning,) = find("P05", server, base, server.describe())
    assert warning.evidence["variables"] == {"random_page_cost": {"base": "4", "own": "1.5"}}
    # A second of load is shorter than any period.
    (note,) = find("P18", server, base, base)
    assert note.evidence["periods_s"] == {"checkpoint_timeout": 300.0, "autovacuum_naptime": 60.0}


def test_the_cpus_of_a_remote_mysql_are_known(mysql: MySQLServer) -> None:
    mysql.sql("GRANT RESOURCE_GROUP_USER ON *.* TO dbdyno@'%'")
    try:
        with closing(open_remote(url(mysql), mysql.address().password)) as server:
            server.start()
            description = server.describe()
    finally:
        mysql.sql("REVOKE RESOURCE_GROUP_USER ON *.* FROM dbdyno@'%'")
    assert description.host["cpus"] == len(os.sched_getaffinity(0))
    assert find("P10", server, description, description) == []
    fewer = replace(description, host={**description.host, "cpus": 64})
    (warning,) = find("P10", server, description, fewer)
    assert warning.evidence["CPUs"]["own"] == "64"
    assert find("P18", server, description, description) == []


def test_all_checks_of_a_remote_server_take_seconds_and_change_nothing(
    mariadb: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", environment()["PATH"])
    of = experiment(mariadb)
    prepare(of, of.workloads[0], mariadb, Engine(), lambda _news: None)
    database = mariadb.address().database
    tables = [f"{database}.sbtest{number}" for number in (1, 2)]
    try:
        variables = mariadb.variables()
        sums = mariadb.query(f"CHECKSUM TABLE {', '.join(tables)}")
        before = mariadb.status()
        with closing(open_remote(url(mariadb), mariadb.address().password)) as server:
            server.start()
            began = time.monotonic()
            description = server.describe()
            checks.run(Moment.DESIGN, Context(of))
            findings = checks.run(Moment.READY, context(of, server, description, description))
            round_trips = measure_round_trips(server)
            took_s = time.monotonic() - began
        after = mariadb.status()
        assert took_s < 10.0
        assert {one.code for one in findings} >= {"P06", "P14"}
        assert [one["statements"] for one in round_trips] == [STATEMENTS]
        assert {name: after[name] for name in CHANGES} == {name: before[name] for name in CHANGES}
        assert mariadb.variables() == variables
        assert mariadb.query(f"CHECKSUM TABLE {', '.join(tables)}") == sums
    finally:
        mariadb.query(f"DROP TABLE {', '.join(tables)}")


def test_a_server_that_dbdyno_starts_has_no_round_trips_to_measure(mariadb: LocalServer) -> None:
    assert measure_round_trips(mariadb) == []
    with closing(open_remote(url(mariadb, 1), "wrong")) as unreachable:
        assert measure_round_trips(unreachable) == []


class _Delay(ThreadServer):
    """A TCP proxy whose server's answers arrive later, as from a distant machine."""

    def __init__(self, port: int) -> None:
        self._target = port

    async def listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
        await asyncio.gather(
            self._copy(reader, to_server, 0.0),
            self._copy(from_server, writer, DELAY_S),
            return_exceptions=True,
        )

    async def _copy(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, delay_s: float) -> None:
        while data := await source.read(1 << 16):
            await asyncio.sleep(delay_s)
            to.write(data)
        to.close()


VARIANT = """
[[variant]]
name = "{name}"
server = {{ kind = "remote", url = "{url}", password_file = "{file}" }}
"""


def test_the_network_between_is_found(
    started: Callable[..., LocalServer], results: Path, tmp_path: Path
) -> None:
    near, far = started("near"), started("far")
    files = {}
    for name, server in (("near", near), ("far", far)):
        files[name] = tmp_path / name
        files[name].write_text(server.address().password)
        files[name].chmod(0o644 if name == "far" else 0o600)
    with _Delay(far.address().port) as proxy:
        text = TWO_CONNECTIONS.replace("oltp_read_write", "oltp_point_select") + VARIANT.format(
            name="near", url=url(near), file=files["near"]
        )
        text += VARIANT.format(name="far", url=url(far, proxy.port), file=files["far"])
        comparing = Comparing(results, text)
        answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    run = comparing.newest()
    found: list[dict[str, Any]] = json.loads((run.path / "verdict.json").read_text())["checks"]
    of_p12 = [(one["level"], one["subject"]) for one in found if one["code"] == "P12"]
    # On a slow machine the round trip of the lab is also long against a transaction of the near server.
    of_far = [one for one in of_p12 if one[1] != "near"]
    assert of_far == [("note", ""), ("warn", "far"), ("warn", "far")]
    ((_, trips),) = [
        (one["code"], one["evidence"]["round_trips"]) for one in found if "round_trips" in one["evidence"]
    ]
    assert trips["far"]["min_us"] >= DELAY_S * 1e6 > trips["near"]["p50_us"]
    # The load generator could do far more, nobody has set a variable, and one password is readable.
    ceiling = json.loads((run.path / "ceiling.json").read_text())["workloads"]["oltp_point_select"]
    assert ceiling["events_per_s"] > 1000.0
    levels = {code: [one["level"] for one in found if one["code"] == code] for code in ("P05", "P13", "P20")}
    assert levels == {"P05": [], "P13": [], "P20": ["warn"]}
    assert "see P20" not in answer.stdout
