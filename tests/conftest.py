"""What tests share: a place for private servers, and a real MariaDB that runs for a module's tests.

A missing server is a failure and not a skip: what is not tried here would be tried by a user first.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from dbdyno.experiment import reading
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.file_schema import file_schema
from dbdyno.experiment.model import Experiment, ServerSpec, Variant
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

# A shell starts what runs in the background with SIGINT ignored, nohup with SIGHUP ignored; the commands
# here are to hear both.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Tests start hundreds of commands, of which each would compile the lab's modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Test processes run at the same time, so each has locks of its own.
_RUNTIME = tempfile.TemporaryDirectory(prefix="dbdyno-test-runtime-")
os.environ["XDG_RUNTIME_DIR"] = _RUNTIME.name
# No test finds what others have left on servers.
os.environ["XDG_STATE_HOME"] = f"{_RUNTIME.name}/state"
# No version that somebody has installed here changes what a test starts.
os.environ["DBDYNO_SERVERS"] = f"{_RUNTIME.name}/servers"

# Files of tests whose seconds are printed at the end.
_SLOWEST = 15

# What a test's server needs no more of, so that many tests fit on a small machine.
SMALL = {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "16M"}

# What `reading` says about a key or a section that does not exist.
UNKNOWN = re.compile("no such (key|section)")
SCHEMA = jsonschema_rs.Draft7Validator(file_schema())
READ_BYTES = reading.read_bytes
EXAMPLES = Path(__file__).parents[1] / "examples"


def read_bytes_by_schema(
    source: bytes, path: Path, profile: str | None = None, assignments: Iterable[str] = ()
) -> Experiment:
    """`read_bytes`, which agrees with the JSON Schema about every file that a test reads."""
    assignments = list(assignments)
    try:
        experiment = READ_BYTES(source, path, profile, assignments)
    except InvalidExperiment as invalid:
        unknown = [one for one in invalid.errors if UNKNOWN.search(one.problem)]
        if unknown and not assignments:
            assert not SCHEMA.is_valid(tomllib.loads(source.decode("utf-8-sig"))), (
                f"the schema accepts {unknown}"
            )
        raise
    errors = list(SCHEMA.iter_errors(tomllib.loads(source.decode("utf-8-sig"))))
    assert not errors, f"the schema rejects a valid file: {errors}"
    return experiment


# Before test modules import it.
reading.read_bytes = read_bytes_by_schema


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the files whose tests took the most time, so that one that grows is seen."""
    seconds: dict[str, float] = defaultdict(float)
    tests: dict[str, int] = defaultdict(int)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                seconds[file] += report.duration
                tests[file] += report.when == "call"
    terminalreporter.write_line(f"\nThe slowest of {len(seconds)} files, {sum(seconds.values()):.0f} s:")
    for file, duration in sorted(seconds.items(), key=lambda one: -one[1])[:_SLOWEST]:
        terminalreporter.write_line(f"{duration:7.1f} s  {tests[file]:4d} tests  {file}")


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


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples with the directory of their `basedir`; only `make test` unpacks that server."""
    root = tmp_path_factory.mktemp("project")
    (root / ".servers" / "mysql-9.7").mkdir(parents=True)
    return Path(shutil.copytree(EXAMPLES, root / "examples"))


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
