"""What dbdyno does on a remote server, by protocol: read facts, change settings, explain failed connections.

`PROTOCOLS` has one class for each protocol. Facts that the account may not read are left out.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from dbdyno.experiment.base import parse_cpus
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import AdminConnection, answers_within
from dbdyno.servers.admin.mysql import MySQLAdmin
from dbdyno.servers.admin.mysql import connector as mysql_connector
from dbdyno.servers.admin.postgresql import PostgreSQLAdmin
from dbdyno.servers.admin.postgresql import connector as postgresql_connector
from dbdyno.servers.admin.secure_connection import CR_AUTH_PLUGIN_CANNOT_LOAD, CR_SSL_CONNECTION_ERROR
from dbdyno.servers.products.mariadb import MariaDB
from dbdyno.servers.products.mysql import MySQL
from dbdyno.servers.products.postgresql import PostgreSQL
from dbdyno.servers.products.product import Product
from dbdyno.servers.server import PASSWORD_FIX, ServerProblem
from dbdyno.servers.url import Target, bracket_ipv6

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
_CPUS = "SELECT VCPU_IDS FROM information_schema.RESOURCE_GROUPS WHERE RESOURCE_GROUP_NAME = 'USR_default'"
_MYSQL_HOST = ("hostname", "version_compile_os", "version_compile_machine")

# MySQL counts its uptime in whole seconds.
_UPTIME_STEP_S = 1.1


# Why a connection failed, and the fix. {user} and {database} are plain names; {user_sql} and
# {database_sql} are quoted for SQL.
_FAILURES = {
    "login": (
        "{where}: access denied for user {user} {with_password}: {text}",
        f"check user and password; {PASSWORD_FIX}",
    ),
    "database": (
        "{where} has no database {database} for user {user}: {text}",
        "create the database (CREATE DATABASE {database_sql}), grant privileges on it, or name another one",
    ),
    "tls": (
        "{where}: TLS failed: {text}",
        "check tls and tls-ca, and the server's certificate: authority, dates, and the names in it",
    ),
    "full": ("{where} has no connection left: {text}", "raise max_connections, or close other connections"),
    "unreachable": ("{where} cannot be reached: {text}", "check host, port, and that the server runs"),
    "authentication": ("{where}: {text}", "see docs/connections.md"),
    "entry": (
        "{where} does not accept user {user} for database {database} from this address or with this kind of "
        "connection: {text}",
        "add an entry to pg_hba.conf and reload the server; an entry of type hostssl requires TLS",
    ),
    "right": (
        "user {user} may not connect to database {database} on {where}: {text}",
        "GRANT CONNECT ON DATABASE {database_sql} TO {user_sql}, or name another database or user",
    ),
    "role": (
        "{where} has a role {user} without the right to log in: {text}",
        "ALTER ROLE {user_sql} LOGIN, or name another user",
    ),
    "refused": ("{where} refuses the connection: {text}", "look at the server's log for the reason"),
}
# Keys of `_FAILURES` by error number of the MySQL protocol.
_MYSQL_FAILURES = {
    1045: "login",
    1698: "login",
    1044: "database",
    1049: "database",
    1040: "full",
    CR_SSL_CONNECTION_ERROR: "tls",
    CR_AUTH_PLUGIN_CANNOT_LOAD: "authentication",
}
# Keys of `_FAILURES` by PostgreSQL's English message, the most specific first. Messages in other languages
# begin with FATAL too.
_POSTGRESQL_FAILURES = (
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

    # Whether a variable that dbdyno sets keeps its value when the server restarts.
    survives_restart: ClassVar[bool]
    # The character that quotes the name of a database or user.
    quote_character: ClassVar[str]

    @abstractmethod
    def admin(self, target: Target, password: str) -> AdminConnection:
        """A connection to the target that is not open yet."""

    @abstractmethod
    def product(self, variables: Mapping[str, str]) -> Product:
        """The product that answers; a proxy may report another product than the server behind it."""

    @abstractmethod
    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:
        """Values that identify the server permanently, and `started_unix_s`, its start time in seconds."""

    @abstractmethod
    def host(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:
        """Facts that the server reports about its machine."""

    def explain_failure(
        self, target: Target, code: int | str, text: str, *, with_password: str
    ) -> ServerProblem:
        """The reason for a failed connection as a message for the user. `with_password` names the source of
        the password, as in "with the password from …".
        """
        facts = {
            "where": target.unix_socket or f"{bracket_ipv6(target.host)}:{target.port}",
            "user": repr(target.user),
            "database": repr(target.database),
            "user_sql": self._quote_name(target.user),
            "database_sql": self._quote_name(target.database),
            "with_password": with_password,
            "text": text,
        }
        problem, fix = _FAILURES[self._failure_kind(code, text)]
        return ServerProblem(problem.format(**facts), fix.format(**facts), NOT_REACHABLE)

    @abstractmethod
    def _failure_kind(self, code: int | str, text: str) -> str:
        """The key of `_FAILURES` for a driver's error."""

    def _quote_name(self, name: str) -> str:
        return (
            self.quote_character
            + name.replace(self.quote_character, 2 * self.quote_character)
            + self.quote_character
        )

    @abstractmethod
    def finish_background_work(self, admin: AdminConnection, tables: Sequence[str]) -> None:
        """Finish background work on freshly loaded tables. `tables` are their names as in SQL."""


