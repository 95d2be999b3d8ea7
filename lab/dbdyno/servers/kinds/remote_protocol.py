"""What dbdyno does on a remote server, by protocol: read facts, change settings, explain failed connections;
and connections as those of the load.

`PROTOCOLS` has one class for each protocol. Facts that the account may not read are left out. A value of a
variable that was read is one that `write` accepts: it stays the same when it is stored as text and set again.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from dbdyno.experiment.base import parse_cpus
from dbdyno.experiment.dialect import DIALECTS, POSTGRESQL
from dbdyno.experiment.model import SqlWorkload, Variant
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import AdminConnection, answers_within
from dbdyno.servers.admin.mysql import CR_AUTH_PLUGIN_CANNOT_LOAD, CR_SSL_CONNECTION_ERROR, MySQLAdmin
from dbdyno.servers.admin.mysql import connector as mysql_connector
from dbdyno.servers.admin.postgresql import PostgreSQLAdmin
from dbdyno.servers.admin.postgresql import connector as postgresql_connector
from dbdyno.servers.products.mariadb import MariaDB
from dbdyno.servers.products.mysql import MySQL
from dbdyno.servers.products.postgresql import PostgreSQL
from dbdyno.servers.products.product import Product, Value
from dbdyno.servers.server import PASSWORD_FIX, Address, Server, ServerProblem, StatementRefused
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
    "authentication": ("{where}: {text}", "see dbdyno docs connections"),
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

# Maximum seconds until a reload of the configuration is complete.
RELOAD_S_MAX = 10.0

# The variable can be set only when the server starts, or it has no global value.
_READ_ONLY = 1238
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_SIZE = re.compile(r"([0-9]+)([KMGTPE])", re.IGNORECASE)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_LIST_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^",]*))\s*(?:,|$)')


@dataclass(frozen=True)
class Setting:
    """The value of a variable of the whole server."""

    # None: NULL; PostgreSQL: postgresql.auto.conf does not set the variable.
    text: str | None
    # Whether SET needs quotes around it.
    is_text: bool = True


class RemoteVariables(ABC):
    """The variables of a server of one protocol. The methods raise ServerProblem."""

    @abstractmethod
    def read(self, admin: AdminConnection, name: str) -> Setting:
        """The current value, which `write` accepts."""

    @abstractmethod
    def requested(self, name: str, value: Value, now: Setting) -> Setting:
        """A value of an experiment for `write`; `now` is the current one."""

    @abstractmethod
    def predict(self, admin: AdminConnection, name: str, setting: Setting) -> str:
        """What the server will report after `write`, as far as it says so before. May change the session."""

    @abstractmethod
    def require_changeable(self, admin: AdminConnection, name: str) -> None:
        """Raise ServerProblem if the variable cannot be changed while the server runs."""

    @abstractmethod
    def statement(self, name: str, setting: Setting) -> str:
        """The statement that sets a variable."""

    @abstractmethod
    def instruction(self, name: str, setting: Setting) -> str:
        """The statements that set a variable, for a user who must run them."""

    @abstractmethod
    def describe(self, value: str | None) -> str:
        """A value for a message, as in `'200'`."""

    def write(self, admin: AdminConnection, name: str, setting: Setting) -> None:
        """Set a variable. It takes effect with `apply`."""
        admin.query(self.statement(name, setting))

    @abstractmethod
    def apply(self, admin: AdminConnection) -> None:
        """Let what was written take effect."""

    @abstractmethod
    def values(self, admin: AdminConnection) -> Mapping[str, str]:
        """All variables that may change along with another one, by the names that `read` accepts."""

    @abstractmethod
    def connection(self, admin: AdminConnection) -> int | None:
        """The number of the connection, which grows until the server restarts; None if a restart keeps the
        variables.
        """


class MySQLVariables(RemoteVariables):
    """SET GLOBAL. The value is lost when the server restarts."""

    def read(self, admin: AdminConnection, name: str) -> Setting:
        """See `RemoteVariables`."""
        _require_name(name)
        pairs = admin.pairs(f"SHOW GLOBAL VARIABLES WHERE Variable_name = {_quote(name)}")
        shown = {key.lower(): text for key, text in pairs.items()}
        if name.lower() not in shown:
            raise ServerProblem(f"the server has no variable {name!r}")
        try:
            # SHOW GLOBAL VARIABLES does not tell NULL from an empty text.
            value = answers.value(admin.query, f"SELECT @@GLOBAL.{name}", _as_it_is)
        except StatementRefused as refusal:
            raise _explain_refusal(name, refusal) from refusal
        is_text = value is None or isinstance(value, str | bytes)
        return Setting(None if value is None else shown[name.lower()], is_text)

    def requested(self, name: str, value: Value, now: Setting) -> Setting:
        """Sizes are converted to bytes, because SET accepts no size suffix."""
        text = MySQL().format_value(name, value)
        is_text = now.is_text and isinstance(value, str)
        if (size := _SIZE.fullmatch(text)) is not None and not is_text:
            text = str(int(size[1]) * 1024 ** ("KMGTPE".index(size[2].upper()) + 1))
        return Setting(text, is_text)

    def predict(self, admin: AdminConnection, name: str, setting: Setting) -> str:
        """Sets the value in the session: `optimizer_switch = 'mrr=on'` is reported as a long list."""
        # A client that reads results in another character set may not understand them.
        with suppress(StatementRefused):
            if not name.startswith(("character_set", "collation")):
                admin.query(f"SET SESSION {name} = {_literal(setting)}")
                shown = admin.pairs(f"SHOW SESSION VARIABLES WHERE Variable_name = {_quote(name)}")
                return next(iter(shown.values()), setting.text or "")
        return setting.text or ""

    def require_changeable(self, admin: AdminConnection, name: str) -> None:
        """Does nothing: SET refuses such a variable."""

    def statement(self, name: str, setting: Setting) -> str:
        """A SET GLOBAL statement."""
        return f"SET GLOBAL {name} = {_literal(setting)}"

    def write(self, admin: AdminConnection, name: str, setting: Setting) -> None:
        """See `RemoteVariables`."""
        try:
            super().write(admin, name, setting)
        except StatementRefused as refusal:
            raise _explain_refusal(name, refusal) from refusal

    def instruction(self, name: str, setting: Setting) -> str:
        """The same as `statement`."""
        return self.statement(name, setting)

    def describe(self, value: str | None) -> str:
        """The value in quotes, or NULL."""
        return "NULL" if value is None else repr(value)

    def apply(self, admin: AdminConnection) -> None:
        """Does nothing: SET GLOBAL takes effect at once."""

    def values(self, admin: AdminConnection) -> Mapping[str, str]:
        """Without replication's positions, which change all the time."""
        pairs = admin.pairs("SHOW GLOBAL VARIABLES")
        return {name: text for name, text in pairs.items() if "gtid" not in name.lower()}

    def connection(self, admin: AdminConnection) -> int | None:
        """See `RemoteVariables`."""
        return answers.value(admin.query, "SELECT CONNECTION_ID()", answers.integer)


