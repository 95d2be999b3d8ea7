"""Logging in to a real MySQL 9.7: `caching_sha2_password` in all its paths, both compressions, IPv6.

Whether the server had the password in its cache shows from outside: over TLS that verifies nothing, the fast
path works, and the full one is refused by us, since it would give the password away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.end_to_end.logins import ROWS, Login, load, log_in, plan
from tests.end_to_end.mysql_server import MySQLServer, starting

from dbdyno.run.engine import Engine
from dbdyno.servers.server import Address
from dbdyno.servers.workspace import Workspace

UNVERIFIED = {"mode": "required"}


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[MySQLServer]:
    """A MySQL with its own certificates and keys, and one table; it listens on IPv6 too."""
    with starting(workspace) as start:
        options = ("--performance-schema=ON", "--bind-address=127.0.0.1,::1", "--skip-name-resolve=ON")
        started = start("mysql for logins", *options)
        load(started.address())
        yield started


@pytest.fixture
def forgotten(server: MySQLServer) -> Address:
    """The ordinary account, which is in no cache."""
    server.sql("FLUSH PRIVILEGES")
    return server.address()


def is_cached(address: Address) -> bool:
    """Whether the server knows the password without being told."""
    login = log_in(address, tls=UNVERIFIED)
    if not login.result.done:
        login.refused("asks for the password itself", "verify-ca")
    return login.result.done


def in_full(login: Login, address: Address) -> None:
    """Assert that a login went well, and that it told the server the password."""
    assert login.result.done, login.words
    assert login.ready["authentication"] == "caching_sha2_password"
    assert is_cached(address)


def test_in_full_under_the_key_that_the_server_sends(forgotten: Address) -> None:
    assert not is_cached(forgotten)
    in_full(log_in(forgotten), forgotten)


def test_in_full_under_the_key_from_a_file(server: MySQLServer, forgotten: Address, tmp_path: Path) -> None:
    key = tmp_path / "public_key.pem"
    key.write_bytes((server.data / "public_key.pem").read_bytes())
    in_full(log_in(forgotten, server_public_key=str(key)), forgotten)


def test_in_full_over_tls_that_is_verified(server: MySQLServer, forgotten: Address, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes((server.data / "ca.pem").read_bytes())
    in_full(log_in(forgotten, tls={"mode": "verify-ca", "ca": str(ca)}), forgotten)
    # The certificate that the server makes for itself names no host.
    login = log_in(forgotten, tls={"mode": "verify-identity", "ca": str(ca)})
    login.refused("does not contain this host", "verify-ca")


def test_in_full_over_the_unix_socket(forgotten: Address) -> None:
    in_full(log_in(forgotten, **forgotten.target("unix")), forgotten)


def test_the_fast_path_needs_no_way_to_tell_the_password(server: MySQLServer, forgotten: Address) -> None:
    in_full(log_in(forgotten), forgotten)
    for mode in ("disabled", "preferred", "required"):
        login = log_in(forgotten, tls={"mode": mode})
        assert login.result.done, login.words
        assert (login.ready["tls"] is None) == (mode == "disabled")
    server.sql("FLUSH PRIVILEGES")
    assert not is_cached(forgotten)


def test_an_account_without_password(server: MySQLServer) -> None:
    server.sql("CREATE USER nobody@'%' IDENTIFIED BY ''")
    server.sql("GRANT ALL ON dbdyno.* TO nobody@'%'")
    login = log_in(server.address("nobody", ""), tls=UNVERIFIED)
    server.sql("DROP USER nobody@'%'")
    assert login.result.done, login.words


def test_a_wrong_password_is_one_clear_sentence(forgotten: Address) -> None:
    log_in(replace(forgotten, password="canary-wrong")).refused(
        "1045", "Access denied", "check user and password"
    )


def test_a_server_that_demands_encryption_says_so(server: MySQLServer, forgotten: Address) -> None:
    assert log_in(forgotten).result.done
    server.sql("SET GLOBAL require_secure_transport = ON")
    try:
        log_in(forgotten).refused("3159", "tls mode")
        login = log_in(forgotten, tls=UNVERIFIED)
    finally:
        server.sql("SET GLOBAL require_secure_transport = OFF")
    assert login.result.done, login.words


@pytest.fixture
def with_plugin(server: MySQLServer) -> Iterator[Callable[[str], Address]]:
    """An account that logs in with a plugin."""

    def make(plugin: str) -> Address:
        server.sql(f"CREATE USER other@'%' IDENTIFIED WITH {plugin} BY 'canary of the account'")
        server.sql("GRANT ALL ON dbdyno.* TO other@'%'")
        return server.address("other", "canary of the account")

    yield make
    server.sql("DROP USER IF EXISTS other@'%'")


def test_sha256_password(server: MySQLServer, with_plugin: Callable[[str], Address], tmp_path: Path) -> None:
    address = with_plugin("sha256_password")
    ca = tmp_path / "ca.pem"
    ca.write_bytes((server.data / "ca.pem").read_bytes())
    ways: list[dict[str, Any]] = [{}, {"tls": {"mode": "verify-ca", "ca": str(ca)}}, address.target("unix")]
    for way in ways:
        login = log_in(address, **way)
        assert login.result.done, login.words
        assert login.ready["authentication"] == "sha256_password"
    log_in(address, tls=UNVERIFIED).refused("sha256_password asks for the password itself")


@pytest.mark.parametrize(("compression", "name"), [("zlib", "zlib"), ({"zstd": {"level": 5}}, "zstd 5")])
def test_compression_is_on_and_changes_no_count(
    forgotten: Address, server: MySQLServer, compression: Any, name: str
) -> None:
    seen: list[dict[str, str]] = []

    def look() -> None:
        rows = server.sql(
            "SELECT DISTINCT s.VARIABLE_NAME, s.VARIABLE_VALUE FROM performance_schema.status_by_thread s"
            " JOIN performance_schema.threads t USING (THREAD_ID)"
            " WHERE s.VARIABLE_NAME LIKE 'Compression%' AND t.PROCESSLIST_USER = 'dbdyno'"
        )
        seen.append({str(key): str(value) for key, value in rows})

    plain = log_in(forgotten)
    login = log_in(forgotten, look, compression=compression)
    assert login.result.done, login.words
    assert login.ready["compression"] == name
    algorithm, _, level = name.partition(" ")
    (status,) = seen
    assert status["Compression"] == "ON"
    assert status["Compression_algorithm"] == algorithm
    assert not level or status["Compression_level"] == level
    # Every row of the table is as long as the others.
    assert login.bytes / login.events == plain.bytes / plain.events
    long_results = {"name": "oltp_read_only", "options": {"table_size": ROWS}}
    login = log_in(forgotten, workload=long_results, compression=compression)
    assert login.result.done, login.words
    assert login.row_count_mismatches == 0


def test_a_compression_that_the_server_forbids_is_told(server: MySQLServer, forgotten: Address) -> None:
    server.sql("SET GLOBAL protocol_compression_algorithms = 'uncompressed'")
    try:
        log_in(forgotten, compression="zlib").refused("offers no zlib", "protocol_compression_algorithms")
    finally:
        server.sql("SET GLOBAL protocol_compression_algorithms = 'zlib,zstd,uncompressed'")


def test_ipv6(server: MySQLServer, forgotten: Address) -> None:
    endpoint = {"tcp": {"host": "::1", "port": server.port}}
    login = log_in(forgotten, endpoints=[endpoint])
    assert login.result.done, login.words
    log_in(forgotten, endpoints=[{"tcp": {"host": "::1", "port": 1}}]).refused("[::1]:1", "refused")


@pytest.mark.parametrize("compression", ["zlib", {"zstd": {}}])
def test_loading_travels_compressed(server: MySQLServer, forgotten: Address, compression: Any) -> None:
    """LOAD DATA LOCAL, where one exchange has many messages."""
    checksums = []
    server.sql("SET GLOBAL local_infile = ON")
    for chosen, method in (("none", "insert"), (compression, "load-data")):
        larger = {"name": "oltp_point_select", "options": {"table_size": 20_000}}
        asked = plan(forgotten, {"compression": chosen}, workload=larger, loading={"method": method})
        commands: tuple[Literal["cleanup", "prepare"], ...] = ("cleanup", "prepare")
        for command in commands:
            result = Engine().run(command, asked, forgotten.environment())
            assert result.done, result.failure()
        checksums.append(server.sql("CHECKSUM TABLE dbdyno.sbtest1"))
    server.sql("SET GLOBAL local_infile = OFF")
    assert checksums[0] == checksums[1]
