"""What private servers of MariaDB and of MySQL share: the option file, and the SQL about themselves."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dbdyno.servers import complaints, configuration
from dbdyno.servers.account import ServerUser
from dbdyno.servers.admin import Admin
from dbdyno.servers.product import Binaries, Failure, Options, Place, Product
from dbdyno.servers.server import Address, ServerProblem

PRIVATE = "dbdyno gives every private server its own"

ADMIN_USER = "dbdyno_admin"


class MySQLFamily(Product):
    """A server that reads an option file and speaks the MySQL protocol."""

    protocol: ClassVar[str] = "mysql"

    reserved: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("datadir", "tmpdir", "socket", "pid_file", "log_error", "init_file"), PRIVATE),
        **dict.fromkeys(
            ("innodb_data_home_dir", "innodb_log_group_home_dir", "innodb_undo_directory"), PRIVATE
        ),
        "bind_address": "a private server listens on loopback only",
        "skip_networking": "the load and the administration need the network interface of loopback",
        "user": "dbdyno chooses an account without privileges",
        "basedir": "it belongs one level up, as server.basedir",
        "skip_grant_tables": "the load runs as an ordinary account",
    }

    # Who says "Ver 1.2.3" on --version, so that a MySQL is not taken for a MariaDB and the other way round.
    spoken: ClassVar[str]

    def version(self, binaries: Binaries) -> str:
        """Like "mariadbd  Ver 10.11.6-MariaDB for debian-linux-gnu on x86_64"."""
        try:
            answer = subprocess.run(
                [*binaries.command(), "--no-defaults", "--version"],
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
        if answer.returncode != 0 or not self.is_named(text):
            raise ServerProblem(
                f"{binaries.server} is no {self.title} server: it says "
                f"{(text or answer.stderr.strip())[:200]!r}",
                f"name a folder that holds {self.title} as server.basedir, or another product",
            )
        return text

    def is_named(self, version: str) -> bool:
        """Whether what a program says of itself is a server of this product."""
        return self.spoken in version

    def files(self, place: Place, options: Options, load: Address, admin_password: str) -> Mapping[Path, str]:
        """The generated option file, and the statements of its `init_file`."""
        text = configuration.option_file(
            harness=options.harness,
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
        """The options that make the server private: where it keeps things and where it listens.

        What the server says before it has read `log_error` goes to standard error, the same file.
        """
        return {
            "datadir": str(place.data),
            "tmpdir": str(place.temporary),
            "socket": str(place.socket),
            "pid_file": str(place.directory / "server.pid"),
            "log_error": str(place.log),
            "bind_address": place.listens,
            "port": str(place.port),
            "init_file": str(place.init_file),
        }

    def start_statements(self, place: Place, load: Address, admin_password: str) -> Sequence[str]:
        """Statements that leave the load's schema and account, the administrator's, and no others."""
        raise NotImplementedError

    def ready(self, admin: Admin, load: Address) -> None:
        """Nothing: the `init_file` has done it."""

    def settle(self, admin: Admin, database: str) -> None:
        """Statistics of every table."""
        tables = admin.query(
            f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{database}'"
        )
        for (table,) in tables:
            admin.query(f"ANALYZE TABLE `{database}`.`{table}`")

    def before_snapshot(self, admin: Admin) -> None:
        """Let the stop purge and merge everything."""
        admin.query("SET GLOBAL innodb_fast_shutdown = 0")

    def status(self, admin: Admin) -> Mapping[str, str]:
        """SHOW GLOBAL STATUS."""
        return admin.pairs("SHOW GLOBAL STATUS")

    def variables(self, admin: Admin) -> Mapping[str, str]:
        """SHOW GLOBAL VARIABLES."""
        return admin.pairs("SHOW GLOBAL VARIABLES")

    def release(self, variables: Mapping[str, str]) -> str:
        """The variable `version`."""
        return variables.get("version", "")

    def identity(self, admin: Admin, variables: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002
        """The uuid, where the product has one; a restored copy has its snapshot's."""
        return {name: variables[name] for name in ("server_uuid",) if name in variables}

    def data_bytes(self, admin: Admin, database: str) -> int | None:
        """By statistics, which ANALYZE has made when the data were loaded."""
        ((size,),) = admin.query(
            "SELECT SUM(DATA_LENGTH + INDEX_LENGTH) FROM information_schema.TABLES "
            f"WHERE TABLE_SCHEMA = '{database}'"
        )
        return None if size is None else int(size)

    def complaint(self, log: str) -> str:
        """These servers start without a plug-in that they could not load."""
        return complaints.complaint(log)

    def explain(self, failure: Failure, user: ServerUser) -> ServerProblem:
        """The first known pattern in the log, else its `[ERROR]` lines."""
        return complaints.explain(failure, user)
