"""Private PostgreSQL servers: their programs, configuration, accounts and statistics, and the errors in their
log, which is in English.

Settings: chapter "Server Configuration" of the PostgreSQL manual.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.experiment.dialect import POSTGRESQL
from dbdyno.experiment.model import ConnectionSettings
from dbdyno.experiment.quantities import variable_name
from dbdyno.experiment.sql_text import parse_statement, sqlglot
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import AdminConnection, answers_within
from dbdyno.servers.admin.postgresql import PostgreSQLAdmin, connector
from dbdyno.servers.products.product import (
    ADMIN_USER,
    PRIVATE,
    Access,
    Binaries,
    ConfigOptions,
    Failure,
    Patterns,
    Place,
    Plan,
    Product,
    Value,
    disk_full,
    explanation,
    list_options,
    permission_denied,
    port_in_use,
    refused_value,
    unknown_names,
)
from dbdyno.servers.server import Address, ServerProblem
from dbdyno.servers.sources import programs
from dbdyno.text import compose

PACKAGE = "postgresql"

# The database that initdb creates for administration.
MAINTENANCE_DATABASE = "postgres"

# Views with one row of counters.
_ONE_ROW_VIEWS = ("pg_stat_bgwriter", "pg_stat_checkpointer", "pg_stat_wal")
# Counters that are summed over all rows of a view.
_SUMMED_COUNTERS = {
    "pg_stat_user_tables": (
        "seq_scan", "seq_tup_read", "idx_scan", "idx_tup_fetch", "n_tup_ins", "n_tup_upd", "n_tup_del",
        "n_tup_hot_upd", "n_live_tup", "n_dead_tup", "vacuum_count", "autovacuum_count",
    ),
    "pg_stat_io": ("reads", "writes", "extends", "fsyncs", "hits", "evictions"),
}  # fmt: skip

_ERROR = re.compile(r"(?:FATAL|PANIC|ERROR|initdb: error|could not)[^\n]*")


def _error_lines(log: str) -> list[str]:
    """The log's errors in order, without time stamps."""
    return [match[0].strip() for match in _ERROR.finditer(log)]


def _known_settings(failure: Failure) -> frozenset[str]:
    """The names of all settings of this server's program; empty if the program cannot list them."""
    lines = list_options(failure, "--describe-config").splitlines()
    return frozenset(line.partition("\t")[0].lower() for line in lines if "\t" in line)


def _unknown_setting(match: re.Match[str], failure: Failure) -> ServerProblem:
    """Reports every declared name that this server does not know, not just the first."""
    settings = _known_settings(failure)
    first = match["name"].lower()
    others = (n for n in failure.declared if settings and n != first and n not in settings and "." not in n)
    return unknown_names([first, *others], settings, failure)


def _invalid_value(match: re.Match[str], failure: Failure) -> ServerProblem:
    hint = re.search(r"HINT:\s*([^\n]*)", failure.log[match.end() :])
    return refused_value(failure, match["name"], match["value"], hint[1].strip() if hint else "")


def _out_of_memory(_: re.Match[str], failure: Failure) -> ServerProblem:
    size = failure.declared.get("shared_buffers", "its default size")
    return ServerProblem(
        f"not enough memory for shared buffers of {size} (shared_buffers, max_connections): "
        + "; ".join(failure.errors[:2]),
        "declare smaller shared buffers",
    )


