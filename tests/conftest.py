"""What tests share: a place for private servers, and a real MariaDB that runs for a module's tests.

A missing server is a failure and not a skip: what is not tried here would be tried by a user first.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

# A shell starts what runs in the background with SIGINT ignored, nohup with SIGHUP ignored; the commands
# here are to hear both.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# What a test's server needs no more of, so that many tests fit on a small machine.
SMALL = {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "16M"}


@pytest.fixture(scope="session")
def results() -> Iterator[Path]:
    """A results directory on disk that the servers' user can enter; pytest's own are closed to others."""
    path = Path(tempfile.mkdtemp(prefix="dbdyno-test-", dir="/var/tmp"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def workspace(results: Path) -> Iterator[Workspace]:
    """A place for private servers and snapshots."""
    with closing(Workspace.open(results)) as opened:
        yield opened


def variant(name: str = "small", **spec: Any) -> Variant:
    """A variant of small size; `spec` are the fields of `ServerSpec`."""
    variables = {**SMALL, **spec.pop("variables", {})}
    return Variant(name=name, server=ServerSpec(variables=variables, **spec))


@pytest.fixture(scope="module")
def mariadb(workspace: Workspace) -> Iterator[LocalServer]:
    """A private MariaDB that is up, with an empty schema and an ordinary account: see its `address()`."""
    with closing(LocalServer(variant("shared by a test module"), workspace, None)) as server:
        server.start()
        yield server


@pytest.fixture
def started(workspace: Workspace) -> Iterator[Callable[..., LocalServer]]:
    """Start servers by the fields of `ServerSpec`; all are closed at the end of the test."""
    servers: list[LocalServer] = []

    def start(name: str = "small", **spec: Any) -> LocalServer:
        servers.append(LocalServer(variant(name, **spec), workspace, None))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.close()
