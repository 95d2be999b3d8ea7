"""Servers in containers, for real: compared, limited, restored, refused in words, and never left behind.

All tests that need a Docker engine are here, so that two test processes never run one each.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import SMALL
from tests.end_to_end.comparing import Comparing, environment, refused
from tests.end_to_end.docker_engine import IMAGE, DockerEngine
from tests.end_to_end.test_examples import IMAGES, smoke
from tests.end_to_end.test_states import FOUND, POSTGRESQL_VARIABLES, experiment, two_groups

from dbdyno.experiment.base import format_cpus
from dbdyno.servers.workspace import Workspace

EXPERIMENT = f"""
[experiment]
name = "containers"
[[workload]]
name = "oltp_read_write"
tables = 2
table_size = 500
[load]
connections = [4]
duration = "500ms"
warmup = "200ms"
[design]
repeat_disturbed = false
blocks = 2
[[variant]]
name = "one thread each"
[variant.server]
kind = "docker"
image = "{IMAGE}"
memory = "512M"
cpu_limit = 1.5
variables = {{ innodb_buffer_pool_size = "64M", innodb_log_file_size = "16M" }}
[[variant]]
name = "pool"
[variant.server]
kind = "docker"
image = "{IMAGE}"
memory = "640M"
cpu_limit = 0.5
cpus = "1"
version = "10"
[variant.server.variables]
innodb_buffer_pool_size = "64M"
innodb_log_file_size = "16M"
thread_handling = "pool-of-threads"
"""


# What a hook may look at: the server's process, what the kernel and Docker hold its container to, and the
# names of all other processes of the machine.
LOOK = """
import json, os, pathlib, subprocess
pid = os.environ["DBDYNO_SERVER_PID"]
def name(process):
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return ""
others = {name(process) for process in pathlib.Path("/proc").glob("[0-9]*") if process.name != pid}
status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
def docker(*words):
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=True).stdout
(container,) = docker("ps", "--quiet").split()
(found,) = json.loads(docker("inspect", container))
groups = "cd /sys/fs/cgroup; cat memory.max cpu.max || cat memory/memory.limit_in_bytes cpu/cpu.cfs_quota_us"
print(json.dumps({
    "pid": pid, "program": status["Name"].strip(), "cpus": status["Cpus_allowed_list"].strip(),
    "docker": {**found["HostConfig"], "Pid": found["State"]["Pid"]},
    "cgroups": docker("exec", container, "sh", "-c", groups).split(), "others": sorted(others),
}))
"""
HOOKS = ("before_trial", "after_trial")
MIB = 1 << 20


@pytest.fixture
def comparing(results: Path, engine: DockerEngine) -> Comparing:
    engine.import_mariadb()
    return Comparing(results, EXPERIMENT)


@pytest.mark.alone
def test_containers_are_compared_and_gone_afterwards(
    comparing: Comparing, engine: DockerEngine, tmp_path: Path
) -> None:
    look = tmp_path / "look.py"
    look.write_text(LOOK)
    hooks = [f"variant.server.{name}={json.dumps([sys.executable, str(look)])}" for name in HOOKS]
    # The hooks call docker.
    hooks.append('variant.server.hook_environment=["DOCKER_HOST"]')
    answer = comparing.run("--no-report", *(word for hook in hooks for word in ("--set", hook)))
    assert answer.returncode == 0, answer.stderr
    trials = comparing.newest().trials()
    assert len(trials) == 4
    snapshots = set()
    for trial in trials:
        server: Any = trial.server
        identity = server["identity"]
        assert trial.is_done
        assert identity["image"] == IMAGE
        assert identity["image_id"].startswith("sha256:")
        pooled = trial.meta["variant"] == "pool"
        memory, cpus = (640, 0.5) if pooled else (512, 1.5)
        assert (identity["memory_limit"], identity["cpu_limit"]) == (f"{memory}M", cpus)
        # The same by the container itself.
        seen, later = (json.loads((trial.path / f"hook-{name}.txt").read_text()) for name in HOOKS)
        assert (seen["pid"], seen["docker"]["Pid"]) == (str(identity["pid"]), identity["pid"])
        assert seen["program"] == "mariadbd"
        assert seen["docker"]["Memory"] == seen["docker"]["MemorySwap"] == memory * MIB
        assert seen["docker"]["NanoCpus"] == cpus * 1e9
        assert seen["cgroups"][:2] == [str(memory * MIB), str(round(cpus * 100_000))]
        if pooled:
            assert seen["cpus"] == seen["docker"]["CpusetCpus"] == identity["cpus"] == "1"
        else:
            assert seen["docker"]["CpusetCpus"] == ""
            assert seen["cpus"] == format_cpus(frozenset(os.sched_getaffinity(0)))
        assert server["variables"]["thread_handling"] == server["declared"].get(
            "thread_handling", "one-thread-per-connection"
        )
        assert server["variables"]["datadir"].rstrip("/") == identity["datadir"]
        assert server["process"]["after"]["cpu_user_s"] > server["process"]["before"]["cpu_user_s"]
        assert server["data_bytes"] > 0
        assert server["host"]["cpus"] == os.cpu_count()
        # The container is no child of dbdyno, and its server is not foreign. Another server of that name on
        # this machine is, and tests/unit/test_run_foreign.py tells the two apart.
        load = server["edges"]["foreign"]
        assert load["cpus"] == format_cpus(frozenset(os.sched_getaffinity(0)))
        foreign = {process["name"] for process in load["processes"]}
        assert seen["program"] not in foreign - {*seen["others"], *later["others"]}
        snapshots.add(identity["snapshot"])
    assert len(snapshots) == 1
    assert engine.containers() == []


def test_a_container_may_have_a_network_of_its_own(comparing: Comparing, engine: DockerEngine) -> None:
    """Its port is published on loopback; the other variant, on the host's network, is as it was."""
    changes = ["variant[pool].server.network='bridge'", "design.blocks=1", "design.state='reset'"]
    answer = comparing.run("--no-report", *(word for change in changes for word in ("--set", change)))
    assert answer.returncode == 0, answer.stderr
    networks = {}
    for trial in comparing.newest().trials():
        assert trial.is_done
        server: Any = trial.server
        networks[trial.meta["variant"]] = server["identity"]["network"], server["variables"]["bind_address"]
        end = next(record["data"] for record in trial.records() if record["type"] == "end")
        assert end["phases"]["measure"]["events"] > 0
        # What carries a published port's traffic works for the load.
        assert "docker-proxy" not in {one["name"] for one in server["edges"]["foreign"]["processes"]}
    assert networks == {"one thread each": ("host", "127.0.0.1"), "pool": ("bridge", "0.0.0.0")}
    assert engine.containers() == []