_PATTERNS: Patterns = (
    (re.compile(r'unrecognized configuration parameter "(?P<name>[^"]*)"'), _unknown_setting),
    (
        re.compile(
            r"(?P<value>-?[\d.]+(?: \w+)?) is outside the valid range for parameter "
            r'"(?P<name>[^"]*)" (?P<range>\([^)]*\))'
        ),
        explanation(
            "this PostgreSQL server refuses {name!r}: {value} is outside {range}",
            "choose another value",
        ),
    ),
    (re.compile(r'invalid value for parameter "(?P<name>[^"]*)": "(?P<value>[^"]*)"'), _invalid_value),
    (
        re.compile(r'parameter "(?P<name>[^"]*)" cannot be changed'),
        explanation("the PostgreSQL setting {name!r} cannot be changed", "remove it from the variant"),
    ),
    (re.compile(r"Address already in use|could not bind IPv4"), port_in_use),
    (re.compile(r"No space left on device"), disk_full),
    (re.compile(r"Cannot allocate memory|could not map anonymous shared memory"), _out_of_memory),
    (
        re.compile(r'could not access file "(?P<name>[^"]*)": No such file'),
        explanation(
            "the PostgreSQL server has no library {name!r} (shared_preload_libraries)",
            "install the extension's package, or remove it from the variant",
        ),
    ),
    (
        re.compile(
            r"initialized by PostgreSQL version (?P<made>[\d.]+), "
            r"which is not compatible with this version (?P<is>[\d.]+)"
        ),
        explanation(
            "the data were created by PostgreSQL {made}, but this server is PostgreSQL {is}",
            "set server.basedir to the folder of that version",
        ),
    ),
    (re.compile(r"Permission denied"), permission_denied),
)


