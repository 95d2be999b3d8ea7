"""The bundled tests on a real PostgreSQL: dbdyno says, counts, sends and leaves behind what sysbench does.

MariaDB has every case by both ways (test_sysbench_mariadb.py, test_sysbench_errors.py). Here run those that
differ by protocol: data types, how statements travel, errors, and the login.
`make test-long` runs the others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

import pytest
from tests.end_to_end.differential import (
    DATABASE,
    PASSWORD,
    USER,
    Case,
    drop_in,
    original,
    said,
    same_either_way,
    scripts,
    tables_for,
)
from tests.end_to_end.differential_servers import PostgreSQLDatabase

OLTP = [name for name in scripts() if name.startswith("oltp")]
SMALL = "--tables=2 --table-size=300"
SCHEMA = (
    "SELECT table_name::text, column_name::text, column_default, is_nullable, data_type, "
    "character_maximum_length FROM information_schema.columns WHERE table_schema = 'public' "
    "ORDER BY table_name, ordinal_position",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname",
    "SELECT sequencename::text, data_type::text, start_value, increment_by, last_value "
    "FROM pg_sequences WHERE schemaname = 'public' ORDER BY sequencename",
    "SELECT relname::text, pg_get_userbyid(relowner)::text, relpersistence::text, reloptions, "
    "obj_description(oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY relname",
)
# What every row of sbtest1 must look like, whoever wrote it.
ROWS = (
    "SELECT COUNT(*), MIN(id), MAX(id), MIN(k) >= 1, MAX(k) <= 300, "
    "COUNT(*) FILTER (WHERE c ~ '^([0-9]{11}-){9}[0-9]{11} *$'), "
    "COUNT(*) FILTER (WHERE pad ~ '^([0-9]{11}-){4}[0-9]{11} *$') FROM sbtest1",
)

NATIVE: tuple[str, ...] = ()
LUA = ("--lua",)


def by(way: tuple[str, ...], cases: Iterable[str], often: Collection[str]) -> list[object]:
    """Cases by one of dbdyno's two ways; those that are not in `often` have the mark `long`."""
    return [
        pytest.param(
            case,
            way,
            id=f"{case} {'lua' if way else 'native'}",
            marks=[] if case in often else [pytest.mark.long],
        )
        for case in cases
    ]


def either_way(cases: Collection[str], often: Collection[str], by_script: Collection[str]) -> list[object]:
    """Each case natively, of which some run often, and by the scripts, of which others do."""
    return [*by(NATIVE, cases, often), *by(LUA, cases, by_script)]


PREPARED = {
    "two tables": "oltp_read_write --tables=2 --table-size=300",
    "by two threads": "oltp_read_write --tables=2 --table-size=300 --threads=2",
    "without auto_inc": "oltp_read_write --tables=1 --table-size=300 --auto_inc=off",
    "secondary": "oltp_read_write --tables=1 --table-size=300 --secondary",
    "no index": "oltp_read_write --tables=1 --table-size=300 --create_secondary=off",
    "some INSERTs": "oltp_read_write --tables=1 --table-size=6000 --rand-type=uniform",
}

# By events, one thread: all counts are the same on both sides.
EXACT = [
    *(f"{name} {SMALL} --events=15" for name in OLTP if name not in ("oltp_delete", "oltp_insert")),
    *(f"{name} {SMALL} --events=15 --db-ps-mode=disable" for name in ("oltp_read_write", "oltp_write_only")),
    f"oltp_insert {SMALL} --events=15",
    f"oltp_insert {SMALL} --events=15 --auto_inc=off",
    f"oltp_read_only {SMALL} --events=20 --threads=4",
    f"oltp_read_only {SMALL} --events=20 --skip_trx --range_selects=off",
    f"oltp_read_write {SMALL} --events=20 --rand-type=uniform --index_updates=5 --distinct_ranges=3",
    f"oltp_point_select {SMALL} --events=20 --percentile=99 --histogram",
    f"oltp_point_select {SMALL} --events=20 --debug --verbosity=4",
    "select_random_points --table-size=300 --events=15 --random_points=3",
    "select_random_ranges --table-size=300 --events=15 --number_of_ranges=2 --threads=2",
]

