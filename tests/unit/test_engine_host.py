"""What runs on a host of a fleet: processes are read, stopped, and never outlive the interest in them."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dbdyno.fleet import carrier, engine_host, streams
from dbdyno.fleet.carrier import (
    Clock,
    EngineLost,
    Place,
    measure_clocks,
    wait_for,
    wait_for_all,
)
from dbdyno.fleet.cluster import LocalCarrier
from dbdyno.fleet.engine_host import Batch, EngineHost
from dbdyno.fleet.fleet_engine import name_on_host, read_files, replace_paths


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineHost]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with closing(EngineHost()) as one:
        yield one


def read_all(host: EngineHost, seconds: float = 5.0) -> tuple[list[bytes], int | None, str]:
    lines: list[bytes] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        batch = host.read(0.1)
        lines += batch.lines
        if batch.status is not None:
            return lines, batch.status, batch.stderr
    return lines, None, ""


def shell(host: EngineHost, script: str, plan: bytes = b"") -> None:
    host.start(["sh", "-c", script], plan, {"GREETING": "hello"}, None)


def test_every_line_is_read_once_and_then_the_status(host: EngineHost) -> None:
    shell(host, "read plan; echo $GREETING $plan; seq 1 1000; echo oops >&2; exit 3", b"the plan\n")
    lines, status, stderr = read_all(host)
    assert lines[0] == b"hello the plan\n"
    assert [int(line) for line in lines[1:]] == list(range(1, 1001))
    assert (status, stderr) == (3, "oops\n")


def test_an_engine_that_nobody_reads_is_killed(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_host, "UNREAD_S_MAX", 0.5)
    shell(host, "sleep 60")
    time.sleep(1.2)
    assert read_all(host)[1] == -9


def test_a_stopped_engine_may_write_its_last_records(host: EngineHost) -> None:
    shell(host, "trap 'echo last; exit 130' INT; echo ready; while :; do sleep 0.05; done")
    assert host.read(5.0).lines == [b"ready\n"]
    host.stop()
    assert read_all(host)[:2] == ([b"last\n"], 130)


def test_an_engine_that_does_not_stop_is_killed(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_host, "STOP_S_MAX", 0.3)
    shell(host, "trap '' INT; echo ready; while :; do sleep 0.05; done")
    host.read(5.0)
    host.stop()
    assert read_all(host)[1] == -9


def test_files_are_for_this_user_alone_and_replaced(host: EngineHost) -> None:
    paths = host.write_files({"etc/key.pem": b"secret", "etc/ca.pem": b"ca"})
    mode = stat.S_IMODE(Path(paths["etc/key.pem"]).stat().st_mode)
    assert (mode & 0o077, Path(paths["etc/key.pem"]).read_bytes()) == (0, b"secret")
    assert list(host.write_files({"other": b""})) == ["other"]
    assert not Path(paths["etc/key.pem"]).exists()
    host.close()
    assert not Path(paths["etc/key.pem"]).exists()


def test_a_program_is_installed_once(host: EngineHost) -> None:
    path = host.install("engine", b"#!/bin/sh\necho 7\n")
    assert subprocess.check_output([path]) == b"7\n"
    assert host.install("engine", b"#!/bin/sh\necho 7\n") == path
    assert host.install("engine", b"#!/bin/sh\necho 8\n") != path


def test_what_an_ended_process_has_left_is_removed(
    host: EngineHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / f"dbdyno-fleet-{os.geteuid()}"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = base / f"{ended.pid}-left"
    left.mkdir()
    with closing(EngineHost()):
        assert not left.exists()


def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    base = tmp_path / f"dbdyno-fleet-{os.geteuid()}"
    base.mkdir(mode=0o777)
    base.chmod(0o777)
    with closing(EngineHost()) as one:
        assert not Path(one.install("engine", b"")).is_relative_to(base)


def test_one_machine_has_one_clock() -> None:
    with closing(LocalCarrier()) as local:
        clocks = measure_clocks(local.place(3, 1))
        assert len(clocks) == 3
        assert all(abs(clock.offset_us) <= clock.round_trip_us < 1e6 for clock in clocks)


def test_a_call_that_is_not_answered_is_a_lost_engine() -> None:
    with closing(LocalCarrier()) as local:
        (place,) = local.place(1, 1)
        place.call("start", ["sleep", "60"], b"", {}, None)
        with pytest.raises(EngineLost, match=r"engine 1 was lost: it did not answer within 0\.1 s"):
            wait_for(place, place.call("read", 2.0), 0.1)


class SilentPlace(Place):
    """A place whose process is stopped: no call is answered."""

    name = host = "silent"

    def call(self, method: str, *arguments: object) -> Future[Any]:  # noqa: ARG002 — none is answered.
        return Future()


def test_a_place_that_answers_no_call_is_lost_long_before_the_limit_of_a_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(carrier, "PING_S", 0.1)
    monkeypatch.setattr(carrier, "LOST_S", 0.3)
    silent = SilentPlace()
    with closing(LocalCarrier()) as local:
        (place,) = local.place(1, 1)
        place.call("start", ["sleep", "60"], b"", {}, None)
        # A slow call is none of a lost place.
        assert wait_for(place, place.call("read", 1.0), 5.0).lines == []
        calls = [(place, place.call("read", 20.0)), (silent, silent.call("install"))]
        began = time.monotonic()
        with pytest.raises(EngineLost, match=r"silent was lost: no answer for 0\.3 s"):
            wait_for_all(calls, 60.0)
        assert time.monotonic() - began < 3.0
        assert (silent.is_lost, place.is_lost) == (True, False)


def test_an_engine_is_not_silent_before_the_load_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(streams, "time", SimpleNamespace(monotonic=lambda: now))
    sink = [lambda _line: None] * 2
    of_both = streams.Streams([SilentPlace()] * 2, io.BytesIO(), sink, [{}] * 2, drain_s=10.0)
    of_both.clocks = [Clock(0.0, 0.0)] * 2

    def write(engine: int, line: bytes) -> None:
        future: Future[Batch] = Future()
        future.set_result(Batch([line], None, ""))
        of_both._handle(engine, future)

    for engine in (0, 1):
        write(engine, b'{"type":"hello"}')
    # Both wait for a server that hangs. The load begins when it goes on, and the records of one come first.
    now = 4.0
    phase = b'{"type":"phase","data":{"at_us":0,"at_unix_us":1}}'
    write(0, phase)
    of_both._require_records(now)
    write(1, phase)
    now = 7.5
    write(0, b'{"type":"interval"}')
    with pytest.raises(EngineLost, match="it wrote no record for 3 s"):
        of_both._require_records(now)


def test_a_stopped_engine_is_killed_with_the_reason(
    host: EngineHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_host, "STOPPED_S_MAX", 0.3)
    shell(host, "kill -STOP $$; echo went on")
    assert read_all(host) == ([], -9, "its process was stopped (SIGSTOP)")


def test_a_call_that_fails_is_a_lost_engine_with_the_first_line_of_the_error() -> None:
    with closing(LocalCarrier()) as local:
        (place,) = local.place(1, 1)
        future: Future[None] = Future()
        future.set_exception(RuntimeError("The actor died.\n  class_name: EngineHost"))
        with pytest.raises(EngineLost, match=r"engine 1 was lost: The actor died\. All other"):
            wait_for(place, future)


def test_the_files_of_a_plan_are_found_and_renamed(tmp_path: Path) -> None:
    script, module, ca = tmp_path / "a.lua", tmp_path / "b.lua", tmp_path / "ca.pem"
    for path in (script, module, ca):
        path.write_text(path.name)
    plan: dict[str, Any] = {
        "target": {"tls": {"ca": str(ca)}, "endpoints": [{"unix": {"path": "/run/none.sock"}}]},
        "workload": {"script": {"path": str(script)}, "sql": "SELECT '/etc/passwd'"},
    }
    files = read_files(plan)
    assert sorted(files) == sorted(map(str, (script, module, ca)))
    moved = replace_paths(plan, lambda path: f"/host/{name_on_host(path)}")
    assert moved["target"]["tls"]["ca"] == f"/host{ca}"
    assert moved["target"]["endpoints"] == plan["target"]["endpoints"]
    assert moved["workload"] == {"script": {"path": f"/host{script}"}, "sql": "SELECT '/etc/passwd'"}
