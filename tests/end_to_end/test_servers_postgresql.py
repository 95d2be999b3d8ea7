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
from dbdyno.run.data_state import DataState
from dbdyno.run.engine import Engine
from dbdyno.servers import open_remote, open_server
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.kinds.remote import Password, RemoteServer
from dbdyno.servers.server import Address, Server, ServerProblem
from dbdyno.servers.snapshots.cache import Snapshots
from dbdyno.servers.url import parse_url
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
    for name, value in description.set_by_dbdyno.items():
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
        ({"basedir": Path("/usr/share")}, "postgres is neither in this folder"),
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
    assert "max_connections" not in description.set_by_dbdyno
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
    assert server.stop_seconds is not None
    assert server.stop_seconds < 60
    server.start()
    assert server.query("SELECT a FROM kept") == [(7,)]


def test_a_server_that_dies_is_explained(started: Callable[..., LocalServer]) -> None:
    server = started("dies")
    process = psutil.Process(server.describe().identity["pid"])
    process.kill()
    process.wait(timeout=10)
    with pytest.raises(ServerProblem, match="the PostgreSQL server ended"):
        server.status()


@pytest.fixture
def closed(postgresql: LocalServer) -> Iterator[LocalServer]:
    """A server that has a role that may not log in, one that may not connect, and a database for neither."""
    password = postgresql.address().password
    for sql in (
        f"CREATE ROLE owner_only NOLOGIN PASSWORD '{password}'",
        f"CREATE ROLE stranger LOGIN PASSWORD '{password}'",
        f"CREATE ROLE crowded LOGIN CONNECTION LIMIT 0 PASSWORD '{password}'",
        "CREATE DATABASE closed",
        "REVOKE CONNECT ON DATABASE closed FROM PUBLIC",
        "GRANT CONNECT ON DATABASE closed TO crowded",
    ):
        postgresql.query(sql)
    ((file,),) = postgresql.query("SHOW hba_file")
    before = Path(file).read_text()
    lines = ["closed,missing stranger,owner_only,crowded 127.0.0.1/32 scram-sha-256"]
    lines += ["closed nobody 127.0.0.1/32 trust", "closed banned 127.0.0.1/32 reject"]
    Path(file).write_text(before + "".join(f"host {line}\n" for line in lines))
    postgresql.query("SELECT pg_reload_conf()")
    try:
        yield postgresql
    finally:
        Path(file).write_text(before)
        postgresql.query("SELECT pg_reload_conf()")
        postgresql.query("DROP DATABASE closed")
        postgresql.query("DROP ROLE owner_only, stranger, crowded")


@pytest.mark.parametrize(
    ("user", "database", "told", "fix"),
    [
        (
            "stranger",
            "closed",
            "user 'stranger' may not connect to database 'closed'",
            "GRANT CONNECT ON DATABASE",
        ),
        ("owner_only", "closed", "has a role 'owner_only' without the right to log in", "LOGIN"),
        ("crowded", "closed", "has no connection left", "raise max_connections"),
        ("stranger", "missing", "has no database 'missing' for user 'stranger'", "CREATE DATABASE"),
        ("stranger", "dbdyno", "no pg_hba.conf entry", "add an entry to pg_hba.conf"),
        ("banned", "closed", "pg_hba.conf rejects", "add an entry to pg_hba.conf"),
        ("nobody", "closed", "access denied for user 'nobody' with a password", "check user and password"),
        ("canary", "closed", "no pg_hba.conf entry", "add an entry to pg_hba.conf"),
    ],
)
def test_who_may_not_enter_is_told_why(
    closed: LocalServer, user: str, database: str, told: str, fix: str
) -> None:
    """libpq gives no SQLSTATE for any of these, and the server answers all the same."""
    address = closed.address()
    _refused(f"postgresql://{user}@127.0.0.1:{address.port}/{database}", address.password, told, fix)


def test_a_wrong_password_is_told(closed: LocalServer) -> None:
    target = f"postgresql://stranger@127.0.0.1:{closed.address().port}/closed"
    _refused(target, "wrong", "access denied for user 'stranger' with a password", "check user and password")
    _refused(target, "", "access denied for user 'stranger' without a password", "check user and password")


def _refused(target: str, password: str, told: str, fix: str) -> None:
    with pytest.raises(ServerProblem) as caught, closing(open_remote(target, password)) as server:
        server.start()
    problem = caught.value
    assert told in problem.text
    assert fix in problem.fix
    assert "cannot be reached" not in problem.text
    assert problem.exit_code == 3


def test_only_the_tables_of_the_run_are_vacuumed(postgresql: LocalServer, workspace: Workspace) -> None:
    """On a server that is only reached, the account's other tables are left as they are."""
    address = postgresql.address()
    target = f"postgresql://dbdyno@127.0.0.1:{address.port}/dbdyno"
    remote = Variant(name="theirs", server=ServerSpec(kind="remote", url=target))
    workload = OltpWorkload(name="oltp_point_select", tables=2, table_size=50)
    given = Experiment(
        name="settled",
        workloads=(workload,),
        load=Load(connections=(1,), duration_s=1.0),
        design=Design(state="preserve"),
        variants=(remote,),
    )
    data = DataState(given, workspace, Engine(), lambda _progress: None)
    with closing(RemoteServer(parse_url(target), Password(address.password), "theirs")) as server:
        server.start()
        server.query("CREATE TABLE foreign_one AS SELECT 1 AS id")
        try:
            with data.cleaning_up():
                data.prepare_group(server, workload, remote)
                vacuumed = dict(server.query("SELECT relname, vacuum_count FROM pg_stat_user_tables"))
                # By the loader, and once more to freeze their rows.
                assert vacuumed["sbtest1"] == vacuumed["sbtest2"] == 2
                assert vacuumed["foreign_one"] == 0
                # PostgreSQL has -1 for what was neither vacuumed nor analysed.
                rows = dict(server.query("SELECT relname, reltuples FROM pg_class WHERE relkind = 'r'"))
                assert (rows["sbtest1"], rows["foreign_one"]) == (50, -1)
        finally:
            server.query("DROP TABLE foreign_one")
