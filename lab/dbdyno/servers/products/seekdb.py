"""Private seekdb servers, which speak the MySQL protocol: their program, parameters, accounts and plans.

A variant's `variables` are parameters (SHOW PARAMETERS), which the command line sets; `init_sql` sets the
system variables of MySQL.
"""

from __future__ import annotations

import importlib.util
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pymysql
from pymysql.constants import ER

from dbdyno.experiment.dialect import MYSQL
from dbdyno.experiment.model import ConnectionSettings
from dbdyno.experiment.quantities import variable_name
from dbdyno.experiment.sql_text import parse_statement, sqlglot
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import AdminConnection, answers_within
from dbdyno.servers.admin.mysql import MySQLAdmin, connector
from dbdyno.servers.products.product import (
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
)
from dbdyno.servers.server import Address, ServerProblem
from dbdyno.servers.sources import programs

# The Python package with the program.
PACKAGE = "pylibseekdb"

# The server listens on all interfaces, and no parameter changes that, so it gets a network of its own, and
# clients use its unix socket. In a user namespace every account may create one. The server makes unique ids
# from the address of an interface other than the loopback, so that network has a pair of interfaces, with an
# address that is for documentation (RFC 5737).
_UNSHARE = ("/usr/bin/unshare", "--user", "--map-root-user", "--net", "--")
_NETWORK = """
ip link set lo up && ip link add own type veth peer name peer && ip link set own up && ip link set peer up &&
ip address add 192.0.2.1/24 dev own || exit
"""
# Starts the program in place of the shell, with the parameters in a file, one in a line. The server has its
# socket and the files of its certificate under fixed names in its directory.
_START = (
    _NETWORK
    + """
ln -sfn "$1/run/sql.sock" "$2" || exit
directory=${3%/*}
if [ -e "$directory/certificate.pem" ]; then
  mkdir -p "$1/wallet" || exit
  for name in ca server-cert; do ln -sfn "$directory/certificate.pem" "$1/wallet/$name.pem"; done
  ln -sfn "$directory/key.pem" "$1/wallet/server-key.pem"
fi
parameters=$3 && shift 3
while IFS= read -r parameter; do set -- "$@" --parameter "$parameter"; done < "$parameters"
exec "$@"
"""
)
# It reports its use to its vendor otherwise.
_ENVIRONMENT = ("/usr/bin/env", "TELEMETRY_ENABLED=0")
# How often a compaction is begun and looked at, and the maximum seconds of one.
_COMPACTION_STEP_S = 0.5
_COMPACTION_S_MAX = 3600.0
_SCHEDULE = "ob_compaction_schedule_interval"
# What the data tell of their creation.
_OF_FIRST_START = ("datadir", "socket", "server_create_time", "server_role_info")
# An operator of a plan, as in "|2 |└─TABLE RANGE SCAN|t(k_1)|16749   |435         |", and whether an access
# by an index reads the table, too.
_OPERATOR = re.compile(
    r"^\|(?P<id>\d+) *\|[^A-Z|]*(?P<method>[^|]*)"
    r"\|(?P<table>[^|(]*?) *(?:\((?P<index>[^,|)]*)[^|]*\))? *\|(?P<rows>\d+) *\|",
    re.MULTILINE,
)
_LOOKS_BACK = re.compile(r"^  (\d+) - (?:(?!^  \d+ - )[\s\S])*?is_index_back=(\w+)", re.MULTILINE)


def _error_lines(log: str) -> list[str]:
    """The lines that are no reports of a start."""
    usual = ("Starting seekdb", "Change working", "The log file is in", "Initialize option is deprecated")
    return [line for line in log.splitlines() if line.strip() and not line.startswith(usual)]


def _silent_end(_: re.Match[str], failure: Failure) -> ServerProblem:
    """It gives no reason for most of its failures."""
    declared = ", ".join(f"{name} = {value}" for name, value in failure.declared.items())
    return ServerProblem(
        f"the seekdb server ended (exit status {failure.exit_status}) and named no reason; it does so for a "
        f"value that it does not accept ({declared or 'the variant declares none'}), and if its port "
        f"{failure.place.port} or its memory is in use",
        "correct the values in the variant's variables or config",
        exit_code=4,
    )


