"""Private PostgreSQL servers: their programs, configuration, accounts and what they say about themselves.

Settings: chapter "Server Configuration" of the PostgreSQL manual.
"""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dbdyno.experiment.model import Connect
from dbdyno.servers import postgresql_errors, programs
from dbdyno.servers.account import ServerUser
from dbdyno.servers.admin import Admin
from dbdyno.servers.configuration import Value, normal
from dbdyno.servers.postgresql_admin import PostgreSQLAdmin, connector
from dbdyno.servers.product import Binaries, Failure, Options, Place, Product
from dbdyno.servers.server import Address, ServerProblem

PACKAGE = "postgresql"

ADMIN_USER = "dbdyno_admin"
# The database that initdb makes for administration.
MAINTENANCE = "postgres"

_PRIVATE = "dbdyno gives every private server its own"

# Views of counters with one row, those of one row per database, and the sums of those with a row per table.
_SINGLE_ROWS = ("pg_stat_bgwriter", "pg_stat_checkpointer", "pg_stat_wal")
_TABLE_SUMS = (
    "seq_scan", "seq_tup_read", "idx_scan", "idx_tup_fetch", "n_tup_ins", "n_tup_upd", "n_tup_del",
    "n_tup_hot_upd", "n_live_tup", "n_dead_tup", "vacuum_count", "autovacuum_count",
)  # fmt: skip


