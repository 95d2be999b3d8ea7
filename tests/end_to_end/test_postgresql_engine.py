"""The engine on a real PostgreSQL: logins, TLS, every workload, loading, retries, connections that are lost.

Counts are held against pg_stat_statements, rows against what the engine writes for the other databases.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.certificates import Authority

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

ROWS = 1000
# Connections that get into each other's way.
CROWD = 12
# What text holds of a table, independent of the order of its rows.
CHECKSUM = (
    "SELECT COUNT(*)::text || md5(string_agg(md5(concat_ws(',', id, k, c, pad)), '' ORDER BY id)) FROM {}"
)
# Kinds of statement by the beginning of their normalised text.
WRITES = ("UPDATE", "DELETE", "INSERT")
WITH_TRANSACTION = ("oltp_read_write", "oltp_read_only", "oltp_write_only")
SEEDS = itertools.count(1)


@pytest.fixture(scope="module")
def authority(results: Path) -> Authority:
    """Who signs the server's certificate."""
    return Authority.make(results / "authority of postgresql")


@pytest.fixture(scope="module")
def postgresql(workspace: Workspace, authority: Authority) -> Iterator[LocalServer]:
    """A private PostgreSQL with TLS, and with statements counted."""
    certificate, key = authority.issue("postgresql", "DNS:localhost,IP:127.0.0.1")
    workspace.user.own(key, 0o600)
    variables: dict[str, str | int | float | bool] = {
        "shared_buffers": "32MB",
        "max_connections": 60,
        "shared_preload_libraries": "pg_stat_statements",
        "ssl": True,
        "ssl_cert_file": str(certificate),
        "ssl_key_file": str(key),
    }
    spec = ServerSpec(product="postgresql", variables=variables)
    with closing(LocalServer(Variant(name="engine on postgresql", server=spec), workspace, None)) as server:
        server.start()
        server.query("CREATE EXTENSION pg_stat_statements")
        yield server


@pytest.fixture(autouse=True)
def no_tables(postgresql: LocalServer) -> None:
    """Every test begins without tables."""
    names = ", ".join(f"sbtest{number}" for number in range(1, 6))
    postgresql.query(f"DROP TABLE IF EXISTS {names}")


def engine(command: Any, server: LocalServer, **changes: Any) -> tuple[EngineResult, list[Any]]:
    """The result and every record of one command; a short oltp_read_write by default."""
    address = server.address()
    target = {**address.target(), **changes.pop("target", {})}
    workload = {"name": "oltp_read_write", **changes.pop("workload", {})}
    workload["options"] = {"tables": 2, "table_size": ROWS, **workload.get("options", {})}
    plan = {
        "schema": 1,
        "target": target,
        "workload": workload,
        "load": {"connections": 2},
        "phases": {"measure_us": 300_000},
        "seed": next(SEEDS),
        **changes,
    }
    records: list[Any] = []
    result = Engine().run(command, plan, address.environment(), records.append)
    return result, records


def prepared(server: LocalServer, **changes: Any) -> list[Any]:
    """Load; the records."""
    result, records = engine("prepare", server, **changes)
    assert result.done, result.failure()
    return records


def measured(result: EngineResult) -> Any:
    """Totals of the measurement of a run that went well."""
    assert result.done, result.failure()
    assert result.end is not None
    return result.end["phases"]["measure"]


def row_count_mismatches(records: list[Any]) -> int:
    kinds = [
        kind
        for record in records
        if record["type"] == "statements"
        for kind in record["data"]["kinds"].values()
    ]
    assert kinds
    return sum(kind["row_count_mismatches"] for kind in kinds)


# Workloads ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statements", ["prepared", "text"])
@pytest.mark.parametrize(
    "name",
    [
        "oltp_read_write",
        "oltp_read_only",
        "oltp_point_select",
        "oltp_update_index",
        "oltp_update_non_index",
        "oltp_delete",
        "oltp_insert",
        "select_random_points",
        "select_random_ranges",
        "bulk_insert",
    ],
)
def test_the_server_counts_what_the_engine_counts(
    postgresql: LocalServer, name: str, statements: str
) -> None:
    workload = {"name": name, "statements": statements}
    prepared(postgresql, workload=workload)
    postgresql.query("SELECT pg_stat_statements_reset()")
    phases = {"measure_us": 0, "events": 2_000 if name == "bulk_insert" else 60}
    result, records = engine("run", postgresql, workload=workload, phases=phases)
    totals = measured(result)
    assert row_count_mismatches(records) == 0
    user = postgresql.address().user
    rows = postgresql.query(
        "SELECT query, calls, rows FROM pg_stat_statements s JOIN pg_roles r ON r.oid = s.userid "
        f"WHERE r.rolname = '{user}' AND query NOT LIKE '%MAX(id)%'"
    )

    def called(*verbs: str) -> int:
        return sum(int(calls) for text, calls, _ in rows if text.upper().startswith(verbs))

    assert totals["reads"] == called("SELECT")
    around = 2 * totals["events"] if name in WITH_TRANSACTION else 0
    # A delete that finds no row counts among the others.
    assert totals["writes"] + totals["other"] - around == called(*WRITES)
    if statements == "text":  # PostgreSQL 15 counts a prepared BEGIN at its first execution only.
        assert around == called("BEGIN", "COMMIT")
    if name == "oltp_delete":
        assert totals["writes"] == sum(
            int(changed) for text, _, changed in rows if text.upper().startswith("DELETE")
        )


