"""Logging in to a real MariaDB: TLS in every mode, accounts that ask for it, compression, several hosts."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.conftest import variant
from tests.end_to_end.certificates import LONG_AGO, Authority
from tests.end_to_end.logins import ROWS, load, log_in, plan

from dbdyno.run.engine import Engine
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import Address
from dbdyno.servers.workspace import Workspace

HOSTS = "DNS:localhost,IP:127.0.0.1"


@pytest.fixture(scope="module")
def authority(results: Path) -> Authority:
    """Who signs the server's certificates."""
    return Authority.make(results / "authority")


@pytest.fixture(scope="module")
def server(workspace: Workspace, authority: Authority) -> Iterator[LocalServer]:
    """A MariaDB with TLS and one table."""
    certificate, key = authority.issue("server", HOSTS)
    variables = {
        "ssl_cert": str(certificate),
        "ssl_key": str(key),
        "ssl_ca": str(authority.certificate),
        "performance_schema": "ON",
    }
    with closing(LocalServer(variant("tls", variables=variables), workspace, None)) as started:
        started.start()
        load(started.address())
        yield started


def account_of(server: LocalServer, name: str, how: str) -> Address:
    """Make an account with the rights of the ordinary one; `how` is what follows IDENTIFIED."""
    server.query(f"CREATE USER {name}@'%' IDENTIFIED {how}")
    # The administrator of a private server may do everything but pass it on: the rights are copied.
    rights = "dbdyno.rights_of_an_account"
    server.query(f"CREATE TEMPORARY TABLE {rights} AS SELECT * FROM mysql.db WHERE User = 'dbdyno' LIMIT 1")
    server.query(f"UPDATE {rights} SET User = '{name}', Host = '%'")
    server.query(f"INSERT INTO mysql.db SELECT * FROM {rights}")
    server.query(f"DROP TEMPORARY TABLE {rights}")
    server.query("FLUSH PRIVILEGES")
    return replace(server.address(), user=name, password="canary of the account")


def sessions(server: LocalServer, variable: str, user: str = "dbdyno") -> set[str]:
    """What a status variable is in the sessions of a user, by the server's own account of them."""
    rows = server.query(
        "SELECT s.VARIABLE_VALUE FROM performance_schema.status_by_thread s"
        " JOIN performance_schema.threads t USING (THREAD_ID)"
        f" WHERE s.VARIABLE_NAME = '{variable}' AND t.PROCESSLIST_USER = '{user}'"
    )
    return {str(row[0]) for row in rows}


@pytest.mark.parametrize("mode", ["preferred", "required", "verify-ca", "verify-identity"])
def test_the_session_is_encrypted_with_the_cipher_that_is_recorded(
    server: LocalServer, authority: Authority, mode: str
) -> None:
    tls = {"mode": mode, "ca": str(authority.certificate) if mode.startswith("verify") else None}
    seen: list[set[str]] = []

    def look() -> None:
        seen.extend(sessions(server, name) for name in ("Ssl_version", "Ssl_cipher"))

    login = log_in(server.address(), look, tls=tls)
    assert login.result.done, login.words
    version, suite = login.ready["tls"].split()
    assert seen == [{version}, {suite.replace("TLS13_", "TLS_")}]
    assert login.ready["authentication"] == "mysql_native_password"
    assert login.events > 10


def test_the_default_is_no_encryption(server: LocalServer) -> None:
    seen: list[set[str]] = []
    login = log_in(server.address(), lambda: seen.append(sessions(server, "Ssl_cipher")))
    assert login.result.done, login.words
    assert login.ready["tls"] is None
    assert seen == [{""}]


def test_the_unix_socket_is_encrypted_on_demand_only(server: LocalServer) -> None:
    address = server.address()
    for mode, encrypted in (("preferred", False), ("required", True)):
        login = log_in(address, **{**address.target("unix"), "tls": {"mode": mode}})
        assert login.result.done, login.words
        assert (login.ready["tls"] is not None) == encrypted


def test_without_tls_on_the_server_preferred_goes_on_and_required_does_not(mariadb: LocalServer) -> None:
    load(mariadb.address())
    login = log_in(mariadb.address(), tls={"mode": "preferred"})
    assert login.result.done, login.words
    assert login.ready["tls"] is None
    log_in(mariadb.address(), tls={"mode": "required"}).refused("offers no TLS", "tls mode preferred")


