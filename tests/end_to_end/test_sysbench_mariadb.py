"""The bundled tests on a real MariaDB: what sysbench 1.0.20 says, counts and leaves behind, dbdyno does too.

Each case runs twice: natively, and with `--lua` through the very scripts of the package.
"""

from __future__ import annotations

import pytest
from tests.end_to_end.differential import (
    DATABASE,
    MYSQL_SCHEMA,
    Case,
    Database,
    drop_in,
    said,
    same_either_way,
    scripts,
)

OLTP = [name for name in scripts() if name.startswith("oltp")]
SMALL = "--tables=2 --table-size=300"
# What every row of sbtest1 must look like, whoever wrote it.
ROWS = (
    "SELECT COUNT(*), MIN(id), MAX(id), MIN(k) >= 1, MAX(k) <= 300, "
    "SUM(c REGEXP '^([0-9]{11}-){9}[0-9]{11}$'), SUM(pad REGEXP '^([0-9]{11}-){4}[0-9]{11}$') "
    f"FROM {DATABASE}.sbtest1",
)

PREPARED = {
    "two tables": "oltp_read_write --tables=2 --table-size=300",
    "by two threads": "oltp_read_write --tables=2 --table-size=300 --threads=2",
    "by more threads than tables": "oltp_read_write --tables=1 --table-size=300 --threads=3",
    "without auto_inc": "oltp_read_write --tables=1 --table-size=300 --auto_inc=off",
    "insert without auto_inc": "oltp_insert --tables=1 --table-size=300 --auto_inc=off",
    "secondary": "oltp_read_write --tables=1 --table-size=300 --secondary",
    "no index": "oltp_read_write --tables=1 --table-size=300 --create_secondary=off",
    "another engine": "oltp_read_write --tables=1 --table-size=300 --mysql-storage-engine=aria",
    "some INSERTs": "oltp_read_write --tables=1 --table-size=6000 --rand-type=uniform",
    "from a path": "/usr/share/sysbench/oltp_read_write.lua --tables=1 --table-size=300",
}

# By events, one thread: all counts are the same on both sides.
EXACT = [
    *(f"{name} {SMALL} --events=15" for name in OLTP if name not in ("oltp_delete", "oltp_insert")),
    *(f"{name} {SMALL} --events=15 --db-ps-mode=disable" for name in ("oltp_read_write", "oltp_insert")),
    f"oltp_insert {SMALL} --events=15",
    f"oltp_read_only {SMALL} --events=20 --threads=4",
    f"oltp_read_only {SMALL} --events=20 --skip_trx --range_selects=off",
    f"oltp_read_only {SMALL} --events=20 --distinct_ranges=3 --sum_ranges=0 --range_size=5",
    f"oltp_read_write {SMALL} --events=20 --rand-type=uniform --rand-seed=7 --index_updates=5",
    f"oltp_point_select {SMALL} --events=20 --percentile=99 --histogram",
    f"oltp_point_select {SMALL} --events=20 --percentile=0",
    f"oltp_point_select {SMALL} --events=20 --debug --verbosity=4",
    f"oltp_point_select {SMALL} --events=20 --validate --verbosity=4",
    f"oltp_point_select {SMALL} --events=20 --verbosity=1",
    f"oltp_point_select {SMALL} --events=20 --mysql-ssl=off --mysql-compression=on",
    f"oltp_point_select {SMALL} --events=20 --time=0",
    "select_random_points --table-size=300 --events=15",
    "select_random_points --table-size=300 --events=15 --random_points=3",
    "select_random_ranges --table-size=300 --events=15",
    "select_random_ranges --table-size=300 --events=15 --number_of_ranges=2 --delta=1 --threads=2",
]

# Ended by the clock. Two threads that write would meet in deadlocks, which come when they like.
TIMED = [
    f"oltp_read_only {SMALL} --threads=2 --time=2 --report-interval=1",
    f"oltp_point_select {SMALL} --threads=3 --time=2 --report-checkpoints=1 --histogram",
    f"oltp_point_select {SMALL} --threads=2 --time=2 --rate=100 --report-interval=1",
    f"oltp_point_select {SMALL} --time=2 --report-interval=1 --percentile=0",
    f"oltp_point_select {SMALL} --time=1 --forced-shutdown=5 --verbosity=4",
    f"oltp_delete {SMALL} --events=15",
    f"oltp_update_index {SMALL} --threads=4 --events=40 --rand-type=pareto",
    "oltp_write_only --tables=2 --table-size=5000 --events=40 --rand-type=uniform",
]