# Loading --------------------------------------------------------------------------------------------------


def test_rows_depend_neither_on_the_streams_nor_on_the_way(postgresql: LocalServer) -> None:
    sums = []
    for method, way, streams in (("auto", "copy", 1), ("copy", "copy", 4), ("insert", "insert", 2)):
        result, _ = engine("cleanup", postgresql)
        assert result.done
        records = prepared(postgresql, loading={"method": method, "streams": streams}, seed=5)
        (loaded,) = [record["data"] for record in records if record["type"] == "loaded"]
        assert (loaded["way"], loaded["rows"]) == (way, 2 * ROWS)
        sums.append([postgresql.query(CHECKSUM.format(table)) for table in ("sbtest1", "sbtest2")])
    assert sums[0] == sums[1] == sums[2]
    # The sequence goes on after the last row.
    assert postgresql.query("SELECT nextval(pg_get_serial_sequence('sbtest2', 'id'))::text") == [
        (str(ROWS + 1),)
    ]


def test_rows_are_those_of_the_other_databases(postgresql: LocalServer, mariadb: LocalServer) -> None:
    prepared(postgresql, seed=7)
    prepared(mariadb, seed=7)
    sql = "SELECT id, k, c, pad FROM {}sbtest2 ORDER BY id"
    theirs = [(int(i), int(k), str(c), str(p)) for i, k, c, p in mariadb.query(sql.format("dbdyno."))]
    ours = [(i, k, c.rstrip(), p.rstrip()) for i, k, c, p in postgresql.query(sql.format(""))]
    assert ours == theirs


def test_only_marked_tables_are_kept_or_dropped(postgresql: LocalServer) -> None:
    prepared(postgresql, seed=1)
    records = prepared(postgresql, seed=1)
    assert [record["data"]["step"] for record in records if record["type"] == "loading"] == ["kept", "kept"]
    result, _ = engine("prepare", postgresql, seed=2)
    assert result.end is not None
    assert result.end["reason"] == "data-conflict"
    postgresql.query("COMMENT ON TABLE sbtest2 IS NULL")
    result, records = engine("cleanup", postgresql, seed=1)
    assert result.done
    assert [record["data"]["code"] for record in records if record["type"] == "warning"] == ["table-kept"]
    assert postgresql.query("SELECT relname::text FROM pg_class WHERE relname IN ('sbtest1', 'sbtest2')") == [
        ("sbtest2",)
    ]


def test_prewarm_reads_every_table(postgresql: LocalServer) -> None:
    prepared(postgresql)
    result, records = engine("run", postgresql, prewarm="scan")
    assert result.done, result.failure()
    warmed = [record["data"]["table"] for record in records if record["type"] == "loading"]
    assert warmed == ["sbtest1", "sbtest2"]


# Logins and encryption ------------------------------------------------------------------------------------


@pytest.fixture
def rules(postgresql: LocalServer) -> Iterator[Callable[[str], None]]:
    """Set the method by which the load's account logs in."""
    ((name,),) = postgresql.query("SHOW hba_file")
    file = Path(str(name))
    before = file.read_text()
    address = postgresql.address()

    def set_to(rule: str, encryption: str = "scram-sha-256") -> None:
        file.write_text(f"{rule}\n{before}")
        postgresql.query(f"SET password_encryption = '{encryption}'")
        postgresql.query(f"ALTER ROLE {address.user} PASSWORD '{address.password}'")
        loaded = postgresql.query("SELECT pg_conf_load_time()::text")
        postgresql.query("SELECT pg_reload_conf()")
        while postgresql.query("SELECT pg_conf_load_time()::text") == loaded:
            time.sleep(0.02)

    yield set_to
    set_to("")


def session(postgresql: LocalServer, **target: Any) -> Mapping[str, Any]:
    """What a login settled."""
    result, records = engine("run", postgresql, target=target)
    assert result.done, result.failure()
    (ready,) = [record["data"] for record in records if record["type"] == "ready"]
    return dict(ready)


