"""P14, P17 and P22 on real servers: the account beside the pool, the setting without effect, the cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import variant
from tests.end_to_end.test_checks_live import experiment, find, load

from dbdyno.checks import Context, Moment, run
from dbdyno.experiment.model import Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

MYSQL = Path(__file__).parents[2] / ".servers" / "mysql-9.7"


@pytest.fixture(scope="module")
def pooled(workspace: Workspace) -> Iterator[LocalServer]:
    """A MySQL with its thread pool."""
    given = Variant(
        name="pooled",
        server=ServerSpec(
            product="mysql",
            basedir=MYSQL,
            arguments=("--plugin-load-add=thread_pool.so",),
            variables={"innodb_buffer_pool_size": "64M", "disable_log_bin": True},
        ),
    )
    with closing(LocalServer(given, workspace, None)) as server:
        server.start()
        yield server


def test_mysqls_pool_and_the_account_that_passes_it_by(pooled: LocalServer) -> None:
    given = experiment()
    (note,) = find("P22", Moment.READY, pooled, given)
    assert note.level == "note"
    assert f"logs in as '{pooled.address().user}'@'127.0.0.1', which lacks TP_CONNECTION_ADMIN" in note.text
    account = f"'{pooled.address().user}'@'127.0.0.1'"
    pooled.query(f"GRANT TP_CONNECTION_ADMIN ON *.* TO {account}")
    try:
        (stop,) = find("P22", Moment.READY, pooled, given)
    finally:
        pooled.query(f"REVOKE TP_CONNECTION_ADMIN ON *.* FROM {account}")
    assert stop.level == "stop"
    assert stop.evidence["accounts"] == [account]
    assert f"REVOKE TP_CONNECTION_ADMIN ON *.* FROM {account}" in stop.fix
    assert [finding.level for finding in find("P22", Moment.READY, pooled, given)] == ["note"]


def test_mysqls_pool_and_the_role_that_passes_it_by(pooled: LocalServer) -> None:
    """The account has the privilege by a role alone: where it is active at login, its connections pass."""
    given, account = experiment(), f"'{pooled.address().user}'@'127.0.0.1'"
    for sql in ("CREATE ROLE past_it", "GRANT TP_CONNECTION_ADMIN ON *.* TO past_it"):
        pooled.query(sql)
    try:
        pooled.query(f"GRANT past_it TO {account}")
        # Granted, and not active.
        assert [found.level for found in find("P22", Moment.READY, pooled, given)] == ["note"]
        pooled.query(f"SET DEFAULT ROLE past_it TO {account}")
        (by_default,) = find("P22", Moment.READY, pooled, given)
        pooled.query(f"SET DEFAULT ROLE NONE TO {account}")
        pooled.query(f"REVOKE past_it FROM {account}")
        # A role that everybody has.
        pooled.query("SET GLOBAL mandatory_roles = 'past_it', activate_all_roles_on_login = ON")
        (by_all,) = find("P22", Moment.READY, pooled, given)
    finally:
        pooled.query("SET GLOBAL mandatory_roles = '', activate_all_roles_on_login = OFF")
        pooled.query("DROP ROLE past_it")
    for stop in (by_default, by_all):
        assert stop.level == "stop"
        assert f"account {account} has TP_CONNECTION_ADMIN through its roles (`past_it`@`%`)" in stop.text
        assert stop.evidence["roles"] == ["`past_it`@`%`"]
        # It is not the account's to revoke.
        assert f"FROM {account}" not in stop.message
    assert [found.level for found in find("P22", Moment.READY, pooled, given)] == ["note"]


def test_a_pool_that_is_built_in_is_seen_whatever_the_product(mariadb: LocalServer) -> None:
    """As Percona Server has it, which calls itself MySQL."""
    described = mariadb.describe()
    variables = {**described.variables, "thread_handling": "pool-of-threads", "extra_port": "0"}
    description = replace(described, product="mysql", variables=variables)
    (note,) = find("P22", Moment.READY, mariadb, experiment(), description=description)
    assert note.level == "note"
    assert "Percona Server's thread pool" in note.text
    variables = {**variables, "extra_port": str(mariadb.address().port)}
    (stop,) = find(
        "P22", Moment.READY, mariadb, experiment(), description=replace(description, variables=variables)
    )
    assert (stop.level, stop.evidence["extra_port"]) == ("stop", str(mariadb.address().port))


def test_a_server_without_a_pool_has_nothing_to_pass_by(mariadb: LocalServer) -> None:
    assert find("P22", Moment.READY, mariadb, experiment()) == []


def test_mariadbs_pool_and_its_extra_port(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = variant("pool", variables={"thread_handling": "pool-of-threads", "innodb_buffer_pool_size": "64M"})
    with closing(LocalServer(pool, workspace, None)) as server:
        server.start()
        (note,) = find("P22", Moment.READY, server, experiment())
        assert note.level == "note"
        assert "MariaDB's thread pool" in note.text
        # A load that was pointed at the port for administrators.
        description = server.describe()
        variables = {**description.variables, "extra_port": str(server.address().port)}
        (stop,) = find(
            "P22",
            Moment.READY,
            server,
            experiment(),
            description=type(description)(**{**vars(description), "variables": variables}),
        )
        assert stop.level == "stop"


def test_data_and_cache_are_told(mariadb: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    given = experiment()
    load(mariadb, given, monkeypatch)
    try:
        (note,) = find("P14", Moment.READY, mariadb, given, workload=given.workloads[0])
        assert (note.level, note.evidence["label"]) == ("note", "in memory")
        # Independent of the check: what the files have.
        data = Path(mariadb.describe().identity["datadir"]) / mariadb.address().database
        files = sum(path.stat().st_size for path in data.glob("*.ibd"))
        assert 0.3 * files < note.evidence["data_bytes"] <= files
        description = mariadb.describe()
        variables = {**description.variables, "innodb_buffer_pool_size": str(note.evidence["data_bytes"])}
        known: dict[str, Any] = {
            "description": type(description)(**{**vars(description), "variables": variables}),
            "workload": given.workloads[0],
        }
        (warning,) = find("P14", Moment.READY, mariadb, given, **known)
        assert (warning.level, warning.evidence["label"]) == ("warn", "borderline")
    finally:
        database = mariadb.address().database
        for (table,) in mariadb.query(f"SHOW TABLES FROM `{database}`"):
            mariadb.query(f"DROP TABLE `{database}`.`{table}`")


def two(product: Any, one: dict[str, Any], other: dict[str, Any], **server: Any) -> Experiment:
    return Experiment(
        name="two",
        workloads=(OltpWorkload(name="oltp_point_select"),),
        load=Load(connections=(1,), duration_s=1.0),
        variants=(
            Variant(name="a", server=ServerSpec(product=product, variables=one)),
            Variant(name="b", server=ServerSpec(product=product, variables=other, **server)),
        ),
    )


def test_a_pool_below_a_gigabyte_has_one_instance(pooled: LocalServer) -> None:
    """MySQL takes 8 instances and uses 1; the server of the fixture stands for both variants."""
    given = two("mysql", {"innodb_buffer_pool_instances": 1}, {"innodb_buffer_pool_instances": 8})
    description = pooled.describe()
    context = Context(
        given, variant=given.variants[1], server=pooled, description=description, peers={"a": description}
    )
    (warning,) = run(Moment.READY, context, ["P17"])
    assert warning.level == "warn"
    assert "innodb_buffer_pool_instances (both servers have 1)" in warning.text
    assert "The two variants are identical" in warning.text


def test_what_mariadb_does_nothing_with(mariadb: LocalServer) -> None:
    given = two("mariadb", {}, {"innodb_buffer_pool_instances": 8}, arguments=("--skip-slave-start",))
    description = mariadb.describe()
    known: dict[str, Any] = {"server": mariadb, "description": description, "peers": {"a": description}}
    (note,) = run(Moment.READY, Context(given, variant=given.variants[1], **known), ["P17"])
    # Another argument differs as well.
    assert note.level == "note"
    assert "one buffer pool instance since 10.5" in note.text
    # The baseline differs from nobody, and what differs in effect is no finding.
    assert run(Moment.READY, Context(given, variant=given.variants[0], **known), ["P17"]) == []
    sizes = two("mariadb", {"sort_buffer_size": 1 << 20}, {"sort_buffer_size": 2 << 20})
    other = type(description)(**{**vars(description), "variables": {"sort_buffer_size": "1048576"}})
    context = Context(sizes, variant=sizes.variants[1], **{**known, "peers": {"a": other}})
    assert run(Moment.READY, context, ["P17"]) == []
