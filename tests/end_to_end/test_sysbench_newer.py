"""What sysbench 1.1 adds, on a real MariaDB. The package, which is 1.0.20, has nothing to compare it with."""

from __future__ import annotations

import re

import pytest
from tests.end_to_end.differential import DATABASE, Case, Database, drop_in, said

TABLES = "oltp_read_write --tables=2 --table-size=200"
RUN = "sysbench --compat=1.1 {db}"


def did(database: Database, run: str) -> str:
    """What ours says of a command line that succeeds."""
    done = said(drop_in(database.folder), Case("newer", run), database)
    assert done.exit_code == 0, done.raw
    return done.raw


def connections(database: Database) -> int:
    """Attempts to connect that the server has seen."""
    ((_, count),) = database.query("SHOW GLOBAL STATUS LIKE 'Connections'")
    return int(count)


@pytest.mark.parametrize(
    ("run", "renewed"),
    [
        ("oltp_read_write", 20),
        ("oltp_point_select --db-ps-mode=disable", 20),
        # As in the original it takes the option and does not follow it.
        ("select_random_points", 0),
    ],
)
def test_connections_are_renewed_after_so_many_events(sbtest: Database, run: str, renewed: int) -> None:
    sbtest.empty()
    did(sbtest, f"{RUN} {TABLES} prepare")
    opened = []
    for every in (0, 5):
        before = connections(sbtest)
        raw = did(sbtest, f"{RUN} {run} --table-size=200 --events=100 --reconnect={every} run")
        opened.append(connections(sbtest) - before)
        assert re.search(rf"reconnects: +{renewed if every else 0} ", raw), raw
    assert opened[1] - opened[0] == renewed


def test_tables_have_the_options_that_are_given(sbtest: Database) -> None:
    sbtest.empty()
    options = "COMMENT='of a DBA' ROW_FORMAT=COMPACT"
    did(sbtest, f'{RUN} {TABLES} --create_table_options="{options}" prepare')
    found = sbtest.query(
        f"SELECT table_comment, row_format FROM information_schema.tables WHERE table_schema = '{DATABASE}'"
    )
    assert found == [("of a DBA", "Compact")] * 2


def test_an_algorithm_of_compression_is_followed(sbtest: Database) -> None:
    sbtest.empty()
    did(sbtest, f"{RUN} {TABLES} prepare")
    run = f"{RUN} oltp_point_select --table-size=200 --events=5 --mysql-compression"
    did(sbtest, f"{run} run")
    did(sbtest, f"{run} --mysql-compression-algorithms=uncompressed run")
    refused = said(
        drop_in(sbtest.folder), Case("zstd", f"{run} --mysql-compression-algorithms=zstd run"), sbtest
    )
    assert refused.exit_code == 1
    assert "zstd" in refused.raw, "MariaDB has none"
