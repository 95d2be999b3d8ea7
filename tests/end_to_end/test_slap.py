"""`dbdyno slap` against the real clients of MySQL and MariaDB, each on a server of its own make.

What they print without a server is compared byte for byte; on a server the reports without their times, and
what the server heard, connection by connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.end_to_end.mysql_server import MySQLServer
from tests.end_to_end.slap_clients import (
    ACCOUNT,
    PASSWORD,
    SCHEMAS,
    Flavour,
    Said,
    option_file,
    unpacked_mysqlslap,
)

from dbdyno.binary import COMPAT, find_program
from dbdyno.servers.kinds.local import LocalServer

LOGGING = ("SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1")


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine under the clients' names."""
    folder = tmp_path_factory.mktemp("links")
    for name in ("mysqlslap", "mariadb-slap"):
        (folder / name).symlink_to(Path(find_program(COMPAT)).resolve())
    return folder


@pytest.fixture(scope="module")
def of_mysql(mysql: MySQLServer, links: Path) -> Iterator[Flavour]:
    mysql.sql(f"CREATE USER {ACCOUNT}@'%' IDENTIFIED BY '{PASSWORD}'")
    mysql.sql(f"GRANT ALL ON `{SCHEMAS}`.* TO {ACCOUNT}@'%'")
    for statement in LOGGING:
        mysql.sql(statement)
    options = option_file(links, "mysql", mysql.port)
    yield Flavour("mysql", unpacked_mysqlslap(), (str(links / "mysqlslap"),), options, mysql.sql)
    mysql.sql("SET GLOBAL general_log = 0")
    mysql.sql(f"DROP USER {ACCOUNT}@'%'")


@pytest.fixture(scope="module")
def of_mariadb(mariadb: LocalServer, links: Path) -> Flavour:
    mariadb.query(f"CREATE USER {ACCOUNT}@'%' IDENTIFIED BY '{PASSWORD}'")
    ((rights,),) = mariadb.query(
        "SELECT GROUP_CONCAT(column_name) FROM information_schema.columns WHERE table_schema = 'mysql' "
        "AND table_name = 'db' AND column_name LIKE '%priv'"
    )
    mariadb.query(
        f"INSERT INTO mysql.db (Host, Db, User, {rights}) SELECT '%', '{SCHEMAS}', '{ACCOUNT}', {rights} "
        f"FROM mysql.db WHERE User = '{mariadb.address().user}' AND Host = 'localhost'"
    )
    for statement in ("FLUSH PRIVILEGES", *LOGGING):
        mariadb.query(statement)
    options = option_file(links, "mariadb", mariadb.address().port)
    return Flavour(
        "mariadb", ("/usr/bin/mariadb-slap",), (str(links / "mariadb-slap"),), options, mariadb.query
    )


@pytest.fixture(params=["mysql", "mariadb"])
def flavour(request: pytest.FixtureRequest) -> Flavour:
    """Either client."""
    found: Flavour = request.getfixturevalue(f"of_{request.param}")
    return found


def of_both(often: Sequence[str], on_mariadb: Sequence[str] = ()) -> list[object]:
    """Lines for both clients, and further ones for MariaDB's, which have the mark `long` for MySQL's."""
    return [
        *(pytest.param(flavour, line) for flavour in ("mysql", "mariadb") for line in often),
        *(pytest.param("mariadb", line) for line in on_mariadb),
        *(pytest.param("mysql", line, marks=pytest.mark.long) for line in on_mariadb),
    ]


AUTO = "-a --auto-generate-sql-load-type={0} {1} -c 1,2 -i 2 --number-of-queries=7 -x 2:1 -y 2 -vvv"
MORE = "--auto-generate-sql-unique-write-number=4 --auto-generate-sql-unique-query-number=3"
KEYS = (
    "--auto-generate-sql-add-autoincrement --auto-generate-sql-secondary-indexes=2",
    "--auto-generate-sql-guid-primary -e innodb,memory",
)
LOADS = ("mixed", "update", "write", "key", "read")
GENERATED = [AUTO.format(load, f"{key} {MORE}") for load in LOADS for key in KEYS]
PRINTED = [
    "-a",
    "-a --auto-generate-sql-execute-number=12 -c 2 -x 3:1 -y 2:1",
    "-a -y 0 -x 1:1 --auto-generate-sql-write-number=2 --auto-generate-sql-load-type=update",
    "-q a;b|;|c -F ; --create x;y --commit=2 --detach=1 -vv",
    "-q queries.sql -F ; --pre-query=queries.sql --post-query=z -vvv",
    "-q queries.sql",
    "-q x -c 2 --create=x --create-schema=foo --no-drop",
    "-q x -c 5 --number-of-queries=3 -e a,b",
    "",
]
REFUSED = [
    "-a -q x",
    "--foo",
    "--foo=1",
    "-Z",
    "-x",
    "--ver",
    "-q x --no-d",
    "--protocol=foo -q x",
    "-q x --silent=maybe",
    "-q x --loose-foo=1",
    "-a --auto-generate-sql-guid-primary --auto-generate-sql-add-autoincrement",
    "-a --auto-generate-sql-load-type=key",
    "-a --auto-generate-sql-execute-number=3 --number-of-queries=7",
]


