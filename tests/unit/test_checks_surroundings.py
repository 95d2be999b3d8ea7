"""P10, P16, P18 and P20: machines, loads, durations and passwords."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.simulated_trials import experiment as simulated
from tests.unit.simulated_trials import measured

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.experiment.model import Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.finding import Finding
from dbdyno.measure.server_state import ServerState, read_state
from dbdyno.rules.host import changed_hosts
from dbdyno.servers.server import Description

FAR = {"kind": "remote", "url": "mysql://bench@192.0.2.7/db"}
NEAR = {"kind": "remote", "url": "mysql://bench@127.0.0.1/db"}


def experiment(*servers: dict[str, Any], connections: tuple[int, ...] = (1,), **load: Any) -> Experiment:
    return Experiment(
        name="test",
        workloads=(OltpWorkload(name=load.pop("workload", "oltp_read_write")),),
        load=Load(connections=connections, duration_s=10.0, warmup_s=5.0, **load),
        variants=tuple(
            Variant(name=name, server=ServerSpec.model_validate(server))
            for name, server in zip("AB", servers, strict=False)
        ),
    )


def described(product: str = "mysql", variables: dict[str, str] | None = None, **host: Any) -> Description:
    return Description(product, "9.7.0", {}, {}, {}, variables or {}, host=host)


def hosts(
    servers: tuple[dict[str, Any], dict[str, Any]], base: Description, own: Description
) -> list[Finding]:
    of = experiment(*servers)
    context = Context(of, variant=of.variants[1], description=own, peers={"A": base})
    return checks.run(Moment.READY, context, ["P10"])


def test_servers_with_other_cpus_are_a_warning() -> None:
    base, own = (
        described(version_compile_machine="x86_64", cpus=8),
        described(version_compile_machine="amd64", cpus=16),
    )
    (finding,) = hosts((FAR, FAR), base, own)
    assert (finding.level, finding.subject) == ("warn", "B")
    assert finding.evidence == {"CPUs": {"A": "8", "B": "16"}}
    assert hosts((FAR, FAR), base, base) == []


def test_another_architecture_or_place_is_a_warning() -> None:
    intel, arm = (
        described("postgresql", built=f"PostgreSQL 18.1 on {machine}-pc-linux-gnu, compiled by gcc")
        for machine in ("x86_64", "aarch64")
    )
    (finding,) = hosts((FAR, FAR), intel, arm)
    assert "architecture x86_64 and aarch64" in finding.text
    (finding,) = hosts((NEAR, FAR), described(), described())
    assert "place this machine and another machine" in finding.text
    assert hosts((NEAR, {}), described(), described()) == []


def test_the_thread_pool_of_mariadb_gives_its_cpus() -> None:
    def mariadb(size: str, origin: str) -> Description:
        return replace(described("mariadb", {"thread_pool_size": size}), origins={"thread_pool_size": origin})

    assert len(hosts((FAR, FAR), mariadb("8", "auto"), mariadb("4", "auto"))) == 1
    assert hosts((FAR, FAR), mariadb("8", "auto"), mariadb("4", "config")) == []


def test_a_run_that_was_resumed_with_another_kernel_is_a_warning() -> None:
    of = simulated()
    trials = measured(of, lambda _trial: 1000.0)

    def found(kernel_of: Any) -> list[Finding]:
        states = {
            one.index: read_state(
                {"host": {"kernel": kernel_of(one.block), "memory_bytes": 2**34 - one.block}}
            )
            for one in trials
        }
        return list(changed_hosts(trials, states))

    (finding,) = found(lambda block: "6.1" if block < 4 else "6.12")
    assert (finding.code, finding.level) == ("P10", "warn")
    assert "kernel: 6.1, 6.12" in finding.text
    assert found(lambda _block: "6.1") == []
    assert list(changed_hosts(trials, {one.index: ServerState() for one in trials})) == []


@pytest.mark.parametrize(
    ("connections", "words"),
    [
        ((4, 64), ["the lowest load has 4 connections, more than the server's 2 CPUs"]),
        ((1, 2), ["the highest load has 2 connections, at most two for each of the server's 2 CPUs"]),
        ((3, 4), ["the lowest load", "the highest load"]),
        ((2, 5), []),
        ((64,), []),
    ],
)
def test_loads_on_both_sides_of_the_cpus(connections: tuple[int, ...], words: list[str]) -> None:
    of = experiment({"cpus": "0,1"}, {"cpus": "0,1"}, connections=connections)
    findings = checks.run(Moment.DESIGN, Context(of), ["P16"])
    assert len(findings) == len(words)
    assert all(one.level == "note" and text in one.text for one, text in zip(findings, words, strict=True))


def test_the_cpus_of_a_distant_server_are_not_known() -> None:
    of = experiment(FAR, FAR, connections=(1000, 2000))
    assert checks.run(Moment.DESIGN, Context(of), ["P16"]) == []


def periods(variables: dict[str, str], workload: str = "oltp_read_write") -> list[Finding]:
    of = experiment({}, {}, workload=workload)
    context = Context(
        of,
        variant=of.variants[0],
        description=described("postgresql", variables),
        workload=of.workloads[0],
    )
    return checks.run(Moment.READY, context, ["P18"])


def test_a_trial_that_is_shorter_than_a_checkpoint_cycle_is_a_note() -> None:
    (note,) = periods({"checkpoint_timeout": "5min", "autovacuum_naptime": "10s"})
    assert note.level == "note"
    assert "takes 15 s, less than checkpoint_timeout (5 min 00 s)" in note.text
    assert note.evidence["periods_s"] == {"checkpoint_timeout": 300.0}
    assert periods({"checkpoint_timeout": "10s"}) == []
    assert periods({"checkpoint_timeout": "5min"}, "oltp_read_only") == []
    assert periods({"innodb_io_capacity": "200"}) == []


def secrets(*servers: dict[str, Any]) -> list[Finding]:
    return checks.run(Moment.DESIGN, Context(experiment(*servers)), ["P20"])


def test_a_password_file_is_for_one_user(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret")
    file.chmod(0o640)
    (finding,) = secrets(FAR | {"password_file": file})
    assert (finding.level, finding.subject, finding.evidence["mode"]) == ("warn", "A", "0640")
    file.chmod(0o600)
    assert secrets(FAR | {"password_file": file}) == []
    assert secrets(FAR | {"password_file": tmp_path / "missing"}) == []


def test_a_password_in_a_command_is_a_warning_that_does_not_quote_it() -> None:
    own = {"kind": "command", "url": FAR["url"], "stop": ("down",)}
    (finding,) = secrets(own | {"start": ("up", "--password=hunter2")})
    assert "variants[1].server.start contains a password" in finding.text
    assert "hunter2" not in finding.message + str(finding.evidence)
    assert secrets(own | {"start": ("sh", "-c", "mysql --password=$SECRET")}) == []
    assert secrets(own | {"start": ("up", "--password")}) == []