def test_logins(postgresql: LocalServer, rules: Callable[..., None], authority: Authority) -> None:
    prepared(postgresql)
    user = postgresql.address().user
    unix = postgresql.address().target("unix")["endpoints"]
    scram = session(postgresql)
    assert (scram["authentication"], scram["tls"]) == ("scram-sha-256", None)
    assert scram["server_version"].startswith("1")
    assert session(postgresql, endpoints=unix)["authentication"] == "scram-sha-256"
    bound = session(postgresql, tls={"mode": "required"})
    assert bound["authentication"] == "scram-sha-256-plus"
    assert bound["tls"].startswith("TLSv1.3")
    rules(f"host all {user} 127.0.0.1/32 md5\nlocal all {user} password", "md5")
    assert session(postgresql)["authentication"] == "md5"
    rules(f"host all {user} 127.0.0.1/32 password\nlocal all {user} password")
    for tls in ({"mode": "disabled"}, {"mode": "required"}):
        result, _ = engine("run", postgresql, target={"tls": tls})
        assert result.exit_code == 3
        assert "asks for the password itself" in result.failure()
    verified = {"mode": "verify-identity", "ca": str(authority.certificate)}
    assert session(postgresql, tls=verified)["authentication"] == "password"
    assert session(postgresql, endpoints=unix)["authentication"] == "password"
    rules(f"host all {user} 127.0.0.1/32 trust")
    assert session(postgresql, password=None)["authentication"] == "trust"
    rules(f"hostssl all {user} 127.0.0.1/32 scram-sha-256\nhostnossl all {user} 127.0.0.1/32 reject")
    result, _ = engine("run", postgresql)
    assert "28000" in result.failure()
    assert "pg_hba.conf" in result.failure()


def test_modes_of_tls(postgresql: LocalServer, authority: Authority, results: Path) -> None:
    prepared(postgresql)
    ca = str(authority.certificate)
    assert session(postgresql, tls={"mode": "preferred"})["tls"]
    assert session(postgresql, tls={"mode": "verify-ca", "ca": ca})["tls"]
    place = [{"tcp": {"host": "localhost", "port": postgresql.address().port}}]
    assert session(postgresql, tls={"mode": "verify-identity", "ca": ca}, endpoints=place)["tls"]
    other = Authority.make(results / "another authority")
    result, _ = engine("run", postgresql, target={"tls": {"mode": "verify-ca", "ca": str(other.certificate)}})
    assert "not signed by a CA" in result.failure()
    unix = postgresql.address().target("unix")["endpoints"]
    result, _ = engine("run", postgresql, target={"tls": {"mode": "required"}, "endpoints": unix})
    assert "offers no TLS" in result.failure()
    assert session(postgresql, tls={"mode": "preferred"}, endpoints=unix)["tls"] is None


def test_a_wrong_password_is_told_by_its_state(postgresql: LocalServer) -> None:
    address = postgresql.address()
    plan = {
        "schema": 1,
        "target": address.target(),
        "workload": {"name": "oltp_point_select"},
        "load": {"connections": 1},
        "phases": {"measure_us": 1000},
        "seed": 1,
    }
    result = Engine().run("run", plan, {address.PASSWORD_VARIABLE: "wrong"})
    assert result.exit_code == 3
    assert "28P01" in result.failure()
    assert address.password not in result.failure()


def assert_retried(totals: Mapping[str, Any]) -> None:
    """Every error was, but for those that were met at the very end."""
    errors = sum(totals["errors"].values())
    assert errors - CROWD <= totals["retries"] <= errors
    assert totals["retries"] > 0


# Errors ---------------------------------------------------------------------------------------------------


def test_deadlocks_are_rolled_back_and_retried(postgresql: LocalServer) -> None:
    options = {
        "tables": 1,
        "table_size": 5,
        "range_size": 5,
        "index_updates": 3,
        "non_index_updates": 3,
        "delete_inserts": 0,
    }
    workload = {"name": "oltp_write_only", "options": options}
    prepared(postgresql, workload=workload)
    for _ in range(10):  # How often two of them meet is chance.
        result, _ = engine(
            "run",
            postgresql,
            workload=workload,
            load={"connections": CROWD},
            phases={"measure_us": 1_500_000},
        )
        totals = measured(result)
        assert set(totals["errors"]) <= {"40P01"}
        if totals["errors"]:
            break
    assert totals["error_classes"] == {"40P01": "deadlock"}
    assert_retried(totals)


def test_serialization_failures_are_retried(postgresql: LocalServer) -> None:
    user = postgresql.address().user
    postgresql.query(f"ALTER ROLE {user} SET default_transaction_isolation = 'repeatable read'")
    try:
        options = {"tables": 1, "table_size": 5, "non_index_updates": 0, "delete_inserts": 0}
        workload = {"name": "oltp_write_only", "options": options}
        prepared(postgresql, workload=workload)
        result, _ = engine(
            "run",
            postgresql,
            workload=workload,
            load={"connections": CROWD},
            phases={"measure_us": 1_500_000},
        )
    finally:
        postgresql.query(f"ALTER ROLE {user} RESET default_transaction_isolation")
    totals = measured(result)
    assert set(totals["errors"]) <= {"40001", "40P01"}
    assert totals["errors"]["40001"] > 0
    assert totals["error_classes"]["40001"] == "serialization"
    assert_retried(totals)


