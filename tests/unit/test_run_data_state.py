"""Whose tables a comparison of remote servers drops, and when; on databases in memory."""

from __future__ import annotations

import itertools
from typing import Any, cast

import pytest

from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload, Variant
from dbdyno.experiment.schedule import engine_seed, schedule
from dbdyno.experiment.server import ServerSpec, may_be_one_database
from dbdyno.experiment.workload import SqlStatement, SqlTransaction, SqlWorkload
from dbdyno.run.data_state import DataState, Emptied, Left, Loaded, Place
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.run.marked_tables import Table, table_hash
from dbdyno.run.progress import Loading, Progress
from dbdyno.servers.kinds.command import CommandServer
from dbdyno.servers.kinds.remote import Password, RemoteServer
from dbdyno.servers.server import Server
from dbdyno.servers.url import parse_url
from dbdyno.servers.workspace import Workspace

ONE = "mysql://bench@db1/shop"
# URLs of one database, in pairs.
SAME = (
    (ONE, ONE),
    (ONE, "mysql://other@DB1:3306/shop?tls=required"),
    ("mysql://bench@localhost/shop", "mysql://bench@127.0.0.1/shop"),
    ("mysql://bench@localhost/shop", "mysql://bench@localhost/shop?socket=/run/mysqld.sock"),
)


class OneDatabase(Engine):
    """An engine whose targets are all the same database, with or without tables."""

    def __init__(self) -> None:
        self.has_tables = False
        self.loads = 0

    def run(self, command: str, *arguments: Any, **options: Any) -> EngineResult:
        """Load the table, or drop it."""
        if command == "prepare":
            step = "kept" if self.has_tables else "created"
            self.loads += not self.has_tables
            (options.get("on_record") or arguments[2])(
                {"type": "loading", "data": {"step": step, "table": "sbtest1", "rows": 0, "rows_planned": 0}}
            )
        self.has_tables = command == "prepare"
        return EngineResult(0, {}, {}, "")


class Disconnected(RemoteServer):
    """A remote server without a connection."""

    def start(self) -> None:
        pass

    def stop(self, *, clean: bool) -> None:
        pass

    def finish_background_work(self, tables: Any) -> None:
        pass

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """dbdyno sends SELECT 1 before it drops tables."""
        assert sql == "SELECT 1"
        return [(1,)]


class StartedByCommand(Disconnected, CommandServer):
    """The same that the user's commands start and stop."""


def experiment(urls: tuple[str, ...], blocks: int, seed: int, **spec: Any) -> Experiment:
    return Experiment(
        name="shared",
        workloads=(OltpWorkload(name="oltp_read_write"),),
        load=Load(connections=(1,), duration_s=1.0),
        design=Design(blocks=blocks, state="preserve", order_seed=seed),
        variants=tuple(
            Variant(name=f"v{number}", server=ServerSpec(**{"kind": "remote", "url": url, **spec}))
            for number, url in enumerate(urls)
        ),
    )


def run(given: Experiment, engine: OneDatabase) -> None:
    """All groups of a comparison, each of which finds tables that were loaded once."""
    messages: list[Progress] = []
    servers: dict[str, Server] = {}
    for variant in given.variants:
        kind = StartedByCommand if variant.server.start else Disconnected
        assert variant.server.url is not None
        servers[variant.name] = kind(
            parse_url(variant.server.url), Password(""), variant.name, variant.server
        )
    data = DataState(given, cast("Workspace", None), engine, messages.append)
    groups = [next(trials) for _, trials in itertools.groupby(schedule(given), lambda trial: trial.group)]
    with data.cleaning_up():
        for number, trial in enumerate(groups, start=1):
            data.prepare_group(servers[trial.variant], given.workloads[0], given.variant(trial.variant))
            assert engine.has_tables, (given.design, trial)
            data.finish_group(servers[trial.variant], [servers[later.variant] for later in groups[number:]])
    assert (engine.has_tables, engine.loads) == (False, 1)
    assert all(isinstance(message, Loading) for message in messages)