class PostgreSQL(Product):
    """PostgreSQL 10 and later."""

    name = "postgresql"
    title = "PostgreSQL"
    protocol = "postgresql"
    programs = (("postgres",), ("initdb",))
    version_mark = "PostgreSQL"
    version_variable = "server_version"
    time_limit = "SET statement_timeout = 60000"
    cache_variable = cache_title = "shared_buffers"
    transient_files = frozenset({"postmaster.pid", "postmaster.opts", "pg_stat_tmp"})
    # Signals for a fast and for an immediate shutdown; SIGTERM would wait until all clients disconnect.
    stop_signal = signal.SIGINT
    kill_signal = signal.SIGQUIT

    patterns = _PATTERNS
    error_lines = staticmethod(_error_lines)

    reserved_options: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("data_directory", "config_file", "hba_file", "ident_file", "external_pid_file"), PRIVATE
        ),
        **dict.fromkeys(("unix_socket_directories", "unix_socket_permissions"), PRIVATE),
        "listen_addresses": "a private server listens on loopback only",
        "logging_collector": "dbdyno reads the log from standard error",
        "log_destination": "dbdyno reads the log from standard error",
    }

    # Options of initdb; a running server only displays them.
    init_options = frozenset(
        {"data_checksums", "lc_collate", "lc_ctype", "server_encoding", "wal_segment_size"}
    )

    # Loading need not be durable, because an interrupted snapshot is discarded. Commits stay synchronous:
    # VACUUM marks a page as all-visible only after the commits on it have been flushed to the WAL.
    loading_options: ClassVar[Mapping[str, str | int]] = {
        "shared_buffers": "512MB",
        "fsync": "off",
        "maintenance_work_mem": "256MB",
        "max_wal_size": "4GB",
        "autovacuum": "off",
    }

    def binaries(self, basedir: Path | None) -> Binaries:
        """Finds `postgres` and `initdb`: on PATH, in Debian's folder for each version, or in `basedir`."""
        fix = f"install the Debian package {PACKAGE}, or set server.basedir to a folder with PostgreSQL"
        server, install = programs.find_both(
            self.title, self.programs, basedir, fix, _versions(basedir or Path("/"))
        )
        # Both programs find their files relative to their real path.
        return Binaries(server.resolve(), install.resolve(), basedir, programs.loader_command(basedir))

    def system_folders(self) -> Sequence[Path | None]:
        """See `Product`; Debian has a folder for each version."""
        return (None, *(Path("/", folder).parent for folder in _versions(Path("/"))))

    def socket_name(self, port: int) -> str:
        """PostgreSQL's clients take a folder and a port, and build this name themselves."""
        return f".s.PGSQL.{port}"

    def format_value(self, name: str, value: Value) -> str:
        """Booleans as on and off; units are PostgreSQL's (kB, MB, GB, ms, s, min)."""
        text = ("on" if value else "off") if isinstance(value, bool) else str(value)
        if any(character in text for character in "\n\r\0"):
            raise ServerProblem(
                f"variables.{name} is {value!r}; a value in postgresql.conf is one line",
                "write it without line breaks",
            )
        return text

    def file_options(self, text: str) -> dict[str, str]:
        """See `Product`."""
        options: dict[str, str] = {}
        for raw in text.splitlines():
            match = re.match(r"\s*([A-Za-z_][\w.]*)\s*(?:=|\s)\s*('(?:[^']|'')*'|[^#\s]*)", raw)
            if match and match[1].lower() not in ("include", "include_dir", "include_if_exists"):
                value = match[2]
                unquoted = value[1:-1].replace("''", "'") if value[:1] == "'" else value
                options[variable_name(match[1])] = unquoted
        return options

    def dbdyno_options(self, open_files: int) -> Mapping[str, str]:
        """Enough connections for most loads; each one uses shared memory even if it is never opened."""
        return {
            "max_connections": str(min(1000, open_files // 3)),
            # A restart must not hide a crash.
            "restart_after_crash": "off",
        }

    def tls_options(self, certificate: Path, key: Path) -> Mapping[str, str]:
        """See `Product`."""
        return {"ssl": "on", "ssl_cert_file": str(certificate), "ssl_key_file": str(key)}

    def files(
        self,
        place: Place,
        options: ConfigOptions,
        load: Address,
        admin_password: str,  # noqa: ARG002
    ) -> Mapping[Path, str]:
        """postgresql.conf, pg_hba.conf and pg_ident.conf. The administrator connects through the unix socket
        and is identified by the system account, the load by its password; pg_hba.conf rejects all others.
        """
        where = "all" if place.client_address == "%" else f"{place.client_address}/32"
        lines = [
            f"local all {ADMIN_USER} peer map=dbdyno",
            f"local {load.database} {load.user} scram-sha-256",
            f"host {load.database} {load.user} {where} scram-sha-256",
        ]
        return {
            place.option_file: options.text(self._placement(place), quote_string),
            _hba(place): "".join(f"{line}\n" for line in lines),
            _ident(place): f"dbdyno {POSTGRESQL.quote(_system_account())} {ADMIN_USER}\n",
        }

    @staticmethod
    def _placement(place: Place) -> dict[str, str]:
        return {
            "data_directory": str(place.data),
            "hba_file": str(_hba(place)),
            "ident_file": str(_ident(place)),
            "external_pid_file": str(place.directory / "server.pid"),
            "unix_socket_directories": str(place.socket.parent),
            "unix_socket_permissions": "0700" if place.socket.parent == place.directory else "0777",
            "listen_addresses": place.listen_address,
            "port": str(place.port),
            "log_destination": "stderr",
            "logging_collector": "off",
        }

    def init_command(self, binaries: Binaries, place: Place, options: Mapping[str, str]) -> Sequence[str]:
        """`initdb` with UTF-8 and collation C, unless the experiment declares others."""
        command = [
            *binaries.loader,
            str(binaries.install),
            f"--pgdata={place.data}",
            f"--username={ADMIN_USER}",
            "--auth=reject",
            f"--encoding={options.get('server_encoding', 'UTF8')}",
            f"--lc-collate={options.get('lc_collate', 'C')}",
            f"--lc-ctype={options.get('lc_ctype', 'C')}",
        ]
        if options.get("data_checksums", "off").lower() in ("on", "true", "yes", "1"):
            command.append("--data-checksums")
        if "wal_segment_size" in options:
            command.append(f"--wal-segsize={options['wal_segment_size'].upper().removesuffix('MB')}")
        return command

    def start_command(self, binaries: Binaries, place: Place, arguments: Sequence[str]) -> Sequence[str]:
        """See `Product`. The server reads the generated file, and the values that ALTER SYSTEM writes into
        the data directory.
        """
        return [*binaries.command(), "-D", str(place.data), f"--config-file={place.option_file}", *arguments]

    def file_variables(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """The declared variables without the options of initdb, which postgresql.conf cannot contain."""
        return {name: value for name, value in options.items() if name not in self.init_options}

    def admin(self, place: Place, password: str) -> AdminConnection:  # noqa: ARG002 — `peer` needs no password.
        """Uses the unix socket; superuser_reserved_connections keeps a connection free."""
        options = {"host": str(place.socket.parent), "port": place.port, "user": ADMIN_USER}
        return PostgreSQLAdmin(MAINTENANCE_DATABASE, connector(ConnectionSettings(), **options))

    def create_accounts(self, admin: AdminConnection, load: Address) -> None:
        """Create the load's role, with a new password for this start, and its database; then use that
        database.
        """
        assert isinstance(admin, PostgreSQLAdmin), "made by `admin`"
        # The log settings of a variant must not write the password into the log.
        for setting in ("log_statement = 'none'", "log_min_duration_statement = -1", "log_duration = off"):
            admin.query(f"SET {setting}")
        admin.query("SET log_min_error_statement = 'panic'")
        roles = admin.query(f"SELECT 1 FROM pg_roles WHERE rolname = '{load.user}'")
        verb = "ALTER" if roles else "CREATE"
        admin.query("SET password_encryption = 'scram-sha-256'")
        admin.query(f"{verb} ROLE {load.user} LOGIN NOSUPERUSER PASSWORD '{load.password}'")
        if not admin.query(f"SELECT 1 FROM pg_database WHERE datname = '{load.database}'"):
            admin.query(f"CREATE DATABASE {load.database} OWNER {load.user}")
        admin.use(load.database)

    def finish_background_work(self, admin: AdminConnection, database: str) -> None:  # noqa: ARG002 — `admin` is connected to it.
        """Freeze every row and write all data to disk, so that no trial includes this work."""
        # Large tables may take hours.
        with answers_within(None):
            admin.query("VACUUM (FREEZE, ANALYZE)")
            admin.query("CHECKPOINT")

    def status(self, admin: AdminConnection) -> Mapping[str, str]:
        """Counters of the views pg_stat_*, by view and column: those of the server and of the load's
        database, and the sums over the tables of that database.
        """
        views = "SELECT viewname FROM pg_views WHERE schemaname = 'pg_catalog'"
        present = {name for (name,) in answers.rows(admin.query, views, answers.text)}
        queries = [
            f"SELECT '{view}.' || j.key, j.value FROM {view} v, jsonb_each_text(to_jsonb(v)) j"
            for view in _ONE_ROW_VIEWS
            if view in present
        ]
        queries.append(
            "SELECT 'pg_stat_database.' || j.key, j.value "
            "FROM pg_stat_database v, jsonb_each_text(to_jsonb(v)) j "
            "WHERE v.datname = current_database()"
        )
        queries += [
            f"SELECT '{view}.{column}', COALESCE(SUM({column}), 0)::text FROM {view}"
            for view, columns in _SUMMED_COUNTERS.items()
            if view in present
            for column in columns
        ]
        queries.append(
            "SELECT 'pg_stat_activity.client_backends', COUNT(*)::text FROM pg_stat_activity "
            "WHERE backend_type = 'client backend'"
        )
        return admin.pairs(" UNION ALL ".join(queries))

    def variables(self, admin: AdminConnection) -> Mapping[str, str]:
        """Every setting with its unit, as SHOW displays it."""
        return admin.pairs("SELECT name, current_setting(name, true) FROM pg_settings")

    def units(self, admin: AdminConnection) -> Mapping[str, str]:
        """See `Product`; from pg_settings."""
        return admin.pairs("SELECT name, unit FROM pg_settings WHERE unit IS NOT NULL")

    def origins(self, admin: AdminConnection) -> Mapping[str, str]:
        """See `Product`; also names the settings that wait for a restart."""
        return admin.pairs(
            "SELECT name, source || CASE WHEN pending_restart THEN ', pending restart' ELSE '' END "
            "FROM pg_settings WHERE source <> 'default' OR pending_restart"
        )

    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002
        """The system identifier; a restored copy has the one of its snapshot."""
        sql = "SELECT system_identifier::text FROM pg_control_system()"
        return {"system_identifier": answers.value(admin.query, sql, answers.text)}

    def build(self, admin: AdminConnection, variables: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002
        """See `Product`; from version() and the view pg_config."""
        version = answers.value(admin.query, "SELECT version()", answers.text)
        compiler = re.search(r"compiled by (.*?), \d+-bit", version)
        build = {"compiler": compiler[1] if compiler else version}
        # A superuser may read the view.
        if answers.value(
            admin.query, "SELECT has_function_privilege('pg_config()', 'execute')::int", answers.integer
        ):
            build |= admin.pairs("SELECT name, setting FROM pg_config WHERE name IN ('CFLAGS', 'CONFIGURE')")
        return build

    def data_bytes(self, admin: AdminConnection, database: str) -> int | None:
        """The size of the database's files."""
        return answers.value(admin.query, f"SELECT pg_database_size('{database}')", answers.integer)

    def plan(self, admin: AdminConnection, sql: str) -> Plan:
        """See `Product`."""
        root = answers.value(admin.query, f"EXPLAIN (FORMAT JSON) {sql}", plan_root)
        accesses, conversions = [], []
        for node in iterate_nodes(root):
            table = node.get("Relation Name")
            if table is None or node["Node Type"] == "ModifyTable":
                continue
            is_full_scan = node["Node Type"] == "Seq Scan"
            rows = _table_rows(admin, str(table)) if is_full_scan else int(node.get("Plan Rows", 0))
            # A Bitmap Heap Scan has the index in a node below it.
            below = (
                iterate_node["Index Name"]
                for iterate_node in iterate_nodes(node)
                if "Index Name" in iterate_node
            )
            method = str(node["Node Type"])
            accesses.append(
                Access(str(table), method, next(below, None), rows, is_full_scan, method == "Index Only Scan")
            )
            if is_full_scan:
                conversions += list(_casts(str(table), str(node.get("Filter", ""))))
        return Plan(tuple(accesses), tuple(dict.fromkeys(conversions)))


def plan_root(answer: Any) -> Mapping[str, Any]:
    """The root of a plan in JSON. Raises ValueError."""
    try:
        document = json.loads(answer) if isinstance(answer, str | bytes) else answer
        root = document[0]["Plan"]
        nodes = [node["Node Type"] for node in iterate_nodes(root)]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("no plan") from error
    if not nodes:
        raise ValueError("no plan")
    return dict(root)


def iterate_nodes(root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields a node of PostgreSQL's plan and all nodes below it."""
    yield root
    for child in root.get("Plans", ()):
        yield from iterate_nodes(child)


def _table_rows(admin: AdminConnection, table: str) -> int:
    """The table's row count from statistics, since a plan shows only rows after the filter."""
    name = POSTGRESQL.literal(table)
    sql = f"SELECT reltuples::bigint FROM pg_class WHERE relname = {name} AND relkind = 'r'"
    return max((count for (count,) in answers.rows(admin.query, sql, answers.integer)), default=0)


def _casts(table: str, condition: str) -> Iterator[str]:
    """Describes the columns that a filter converts before it compares them, so that no index applies."""
    tree = parse_statement(f"SELECT 1 WHERE {condition}", POSTGRESQL) if condition else None
    if tree is None:
        return
    exp = sqlglot().exp
    for cast in tree.find_all(exp.Cast):
        comparison = cast.parent if isinstance(cast.parent, exp.Predicate | exp.Binary) else None
        inner = cast.this.unnest()
        # A varchar column is always shown as `(column)::text`; an index still applies.
        is_text = cast.to.this == exp.DataType.Type.TEXT
        if isinstance(inner, exp.Column) and comparison is not None and not is_text:
            to = cast.to.sql(dialect=POSTGRESQL.sqlglot).lower()
            yield compose(
                "{column} is converted to {type}: {condition}",
                column=f"{table}.{inner.name}",
                type=to,
                condition=condition,
            )


def _versions(root: Path) -> list[str]:
    """Debian's folders for each major version, the newest first."""
    folders = [path for path in root.glob("usr/lib/postgresql/*/bin") if path.parent.name.isdecimal()]
    folders.sort(key=lambda path: -int(path.parent.name))
    return [str(path.relative_to(root)) for path in folders]


def quote_string(value: str) -> str:
    """A value in a configuration file."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _system_account() -> str:
    """The system account of this process, which `peer` authentication requires."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError as error:
        raise ServerProblem(
            f"this system has no name for user {os.geteuid()}, and PostgreSQL's peer authentication needs it",
            "run dbdyno under an account of the system",
        ) from error


def _hba(place: Place) -> Path:
    return place.directory / "hba.conf"


def _ident(place: Place) -> Path:
    return place.directory / "ident.conf"