def test_an_error_that_is_not_retried_ends_the_run(postgresql: LocalServer) -> None:
    result, _ = engine("run", postgresql)
    assert result.exit_code == 3
    assert "42P01" in result.failure()
    assert "prepare with the same options" in result.failure()


def test_terminated_sessions_are_opened_again(postgresql: LocalServer) -> None:
    prepared(postgresql)
    address = postgresql.address()
    ended: list[int] = []
    over = threading.Event()

    def terminate() -> None:
        """End each of the load's sessions once, after a second: one that still prepares ends the run."""
        sql = (
            "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE usename = '{address.user}' AND application_name = 'dbdyno' "
            "AND backend_start < clock_timestamp() - interval '1 second'"
        )
        while not over.is_set() and not ended:
            ended.extend(int(pid) for pid, done in postgresql.query(sql) if done)
            time.sleep(0.3)

    killer = threading.Thread(target=terminate)
    killer.start()
    result, _ = engine("run", postgresql, load={"connections": 3}, phases={"measure_us": 3_000_000})
    over.set()
    killer.join()
    totals = measured(result)
    assert ended
    # One that was ended before the clock started is not among them.
    assert totals["reconnects"] <= len(ended)
    # Transactions of others that replace the same row are retried, and counted too.
    assert set(totals["errors"]) <= {"57P01", "08006", "08001", "23505", "40001", "40P01"}
    assert totals["error_classes"].keys() == totals["errors"].keys()
    lost = {code for code, meaning in totals["error_classes"].items() if meaning == "lost"}
    assert lost == set(totals["errors"]) & {"57P01", "08006"}
    assert totals["events"] > 0


def wait_for_sessions_to_end(postgresql: LocalServer) -> None:
    """Return when the server has ended every session of a load, which it does after the client is gone."""
    sql = f"SELECT pid FROM pg_stat_activity WHERE usename = '{postgresql.address().user}'"
    deadline = time.monotonic() + 30
    while postgresql.query(sql):
        assert time.monotonic() < deadline, "sessions of a load that has ended are still there"
        time.sleep(0.02)


@pytest.mark.parametrize("what", ["ROLE", "DATABASE"])
def test_a_limit_of_its_own_is_counted_out(postgresql: LocalServer, what: str) -> None:
    address = postgresql.address()
    name = address.user if what == "ROLE" else address.database
    prepared(postgresql)
    # The administrator asks the same database.
    fit, others = (6, 0) if what == "ROLE" else (5, 1)
    postgresql.query(f"ALTER {what} {name} CONNECTION LIMIT 6")
    try:
        result, _ = engine("run", postgresql, load={"connections": 9})
        wait_for_sessions_to_end(postgresql)
        fits, _ = engine("run", postgresql, load={"connections": fit})
    finally:
        postgresql.query(f"ALTER {what} {name} CONNECTION LIMIT -1")
    assert result.exit_code == 3
    words = result.failure()
    assert "53300" in words
    assert (
        f"the run needs 9 connections, and CONNECTION LIMIT of the {what.lower()} is 6, of which others use "
        f"{others}: at most {fit} connections fit"
    ) in words
    assert f"ALTER {what} … CONNECTION LIMIT {9 + others}, or use fewer connections" in words
    assert fits.done, fits.failure()


def test_connections_beyond_the_servers_slots_are_counted_out(postgresql: LocalServer) -> None:
    prepared(postgresql)
    slots = int(postgresql.variables()["max_connections"])
    result, _ = engine("run", postgresql, load={"connections": slots + 5})
    assert result.exit_code == 3
    words = result.failure()
    assert "53300" in words
    wanted = f"the run needs {slots + 5} connections, and max_connections is {slots}, of which 3 are reserved"
    # The administrator's connection.
    assert f"{wanted} and others use 1: at most {slots - 4} connections fit" in words
    assert f"ALTER SYSTEM SET max_connections = {slots + 9} and restart the server" in words
    assert engine("run", postgresql, load={"connections": slots - 4})[0].done


def test_what_cannot_be_meant_is_refused(postgresql: LocalServer) -> None:
    result, _ = engine(
        "prepare", postgresql, loading={"method": "load-data"}, retry={"codes": ["40p01", 1213]}
    )
    assert result.exit_code == 2
    assert "loading.method is load-data" in result.failure()
    assert 'retry.codes contains "40p01"' in result.failure()
