"""P02's pure parts: shapes and extents against a specification."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbdyno.checks.tables import DataSpec, Extent, Shape, extent_faults, shape_faults
from dbdyno.experiment.model import OltpWorkload

SPEC = DataSpec.of(OltpWorkload(name="oltp_read_write", tables=2, table_size=1000))
SOUND = Shape(
    engine="innodb",
    columns={
        "id": ("int", None, False, True),
        "k": ("int", None, False, False),
        "c": ("char", 120, False, False),
        "pad": ("char", 60, False, False),
    },
    indexes={"PRIMARY": ("id",), "k_1": ("k",)},
)


def test_a_specification_names_its_tables() -> None:
    assert SPEC.names() == ["sbtest1", "sbtest2"]


def test_workloads_over_the_same_data_have_one_specification() -> None:
    other = OltpWorkload(
        name="oltp_point_select", tables=2, table_size=1000, point_selects=1, mysql_storage_engine="InnoDB"
    )
    assert DataSpec.of(other) == SPEC
    assert DataSpec.of(other.model_copy(update={"auto_inc": False})) != SPEC


def test_a_sound_shape_has_no_fault() -> None:
    assert list(shape_faults(SOUND, SPEC)) == []


@pytest.mark.parametrize(
    ("shape", "faults"),
    [
        (replace(SOUND, engine="aria"), ["storage engine is aria, not innodb"]),
        (
            replace(SOUND, columns={**SOUND.columns, "c": ("varchar", 120, False, False)}),
            ["c is varchar(120), not char(120)"],
        ),
        (
            replace(SOUND, columns={**SOUND.columns, "pad": ("char", 59, True, False)}),
            ["pad is char(59), not char(60)", "pad may be NULL"],
        ),
        (
            replace(SOUND, columns={**SOUND.columns, "id": ("int", None, False, False)}),
            ["id is not AUTO_INCREMENT"],
        ),
        (
            replace(SOUND, columns={name: SOUND.columns[name] for name in ("id", "k", "c")}),
            ["columns are id, k, c, not id, k, c, pad"],
        ),
        (replace(SOUND, indexes={"PRIMARY": ("id",)}), ["there is no index on k"]),
        (replace(SOUND, indexes={"k_1": ("k",)}), ["id is not the primary key"]),
        (
            replace(SOUND, indexes={**SOUND.indexes, "both": ("k", "c")}),
            ["there are further indexes: both"],
        ),
        (replace(SOUND, indexes={**SOUND.indexes, "k_2": ("k",)}), ["there are further indexes: k_2"]),
    ],
)
def test_what_is_wrong_with_a_shape(shape: Shape, faults: list[str]) -> None:
    assert list(shape_faults(shape, SPEC)) == faults


def test_a_secondary_index_in_place_of_the_primary_key() -> None:
    spec = replace(SPEC, secondary=True)
    assert list(shape_faults(replace(SOUND, indexes={"xid": ("id",), "k_1": ("k",)}), spec)) == []
    assert list(shape_faults(SOUND, spec)) == ["id has no secondary index in place of the primary key"]


def test_no_index_on_k() -> None:
    spec = replace(SPEC, create_secondary=False)
    assert list(shape_faults(replace(SOUND, indexes={"PRIMARY": ("id",)}), spec)) == []
    assert list(shape_faults(SOUND, spec)) == ["there is an index on k"]


@pytest.mark.parametrize(
    ("found", "tolerance", "faults"),
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
def test_rows_and_ids(found: Extent, tolerance: float, faults: list[str]) -> None:
    assert list(extent_faults(found, SPEC, tolerance)) == faults