def words(line: str) -> list[str]:
    """The arguments of a line; a bar stands for a space within one."""
    return [word.replace("|", " ") for word in line.split()]


@pytest.mark.parametrize(
    ("flavour", "line"), of_both([*PRINTED, *REFUSED, *GENERATED[:2]], GENERATED[2:]), indirect=["flavour"]
)
def test_what_is_printed_without_a_server_is_the_same(flavour: Flavour, line: str, tmp_path: Path) -> None:
    (tmp_path / "queries.sql").write_text("select 1;select 2\nselect 3;\n\nselect 4")
    arguments = ["--only-print", *words(line)]
    sides = [
        flavour.say(side, *arguments, server=False, folder=tmp_path) for side in (flavour.real, flavour.ours)
    ]
    if "-c" in arguments:
        # Which of the original's threads prints first is luck.
        sides = [replace(side, output="\n".join(sorted(side.output.splitlines()))) for side in sides]
    assert sides[1] == sides[0]


REPORTED = [
    "-a --number-of-queries=20 -c 1,4 -i 2 --auto-generate-sql-write-number=5",
    "-a --number-of-queries=20 -c 1,4 --csv -e innodb,memory --auto-generate-sql-write-number=5",
    "-a --auto-generate-sql-load-type=key --auto-generate-sql-add-autoincrement --number-of-queries=6 -vvv "
    "--auto-generate-sql-write-number=3",
    "-q select|1;select|2 -F ; --create=create|table|t(a|int) --commit=1 -vvv --pre-query=select|3",
    "-q select|1 --create=create|table|t(a|int) -s",
    "-q select|1 -c 3 --number-of-queries=1 --create=create|table|t(a|int) --csv",
    "-a -c 2 --auto-generate-sql-write-number=5",
    "-a -c 2 --auto-generate-sql-write-number=5 --auto-generate-sql-load-type=write --csv",
]


@pytest.mark.parametrize(("flavour", "line"), of_both(REPORTED[:3], REPORTED[3:]), indirect=["flavour"])
def test_reports_have_the_same_form(flavour: Flavour, line: str) -> None:
    said = [flavour.say(side, *words(line)).masked() for side in (flavour.real, flavour.ours)]
    assert said[1] == said[0]
    assert said[0][0] == 0


SENT = [
    "-q select|1;select|2 -F ; -c 2 -i 2 --number-of-queries=5 --commit=1 --create=create|table|t(a|int) "
    "--pre-query=select|'before' --post-query=select|'after'",
    "-a --auto-generate-sql-write-number=4 -c 2 --number-of-queries=26 --no-drop "
    "--create-schema=mysqlslap_kept",
    "-a --auto-generate-sql-load-type=update --auto-generate-sql-guid-primary -c 3 "
    "--auto-generate-sql-write-number=4",
    "-q select|1;|select|2 --create=create|table|t(a|int) --commit=2 --number-of-queries=3",
]


@pytest.mark.parametrize(("flavour", "line"), of_both(SENT[:2], SENT[2:]), indirect=["flavour"])
def test_the_server_hears_the_same(flavour: Flavour, line: str) -> None:
    heard = []
    for side in (flavour.real, flavour.ours):
        said, connections = flavour.sent(side, *words(line))
        assert said.exit_code == 0, said
        flavour.query("DROP SCHEMA IF EXISTS mysqlslap_kept")
        # The main connection is the first; which client is next is luck.
        heard.append([connections[0], *sorted(connections[1:])])
    assert heard[1] == heard[0]
    assert len(heard[0]) > 1


def test_commands_stand_where_the_clients_run_them(flavour: Flavour, tmp_path: Path) -> None:
    line = (
        "--create=create|table|t(a|int) --pre-system=echo|pre>>log --post-system=echo|post>>log;false "
        "-q select|1 -i 2"
    )
    told = []
    for side in (flavour.real, flavour.ours):
        said = flavour.say(side, *words(line), folder=tmp_path)
        told.append((said.exit_code, said.errors, (tmp_path / "log").read_text()))
        (tmp_path / "log").unlink()
    assert told[1] == told[0]
    assert told[0][2].split() == ["pre", "post"] * 2