def _as_it_is(value: object) -> object:
    return value


def _require_name(name: str) -> None:
    """Raise ServerProblem for a name that would be more than a name in a statement."""
    if _NAME.fullmatch(name) is None:
        raise ServerProblem(f"{name!r} is not the name of a variable")


def _explain_refusal(name: str, refusal: StatementRefused) -> ServerProblem:
    if f"(error {_READ_ONLY})" not in refusal.text:
        return refusal
    return StatementRefused(
        f"{name} cannot be changed while the server runs",
        "compare two servers that were started with different values, and omit set_global",
    )


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(setting: Setting) -> str:
    """A value for SET."""
    text = setting.text
    if text is None:
        return "NULL"
    if not setting.is_text and (_NUMBER.fullmatch(text) or text.upper() in {"ON", "OFF"}):
        return text
    if "\\" in text:
        # Whether a backslash escapes depends on the SQL mode.
        return f"CONVERT(0x{text.encode().hex()} USING utf8mb4)"
    return _quote(text)


class PostgreSQLVariables(RemoteVariables):
    """ALTER SYSTEM and a reload. The value is an entry of postgresql.auto.conf, which a restart keeps."""

    def read(self, admin: AdminConnection, name: str) -> Setting:
        """The entry of postgresql.auto.conf."""
        _require_name(name)
        rows = answers.rows(
            admin.query,
            "SELECT setting FROM pg_file_settings WHERE sourcefile LIKE '%postgresql.auto.conf' "
            f"AND lower(name) = '{name.lower()}' ORDER BY seqno",
            answers.text_or_empty,
        )
        return Setting(rows[-1][0] if rows else None)

    def requested(self, name: str, value: Value, now: Setting) -> Setting:  # noqa: ARG002
        """See `RemoteVariables`."""
        return Setting(PostgreSQL().format_value(name, value))

    def predict(self, admin: AdminConnection, name: str, setting: Setting) -> str:  # noqa: ARG002
        """The entry is the text, except for the quotes of a list of names."""
        text = setting.text or ""
        if name.lower() not in POSTGRESQL.name_lists:
            return text
        names = (
            split_name if _PLAIN.fullmatch(split_name) else f'"{split_name.replace(chr(34), 2 * chr(34))}"'
            for split_name in split_names(text)
        )
        return ", ".join(names)

    def require_changeable(self, admin: AdminConnection, name: str) -> None:
        """See `RemoteVariables`."""
        _require_name(name)
        contexts = answers.rows(
            admin.query,
            f"SELECT context FROM pg_settings WHERE lower(name) = '{name.lower()}'",
            answers.text,
        )
        if not contexts:
            raise ServerProblem(f"the server has no variable {name!r}")
        if contexts[0][0] in ("postmaster", "internal"):
            raise ServerProblem(
                f"{name} cannot be changed while the server runs",
                "set it yourself and restart the server",
            )
        if admin.query("SELECT has_function_privilege('pg_reload_conf()', 'EXECUTE')") == [(False,)]:
            raise ServerProblem("the account may not call pg_reload_conf()", exit_code=4)

    def statement(self, name: str, setting: Setting) -> str:
        """An ALTER SYSTEM statement."""
        if setting.text is None:
            return f"ALTER SYSTEM RESET {name}"
        items = [setting.text]
        if name.lower() in POSTGRESQL.name_lists and setting.text:
            items = split_names(setting.text)
        return f"ALTER SYSTEM SET {name} = {', '.join(map(_quote, items))}"

    def instruction(self, name: str, setting: Setting) -> str:
        """ALTER SYSTEM and a reload."""
        return f"{self.statement(name, setting)}; SELECT pg_reload_conf()"

    def describe(self, value: str | None) -> str:
        """The entry in quotes."""
        return "not set in postgresql.auto.conf" if value is None else repr(value)

    def apply(self, admin: AdminConnection) -> None:
        """Make the server reload its configuration, and wait until the reload is complete."""
        before = admin.query("SELECT pg_conf_load_time()::text")
        admin.query("SELECT pg_reload_conf()")
        deadline = time.monotonic() + RELOAD_S_MAX
        while admin.query("SELECT pg_conf_load_time()::text") == before and time.monotonic() < deadline:
            time.sleep(0.02)

    def values(self, admin: AdminConnection) -> Mapping[str, str]:  # noqa: ARG002
        """None: ALTER SYSTEM changes one entry."""
        return {}

    def connection(self, admin: AdminConnection) -> int | None:  # noqa: ARG002
        """None: a restart keeps the entries."""
        return None


