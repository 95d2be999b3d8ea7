"""Servers that are only reached, with a private one playing somebody else's."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest
from tests.end_to_end.mysql_server import MySQLServer

from dbdyno.experiment.model import ServerSpec
from dbdyno.servers import open_remote
from dbdyno.servers.admin.mysql import MySQLAdmin, connector
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.kinds.remote import Password, RemoteServer
from dbdyno.servers.kinds.remote_changes import stored_changes
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.url import parse_url


def url(mariadb: LocalServer, user: str = "dbdyno", database: str = "dbdyno") -> str:
    return f"mysql://{user}@127.0.0.1:{mariadb.address().port}/{database}"


def test_it_is_described_and_left_running(mariadb: LocalServer) -> None:
    with closing(open_remote(url(mariadb), mariadb.address().password)) as server:
        server.restore()
        server.start()
        description = server.describe()
        assert description.product == "mariadb"
        assert description.version == mariadb.describe().version
        assert description.identity["url"] == url(mariadb)
        assert description.variables["port"] == str(mariadb.address().port)
        assert description.declared == description.set_by_dbdyno == {}
        assert int(server.status()["Threads_connected"]) >= 1
        assert server.query("SELECT DATABASE()") == [("dbdyno",)]
        assert server.address().target()["password"] == {"env": "DBDYNO_PASSWORD"}
        assert mariadb.address().password not in repr(description) + repr(server.address())
        server.stop(clean=True)
    assert mariadb.query("SELECT 1") == [(1,)]


def test_the_unix_socket_works_too(mariadb: LocalServer) -> None:
    address = mariadb.address()
    with closing(
        open_remote(f"mysql://dbdyno@/dbdyno?socket={address.unix_socket}", address.password)
    ) as server:
        server.start()
        assert server.query("SELECT 1") == [(1,)]
        assert server.address().target("unix")["endpoints"] == [{"unix": {"path": address.unix_socket}}]


def test_a_wrong_password_and_a_wrong_database_are_told(mariadb: LocalServer) -> None:
    right = mariadb.address().password
    for target, password, told in (
        (url(mariadb), "canary", "access denied for user 'dbdyno' with a password"),
        (url(mariadb), "", "access denied for user 'dbdyno' without a password"),
        (url(mariadb, user="nobody"), "canary", "access denied for user 'nobody'"),
        (url(mariadb, database="other"), right, "has no database 'other' for user 'dbdyno'"),
    ):
        with pytest.raises(ServerProblem) as caught, closing(open_remote(target, password)) as server:
            server.start()
        assert told in caught.value.text
        assert caught.value.exit_code == 3
        assert "canary" not in caught.value.text + caught.value.fix


def test_an_unreachable_server_is_told() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        for target in (f"127.0.0.1:{port}", "no-such-host.invalid:3306"):
            with pytest.raises(ServerProblem, match=f"{target} cannot be reached") as caught:
                open_remote(f"mysql://u@{target}/db", "").start()
            assert caught.value.exit_code == 3


def test_a_variable_that_cannot_be_set_back_is_told_with_its_value_and_the_statement(
    mysql: MySQLServer,
) -> None:
    """An account that loses the right to it, and its connection, while its variables are set."""
    names = ("innodb_io_capacity", "lock_wait_timeout")
    was = {name: mysql.variables()[name] for name in names}
    spec = ServerSpec.model_validate(
        {
            "kind": "remote",
            "url": "mysql://lent@h/db",
            "set_global": True,
            "variables": dict.fromkeys(names, 777),
        }
    )
    target = parse_url(f"mysql://lent@127.0.0.1:{mysql.address().port}/dbdyno")
    mysql.sql("CREATE USER lent@'%' IDENTIFIED BY ''")
    mysql.sql("GRANT ALL ON dbdyno.* TO lent@'%'")
    mysql.sql("GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO lent@'%'")
    try:
        with closing(RemoteServer(target, Password(""), "theirs", spec)) as server:
            server.start()
            assert {name: mysql.variables()[name] for name in names} == dict.fromkeys(names, "777")
            mysql.sql("REVOKE SYSTEM_VARIABLES_ADMIN ON *.* FROM lent@'%'")
            ((connection,),) = server.query("SELECT CONNECTION_ID()")
            mysql.sql(f"KILL {connection}")
            with pytest.raises(ServerProblem) as caught:
                server.stop(clean=True)
            # It is told once.
            server.stop(clean=True)
    finally:
        mysql.sql("DROP USER lent@'%'")
        for name, value in was.items():
            mysql.sql(f"SET GLOBAL {name} = {value}")
    # The earlier values stay stored.
    (stored,) = stored_changes()
    assert {change.name: change.before for change in stored.record.changes} == was
    stored.remove()
    told = caught.value.text + caught.value.fix
    assert caught.value.exit_code == 4
    assert told.startswith("theirs: lock_wait_timeout was ")
    for name, value in was.items():
        assert f"{name} was '{value}', and dbdyno could not restore it" in told
        assert f"set it yourself: SET GLOBAL {name} = {value}" in told


@pytest.mark.parametrize("password", ["pässwörd", "비밀번호🔑"])
def test_a_password_of_any_script_and_a_user_with_a_slash_log_in(mariadb: LocalServer, password: str) -> None:
    account = "'team/app'@'127.0.0.1'"
    mariadb.query(f"CREATE USER {account} IDENTIFIED BY '{password}'")
    try:
        target = url(mariadb, user="team%2Fapp", database="information_schema")
        with closing(open_remote(target, password)) as server:
            server.start()
            assert server.query("SELECT USER()") == [("team/app@127.0.0.1",)]
            # The URL that dbdyno prints leads there too.
            printed = str(server.describe().identity["url"])
            assert parse_url(printed).user == "team/app"
    finally:
        mariadb.query(f"DROP USER {account}")


@pytest.mark.parametrize("password", ["pässwörd", "비밀번호🔑"])
def test_a_password_of_any_script_logs_in_at_mysql_in_full(mysql: MySQLServer, password: str) -> None:
    mysql.sql(f"CREATE USER 'scripts'@'localhost' IDENTIFIED WITH caching_sha2_password BY '{password}'")
    try:
        socket_path = mysql.address().unix_socket
        connect = connector(unix_socket=socket_path, user="scripts", password=password)
        with closing(MySQLAdmin(connect)) as admin:
            assert admin.query("SELECT USER()") == [("scripts@localhost",)]
    finally:
        mysql.sql("DROP USER 'scripts'@'localhost'")