def test_an_account_that_demands_encryption_says_so(server: LocalServer) -> None:
    address = account_of(server, "encrypted", "BY 'canary of the account' REQUIRE SSL")
    log_in(address).refused("Access denied", "REQUIRE SSL")
    assert log_in(address, tls={"mode": "required"}).result.done
    server.query("SET GLOBAL require_secure_transport = ON")
    try:
        log_in(server.address()).refused("Access denied", "require_secure_transport")
    finally:
        server.query("SET GLOBAL require_secure_transport = OFF")


def test_an_account_that_demands_a_certificate_gets_it(server: LocalServer, authority: Authority) -> None:
    address = account_of(server, "certified", "BY 'canary of the account' REQUIRE SUBJECT '/CN=client'")
    log_in(address, tls={"mode": "required"}).refused("Access denied")
    certificate, key = authority.issue("client", "DNS:client")
    tls = {"mode": "required", "certificate": str(certificate), "key": str(key)}
    login = log_in(address, tls=tls)
    assert login.result.done, login.words


def test_an_authority_of_somebody_else_is_told(server: LocalServer, results: Path) -> None:
    other = Authority.make(results / "other-authority")
    tls = {"mode": "verify-ca", "ca": str(other.certificate)}
    log_in(server.address(), tls=tls).refused("not signed by a CA", "set target.tls.ca")


@pytest.fixture
def certificate_of(server: LocalServer, authority: Authority) -> Iterator[Callable[..., None]]:
    """Give the running server another certificate; it gets its own back."""
    certificate, key = (authority.directory / f"server.{end}" for end in ("pem", "key"))
    before = certificate.read_bytes(), key.read_bytes()

    def change(*contents: bytes) -> None:
        certificate.write_bytes(contents[0])
        key.write_bytes(contents[1])
        server.query("FLUSH SSL")

    def give(name: str, *issue: object) -> None:
        made = authority.issue(name, *issue)  # type: ignore[arg-type]
        change(*(path.read_bytes() for path in made))

    yield give
    change(*before)


def test_a_certificate_of_another_host_is_told(
    server: LocalServer, authority: Authority, certificate_of: Callable[..., None]
) -> None:
    certificate_of("elsewhere", "DNS:db.example")
    tls = {"mode": "verify-identity", "ca": str(authority.certificate)}
    log_in(server.address(), tls=tls).refused("does not contain this host", "subjectAltName", "verify-ca")
    login = log_in(server.address(), tls={**tls, "mode": "verify-ca"})
    assert login.result.done, login.words


def test_an_expired_certificate_is_told(
    server: LocalServer, authority: Authority, certificate_of: Callable[..., None]
) -> None:
    certificate_of("expired", HOSTS, LONG_AGO)
    tls = {"mode": "verify-ca", "ca": str(authority.certificate)}
    log_in(server.address(), tls=tls).refused("has expired", "renew")
    login = log_in(server.address(), tls={"mode": "required"})
    assert login.result.done, login.words