# Ended by the clock, or with counts that are a matter of luck.
TIMED = [
    f"oltp_point_select {SMALL} --threads=2 --time=2 --report-interval=1",
    f"oltp_delete {SMALL} --events=15",
]


@pytest.mark.parametrize(
    ("name", "way"),
    either_way(PREPARED, ("two tables", "without auto_inc", "secondary", "some INSERTs"), ("two tables",)),
)
def test_prepare(pgsbtest: PostgreSQLDatabase, name: str, way: tuple[str, ...]) -> None:
    run = f"sysbench {PREPARED[name]} {{db}} {{only}} prepare"
    asked = SCHEMA if name in ("some INSERTs", "secondary") else (*SCHEMA, *ROWS)
    # Several threads create tables at once: the lines come as they come.
    same_either_way(pgsbtest, Case(name, run, unordered="threads" in run, asked=asked), way)


@pytest.mark.parametrize(
    ("name", "way"), either_way(["oltp_read_write", "oltp_insert"], ["oltp_read_write"], ["oltp_read_write"])
)
def test_a_whole_life(pgsbtest: PostgreSQLDatabase, name: str, way: tuple[str, ...]) -> None:
    """prepare, run and cleanup, as shell scripts do it; sysbench has no prewarm for PostgreSQL."""
    common = f"sysbench {name} {{db}} {{only}} {SMALL} --events=10"
    steps = [f"{common} {step}" for step in ("prepare", "run", "cleanup")]
    same_either_way(pgsbtest, Case(name, "; ".join(steps), asked=SCHEMA), way)


def test_a_whole_life_of_bulk_insert(pgsbtest: PostgreSQLDatabase, way: tuple[str, ...]) -> None:
    common = "{db} {only} --threads=2"
    run = (
        f"sysbench bulk_insert {common} prepare; sysbench bulk_insert {common} --events=20000 run;"
        f"sysbench bulk_insert {common} cleanup"
    )
    # How two threads share the events, and so the number of statements, is a matter of luck.
    same_either_way(pgsbtest, Case("bulk_insert", run, timed=True, asked=SCHEMA), way)


# Of these the scripts' own way is held against the original too; what they send is compared below.
BY_SCRIPT = [case for case in EXACT if case.startswith(("oltp_read_write", "oltp_insert", "select_random"))]


# How reads, writes and other statements are counted, prepared and as text.
COUNTED_OFTEN = (
    f"oltp_read_write {SMALL} --events=15",
    f"oltp_read_write {SMALL} --events=15 --db-ps-mode=disable",
    f"oltp_insert {SMALL} --events=15",
    "select_random_points --table-size=300 --events=15 --random_points=3",
)


@pytest.mark.parametrize(
    ("arguments", "way"), [*by(NATIVE, EXACT, COUNTED_OFTEN), *by(LUA, BY_SCRIPT, COUNTED_OFTEN[:2])]
)
def test_counts(pgsbtest: PostgreSQLDatabase, arguments: str, way: tuple[str, ...]) -> None:
    run = f"sysbench {arguments} {{db}} {{only}} run"
    same_either_way(pgsbtest, Case(arguments, run, tables=tables_for(arguments)), way)


@pytest.mark.parametrize(("arguments", "way"), either_way(TIMED, (), ()))
def test_by_the_clock(pgsbtest: PostgreSQLDatabase, arguments: str, way: tuple[str, ...]) -> None:
    run = f"sysbench {arguments} {{db}} {{only}} run"
    same_either_way(pgsbtest, Case(arguments, run, tables=tables_for(arguments), timed=True), way)


# Statements -----------------------------------------------------------------------------------------------

# Values in a statement: strings, and numbers that are no part of a name or a parameter's.
VALUE = re.compile(r"'[^']*'|(?<![\w$])-?\d+\b")
SENT = [
    f"oltp_read_write {SMALL} --events=12",
    f"oltp_read_write {SMALL} --events=12 --db-ps-mode=disable",
    f"oltp_insert {SMALL} --events=12",
    f"oltp_insert {SMALL} --events=12 --auto_inc=off",
    f"oltp_delete {SMALL} --events=12",
    f"oltp_write_only {SMALL} --events=12 --skip_trx --delete_inserts=2",
    "select_random_points --table-size=300 --events=12 --random_points=3",
    "select_random_ranges --table-size=300 --events=12 --number_of_ranges=2",
]


