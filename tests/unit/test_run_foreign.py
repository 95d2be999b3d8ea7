"""Foreign load, from a /proc that is made here and from processes that run."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from dbdyno.experiment.model import Client, Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.run.foreign import (
    ForeignMeter,
    Reading,
    Scope,
    create_meter,
    foreign_load,
    parse_cpus,
    parse_process,
)
from dbdyno.server_record import ForeignRecord
from dbdyno.servers import usage
from dbdyno.servers.kinds.process import online_cpus, server_cpus
from dbdyno.servers.server import Description

RECORDED = Path(__file__).parent / "recorded_proc"
KERNEL = 0x00200000
# A process that uses all of a CPU, and one that does so in children of its own that end.
BURN = "while True: pass"
BURN_IN_CHILDREN = """
import subprocess, sys
while True:
    subprocess.run([sys.executable, "-S", "-c", "import time\\nwhile time.process_time() < 0.05: pass"])
"""


class Proc:
    """A /proc whose every counter is known; times in seconds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.at_s = 100.0

    def cpus(self, *lines: dict[str, float]) -> None:
        """CPU lines: user, idle, iowait, irq, softirq, steal."""
        names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
        ticks = [[round(line.get(name, 0.0) * usage.TICKS_PER_S) for name in names] for line in lines]
        total = [sum(column) for column in zip(*ticks, strict=True)]
        rows = [("cpu ", total), *((f"cpu{number}", row) for number, row in enumerate(ticks))]
        text = "".join(f"{name} {' '.join(map(str, row))} 0 0\n" for name, row in rows)
        (self._path / "stat").write_text(text + "intr 1 2 3\nctxt 5\n")

    def process(
        self, pid: int, name: str, used: float, *, parent: int = 1, waited: float = 0.0, flags: int = 0
    ) -> None:
        words = ["0"] * 50
        words[0], words[1], words[6] = "S", str(parent), str(flags)
        words[11] = str(round(used * usage.TICKS_PER_S))
        words[14] = str(round(waited * usage.TICKS_PER_S))
        words[19] = str(pid)
        folder = self._path / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(words)}\n")

    def end(self, pid: int) -> None:
        (self._path / str(pid) / "stat").unlink()


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proc:
    made = Proc(tmp_path)
    monkeypatch.setattr(usage, "PROC", tmp_path)
    monkeypatch.setattr(time, "monotonic", lambda: made.at_s)
    # Numbers of processes that are made here may belong to real ones.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0})
    return made


def measured(meter: ForeignMeter, proc: Proc, change: Any) -> ForeignRecord:
    begin = meter.read()
    proc.at_s += 10.0
    change()
    found = meter.foreign_load(begin, meter.read())
    assert found is not None
    return found


def test_busy_time_that_is_not_ours_is_foreign(proc: Proc) -> None:
    """Two CPUs, 10 s: 12 s busy, of which server and its children 5, dbdyno and its engine 3, a kernel thread
    1: 3 of 20 s are left."""
    proc.cpus({"user": 50.0, "idle": 40.0}, {"user": 10.0, "idle": 80.0})
    for pid, name, parent in ((10, "mariadbd", 1), (20, "dbdyno", 1), (21, "dbdyno-engine", 20)):
        proc.process(pid, name, 7.0, parent=parent)
    proc.process(11, "backend", 1.0, parent=10)
    proc.process(30, "cc1plus (x) y", 2.0)
    proc.process(2, "kworker", 1.0, flags=KERNEL)

    def change() -> None:
        proc.cpus({"user": 58.0, "idle": 42.0}, {"user": 14.0, "idle": 84.0, "iowait": 2.0})
        proc.process(10, "mariadbd", 10.0, waited=2.0)
        proc.end(11)
        proc.process(12, "backend", 1.0, parent=10)
        proc.process(20, "dbdyno", 8.0)
        proc.process(21, "dbdyno-engine", 9.0, parent=20)
        proc.process(30, "cc1plus (x) y", 4.6)
        proc.process(2, "kworker", 2.0, flags=KERNEL)

    found = measured(ForeignMeter(frozenset({0, 1}), {10, 20}), proc, change)
    assert found == {
        "share": 0.15,
        "steal": 0.0,
        "unattributed": 0.02,
        "cpus": "0-1",
        "processes": [{"name": "cc1plus (x) y", "share": 0.13}],
    }


