"""The bundled tests on a current MySQL: what sysbench 1.0.20 says, counts and leaves behind, dbdyno does too.

MariaDB has the full matrix (test_sysbench_mariadb.py); `make test` runs here what may differ by the server:
the login, the schema, prepared statements and errors. Both log in with caching_sha2_password, the only method
left there; sysbench by MariaDB's client library.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.end_to_end.differential import MYSQL_SCHEMA, Case, same_either_way
from tests.end_to_end.differential_servers import MySQLDatabase

SMALL = "--tables=2 --table-size=300"
RUN = f"sysbench oltp_read_write {SMALL} {{db}} {{only}}"
TABLES = f"oltp_read_write {SMALL}"
CASES = {
    "a whole life": Case(
        "",
        f"{RUN} prepare; {RUN} prewarm; {RUN} --events=10 run; {RUN} cleanup",
        sql=("SELECT 1",),
        asked=MYSQL_SCHEMA,
    ),
    "prepare": Case("", f"{RUN} prepare", sql=("SELECT 1",), asked=MYSQL_SCHEMA),
    "prepare by two threads": Case(
        "", f"{RUN} --threads=2 prepare", sql=("SELECT 1",), asked=MYSQL_SCHEMA, unordered=True
    ),
    "as text": Case("", f"{RUN} --events=10 --db-ps-mode=disable run", tables=TABLES),
    "several threads": Case(
        "", f"sysbench oltp_read_only {SMALL} {{db}} {{only}} --threads=4 --events=20 run", tables=TABLES
    ),
    "inserts": Case("", f"sysbench oltp_insert {SMALL} {{db}} {{only}} --events=12 run", tables=TABLES),
    "random points": Case(
        "", "sysbench select_random_points --table-size=300 {db} {only} --events=12 run", tables=TABLES
    ),
    "the clock": Case(
        "",
        f"sysbench oltp_point_select {SMALL} {{db}} {{only}} --time=2 --report-interval=1 run",
        tables=TABLES,
        timed=True,
    ),
    "wrong password": Case("", f"{RUN} --mysql-password=wrong run"),
    "no schema": Case("", f"{RUN} --mysql-db=nowhere run"),
    "no table": Case("", f"{RUN} run", sql=("SELECT 1",)),
    "a table is there already": Case("", f"{RUN} prepare", tables=TABLES),
}


# The same statements in the same protocol as on MariaDB, with other options of sysbench alone.
AS_ON_MARIADB = (
    "prepare",
    "prepare by two threads",
    "several threads",
    "inserts",
    "random points",
    "the clock",
)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *(
            pytest.param(
                name, (), id=f"{name}, native", marks=[pytest.mark.long] if name in AS_ON_MARIADB else []
            )
            for name in CASES
        ),
        *(pytest.param(name, ("--lua",), id=f"{name}, lua") for name in ("a whole life", "no table")),
    ],
)
def test_it_says_and_does_the_same(mysbtest: MySQLDatabase, name: str, way: tuple[str, ...]) -> None:
    same_either_way(mysbtest, replace(CASES[name], name=name), way)
