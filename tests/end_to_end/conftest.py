"""Real MySQL servers for the tests of this folder; MariaDB's come from the folder above."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.end_to_end.mysql_server import MySQLServer, Start, starting

from dbdyno.servers.workspace import Workspace


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