def split_names(text: str) -> list[str]:
    """The names of a list as in `"$user", public`."""
    names, position = [], 0
    while position < len(text):
        match = _LIST_ITEM.match(text, position)
        if match is None or match.end() == position:
            # Not a list of names: the server says what is wrong with it.
            return [text]
        quoted, plain = match[1], match[2]
        names.append(quoted.replace('""', '"') if quoted is not None else plain.strip().lower())
        position = match.end()
    return names


class RemoteProtocol(ABC):
    """The operations of dbdyno on a remote server in one protocol."""

    # Whether a variable that dbdyno sets keeps its value when the server restarts.
    survives_restart: ClassVar[bool]
    variables: ClassVar[RemoteVariables]

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
        quote = DIALECTS[target.protocol].quote
        facts = {
            "where": target.unix_socket or f"{bracket_ipv6(target.host)}:{target.port}",
            "user": repr(target.user),
            "database": repr(target.database),
            "user_sql": quote(target.user),
            "database_sql": quote(target.database),
            "with_password": with_password,
            "text": text,
        }
        problem, fix = _FAILURES[self._failure_kind(code, text)]
        return ServerProblem(problem.format(**facts), fix.format(**facts), NOT_REACHABLE)

    @abstractmethod
    def _failure_kind(self, code: int | str, text: str) -> str:
        """The key of `_FAILURES` for a driver's error."""

    @abstractmethod
    def finish_background_work(self, admin: AdminConnection, tables: Sequence[str]) -> None:
        """Finish background work on freshly loaded tables. `tables` are their names as in SQL."""


class RemoteMySQL(RemoteProtocol):
    """Servers of the MySQL protocol."""

    survives_restart = False
    variables = MySQLVariables()

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
    variables = PostgreSQLVariables()

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


@contextmanager
def open_load_session(
    server: Server, workload: SqlWorkload, variant: Variant | None
) -> Iterator[AdminConnection]:
    """A connection with the account, database and session statements of the load."""
    address = server.address()
    session_statements = variant.session.statements(address.protocol) if variant is not None else []
    with open_load_connection(address) as admin:
        for sql in (*workload.session, *session_statements):
            admin.query(sql)
        yield admin


@contextmanager
def open_load_connection(address: Address, transport: str | None = None) -> Iterator[AdminConnection]:
    """A connection to the load's database with the load's account. Over TCP the server may select another
    account than over a unix socket. Raises ServerProblem.
    """
    socket = None if transport == "tcp" else address.unix_socket
    target = {field.name: getattr(address, field.name) for field in fields(Target)}
    whole = Target(**target | {"unix_socket": socket})
    admin = PROTOCOLS[address.protocol].admin(whole, address.password)
    try:
        admin.query("SELECT 1")
        yield admin
    finally:
        admin.close()