def test_another_server_of_the_same_name_is_foreign(proc: Proc) -> None:
    """Neither is a child of dbdyno, as with containers: the process number tells them apart."""
    proc.cpus({"idle": 0.0})
    proc.process(10, "mariadbd", 5.0)
    proc.process(11, "mariadbd", 5.0)

    def change() -> None:
        proc.cpus({"user": 9.0, "idle": 1.0})
        proc.process(10, "mariadbd", 12.0)
        proc.process(11, "mariadbd", 7.0)

    found = measured(ForeignMeter(frozenset({0}), {10}), proc, change)
    assert (found["share"], found["processes"]) == (0.2, [{"name": "mariadbd", "share": 0.2}])


def test_other_cpus_do_not_count_and_noise_is_never_negative(proc: Proc) -> None:
    proc.cpus({"idle": 1.0}, {"user": 1.0})
    proc.process(10, "mariadbd", 1.0)

    def change() -> None:
        proc.cpus({"user": 3.99, "idle": 7.0}, {"user": 11.0})
        proc.process(10, "mariadbd", 5.01)

    found = measured(ForeignMeter(frozenset({0}), {10}), proc, change)
    assert found == {"share": 0.0, "steal": 0.0, "unattributed": 0.0, "cpus": "0", "processes": []}


def test_time_that_the_hypervisor_took_is_foreign_and_named(proc: Proc) -> None:
    proc.cpus({"idle": 1.0})
    proc.process(10, "mariadbd", 1.0)

    def change() -> None:
        proc.cpus({"user": 3.0, "idle": 5.5, "steal": 2.5})
        proc.process(10, "mariadbd", 4.0)

    found = measured(ForeignMeter(frozenset({0}), {10}), proc, change)
    assert (found["share"], found["steal"]) == (0.25, 0.25)


@pytest.mark.parametrize(("irq_before", "share"), [(0.0, 0.2), (5.0, 0.0)])
def test_interrupts_are_left_out_where_the_kernel_keeps_them_apart(
    proc: Proc, irq_before: float, share: float
) -> None:
    """Where hard interrupts are counted, processes are not charged with any; elsewhere they are."""
    proc.cpus({"idle": 1.0, "irq": irq_before})

    def change() -> None:
        proc.cpus({"user": 0.0, "idle": 9.0, "irq": irq_before, "softirq": 2.0})

    assert measured(ForeignMeter(frozenset({0}), set()), proc, change)["share"] == share


def test_a_compiler_that_ends_is_told_by_the_one_that_waited_for_it(proc: Proc) -> None:
    """What a child had used before the first reading is no load between the two."""
    proc.cpus({"idle": 0.0})
    proc.process(30, "make", 1.0)
    proc.process(31, "sh", 0.5, parent=30)
    proc.process(32, "cc1plus", 6.0, parent=31)

    def change() -> None:
        proc.cpus({"user": 4.0, "idle": 6.0})
        proc.end(31)
        proc.end(32)
        proc.process(30, "make", 1.0, waited=10.5)

    found = measured(ForeignMeter(frozenset({0}), set()), proc, change)
    assert found["share"] == 0.4
    assert found["processes"] == [{"name": "make", "share": 0.4}]


def test_what_a_lost_child_had_used_is_no_load_of_the_one_that_waits_for_it(proc: Proc) -> None:
    """A process whose parent has ended is waited for further up, here by init."""
    proc.cpus({"idle": 0.0})
    proc.process(1, "init", 1.0, parent=0)
    proc.process(30, "make", 1.0)
    proc.process(31, "daemon", 6.0, parent=30)

    def change() -> None:
        proc.cpus({"user": 2.0, "idle": 8.0})
        proc.process(30, "make", 2.5)
        proc.end(31)
        proc.process(1, "init", 1.0, parent=0, waited=6.5)

    assert measured(ForeignMeter(frozenset({0}), set()), proc, change)["processes"] == [
        {"name": "make", "share": 0.15},
        {"name": "init", "share": 0.05},
    ]


