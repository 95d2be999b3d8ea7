"""What differs from one protocol to the next when a server is only reached: its facts, and its refusals.

One class for each protocol, one line in `PROTOCOLS`. Facts are asked for in the ways of `product`, whose
servers are ours; here an account may lack the right to some of them, and goes without.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from dbdyno.servers.admin import Admin
from dbdyno.servers.careful import CR_AUTH_PLUGIN_CANNOT_LOAD, CR_SSL_CONNECTION_ERROR
from dbdyno.servers.configuration import Value, rendered
from dbdyno.servers.mariadb import MariaDB
from dbdyno.servers.mysql import MySQL
from dbdyno.servers.mysql_admin import MySQLAdmin
from dbdyno.servers.mysql_admin import connector as mysql_connector
from dbdyno.servers.postgresql import PostgreSQL
from dbdyno.servers.postgresql_admin import PostgreSQLAdmin
from dbdyno.servers.postgresql_admin import connector as postgresql_connector
from dbdyno.servers.product import Product
from dbdyno.servers.server import PASSWORD_WAY_OUT, ServerProblem
from dbdyno.servers.url import Target, bracketed

NOT_REACHABLE = 3

# What identifies a server for good, where it has it.
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


class Reached(ABC):
    """One protocol, as far as a server of somebody else's goes."""

    # Whether what `change` sets is still set when the server starts again.
    lasts: ClassVar[bool]

    @abstractmethod
    def admin(self, target: Target, password: str) -> Admin:
        """A connection to the target; nothing is connected yet."""

    @abstractmethod
    def product(self, variables: Mapping[str, str]) -> Product:
        """What answers, by its own words; a proxy may answer for another."""

    @abstractmethod
    def identity(self, admin: Admin, variables: Mapping[str, str]) -> dict[str, Any]:
        """What names the server for good, and `started_unix_s`, the second in which it started."""

    @abstractmethod
    def host(self, admin: Admin, variables: Mapping[str, str]) -> dict[str, Any]:
        """What the server tells about its machine."""

    @abstractmethod
    def refusal(self, target: Target, code: int | str, text: str, *, with_password: bool) -> ServerProblem:
        """Why a connection failed, in the user's terms."""

    @abstractmethod
    def settle(self, admin: Admin, tables: Sequence[str]) -> None:
        """Bring freshly loaded tables, named as in SQL, to rest, and no others, as far as the account may."""

    @abstractmethod
    def change(self, admin: Admin, name: str, value: Value) -> str:
        """Set a variable for the whole server; what `take_back` needs. Raises ServerProblem."""

    @abstractmethod
    def take_back(self, admin: Admin, name: str, before: str) -> None:
        """Set it to what it was. Raises ServerProblem."""

    @abstractmethod
    def statements_back(self, name: str, before: str) -> str:
        """What `take_back` does, for somebody who does it by hand."""


def _where(target: Target) -> str:
    return target.unix_socket or f"{bracketed(target.host)}:{target.port}"


def _wrong_login(target: Target, text: str, *, with_password: bool) -> ServerProblem:
    with_or_without = "with" if with_password else "without"
    said = f"{_where(target)} refuses user {target.user!r} {with_or_without} a password: {text}"
    return ServerProblem(said, f"check user and password; {PASSWORD_WAY_OUT}", NOT_REACHABLE)


def _no_database(target: Target, text: str, statement: str) -> ServerProblem:
    return ServerProblem(
        f"{_where(target)} has no database {target.database!r} for user {target.user!r}: {text}",
        f"create it ({statement}), grant rights on it, or name another",
        NOT_REACHABLE,
    )


