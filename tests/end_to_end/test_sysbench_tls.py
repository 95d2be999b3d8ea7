"""`--mysql-ssl` of sysbench 1.0.20, which names three files of the working directory without being asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import variant
from tests.end_to_end.certificates import Authority
from tests.end_to_end.differential import (
    DATABASE,
    USER,
    Case,
    Database,
    drop_in,
    give_account,
    original,
    said,
    same_either_way,
)

from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

# An account that must show a certificate.
SHOWING = "showing"
TABLES = "oltp_point_select --table-size=50"
RUN = f"sysbench {TABLES} {{db}} {{only}} --mysql-user={SHOWING} --events=5 --mysql-ssl run"


@pytest.fixture(scope="module")
def authority(results: Path) -> Authority:
    return Authority.make(results / "authority of sysbench")


@pytest.fixture(scope="module")
def encrypted(
    workspace: Workspace, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """A private MariaDB with TLS, sysbench's account, and the same once more for whom shows a certificate."""
    certificate, key = authority.issue("server", "DNS:localhost,IP:127.0.0.1")
    variables = {"ssl_cert": str(certificate), "ssl_key": str(key), "ssl_ca": str(authority.certificate)}
    with closing(LocalServer(variant("tls of sysbench", variables=variables), workspace, None)) as server:
        server.start()
        give_account(server)
        server.query(f"CREATE USER {SHOWING}@'%' IDENTIFIED BY '{USER}' REQUIRE X509")
        copy = f"{DATABASE}.rights"
        server.query(f"CREATE TEMPORARY TABLE {copy} AS SELECT * FROM mysql.db WHERE User = '{USER}'")
        server.query(f"UPDATE {copy} SET User = '{SHOWING}'")
        server.query(f"INSERT INTO mysql.db SELECT * FROM {copy}")
        server.query("FLUSH PRIVILEGES")
        yield Database(server, tmp_path_factory.mktemp("shims"))


@pytest.fixture(scope="module")
def files(authority: Authority) -> dict[str, str]:
    """What lies in the working directory, by name."""
    certificate, key = authority.issue("client", "DNS:client")
    paths = {"client-cert.pem": certificate, "client-key.pem": key, "cacert.pem": authority.certificate}
    return {name: path.read_text() for name, path in paths.items()}


def test_the_files_of_the_working_directory_count(
    encrypted: Database, files: dict[str, str], way: tuple[str, ...]
) -> None:
    same_either_way(encrypted, Case("all", RUN, tables=TABLES, files=files), way)


def test_who_has_signed_the_servers_certificate_counts(
    encrypted: Database, files: dict[str, str], results: Path, way: tuple[str, ...]
) -> None:
    """In the client library's words there, in dbdyno's here."""
    folder = results / f"another authority {way}"
    other = {**files, "cacert.pem": Authority.make(folder).certificate.read_text()}
    case = Case("other", RUN, tables=TABLES, files=other)
    for side in (original(encrypted.folder), drop_in(encrypted.folder, *way)):
        done = said(side, case, encrypted)
        assert done.exit_code == 1, done.raw
        assert "FATAL: error 2026: " in done.raw


def test_without_files_the_connection_is_encrypted_all_the_same(
    encrypted: Database, files: dict[str, str]
) -> None:
    """Where the original finds no file and gives up (docs/sysbench.md)."""
    run = f"sysbench {TABLES} {{db}} {{only}} --events=5 --mysql-ssl run"
    ours = drop_in(encrypted.folder)
    for there, user, code in (
        ((), "", 0),
        ((), SHOWING, 1),
        (("client-cert.pem", "client-key.pem"), SHOWING, 0),
    ):
        chosen = {name: files[name] for name in there}
        options = f"{{db}} --mysql-user={user}" if user else "{db}"
        case = Case("some", run.replace("{db}", options), tables=TABLES, files=chosen)
        assert said(ours, case, encrypted).exit_code == code
        assert said(original(encrypted.folder), case, encrypted).exit_code == 1
