"""Private MySQL servers for real: an unpacked root, its thread pool, accounts, complaints, snapshots."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pymysql
import pytest
from tests.end_to_end.mysql_server import ROOT

from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.servers import open_server
from dbdyno.servers.admin.mysql import connector
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import Address, Server, ServerProblem
from dbdyno.servers.snapshots.cache import Snapshots
from dbdyno.servers.workspace import Workspace

SMALL = {
    "innodb_buffer_pool_size": "64M",
    "innodb_redo_log_capacity": "16M",
    "performance_schema": False,
    "disable_log_bin": True,
}
POOL = ("--plugin-load-add=thread_pool.so",)
ROWS = 2_000


def variant(name: str = "small", **spec: Any) -> Variant:
    variables = {**SMALL, **spec.pop("variables", {})}
    return Variant(name=name, server=ServerSpec(product="mysql", basedir=ROOT, variables=variables, **spec))


@pytest.fixture(scope="module")
def pooled(workspace: Workspace) -> Iterator[LocalServer]:
    """A MySQL with its thread pool, of one group."""
    asked = variant("pooled", arguments=POOL, variables={"thread_pool_size": 1, "sort_buffer_size": "512KiB"})
    with closing(LocalServer(asked, workspace, None)) as server:
        server.start()
        yield server


@pytest.fixture
def started(workspace: Workspace) -> Iterator[Callable[..., LocalServer]]:
    servers: list[LocalServer] = []

    def start(name: str = "mysql", **spec: Any) -> LocalServer:
        servers.append(LocalServer(variant(name, **spec), workspace, None))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def connect(address: Address, **how: Any) -> pymysql.connections.Connection:
    return connector(user=address.user, password=address.password, database=address.database, **how)(10)


def test_it_says_who_it_is_and_what_was_declared_is_in_effect(pooled: LocalServer) -> None:
    description = pooled.describe()
    identity, variables = description.identity, description.variables
    process = psutil.Process(identity["pid"])
    assert description.product == "mysql"
    assert description.version == variables["version"]
    assert variables["datadir"].rstrip("/") == identity["datadir"]
    assert variables["port"] == str(identity["port"])
    assert identity["server_uuid"] == variables["server_uuid"]
    assert process.uids().real != 0
    assert variables["thread_pool_size"] == "1"
    assert variables["sort_buffer_size"] == "524288"
    assert variables["log_bin"] == "OFF"
    assert variables["plugin_dir"].startswith(variables["basedir"].rstrip("/"))
    assert description.origins["sort_buffer_size"] == "explicit"
    for name, value in description.set_by_dbdyno.items():
        assert variables[name] == value, name
    listening = {c.laddr for c in process.net_connections("tcp") if c.status == "LISTEN"}
    assert [(place.ip, place.port) for place in listening] == [("127.0.0.1", identity["port"])]


def test_the_loads_account_goes_through_the_pool_and_nobody_else_gets_in(pooled: LocalServer) -> None:
    address = pooled.address()
    users = {row[0] for row in pooled.query("SELECT User FROM mysql.user WHERE account_locked = 'N'")}
    assert users == {"dbdyno", "dbdyno_admin"}
    for how in ({"host": address.host, "port": address.port}, {"unix_socket": address.unix_socket}):
        with closing(connect(address, **how)) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GRANTS")
            grants = [row[0].partition(" TO ")[0] for row in cursor.fetchall()]
            # No TP_CONNECTION_ADMIN and nothing else that is global.
            assert grants == ["GRANT USAGE ON *.*", "GRANT ALL PRIVILEGES ON `dbdyno`.*"]


def test_administration_does_not_wait_for_a_full_thread_pool(pooled: LocalServer) -> None:
    address = pooled.address()
    sleepers = [connect(address, host=address.host, port=address.port) for _ in range(8)]
    for connection in sleepers:
        connection._execute_command(3, "SELECT SLEEP(8)")
    pooled._running_admin().close()
    began = time.monotonic()
    assert pooled.query("SELECT 1") == [(1,)]
    assert time.monotonic() - began < 5
    for connection in sleepers:
        connection._force_close()


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            {"variables": {"inodb_io_capacity": 5}},
            r"this MySQL.* server .*'inodb_io_capacity' \(did you mean 'innodb_io_capacity'\?\)",
        ),
        (
            {"variables": {"innodb_flush_method": "blah"}},
            "this MySQL.* server refuses the value 'blah' for 'innodb_flush_method'",
        ),
        (
            {"arguments": ("--plugin-load-add=nosuch.so",)},
            r"ignored a declared setting: .*nosuch\.so",
        ),
        ({"variables": {"datadir": "/x"}}, r"variables\.datadir cannot be declared"),
    ],
)
def test_a_variant_that_cannot_be_served_is_told_why(
    workspace: Workspace, spec: dict[str, object], told: str
) -> None:
    with (
        pytest.raises(ServerProblem) as caught,
        closing(LocalServer(variant("bad", **spec), workspace, None)) as server,
    ):
        server.start()
    assert re.search(told, caught.value.text), caught.value.text


def test_a_folder_without_a_server_and_the_wrong_product_are_told(workspace: Workspace) -> None:
    for spec, told in (
        (ServerSpec(product="mysql", basedir=Path("/usr/share")), "mysqld is neither in this folder"),
        (ServerSpec(product="mysql", basedir=Path("/usr")), "is not a MySQL server"),
        (ServerSpec(product="mariadb", basedir=ROOT), "mariadb-install-db is neither in this folder"),
    ):
        asked = experiment()
        wrong = Variant(name="wrong", server=spec)
        with pytest.raises(ServerProblem) as caught:
            Snapshots(workspace).find_bytes(asked, asked.workloads[0], wrong)
        assert re.search(told, caught.value.text), caught.value.text


def experiment() -> Experiment:
    return Experiment(
        name="snapshots",
        workloads=(OltpWorkload(name="oltp_read_only", table_size=ROWS),),
        load=Load(connections=(1,), duration_s=1.0),
        design=Design(seed=1),
        variants=(
            variant("plain"),
            variant("pool", arguments=POOL),
            variant("pages", variables={"innodb_page_size": "8k"}),
        ),
    )


def test_a_snapshot_is_shared_by_what_can_open_it_and_restored(workspace: Workspace) -> None:
    asked, loads = experiment(), []

    def load(server: Server) -> None:
        variables = server.variables()
        loads.append((variables["innodb_page_size"], variables["log_bin"]))
        server.query("CREATE TABLE dbdyno.t (id INT PRIMARY KEY, c CHAR(120)) ENGINE=InnoDB")
        numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) "
        server.query("SET SESSION cte_max_recursion_depth = 1000000")
        server.query(f"INSERT INTO dbdyno.t {numbers} SELECT i, REPEAT('x', 120) FROM n")

    made = [Snapshots(workspace).obtain(asked, asked.workloads[0], one, load) for one in asked.variants]
    assert loads == [("16384", "OFF"), ("8192", "OFF")]
    assert made[0].key == made[1].key != made[2].key
    uuids = set()
    for one, snapshot in zip(asked.variants, made, strict=True):
        with closing(open_server(one, workspace, snapshot)) as server:
            for _ in range(2):
                server.restore()
                server.start()
                assert server.query("SELECT COUNT(*), MAX(id) FROM dbdyno.t") == [(ROWS, ROWS)]
                server.query("DELETE FROM dbdyno.t")
                uuids.add(server.describe().identity["server_uuid"])
                server.stop(clean=False)
        snapshot.close()
    # A restored copy is the server it was copied from: what tells them apart is where they live.
    assert len(uuids) == 2


def test_a_clean_stop_keeps_the_data(started: Callable[..., LocalServer]) -> None:
    server = started("kept")
    server.query("CREATE TABLE dbdyno.t AS SELECT 7 AS a")
    server.stop(clean=True)
    assert server.stop_seconds is not None
    server.start()
    assert server.query("SELECT a FROM dbdyno.t") == [(7,)]


def test_programs_that_the_servers_user_cannot_reach_are_copied(workspace: Workspace, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "bin").mkdir(parents=True)
    (closed / "bin" / "mysqld").write_text("#!/bin/sh\necho mysqld  Ver 9.0\n")
    closed.chmod(0o700)
    if not workspace.user.switches:
        assert workspace.reachable(closed) == closed
        return
    copy = workspace.reachable(closed)
    assert copy is not None
    assert copy != closed
    assert workspace.user.may_enter(copy)
    assert (copy / "bin" / "mysqld").read_text() == (closed / "bin" / "mysqld").read_text()
    assert workspace.reachable(closed) == copy
    assert workspace.reachable(Path("/usr")) == Path("/usr")