@pytest.mark.parametrize("name", PREPARED)
def test_prepare(sbtest: Database, name: str, way: tuple[str, ...]) -> None:
    run = f"sysbench {PREPARED[name]} {{db}} {{only}} prepare"
    asked = MYSQL_SCHEMA if "insert" in name or "INSERTs" in name else (*MYSQL_SCHEMA, *ROWS)
    # Several threads create tables at once: the lines come as they come.
    same_either_way(sbtest, Case(name, run, sql=("SELECT 1",), unordered="threads" in run, asked=asked), way)


def test_prepare_loads_the_same_rows_each_time(sbtest: Database, way: tuple[str, ...]) -> None:
    """Natively with any number of threads, in a script with the same number; --rand-seed gives other rows."""
    tables = "sysbench oltp_read_only {db} {only} --tables=3 --table-size=200"
    asked = ("CHECKSUM TABLE sbtest.sbtest1, sbtest.sbtest2, sbtest.sbtest3",)

    def checksums(options: str) -> object:
        case = Case(options, f"{tables} {options} prepare", sql=("SELECT 1",), asked=asked)
        done = said(drop_in(sbtest.folder, *way), case, sbtest)
        assert done.exit_code == 0, done.raw
        return done.answers

    first = checksums("--threads=2")
    assert checksums("--threads=2") == first
    assert (checksums("--threads=3") == first) == (not way)
    seeded = checksums("--threads=2 --rand-seed=5")
    assert seeded != first
    assert checksums("--threads=2 --rand-seed=5") == seeded


@pytest.mark.parametrize("name", OLTP)
def test_a_whole_life(sbtest: Database, name: str, way: tuple[str, ...]) -> None:
    """prepare, prewarm, run and cleanup, as scripts do it."""
    steps = [
        f"sysbench {name} {{db}} {{only}} {SMALL} --events=10 {step}"
        for step in ("prepare", "prewarm", "run")
    ]
    cleanup = f"sysbench {name} {{db}} {{only}} {SMALL} cleanup"
    case = Case(
        name, "; ".join([*steps, cleanup]), sql=("SELECT 1",), timed=name == "oltp_delete", asked=MYSQL_SCHEMA
    )
    same_either_way(sbtest, case, way)


@pytest.mark.parametrize("name", ["select_random_points", "select_random_ranges"])
def test_a_whole_life_of_select_random(sbtest: Database, name: str, way: tuple[str, ...]) -> None:
    steps = [
        f"sysbench {name} {{db}} {{only}} --table-size=300 --events=10 {step}"
        for step in ("prepare", "prewarm", "run", "cleanup")
    ]
    same_either_way(sbtest, Case(name, "; ".join(steps), sql=("SELECT 1",), asked=MYSQL_SCHEMA), way)


def test_a_whole_life_of_bulk_insert(sbtest: Database, way: tuple[str, ...]) -> None:
    common = "{db} {only} --threads=2"
    run = (
        f"sysbench bulk_insert {common} prepare; sysbench bulk_insert {common} --events=60000 run;"
        f"sysbench bulk_insert {common} cleanup"
    )
    # How two threads share the events, and so the number of statements, is a matter of luck.
    same_either_way(sbtest, Case("bulk_insert", run, sql=("SELECT 1",), timed=True, asked=MYSQL_SCHEMA), way)


# `test_a_whole_life` compares the same runs, after each side's own `prepare`.
IN_A_LIFE = [f"{name} {SMALL} --events=15" for name in OLTP if name != "oltp_read_write"]


@pytest.mark.parametrize(
    "arguments", [pytest.param(case, marks=[pytest.mark.long] if case in IN_A_LIFE else []) for case in EXACT]
)
def test_counts(sbtest: Database, arguments: str, way: tuple[str, ...]) -> None:
    tables = " ".join(word for word in arguments.split() if "--table" in word)
    name = arguments.split(maxsplit=1)[0]
    same_either_way(
        sbtest, Case(name, f"sysbench {arguments} {{db}} {{only}} run", tables=f"{name} {tables}"), way
    )


@pytest.mark.parametrize("arguments", TIMED)
def test_by_the_clock(sbtest: Database, arguments: str, way: tuple[str, ...]) -> None:
    tables = " ".join(word for word in arguments.split() if "--table" in word)
    name = arguments.split(maxsplit=1)[0]
    case = Case(name, f"sysbench {arguments} {{db}} {{only}} run", tables=f"{name} {tables}", timed=True)
    same_either_way(sbtest, case, way)