def shapes(database: PostgreSQLDatabase, since: int) -> list[tuple[str, str]]:
    """How each statement travelled, and the statement without its values and the number of its table."""
    return [
        (way, " ".join(VALUE.sub("?", re.sub(r"sbtest\d+", "sbtest", sql)).split()))
        for _, way, sql in database.logged(since)
    ]


@pytest.mark.parametrize("arguments", SENT)
def test_the_server_is_sent_the_same(
    pgsbtest: PostgreSQLDatabase, arguments: str, way: tuple[str, ...]
) -> None:
    """Statement by statement and in order, by the server's log."""
    case = Case(arguments, f"sysbench {arguments} {{db}} {{only}} run", tables=tables_for(arguments))
    sent = []
    for side in (original(pgsbtest.folder), drop_in(pgsbtest.folder, *way)):
        since = pgsbtest.mark()
        done = said(side, case, pgsbtest)
        assert done.exit_code == 0, done.raw
        sent.append(after_loading(shapes(pgsbtest, since)))
    assert sent[1] == sent[0]
    assert len(sent[0]) >= 12


def after_loading(sent: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What comes after the original's `prepare`, which ends with an index."""
    indexed = [place for place, (_, sql) in enumerate(sent) if sql.startswith("CREATE INDEX")]
    return sent[indexed[-1] + 1 :]


def test_cleanup_sends_the_same(pgsbtest: PostgreSQLDatabase, way: tuple[str, ...]) -> None:
    run = f"sysbench oltp_read_write {SMALL} {{db}} {{only}} cleanup"
    case = Case("cleanup", run, tables=f"oltp_read_write {SMALL}")
    sent = []
    for side in (original(pgsbtest.folder), drop_in(pgsbtest.folder, *way)):
        since = pgsbtest.mark()
        assert said(side, case, pgsbtest).exit_code == 0
        sent.append(after_loading([(kind, sql) for _, kind, sql in pgsbtest.logged(since)]))
    assert sent[1] == sent[0]
    assert len(sent[0]) == 2


# What goes wrong ------------------------------------------------------------------------------------------

NOWHERE = "--db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port=1"
TABLES = "oltp_read_write --tables=1 --table-size=200"
RUN = f"sysbench {TABLES} {{db}} {{only}}"


def refusing(moment: str, state: str, every: int = 1) -> tuple[str, ...]:
    """A trigger that refuses each `every`-th statement. A sequence counts, for it never goes back."""
    return (
        "CREATE SEQUENCE refusals",
        "GRANT USAGE ON SEQUENCE refusals TO PUBLIC",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
        f"IF nextval('refusals') % {every} = 0 THEN RAISE EXCEPTION 'refused by a trigger' "
        f"USING ERRCODE = '{state}'; END IF; RETURN COALESCE(NEW, OLD); END$$",
        f"CREATE TRIGGER refuses BEFORE {moment} ON sbtest1 FOR EACH ROW EXECUTE FUNCTION refuse()",
    )


REFUSALS = {
    "no server, run": Case("", f"sysbench oltp_read_write {NOWHERE} {{only}} run"),
    "no server, prepare": Case("", f"sysbench oltp_read_write {NOWHERE} {{only}} prepare"),
    "no socket": Case("", "sysbench oltp_read_write --db-driver=pgsql --pgsql-host=/nowhere {only} run"),
    "no host": Case("", "sysbench oltp_read_write --db-driver=pgsql --pgsql-host=nowhere.invalid {only} run"),
    "wrong password": Case("", "sysbench oltp_read_write {db} --pgsql-password=wrong {only} run"),
    "no password": Case("", "sysbench oltp_read_write {db} --pgsql-password= {only} run"),
    "wrong user": Case("", "sysbench oltp_read_write {db} --pgsql-user=nobody {only} prepare"),
    "a user without a rule": Case("", "sysbench oltp_read_write {db} --pgsql-user=someone {only} run"),
    "no database": Case("", "sysbench oltp_read_write {db} --pgsql-db=nowhere {only} run"),
    "no table, as text": Case("", f"{RUN} --db-ps-mode=disable run", sql=("SELECT 1",)),
    "no table, insert": Case("", "sysbench oltp_insert {db} {only} run", sql=("SELECT 1",)),
    "prewarm, which is for MySQL": Case("", f"{RUN} prewarm", sql=("SELECT 1",)),
    "nothing to clean up": Case("", f"{RUN} cleanup", sql=("SELECT 1",)),
    "a table is there already": Case("", f"{RUN} prepare", tables=TABLES),
}

COUNTED = {
    "deadlocks": Case("", f"{RUN} --events=20 run", sql=refusing("UPDATE", "40P01", 5)),
    "serialization failures, as text": Case(
        "", f"{RUN} --events=20 --db-ps-mode=disable run", sql=refusing("DELETE", "40001", 4)
    ),
    "unique violations": Case("", f"{RUN} --events=20 run", sql=refusing("INSERT", "23505", 3)),
    "an error that is not ignored": Case("", f"{RUN} --events=20 run", sql=refusing("UPDATE", "P0001", 5)),
    "an error that is not ignored, as text": Case(
        "", f"{RUN} --events=20 --db-ps-mode=disable run", sql=refusing("UPDATE", "57014", 5)
    ),
    "an ignored error in oltp_insert": Case(
        "", "sysbench oltp_insert {db} {only} --events=20 run", sql=refusing("INSERT", "23505", 3)
    ),
}


@pytest.mark.parametrize(
    ("name", "way"),
    either_way(
        REFUSALS,
        REFUSALS,
        ("wrong password", "no table, as text", "nothing to clean up", "a table is there already"),
    ),
)
def test_it_cannot_begin(pgsbtest: PostgreSQLDatabase, name: str, way: tuple[str, ...]) -> None:
    same_either_way(pgsbtest, replace(REFUSALS[name], name=name), way)


@pytest.mark.parametrize(
    ("name", "way"),
    either_way(COUNTED, COUNTED, ("deadlocks", "an error that is not ignored, as text")),
)
def test_errors_in_a_run(pgsbtest: PostgreSQLDatabase, name: str, way: tuple[str, ...]) -> None:
    same_either_way(pgsbtest, replace(COUNTED[name], name=name, tables=TABLES), way)


@pytest.mark.parametrize("listed", ["57014", "all"])
def test_errors_to_ignore_are_a_list_of_ours(
    pgsbtest: PostgreSQLDatabase, listed: str, way: tuple[str, ...]
) -> None:
    """By SQLSTATE, where the original's list cannot be changed: it ends at the first, ours counts them."""
    run = f"{RUN} --events=20 run"
    refused = refusing("UPDATE", "57014", 5)
    ignored = Case(listed, f"{run} --db-ignore-errors={listed}", tables=TABLES, sql=refused)
    done = said(drop_in(pgsbtest.folder, *way), ignored, pgsbtest)
    assert done.exit_code == 0, done.raw
    counted = re.search(r"ignored errors: +(\d+)", done.raw)
    # 20 events of two updates, and again for each that began anew.
    assert counted is not None
    assert int(counted[1]) == 9
    other = replace(ignored, run=f"{run} --db-ignore-errors=40001")
    assert said(drop_in(pgsbtest.folder, *way), other, pgsbtest).exit_code == 1


@pytest.mark.parametrize("compat", ["", "--compat=1.1"])
def test_variables_of_libpq_stand_where_nothing_is_given(
    pgsbtest: PostgreSQLDatabase, compat: str, way: tuple[str, ...]
) -> None:
    """An empty value is none, for sysbench has defaults for each."""
    address = pgsbtest.server.address()
    variables = f"PGHOST={address.host} PGPORT={address.port} PGUSER={USER} PGPASSWORD={PASSWORD}"
    nothing = " ".join(f"--pgsql-{name}=" for name in ("host", "user", "password", "db"))
    run = f"sysbench {TABLES} --db-driver=pgsql {nothing} --pgsql-port={address.port} {{only}} --events=3 run"
    case = Case("variables", f"env {variables} PGDATABASE={DATABASE} {run}", tables=TABLES)
    if not compat:
        same_either_way(pgsbtest, case, way)
    refusing_tls = replace(
        case, run=case.run.replace("env ", "env PGSSLMODE=require ").replace(" run", f" {compat} run")
    )
    encrypted = said(drop_in(pgsbtest.folder, *way), refusing_tls, pgsbtest)
    # 1.1 has an option for it, with a default.
    assert encrypted.exit_code == (0 if compat else 1), encrypted.raw
