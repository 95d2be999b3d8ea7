"""Private MySQL servers: their programs, options and accounts.

Options and defaults: "Server System Variables" and "InnoDB Startup Options" in the MySQL reference manual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.experiment.model import ConnectionSettings
from dbdyno.servers.admin.connection import AdminConnection, ConnectFailure
from dbdyno.servers.admin.mysql import MySQLAdmin, connector
from dbdyno.servers.products.mysql_family import MySQLFamily, command_options
from dbdyno.servers.products.product import Binaries, Place
from dbdyno.servers.server import Address
from dbdyno.servers.sources import programs

# Folders of an unpacked root with libraries of MySQL itself.
PRIVATE_LIBRARIES = ("usr/lib/mysql/private",)


class MySQL(MySQLFamily):
    """MySQL 8.0 and later."""

    name = "mysql"
    title = "MySQL"
    version_mark = " Ver "
    time_limit = "SET SESSION max_execution_time = 60000"
    explain = "EXPLAIN FORMAT=TRADITIONAL"
    transient_files = frozenset({"ib_buffer_pool", "ibtmp1", "mysql.sock.lock", "#innodb_temp"})
    programs = (("mysqld",), ("mysqld",))

    reserved_options: ClassVar[Mapping[str, str]] = {
        **MySQLFamily.reserved_options,
        "admin_address": "dbdyno administers a private server through its unix socket",
        "mysqlx": "the load does not use the X protocol",
        "secure_file_priv": "dbdyno chooses the folders of a private server",
        "initialize": "dbdyno creates the data directory itself",
        "initialize_insecure": "dbdyno creates the data directory itself",
    }

    init_options = frozenset(
        {
            "character_set_server",
            "collation_server",
            "default_table_encryption",
            "innodb_checksum_algorithm",
            "innodb_data_file_path",
            "innodb_default_row_format",
            "innodb_file_per_table",
            "innodb_page_size",
            "lower_case_table_names",
        }
    )

    # Loading need not be durable, because an interrupted snapshot is discarded. A binary log of the loading
    # would be copied together with the data for every trial.
    loading_options: ClassVar[Mapping[str, str | int]] = {
        "innodb_buffer_pool_size": "512M",
        "innodb_flush_log_at_trx_commit": 0,
        "disable_log_bin": "ON",
    }

    def is_version_of(self, version: str) -> bool:
        """MySQL prints no product name, but MariaDB does."""
        return super().is_version_of(version) and "MariaDB" not in version

    def binaries(self, basedir: Path | None) -> Binaries:
        """Finds `mysqld` in a package, a vendor's tarball, or an unpacked root of another system."""
        fix = (
            "install MySQL, or set server.basedir to the folder of an unpacked MySQL (scripts/mysql-root DIR "
            "creates one)"
        )
        server, _ = programs.find_both(self.title, self.programs, basedir, fix)
        if basedir is None:
            return Binaries(server, server, None)
        return Binaries(
            server,
            server,
            basedir,
            programs.loader_command(basedir, PRIVATE_LIBRARIES),
            tuple(_path_options(server)),
        )

    def placement(self, place: Place) -> dict[str, str]:
        """Disable the X protocol's listener and the folder check of `secure_file_priv`."""
        return {
            **super().placement(place),
            # A packaged server refuses to start if its compiled-in folder does not exist.
            "secure_file_priv": "",
            # MySQL listens on another port for the X protocol by default.
            "loose_mysqlx": "OFF",
        }

    def init_command(self, binaries: Binaries, place: Place, options: Mapping[str, str]) -> Sequence[str]:
        """`mysqld --initialize-insecure`. It creates root without a password; the first start removes this
        account.
        """
        return [
            *binaries.command(),
            "--no-defaults",
            *binaries.options,
            f"--datadir={place.data}",
            f"--tmpdir={place.temporary}",
            "--secure-file-priv=",
            "--initialize-insecure",
            *command_options(options),
        ]

    def first_statements(self, load: Address) -> Sequence[str]:  # noqa: ARG002 — root is the only account.
        """Keep the accounts out of the binary log, and remove root, which has no password."""
        return ["SET SESSION sql_log_bin = 0", "DROP USER IF EXISTS 'root'@'localhost'"]

    def account_statements(self, account: str, password: str) -> Sequence[str]:
        """See `MySQLFamily`."""
        return [
            f"CREATE USER IF NOT EXISTS {account}",
            f"ALTER USER {account} IDENTIFIED WITH caching_sha2_password BY '{password}'",
        ]

    def admin_address(self, place: Place) -> Mapping[str, Any]:
        """Use the unix socket, which counts as secure. MySQL reserves a connection for an administrator, and
        TP_CONNECTION_ADMIN gives it a thread outside the thread pool.
        """
        return {"unix_socket": str(place.socket)}

    def create_accounts(self, admin: AdminConnection, load: Address) -> None:  # noqa: ARG002 — see below.
        """Log in once with the load's account, if its TLS verifies nothing: the server then has the password
        in its cache, and does not ask for it over unverified TLS. `init_file` has created the account.
        """
        if load.connect.tls not in ("preferred", "required"):
            return
        options = {"host": load.host, "port": load.port, "user": load.user, "password": load.password}
        connection = MySQLAdmin(connector(ConnectionSettings(), **options))
        # A server that requires TLS refuses this; the load then reports what to change.
        with suppress(ConnectFailure), closing(connection):
            connection.open()

    def origins(self, admin: AdminConnection) -> Mapping[str, str]:
        """From performance_schema, which has this table even if it is disabled."""
        return admin.pairs(
            "SELECT VARIABLE_NAME, LOWER(VARIABLE_SOURCE) FROM performance_schema.variables_info "
            "WHERE VARIABLE_SOURCE <> 'COMPILED'"
        )


def _path_options(server: Path) -> Sequence[str]:
    """Options with the paths of a server that is not in its compiled-in folder."""
    base = server.parent.parent
    plugins = [base / name for name in ("lib/mysql/plugin", "lib/plugin") if (base / name).is_dir()]
    shares = [base / name for name in ("share/mysql", "share") if (base / name / "charsets").is_dir()]
    return [
        f"--basedir={base}",
        *(f"--plugin-dir={plugin}" for plugin in plugins[:1]),
        *(f"--lc-messages-dir={share}" for share in shares[:1]),
        *(f"--character-sets-dir={share / 'charsets'}" for share in shares[:1]),
    ]