def test_files_that_are_no_certificates_are_told_at_once(server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("nothing")
    (tmp_path / "key").write_text("nothing")
    tls = {"mode": "verify-ca", "ca": str(tmp_path / "ca"), "certificate": str(tmp_path / "gone")}
    key = {"key": str(tmp_path / "key")}
    login = log_in(server.address(), tls={**tls, **key}, server_public_key=str(tmp_path / "key"))
    assert login.result.exit_code == 2
    assert "target.tls.certificate" in login.words
    assert "No such file" in login.words
    assert "target.server_public_key" in login.words
    login = log_in(server.address(), tls={**tls, **key, "certificate": str(tmp_path / "key")})
    assert login.result.exit_code == 2
    assert all(f"target.tls.{name}:" in login.words for name in ("ca", "certificate", "key")), login.words


@pytest.mark.parametrize("tls", ["disabled", "required"])
def test_compression_changes_no_count(server: LocalServer, tls: str) -> None:
    address = server.address()
    seen: list[set[str]] = []
    per_event = set()
    for compression in ("none", "zlib"):
        login = log_in(
            address,
            lambda: seen.append(sessions(server, "Compression")),
            compression=compression,
            tls={"mode": tls},
        )
        assert login.result.done, login.words
        assert login.ready["compression"] == (None if compression == "none" else compression)
        per_event.add(login.bytes / login.events)
    assert seen == [{"OFF"}, {"ON"}]
    # Every row of the table is as long as the others.
    assert len(per_event) == 1, per_event
    long_results = {"name": "oltp_read_only", "options": {"table_size": ROWS}}
    login = log_in(address, workload=long_results, compression="zlib", tls={"mode": tls})
    assert login.row_count_mismatches == 0


def test_a_compression_that_the_server_lacks_is_told(server: LocalServer) -> None:
    log_in(server.address(), compression={"zstd": {}}).refused("offers no zstd compression")


def test_loading_travels_compressed(server: LocalServer) -> None:
    """Long INSERTs, and LOAD DATA LOCAL, where one exchange has many messages; the rows are the same."""
    address = server.address()
    checksums = []
    for compression, method in (("none", "insert"), ("zlib", "insert"), ("zlib", "load-data")):
        larger = {"name": "oltp_point_select", "options": {"table_size": 20_000}}
        loading = {"method": method}
        asked = plan(address, {"compression": compression}, workload=larger, loading=loading)
        commands: tuple[Literal["cleanup", "prepare"], ...] = ("cleanup", "prepare")
        for command in commands:
            result = Engine().run(command, asked, address.environment())
            assert result.done, result.failure()
        checksums.append(server.query("CHECKSUM TABLE dbdyno.sbtest1"))
    assert checksums == checksums[:1] * 3
    assert server.query("SELECT COUNT(*) FROM dbdyno.sbtest1") == [(20_000,)]


def test_connections_take_the_endpoints_in_turn(server: LocalServer) -> None:
    address = server.address()
    tcp, unix = (address.target(transport)["endpoints"][0] for transport in ("tcp", "unix"))
    seen: list[list[str]] = []

    def look() -> None:
        rows = server.query("SELECT HOST FROM information_schema.PROCESSLIST WHERE USER = 'dbdyno'")
        seen.append(sorted(str(row[0]).partition(":")[0] for row in rows))

    login = log_in(address, look, connections=7, endpoints=[tcp, unix, tcp])
    assert login.result.done, login.words
    assert seen == [["127.0.0.1"] * 5 + ["localhost"] * 2]
    gone = {"tcp": {"host": "127.0.0.1", "port": 1}}
    log_in(address, connections=3, endpoints=[tcp, gone]).refused("127.0.0.1:1", "refused")


# --- methods that come as plugins

PLUGINS = Path(__file__).parents[2] / ".servers" / "mariadb-plugins"


@pytest.fixture(scope="module")
def with_plugins(workspace: Workspace, results: Path, authority: Authority) -> Iterator[LocalServer]:
    """A MariaDB with the logins ed25519 and PAM, TLS, and one table."""
    assert PLUGINS.is_dir(), (
        f"{PLUGINS} is missing; make test unpacks it, and so does scripts/mariadb-plugins"
    )
    # Where the servers' user may go; a clone may lie in a closed directory.
    shutil.copytree(PLUGINS, results / "plugins")
    certificate, key = authority.issue("with-plugins", HOSTS)
    variables = {
        "plugin_dir": str(results / "plugins"),
        "ssl_cert": str(certificate),
        "ssl_key": str(key),
    }
    loaded = "--plugin-load-add=auth_ed25519.so;auth_pam_v1.so"
    spec = variant("plugins", variables=variables, arguments=(loaded, "--pam-use-cleartext-plugin=ON"))
    with closing(LocalServer(spec, workspace, None)) as started:
        started.start()
        load(started.address())
        yield started


def test_ed25519_needs_no_private_way(with_plugins: LocalServer) -> None:
    address = account_of(with_plugins, "signs", "VIA ed25519 USING PASSWORD('canary of the account')")
    ways: list[dict[str, Any]] = [{}, {"tls": {"mode": "required"}}, address.target("unix")]
    for way in ways:
        login = log_in(address, **way)
        assert login.result.done, login.words
        assert login.ready["authentication"] == "client_ed25519"
    log_in(replace(address, password="another")).refused("Access denied")


def test_a_password_in_clear_text_goes_through_private_ways_only(
    with_plugins: LocalServer, authority: Authority
) -> None:
    """PAM knows no such user, so the server's own refusal shows that it got the password."""
    address = account_of(with_plugins, "unknown", "VIA pam USING 'dbdyno-test'")
    ways: list[dict[str, Any]] = [{}, {"tls": {"mode": "preferred"}}, {"tls": {"mode": "required"}}]
    for way in ways:
        log_in(address, **way).refused("asks for the password in clear text", "verify-ca")
    tls = {"mode": "verify-identity", "ca": str(authority.certificate)}
    ways = [{"tls": tls}, address.target("unix")]
    for way in ways:
        log_in(address, **way).refused("Access denied")
