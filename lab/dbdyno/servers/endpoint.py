"""A server that is only reached: somebody else's, named by a URL. Its settings are read and never changed.

The load and the administration share one account here, since it is the only one we are given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dbdyno.servers.admin import Refused
from dbdyno.servers.careful import CR_AUTH_PLUGIN_CANNOT_LOAD, CR_SSL_CONNECTION_ERROR
from dbdyno.servers.mysql_admin import MySQLAdmin, connector
from dbdyno.servers.server import PASSWORD_WAY_OUT, Address, Description, Server, ServerProblem
from dbdyno.servers.url import Target, bracketed, parse_url

NOT_REACHABLE = 3

# What identifies a server for good, where it has it.
_IDENTITY = (
    "server_uuid",
    "server_uid",
    "hostname",
    "port",
    "datadir",
    "socket",
    "version_comment",
    "aurora_version",
)


def password(
    file: Path | None, ask: Callable[[], str] | None, environment: Mapping[str, str] | None = None
) -> str:
    """The password of a target: from the file, else the environment, else by asking, else the empty one.

    `ask` is None where nobody can answer. One trailing line end of the file is cut off. Raises ServerProblem.
    """
    if file is not None:
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise ServerProblem(
                f"the password file {str(file)!r} cannot be read: {why}", PASSWORD_WAY_OUT
            ) from error
        return text.removesuffix("\n").removesuffix("\r")
    variables = os.environ if environment is None else environment
    if Address.PASSWORD_VARIABLE in variables:
        return variables[Address.PASSWORD_VARIABLE]
    return ask() if ask is not None else ""


def open_endpoint(url: str, password: str) -> Server:
    """The server behind a URL; nothing is connected before `start`. Raises ServerProblem for a wrong URL."""
    return EndpointServer(parse_url(url), password)


class EndpointServer(Server):
    """A server that was there before us and stays after us."""

    def __init__(self, target: Target, password: str) -> None:
        self.variant = str(target)
        self._target = target
        self._password = password
        options: dict[str, Any] = {"user": target.user, "password": password, "database": target.database}
        if target.unix_socket:
            options["unix_socket"] = target.unix_socket
        else:
            options |= {"host": target.host, "port": target.port}
        self._admin = MySQLAdmin(connector(target.connect, **options))

    def restore(self) -> None:
        """Nothing: the data of a server that is only reached are kept."""

    def start(self) -> None:
        """Connect. Raises ServerProblem with exit code 3 when that fails."""
        try:
            self._admin.open()
        except Refused as refused:
            raise self._refused(refused.code, refused.text) from refused

    def _refused(self, number: int | str, text: str) -> ServerProblem:
        """Why a connection failed, by the error numbers of the MySQL protocol."""
        target = self._target
        where = target.unix_socket or f"{bracketed(target.host)}:{target.port}"
        if number in (1045, 1698):
            with_or_without = "with" if self._password else "without"
            said = f"{where} refuses user {target.user!r} {with_or_without} a password: {text}"
            return ServerProblem(said, f"check user and password; {PASSWORD_WAY_OUT}", NOT_REACHABLE)
        if number in (1044, 1049):
            return ServerProblem(
                f"{where} has no database {target.database!r} for user {target.user!r}: {text}",
                f"create it (CREATE DATABASE `{target.database}`), grant rights on it, or name another",
                NOT_REACHABLE,
            )
        if number == CR_SSL_CONNECTION_ERROR or "CERTIFICATE_VERIFY_FAILED" in text:
            return ServerProblem(
                f"{where}: TLS could not be agreed on: {text}",
                "check tls and tls-ca, and the server's certificate: authority, dates, and the names in it",
                NOT_REACHABLE,
            )
        if number == CR_AUTH_PLUGIN_CANNOT_LOAD:
            return ServerProblem(f"{where}: {text}", "see docs/connections.md", NOT_REACHABLE)
        if number == 1040:
            return ServerProblem(
                f"{where} has no connection left: {text}",
                "raise max_connections or close others",
                NOT_REACHABLE,
            )
        return ServerProblem(
            f"{where} cannot be reached: {text}", "check host, port, and that the server runs", NOT_REACHABLE
        )

    def stop(self, *, clean: bool) -> None:  # noqa: ARG002 — it is not ours to stop.
        """Disconnect; the server goes on."""
        self._admin.close()

    def close(self) -> None:
        """Disconnect."""
        self._admin.close()

    def address(self) -> Address:
        """The account of the URL."""
        target = self._target
        return Address(
            target.host,
            target.port,
            target.unix_socket,
            target.user,
            target.database,
            self._password,
            target.others,
            target.connect,
        )

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """See `Server`."""
        return self._admin.query(sql)

    def variables(self) -> Mapping[str, str]:
        """See `Server`."""
        return self._admin.pairs("SHOW GLOBAL VARIABLES")

    def status(self) -> Mapping[str, str]:
        """See `Server`."""
        return self._admin.pairs("SHOW GLOBAL STATUS")

    def describe(self) -> Description:
        """See `Server`. Product and version are the server's own words; a proxy may answer for another."""
        variables = self.variables()
        version = variables.get("version", "")
        comment = variables.get("version_comment", "")
        product = "mariadb" if "mariadb" in f"{version} {comment}".lower() else "mysql"
        identity: dict[str, Any] = {name: variables[name] for name in _IDENTITY if name in variables}
        identity["url"] = str(self._target)
        return Description(product, version, identity, declared={}, harness={}, variables=variables)

    def process(self) -> Mapping[str, float]:
        """Nothing: the process is somebody else's."""
        return {}