@pytest.mark.parametrize("commands", [{}, {"kind": "command", "start": ("true",), "stop": ("true",)}])
@pytest.mark.parametrize("urls", SAME)
def test_variants_on_one_database_keep_its_tables_until_the_end(
    urls: tuple[str, ...], commands: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbdyno.run.data_state.Snapshots", lambda _workspace: None)
    for seed, blocks, third in itertools.product(range(25), range(2, 7), (False, True)):
        run(experiment((*urls, *urls[:third]), blocks, seed, **commands), OneDatabase())


def test_the_place_of_a_database_does_not_depend_on_how_its_url_is_written() -> None:
    def place(url: str) -> Any:
        location = ServerSpec(kind="remote", url=url).data_location
        assert location is not None
        target = parse_url(url)
        assert RemoteServer(target, Password("")).address().location == location
        return location

    for one, other in SAME:
        assert may_be_one_database(place(one), place(other))
    for other in ("mysql://bench@db2/shop", "mysql://bench@db1:3307/shop", "mysql://bench@db1/mall"):
        assert not may_be_one_database(place(ONE), place(other))


SMALL = OltpWorkload(name="oltp_read_only", tables=1)
WIDE = OltpWorkload(name="oltp_read_only", tables=3)
OWN, OTHER = (
    SqlWorkload(
        name="sql",
        label=label,
        setup=(f"CREATE TABLE {label} (id INT)",),
        transactions=(SqlTransaction(statements=(SqlStatement(sql="SELECT 1"),)),),
    )
    for label in ("x", "y")
)


class Holder:
    """A server, of which a place knows only whether dbdyno starts it."""

    def __init__(self, *, private: bool = False) -> None:
        self.private = private


A, B, PRIVATE = (cast("Server", Holder(private=private)) for private in (False, False, True))


@pytest.mark.parametrize(
    ("events", "workloads", "owners", "dropped"),
    [
        ([], (), (), []),
        ([Loaded(PRIVATE, WIDE)], (WIDE,), (), []),
        ([Loaded(A, SMALL)], (SMALL,), ((A, SMALL),), []),
        # A server loads twice, for example before each group.
        ([Loaded(A, SMALL), Loaded(A, SMALL)], (SMALL, SMALL), ((A, SMALL),), []),
        ([Loaded(A, OWN), Loaded(B, OWN)], (OWN, OWN), ((A, OWN), (B, OWN)), []),
        # The OLTP workloads stay the run's to drop: the caller drops their tables before it loads them again.
        ([Loaded(A, SMALL), Loaded(A, OWN), Emptied()], (), ((A, SMALL),), [OWN]),
        ([Loaded(PRIVATE, OWN), Emptied()], (), (), [OWN]),
        ([Emptied()], (), (), []),
        ([Loaded(A, OWN), Loaded(A, SMALL), Loaded(A, WIDE), Left(A)], (), (), [WIDE, OWN]),
        ([Loaded(A, OWN), Loaded(A, OTHER), Left(A)], (), (), [OWN, OTHER]),
        # One of two owners leaves, then the other.
        ([Loaded(A, OWN), Loaded(B, OTHER), Left(A)], (), ((B, OTHER),), [OWN]),
        ([Loaded(A, OWN), Loaded(B, OTHER), Left(A), Left(B)], (), (), [OTHER]),
        # The last server in a place drops what another has loaded.
        ([Loaded(A, OWN), Left(B)], (), (), [OWN]),
        ([Loaded(PRIVATE, OWN), Left(PRIVATE)], (), (), []),
    ],
)
def test_a_place_knows_whose_tables_it_has(
    events: list[Any], workloads: Any, owners: Any, dropped: list[Any]
) -> None:
    place, to_drop = Place(), list[Any]()
    for event in events:
        place, to_drop = place.after(event)
    assert (place, to_drop) == (Place(workloads, owners), dropped)
    assert all(place.has(one) for one in workloads)
    assert not any(place.has(one) for one in (SMALL, WIDE, OWN, OTHER) if one not in workloads)


def test_runs_over_kept_data_have_other_keys() -> None:
    def seeds(order_seed: int, **spec: Any) -> set[int]:
        given = experiment((ONE,), 2, order_seed, **spec)
        return {engine_seed(given, trial) for trial in schedule(given)}

    assert not seeds(1) & seeds(2)
    assert seeds(1) == seeds(1)
    # Data that dbdyno loads for each run are the same.
    assert seeds(1, kind="local", url=None) == seeds(2, kind="local", url=None)


@pytest.mark.parametrize(
    ("comment", "mark"),
    [
        ("dbdyno v1 seed=1 rows=10 auto_inc=true secondary=false k_index=true engine=innodb", None),
        ("dbdyno v1 seed=1 rows=10 auto_inc=true secondary=false k_index=true", None),
        ("dbdyno v1 bulk_insert engine=innodb", None),
        ("dbdyno loading", None),
        ("of mine\nsince 2020 dbdyno v1 generated seed=7 rows=3 columns=00ff00ff", 19),
        ("of mine dbdyno v1 setup", 8),
        ("", ""),
        ("dbdyno", ""),
        ("dbdyno v1 is great", ""),
        ("see dbdyno v1 bulk_insert", ""),
        ("dbdyno loading dock", ""),
        ("nodbdyno loading", ""),
        ("dbdyno v1 generated seed=7 rows=3 columns=00ff00ff, by hand", ""),
    ],
)
def test_only_a_complete_mark_makes_a_table_dbdynos(comment: str, mark: str | int | None) -> None:
    expected = mark if isinstance(mark, str) else comment[mark:]
    assert Table("t", comment, 0, "db", database="db").mark == expected
    own = Table("t", f"{comment} table={table_hash('db', 't')}", 0, "db", database="db")
    assert (own.mark, own.is_dbdynos) == (expected, bool(expected))


def test_a_mark_belongs_to_one_table() -> None:
    def table(name: str, database: str, mark: str) -> Table:
        return Table(name, f"of mine dbdyno v1 setup{mark}", 0, database, database=database)

    # As `table_hash` of the engine.
    assert table_hash("dbdyno", "sbtest1") == "f07a682b"
    own = f" table={table_hash('shop', 'orders')}"
    assert table("Orders", "shop", own).is_dbdynos
    copied = [table("mine", "shop", own), table("orders", "other", own)]
    assert all("belongs to another table" in one.doubt for one in copied)
    assert "an earlier version" in table("orders", "shop", "").doubt
    assert not any(one.is_dbdynos for one in (*copied, table("orders", "shop", "")))
    assert copied[0].own_comment == "of mine"
