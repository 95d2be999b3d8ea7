"""Private PostgreSQL servers for real: configuration, accounts, complaints, snapshots, their counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from dbdyno.checks import Context, Moment, run
from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.servers import open_server
from dbdyno.servers.local import LocalServer
from dbdyno.servers.server import Address, Server, ServerProblem
from dbdyno.servers.snapshots import Snapshots
from dbdyno.servers.workspace import Workspace

SMALL = {"shared_buffers": "32MB"}
ROWS = 5_000


def variant(name: str = "small", **spec: Any) -> Variant:
    variables = {**SMALL, **spec.pop("variables", {})}
    return Variant(name=name, server=ServerSpec(product="postgresql", variables=variables, **spec))


@pytest.fixture(scope="module")
def postgresql(workspace: Workspace) -> Iterator[LocalServer]:
    """A private PostgreSQL that is up, with settings in every spelling."""
    variables = {
        "shared_buffers": 4096,
        "work_mem": "2048kB",
        "checkpoint_timeout": "600s",
        "synchronous_commit": False,
        "random_page_cost": 1.1,
        "log_statement": "all",
    }
    with closing(LocalServer(variant("shared", variables=variables), workspace, None)) as server:
        server.start()
        yield server


@pytest.fixture
def started(workspace: Workspace) -> Iterator[Callable[..., LocalServer]]:
    servers: list[LocalServer] = []

    def start(name: str = "postgresql", **spec: Any) -> LocalServer:
        servers.append(LocalServer(variant(name, **spec), workspace, None))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def connect(address: Address, **how: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(
        **{
            "user": address.user,
            "password": address.password,
            "dbname": address.database,
            "host": address.host,
            "port": address.port,
            **how,
        },
        autocommit=True,
    )


def experiment(*variants: Variant) -> Experiment:
    return Experiment(
        name="postgresql",
        workloads=(OltpWorkload(name="oltp_read_only", table_size=ROWS),),
        load=Load(connections=(1,), duration_s=1.0),
        design=Design(seed=1),
        variants=variants or (variant("one"), variant("other", variables={"data_checksums": True})),
    )


def test_it_says_who_it_is(postgresql: LocalServer) -> None:
    description = postgresql.describe()
    identity = description.identity
    process = psutil.Process(identity["pid"])
    assert description.product == "postgresql"
    assert description.version == description.variables["server_version"]
    assert description.variables["data_directory"] == identity["datadir"]
    assert int(identity["system_identifier"]) > 0
    assert process.uids().real != 0
    assert description.units["shared_buffers"] == "8kB"
    assert description.origins["work_mem"] == "configuration file"
    for name, value in description.harness.items():
        assert description.variables[name] == value, name
    listening = {c.laddr.ip for c in process.net_connections("tcp") if c.status == "LISTEN"}
    assert listening == {"127.0.0.1"}
    # A session of ours leaves no trace in what is called the server's settings.
    assert "statement_timeout" not in description.origins


def test_every_declared_variable_is_read_back_whatever_its_spelling(postgresql: LocalServer) -> None:
    description = postgresql.describe()
    assert description.variables["shared_buffers"] == "32MB"
    asked = variant(
        "shared", variables={"shared_buffers": 4096, "work_mem": "2048kB", "checkpoint_timeout": "600s"}
    )
    good = Context(experiment(asked), variant=asked, server=postgresql, description=description)
    assert run(Moment.READY, good, ["P04"]) == []
    wrong = variant("shared", variables={"shared_buffers": 4097})
    (finding,) = run(
        Moment.READY,
        Context(experiment(wrong), variant=wrong, server=postgresql, description=description),
        ["P04"],
    )
    assert finding.level == "stop"
    assert "4097" in finding.text
    assert "32MB" in finding.text


def test_the_load_is_an_ordinary_role_over_both_transports(postgresql: LocalServer) -> None:
    address = postgresql.address()
    assert address.target("unix")["endpoints"][0]["unix"]["path"].endswith(f".s.PGSQL.{address.port}")
    assert address.target()["protocol"] == "postgresql"
    folder = str(Path(str(address.unix_socket)).parent)
    for how in ({}, {"host": folder}):
        with connect(address, **how) as connection:
            connection.execute("CREATE TABLE mine (a INT)")
            connection.execute("DROP TABLE mine")
            roles = connection.execute(
                "SELECT rolsuper, rolcreaterole, rolreplication FROM pg_roles WHERE rolname = current_user"
            ).fetchall()
            assert roles == [(False, False, False)]
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("ALTER SYSTEM SET work_mem = '1MB'")


def test_nobody_else_gets_in(postgresql: LocalServer) -> None:
    address = postgresql.address()
    for how in (
        {"password": "wrong"},
        {"user": "dbdyno_admin"},
        {"user": "postgres"},
        {"dbname": "postgres"},
    ):
        with pytest.raises(psycopg.OperationalError):
            connect(address, **how)


def test_the_password_is_in_no_file_and_no_argument(postgresql: LocalServer) -> None:
    secret = postgresql.address().password
    command = " ".join(psutil.Process(postgresql.describe().identity["pid"]).cmdline())
    own = Path(postgresql.describe().identity["datadir"]).parent
    # This one logs every statement.
    assert "SELECT 1 FROM pg_roles" not in (own / "error.log").read_text()
    for text in (command, repr(postgresql.address()), *(p.read_text() for p in own.iterdir() if p.is_file())):
        assert secret not in text


def test_counters_move_with_the_work_and_the_process_is_all_of_them(postgresql: LocalServer) -> None:
    before = postgresql.status()
    with connect(postgresql.address()) as connection:
        connection.execute("CREATE TABLE counted AS SELECT i FROM generate_series(1, 1000) i")
        connection.execute("DELETE FROM counted")
        # One more process, with its own use.
        use = postgresql.process()
        assert use["threads"] > 2
        assert (
            use["context_switches"] == use["context_switches_voluntary"] + use["context_switches_involuntary"]
        )
        assert int(postgresql.status()["pg_stat_activity.client_backends"]) >= 2
    after = postgresql.status()
    moved = {name: int(after[name]) - int(before[name]) for name in ("pg_stat_user_tables.n_tup_del",)}
    assert moved["pg_stat_user_tables.n_tup_del"] == 1000
    assert int(after["pg_stat_wal.wal_bytes"]) > int(before["pg_stat_wal.wal_bytes"])


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            {"variables": {"shared_bufers": "1MB", "inodb": 1}},
            "'shared_bufers' (did you mean 'shared_buffers'?), 'inodb'",
        ),
        ({"variables": {"shared_buffers": "512M"}}, "refuses the value '512M' for 'shared_buffers'"),
        ({"variables": {"work_mem": 1}}, "refuses 'work_mem': 1 kB is outside (64 .. 2147483647)"),
        ({"variables": {"shared_preload_libraries": "nosuch"}}, "has no library 'nosuch'"),
        ({"variables": {"listen_addresses": "*"}}, "variables.listen_addresses cannot be declared"),
        ({"basedir": Path("/usr/share")}, "there is no postgres in it"),
        ({"init_sql": ("NONSENSE",)}, "init_sql of 'bad'"),
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
    assert told in caught.value.text, caught.value.text
    assert not (workspace.base / "servers" / "bad").exists()


def test_the_users_own_file_and_arguments_reach_the_server(
    started: Callable[..., LocalServer], tmp_path: Path
) -> None:
    config = tmp_path / "postgresql.conf"
    config.write_text("work_mem = '3MB' # three\nport 1\ndata_directory = '/nowhere'\nmax_connections=33\n")
    server = started("own", config=config, arguments=("--maintenance_work_mem=9MB",))
    description = server.describe()
    assert description.variables["work_mem"] == "3MB"
    assert description.variables["maintenance_work_mem"] == "9MB"
    assert description.variables["max_connections"] == "33"
    assert description.declared["work_mem"] == "3MB"
    assert "max_connections" not in description.harness
    assert description.variables["port"] == str(description.identity["port"])


def test_snapshots_are_settled_and_restored(workspace: Workspace) -> None:
    asked, loads = experiment(), []

    def load(server: Server) -> None:
        loads.append(server.variables()["data_checksums"])
        with connect(server.address()) as connection:
            connection.execute("CREATE TABLE t (id INT PRIMARY KEY, c CHAR(120))")
            connection.execute(f"INSERT INTO t SELECT i, 'x' FROM generate_series(1, {ROWS}) i")

    for one in asked.variants:
        with (
            closing(Snapshots(workspace).obtain(asked, asked.workloads[0], one, load)) as snapshot,
            closing(open_server(one, workspace, snapshot)) as server,
        ):
            for _ in range(2):
                server.restore()
                server.start()
                assert server.query("SELECT COUNT(*), MAX(id) FROM t") == [(ROWS, ROWS)]
                # Frozen and analysed: no vacuum and no first reader has anything left to do.
                ((rows, visible, pages),) = server.query(
                    "SELECT reltuples::int, relallvisible, relpages FROM pg_class WHERE relname = 't'"
                )
                assert (rows, visible) == (ROWS, pages)
                server.query("DELETE FROM t")
                # Killed: the data are thrown away.
                server.stop(clean=False)
            assert not [
                p for p in psutil.process_iter(["cmdline"]) if str(snapshot.data) in str(p.info["cmdline"])
            ]
    assert loads == ["off", "on"]


def test_a_clean_stop_keeps_the_data_and_does_not_wait_for_clients(
    started: Callable[..., LocalServer],
) -> None:
    server = started("kept")
    server.query("CREATE TABLE kept AS SELECT 7 AS a")
    with closing(connect(server.address())):
        server.stop(clean=True)
    assert server.stopped_in_s is not None
    assert server.stopped_in_s < 60
    server.start()
    assert server.query("SELECT a FROM kept") == [(7,)]


def test_a_server_that_dies_is_explained(started: Callable[..., LocalServer]) -> None:
    server = started("dies")
    process = psutil.Process(server.describe().identity["pid"])
    process.kill()
    process.wait(timeout=10)
    with pytest.raises(ServerProblem, match="the PostgreSQL server ended"):
        server.status()