class PostgreSQL(Product):
    """PostgreSQL 13 and later."""

    name = "postgresql"
    title = "PostgreSQL"
    protocol = "postgresql"
    programs = (("postgres",), ("initdb",))
    # Fast and immediate shutdown; SIGTERM would wait for the clients to leave.
    stop_signal = signal.SIGINT
    kill_signal = signal.SIGQUIT

    reserved: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("data_directory", "config_file", "hba_file", "ident_file", "external_pid_file"), _PRIVATE
        ),
        **dict.fromkeys(("unix_socket_directories", "unix_socket_permissions"), _PRIVATE),
        "listen_addresses": "a private server listens on loopback only",
        "logging_collector": "dbdyno reads the server's words where it writes them by itself",
        "log_destination": "dbdyno reads the server's words where it writes them by itself",
    }

    # Options of initdb; a running server only shows them.
    init_options = frozenset(
        {"data_checksums", "lc_collate", "lc_ctype", "server_encoding", "wal_segment_size"}
    )

    # Loading need not be durable: a snapshot that was interrupted is thrown away. Commits stay synchronous:
    # VACUUM marks no page as visible to all whose commit is not in the log file yet.
    neutral: ClassVar[Mapping[str, str | int]] = {
        "shared_buffers": "512MB",
        "fsync": "off",
        "maintenance_work_mem": "256MB",
        "max_wal_size": "4GB",
        "autovacuum": "off",
    }

    def binaries(self, basedir: Path | None) -> Binaries:
        """`postgres` and `initdb`: on PATH, where Debian puts each version, or in `basedir`."""
        folders = (*programs.FOLDERS, *_versions(basedir or Path("/")))
        server = programs.find(self.programs[0], basedir, folders)
        install = programs.find(self.programs[1], basedir, folders)
        if basedir is None and (server is None or install is None):
            found = (
                programs.find(self.programs[0], Path("/"), folders),
                programs.find(self.programs[1], Path("/"), folders),
            )
            server, install = found
        if server is None or install is None:
            missing = "postgres" if server is None else "initdb"
            if basedir is not None:
                raise ServerProblem(
                    f"server.basedir is {str(basedir)!r}, and there is no {missing} in it or in its "
                    f"{', '.join(programs.FOLDERS)}",
                    "name the folder of an unpacked PostgreSQL",
                )
            raise ServerProblem(
                f"the PostgreSQL server's program {missing} is not installed (neither in PATH nor in "
                "/usr/lib/postgresql)",
                f"install the Debian package {PACKAGE}, or name a folder with PostgreSQL as server.basedir",
            )
        # Both look for their own files beside where they really are.
        return Binaries(server.resolve(), install.resolve(), basedir, programs.loader(basedir))

    def version(self, binaries: Binaries) -> str:
        """Like "postgres (PostgreSQL) 15.6 (Debian 15.6-0+deb12u1)"."""
        try:
            answer = subprocess.run(
                [*binaries.command(), "--version"], capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServerProblem(
                f"{binaries.server} cannot be run: {error}", "check server.basedir"
            ) from error
        text = " ".join(answer.stdout.split())
        if answer.returncode != 0 or not self.is_named(text):
            raise ServerProblem(
                f"{binaries.server} is no PostgreSQL server: it says "
                f"{(text or answer.stderr.strip())[:200]!r}",
                "name a folder that holds PostgreSQL as server.basedir",
            )
        return text

    def is_named(self, version: str) -> bool:
        """By the name in it."""
        return "PostgreSQL" in version

    def socket_name(self, port: int) -> str:
        """Its clients know a folder and a port, and make the name themselves."""
        return f".s.PGSQL.{port}"

    def rendered(self, name: str, value: Value) -> str:
        """Booleans as on and off; a unit is PostgreSQL's own (kB, MB, GB, ms, s, min)."""
        text = ("on" if value else "off") if isinstance(value, bool) else str(value)
        if any(character in text for character in "\n\r\0"):
            raise ServerProblem(
                f"variables.{name} is {value!r}; a value in postgresql.conf is one line",
                "write it without line breaks",
            )
        return text

    def file_options(self, text: str) -> dict[str, str]:
        """The settings of a postgresql.conf; the last of a name wins."""
        options: dict[str, str] = {}
        for raw in text.splitlines():
            match = re.match(r"\s*([A-Za-z_][\w.]*)\s*(?:=|\s)\s*('(?:[^']|'')*'|[^#\s]*)", raw)
            if match and match[1].lower() not in ("include", "include_dir", "include_if_exists"):
                value = match[2]
                options[normal(match[1])] = value[1:-1].replace("''", "'") if value[:1] == "'" else value
        return options

    def harness(self, open_files: int) -> Mapping[str, str]:
        """Enough connections for most points; each costs shared memory, used or not."""
        return {
            "max_connections": str(min(1000, open_files // 3)),
            # A server that has crashed is not to come back unseen.
            "restart_after_crash": "off",
        }

    def files(self, place: Place, options: Options, load: Address, admin_password: str) -> Mapping[Path, str]:  # noqa: ARG002
        """postgresql.conf, pg_hba.conf and pg_ident.conf. Administration comes through the unix socket and is
        known by the system's account; the load by its password; nobody else is let in.
        """
        groups = (
            ("Limits and switches that only serve the harness, alike in all variants.", options.harness),
            ("What the experiment declares.", options.declared),
            ("Where this private server lives.", self._placement(place)),
        )
        parts = [_group(title, settings) for title, settings in groups]
        if options.config:
            text = options.config.rstrip() + "\n"
            parts.insert(1, f"# The file the experiment names as `config`, as it is.\n{text}")
        where = "all" if place.clients == "%" else f"{place.clients}/32"
        lines = [
            f"local all {ADMIN_USER} peer map=dbdyno",
            f"local {load.database} {load.user} scram-sha-256",
            f"host {load.database} {load.user} {where} scram-sha-256",
        ]
        return {
            place.option_file: "\n".join(parts),
            _hba(place): "".join(f"{line}\n" for line in lines),
            _ident(place): f"dbdyno {_quoted_word(_system_account())} {ADMIN_USER}\n",
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
            "listen_addresses": place.listens,
            "port": str(place.port),
            "log_destination": "stderr",
            "logging_collector": "off",
        }

    def initialise(self, binaries: Binaries, place: Place, options: Mapping[str, str]) -> Sequence[str]:
        """`initdb`, in UTF-8 and sorted by bytes unless the experiment says otherwise."""
        command = [
            *binaries.loader,
            str(binaries.install),
            f"--pgdata={place.data}",
            f"--username={ADMIN_USER}",
            "--auth=reject",
            "--no-instructions",
            f"--encoding={options.get('server_encoding', 'UTF8')}",
            f"--lc-collate={options.get('lc_collate', 'C')}",
            f"--lc-ctype={options.get('lc_ctype', 'C')}",
        ]
        if options.get("data_checksums", "off").lower() in ("on", "true", "yes", "1"):
            command.append("--data-checksums")
        if "wal_segment_size" in options:
            command.append(f"--wal-segsize={options['wal_segment_size'].upper().removesuffix('MB')}")
        return command

    def command(self, binaries: Binaries, place: Place, arguments: Sequence[str]) -> Sequence[str]:
        """The generated file is the only one read, beside what ALTER SYSTEM leaves in the data directory."""
        return [
            *binaries.command(),
            "-D",
            str(place.data),
            f"--config-file={place.option_file}",
            *arguments,
        ]

    def listed(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Options of initdb cannot stand in postgresql.conf."""
        return {name: value for name, value in options.items() if name not in self.init_options}

    def admin(self, place: Place, password: str) -> Admin:  # noqa: ARG002 — the system's account is known.
        """Over the unix socket; superuser_reserved_connections keeps a place free."""
        options = {"host": str(place.socket.parent), "port": place.port, "user": ADMIN_USER}
        return PostgreSQLAdmin(MAINTENANCE, connector(Connect(), **options))

    def ready(self, admin: Admin, load: Address) -> None:
        """The load's role with this start's password, and its database; then ask that database."""
        assert isinstance(admin, PostgreSQLAdmin), "made by `admin`"
        # Whatever a variant has the server log, it is no password.
        for setting in ("log_statement = 'none'", "log_min_duration_statement = -1", "log_duration = off"):
            admin.query(f"SET {setting}")
        admin.query("SET log_min_error_statement = 'panic'")
        known = admin.query(f"SELECT 1 FROM pg_roles WHERE rolname = '{load.user}'")
        verb = "ALTER" if known else "CREATE"
        admin.query("SET password_encryption = 'scram-sha-256'")
        admin.query(f"{verb} ROLE {load.user} LOGIN NOSUPERUSER PASSWORD '{load.password}'")
        if not admin.query(f"SELECT 1 FROM pg_database WHERE datname = '{load.database}'"):
            admin.query(f"CREATE DATABASE {load.database} OWNER {load.user}")
        admin.use(load.database)

    def settle(self, admin: Admin, database: str) -> None:  # noqa: ARG002 — the connection is to it.
        """Freeze every row and write everything out, so that no trial does it."""
        admin.query("VACUUM (FREEZE, ANALYZE)")
        admin.query("CHECKPOINT")

    def status(self, admin: Admin) -> Mapping[str, str]:
        """Counters of the views pg_stat_*, by view and column: those of the server, of the database that is
        loaded, and the sums over its tables.
        """
        return statistics(admin)

    def variables(self, admin: Admin) -> Mapping[str, str]:
        """Every setting as SHOW gives it, with its unit."""
        return settings(admin)

    def units(self, admin: Admin) -> Mapping[str, str]:
        """The unit of a number without one."""
        return admin.pairs("SELECT name, unit FROM pg_settings WHERE unit IS NOT NULL")

    def origins(self, admin: Admin) -> Mapping[str, str]:
        """Where each setting that is no default comes from, and what waits for a restart."""
        return admin.pairs(
            "SELECT name, source || CASE WHEN pending_restart THEN ', pending restart' ELSE '' END "
            "FROM pg_settings WHERE source <> 'default' OR pending_restart"
        )

    def release(self, variables: Mapping[str, str]) -> str:
        """The setting `server_version`."""
        return variables.get("server_version", "")

    def identity(self, admin: Admin, variables: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002
        """The system identifier; a restored copy has its snapshot's."""
        ((identifier,),) = admin.query("SELECT system_identifier::text FROM pg_control_system()")
        return {"system_identifier": str(identifier)}

    def data_bytes(self, admin: Admin, database: str) -> int | None:
        """By the files of the database."""
        ((size,),) = admin.query(f"SELECT pg_database_size('{database}')")
        return int(size)

    def is_kept(self, file: Path) -> bool:
        """Everything but what the next start creates again."""
        return file.name not in {"postmaster.pid", "postmaster.opts"} and file.parts[0] != "pg_stat_tmp"

    def complaint(self, log: str) -> str:  # noqa: ARG002 — it starts with all it was asked for, or not at all.
        """None."""
        return ""

    def explain(self, failure: Failure, user: ServerUser) -> ServerProblem:
        """The first known pattern in the log, else its FATAL lines."""
        return postgresql_errors.explain(failure, user)


def statistics(admin: Admin) -> dict[str, str]:
    """See `PostgreSQL.status`; numbers and times only."""
    present = {
        str(row[0]) for row in admin.query("SELECT viewname FROM pg_views WHERE schemaname = 'pg_catalog'")
    }
    parts = [
        f"SELECT '{view}.' || j.key, j.value FROM {view} v, jsonb_each_text(to_jsonb(v)) j"
        for view in _SINGLE_ROWS
        if view in present
    ]
    parts.append(
        "SELECT 'pg_stat_database.' || j.key, j.value "
        "FROM pg_stat_database v, jsonb_each_text(to_jsonb(v)) j "
        "WHERE v.datname = current_database()"
    )
    parts += [
        f"SELECT 'pg_stat_user_tables.{column}', COALESCE(SUM({column}), 0)::text FROM pg_stat_user_tables"
        for column in _TABLE_SUMS
    ]
    parts.append(
        "SELECT 'pg_stat_activity.client_backends', COUNT(*)::text FROM pg_stat_activity "
        "WHERE backend_type = 'client backend'"
    )
    if "pg_stat_io" in present:
        parts += [
            f"SELECT 'pg_stat_io.{column}', COALESCE(SUM({column}), 0)::text FROM pg_stat_io"
            for column in ("reads", "writes", "extends", "fsyncs", "hits", "evictions")
        ]
    return dict(admin.pairs(" UNION ALL ".join(parts)))


def settings(admin: Admin) -> dict[str, str]:
    """Every setting as SHOW gives it."""
    return dict(admin.pairs("SELECT name, current_setting(name, true) FROM pg_settings"))


def _versions(root: Path) -> Iterable[str]:
    """Where Debian puts each major version, the newest first."""
    found = [path for path in root.glob("usr/lib/postgresql/*/bin") if path.parent.name.isdecimal()]
    found.sort(key=lambda path: -int(path.parent.name))
    return [str(path.relative_to(root)) for path in found]


def _group(title: str, settings: Mapping[str, str]) -> str:
    lines = [f"# {title}", *(f"{name} = {_literal(value)}" for name, value in settings.items())]
    return "\n".join([*lines, ""])


def _literal(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _quoted_word(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _system_account() -> str:
    """Who we are to the kernel, which is what `peer` asks."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError as error:
        raise ServerProblem(
            f"this system has no name for user {os.geteuid()}, and PostgreSQL's administration needs one",
            "run dbdyno under an account of the system",
        ) from error


def _hba(place: Place) -> Path:
    return place.directory / "hba.conf"


def _ident(place: Place) -> Path:
    return place.directory / "ident.conf"
