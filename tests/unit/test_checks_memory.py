"""P19: caches against the memory of the machine, of a container, and of servers that run together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.checks.host import memory_bytes
from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.servers.server import Description


def experiment(*servers: ServerSpec) -> Experiment:
    return Experiment(
        name="memory",
        workloads=(OltpWorkload(name="oltp_read_only"),),
        load=Load(connections=(1,), duration_s=1.0),
        variants=tuple(Variant(name=f"v{index}", server=spec) for index, spec in enumerate(servers)),
    )


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"variables": {"innodb_buffer_pool_size": "64M"}}, None),
        ({"variables": {"innodb-buffer-pool-size": "9999G"}}, "this machine has"),
        ({"product": "postgresql", "variables": {"shared_buffers": "9999GB"}}, "this machine has"),
        (
            {
                "kind": "docker",
                "image": "i",
                "memory": "1G",
                "variables": {"innodb_buffer_pool_size": "700M"},
            },
            None,
        ),
        (
            {
                "kind": "docker",
                "image": "i",
                "memory": "1G",
                "variables": {"innodb_buffer_pool_size": "900M"},
            },
            "its container has 1.00 GiB of memory",
        ),
    ],
)
def test_a_cache_fits_into_what_there_is(spec: dict[str, Any], told: str | None) -> None:
    found = checks.run(Moment.DESIGN, Context(experiment(ServerSpec(**spec))), ["P19"])
    assert len(found) == (told is not None)
    assert all(str(told) in finding.text for finding in found)
    assert all(finding.level == "stop" for finding in found)


@pytest.mark.parametrize(
    ("product", "file", "arguments", "fits"),
    [
        ("mariadb", "[mysqld]\ninnodb-buffer-pool-size = 9999G\n", (), False),
        ("mysql", "[mysqld]\ninnodb_buffer_pool_size=64M\n", ("--innodb-buffer-pool-size=9999G",), False),
        # The last of a name wins, as with the server.
        ("mysql", "[mysqld]\ninnodb_buffer_pool_size=9999G\n", ("--innodb-buffer-pool-size=64M",), True),
        ("mysql", "[client]\ninnodb_buffer_pool_size=9999G\n", (), True),
        ("postgresql", "shared_buffers = '9999GB' # all\n", (), False),
        ("postgresql", "", ("--shared-buffers=9999GB",), False),
    ],
)
def test_a_cache_may_be_declared_in_a_file_and_in_arguments(
    product: Any, file: str, arguments: tuple[str, ...], fits: bool, tmp_path: Path
) -> None:
    config = tmp_path / "server.cnf"
    config.write_text(file)
    spec = ServerSpec(product=product, config=config, arguments=arguments)
    found = checks.run(Moment.DESIGN, Context(experiment(spec)), ["P19"])
    assert [finding.level for finding in found] == ([] if fits else ["stop"])


@pytest.mark.parametrize(("share", "fits"), [(0.3, True), (0.5, False)])
def test_servers_that_run_together_share_the_memory(share: float, fits: bool) -> None:
    urls = ["mysql://u@127.0.0.1:1/d", "mysql://u@127.0.0.1:2/d"]
    given = experiment(*(ServerSpec(kind="remote", url=url) for url in urls))
    pool = {"innodb_buffer_pool_size": str(int(share * memory_bytes()))}
    known = [Description("mysql", "9", {"url": url}, {}, {}, pool) for url in urls]
    context = Context(
        given, variant=given.variants[1], description=known[1], peers={given.variants[0].name: known[0]}
    )
    found = checks.run(Moment.READY, context, ["P19"])
    assert (not found) == fits
    assert all("the caches of 2 servers that run at the same time have" in finding.text for finding in found)


@pytest.mark.parametrize(
    ("pairing", "share", "fits"), [("slices", 0.3, True), ("slices", 0.5, False), ("trials", 0.5, True)]
)
def test_caches_of_servers_in_slices_add_up(pairing: Any, share: float, fits: bool) -> None:
    pool: dict[str, Any] = {"innodb_buffer_pool_size": int(share * memory_bytes())}
    given = experiment(ServerSpec(variables=pool), ServerSpec(variables=pool))
    given = given.model_copy(update={"design": Design(pairing=pairing)})
    found = checks.run(Moment.DESIGN, Context(given), ["P19"])
    assert [finding.level for finding in found] == ([] if fits else ["stop"])
    assert all("in slices the servers of 2 variants run at the same time" in one.text for one in found)


@pytest.mark.parametrize(
    ("pairing", "pool", "fits"),
    [("slices", "64M", True), ("slices", "32M", False), ("trials", "32M", True), ("slices", None, True)],
)
def test_data_that_alternate_fit_into_the_cache(pairing: Any, pool: str | None, fits: bool) -> None:
    """160,000 rows are 37 MB."""
    small = ServerSpec(variables={"innodb_buffer_pool_size": pool} if pool else {})
    given = experiment(ServerSpec(), small).model_copy(
        update={
            "design": Design(pairing=pairing),
            "workloads": (OltpWorkload(name="oltp_point_select", tables=4, table_size=40_000),),
        }
    )
    found = checks.run(Moment.DESIGN, Context(given), ["P19"])
    assert [finding.level for finding in found] == ([] if fits else ["stop"])
    assert all("must fit into 80 % of the cache" in one.text for one in found)


@pytest.mark.parametrize(
    ("text", "warns"),
    [("150000 100000", True), ("max 100000", False), (f"{10_000 * 100_000} 100000", False), (None, False)],
)
def test_a_control_group_gives_the_cpus_that_it_shows(
    text: str | None, warns: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cpu.max"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr("dbdyno.checks.host._CPU_FILE", file)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: frozenset(range(4)))
    findings = checks.run(Moment.DESIGN, Context(experiment(ServerSpec())), ["P19"])
    assert [finding.level for finding in findings] == (["warn"] if warns else [])
    assert all("the time of 1.5 CPUs, but shows 4" in finding.text for finding in findings)


@pytest.mark.parametrize(
    ("build", "machine", "stops"),
    [
        ({"compile_machine": "x86_64"}, "aarch64", True),
        ({"compile_machine": "AMD64"}, "x86_64", False),
        ({"CONFIGURE": "'--build=x86_64-linux-gnu' '--prefix=/usr'"}, "arm64", True),
        ({"CONFIGURE": "'--build=aarch64-linux-gnu'"}, "arm64", False),
        ({}, "arm64", False),
    ],
)
def test_an_emulated_server_is_a_stop(
    build: dict[str, str], machine: str, stops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    of = experiment(ServerSpec())
    server = Description("mariadb", "11.8.2", {}, {}, {}, {}, build=build)
    context = Context(of, variant=of.variants[0], description=server)
    findings = checks.run(Moment.READY, context, ["P19"])
    assert [finding.level for finding in findings] == (["stop"] if stops else [])
