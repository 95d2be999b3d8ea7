"""What a server has used, on a process whose every switch, byte and second is known from another side."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from dbdyno.servers.usage import Usage, host

# Does what each line of its input says, and answers when it is done.
SERVANT = """
import os, sys, threading, time
def rest(times):
    for _ in range(times):
        time.sleep(0.0005)
def child(times):
    pid = os.fork()
    if pid == 0:
        rest(times); end = time.process_time() + 0.2
        while time.process_time() < end: pass
        os._exit(0)
    os.waitpid(pid, 0)
for line in sys.stdin:
    word, number = line.split()
    if word == "thread":
        thread = threading.Thread(target=rest, args=(int(number),)); thread.start(); thread.join()
    elif word == "stay":
        held = threading.Event()
        def work():
            rest(int(number)); held.set(); time.sleep(600)
        threading.Thread(target=work, daemon=True).start(); held.wait()
    elif word == "child":
        child(int(number))
    elif word == "write":
        with open(sys.argv[1], "wb") as file:
            file.write(b"x" * int(number)); file.flush(); os.fsync(file.fileno())
    elif word == "spin":
        end = time.process_time() + float(number)
        while time.process_time() < end: pass
    print(word, flush=True)
"""


class Servant:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def do(self, order: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == order.split(maxsplit=1)[0]


@contextmanager
def serving(folder: Path) -> Iterator[Servant]:
    command = [sys.executable, "-c", SERVANT, str(folder / "written")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Servant(process)
        finally:
            process.kill()


@pytest.fixture
def servant(tmp_path: Path) -> Iterator[Servant]:
    with serving(tmp_path) as one:
        one.do("rest 0")
        yield one


@pytest.mark.alone
def test_switches_of_every_thread_that_lives_are_counted(servant: Servant) -> None:
    usage = Usage(servant.process.pid)
    before = usage.read()
    servant.do("stay 400")
    after = usage.read()
    switched = after["context_switches_voluntary"] - before["context_switches_voluntary"]
    # Each rest gives the CPU away once.
    assert 400 <= switched < 1000
    assert after["threads"] == before["threads"] + 1
    assert after["context_switches"] == (
        after["context_switches_voluntary"] + after["context_switches_involuntary"]
    )


def test_threads_that_end_are_remembered(servant: Servant) -> None:
    usage = Usage(servant.process.pid)
    usage.read()
    servant.process.stdin.write("thread 2000\n")  # type: ignore[union-attr]
    servant.process.stdin.flush()  # type: ignore[union-attr]
    # Looked at while it lives, as the run does once a second.
    while (seen := usage.watch())["threads"] < 2 or seen["context_switches"] < 500:
        assert servant.process.poll() is None
    assert servant.process.stdout.readline() == "thread\n"  # type: ignore[union-attr]
    # Joined it may still be ending.
    while (after := usage.read())["threads"] > 1:
        assert servant.process.poll() is None
    assert after["threads_ended"] == 1
    # All it had done when it was last seen.
    assert after["context_switches"] >= seen["context_switches"] >= 500


def test_children_count_while_they_live_and_when_they_are_gone(servant: Servant) -> None:
    usage = Usage(servant.process.pid)
    before = usage.read()
    servant.do("child 10")
    after = usage.read()
    # Its CPU time is the parent's once it is reaped: counted, and counted once.
    used = sum(after[name] - before[name] for name in ("cpu_user_s", "cpu_system_s"))
    assert 0.15 <= used < 0.6
    assert after["processes"] == 1


def test_cpu_time_agrees_with_another_reader(servant: Servant) -> None:
    usage = Usage(servant.process.pid)
    servant.do("spin 0.3")
    use, other = usage.read(), psutil.Process(servant.process.pid).cpu_times()
    assert use["cpu_user_s"] == pytest.approx(other.user, abs=0.02)
    assert use["cpu_system_s"] == pytest.approx(other.system, abs=0.02)


def test_bytes_written_to_storage(servant: Servant, tmp_path: Path) -> None:
    usage = Usage(servant.process.pid)
    before, machine = usage.read(), host(tmp_path)
    servant.do("write 5000000")
    after, later = usage.read(), host(tmp_path)
    written = after["write_bytes"] - before["write_bytes"]
    assert 5_000_000 <= written < 6_000_000
    assert after["write_calls"] > before["write_calls"]
    # The device of the folder, where there is one, has written it as well.
    if "disk_write_bytes" in machine:
        assert later["disk_write_bytes"] - machine["disk_write_bytes"] >= 5_000_000
    assert later["host_switches"] > machine["host_switches"]


def test_a_server_that_is_gone_has_used_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert Usage(process.pid).read() == {}


@pytest.mark.alone
def test_waiting_for_a_cpu_is_told(servant: Servant, tmp_path: Path) -> None:
    """Two that want the same CPU: what one uses the other waits for."""
    cpu = min(os.sched_getaffinity(0))
    with serving(tmp_path) as rival:
        for one in (servant, rival):
            os.sched_setaffinity(one.process.pid, {cpu})
        usage = Usage(servant.process.pid)
        before = usage.read()
        rival.process.stdin.write("spin 60\n")  # type: ignore[union-attr]
        rival.process.stdin.flush()  # type: ignore[union-attr]
        while psutil.Process(rival.process.pid).cpu_times().user < 0.1:
            time.sleep(0.01)
        servant.do("spin 0.3")
        after = usage.read()
    assert after["cpu_wait_s"] - before["cpu_wait_s"] > 0.05
