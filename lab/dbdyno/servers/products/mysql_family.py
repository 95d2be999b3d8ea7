"""The options and administrative SQL that MariaDB and MySQL have in common."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.experiment.model import ConnectionSettings
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.admin.mysql import MySQLAdmin, connector
from dbdyno.servers.products import configuration, error_log
from dbdyno.servers.products.product import Binaries, ConfigOptions, Place, Product
from dbdyno.servers.server import Address
from dbdyno.variables.versions import without_log_suffix

PRIVATE = "dbdyno gives every private server its own"

ADMIN_USER = "dbdyno_admin"


class MySQLFamily(Product):
    """A server that reads an option file and speaks the MySQL protocol."""

    protocol: ClassVar[str] = "mysql"
    path_separators: ClassVar[Mapping[str, str]] = {":": "which separates the directories of tmpdir"}

    reserved_options: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("datadir", "tmpdir", "socket", "pid_file", "log_error", "init_file"), PRIVATE),
        **dict.fromkeys(
            ("innodb_data_home_dir", "innodb_log_group_home_dir", "innodb_undo_directory"), PRIVATE
        ),
        "bind_address": "a private server listens on loopback only",
        "skip_networking": "the load and the administration need the network interface of loopback",
        "user": "dbdyno chooses an account without privileges",
        "basedir": "declare server.basedir instead",
        "skip_grant_tables": "the load runs as an ordinary account",
    }

    version_arguments = ("--no-defaults", "--version")
    patterns = error_log.PATTERNS
    error_lines = staticmethod(error_log.error_lines)

    def loose_options(self, text: str) -> Iterable[str]:
        """See `Product`; by their beginning."""
        return configuration.loose_options(text)

    def server_version(self, variables: Mapping[str, str]) -> str:
        """See `Product`; without the suffix that says that a log is on."""
        return without_log_suffix(super().server_version(variables))

    def dbdyno_options(self, open_files: int) -> Mapping[str, str]:
        """Enough connections and prepared statements for any load, within the limit of open files."""
        connections = min(8192, open_files // 3)
        tables = min(4000, (open_files - connections - 200) // 3)
        return {
            "max_connections": str(connections),
            "max_prepared_stmt_count": "1048576",
            "back_log": "4096",
            "open_files_limit": str(min(open_files, 131_072)),
            "table_open_cache": str(tables),
            # A server that reloads a dumped buffer pool would start warmer than one that does not.
            "innodb_buffer_pool_dump_at_shutdown": "OFF",
            "innodb_buffer_pool_load_at_startup": "OFF",
            # Name resolution must not be part of a measurement. Accounts therefore contain addresses.
            "skip_name_resolve": "ON",
        }

    def files(
        self, place: Place, options: ConfigOptions, load: Address, admin_password: str
    ) -> Mapping[Path, str]:
        """The generated option file, and the statements of its `init_file`."""
        text = configuration.option_file(
            set_by_dbdyno=options.set_by_dbdyno,
            config=options.config,
            declared=options.declared,
            place=self.placement(place),
        )
        statements = self.start_statements(place, load, admin_password)
        return {
            place.option_file: text,
            place.init_file: "".join(f"{statement};\n" for statement in statements),
        }

    def placement(self, place: Place) -> dict[str, str]:
        """The options that keep the server private: its directories, socket and ports.

        `log_error` is also the file of the server's standard error.
        """
        return {
            "datadir": str(place.data),
            "tmpdir": str(place.temporary),
            "socket": str(place.socket),
            "pid_file": str(place.directory / "server.pid"),
            "log_error": str(place.log),
            "bind_address": place.listen_address,
            "port": str(place.port),
            "init_file": str(place.init_file),
        }

    def start_statements(self, place: Place, load: Address, admin_password: str) -> Sequence[str]:
        """Statements that create the load's schema and account and the administrator's account, and remove
        all others.

        The load's account has rights only on its own schema, so no privilege (such as TP_CONNECTION_ADMIN)
        lets it bypass a thread pool.
        """
        statements = [*self.first_statements(load), f"CREATE DATABASE IF NOT EXISTS `{load.database}`"]
        accounts = ((ADMIN_USER, admin_password, "*.*"), (load.user, load.password, f"`{load.database}`.*"))
        for (user, password, scope), host in itertools.product(accounts, ("localhost", place.client_address)):
            account = f"'{user}'@'{host}'"
            statements += [*self.account_statements(account, password), f"GRANT ALL ON {scope} TO {account}"]
        return statements

    @abstractmethod
    def first_statements(self, load: Address) -> Sequence[str]:
        """Statements that run before the first account is created."""

    @abstractmethod
    def account_statements(self, account: str, password: str) -> Sequence[str]:
        """Statements that create the account with this password, or change its password."""

    @abstractmethod
    def admin_address(self, place: Place) -> Mapping[str, Any]:
        """The address of the administrator's connection, as arguments of `pymysql.connect`."""

    def admin(self, place: Place, password: str) -> AdminConnection:
        """See `Product`. The connection is encrypted if the server requires that."""
        options = {**self.admin_address(place), "user": ADMIN_USER, "password": password}
        return MySQLAdmin(connector(ConnectionSettings(tls="preferred"), **options))

    def start_command(self, binaries: Binaries, place: Place, arguments: Sequence[str]) -> Sequence[str]:
        """See `Product`. The server reads only the generated file."""
        return [*binaries.command(), f"--defaults-file={place.option_file}", *binaries.options, *arguments]

    def create_accounts(self, admin: AdminConnection, load: Address) -> None:
        """Does nothing: the statements of `init_file` create schema and account."""

    def finish_background_work(self, admin: AdminConnection, database: str) -> None:
        """Update the statistics of every table."""
        sql = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}'"
        for (table,) in answers.rows(admin.query, sql, answers.text):
            admin.query(f"ANALYZE TABLE `{database}`.`{table}`")

    def prepare_snapshot(self, admin: AdminConnection) -> None:
        """Make a clean stop complete the purge and merge all buffered changes."""
        admin.query("SET GLOBAL innodb_fast_shutdown = 0")

    def status(self, admin: AdminConnection) -> Mapping[str, str]:
        """SHOW GLOBAL STATUS."""
        return admin.pairs("SHOW GLOBAL STATUS")

    def variables(self, admin: AdminConnection) -> Mapping[str, str]:
        """SHOW GLOBAL VARIABLES."""
        return admin.pairs("SHOW GLOBAL VARIABLES")

    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002
        """The server's uuid, if the product has one; a restored copy has the uuid of its snapshot."""
        return {name: variables[name] for name in ("server_uuid",) if name in variables}

    def build(self, admin: AdminConnection, variables: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002
        """See `Product`; from the variables whose names begin with version_."""
        return {
            name: variables[f"version_{name}"]
            for name in ("comment", "compile_machine", "compile_os", "malloc_library", "ssl_library")
            if variables.get(f"version_{name}")
        }

    def data_bytes(self, admin: AdminConnection, database: str) -> int | None:
        """The sum of the table statistics, which ANALYZE updated after loading."""
        sql = (
            "SELECT SUM(DATA_LENGTH + INDEX_LENGTH) FROM information_schema.TABLES "
            f"WHERE TABLE_SCHEMA = '{database}'"
        )
        return answers.value(admin.query, sql, answers.integer_or_none)

    def startup_error(self, log: str) -> str:
        """Plug-ins that the server could not load: MariaDB and MySQL start without them."""
        return error_log.plugin_errors(log)


def command_options(options: Mapping[str, str]) -> list[str]:
    """Options as command-line arguments."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
