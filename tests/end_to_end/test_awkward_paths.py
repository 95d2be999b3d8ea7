"""Servers in a results directory whose name has characters that a shell or an option file may split at."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import SMALL
from tests.end_to_end.mysql_server import ROOT

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.workspace import Workspace

AWKWARD = " a b'c\"d%e$f#g;h[i]*,`j`&\t\\t{k}\\한글\\"
SPECS: dict[str, dict[str, Any]] = {
    "mariadb": {"variables": SMALL},
    "mysql": {"product": "mysql", "basedir": ROOT, "variables": {"innodb_buffer_pool_size": "64M"}},
    "postgresql": {"product": "postgresql", "variables": {"shared_buffers": "32MB"}},
}


def server_in(folder: Path, product: str) -> None:
    spec = ServerSpec(**SPECS[product])
    with (
        closing(Workspace.open(folder)) as workspace,
        closing(LocalServer(Variant(name="x", server=spec), workspace, None)) as server,
    ):
        server.start()
        schema = "public" if product == "postgresql" else "dbdyno"
        server.query(f"CREATE TABLE {schema}.t (a INT)")
        server.query(f"INSERT INTO {schema}.t VALUES (1)")
        assert server.query(f"SELECT a FROM {schema}.t") == [(1,)]
        assert str(folder) in str(server.place()["datadir"])


@pytest.mark.parametrize("product", SPECS)
def test_a_server_runs_below_a_path_with_awkward_characters(results: Path, product: str) -> None:
    server_in(results / f"{AWKWARD}{product}", product)


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("mariadb", "a:b"),
        ("mysql", "a:b"),
        ("mariadb", "a\nb"),
        ("postgresql", "a\nb"),
        ("mysql", "a\udcffb"),
    ],
)
def test_a_path_that_a_server_cannot_use_is_refused_by_name(results: Path, product: str, name: str) -> None:
    with pytest.raises(ServerProblem, match="the path has the character") as caught:
        server_in(results / name, product)
    assert repr(name[1]) in str(caught.value)
    assert "--results" in str(caught.value.fix)
    assert not list((results / name / ".servers" / "servers").iterdir())
