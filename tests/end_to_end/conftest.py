"""Servers for the tests of this folder: MySQL, and those on which sysbench and dbdyno are compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.conftest import variant
from tests.end_to_end import drop_in_matrix
from tests.end_to_end.differential import Database, give_account
from tests.end_to_end.differential_servers import (
    MySQLDatabase,
    PostgreSQLDatabase,
    mysql_database,
    postgresql_database,
)
from tests.end_to_end.docker_engine import DockerEngine, running
from tests.end_to_end.mysql_server import MySQLServer, Start, starting

from dbdyno.servers.kinds import docker
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace


def pytest_addoption(parser: pytest.Parser) -> None:
    """An option to run all tests of the drop-in whatever has passed before."""
    parser.addoption("--all-drop-ins", action="store_true", help="run the drop-in's tests on all servers")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of the drop-in that have passed on its present source (`drop_in_matrix`)."""
    # A file or a test that the command line names runs.
    names_files = any(".py" in argument for argument in config.args)
    if names_files or config.getoption("--all-drop-ins", default=False) or not drop_in_matrix.has_passed():
        return
    left_out = [item for item in items if drop_in_matrix.is_on_another_server_or_way(item)]
    items[:] = [item for item in items if item not in set(left_out)]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def mysql(workspace: Workspace) -> Iterator[MySQLServer]:
    """A private MySQL 9.7 that is up, with an empty schema and an ordinary account: see `address()`.

    All tests of a session share it: whoever changes accounts or variables puts them back, or starts one of
    their own with `start_mysql`.
    """
    with starting(workspace) as start:
        yield start("mysql shared by all tests")


@pytest.fixture
def start_mysql(workspace: Workspace) -> Iterator[Start]:
    """Start servers by a name and further arguments of mysqld; all are closed at the end of the test."""
    with starting(workspace) as start:
        yield start


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerEngine]:
    """A Docker engine that all tests of a session share: whoever starts a container sees it removed."""
    with running() as started:
        # The lab asks for the machine's engine once.
        docker.engine.cache_clear()
        yield started
        docker.engine.cache_clear()


@pytest.fixture(scope="session")
def sbtest(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A private MariaDB with the account and schema that sysbench takes when it is told none.

    Whoever changes accounts or variables puts them back; tables are each case's own.
    """
    server = LocalServer(variant("shared with sysbench"), workspace, None)
    with closing(server):
        server.start()
        give_account(server)
        yield Database(server, tmp_path_factory.mktemp("shims"))


@pytest.fixture(scope="session")
def pgsbtest(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgreSQLDatabase]:
    """The same of PostgreSQL."""
    with postgresql_database(workspace, tmp_path_factory.mktemp("shims")) as database:
        yield database


@pytest.fixture(scope="session")
def mysbtest(mysql: MySQLServer, tmp_path_factory: pytest.TempPathFactory) -> MySQLDatabase:
    """The same of MySQL 9.7."""
    return mysql_database(mysql, tmp_path_factory.mktemp("shims"))


@pytest.fixture(params=["native", "lua"])
def way(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Options by which dbdyno takes one of its two ways."""
    return ("--lua",) if request.param == "lua" else ()
