"""[fleet]: what a file may say, and what does not go together."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.reading import read_bytes

FILE = """
[experiment]
name = "fleet"
[[workload]]
name = "oltp_point_select"
[load]
connections = [8, 16]
duration = "1s"
[design]
{design}
[fleet]
{fleet}
[[variant]]
name = "a"
server = {server}
[[variant]]
name = "b"
server = {other}
"""
REMOTE = '{ kind = "remote", url = "mysql://u@db.example/test" }'
OTHER_REMOTE = REMOTE.replace("db.", "other.")
LOCAL = "{}"


def experiment(fleet: str, server: str = REMOTE, more: str = "") -> Experiment:
    other = OTHER_REMOTE if server == REMOTE else "{ variables = { innodb_flush_log_at_trx_commit = 2 } }"
    design = 'state = "preserve"' if server == REMOTE else ""
    text = FILE.format(fleet=fleet, server=server, other=other, design=design)
    if more.startswith("[design]"):
        text, more = text.replace("[design]", more, 1), ""
    text += more
    return read_bytes(text.encode(), Path("fleet.toml"))


def errors(fleet: str, server: str = REMOTE, more: str = "") -> dict[str, str]:
    with pytest.raises(InvalidExperiment) as caught:
        experiment(fleet, server, more)
    return {error.key: error.problem for error in caught.value.errors}


def test_a_fleet_is_a_number_of_engines() -> None:
    fleet = experiment("engines = 8\nper_host = 2").fleet
    assert fleet is not None
    assert (fleet.engines, fleet.per_host, fleet.address) == (8, 2, "auto")
    assert experiment('engines = 2\naddress = "10.0.0.1:6379"').fleet is not None
    assert experiment('engines = 2\naddress = "local"', LOCAL).fleet is not None


def test_every_engine_needs_a_connection() -> None:
    found = errors("engines = 12")
    assert found == {"load.connections": "8 connections are too few for 12 event loops (12 engines)"}
    assert "load.connections" in errors("engines = 4", more="[client]\nworkers = 3")


@pytest.mark.parametrize("address", ["ray://10.0.0.1:10001", "host", "10.0.0.1:", ""])
def test_an_address_is_that_of_a_head(address: str) -> None:
    assert "fleet.address" in errors(f'engines = 2\naddress = "{address}"')


def test_other_hosts_do_not_reach_private_servers() -> None:
    found = errors("engines = 2", LOCAL)
    assert found["variant[a].server"].startswith("servers that dbdyno starts listen on this machine only")
    assert set(found) == {"variant[a].server", "variant[b].server"}


def test_slices_need_one_load_generator() -> None:
    found = errors('engines = 2\naddress = "local"', LOCAL, '[design]\npairing = "slices"')
    assert found["fleet.engines"] == "slices need one load generator"
    assert experiment('engines = 2\naddress = "local"', LOCAL).design.pairing == "auto"


def test_an_unknown_key_is_an_error() -> None:
    assert "fleet.hosts" in errors("engines = 2\nhosts = 3")
    assert "fleet.engines" in errors("engines = 0")
