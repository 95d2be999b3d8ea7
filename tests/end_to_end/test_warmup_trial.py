"""A warm-up trial on a real MariaDB: it writes the engine's records, runs the hooks, and reports a server's
death.
"""

from __future__ import annotations

import gzip
import json
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import variant

from dbdyno.checks import Context
from dbdyno.experiment.model import Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.run import warmup
from dbdyno.run.engine import Engine
from dbdyno.run.loading import prepare
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace
from dbdyno.store import Run
from dbdyno.store.preparation import WarmupTrial

LENGTH_S = 30.0
LOOK = ("sh", "-c", "cat /proc/$DBDYNO_SERVER_PID/comm; exec sleep 600")


def experiment(**load: Any) -> Experiment:
    return Experiment(
        name="long",
        workloads=(OltpWorkload(name="oltp_point_select", tables=1, table_size=1000),),
        load=Load(**{"connections": (1, 2), "duration_s": 2.0, **load}),
        variants=(Variant(name="a", server=ServerSpec(during_trial=LOOK)), Variant(name="b")),
    )


def warmup_trial(of: Experiment, server: LocalServer, folder: Path) -> tuple[WarmupTrial, list[Any]]:
    """The entry of the first warm-up trial, and the records that were kept of it."""
    run = Run.create(folder, of, b"")
    trial = warmup.warmup_trials(of, [one.title for one in of.workloads])[0]
    entry, complaints = warmup.run_warmup_trial(
        run, Engine(), trial, Context(of, server=server, description=server.describe()), 1
    )
    assert complaints == []
    assert entry["hooks"]["during_trial"]["argv"] == list(LOOK)
    assert (run.path / "warmup_trials" / "01-a-hook-during_trial.txt").read_text() == "mariadbd\n"
    lines = gzip.decompress((run.path / "warmup_trials" / entry["records"]).read_bytes()).splitlines()
    return entry, [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    "load",
    [
        pytest.param({}, id="closed"),
        pytest.param({"connections": (4,), "rate": (50.0, 300.0)}, id="open", marks=pytest.mark.long),
    ],
)
def test_a_warmup_trial_is_what_the_engine_recorded(
    mariadb: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: dict[str, Any]
) -> None:
    monkeypatch.setattr(warmup, "LENGTH_MIN_S", LENGTH_S)
    of = experiment(**load)
    prepare(of, of.workloads[0], mariadb, Engine(), lambda _progress: None)
    entry, records = warmup_trial(of, mariadb, tmp_path)
    assert (entry["variant"], entry["failure"], entry["length_s"]) == ("a", None, LENGTH_S)
    assert entry["at"] == ({"rate": 300.0} if load else {"connections": 2})
    plan = records[0]["data"]["plan"]
    assert (plan["phases"]["warmup_us"], plan["phases"]["measure_us"]) == (0, 30_000_000)
    total = records[-1]["data"]["phases"]["measure"]
    assert len(entry["series"]) == 6
    mean = sum(entry["series"]) / 6
    if load:
        assert mean == pytest.approx(total["latency_sum_us"] / total["events"], rel=0.1)
    else:
        assert mean == pytest.approx(total["events"] / LENGTH_S, rel=0.01)


def test_a_server_that_dies_is_told(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warmup, "LENGTH_MIN_S", LENGTH_S)
    with closing(LocalServer(variant("dies"), workspace, None)) as server:
        server.start()
        of = experiment(on_lost="stop")
        prepare(of, of.workloads[0], server, Engine(), lambda _progress: None)
        killer = threading.Timer(3.0, lambda: server.stop(clean=False))
        killer.start()
        entry, _ = warmup_trial(of, server, tmp_path)
        killer.join()
    assert entry["failure"]
    assert entry["settle_s"] is None
    assert warmup.to_document(experiment(), [entry])["warmup_s"] == 5.0