def test_csv_goes_to_the_end_of_a_file(flavour: Flavour, tmp_path: Path) -> None:
    for _ in range(2):
        said = flavour.say(flavour.ours, *words("-a --number-of-queries=4 --csv=report.csv"), folder=tmp_path)
        assert said == Said(0, "", "")
    first, second = (tmp_path / "report.csv").read_text().splitlines()
    assert re.sub(r"\d+\.\d{3}", "S", first) == re.sub(r"\d+\.\d{3}", "S", second) == ",mixed,S,S,S,1,4"


def test_the_client_to_emulate_may_precede_the_options_of_option_files(of_mysql: Flavour) -> None:
    """Options such as --no-defaults must be the first; only --compat, which the clients lack, may precede."""
    first = of_mysql.say((*of_mysql.ours, "--compat=mysql"), "--only-print", "-q", "x", server=False)
    assert first == of_mysql.say(of_mysql.real, "--only-print", "-q", "x", server=False)
    assert first.exit_code == 0
    refused = of_mysql.say((*of_mysql.ours, "--silent"), "--only-print", server=False)
    assert refused == of_mysql.say((*of_mysql.real, "--silent"), "--only-print", server=False)
    assert refused.exit_code == 2


FAILING = ["--create=bad|sql -q select|1", "-a --pre-query=bad|sql", "-q select|1 --user=nobody --skip-ssl"]


@pytest.mark.parametrize("line", FAILING)
def test_failures_are_told_in_the_same_words(of_mariadb: Flavour, line: str) -> None:
    sides = [of_mariadb.say(side, *words(line)) for side in (of_mariadb.real, of_mariadb.ours)]
    assert sides[1] == sides[0]
    assert sides[0].exit_code == 1


def test_a_client_that_fails_is_a_failure_and_leaves_nothing(flavour: Flavour) -> None:
    """The originals say 0, and one of them a report."""
    said = flavour.say(flavour.ours, *words("-q bad|sql -c 3 --create=create|table|t(a|int)"))
    assert (said.exit_code, said.output) == (1, "")
    assert "Cannot run query bad sql ERROR : You have an error in your SQL syntax" in said.errors
    assert not flavour.query("SHOW DATABASES LIKE 'mysqlslap'")
    missing = flavour.say(flavour.ours, "-q", "select 1")
    assert missing.exit_code == 1
    assert "Error when connecting to server: 1049 Unknown database 'mysqlslap'" in missing.errors


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("-a -c 0", "--concurrency: '0' is not a number of clients; it must be between 1 and 65535"),
        ("-a -c 1,x", "'x' is not a number of clients"),
        ("-a -y many", "--number-int-cols: 'many' is not a number of columns"),
        ("-a --port=70000 --host=h", "--port is 70000; it must be between 1 and 65535"),
        ("-a --ssl-crl=x", "--ssl-crl is not supported"),
        ("-a --csv=/nowhere/x.csv", "Could not open csv file: /nowhere/x.csv"),
        ("-q .", "--query: cannot read ."),
        ("--compat=oracle -a", "--compat is 'oracle'; it must be mysql or mariadb"),
    ],
)
def test_what_cannot_be_is_told_at_once(of_mysql: Flavour, line: str, part: str) -> None:
    said = of_mysql.say(of_mysql.ours, *words(line), server=False)
    assert part in said.errors
    assert (said.exit_code, said.output) == (1, "")
    assert "panicked" not in said.errors


def test_all_errors_come_at_once(of_mysql: Flavour) -> None:
    said = of_mysql.say(of_mysql.ours, *words("-a -c 0 -x many --port=70000 --protocol=tcp"), server=False)
    assert len(said.errors.splitlines()) == 3, said.errors


def test_percentiles_of_every_query(flavour: Flavour) -> None:
    line = "-q select|1;do|0 -F ; --create=create|table|t(a|int) -c 2 --number-of-queries=400 -i 3 --latency"
    said = flavour.say(flavour.ours, *words(line))
    assert said.exit_code == 0, said
    rows = [row.split(maxsplit=7) for row in said.output.splitlines() if row.endswith(("select 1", "do 0"))]
    assert [(row[0], row[7]) for row in rows] == [("600", "do 0"), ("600", "select 1")]
    for row in rows:
        values = [float(value) for value in row[1:7]]
        assert values == sorted(values)
        assert values[0] > 0


def test_csv_with_percentiles_and_detach(flavour: Flavour) -> None:
    line = "-a --auto-generate-sql-execute-number=9 -c 2 --detach=4 --commit=3 --latency --csv"
    said, connections = flavour.sent(flavour.ours, *words(line))
    assert len(said.output.strip().split(",")) == 7 + 6, said
    # Every client's nine queries need three connections.
    assert len(connections) == 1 + 2 * 3
    assert queries(connections[1:]) == 2 * 9


def queries(connections: Sequence[Sequence[str]]) -> int:
    """How many of the generated queries were heard."""
    return sum(text.startswith(("Query INSERT", "Query SELECT")) for heard in connections for text in heard)
