"""A server that is only reached: somebody else's, named by a URL. Its settings are read and never changed.

The load and the administration share one account here, since it is the only one we are given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql

from dbdyno.servers.admin import Admin, connector, numbered
from dbdyno.servers.declared import all_of
from dbdyno.servers.server import Address, Description, Server, ServerProblem

SCHEMES = ("mysql", "mariadb")
DEFAULT_PORT = 3306
NOT_REACHABLE = 3

PASSWORD_WAY_OUT = (
    f"put it into the variable {Address.PASSWORD_VARIABLE}, a file for --password-file, or type it when asked"
)

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


@dataclass(frozen=True)
class Target:
    """The parts of a URL `mysql://user@host:port/database`; a unix socket as `?socket=/path`."""

    user: str
    host: str
    port: int
    database: str
    unix_socket: str | None

    def __str__(self) -> str:
        """The URL again, which never holds a password."""
        socket = f"?socket={self.unix_socket}" if self.unix_socket else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"mysql://{self.user}@{host}:{self.port}/{self.database}{socket}"


def parse_url(url: str) -> Target:
    """The parts of a target's URL. Raises ServerProblem with everything that is wrong; never repeats a
    password.
    """
    problems: list[ServerProblem] = []

    def wrong(text: str, way_out: str = "") -> None:
        problems.append(ServerProblem(text, way_out))

    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORT
    except ValueError:
        raise ServerProblem(
            "the target is no URL with a port from 1 to 65535",
            "write it like mysql://user@host:3306/database",
        ) from None
    if parts.scheme not in SCHEMES:
        wrong(
            f"the target begins with {parts.scheme + '://' if parts.scheme else 'no scheme'!r}; "
            f"known are {', '.join(scheme + '://' for scheme in SCHEMES)}"
        )
    if parts.password is not None:
        wrong("the target holds a password, which everybody on this machine could read", PASSWORD_WAY_OUT)
    if not parts.username:
        wrong("the target names no user")
    database = unquote(parts.path.removeprefix("/"))
    if not database or "/" in database:
        wrong(
            "the target names no database"
            if not database
            else f"{database!r} cannot be the name of a database"
        )
    options = parse_qs(parts.query)
    for name in options.keys() - {"socket"}:
        wrong(f"the target holds the option {name!r}; the only one is socket")
    socket = options.get("socket", [None])[0]
    if not parts.hostname and socket is None:
        wrong("the target names no host")
    if problems:
        problem = all_of(problems, "--target")
        raise ServerProblem(problem.text, problem.way_out or "write it like mysql://user@host:3306/database")
    host = parts.hostname or "localhost"
    return Target(unquote(parts.username or ""), host, port, database, socket)


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
        self._admin = Admin(connector(**options))

    def restore(self) -> None:
        """Nothing: the data of a server that is only reached are kept."""

    def start(self) -> None:
        """Connect. Raises ServerProblem with exit code 3 when that fails."""
        try:
            self._admin.open()
        except (pymysql.err.Error, OSError, RuntimeError) as error:
            raise self._refused(*numbered(error)) from error

    def _refused(self, number: int, text: str) -> ServerProblem:
        """Why a connection failed, by the error numbers of the MySQL protocol."""
        target = self._target
        where = target.unix_socket or f"{target.host}:{target.port}"
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
            target.host, target.port, target.unix_socket, target.user, target.database, self._password
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
