"""`describe` against real servers: what it says of tables and prepared statements is what a server has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, get_args

import pytest
from tests.conftest import variant

from dbdyno.checks.tables import Shape, shapes
from dbdyno.experiment.model import Experiment, Load, OltpName, OltpWorkload, ServerSpec, SqlWorkload, Variant
from dbdyno.run.description import Tables, describe
from dbdyno.run.engine import Engine
from dbdyno.run.plan import plan
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

CONNECTIONS = 2


@pytest.fixture(scope="module", params=["mariadb", "postgresql"])
def server(workspace: Workspace, request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    mariadb = request.param == "mariadb"
    spec = variant("it") if mariadb else Variant(name="it", server=ServerSpec(product="postgresql"))
    with closing(LocalServer(spec, workspace, None)) as server:
        server.start()
        yield server


def experiment(workload: Any) -> Experiment:
    load = Load(connections=(CONNECTIONS,), duration_s=1.0)
    return Experiment(name="it", workloads=(workload,), load=load, variants=(Variant(name="it"),))


def command(server: LocalServer, name: Any, workload: Any, **changes: Any) -> list[Any]:
    address = server.address()
    records: list[Any] = []
    asked = {**plan(experiment(workload), workload, address.target()), **changes}
    result = Engine().run(name, asked, address.environment(), records.append)
    assert result.done, result.failure()
    return records


def as_described(shape: Shape, group: Tables) -> None:
    assert tuple(shape.columns) == group.columns
    assert shape.engine == (group.engine or "")
    assert group.indexes is not None
    assert sorted((columns, name == "PRIMARY") for name, columns in shape.indexes.items()) == sorted(
        (index.columns, index.primary) for index in group.indexes
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"auto_inc": False, "secondary": True},
        {"create_secondary": False},
        {"name": "bulk_insert"},
    ],
    ids=str,
)
def test_tables_are_those_that_prepare_makes(server: LocalServer, options: dict[str, Any]) -> None:
    workload = OltpWorkload.model_validate(
        {"name": "oltp_read_write", "tables": CONNECTIONS, "table_size": 50, **options}
    )
    address = server.address()
    (group,) = describe(experiment(workload), workload, address.protocol).tables
    command(server, "prepare", workload)
    try:
        found = shapes(server, group.names)
        assert sorted(found) == sorted(group.names)
        for name, shape in found.items():
            as_described(shape, group)
            place = name if address.protocol == "postgresql" else f"{address.database}.{name}"
            assert server.query(f"SELECT COUNT(*) FROM {place}") == [(group.rows,)]
    finally:
        command(server, "cleanup", workload)


@pytest.mark.parametrize("name", get_args(OltpName))
def test_connections_prepare_what_is_described(server: LocalServer, name: str) -> None:
    workload = OltpWorkload.model_validate({"name": name, "tables": CONNECTIONS, "table_size": 50})
    described = describe(experiment(workload), workload, server.address().protocol)
    command(server, "prepare", workload)
    before = server.status().get("Com_stmt_prepare")
    phases = {"warmup_us": 0, "measure_us": 1_000_000, "events": 20}
    records = command(server, "run", workload, phases=phases)
    command(server, "cleanup", workload)
    (ready,) = (record["data"] for record in records if record["type"] == "ready")
    expected = CONNECTIONS * described.prepared_per_connection
    assert ready["prepared_statements"] == expected
    if before is not None:
        assert int(server.status()["Com_stmt_prepare"]) - int(before) == expected


@pytest.mark.parametrize("server", ["postgresql"], indirect=True)
def test_a_session_holds_what_is_described(server: LocalServer) -> None:
    """A statement of the load counts its own session's prepared statements, which no other session sees."""
    count = {"sql": "SELECT name FROM pg_prepared_statements", "mode": "text", "name": "count"}
    statements = (count, {"sql": "SELECT 1 + :n"}, {"sql": "SELECT 2 + :n"}, {"sql": "SELECT 1 + :n"})
    transactions = ({"statements": statements},)
    written = {"name": "sql", "parameters": {"n": "uniform(1, 9)"}, "transactions": transactions}
    workload = SqlWorkload.model_validate(written)
    described = describe(experiment(workload), workload, "postgresql")
    assert described.prepared_per_connection == 2
    phases = {"warmup_us": 0, "measure_us": 10_000_000, "events": 20}
    expected = ({**count, "rows": described.prepared_per_connection}, *statements[1:])
    held = SqlWorkload.model_validate({**written, "transactions": ({"statements": expected},)})
    records = command(server, "run", held, phases=phases)
    kinds = [record["data"]["kinds"]["count"] for record in records if record["type"] == "statements"]
    assert sum(kind["count"] for kind in kinds) == 20
    assert sum(kind["row_count_mismatches"] for kind in kinds) == 0