def test_who_may_run_elsewhere_has_what_the_others_leave(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    """One CPU of two, 6 s of it foreign: 4 of the process that is held to it, and 2 of the 5 of one that is
    not."""
    monkeypatch.setattr(os, "sched_getaffinity", {30: {0}, 31: {0, 1}, 32: {1}}.__getitem__)
    proc.cpus({"idle": 0.0}, {"idle": 0.0})
    for pid, name in ((30, "held"), (31, "free"), (32, "elsewhere")):
        proc.process(pid, name, 1.0)

    def change() -> None:
        proc.cpus({"user": 6.0, "idle": 4.0}, {"user": 9.0, "idle": 1.0})
        for pid, name, used in ((30, "held", 5.0), (31, "free", 6.0), (32, "elsewhere", 7.0)):
            proc.process(pid, name, used)

    found = measured(ForeignMeter(frozenset({0}), set()), proc, change)
    assert found["share"] == 0.6
    assert found["processes"] == [{"name": "held", "share": 0.4}, {"name": "free", "share": 0.2}]


def test_a_kernel_that_does_not_count_is_not_read(proc: Proc) -> None:
    """Some sandboxes show a /proc/stat that stands still: all of it would look busy."""
    proc.cpus({"user": 3.0, "idle": 9.0})
    meter = ForeignMeter(frozenset({0}), set())
    begin = meter.read()
    proc.at_s += 10.0
    assert meter.foreign_load(begin, meter.read()) is None
    assert ForeignMeter(frozenset({0, 7}), set()).read() is None
    assert meter.foreign_load(None, begin) is None


def test_the_load_beside_a_server_that_ended_is_not_known(proc: Proc) -> None:
    """Its 5 s are in no file of /proc any more, and look like those of others."""
    proc.cpus({"idle": 0.0})
    proc.process(10, "mariadbd", 1.0)
    meter = ForeignMeter(frozenset({0}), {10, 99})
    begin = meter.read()
    proc.at_s += 10.0
    proc.cpus({"user": 5.0, "idle": 5.0})
    assert meter.foreign_load(begin, meter.read()) is not None
    proc.end(10)
    assert meter.foreign_load(begin, meter.read()) is None


DESCRIPTION = Description("mariadb", "11", {"pid": 4242}, {}, {}, {})


def metered(spec: ServerSpec, client: str | None) -> ForeignMeter | None:
    variant = Variant(name="a", server=spec)
    experiment = Experiment(
        name="metered",
        workloads=(OltpWorkload(name="oltp_read_only"),),
        load=Load(connections=(1,), duration_s=1.0),
        client=Client(cpus=client),
        variants=(variant,),
    )
    return create_meter(experiment, variant, DESCRIPTION)


@pytest.mark.parametrize(
    ("spec", "client", "cpus"),
    [
        (ServerSpec(cpus="0"), "1", frozenset({0, 1})),
        (ServerSpec(cpus="0"), None, server_cpus(None)),
        (ServerSpec(kind="docker", image="it", cpus="0"), "0", frozenset({0})),
        (ServerSpec(kind="docker", image="it"), "0", online_cpus()),
        # Far away (RFC 5737): the server has CPUs of its own.
        (ServerSpec(kind="remote", url="mysql://sbtest@192.0.2.1/sbtest"), "1", frozenset({1})),
        (ServerSpec(kind="remote", url="mysql://sbtest@127.0.0.1/sbtest"), "1", None),
    ],
    ids=["apart", "client anywhere", "container", "container anywhere", "far away", "reached here"],
)
def test_the_cpus_are_those_that_server_and_client_may_use(
    spec: ServerSpec, client: str | None, cpus: frozenset[int] | None
) -> None:
    found = metered(spec, client)
    assert (found.scope.cpus if found else None) == cpus


def recorded(name: str, scope: Scope) -> Reading:
    """A reading from texts of /proc: the time, the lines of /proc/stat, and those of /proc/PID/stat."""
    time_line, *lines = (RECORDED / name).read_text().splitlines()
    stat = [line for line in lines if line.startswith("cpu")]
    cpus, is_separate = parse_cpus("\n".join(stat))
    processes = {one.pid: one for one in map(parse_process, lines[len(stat) :])}
    used = {cpu: cpus[cpu] for cpu in scope.cpus}
    own = scope.own(processes)
    return Reading(float(time_line.split()[0]), used, is_separate, frozenset(cpus), processes, own)


def test_the_load_of_a_busy_machine_is_divided_among_its_processes() -> None:
    """Two texts of /proc of a machine that compiles while dbdyno (29145) measures a server (705)."""
    scope = Scope(frozenset({0, 1}), frozenset({29145}))
    begin, end = recorded("begin.txt", scope), recorded("end.txt", scope)
    assert end.own == {29145, 705, 1195}
    found = foreign_load(scope, begin, end, {})
    assert found is not None
    # Of 2 CPUs for 5.16 s: 0.01 s idle, 0.20 s of the hypervisor, 0.43 s of dbdyno and its children, 0.10 s
    # of kernel threads.
    capacity_s = 2 * (1836.64 - 1831.48)
    assert found["steal"] == pytest.approx(0.20 / capacity_s, abs=1e-4)
    assert found["share"] == pytest.approx((capacity_s - 0.01 - 0.43 - 0.10) / capacity_s, abs=1e-4)
    assert found["processes"][0]["name"] == "go"
    assert found["processes"][0]["share"] == pytest.approx(4.11 / capacity_s, abs=1e-4)
    # Without a process of its own everything but kernel threads is foreign.
    nothing = Scope(scope.cpus, frozenset())
    all_found = foreign_load(nothing, recorded("begin.txt", nothing), recorded("end.txt", nothing), {})
    assert all_found is not None
    assert all_found["share"] == pytest.approx(found["share"] + 0.43 / capacity_s, abs=1e-4)
    # A process that may not run on the CPUs has used none of them.
    (pid,) = (one.pid for one in end.processes.values() if one.name == "go")
    elsewhere = foreign_load(scope, begin, end, {pid: frozenset({7})})
    assert elsewhere is not None
    assert "go" not in {one["name"] for one in elsewhere["processes"]}
    assert elsewhere["unattributed"] > found["unattributed"]


NAME = "burner"


@contextmanager
def burning(folder: Path, program: str, cpu: int) -> Iterator[psutil.Popen]:
    """A busy process on `cpu` with a name that no other process has."""
    python = folder / NAME
    python.symlink_to(sys.executable)
    process = psutil.Popen([python, "-S", "-c", program])
    os.sched_setaffinity(process.pid, {cpu})
    try:
        # Its start is no part of the load.
        time.sleep(0.3)
        yield process
    finally:
        children = process.children(recursive=True)
        process.kill()
        process.wait()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()


def used_s(process: psutil.Popen) -> float:
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


@pytest.mark.parametrize("program", [BURN, BURN_IN_CHILDREN], ids=["itself", "in children"])
def test_a_busy_process_on_the_cpu_is_found_and_named(program: str, tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    meter = ForeignMeter(frozenset({cpu}), set())
    with burning(tmp_path, program, cpu) as process:
        begin, before = meter.read(), used_s(process)
        time.sleep(1.5)
        end, after = meter.read(), used_s(process)
        found = meter.foreign_load(begin, end)
    assert begin is not None
    assert end is not None
    assert found is not None
    named = {one["name"]: one["share"] for one in found["processes"]}
    share = (after - before) / (end.at_s - begin.at_s)
    assert share > 0.1
    # psutil sees a child's time when it has ended; one child more or less is under 0.1 s.
    assert named[NAME] == pytest.approx(share, abs=0.1)
    assert found["share"] > share - 0.1


def test_what_we_have_started_is_not_foreign(tmp_path: Path) -> None:
    """The same time seen with and without it among ours."""
    cpu = min(os.sched_getaffinity(0))
    with burning(tmp_path, BURN_IN_CHILDREN, cpu):
        ours, theirs = ForeignMeter(frozenset({cpu}), {os.getpid()}), ForeignMeter(frozenset({cpu}), set())
        begin = ours.read(), theirs.read()
        time.sleep(1.5)
        end = ours.read(), theirs.read()
        without, beside = ours.foreign_load(begin[0], end[0]), theirs.foreign_load(begin[1], end[1])
    assert without is not None
    assert beside is not None
    named = {one["name"]: one["share"] for one in beside["processes"]}
    assert named[NAME] > 0.1
    assert NAME not in {one["name"] for one in without["processes"]}
    assert beside["share"] - without["share"] > named[NAME] - 0.1


def test_without_file_handles_there_is_no_reading() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        reading = ForeignMeter(online_cpus(), {os.getpid()}).read()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert reading is None
