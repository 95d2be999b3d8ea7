"""What a group finds of the one before: `restart` starts a server anew over what was left, `restore` brings
the data back. What the other tests of comparisons have not: they restore, and restart MariaDB's processes.
Containers are in test_compare_docker.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.own_server import Own

from dbdyno.experiment.model import Experiment
from dbdyno.experiment.reading import read_bytes
from dbdyno.run.data_state import DataState
from dbdyno.run.engine import Engine
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import Server
from dbdyno.servers.workspace import Workspace

EXPERIMENT = """
[experiment]
name = "states"
[[workload]]
name = "oltp_read_only"
table_size = 100
[load]
connections = [1]
duration = "1s"
[design]
repeat_disturbed = false
state = "{state}"
[[variant]]
name = "kept"
"""
POSTGRESQL_VARIABLES = {"shared_buffers": "32MB"}


def experiment(state: str, **spec: Any) -> Experiment:
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in spec.items() if name != "variables")
    table = "".join(f"{name} = {json.dumps(value)}\n" for name, value in spec.get("variables", {}).items())
    text = f"{EXPERIMENT.format(state=state)}[variant.server]\n{lines}[variant.server.variables]\n{table}"
    return read_bytes(text.encode(), Path("states.toml"), None, ())


def found(server: Server) -> list[tuple[Any, ...]] | None:
    """The rows that a group has written; None where their table is gone too."""
    tables = server.query(
        "SELECT table_name FROM information_schema.tables WHERE table_name = 'written' AND table_schema IN "
        "('dbdyno', 'public')"
    )
    return server.query(f"SELECT n FROM {_written(server)}") if tables else None


def _written(server: Server) -> str:
    return "written" if server.address().protocol == "postgresql" else "dbdyno.written"


def two_groups(of: Experiment, workspace: Workspace) -> tuple[list[Any], list[float]]:
    """Of two groups that each write a row: what they find when they begin, and when their server started."""
    (variant,), (workload,) = of.variants, of.workloads
    told: list[str] = []
    data = DataState(of, workspace, Engine(), lambda value: told.append(str(value)))
    finds, starts = [], []
    with data.cleaning_up(), closing(data.open(variant, None)) as server:
        for following in ([server], []):
            data.prepare_group(server, workload, variant)
            finds.append(found(server))
            server.query(f"CREATE TABLE IF NOT EXISTS {_written(server)} (n INT)")
            server.query(f"INSERT INTO {_written(server)} VALUES (1)")
            identity = server.describe().identity
            starts.append(identity.get("start_unix_us", identity.get("started_unix_s")))
            data.finish_group(server, following)
    assert not [words for words in told if "Trouble" in words]
    return finds, starts


FOUND = {"restart": [None, [(1,)]], "restore": [None, None]}


def test_postgresql_is_restarted(workspace: Workspace) -> None:
    given = experiment("restart", product="postgresql", variables=POSTGRESQL_VARIABLES)
    finds, starts = two_groups(given, workspace)
    assert finds == FOUND["restart"]
    assert starts[0] < starts[1]


@pytest.mark.parametrize("state", FOUND)
def test_the_users_own_commands(
    state: str, started: Callable[..., LocalServer], workspace: Workspace, tmp_path: Path
) -> None:
    server = started("somebody's own")
    address, secret = server.address(), tmp_path / "password"
    secret.write_text(address.password)
    with closing(Own(server, tmp_path)) as own:
        argv = {word: own.argv(word) for word in ("start", "stop")}
        if state == "restore":
            # The data are the user's, and there.
            argv["restore"] = own.argv("restore")
        url = f"mysql://dbdyno@127.0.0.1:{address.port}/dbdyno"
        given = experiment(state, kind="command", url=url, password_file=str(secret), **argv)
        finds, _ = two_groups(given, workspace)
        assert finds == FOUND[state]
        assert own.starts() == 2
