"""The lab's own connection to a target: encrypted as its URL says, and careful with the password."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.end_to_end.mysql_server import MySQLServer

from dbdyno.servers import open_remote
from dbdyno.servers.server import ServerProblem


def cipher(mysql: MySQLServer, options: str = "") -> str:
    """The cipher of a session that a URL with `options` opens."""
    url = f"mysql://dbdyno@127.0.0.1:{mysql.port}/dbdyno{options}"
    with closing(open_remote(url, mysql.password)) as server:
        server.start()
        return str(server.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1])


@pytest.fixture
def ca(mysql: MySQLServer, tmp_path: Path) -> Path:
    """The authority of the certificate that MySQL made for itself; it has forgotten every password."""
    mysql.sql("FLUSH PRIVILEGES")
    file = tmp_path / "ca.pem"
    file.write_bytes((mysql.data / "ca.pem").read_bytes())
    return file


def test_the_password_goes_under_the_servers_key_without_tls(mysql: MySQLServer, ca: Path) -> None:
    assert not cipher(mysql)
    mysql.sql("FLUSH PRIVILEGES")
    key = ca.with_name("key.pem")
    key.write_bytes((mysql.data / "public_key.pem").read_bytes())
    assert not cipher(mysql, f"?server-public-key={key}")


def test_the_password_goes_into_verified_tls_only(mysql: MySQLServer, ca: Path) -> None:
    for mode in ("required", "preferred"):
        with pytest.raises(ServerProblem, match="asks for the password itself") as caught:
            cipher(mysql, f"?tls={mode}")
        assert caught.value.exit_code == 3
        assert "tls=verify-ca" in caught.value.text
    assert cipher(mysql, f"?tls=verify-ca&tls-ca={ca}")
    # Now the server knows it, and needs not be told.
    assert cipher(mysql, "?tls=required")


def test_a_certificate_that_does_not_fit_is_told(mysql: MySQLServer, ca: Path) -> None:
    with pytest.raises(ServerProblem, match="TLS failed"):
        cipher(mysql, f"?tls=verify-identity&tls-ca={ca}")
    ca.write_text("nothing")
    with pytest.raises(ServerProblem, match=r"ca\.pem"):
        cipher(mysql, f"?tls=verify-ca&tls-ca={ca}")
