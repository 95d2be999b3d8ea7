"""Remote servers of each protocol: facts, settings, and explanations of refused connections.

One class for each protocol, registered in `PROTOCOLS`. Facts that the account may not read are left out.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
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

# Maximum seconds until all sessions see a reloaded setting.
RELOAD_S_MAX = 10.0

_SIZE = re.compile(r"([0-9]+)([KMGTPE])")


# Why a server refuses a connection, and the fix. {user} and {database} are plain names; {user_sql} and
# {database_sql} are quoted for SQL.
_REFUSALS = {
    "login": (
        "{where}: access denied for user {user} {with_or_without} a password: {text}",
        f"check user and password; {PASSWORD_FIX}",
    ),
    "database": (
        "{where} has no database {database} for user {user}: {text}",
        "create it (CREATE DATABASE {database_sql}), grant rights on it, or name another",
    ),
    "tls": (
        "{where}: TLS failed: {text}",
        "check tls and tls-ca, and the server's certificate: authority, dates, and the names in it",
    ),
    "full": ("{where} has no connection left: {text}", "raise max_connections or close others"),
    "unreachable": ("{where} cannot be reached: {text}", "check host, port, and that the server runs"),
    "authentication": ("{where}: {text}", "see docs/connections.md"),
    "entry": (
        "{where} does not accept user {user} for database {database} from this address or with this kind of "
        "connection: {text}",
        "add an entry for them to pg_hba.conf and reload the server; an entry of type hostssl requires TLS",
    ),
    "right": (
        "user {user} may not connect to database {database} on {where}: {text}",
        "GRANT CONNECT ON DATABASE {database_sql} TO {user_sql}, or name another database or user",
    ),
    "role": (
        "{where} has a role {user} without the right to log in: {text}",
        "ALTER ROLE {user_sql} LOGIN, or name another user",
    ),
    "refused": ("{where} refuses the connection: {text}", "look at the server's log for more"),
}
# By error number of the MySQL protocol.
_MYSQL_REFUSALS = {
    1045: "login",
    1698: "login",
    1044: "database",
    1049: "database",
    1040: "full",
    CR_SSL_CONNECTION_ERROR: "tls",
    CR_AUTH_PLUGIN_CANNOT_LOAD: "authentication",
}
# By PostgreSQL's English text, the most specific first. A refusal in another language also begins with FATAL.
_POSTGRESQL_REFUSALS = (
    (re.compile(r"no pg_hba\.conf entry|pg_hba\.conf rejects"), "entry"),
    (re.compile(r"permission denied for database"), "right"),
    (re.compile(r"is not permitted to log in"), "role"),
    (re.compile(r'database ".*" does not exist|not currently accepting connections'), "database"),
    (re.compile(r"password|authentication failed|role \".*\" does not exist"), "login"),
    (re.compile(r"too many (clients|connections)|remaining connection slots"), "full"),
    (re.compile(r"FATAL:"), "refused"),
    (re.compile(r"SSL|certificate"), "tls"),
)


class RemoteProtocol(ABC):
    """The operations of dbdyno on a remote server in one protocol."""

    # Whether a variable that `change` sets keeps its value when the server restarts.
    survives_restart: ClassVar[bool]
    # Quotes the name of a database or user.
    quote: ClassVar[str]

    @abstractmethod
    def admin(self, target: Target, password: str) -> AdminConnection:
        """A connection to the target that is not open yet."""

    @abstractmethod
    def product(self, variables: Mapping[str, str]) -> Product:
        """The product that answers; a proxy may report another product than the server behind it."""

    @abstractmethod
    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:
        """What identifies the server permanently, and `started_unix_s`, the second in which it started."""

    @abstractmethod
    def host(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:
        """What the server reports about its machine."""

    def refusal(self, target: Target, code: int | str, text: str, *, with_password: bool) -> ServerProblem:
        """The reason for a failed connection as a message for the user."""
        facts = {
            "where": target.unix_socket or f"{bracketed(target.host)}:{target.port}",
            "user": repr(target.user),
            "database": repr(target.database),
            "user_sql": self._quoted(target.user),
            "database_sql": self._quoted(target.database),
            "with_or_without": "with" if with_password else "without",
            "text": text,
        }
        problem, fix = _REFUSALS[self._refusal_kind(code, text)]
        return ServerProblem(problem.format(**facts), fix.format(**facts), NOT_REACHABLE)

    @abstractmethod
    def _refusal_kind(self, code: int | str, text: str) -> str:
        """The key of `_REFUSALS` for a driver's error."""

    def _quoted(self, name: str) -> str:
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    @abstractmethod
    def settle(self, admin: AdminConnection, tables: Sequence[str]) -> None:
        """Finish background work on freshly loaded tables as far as the account may. `tables` are names as in
        SQL.
        """

    @abstractmethod
    def change(self, admin: AdminConnection, name: str, value: Value) -> str:
        """Set a variable for the whole server, and return the value that `revert` needs. Raises
        ServerProblem.
        """

    @abstractmethod
    def revert(self, admin: AdminConnection, name: str, before: str) -> None:
        """Set a variable to its former value `before`. Raises ServerProblem."""

    @abstractmethod
    def revert_sql(self, name: str, before: str) -> str:
        """The statements of `revert`, for a user who must run them manually."""


