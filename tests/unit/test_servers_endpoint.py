"""The URL of a target, and where its password comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.servers.endpoint import Target, parse_url, password
from dbdyno.servers.server import ServerProblem


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("mysql://sb@db1.example:3307/shop", Target("sb", "db1.example", 3307, "shop", None)),
        ("mariadb://sb@db1.example/shop", Target("sb", "db1.example", 3306, "shop", None)),
        ("mysql://a%40b@[::1]:3306/x%20y", Target("a@b", "::1", 3306, "x y", None)),
        ("mysql://sb@/shop?socket=/run/s.sock", Target("sb", "localhost", 3306, "shop", "/run/s.sock")),
    ],
)
def test_a_url_is_taken_apart(url: str, target: Target) -> None:
    assert parse_url(url) == target


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("postgres://h/", ["begins with 'postgres://'", "names no user", "names no database"]),
        ("mysql://u@/db", ["names no host"]),
        ("mysql://u@h/a/b", ["'a/b' cannot be the name of a database"]),
        ("mysql://u@h/db?ssl=1", ["the option 'ssl'; the only one is socket"]),
        ("mysql://u@h:99999/db", ["no URL with a port from 1 to 65535"]),
        ("h", ["begins with 'no scheme'"]),
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
    told = caught.value.text + caught.value.way_out
    assert "holds a password" in told
    assert "DBDYNO_PASSWORD" in told
    assert "--password-file" in told
    assert "canary" not in told


def test_the_password_comes_from_the_file_then_the_environment_then_the_user(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("from file\n")
    environment = {"DBDYNO_PASSWORD": "from environment"}
    assert password(file, lambda: "typed", environment) == "from file"
    assert password(None, lambda: "typed", environment) == "from environment"
    assert password(None, lambda: "typed", {}) == "typed"
    assert password(None, None, {}) == ""


def test_a_password_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServerProblem, match=r"password file '.*gone' cannot be read: No such file"):
        password(tmp_path / "gone", None, {})
