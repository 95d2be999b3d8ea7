"""CPUs that are divided between the load generator and the servers where the experiment declares none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.base import parse_cpus
from dbdyno.experiment.model import Client, Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.run.affinity import assign_cpus
from dbdyno.run.plan import scheduling
from dbdyno.store import Run, StoreProblem

LOCAL = ServerSpec()


def docker(**limits: Any) -> ServerSpec:
    return ServerSpec(kind="docker", product="mysql", image="mysql:8.4", **limits)


def experiment(*servers: ServerSpec, client: Client | None = None) -> Experiment:
    return Experiment(
        name="cpus",
        workloads=(OltpWorkload(name="oltp_read_only", tables=1),),
        load=Load(connections=(4,), duration_s=1.0),
        client=client or Client(),
        variants=tuple(Variant(name="ABC"[index], server=server) for index, server in enumerate(servers)),
    )


def allow(monkeypatch: pytest.MonkeyPatch, cpus: set[int]) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: cpus)


@pytest.mark.parametrize(
    ("allowed", "server", "client"),
    [
        ({0, 1}, "0", "1"),
        ({0, 1, 2}, "0-1", "2"),
        (set(range(4)), "0-2", "3"),
        (set(range(7)), "0-5", "6"),
        (set(range(8)), "0-5", "6-7"),
        (set(range(64)), "0-47", "48-63"),
        ({2, 3, 5, 9}, "2-3,5", "9"),
    ],
)
def test_the_client_has_the_last_quarter_and_the_servers_the_others(
    monkeypatch: pytest.MonkeyPatch, allowed: set[int], server: str, client: str
) -> None:
    allow(monkeypatch, allowed)
    given = assign_cpus(experiment(LOCAL, docker()))
    assert given.client.cpus == client
    assert [variant.server.cpus for variant in given.variants] == [server, server]
    assert parse_cpus(server) | parse_cpus(client) == allowed
    assert not given.shares_cpus(given.variants[0])
    assert scheduling(given, given.variants[1]) == "normal"
    shared = [one for one in checks.run(Moment.DESIGN, Context(given), ["P11"]) if "share" in one.text]
    assert shared == []


@pytest.mark.parametrize(
    ("allowed", "given"),
    [
        ({3}, experiment(LOCAL, LOCAL)),
        ({0, 1, 2, 3}, experiment(LOCAL, LOCAL, client=Client(cpus="0"))),
        ({0, 1, 2, 3}, experiment(LOCAL, ServerSpec(cpus="0-1"))),
        ({0, 1, 2, 3}, experiment(LOCAL, ServerSpec(kind="remote", url="mysql://u@h/db"))),
        ({0, 1, 2, 3}, experiment(ServerSpec(kind="remote", url="mysql://u@h/db"))),
        ({0, 1, 2, 3}, experiment(LOCAL, ServerSpec(kind="command", url="mysql://u@h/db"))),
    ],
)
def test_what_is_declared_or_not_started_by_dbdyno_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch, allowed: set[int], given: Experiment
) -> None:
    allow(monkeypatch, allowed)
    assert assign_cpus(given) is given


def test_a_limit_is_not_made_ineffective(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held to 3 CPUs, limits of 3 and 4 would be the same."""
    allow(monkeypatch, {0, 1, 2, 3})
    given = experiment(docker(cpu_limit=3.0), docker(cpu_limit=4.0))
    assert assign_cpus(given) is given
    fits = assign_cpus(experiment(docker(cpu_limit=1.5), docker(cpu_limit=3.0)))
    assert [variant.server.cpus for variant in fits.variants] == ["0-2", "0-2"]


def test_identical_variants_stay_identical(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, {0, 1, 2, 3})
    given = assign_cpus(experiment(LOCAL, LOCAL))
    texts = [one.text for one in checks.run(Moment.DESIGN, Context(given), ["P15"])]
    assert [text for text in texts if "are identical" in text]


def test_a_run_can_be_continued_on_the_same_machine_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    allow(monkeypatch, {0, 1, 2, 3})
    declared = experiment(LOCAL, LOCAL)
    environment: dict[str, Any] = {}
    run = Run.create(tmp_path, assign_cpus(declared).with_order_seed(7), b"", None, environment)
    assert run.experiment().client.cpus == "3"
    assert run.experiment().variants[1].server.cpus == "0-2"
    run.release()
    again = Run.resume(tmp_path, assign_cpus(declared))
    assert again.path == run.path
    again.release()
    allow(monkeypatch, {0, 1})
    with pytest.raises(StoreProblem, match="cpus"):
        Run.resume(tmp_path, assign_cpus(declared))
