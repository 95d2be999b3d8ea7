"""Pure parts of P02 and P29: shapes and extents against a specification, existing tables of two variants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.checks.data import AGE_DIFFERENCE_S, _existing_names
from dbdyno.checks.tables import (
    ExistingTable,
    ExistingTables,
    Extent,
    Shape,
    TableState,
    data_differences,
    extent_differences,
    shape_differences,
)
from dbdyno.experiment.differences import describe_differences
from dbdyno.experiment.model import Experiment, Load, SqlWorkload, Variant
from dbdyno.finding import Finding
from dbdyno.run.description import Column, Index, Tables

ID, K = Column("id", "int", auto_increment=True), Column("k", "int")
C, PAD = Column("c", "char", 120), Column("pad", "char", 60)
PRIMARY, ON_K = Index(("id",), primary=True), Index(("k",), primary=False)
EXPECTED = Tables(("sbtest1", "sbtest2"), "innodb", (ID, K, C, PAD), (PRIMARY, ON_K), rows=1000)
SOUND = Shape(engine="innodb", columns=[ID, K, C, PAD], indexes={"PRIMARY": ("id",), "k_1": ("k",)})


def test_a_sound_shape_has_no_difference() -> None:
    assert list(shape_differences(SOUND, EXPECTED)) == []


@pytest.mark.parametrize(
    ("shape", "differences"),
    [
        (replace(SOUND, engine="aria"), ["storage engine is aria, not innodb"]),
        (
            replace(SOUND, columns=[ID, K, Column("c", "varchar", 120), PAD]),
            ["c is varchar(120), not char(120)"],
        ),
        (
            replace(SOUND, columns=[ID, K, C, Column("pad", "char", 59, nullable=True)]),
            ["pad is char(59), not char(60)", "pad may be NULL"],
        ),
        (
            replace(SOUND, columns=[Column("id", "int"), K, C, PAD]),
            ["id is not AUTO_INCREMENT"],
        ),
        (
            replace(SOUND, columns=[ID, K, C]),
            ["columns are id, k, c, not id, k, c, pad"],
        ),
        (replace(SOUND, indexes={"PRIMARY": ("id",)}), ["there is no index on k"]),
        (replace(SOUND, indexes={"k_1": ("k",)}), ["there is no index on id"]),
        (
            replace(SOUND, indexes={**SOUND.indexes, "both": ("k", "c")}),
            ["there is an additional index both on k, c"],
        ),
        (replace(SOUND, indexes={**SOUND.indexes, "k_2": ("k",)}), ["there is an additional index k_2 on k"]),
    ],
)
def test_what_is_wrong_with_a_shape(shape: Shape, differences: list[str]) -> None:
    assert list(shape_differences(shape, EXPECTED)) == differences


def test_a_secondary_index_in_place_of_the_primary_key() -> None:
    expected = replace(EXPECTED, indexes=(Index(("id",), primary=False), ON_K))
    assert list(shape_differences(replace(SOUND, indexes={"xid": ("id",), "k_1": ("k",)}), expected)) == []
    assert list(shape_differences(SOUND, expected)) == ["id is the primary key"]


def test_no_index_on_k() -> None:
    expected = replace(EXPECTED, indexes=(PRIMARY,))
    assert list(shape_differences(replace(SOUND, indexes={"PRIMARY": ("id",)}), expected)) == []
    assert list(shape_differences(SOUND, expected)) == ["there is an additional index k_1 on k"]


@pytest.mark.parametrize(
    ("found", "tolerance", "differences"),
    [
        (Extent(1000, 1, 1000, 1001), 0.0, []),
        (Extent(999, 1, 1000, 1001), 0.0, ["999 rows, not 1,000", "1 ids between 1 and 1,000 have no row"]),
        (Extent(1000, 2, 1001, 1002), 0.0, ["ids begin at 2, not at 1", "ids end at 1,001, not at 1,000"]),
        # Within 1 % after a group, and just beyond it.
        (Extent(1010, 1, 1010, 1011), 0.01, []),
        (Extent(1011, 1, 1011, 1012), 0.01, ["1,011 rows, not 1,000", "ids end at 1,011, not at 1,000"]),
        (Extent(990, 1, 1000, 1001), 0.01, []),
        (Extent(0, None, None, 1), 0.0, ["0 rows, not 1,000"]),
        # Seed 004: as many rows as specified, and ids that reach far beyond.
        (
            Extent(1000, 1, 1639, 1640),
            0.0,
            ["ids end at 1,639, not at 1,000", "639 ids between 1 and 1,639 have no row"],
        ),
    ],
)
def test_rows_and_ids(found: Extent, tolerance: float, differences: list[str]) -> None:
    assert list(extent_differences(found, EXPECTED.rows, tolerance)) == differences


ORDERS = ExistingTable(
    Shape(
        engine="innodb",
        types={"id": "int NOT NULL", "day": "date"},
        definitions={"PRIMARY": "PRIMARY KEY (id)", "by_day": "(day)"},
    ),
    TableState({"row format": "Dynamic"}, estimate=470_000, analyzed_unix_s=1_000_000),
    rows=479_000,
)


def existing(
    protocol: str = "mysql", names: tuple[str, ...] | None = ("orders",), **tables: Any
) -> ExistingTables:
    return ExistingTables(protocol, tables, names)


def with_rows(counted: int | None, estimate: int | None = None) -> ExistingTable:
    return replace(ORDERS, rows=counted, state=replace(ORDERS.state, estimate=estimate))


def with_shape(**changes: Any) -> ExistingTable:
    return replace(ORDERS, shape=replace(ORDERS.shape, **changes))


def texts(baseline: ExistingTables, variant: ExistingTables) -> list[str]:
    return [entry.text for entry in data_differences(baseline, variant)]


@pytest.mark.parametrize(
    ("other", "differences"),
    [
        (ORDERS, []),
        (with_rows(302_000), ["rows of orders: 302,000, not 479,000"]),
        # Within 1 %, and just beyond it; estimates do not count where rows do.
        (with_rows(474_210, 100), []),
        (with_rows(474_209), ["rows of orders: 474,209, not 479,000"]),
        # Only one was counted.
        (with_rows(None, 432_000), []),
        (with_rows(None, 302_000), ["rows of orders: about 302,000, not 479,000 (estimates)"]),
        (with_rows(None), []),
        (with_shape(types={"id": "int NOT NULL"}), ["without column day of orders (date)"]),
        (
            with_shape(types={"id": "bigint NOT NULL", "day": "date", "city": "int"}),
            ["column id of orders is bigint NOT NULL, not int NOT NULL", "column city of orders (int)"],
        ),
        (with_shape(engine="myisam"), ["storage engine of orders is myisam, not innodb"]),
        (
            replace(ORDERS, state=replace(ORDERS.state, storage={"row format": "Compressed"})),
            ["row format of orders is Compressed, not Dynamic"],
        ),
        (with_shape(definitions={"PRIMARY": "PRIMARY KEY (id)", "renamed": "(day)"}), []),
        (with_shape(definitions={"by_day": "(day)"}), ["without index PRIMARY on orders PRIMARY KEY (id)"]),
        (
            with_shape(definitions={**ORDERS.shape.definitions, "again": "(day)", "u": "UNIQUE (day, id)"}),
            ["index again on orders (day)", "index u on orders UNIQUE (day, id)"],
        ),
    ],
)
def test_existing_tables_of_two_variants(other: ExistingTable, differences: list[str]) -> None:
    assert texts(existing(orders=ORDERS), existing(orders=other)) == differences


def test_estimates_may_differ_by_a_tenth() -> None:
    for estimate, count in ((90_000_000, 0), (89_999_999, 1)):
        compared = texts(existing(orders=with_rows(None, 10**8)), existing(orders=with_rows(None, estimate)))
        assert len(compared) == count


def test_a_missing_table_and_another_protocol() -> None:
    both = existing(orders=ORDERS, cities=ORDERS)
    assert texts(both, existing(orders=ORDERS)) == ["without the table cities"]
    assert texts(existing(orders=ORDERS), both) == ["with the table cities"]
    changed = with_shape(types={}, definitions={})
    assert texts(existing(orders=ORDERS), existing("postgresql", orders=changed)) == []


def shop(changes: dict[str, Any] | None = None, **workload: Any) -> Experiment:
    """Two databases at URLs; `changes` are those of the second variant."""
    given = {"name": "sql", "transactions": ("SELECT * FROM orders WHERE id = 1",), **workload}
    servers = [{"kind": "remote", "url": f"mysql://u@h/{database}"} for database in ("a", "b")]
    return Experiment(
        name="shop",
        workloads=(SqlWorkload.model_validate(given),),
        load=Load(connections=(1,), duration_s=1.0),
        variants=(
            Variant.model_validate({"name": "one", "server": servers[0]}),
            Variant.model_validate({"name": "other", "server": servers[1], **(changes or {})}),
        ),
    )


def compared(
    one: ExistingTables, other: ExistingTables, given: Experiment | None = None, *, last: int = 1
) -> list[Finding]:
    """The findings of P29 when the server of the variant number `last` starts after the other one."""
    given = given or shop()
    tables = [one, other]
    peer = given.variants[1 - last].name
    context = Context(
        given,
        variant=given.variants[last],
        existing_tables=tables[last],
        peer_tables={peer: tables[1 - last]},
    )
    return checks.run(Moment.READY, context, ["P29"])


@pytest.mark.parametrize("last", [0, 1])
def test_other_rows_stop_whichever_variant_starts_last(last: int) -> None:
    (stop,) = compared(existing(orders=ORDERS), existing(orders=with_rows(302_000)), last=last)
    assert (stop.level, stop.subject) == ("stop", "other")
    assert "rows of orders: 302,000, not 479,000" in stop.text
    overridden = shop().model_copy(update={"override": {"P29": "it is meant so"}})
    (stop,) = compared(existing(orders=ORDERS), existing(orders=with_rows(302_000)), overridden, last=last)
    assert not stop.is_blocking


INDEXED = with_shape(definitions={**ORDERS.shape.definitions, "i": "(day, id)"})


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({}, "note"),
        ({"data": {"after": ("CREATE INDEX i ON orders (day, id)",)}}, "note"),
        ({"session": {"compression": "zlib"}}, "warn"),
    ],
)
def test_another_index_is_what_is_compared_or_a_second_difference(
    changes: dict[str, Any], level: str
) -> None:
    given = shop(changes)
    (finding,) = compared(existing(orders=ORDERS), existing(orders=INDEXED), given)
    assert finding.level == level
    differences = describe_differences(given, given.variants[1], [finding])
    assert "index i on orders (day, id)" in differences
    assert not any(text.startswith("url") for text in differences)
    assert describe_differences(given, given.variants[1])[0] == "url = mysql://u@h/b"


def test_other_columns_are_a_warning() -> None:
    (finding,) = compared(existing(orders=ORDERS), existing(orders=with_shape(engine="myisam")))
    assert finding.level == "warn"


def test_many_differences_are_counted() -> None:
    names = [f"t{number}" for number in range(8)]
    lacking = existing(names=None)
    (stop,) = compared(ExistingTables("mysql", dict.fromkeys(names, ORDERS), None), lacking)
    assert stop.text.count("without the table") == 5
    assert "; and 3 more" in stop.text
    given = shop()
    assert (
        describe_differences(given, given.variants[1], [stop])[-1] == "3 more differences of the data (P29)"
    )


def test_statistics_of_another_age_and_stale_ones() -> None:
    older = replace(ORDERS.state, analyzed_unix_s=1_000_000 + AGE_DIFFERENCE_S + 1)
    (finding,) = compared(existing(orders=ORDERS), existing(orders=replace(ORDERS, state=older)))
    assert "are of different ages: orders of 1970-01-12 and 1970-01-19" in finding.text
    assert "ANALYZE TABLE" in finding.fix
    same = replace(ORDERS.state, analyzed_unix_s=1_000_000 + AGE_DIFFERENCE_S)
    assert compared(existing(orders=ORDERS), existing(orders=replace(ORDERS, state=same))) == []
    for share, count in ((0.1, 0), (0.11, 1)):
        stale = replace(ORDERS, state=replace(ORDERS.state, modified_share=share))
        assert len(compared(existing(orders=ORDERS), existing(orders=stale))) == count


def test_what_cannot_be_compared_is_a_note() -> None:
    large = with_rows(None, 10**8)
    (note,) = compared(existing(orders=large), existing(orders=large))
    assert (note.level, note.evidence) == ("note", {"estimated": ["orders"]})
    unknown = with_rows(None)
    (note,) = compared(existing(orders=unknown), existing(orders=unknown, names=("orders", "none")))
    assert note.evidence == {"unread": ["orders", "none"]}
    view = ExistingTable(Shape(engine="view"))
    assert compared(existing(orders=view), existing(orders=view)) == []
    refused = ExistingTables("mysql", {}, ("orders",), "no such table")
    (note,) = compared(existing(orders=ORDERS), refused)
    assert (note.level, "no such table" in note.text) == ("note", True)
    assert compared(refused, existing(orders=ORDERS)) == []


def test_one_database_is_not_compared_with_itself() -> None:
    given = shop({"server": {"kind": "remote", "url": "mysql://other@h/a"}})
    assert compared(existing(orders=ORDERS), existing(orders=with_rows(1)), given) == []


@pytest.mark.parametrize(
    ("workload", "names"),
    [
        ({}, ["orders"]),
        ({"setup": ("CREATE TABLE orders (id INT)",)}, []),
        (
            {
                "transactions": ("SELECT 1 FROM orders JOIN own", "BEGIN"),
                "setup": ("CREATE TABLE own (id INT)",),
            },
            ["orders"],
        ),
        ({"transactions": ("CALL pay(1)",)}, None),
        ({"transactions": (), "replay": {"file": "log.sql"}}, None),
    ],
)
def test_tables_of_statements_that_the_run_does_not_create(workload: Any, names: list[str] | None) -> None:
    assert _existing_names(shop(**workload), "mysql")[0] == names
