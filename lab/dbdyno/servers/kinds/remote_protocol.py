"""Remote servers of each protocol: their facts, their settings, and the reasons why they refuse a connection.

One class for each protocol, registered in `PROTOCOLS`. An account on a remote server may lack the right to
some facts, which are left out then.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.admin.mysql import MySQLAdmin
from dbdyno.servers.admin.mysql import connector as mysql_connector
from dbdyno.servers.admin.postgresql import PostgreSQLAdmin
from dbdyno.servers.admin.postgresql import connector as postgresql_connector
from dbdyno.servers.admin.secure_connection import CR_AUTH_PLUGIN_CANNOT_LOAD, CR_SSL_CONNECTION_ERROR
from dbdyno.servers.products.configuration import Value, rendered
from dbdyno.servers.products.mariadb import MariaDB
from dbdyno.servers.products.mysql import MySQL
from dbdyno.servers.products.postgresql import PostgreSQL
from dbdyno.servers.products.product import Product
from dbdyno.servers.server import PASSWORD_FIX, ServerProblem
from dbdyno.servers.url import Target, bracketed

NOT_REACHABLE = 3

# Variables that identify a server permanently.
_MYSQL_IDENTITY = (
    "server_uuid",
    "server_uid",
    "hostname",
    "port",
    "datadir",
    "socket",
    "version_comment",
    "aurora_version",
    "aurora_server_id",
)
_MYSQL_HOST = ("hostname", "version_compile_os", "version_compile_machine")

# A reload reaches every session within a moment.
RELOAD_S_MAX = 10.0

_SIZE = re.compile(r"([0-9]+)([KMGTPE])")


class RemoteProtocol(ABC):
    """What dbdyno does with a remote server in one protocol."""

    # Whether a variable that `change` sets keeps its value when the server restarts.
    survives_restart: ClassVar[bool]

    @abstractmethod
    def admin(self, target: Target, password: str) -> AdminConnection:
        """A connection to the target; nothing is connected yet."""

    @abstractmethod
    def product(self, variables: Mapping[str, str]) -> Product:
        """The product that answers; a proxy may report another one."""

    @abstractmethod
    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:
        """What identifies the server permanently, and `started_unix_s`, the second in which it started."""

    @abstractmethod
    def host(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:
        """What the server reports about its machine."""

    @abstractmethod
    def refusal(self, target: Target, code: int | str, text: str, *, with_password: bool) -> ServerProblem:
        """Why a connection failed, in the user's terms."""

    @abstractmethod
    def settle(self, admin: AdminConnection, tables: Sequence[str]) -> None:
        """Finish background work on freshly loaded tables, named as in SQL, as far as the account may."""

    @abstractmethod
    def change(self, admin: AdminConnection, name: str, value: Value) -> str:
        """Set a variable for the whole server; `revert` needs it. Raises ServerProblem."""

    @abstractmethod
    def revert(self, admin: AdminConnection, name: str, before: str) -> None:
        """Set it to its former value. Raises ServerProblem."""

    @abstractmethod
    def revert_sql(self, name: str, before: str) -> str:
        """The statements of `revert`, for a user who must run them."""


def _where(target: Target) -> str:
    return target.unix_socket or f"{bracketed(target.host)}:{target.port}"


def _wrong_login(target: Target, text: str, *, with_password: bool) -> ServerProblem:
    with_or_without = "with" if with_password else "without"
    problem = f"{_where(target)}: access denied for user {target.user!r} {with_or_without} a password: {text}"
    return ServerProblem(problem, f"check user and password; {PASSWORD_FIX}", NOT_REACHABLE)


def _no_database(target: Target, text: str, statement: str) -> ServerProblem:
    return ServerProblem(
        f"{_where(target)} has no database {target.database!r} for user {target.user!r}: {text}",
        f"create it ({statement}), grant rights on it, or name another",
        NOT_REACHABLE,
    )


def _no_tls(target: Target, text: str) -> ServerProblem:
    return ServerProblem(
        f"{_where(target)}: TLS failed: {text}",
        "check tls and tls-ca, and the server's certificate: authority, dates, and the names in it",
        NOT_REACHABLE,
    )


def _full(target: Target, text: str) -> ServerProblem:
    return ServerProblem(
        f"{_where(target)} has no connection left: {text}",
        "raise max_connections or close others",
        NOT_REACHABLE,
    )


def _unreachable(target: Target, text: str) -> ServerProblem:
    return ServerProblem(
        f"{_where(target)} cannot be reached: {text}",
        "check host, port, and that the server runs",
        NOT_REACHABLE,
    )


