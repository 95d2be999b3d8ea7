"""PostgreSQL and a current MySQL, on which sysbench and dbdyno are compared as on MariaDB."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from tests.end_to_end.differential import DATABASE, PASSWORD, USER, Database
from tests.end_to_end.mysql_server import MySQLServer

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.products.product import ADMIN_USER
from dbdyno.servers.workspace import Workspace

# A statement in the log: session, how it travelled (`statement`, or `execute NAME`), and its text, whose
# further lines begin with a tab.
_LOGGED = re.compile(r"^dbdyno-log (\d+) (\S*) LOG:  (statement|execute \S+): (.*(?:\n\t.*)*)", re.M)


@dataclass(frozen=True)
class PostgreSQLDatabase(Database):
    """A private PostgreSQL that logs every statement, with sysbench's account and database."""

    admin: psycopg.Connection[Any] = field(repr=False, kw_only=True)
    log: Path = field(kw_only=True)

    def options(self, user: str = USER, password: str = PASSWORD) -> str:
        """How either side reaches it."""
        address = self.server.address()
        return (
            f"--db-driver=pgsql --pgsql-host={address.host} --pgsql-port={address.port} "
            f"--pgsql-user={user} --pgsql-password={password} --pgsql-db={DATABASE}"
        )

    def empty(self) -> None:
        """A new, empty schema; sessions that a side left in the old one are ended."""
        self.query(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '{USER}'")
        self.query("DROP SCHEMA public CASCADE")
        self.query(f"CREATE SCHEMA public AUTHORIZATION {USER}")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask sysbench's database as the administrator."""
        with self.admin.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall()) if cursor.description is not None else []

    def mark(self) -> int:
        """Where the log ends now, for `logged`."""
        return self.log.stat().st_size

    def logged(self, since: int) -> list[tuple[int, str, str]]:
        """Session, way (`statement` or `execute`) and text of what the account has sent since a mark."""
        with self.log.open("rb") as file:
            file.seek(since)
            text = file.read().decode()
        return [
            (int(pid), way.partition(" ")[0], sql.replace("\n\t", "\n"))
            for pid, user, way, sql in _LOGGED.findall(text)
            if user == USER
        ]


@contextmanager
def postgresql_database(workspace: Workspace, folder: Path) -> Iterator[PostgreSQLDatabase]:
    """Start one."""
    variables: dict[str, str | int | float | bool] = {
        "shared_buffers": "32MB",
        "max_connections": 60,
        # What is lost with this server is missed by nobody.
        "fsync": False,
        "log_statement": "all",
        "log_line_prefix": "dbdyno-log %p %u ",
        "jit": False,
    }
    spec = ServerSpec(product="postgresql", variables=variables)
    variant = Variant(name="postgresql shared with sysbench", server=spec)
    with closing(LocalServer(variant, workspace, None)) as server:
        server.start()
        server.query(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
        server.query(f"CREATE DATABASE {DATABASE} OWNER {USER}")
        ((hba,),) = server.query("SHOW hba_file")
        rules = Path(str(hba))
        # Some names are let in that do not exist, for the server to say so itself.
        allowed = f"host {DATABASE},nowhere {USER},nobody 127.0.0.1/32 scram-sha-256\n"
        rules.write_text(allowed + rules.read_text())
        server.query("SELECT pg_reload_conf()")
        address = server.address()
        assert address.unix_socket is not None
        socket = str(Path(address.unix_socket).parent)
        with psycopg.connect(
            host=socket, port=address.port, user=ADMIN_USER, dbname=DATABASE, autocommit=True
        ) as admin:
            admin.execute("SET log_statement = 'none'")
            yield PostgreSQLDatabase(server, folder, admin=admin, log=rules.parent / "error.log")


@dataclass(frozen=True)
class MySQLDatabase(Database):
    """A private MySQL with sysbench's account and schema."""

    def empty(self) -> None:
        """As on MariaDB, where sessions are ended by their user's name."""
        for (number,) in self.query(f"SELECT id FROM information_schema.processlist WHERE user = '{USER}'"):
            self.query(f"KILL {number}")
        self.query(f"DROP DATABASE IF EXISTS {DATABASE}")
        self.query(f"CREATE DATABASE {DATABASE}")


def mysql_database(server: MySQLServer, folder: Path) -> MySQLDatabase:
    """Give the server the account and schema that sysbench takes when it is told none."""
    server.sql(f"CREATE DATABASE {DATABASE}")
    server.sql(f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'")
    server.sql(f"GRANT ALL ON {DATABASE}.* TO {USER}@'%'")
    return MySQLDatabase(server, folder)
