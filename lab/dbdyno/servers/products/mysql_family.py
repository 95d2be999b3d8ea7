"""The option file, the administrative SQL and the errors in the log that MariaDB and MySQL have in common.

Syntax of the file: "Option Files" in the MariaDB knowledge base and in the MySQL reference manual.
"""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.experiment.model import ConnectionSettings
from dbdyno.experiment.quantities import is_loose, variable_name
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.admin.mysql import MySQLAdmin, connector
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
from dbdyno.text import compose
from dbdyno.variables.versions import without_log_suffix

# MySQL: "Cannot use ref access on index … due to type or collation conversion on field …"; MariaDB, with
# note_verbosity set: "Cannot use key … part[0] for lookup: … of type …".
_UNUSABLE = "Cannot use "
# Number of columns of a tabular EXPLAIN -> positions of its columns `table`, `type`, `key` and `rows`.
_COLUMN_POSITIONS = {12: (2, 4, 6, 9), 10: (2, 3, 5, 8)}

# Groups of an option file that a server reads; a version may follow the name.
_SERVER_GROUPS = re.compile(
    r"^(server|mysqld|mariadb|mariadbd|mysqld-[0-9.]+|mariadb-[0-9.]+|mariadbd-[0-9.]+)$"
)

# Other tools print "512MiB"; servers accept only the letter.
_BINARY_SIZE = re.compile(r"^([0-9]+)\s*([KMGTPE])iB$")

# Errors that are only consequences of other errors.
_CONSEQUENCES = re.compile(
    r"\[ERROR\] (Aborting|Plugin 'InnoDB' registration|Unknown/unsupported storage engine|"
    r"Parsing options for plugin|InnoDB: Plugin initialization aborted)|"
    # MySQL: Aborting, built-in plug-ins, data dictionary, storage engine, end of InnoDB's start.
    r"\[ERROR\] \[MY-(?:010119|010168|010746|010020|010334|012930)\]"
)
_UNKNOWN = re.compile(r"unknown (?:variable|option) '(?P<name>[^']*)'")
# Time stamps of MariaDB and of MySQL, with the thread number.
_STAMP = re.compile(r"^[0-9-]+(?:\s+[0-9:]+|T[0-9:.]+Z?)\s+[0-9]+\s+")


def _error_lines(log: str) -> list[str]:
    """The `[ERROR]` lines in order, without time stamps and without consequences of other errors."""
    lines = [line for line in log.splitlines() if "[ERROR]" in line or line.startswith(("ERROR", "FATAL"))]
    causes = [line for line in lines if not _CONSEQUENCES.search(line)] or lines
    return [_STAMP.sub("", line) for line in causes]


def _plugin_errors(log: str) -> str:
    """The error lines about plug-ins that could not be loaded; empty if there are none."""
    phrases = ("shared library", "load plugin", "initialize plugin", "init function returned error")
    return "; ".join(line for line in _error_lines(log) if any(phrase in line for phrase in phrases))


def _unknown_option(_: re.Match[str], failure: Failure) -> ServerProblem:
    """Reports every declared name that this server does not know, not just the first."""
    options = _known_options(failure)
    # MariaDB names all of them, MySQL the first; names of `loose-` options have warnings.
    named = (entry for line in _error_lines(failure.log) for entry in _UNKNOWN.finditer(line))
    names = [variable_name(entry["name"].partition("=")[0]) for entry in named]
    if failure.title != "MariaDB" and options:
        names += (name for name in failure.declared if not _is_known(name, options))
    return unknown_names(list(dict.fromkeys(names)), options, failure)


def _is_known(name: str, known_names: frozenset[str]) -> bool:
    """Whether the server knows an option, or the one that it switches (`skip-`) or limits (`maximum-`)."""
    switched = re.sub(r"^(?:skip|disable|enable|maximum)_", "", name)
    return not known_names.isdisjoint({name, switched, f"skip_{switched}"})


def _known_options(failure: Failure) -> frozenset[str]:
    """The normalized names of all options of the server's program; empty if the program cannot list them."""
    # The program's output ends with a table "name value" below a line of dashes.
    _, _, table = list_options(failure, "--no-defaults", "--verbose", "--help").partition("\n---")
    return frozenset(
        variable_name(line.split()[0]) for line in table.splitlines()[1:] if re.match(r"[a-z]", line)
    )


def _invalid_value(match: re.Match[str], failure: Failure) -> ServerProblem:
    return refused_value(failure, variable_name(match["name"]), match["value"])


def _out_of_memory(match: re.Match[str], failure: Failure) -> ServerProblem:
    size = failure.declared.get("innodb_buffer_pool_size", "its default size")
    return ServerProblem(
        f"not enough memory for a buffer pool of {size} (innodb_buffer_pool_size): {match[0].strip()}",
        "declare a smaller buffer pool",
    )