class RemoteMySQL(RemoteProtocol):
    """Servers of the MySQL protocol."""

    survives_restart = False
    quote_character = "`"

    def admin(self, target: Target, password: str) -> AdminConnection:
        """See `RemoteProtocol`."""
        options: dict[str, Any] = {"user": target.user, "password": password, "database": target.database}
        if target.unix_socket:
            options["unix_socket"] = target.unix_socket
        else:
            options |= {"host": target.host, "port": target.port}
        return MySQLAdmin(mysql_connector(target.connect, **options))

    def product(self, variables: Mapping[str, str]) -> Product:
        """MariaDB or MySQL, by the variables version and version_comment."""
        text = f"{variables.get('version', '')} {variables.get('version_comment', '')}"
        return MariaDB() if "mariadb" in text.lower() else MySQL()

    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:
        """Server variables, and the start time, which is now minus the uptime."""
        identity: dict[str, Any] = {name: variables[name] for name in _MYSQL_IDENTITY if variables.get(name)}
        # Another product of this protocol may have no such counter.
        with suppress(ServerProblem):
            now_s, uptime_s = self._read_clock(admin)
            if uptime_s == 0:
                # The server started less than a second ago, or it does not count its uptime.
                time.sleep(_UPTIME_STEP_S)
                now_s, uptime_s = self._read_clock(admin)
            if uptime_s > 0:
                identity["started_unix_s"] = now_s - uptime_s
        return identity

    def _read_clock(self, admin: AdminConnection) -> tuple[int, int]:
        """The server's time and its uptime in seconds."""
        now = answers.value(admin.query, "SELECT UNIX_TIMESTAMP()", answers.integer)
        _, uptime = answers.row(
            admin.query, "SHOW GLOBAL STATUS LIKE 'Uptime'", answers.text, answers.integer
        )
        return now, uptime

    def host(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:
        """Server variables about the machine, and the number of CPUs of MySQL's resource groups."""
        facts: dict[str, Any] = {name: variables[name] for name in _MYSQL_HOST if name in variables}
        # MariaDB and old versions of MySQL have no resource groups, and an account may not see them.
        with suppress(ServerProblem, ValueError):
            facts["cpus"] = len(parse_cpus(answers.value(admin.query, _CPUS, answers.text)))
        return facts

    def _failure_kind(self, code: int | str, text: str) -> str:
        if "CERTIFICATE_VERIFY_FAILED" in text:
            return "tls"
        return _MYSQL_FAILURES.get(int(code), "unreachable")

    def finish_background_work(self, admin: AdminConnection, tables: Sequence[str]) -> None:
        """Does nothing: the loader has analysed its tables."""


class RemotePostgreSQL(RemoteProtocol):
    """Servers of PostgreSQL's protocol."""

    survives_restart = True
    quote_character = '"'

    def admin(self, target: Target, password: str) -> AdminConnection:
        """See `RemoteProtocol`. A unix socket is given as its file or as its folder."""
        options: dict[str, Any] = {"user": target.user, "port": target.port, "host": target.host}
        if target.unix_socket:
            folder, dot, port = target.unix_socket.rpartition("/.s.PGSQL.")
            options |= {"host": folder, "port": int(port)} if dot else {"host": target.unix_socket}
        if password:
            options["password"] = password
        return PostgreSQLAdmin(target.database, postgresql_connector(target.connect, **options))

    def product(self, variables: Mapping[str, str]) -> Product:  # noqa: ARG002 — the protocol has one product.
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
                read = answers.integer if name == "started_unix_s" else answers.text_or_empty
                if (fact := answers.value(admin.query, sql, read)) != "":
                    identity[name] = fact
        return identity

    def host(self, admin: AdminConnection, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002
        """The output of version()."""
        return {"built": answers.value(admin.query, "SELECT version()", answers.text)}

    def _failure_kind(self, code: int | str, text: str) -> str:  # noqa: ARG002 — there is no code.
        kinds = (kind for pattern, kind in _POSTGRESQL_FAILURES if pattern.search(text))
        return next(kinds, "unreachable")

    def finish_background_work(self, admin: AdminConnection, tables: Sequence[str]) -> None:
        """Freeze every row of the tables, so that the server does not do this work during a trial."""
        if tables:
            # A large table may take hours.
            with answers_within(None):
                admin.query(f"VACUUM (FREEZE, ANALYZE) {', '.join(tables)}")


PROTOCOLS: Mapping[str, RemoteProtocol] = {"mysql": RemoteMySQL(), "postgresql": RemotePostgreSQL()}