class RemoteMySQL(RemoteProtocol):
    """Servers of the MySQL protocol."""

    survives_restart = False
    quote = "`"

    def admin(self, target: Target, password: str) -> AdminConnection:
        """See `RemoteProtocol`."""
        options: dict[str, Any] = {"user": target.user, "password": password, "database": target.database}
        if target.unix_socket:
            options["unix_socket"] = target.unix_socket
        else:
            options |= {"host": target.host, "port": target.port}
        return MySQLAdmin(mysql_connector(target.connect, **options))

    def product(self, variables: Mapping[str, str]) -> Product:
        """Decides by the variables with version and version comment."""
        text = f"{variables.get('version', '')} {variables.get('version_comment', '')}"
        return MariaDB() if "mariadb" in text.lower() else MySQL()

    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:
        """From the server's variables; the start time is known to the second."""
        identity: dict[str, Any] = {name: variables[name] for name in _MYSQL_IDENTITY if variables.get(name)}
        with suppress(ServerProblem):
            ((now,),) = admin.query("SELECT UNIX_TIMESTAMP()")
            uptime = admin.pairs("SHOW GLOBAL STATUS LIKE 'Uptime'")
            identity["started_unix_s"] = int(now) - int(uptime["Uptime"])
        return identity

    def host(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002
        """From the server's variables."""
        return {name: variables[name] for name in _MYSQL_HOST if name in variables}

    def _refusal_kind(self, code: int | str, text: str) -> str:
        if "CERTIFICATE_VERIFY_FAILED" in text:
            return "tls"
        return _MYSQL_REFUSALS.get(int(code), "unreachable")

    def settle(self, admin: AdminConnection, tables: Sequence[str]) -> None:
        """Does nothing: the loader has analysed its tables."""

    def change(self, admin: AdminConnection, name: str, value: Value) -> str:
        """Uses SET GLOBAL."""
        pattern = _mysql_literal(name.replace("_", r"\_"))
        before = admin.pairs(f"SHOW GLOBAL VARIABLES LIKE {pattern}")
        if name not in before:
            raise ServerProblem(f"the server has no variable {name!r}")
        admin.query(f"SET GLOBAL {name} = {_mysql_value(rendered(name, value))}")
        return before[name]

    def revert(self, admin: AdminConnection, name: str, before: str) -> None:
        """Uses SET GLOBAL."""
        admin.query(self.revert_sql(name, before))

    def revert_sql(self, name: str, before: str) -> str:
        """A SET GLOBAL statement."""
        return f"SET GLOBAL {name} = {_mysql_value(before)}"


def _mysql_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _mysql_value(text: str) -> str:
    """A value for SET; sizes are converted to bytes, because SET accepts no size suffix."""
    if (size := _SIZE.fullmatch(text)) is not None:
        return str(int(size[1]) * 1024 ** ("KMGTPE".index(size[2]) + 1))
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) or text.upper() in {"ON", "OFF"}:
        return text
    return _mysql_literal(text)


class RemotePostgreSQL(RemoteProtocol):
    """Servers of PostgreSQL's protocol."""

    survives_restart = True
    quote = '"'

    def admin(self, target: Target, password: str) -> AdminConnection:
        """See `RemoteProtocol`. A unix socket is given as its file or as its folder."""
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
        """The cluster's system identifier, address and start time, as far as the account may read them."""
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
        """The output of version()."""
        ((text,),) = admin.query("SELECT version()")
        return {"built": str(text)}

    def _refusal_kind(self, code: int | str, text: str) -> str:  # noqa: ARG002 — without a connection there is none.
        kinds = (kind for pattern, kind in _POSTGRESQL_REFUSALS if pattern.search(text))
        return next(kinds, "unreachable")

    def settle(self, admin: AdminConnection, tables: Sequence[str]) -> None:
        """Freeze every row of the tables, so that this work does not fall into a trial."""
        if tables:
            admin.query(f"VACUUM (FREEZE, ANALYZE) {', '.join(tables)}")

    def change(self, admin: AdminConnection, name: str, value: Value) -> str:
        """Uses ALTER SYSTEM and a reload; a change that needs a restart is reverted and refused."""
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
            # ALTER SYSTEM has already written the value, and the next reload would apply it.
            admin.query(_revert_sql(name, before))
            raise
        return before

    def revert(self, admin: AdminConnection, name: str, before: str) -> None:
        """Uses ALTER SYSTEM and a reload."""
        admin.query(_revert_sql(name, before))
        _reload(admin)

    def revert_sql(self, name: str, before: str) -> str:
        """ALTER SYSTEM and a reload, as statements."""
        return f"{_revert_sql(name, before)}; SELECT pg_reload_conf()"


def _revert_sql(name: str, before: str) -> str:
    to = f"SET {name} = '{_escaped(before)}'" if before else f"RESET {name}"
    return f"ALTER SYSTEM {to}"


def _escaped(text: str) -> str:
    return text.replace("'", "''")


def _reload(admin: AdminConnection) -> None:
    """Make the server reload its configuration, and wait until it has."""
    ((before,),) = admin.query("SELECT pg_conf_load_time()")
    admin.query("SELECT pg_reload_conf()")
    deadline = time.monotonic() + RELOAD_S_MAX
    while admin.query("SELECT pg_conf_load_time()")[0][0] == before and time.monotonic() < deadline:
        time.sleep(0.02)


PROTOCOLS: Mapping[str, RemoteProtocol] = {"mysql": RemoteMySQL(), "postgresql": RemotePostgreSQL()}
