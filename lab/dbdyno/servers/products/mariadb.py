"""Private MariaDB servers: their programs, options and accounts.

Options and defaults: "Server System Variables" and "InnoDB System Variables" in the MariaDB knowledge base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.products.mysql_family import MySQLFamily, command_options
from dbdyno.servers.products.product import ADMIN_USER, PRIVATE, Binaries, Place, Plan
from dbdyno.servers.server import Address, ServerProblem
from dbdyno.servers.sources import programs

PACKAGE = "mariadb-server-core"
_ENABLE_NOTES = "SET SESSION note_verbosity = 'basic,explain,unusable_keys'"


class MariaDB(MySQLFamily):
    """MariaDB 10.6 and later."""

    name = "mariadb"
    title = "MariaDB"
    version_mark = "MariaDB"
    time_limit = "SET SESSION max_statement_time = 60"
    transient_files = frozenset({"ib_buffer_pool", "ibtmp1", "server.pid"})
    programs = (("mariadbd", "mysqld"), ("mariadb-install-db", "mysql_install_db"))

    reserved_options: ClassVar[Mapping[str, str]] = {**MySQLFamily.reserved_options, "extra_port": PRIVATE}

    init_options = frozenset(
        {
            "aria_block_size",
            "character_set_server",
            "collation_server",
            "innodb_checksum_algorithm",
            "innodb_compression_algorithm",
            "innodb_compression_level",
            "innodb_data_file_path",
            "innodb_default_row_format",
            "innodb_encrypt_tables",
            "innodb_file_per_table",
            "innodb_page_size",
            "lower_case_table_names",
        }
    )

    # Loading need not be durable, because an interrupted snapshot is discarded.
    loading_options: ClassVar[Mapping[str, str | int]] = {
        "innodb_buffer_pool_size": "512M",
        "innodb_flush_log_at_trx_commit": 0,
        # With MariaDB's default, 1, LOAD DATA holds a table's AUTO-INC lock until it ends, so parallel
        # streams into one table would wait for each other. The loaded rows contain their ids; the mode does
        # not change them.
        "innodb_autoinc_lock_mode": 2,
    }

    def binaries(self, basedir: Path | None) -> Binaries:
        """Finds `mariadbd` and `mariadb-install-db`, also under their old names."""
        fix = f"install the Debian package {PACKAGE}, or set server.basedir to a folder that contains MariaDB"
        server, install = programs.find_both(self.title, self.programs, basedir, fix)
        # MariaDB's default base directory is the parent of the program's folder.
        options = () if basedir is None else (f"--basedir={server.parent.parent}",)
        return Binaries(server, install, basedir, programs.loader_command(basedir), options)

    def dbdyno_options(self, open_files: int) -> Mapping[str, str]:
        """Those of `MySQLFamily`, and connections that the load cannot use."""
        return {**super().dbdyno_options(open_files), "extra_max_connections": "10"}

    def placement(self, place: Place) -> dict[str, str]:
        """Those of `MySQLFamily`, and a port that the load does not use."""
        return {**super().placement(place), "extra_port": str(place.admin_port)}

    def init_command(self, binaries: Binaries, place: Place, options: Mapping[str, str]) -> Sequence[str]:
        """`mariadb-install-db` with the options that determine the file format.

        It is a shell script, which splits an option at a blank, so the paths are relative: `./` to the
        directory in which it starts, `../` to the data directory, into which the server changes.
        """
        return [
            str(binaries.install),
            "--no-defaults",
            f"--datadir=./{place.data.relative_to(place.directory)}",
            f"--tmpdir=../{place.temporary.relative_to(place.directory)}",
            *binaries.options,
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            # The host name may not resolve. The accounts for it are removed at the first start.
            "--force",
            *command_options(options),
        ]

    def first_statements(self, load: Address) -> Sequence[str]:
        """Remove the accounts of a new data directory, which have no passwords."""
        needed = f"'mariadb.sys', '{ADMIN_USER}', '{load.user}'"
        return [f"DELETE FROM mysql.global_priv WHERE User NOT IN ({needed})", "FLUSH PRIVILEGES"]

    def account_statements(self, account: str, password: str) -> Sequence[str]:
        """See `MySQLFamily`."""
        return [f"CREATE OR REPLACE USER {account} IDENTIFIED BY '{password}'"]

    def admin_address(self, place: Place) -> Mapping[str, Any]:
        """`extra_port` has its own listener and threads; a full thread pool does not block it."""
        return {"host": "127.0.0.1", "port": place.admin_port}

    def plan(self, admin: AdminConnection, sql: str) -> Plan:
        """See `MySQLFamily`. MariaDB has note_verbosity since 10.6.16 and 10.11.6."""
        with suppress(ServerProblem):
            admin.query(_ENABLE_NOTES)
        return super().plan(admin, sql)

    def cpu_count(self, variables: Mapping[str, str], origins: Mapping[str, str]) -> int | None:
        """See `Product`. The pool of threads has one group for each CPU unless its size is set."""
        size = variables.get("thread_pool_size", "")
        is_unset = bool(origins) and origins.get("thread_pool_size", "auto") == "auto"
        return int(size) if is_unset and size.isdecimal() else None

    def origins(self, admin: AdminConnection) -> Mapping[str, str]:
        """From information_schema."""
        return admin.pairs(
            "SELECT LOWER(VARIABLE_NAME), LOWER(GLOBAL_VALUE_ORIGIN) FROM "
            "information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE_ORIGIN NOT IN ('COMPILE-TIME', '')"
        )