POSTGRESQL = """
[experiment]
name = "postgresql-in-a-container"
[[workload]]
name = "oltp_read_write"
table_size = 500
delete_inserts = 0
[load]
connections = [2]
duration = "500ms"
warmup = "100ms"
[design]
repeat_disturbed = false
blocks = 1
[[variant]]
name = "it"
[variant.server]
kind = "docker"
product = "postgresql"
image = "{image}"
memory = "512M"
network = "bridge"
variables = {{ shared_buffers = "32MB", work_mem = "2MB" }}
"""


def test_postgresql_runs_in_a_container(results: Path, engine: DockerEngine) -> None:
    """Of the programs of this machine, with a network of its own."""
    comparing = Comparing(results, POSTGRESQL.format(image=engine.import_postgresql()))
    command = [sys.executable, "-m", "dbdyno", "run", str(comparing.file), "--results", str(results)]
    answer = subprocess.run(
        command, capture_output=True, text=True, env=environment(), check=False, timeout=300
    )
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.splitlines()) == 2
    (trial,) = comparing.newest().trials()
    server: Any = trial.server
    assert trial.is_done
    assert server["product"] == "postgresql"
    assert server["identity"]["system_identifier"]
    assert server["identity"]["image_id"].startswith("sha256:")
    assert server["variables"]["listen_addresses"] == "0.0.0.0"
    assert server["variables"]["work_mem"] == "2MB"
    assert trial.session()["authentication"] == "scram-sha-256"
    updated = [int(server[f"status_{when}"]["pg_stat_user_tables.n_tup_upd"]) for when in ("before", "after")]
    assert updated[0] < updated[1]
    # Its first process begins the others, which do the work.
    assert server["process"]["after"]["cpu_user_s"] > server["process"]["before"]["cpu_user_s"]
    assert engine.containers() == []


