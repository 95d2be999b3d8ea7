"""The URL of a target, and where its password comes from."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import IO, Any

import pytest
from tests.schemas import require_valid

from dbdyno.experiment.model import ConnectionSettings
from dbdyno.servers.admin import connection, mysql
from dbdyno.servers.admin.mysql import MySQLAdmin
from dbdyno.servers.kinds.remote import Password, RemoteServer, read_password
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.url import Target, parse_url

ROOT = Path(__file__).parents[2]
VERIFIED = ConnectionSettings(
    tls="verify-identity",
    tls_ca=Path("/ca.pem"),
    compression="zstd",
    zstd_level=7,
    allow_public_key_retrieval=True,
)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("mysql://sb@db1.example:3307/shop", Target("sb", "db1.example", 3307, "shop", None)),
        ("mariadb://sb@db1.example/shop", Target("sb", "db1.example", 3306, "shop", None)),
        ("mysql://a%40b@[::1]:3306/x%20y", Target("a@b", "::1", 3306, "x y", None)),
        ("mysql://a%2Fb@db1/shop", Target("a/b", "db1", 3306, "shop", None)),
        ("postgres://sb@db1/shop", Target("sb", "db1", 5432, "shop", None, protocol="postgresql")),
        (
            "postgresql://sb@db1:5433/shop?tls=required",
            Target("sb", "db1", 5433, "shop", None, (), ConnectionSettings(tls="required"), "postgresql"),
        ),
        ("mysql://sb@/shop?socket=/run/s.sock", Target("sb", "localhost", 3306, "shop", "/run/s.sock")),
        (
            "mysql://sb@A,[::1]:3307,c:3308/shop",
            Target("sb", "a", 3306, "shop", None, (("::1", 3307), ("c", 3308))),
        ),
        (
            "mysql://sb@h/shop?tls=verify-identity&tls-ca=/ca.pem&compression=zstd&zstd-level=7"
            "&allow-public-key-retrieval=yes",
            Target("sb", "h", 3306, "shop", None, (), VERIFIED),
        ),
    ],
)
def test_a_url_is_taken_apart_and_put_together(url: str, target: Target) -> None:
    assert parse_url(url) == target
    assert parse_url(str(target)) == target


def test_the_plan_has_what_the_url_says() -> None:
    target = parse_url("mysql://sb@a,b:3307/shop?tls=required&compression=zlib&server-public-key=/key.pem")
    asked = RemoteServer(target, Password("canary")).address().target()
    assert asked["endpoints"] == [
        {"tcp": {"host": "a", "port": 3306}},
        {"tcp": {"host": "b", "port": 3307}},
    ]
    assert asked["tls"] == {"mode": "required"}
    assert asked["compression"] == "zlib"
    assert asked["server_public_key"] == "/key.pem"
    plan = {"schema": 1, "target": asked, "workload": {"name": "oltp_point_select"}}
    plan |= {"load": {"connections": 1}, "phases": {"measure_us": 1_000_000}, "seed": 1}
    require_valid(plan, "plan")


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("oracle://h/", ["must begin with mysql://, mariadb://", "has no user", "has no database"]),
        ("mysql://u@/db", ["has no host"]),
        ("mysql://u@h/a/b", ["more than the name of one database"]),
        ("mysql://u@h/db?ssl=1", ["an unknown option; known options are socket, tls, tls-ca,"]),
        ("mysql://u@h:99999/db", ["not a URL with a port from 1 to 65535"]),
        ("mysql://u@h,/db", ["not a URL with a port from 1 to 65535"]),
        ("mysql://u@h/db?tls=verify-ca", ["tls verify-ca needs tls_ca"]),
        ("mysql://u@h/db?tls=on", ["option tls: Input should be 'disabled', 'preferred'"]),
        (
            "mysql://u@h/db?compression=zstd&zstd-level=99",
            ["option zstd-level", "less than or equal to 22"],
        ),
        (
            "mysql:///db?allow-public-key-retrieval=maybe",
            ["no user", "public-key-retrieval"],
        ),
        ("h", ["must begin with mysql://"]),
        ("mysql://u@h/db#1", ["has a '#' or a space"]),
    ],
)
def test_everything_wrong_with_a_url_is_told_at_once(url: str, parts: list[str]) -> None:
    with pytest.raises(ServerProblem) as caught:
        parse_url(url)
    assert all(part in caught.value.text for part in parts), caught.value.text
    assert caught.value.exit_code == 2


def test_a_password_in_the_url_is_refused_and_never_repeated() -> None:
    with pytest.raises(ServerProblem) as caught:
        parse_url("mysql://sb:canary@h/db")
    told = caught.value.text + caught.value.fix
    assert "contains a password" in told
    assert "DBDYNO_PASSWORD" in told
    assert "--password-file" in told
    assert "canary" not in told


def test_the_password_comes_from_the_file_then_the_environment_then_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_text("from file\n")
    monkeypatch.setenv("DBDYNO_PASSWORD", "from environment")
    found = [read_password(file, lambda: "typed"), read_password(None, lambda: "typed")]
    monkeypatch.delenv("DBDYNO_PASSWORD")
    found += [read_password(None, lambda: "typed"), read_password(None, None)]
    monkeypatch.setenv("DBDYNO_PASSWORD", "")
    found.append(read_password(None, None))
    assert [password.text for password in found] == ["from file", "from environment", "typed", "", ""]
    assert [password.description() for password in found] == [
        f"with the password from the file {str(file)!r}",
        "with the password from the environment variable DBDYNO_PASSWORD",
        "with the password that you typed",
        "without a password",
        "with the empty password from the environment variable DBDYNO_PASSWORD",
    ]
    assert "from file" not in repr(found[0]).replace(str(file), "").replace("from the file", "")


def test_a_password_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServerProblem, match=r"password file '.*gone' cannot be read: No such file"):
        read_password(tmp_path / "gone", None)


def test_a_server_that_accepts_and_says_nothing_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        admin = MySQLAdmin(mysql.connector(host="127.0.0.1", port=silent.getsockname()[1], user="u"))
        began = time.monotonic()
        with pytest.raises(ServerProblem, match="has not answered 'SELECT 1' within"):
            admin.query("SELECT 1")
        assert time.monotonic() - began < 10.0
        silent.accept()
        silent.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.mark.parametrize(("lost_after_s", "attempts"), [(0.0, 2), (0.2, 1)])
def test_a_statement_is_sent_again_only_if_its_connection_is_lost_at_once(
    monkeypatch: pytest.MonkeyPatch, lost_after_s: float, attempts: int
) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 0.1)
    opened = []

    class Lossy(MySQLAdmin):
        def _run(self, sql: str, answer_timeout_s: float | None) -> list[tuple[Any, ...]]:  # noqa: ARG002
            time.sleep(lost_after_s)
            raise OSError(f"lost in {sql}")

    def connect(timeout_s: int) -> IO[str]:
        opened.append(1)
        return Path(os.devnull).open()

    with pytest.raises(ServerProblem, match="lost in SELECT 1"):
        Lossy(connect).query("SELECT 1")
    assert len(opened) == attempts


def test_a_server_without_an_answer_has_less_time_for_the_next_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 2)
    monkeypatch.setattr(connection, "SILENT_CONNECT_TIMEOUT_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        admin = MySQLAdmin(mysql.connector(host=host, port=port, user="load", password=""))
        for limit_s in (2, 1, 1):
            with pytest.raises(ServerProblem, match=f"has not answered 'SELECT 1' within {limit_s} s"):
                admin.query("SELECT 1")
