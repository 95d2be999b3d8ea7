"""Private MariaDB servers: their programs, options, accounts and complaints.

Options and defaults: "Server System Variables" and "InnoDB System Variables" in the MariaDB knowledge base.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dbdyno.experiment.model import Connect
from dbdyno.servers import mariadb_errors
from dbdyno.servers.account import ServerUser
from dbdyno.servers.admin import Admin, connector
from dbdyno.servers.product import Binaries, Failure, Place, Product
from dbdyno.servers.server import Address, ServerProblem

PACKAGE = "mariadb-server-core"

# Where packages and tarballs put programs, below `basedir` or the root of the file system.
FOLDERS = ("bin", "sbin", "libexec", "scripts", "usr/bin", "usr/sbin", "usr/libexec")

# /usr/sbin is rarely on an ordinary user's PATH.
SYSTEM_FOLDERS = ("/usr/sbin", "/usr/bin", "/usr/libexec")

_PRIVATE = "dbdyno gives every private server its own"

ADMIN_USER = "dbdyno_admin"


class MariaDB(Product):
    """MariaDB 10.6 and later."""

    name = "mariadb"

    reserved: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("datadir", "tmpdir", "socket", "pid_file", "log_error", "extra_port", "init_file"), _PRIVATE
        ),
        **dict.fromkeys(
            ("innodb_data_home_dir", "innodb_log_group_home_dir", "innodb_undo_directory"), _PRIVATE
        ),
        "bind_address": "a private server listens on loopback only",
        "skip_networking": "the load and the administration need the network interface of loopback",
        "user": "dbdyno chooses an account without privileges",
        "basedir": "it belongs one level up, as server.basedir",
        "skip_grant_tables": "the load runs as an ordinary account",
    }

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

    # Loading need not be durable: a snapshot that was interrupted is thrown away.
    neutral: ClassVar[Mapping[str, str | int]] = {
        "innodb_buffer_pool_size": "512M",
        "innodb_flush_log_at_trx_commit": 0,
        # With 1, MariaDB's default, LOAD DATA holds the AUTO-INC lock of a table to its end, and streams into
        # one table take turns. Rows bring their ids along, so the mode changes nothing in them.
        "innodb_autoinc_lock_mode": 2,
    }

    def binaries(self, basedir: Path | None) -> Binaries:
        """`mariadbd` and `mariadb-install-db`, also under their old names."""
        server = _find(("mariadbd", "mysqld"), basedir)
        install = _find(("mariadb-install-db", "mysql_install_db"), basedir)
        missing = "mariadbd" if server is None else "mariadb-install-db"
        if server is None or install is None:
            if basedir is not None:
                raise ServerProblem(
                    f"server.basedir is {str(basedir)!r}, and there is no {missing} in it or in its "
                    f"{', '.join(FOLDERS)}",
                    "name the folder of an unpacked MariaDB",
                )
            raise ServerProblem(
                f"the MariaDB server's program {missing} is not installed (neither in PATH nor in /usr)",
                f"install the Debian package {PACKAGE}, or name a folder with MariaDB as server.basedir",
            )
        return Binaries(server, install, basedir)

    def version(self, binaries: Binaries) -> str:
        """Like "mariadbd  Ver 10.11.6-MariaDB for debian-linux-gnu on x86_64"."""
        try:
            answer = subprocess.run(
                [binaries.server, "--no-defaults", "--version"],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServerProblem(
                f"{binaries.server} cannot be run: {error}", "check server.basedir"
            ) from error
        text = " ".join(answer.stdout.replace(str(binaries.server), binaries.server.name).split())
        if answer.returncode != 0 or "MariaDB" not in text:
            raise ServerProblem(
                f"{binaries.server} is no MariaDB server: it says {(text or answer.stderr.strip())[:200]!r}",
                "name a folder that holds MariaDB as server.basedir",
            )
        return text

    def harness(self, open_files: int) -> Mapping[str, str]:
        """Enough connections and statements for any point, as far as the files allow."""
        connections = min(8192, open_files // 3)
        tables = min(4000, (open_files - connections - 200) // 3)
        return {
            "max_connections": str(connections),
            "max_prepared_stmt_count": "1048576",
            "back_log": "4096",
            "open_files_limit": str(min(open_files, 131_072)),
            "table_open_cache": str(tables),
            "extra_max_connections": "10",
            # A dumped pool would make one start warmer than the next.
            "innodb_buffer_pool_dump_at_shutdown": "OFF",
            "innodb_buffer_pool_load_at_startup": "OFF",
            # A name server must not be part of a measurement, and accounts are named by address.
            "skip_name_resolve": "ON",
        }

    def placement(self, place: Place) -> Mapping[str, str]:
        """What the server says before it has read `log_error` goes to standard error, the same file."""
        return {
            "datadir": str(place.data),
            "tmpdir": str(place.temporary),
            "socket": str(place.socket),
            "pid_file": str(place.directory / "server.pid"),
            "log_error": str(place.log),
            "bind_address": "127.0.0.1",
            "port": str(place.port),
            "extra_port": str(place.admin_port),
            "init_file": str(place.init_file),
        }

    def initialise(self, binaries: Binaries, place: Place, options: Mapping[str, str]) -> Sequence[str]:
        """`mariadb-install-db` with the options that decide how files are made."""
        command = [
            str(binaries.install),
            "--no-defaults",
            f"--datadir={place.data}",
            f"--tmpdir={place.temporary}",
        ]
        if binaries.basedir is not None:
            command.append(f"--basedir={_base(binaries)}")
        # `--force`: a host whose own name resolves to nothing is no reason to stop. Its accounts are removed
        # at the first start.
        command += [
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            "--force",
        ]
        return command + [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]

    def command(self, binaries: Binaries, place: Place, arguments: Sequence[str]) -> Sequence[str]:
        """The generated file is the only one read."""
        command = [str(binaries.server), f"--defaults-file={place.option_file}"]
        if binaries.basedir is not None:
            command.append(f"--basedir={_base(binaries)}")
        return [*command, *arguments]

    def start_statements(self, load: Address, admin_password: str) -> Sequence[str]:
        """Two accounts, each for TCP and for the socket; the ones a fresh data directory brings have no
        password.
        """
        statements = [
            f"DELETE FROM mysql.global_priv WHERE User NOT IN ('mariadb.sys', '{ADMIN_USER}', '{load.user}')",
            "FLUSH PRIVILEGES",
            f"CREATE DATABASE IF NOT EXISTS `{load.database}`",
        ]
        for host in ("localhost", "127.0.0.1"):
            statements += [
                f"CREATE OR REPLACE USER '{ADMIN_USER}'@'{host}' IDENTIFIED BY '{admin_password}'",
                f"GRANT ALL ON *.* TO '{ADMIN_USER}'@'{host}'",
                f"CREATE OR REPLACE USER '{load.user}'@'{host}' IDENTIFIED BY '{load.password}'",
                f"GRANT ALL ON `{load.database}`.* TO '{load.user}'@'{host}'",
            ]
        return statements

    def admin(self, place: Place, password: str) -> Admin:
        """Over `extra_port`, which has its own listener and threads, so that a full thread pool does not
        block it.
        """
        return Admin(
            # A server that is set up to demand encryption gets it.
            connector(
                Connect(tls="preferred"),
                host="127.0.0.1",
                port=place.admin_port,
                user=ADMIN_USER,
                password=password,
            )
        )

    def settle(self, admin: Admin, database: str) -> None:
        """Statistics of every table; then let the stop purge and merge everything (`innodb_fast_shutdown` =
        0).
        """
        tables = admin.query(
            f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}'"
        )
        for (table,) in tables:
            admin.query(f"ANALYZE TABLE `{database}`.`{table}`")
        admin.query("SET GLOBAL innodb_fast_shutdown = 0")

    def is_kept(self, file: Path) -> bool:
        """Everything but what the next start makes anew."""
        return file.name not in {"ib_buffer_pool", "ibtmp1", "server.pid"}

    def complaint(self, log: str) -> str:
        """MariaDB starts without a plug-in that it could not load."""
        return mariadb_errors.complaint(log)

    def explain(self, failure: Failure, user: ServerUser) -> ServerProblem:
        """The first known pattern in the log, else its `[ERROR]` lines."""
        return mariadb_errors.explain(failure, user)


def _find(names: Sequence[str], basedir: Path | None) -> Path | None:
    for name in names:
        if basedir is not None:
            found = next(
                (basedir / folder / name for folder in FOLDERS if (basedir / folder / name).is_file()), None
            )
        else:
            places = [*os.environ.get("PATH", "").split(":"), *SYSTEM_FOLDERS]
            which = shutil.which(name, path=":".join(places))
            found = Path(which) if which else None
        if found is not None:
            return found.resolve() if basedir is not None else found
    return None


def _base(binaries: Binaries) -> Path:
    """MariaDB's own idea of its base: the folder above the one that holds the program."""
    return binaries.server.parent.parent