class RemoteMySQL(RemoteProtocol):
    """Servers of the MySQL protocol."""

    survives_restart = False

    def admin(self, target: Target, password: str) -> AdminConnection:
        """See `RemoteProtocol`."""
        options: dict[str, Any] = {"user": target.user, "password": password, "database": target.database}
        if target.unix_socket:
            options["unix_socket"] = target.unix_socket
        else:
            options |= {"host": target.host, "port": target.port}
        return MySQLAdmin(mysql_connector(target.connect, **options))

    def product(self, variables: Mapping[str, str]) -> Product:
        """By version and comment."""
        text = f"{variables.get('version', '')} {variables.get('version_comment', '')}"
        return MariaDB() if "mariadb" in text.lower() else MySQL()

    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:
        """By its variables; the start is known to the second."""
        identity: dict[str, Any] = {name: variables[name] for name in _MYSQL_IDENTITY if variables.get(name)}
        with suppress(ServerProblem):
            ((now,),) = admin.query("SELECT UNIX_TIMESTAMP()")
            uptime = admin.pairs("SHOW GLOBAL STATUS LIKE 'Uptime'")
            identity["started_unix_s"] = int(now) - int(uptime["Uptime"])
        return identity

    def host(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002
        """By its variables."""
        return {name: variables[name] for name in _MYSQL_HOST if name in variables}

    def refusal(self, target: Target, code: int | str, text: str, *, with_password: bool) -> ServerProblem:
        """By the error numbers of the protocol."""
        if code in (1045, 1698):
            return _wrong_login(target, text, with_password=with_password)
        if code in (1044, 1049):
            return _no_database(target, text, f"CREATE DATABASE `{target.database}`")
        if code == CR_SSL_CONNECTION_ERROR or "CERTIFICATE_VERIFY_FAILED" in text:
            return _no_tls(target, text)
        if code == CR_AUTH_PLUGIN_CANNOT_LOAD:
            return ServerProblem(f"{_where(target)}: {text}", "see docs/connections.md", NOT_REACHABLE)
        return _full(target, text) if code == 1040 else _unreachable(target, text)

    def settle(self, admin: AdminConnection, tables: Sequence[str]) -> None:
        """Nothing: the loader has analysed its tables."""

    def change(self, admin: AdminConnection, name: str, value: Value) -> str:
        """SET GLOBAL."""
        before = admin.pairs(f"SHOW GLOBAL VARIABLES LIKE {_mysql_literal(_like(name))}")
        if name not in before:
            raise ServerProblem(f"the server has no variable {name!r}")
        admin.query(f"SET GLOBAL {name} = {_mysql_value(rendered(name, value))}")
        return before[name]

    def revert(self, admin: AdminConnection, name: str, before: str) -> None:
        """SET GLOBAL."""
        admin.query(self.revert_sql(name, before))

    def revert_sql(self, name: str, before: str) -> str:
        """SET GLOBAL."""
        return f"SET GLOBAL {name} = {_mysql_value(before)}"


def _like(name: str) -> str:
    return name.replace("_", r"\_")


def _mysql_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _mysql_value(text: str) -> str:
    """A value as SET takes it: sizes in bytes, since SET knows no letters."""
    if (size := _SIZE.fullmatch(text)) is not None:
        return str(int(size[1]) * 1024 ** ("KMGTPE".index(size[2]) + 1))
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) or text.upper() in {"ON", "OFF"}:
        return text
    return _mysql_literal(text)


def _no_entry(target: Target, text: str, _: bool) -> ServerProblem:
    return ServerProblem(
        f"{_where(target)} does not accept user {target.user!r} for database {target.database!r} from this "
        f"address or with this kind of connection: {text}",
        "add an entry for them to pg_hba.conf and reload the server; an entry of type hostssl requires TLS",
        NOT_REACHABLE,
    )


def _no_right(target: Target, text: str, _: bool) -> ServerProblem:
    user, database = target.user.replace('"', '""'), target.database.replace('"', '""')
    return ServerProblem(
        f"user {target.user!r} may not connect to database {target.database!r} on {_where(target)}: {text}",
        f'GRANT CONNECT ON DATABASE "{database}" TO "{user}", or name another database or user',
        NOT_REACHABLE,
    )


def _no_login(target: Target, text: str, _: bool) -> ServerProblem:
    user = target.user.replace('"', '""')
    return ServerProblem(
        f"{_where(target)} has a role {target.user!r} without the right to log in: {text}",
        f'ALTER ROLE "{user}" LOGIN, or name another user',
        NOT_REACHABLE,
    )


def _no_place(target: Target, text: str, _: bool) -> ServerProblem:
    return _no_database(target, text, f'CREATE DATABASE "{target.database}"')


def _no_room(target: Target, text: str, _: bool) -> ServerProblem:
    return _full(target, text)


def _no_user(target: Target, text: str, with_password: bool) -> ServerProblem:
    return _wrong_login(target, text, with_password=with_password)


def _refused(target: Target, text: str, _: bool) -> ServerProblem:
    return ServerProblem(
        f"{_where(target)} refuses the connection: {text}", "look at the server's log for more", NOT_REACHABLE
    )