def test_what_keeps_a_container_from_serving_is_told(comparing: Comparing, engine: DockerEngine) -> None:
    here = [
        (
            ["variant[pool].server.image='no-such:1'"],
            2,
            ["has no image 'no-such:1'", "docker pull no-such:1"],
        ),
        (["variant.server.product='postgresql'"], 2, [f"image '{IMAGE}' has no PostgreSQL server"]),
        # P19 would say it before: a server whose buffers are larger than its memory.
        (
            ["variant[pool].server.memory='64K'", "override.P19='the engine is to say it'"],
            4,
            ["the Docker engine refused", "memory"],
        ),
        (["variant.server.basedir='/usr'"], 2, ["basedir is for kind = local"]),
    ]
    for changes, code, words in here:
        asked = [word for change in changes for word in ("--set", change)]
        refused(comparing.run("--no-report", *asked), code, *words)
    answer = comparing.run("--no-report", "--set", "variant[pool].server.version='9.7'")
    assert answer.returncode == 4
    assert "declares version 9.7" in answer.stdout + answer.stderr
    os.environ["DOCKER_HOST"] = "unix:///nowhere/docker.sock"
    try:
        refused(comparing.run("--no-report"), 3, "the Docker engine does not answer", "start it")
    finally:
        os.environ["DOCKER_HOST"] = engine.host
    assert engine.containers() == []


def test_a_killed_comparison_leaves_no_container(comparing: Comparing, engine: DockerEngine) -> None:
    process = subprocess.Popen(
        comparing.command("--no-report"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    _until(lambda: bool(engine.containers()))
    process.send_signal(signal.SIGKILL)
    process.wait()
    _until(lambda: not engine.containers())


def test_a_container_that_is_made_after_the_end_of_its_program_is_removed_too(engine: DockerEngine) -> None:
    """As when the program is killed right after it has asked for one."""
    image, name = engine.import_mariadb(), "dbdyno-late"
    killed = (
        "import os, signal; from dbdyno.servers.kinds.docker import Guardian\n"
        f"guardian = Guardian({name!r}); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", killed], env=environment(), check=False)
    assert ended.returncode == -signal.SIGKILL
    engine.docker("create", "--name", name, image, "/bin/true")
    _until(lambda: not engine.containers())


def _until(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_without_the_extra_it_is_one_sentence(comparing: Comparing, engine: DockerEngine) -> None:
    """A Python that finds no package `docker`."""
    hidden = comparing.results / "hidden"
    (hidden / "docker").mkdir(parents=True, exist_ok=True)
    (hidden / "docker" / "__init__.py").write_text("raise ImportError('hidden')\n")
    surroundings = environment()
    answer = subprocess.run(
        [sys.executable, "-m", *comparing.command("--no-report")[2:]],
        capture_output=True,
        text=True,
        env={**surroundings, "PYTHONPATH": f"{hidden}{os.pathsep}{surroundings['PYTHONPATH']}"},
        check=False,
        timeout=300,
    )
    refused(
        answer, 2, "servers of kind docker need the Python package docker", "pip install 'dbdyno[docker]'"
    )


@pytest.mark.parametrize("product", ["mariadb", pytest.param("postgresql", marks=pytest.mark.long)])
def test_containers_are_restarted(product: str, engine: DockerEngine, workspace: Workspace) -> None:
    image = engine.import_mariadb() if product == "mariadb" else engine.import_postgresql()
    variables = SMALL if product == "mariadb" else POSTGRESQL_VARIABLES
    given = experiment("restart", kind="docker", product=product, image=image, variables=variables)
    finds, starts = two_groups(given, workspace)
    assert finds == FOUND["restart"]
    assert starts[0] < starts[1]
    assert engine.containers() == []


@pytest.mark.long
@pytest.mark.parametrize(("name", "told"), IMAGES.items())
def test_the_smoke_profile_runs_on_images(results: Path, engine: DockerEngine, name: str, told: str) -> None:
    """No registry is asked: another image takes the place of both."""
    assert told in smoke(results, name, *engine.for_examples())[-1]
    assert engine.containers() == []
