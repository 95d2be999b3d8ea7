"""P02's pure parts: shapes and extents against a specification."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbdyno.checks.tables import Extent, Shape, extent_differences, shape_differences
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