def _no_tls(target: Target, text: str) -> ServerProblem:
    return ServerProblem(
        f"{_where(target)}: TLS could not be agreed on: {text}",
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


class ReachedMySQL(Reached):
    """Servers of the MySQL protocol."""

    lasts = False

    def admin(self, target: Target, password: str) -> Admin:
        """See `Reached`."""
        options: dict[str, Any] = {"user": target.user, "password": password, "database": target.database}
        if target.unix_socket:
            options["unix_socket"] = target.unix_socket
        else:
            options |= {"host": target.host, "port": target.port}
        return MySQLAdmin(mysql_connector(target.connect, **options))

    def product(self, variables: Mapping[str, str]) -> Product:
        """By version and comment."""
        words = f"{variables.get('version', '')} {variables.get('version_comment', '')}"
        return MariaDB() if "mariadb" in words.lower() else MySQL()

    def identity(self, admin: Admin, variables: Mapping[str, str]) -> dict[str, Any]:
        """By its variables; the start is known to the second."""
        identity: dict[str, Any] = {name: variables[name] for name in _MYSQL_IDENTITY if variables.get(name)}
        with suppress(ServerProblem):
            ((now,),) = admin.query("SELECT UNIX_TIMESTAMP()")
            uptime = admin.pairs("SHOW GLOBAL STATUS LIKE 'Uptime'")
            identity["started_unix_s"] = int(now) - int(uptime["Uptime"])
        return identity

    def host(self, admin: Admin, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002
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

    def settle(self, admin: Admin, tables: Sequence[str]) -> None:
        """Nothing: the loader has analysed its tables."""

    def change(self, admin: Admin, name: str, value: Value) -> str:
        """SET GLOBAL."""
        before = admin.pairs(f"SHOW GLOBAL VARIABLES LIKE {_mysql_literal(_like(name))}")
        if name not in before:
            raise ServerProblem(f"the server has no variable {name!r}")
        admin.query(f"SET GLOBAL {name} = {_mysql_value(rendered(name, value))}")
        return before[name]

    def take_back(self, admin: Admin, name: str, before: str) -> None:
        """SET GLOBAL."""
        admin.query(self.statements_back(name, before))

    def statements_back(self, name: str, before: str) -> str:
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
        f"{_where(target)} lets user {target.user!r} into database {target.database!r} not from here, or "
        f"not in this way: {text}",
        "have an entry for them written into pg_hba.conf, and the server reload it; one of hostssl wants TLS",
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
        f"{_where(target)} lets the role {target.user!r} own things and not log in: {text}",
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


# What a server of PostgreSQL says when it lets nobody in, in English; the first that fits. What it says in
# another language or of something else begins with FATAL all the same.
_REFUSALS: tuple[tuple[re.Pattern[str], Callable[[Target, str, bool], ServerProblem]], ...] = (
    (re.compile(r"no pg_hba\.conf entry|pg_hba\.conf rejects"), _no_entry),
    (re.compile(r"permission denied for database"), _no_right),
    (re.compile(r"is not permitted to log in"), _no_login),
    (re.compile(r'database ".*" does not exist|not currently accepting connections'), _no_place),
    (re.compile(r"password|authentication failed|role \".*\" does not exist"), _no_user),
    (re.compile(r"too many (clients|connections)|remaining connection slots"), _no_room),
    (re.compile(r"FATAL:"), _refused),
)


class ReachedPostgreSQL(Reached):
    """Servers of PostgreSQL's protocol."""

    lasts = True

    def admin(self, target: Target, password: str) -> Admin:
        """See `Reached`. A unix socket is named by its file or by the folder of it."""
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

    def identity(self, admin: Admin, variables: Mapping[str, str]) -> dict[str, Any]:
        """The cluster's own number, its address and its start, as far as the account may ask."""
        identity: dict[str, Any] = {
            name: variables[name]
            for name in ("data_directory", "port", "cluster_name")
            if variables.get(name)
        }
        asked = {
            "system_identifier": "SELECT system_identifier::text FROM pg_control_system()",
            "address": "SELECT host(inet_server_addr())",
            "started_unix_s": "SELECT extract(epoch FROM pg_postmaster_start_time())::bigint",
        }
        for name, sql in asked.items():
            with suppress(ServerProblem):
                ((found,),) = admin.query(sql)
                if found is not None:
                    identity[name] = found
        return identity

    def host(self, admin: Admin, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG002
        """What version() says of the machine it was built for."""
        ((text,),) = admin.query("SELECT version()")
        return {"built": str(text)}

    def refusal(self, target: Target, code: int | str, text: str, *, with_password: bool) -> ServerProblem:  # noqa: ARG002
        """By the server's words, and libpq's: when a connection is not made, there is no SQLSTATE."""
        for words, told in _REFUSALS:
            if words.search(text):
                return told(target, text, with_password)
        return _no_tls(target, text) if "SSL" in text or "certificate" in text else _unreachable(target, text)

    def settle(self, admin: Admin, tables: Sequence[str]) -> None:
        """Freeze every row of the tables, so that no trial does it."""
        if tables:
            admin.query(f"VACUUM (FREEZE, ANALYZE) {', '.join(tables)}")

    def change(self, admin: Admin, name: str, value: Value) -> str:
        """ALTER SYSTEM and a reload; what waits for a restart is taken back and refused."""
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
            # Written down already, and it would come with the next reload.
            admin.query(_alter_back(name, before))
            raise
        return before

    def take_back(self, admin: Admin, name: str, before: str) -> None:
        """ALTER SYSTEM and a reload."""
        admin.query(_alter_back(name, before))
        _reload(admin)

    def statements_back(self, name: str, before: str) -> str:
        """ALTER SYSTEM and a reload."""
        return f"{_alter_back(name, before)}; SELECT pg_reload_conf()"


def _alter_back(name: str, before: str) -> str:
    to = f"SET {name} = '{_escaped(before)}'" if before else f"RESET {name}"
    return f"ALTER SYSTEM {to}"


def _escaped(text: str) -> str:
    return text.replace("'", "''")


def _reload(admin: Admin) -> None:
    """Have the server read its files, and wait until it has."""
    ((before,),) = admin.query("SELECT pg_conf_load_time()")
    admin.query("SELECT pg_reload_conf()")
    deadline = time.monotonic() + RELOAD_S_MAX
    while admin.query("SELECT pg_conf_load_time()")[0][0] == before and time.monotonic() < deadline:
        time.sleep(0.02)


PROTOCOLS: Mapping[str, Reached] = {"mysql": ReachedMySQL(), "postgresql": ReachedPostgreSQL()}