_PATTERNS: Patterns = (
    (re.compile(rf"^(?=.*(?:ERROR|FATAL)).*{_UNKNOWN.pattern}", re.MULTILINE), _unknown_option),
    (
        re.compile(r"ambiguous option '(?P<name>[^'=]*)[^']*' \((?P<candidates>[^)]*)\)"),
        explanation(
            "{name!r} begins several options of this {title} server: {candidates}", "write the name in full"
        ),
    ),
    (re.compile(r"Error while setting value '(?P<value>[^']*)' to '(?P<name>[^']*)'"), _invalid_value),
    (re.compile(r"Address already in use"), port_in_use),
    (
        re.compile(r"No space left on device|Errcode: 28|OS error: 28|[Dd]isk is full|Error number 28"),
        disk_full,
    ),
    (
        re.compile(
            r"uses page size (?P<made>\d+), but the innodb_page_size start-up parameter is (?P<asked>\d+)"
        ),
        explanation(
            "the data have pages of {made} bytes, but the variant declares {asked}",
            "declare the same innodb_page_size everywhere",
        ),
    ),
    (re.compile(r"Cannot (?:map|allocate memory for) [^\n]*buffer.pool[^\n]*"), _out_of_memory),
    (re.compile(r"Cannot allocate memory for the buffer pool|MY-012681[^\n]*"), _out_of_memory),
    (
        re.compile(r"my_print_defaults"),
        explanation(
            "mariadb-install-db needs the program my_print_defaults, which is not installed",
            "install the Debian package mariadb-client-core",
        ),
    ),
    (re.compile(r"Bind on TCP/IP port"), port_in_use),
    (re.compile(r"Permission denied|Errcode: 13"), permission_denied),
)


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
    cache_variable = "innodb_buffer_pool_size"
    cache_title = compose("the buffer pool")
    # The beginning of the statement that explains another one, in the form of a table.
    explain: ClassVar[str] = "EXPLAIN"
    patterns = _PATTERNS
    error_lines = staticmethod(_error_lines)

    def format_value(self, name: str, value: Value) -> str:
        """Booleans as ON and OFF, sizes with one letter."""
        if isinstance(value, bool):
            return "ON" if value else "OFF"
        if isinstance(value, int | float):
            return str(value)
        if any(character in value for character in "\n\r\0"):
            raise ServerProblem(
                f"variables.{name} is {value!r}; a value in an option file is one line",
                "write it without line breaks",
            )
        size = _BINARY_SIZE.match(value)
        return f"{size[1]}{size[2]}" if size else value

    def file_options(self, text: str) -> dict[str, str]:
        """See `Product`; those in the server's groups. An option without a value gives ""."""
        return {variable_name(name): value for name, value in _option_lines(text)}

    def loose_options(self, text: str) -> Iterable[str]:
        """See `Product`; by their beginning."""
        return (name for name, _ in _option_lines(text) if is_loose(name))

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
        statements = self.start_statements(place, load, admin_password)
        return {
            place.option_file: options.text(self.placement(place), _quote_value, "[mysqld]"),
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

    def plan(self, admin: AdminConnection, sql: str) -> Plan:
        """See `Product`; of the table that EXPLAIN returns, and its warnings."""
        accesses = []
        for row in admin.query(f"{self.explain} {sql}"):
            positions = _COLUMN_POSITIONS.get(len(row))
            if positions is None:
                continue
            table, method, key, rows = (row[position] for position in positions)
            # Skip derived tables (<derived2>) and rows of the plan without a table.
            if table is not None and method is not None and not str(table).startswith("<"):
                is_full_scan = str(method).upper() in ("ALL", "INDEX")
                index = key and str(key)
                # InnoDB's primary key has all columns, also where EXPLAIN does not say so, as in MariaDB 11.
                # "Using index condition" is another thing.
                is_covering = index == "PRIMARY" or "Using index" in re.split(r";\s*", str(row[-1]))
                access = Access(str(table), str(method), index, int(rows or 0), is_full_scan, is_covering)
                accesses.append(access)
        warnings = answers.rows(admin.query, "SHOW WARNINGS", answers.text, answers.text, answers.text)
        unusable = [message for *_, message in warnings if message.startswith(_UNUSABLE)]
        return Plan(tuple(accesses), tuple(dict.fromkeys(unusable)))

    def startup_error(self, log: str) -> str:
        """Plug-ins that the server could not load: MariaDB and MySQL start without them."""
        return _plugin_errors(log)


def command_options(options: Mapping[str, str]) -> list[str]:
    """Options as command-line arguments."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]


def _quote_value(value: str) -> str:
    """A value in double quotes, so that it can contain spaces, `#` and `;`."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _option_lines(text: str) -> Iterator[tuple[str, str]]:
    """The names, as written, and the values in the server's groups of an option file."""
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] in "#;!":
            continue
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip().lower()
        elif _SERVER_GROUPS.match(group):
            name, _, value = line.partition("=")
            yield _without_comment(name.strip()), _without_comment(value.strip())


def _without_comment(value: str) -> str:
    """A value of an option file without quotes and trailing comment."""
    for mark in "\"'":
        if value.startswith(mark) and mark in value[1:]:
            return value[1 : value.index(mark, 1)]
    return re.split(r"\s#", value, maxsplit=1)[0].strip()