# PostgreSQL's refusals in English, the most specific first. A refusal in another language begins with FATAL
# too.
_REFUSALS: tuple[tuple[re.Pattern[str], Callable[[Target, str, bool], ServerProblem]], ...] = (
    (re.compile(r"no pg_hba\.conf entry|pg_hba\.conf rejects"), _no_entry),
    (re.compile(r"permission denied for database"), _no_right),
    (re.compile(r"is not permitted to log in"), _no_login),
    (re.compile(r'database ".*" does not exist|not currently accepting connections'), _no_place),
    (re.compile(r"password|authentication failed|role \".*\" does not exist"), _no_user),
    (re.compile(r"too many (clients|connections)|remaining connection slots"), _no_room),
    (re.compile(r"FATAL:"), _refused),
)


class RemotePostgreSQL(RemoteProtocol):
    """Servers of PostgreSQL's protocol."""

    survives_restart = True

    def admin(self, target: Target, password: str) -> AdminConnection:
        """See `RemoteProtocol`. A unix socket is named by its file or by the folder of it."""
        options: dict[str, Any] = {"user": target.user, "port": target.port, "host": target.host}
        if target.unix_socket:
            folder, dot, port = target.unix_socket.rpartition("/.s.PGSQL.")
            options |= {"host": folder, "port": int(port)} if dot else {"host": target.unix_socket}
        if password:
            options["password"] = password
        return PostgreSQLAdmin(target.database, postgresql_connector(target.connect, **options))

    def product(self, variables: Mapping[str, str]) -> Product:  # noqa: ARG002 — it has one.
        """PostgreSQL."""
        return PostgreSQL()

    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:
        """The cluster's own number, its address and its start, as far as the account may ask."""
        identity: dict[str, Any] = {
            name: variables[name]
            for name in ("data_directory", "port", "cluster_name")
            if variables.get(name)
        }
        queries = {
            "system_identifier": "SELECT system_identifier::text FROM pg_control_system()",
            "address": "SELECT host(inet_server_addr())",
            "started_unix_s": "SELECT extract(epoch FROM pg_postmaster_start_time())::bigint",
        }
        for name, sql in queries.items():
            with suppress(ServerProblem):
                ((value,),) = admin.query(sql)
                if value is not None:
                    identity[name] = value
        return identity

    def host(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002
        """What version() reports."""
        ((text,),) = admin.query("SELECT version()")
        return {"built": str(text)}

    def refusal(self, target: Target, code: int | str, text: str, *, with_password: bool) -> ServerProblem:  # noqa: ARG002
        """By the text of the server and of libpq: without a connection there is no SQLSTATE."""
        for pattern, problem in _REFUSALS:
            if pattern.search(text):
                return problem(target, text, with_password)
        return _no_tls(target, text) if "SSL" in text or "certificate" in text else _unreachable(target, text)

    def settle(self, admin: AdminConnection, tables: Sequence[str]) -> None:
        """Freeze every row of the tables, so that no trial does it."""
        if tables:
            admin.query(f"VACUUM (FREEZE, ANALYZE) {', '.join(tables)}")

    def change(self, admin: AdminConnection, name: str, value: Value) -> str:
        """ALTER SYSTEM and a reload; what waits for a restart is undone and refused."""
        text = PostgreSQL().rendered(name, value)
        known = admin.query(f"SELECT context FROM pg_settings WHERE name = '{name}'")
        if not known:
            raise ServerProblem(f"the server has no variable {name!r}")
        if known[0][0] in ("postmaster", "internal"):
            raise ServerProblem(
                f"{name} cannot be changed while the server runs",
                "set it on the server, which needs a restart",
            )
        rows = admin.query(
            "SELECT setting FROM pg_file_settings WHERE sourcefile LIKE '%postgresql.auto.conf' "
            f"AND name = '{name}'"
        )
        before = str(rows[-1][0]) if rows else ""
        admin.query(f"ALTER SYSTEM SET {name} = '{_escaped(text)}'")
        try:
            _reload(admin)
        except ServerProblem:
            # ALTER SYSTEM has written it, and the next reload would apply it.
            admin.query(_revert_sql(name, before))
            raise
        return before

    def revert(self, admin: AdminConnection, name: str, before: str) -> None:
        """ALTER SYSTEM and a reload."""
        admin.query(_revert_sql(name, before))
        _reload(admin)

    def revert_sql(self, name: str, before: str) -> str:
        """ALTER SYSTEM and a reload."""
        return f"{_revert_sql(name, before)}; SELECT pg_reload_conf()"


def _revert_sql(name: str, before: str) -> str:
    to = f"SET {name} = '{_escaped(before)}'" if before else f"RESET {name}"
    return f"ALTER SYSTEM {to}"


def _escaped(text: str) -> str:
    return text.replace("'", "''")


def _reload(admin: AdminConnection) -> None:
    """Have the server read its files, and wait until it has."""
    ((before,),) = admin.query("SELECT pg_conf_load_time()")
    admin.query("SELECT pg_reload_conf()")
    deadline = time.monotonic() + RELOAD_S_MAX
    while admin.query("SELECT pg_conf_load_time()")[0][0] == before and time.monotonic() < deadline:
        time.sleep(0.02)


PROTOCOLS: Mapping[str, RemoteProtocol] = {"mysql": RemoteMySQL(), "postgresql": RemotePostgreSQL()}