_PATTERNS: Patterns = (
    (re.compile(r"\AStarting seekdb[^\n]*\n(?:.*\n)*The log file is in [^\n]*\n*\Z"), _silent_end),
)


class SeekDB(Product):
    """seekdb 1.4 and later."""

    name = "seekdb"
    title = "seekdb"
    protocol = "mysql"
    programs = (("seekdb",), ("seekdb",))
    version_mark = "seekdb"
    version_arguments = ("--version",)
    # At SIGTERM it kills itself.
    stop_signal = signal.SIGUSR1
    # Logs, and the links to the program and the certificate.
    transient_files = frozenset({"log", "run", "wallet"})
    time_limit = "SET SESSION ob_query_timeout = 60000000"
    cache_variable = cache_title = "kvcache_memory_limit"
    defaults: ClassVar[Mapping[str, str]] = {"transaction_isolation": "READ-COMMITTED"}

    patterns = _PATTERNS
    error_lines = staticmethod(_error_lines)

    reserved_options: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("data_dir", "redo_dir", "base_dir"), PRIVATE),
        "mysql_port": "declare port instead",
        **dict.fromkeys(("nodaemon", "initialize", "embedded"), "dbdyno starts the server itself"),
        "parameter": "declare it under variables instead",
    }
    init_options = frozenset({"datafile_size", "default_compress_func", "default_row_format"})
    # The server keeps parameters with its data, so those of the loading would be the variants', too.
    loading_options: ClassVar[Mapping[str, str | int]] = {}

    def binaries(self, basedir: Path | None) -> Binaries:
        """Finds `seekdb` on PATH, in the Python package of this environment, or in `basedir`."""
        fix = f"pip install {PACKAGE}, or set server.basedir to the folder of an unpacked seekdb"
        package = importlib.util.find_spec(PACKAGE)
        folders = (package.submodule_search_locations or ()) if package is not None else ()
        installed = (
            [str(Path(folder).relative_to("/")) for folder in folders] if basedir is None else [PACKAGE]
        )
        server, _ = programs.find_both(self.title, self.programs, basedir, fix, installed)
        return Binaries(server, server, basedir, programs.loader_command(basedir))

    def format_value(self, name: str, value: Value) -> str:
        """Booleans as True and False."""
        text = str(value)
        if any(character in text for character in "\n\r\0"):
            raise ServerProblem(
                f"variables.{name} is {value!r}; a parameter's value is one line",
                "write it without line breaks",
            )
        return text

    def file_options(self, text: str) -> dict[str, str]:
        """See `Product`; `name = value` in each line, and comments after #."""
        lines = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
        return {variable_name(name.strip()): value.strip() for name, mark, value in lines if mark}

    def dbdyno_options(self, open_files: int) -> Mapping[str, str]:  # noqa: ARG002 — it has no such limits.
        """None: it has no limit of connections."""
        return {}

    def tls_options(self, certificate: Path, key: Path) -> Mapping[str, str]:  # noqa: ARG002 — see `_START`.
        """See `Product`."""
        return {"ssl_client_authentication": "True"}

    def files(
        self,
        place: Place,
        options: ConfigOptions,
        load: Address,  # noqa: ARG002 — `create_accounts` makes its account.
        admin_password: str,  # noqa: ARG002 — `admin` sets it.
    ) -> Mapping[Path, str]:
        """The parameters, one in a line; the last one wins."""
        parameters = {**options.set_by_dbdyno, **self.file_options(options.config), **options.declared}
        lines = (f"{name}={value}\n" for name, value in parameters.items() if name != "port")
        return {place.option_file: "".join(lines)}

    def init_command(self, binaries: Binaries, place: Place, options: Mapping[str, str]) -> Sequence[str]:
        """A first start, which creates root without a password and ends."""
        parameters = (f"--parameter={name}={value}" for name, value in options.items())
        place_options = (f"--base-dir={place.data}", f"--port={place.port}")
        command = (*binaries.command(), "--initialize", *place_options, *parameters)
        return [*_UNSHARE, "/bin/sh", "-c", _NETWORK + 'exec "$@"', "sh", *_ENVIRONMENT, *command]

    def start_command(self, binaries: Binaries, place: Place, arguments: Sequence[str]) -> Sequence[str]:
        """See `Product`."""
        files = (str(place.data), str(place.socket), str(place.option_file))
        command = (*binaries.command(), "--nodaemon", f"--base-dir={place.data}", f"--port={place.port}")
        return [*_UNSHARE, "/bin/sh", "-c", _START, "sh", *files, *_ENVIRONMENT, *command, *arguments]

    def admin(self, place: Place, password: str) -> AdminConnection:
        """root, through the unix socket. On new and on restored data root has no password: the first login
        gives it one.
        """
        options = {"unix_socket": str(place.socket), "user": "root"}
        return MySQLAdmin(_login(options, password, f"ALTER USER root IDENTIFIED BY '{password}'"))

    def create_accounts(self, admin: AdminConnection, load: Address) -> None:
        """Create the load's database and account, with a new password for this start."""
        for sql in (
            f"CREATE DATABASE IF NOT EXISTS `{load.database}`",
            f"CREATE USER IF NOT EXISTS '{load.user}'@'%' IDENTIFIED BY '{load.password}'",
            f"ALTER USER '{load.user}'@'%' IDENTIFIED BY '{load.password}'",
            f"GRANT ALL ON `{load.database}`.* TO '{load.user}'@'%'",
        ):
            admin.query(sql)

    def finish_background_work(self, admin: AdminConnection, database: str) -> None:
        """Update the statistics of every table, and write all rows from memory into compacted files."""
        sql = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}'"
        # Large tables may take hours.
        with answers_within(None):
            for (table,) in answers.rows(admin.query, sql, answers.text):
                admin.query(f"{MYSQL.analyze} {MYSQL.quote(database, table)}")
        interval = f"SELECT VALUE FROM oceanbase.V$OB_PARAMETERS WHERE NAME = '{_SCHEDULE}'"
        before = answers.value(admin.query, interval, answers.text)
        admin.query(f"ALTER SYSTEM SET {_SCHEDULE} = '3s'")
        admin.query("ALTER SYSTEM MAJOR FREEZE")
        deadline = time.monotonic() + _COMPACTION_S_MAX
        state = "SELECT STATUS = 'IDLE' AND LAST_SCN >= FROZEN_SCN FROM oceanbase.DBA_OB_MAJOR_COMPACTION"
        while not answers.value(admin.query, state, answers.integer) and time.monotonic() < deadline:
            time.sleep(_COMPACTION_STEP_S)
        admin.query(f"ALTER SYSTEM SET {_SCHEDULE} = '{before}'")

    def prepare_snapshot(self, admin: AdminConnection) -> None:
        """Let the server of another variant log in."""
        admin.query("ALTER USER root IDENTIFIED BY ''")

    def status(self, admin: AdminConnection) -> Mapping[str, str]:
        """SHOW GLOBAL STATUS, and the counters of the caches, by cache."""
        caches = admin.query(
            "SELECT cache_name, total_put_cnt, total_hit_cnt, total_miss_cnt, cache_size "
            "FROM oceanbase.__all_virtual_kvcache_info"
        )
        names = ("puts", "hits", "misses", "bytes")
        counters = {
            f"{cache}.{name}": str(count)
            for cache, *counts in caches
            for name, count in zip(names, counts, strict=True)
        }
        return {**admin.pairs("SHOW GLOBAL STATUS"), **counters}

    def variables(self, admin: AdminConnection) -> Mapping[str, str]:
        """The system variables and the parameters, without those of InnoDB, which have no effect, and without
        those that tell of the first start on the data.
        """
        shown = {
            **admin.pairs("SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE 'innodb%'"),
            **admin.pairs("SELECT NAME, VALUE FROM oceanbase.V$OB_PARAMETERS"),
        }
        return {name: text for name, text in shown.items() if name not in _OF_FIRST_START} | {
            "port": shown["mysql_port"]
        }

    def origins(self, admin: AdminConnection) -> Mapping[str, str]:
        """The parameters that were set."""
        return admin.pairs("SELECT NAME, 'parameter' FROM oceanbase.V$OB_PARAMETERS WHERE ISDEFAULT = 'NO'")

    def server_version(self, variables: Mapping[str, str]) -> str:
        """Its own version, of "5.7.25-OceanBase seekdb-v1.4.0.0"."""
        return super().server_version(variables).rpartition("seekdb-v")[2]

    def identity(self, admin: AdminConnection, variables: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002
        """The server's uuid; a restored copy has the uuid of its snapshot."""
        return {"server_uuid": variables["server_uuid"]} if "server_uuid" in variables else {}

    def build(self, admin: AdminConnection, variables: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002
        """See `Product`."""
        return {"comment": variables["version_comment"]} if "version_comment" in variables else {}

    def data_bytes(self, admin: AdminConnection, database: str) -> int | None:
        """The space of its tables and indexes in the data file, after compaction."""
        sql = (
            "SELECT SUM(REQUIRED_SIZE) FROM oceanbase.DBA_OB_TABLE_SPACE_USAGE "
            f"WHERE DATABASE_NAME = '{database}'"
        )
        return answers.value(admin.query, sql, answers.integer_or_none)

    def plan(self, admin: AdminConnection, sql: str) -> Plan:
        """See `Product`; of the table of operators that EXPLAIN draws, and their properties below it."""
        text = "\n".join(line for (line,) in answers.rows(admin.query, f"EXPLAIN {sql}", answers.text))
        if _OPERATOR.search(text) is None:
            raise ValueError("no plan")
        looks_back = dict(_LOOKS_BACK.findall(text))
        tree, names = parse_statement(sql, MYSQL), {}
        if tree is not None:
            names = {table.alias_or_name: table.name for table in tree.find_all(sqlglot().exp.Table)}
        accesses = []
        for operator in _OPERATOR.finditer(text):
            method, table = operator["method"].strip(), names.get(operator["table"], operator["table"])
            if not method.endswith(("SCAN", "GET")) or not table:
                continue
            is_full_scan = method.endswith("FULL SCAN")
            index = operator["index"] or (None if is_full_scan else "PRIMARY")
            rows = int(operator["rows"])
            if is_full_scan:
                rows = max(rows, _table_rows(admin, table))
            is_covering = looks_back.get(operator["id"]) == "false"
            accesses.append(Access(table, method, index, rows, is_full_scan, is_covering))
        return Plan(tuple(accesses))


def _table_rows(admin: AdminConnection, table: str) -> int:
    """The table's row count from statistics, since a plan shows only rows after the filter."""
    where = f"TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {MYSQL.literal(table)}"
    sql = f"SELECT TABLE_ROWS FROM information_schema.TABLES WHERE {where}"
    return max(
        (count or 0 for (count,) in answers.rows(admin.query, sql, answers.integer_or_none)), default=0
    )


def _login(options: Mapping[str, str], password: str, first: str) -> Callable[[int], Any]:
    """A function that connects; while the account has no password, it runs the statement `first`."""
    with_password, without = (
        connector(ConnectionSettings(), **options, password=text) for text in (password, "")
    )

    def connect(timeout_s: int) -> Any:
        try:
            return with_password(timeout_s)
        except pymysql.err.OperationalError as error:
            if error.args[0] != ER.ACCESS_DENIED_ERROR:
                raise
        connection = without(timeout_s)
        with connection.cursor() as cursor:
            cursor.execute(first)
        return connection

    return connect
