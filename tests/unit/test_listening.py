"""Addresses to listen on: which need a token, and which Host headers name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.listening import listener
from dbdyno.problem import Problem

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize("listen", ["127.0.0.1:80", "127.8.8.8:0", "[::1]:9400", "localhost:1"])
@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9400", "localhost:80", "[::1]:80"])
def test_this_machine_may_use_a_loopback_address(listen: str, host: str) -> None:
    place = listener(listen, None, "read")
    assert place.token is None
    assert place.accepts_host(host)


@pytest.mark.parametrize(
    "host", ["", "example.org", "127.0.0.1.example.org", "localhost.example:80", "[::1", "a b"]
)
def test_other_names_of_a_loopback_address_are_refused(host: str) -> None:
    assert not listener("127.0.0.1:80", None, "read").accepts_host(host)


@pytest.mark.parametrize("listen", ["0.0.0.0:80", "[::]:80", "10.0.0.1:80", "bench.example:80"])
def test_other_addresses_need_a_token(listen: str, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="others could read the runs"):
        listener(listen, None, "read the runs")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    place = listener(listen, tmp_path / "token", "read the runs")
    assert place.token == TOKEN
    assert place.accepts_host("any.example")


@pytest.mark.parametrize(
    "listen", ["80", "127.0.0.1", "127.0.0.1:99999", "::1:80", "a b:c", ":80", "127.0.0.1:-1"]
)
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(Problem, match="it must be ADDRESS:PORT"):
        listener(listen, None, "read")


@pytest.mark.parametrize("token", ["", "short", "ä" * 20])
def test_a_weak_token_is_refused(token: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(token)
    with pytest.raises(Problem, match="fewer than 16 ASCII characters"):
        listener("0.0.0.0:80", tmp_path / "token", "read")


def test_a_url_has_brackets_around_an_address_with_colons() -> None:
    assert listener("[::1]:9400", None, "read").url_host == "[::1]"
    assert listener("127.0.0.1:9400", None, "read").url_host == "127.0.0.1"
