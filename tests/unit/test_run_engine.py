"""The engine as a process: what dbdyno makes of one that misbehaves. End-to-end tests run the real one."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from dbdyno.binary import EngineProblem
from dbdyno.run import engine as engines
from dbdyno.run.engine import Engine, EngineResult, SlicedRun, find_engine
from dbdyno.run.engine_process import watched
from dbdyno.run.failures import describe_failure, describe_idle
from dbdyno.servers.server import Server, ServerProblem

PLAN = {
    "workload": {"name": "oltp_read_only"},
    "phases": {"warmup_us": 0, "measure_us": 1000},
    "start": {"on-command": {"start_timeout_us": 1000}},
}
END = '{"type":"end","data":{"reason":"time-limit","failure":null}}'


def broken(folder: Path, body: str) -> Engine:
    """An engine whose behaviour is `body`, in Python."""
    path = folder / "dbdyno-engine"
    path.write_text(f"#!{sys.executable}\nimport json, os, signal, sys, time\n{body}\n")
    path.chmod(0o755)
    return Engine(path)


def test_records_are_handed_over_and_the_clock_starts_after_ready(tmp_path: Path) -> None:
    engine = broken(
        tmp_path,
        "plan = json.loads(sys.stdin.readline())\n"
        "print(json.dumps({'type': 'hello', 'data': {'plan': plan}}), flush=True)\n"
        'print(\'{"type":"ready","data":{}}\', flush=True)\n'
        "assert json.loads(sys.stdin.readline())['type'] == 'start'\n"
        f"print('{END}', flush=True)",
    )
    told: list[Any] = []
    lines: list[bytes] = []
    result = engine.run(
        "run",
        PLAN,
        on_record=lambda record: told.append(record["type"]),
        on_line=lines.append,
        on_ready=lambda: told.append("counters"),
    )
    assert told == ["hello", "ready", "counters", "end"]
    assert result.done
    assert result.failure() == ""
    assert result.hello == {"plan": watched(PLAN)}
    assert all(line.endswith(b"}\n") for line in lines)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.stderr.write('the disk is on fire\\n'); sys.exit(4)", "the disk is on fire"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "ended by SIGKILL"),
        ("sys.exit(0)", "without its last record"),
        (
            "print(json.dumps({'type': 'end', 'data': {'reason': 'connect-failed', 'failure': "
            "{'text': 'refused', 'hint': 'start it'}}})); sys.exit(3)",
            "refused. start it",
        ),
    ],
)
def test_a_failure_is_told_in_the_words_nearest_to_it(tmp_path: Path, body: str, words: str) -> None:
    result = broken(tmp_path, body).run("run", PLAN)
    assert not result.done
    assert words in result.failure()


@pytest.mark.parametrize("line", ["words", "[1]", '{"type":"tick"}', "null"])
def test_a_line_that_is_no_record_ends_the_run(tmp_path: Path, line: str) -> None:
    engine = broken(tmp_path, f"print({line!r}, flush=True); time.sleep(60)")
    began = time.monotonic()
    with pytest.raises(EngineProblem, match="not a record"):
        engine.run("run", PLAN)
    assert time.monotonic() - began < 30


def test_an_engine_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "CONNECT_S_MAX", -70.5)
    pids = tmp_path / "pid"
    engine = broken(tmp_path, f"open({str(pids)!r}, 'w').write(str(os.getpid())); time.sleep(60)")
    with pytest.raises(EngineProblem, match="wrote nothing within"):
        engine.run("run", {**PLAN, "phases": {"warmup_us": 0, "measure_us": 1_000_000}})
    if pids.exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pids.read_text()), 0)


def test_ctrl_c_lets_the_engine_report_and_leaves_none_behind(tmp_path: Path) -> None:
    engine = broken(
        tmp_path,
        "def stop(*_):\n"
        '    print(\'{"type":"end","data":{"reason":"interrupted"}}\', flush=True)\n'
        "    sys.exit(130)\n"
        "signal.signal(signal.SIGINT, stop)\n"
        "print(json.dumps({'type': 'hello', 'data': {'pid': os.getpid()}}), flush=True)\n"
        "time.sleep(60)",
    )
    told: list[Any] = []

    def record(given: Any) -> None:
        told.append(given)
        if given["type"] == "hello":
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        engine.run("run", PLAN, on_record=record)
    assert told[-1]["data"] == {"reason": "interrupted"}
    with pytest.raises(ProcessLookupError):
        os.kill(told[0]["data"]["pid"], 0)


def test_a_missing_engine_is_told_with_the_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(EngineProblem) as caught:
        find_engine()
    assert str(tmp_path / "bin" / "dbdyno-engine") in caught.value.text
    assert str(tmp_path / "empty") in caught.value.text
    assert "make build" in caught.value.fix


def test_the_engine_beside_python_comes_before_the_one_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("venv", "elsewhere"):
        (tmp_path / folder).mkdir()
        broken(tmp_path / folder, "pass")
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "python"))
    assert find_engine() == tmp_path / "venv" / "dbdyno-engine"
    (tmp_path / "venv" / "dbdyno-engine").unlink()
    assert find_engine() == tmp_path / "elsewhere" / "dbdyno-engine"


def test_an_engine_that_cannot_be_started(tmp_path: Path) -> None:
    path = tmp_path / "dbdyno-engine"
    path.write_text("no program")
    with pytest.raises(EngineProblem, match="does not start"):
        Engine(path).run("run", PLAN)


# The start of an engine whose load is in slices, up to its first command.
SLICED = (
    "def write(kind, **data): print(json.dumps({'type': kind, 'data': data}))\n"
    "sys.stdin.readline(); write('ready'); sys.stdout.flush()\n"
    "sys.stdin.readline(); write('phase', at_unix_us=1); sys.stdout.flush()\n"
)


def test_an_engine_that_dies_between_slices_is_reported(tmp_path: Path) -> None:
    engine = broken(tmp_path, SLICED + "sys.stderr.write('the disk is on fire\\n'); sys.exit(4)")
    with SlicedRun(PLAN, binary=engine.binary) as run:
        run._process.wait(30)
        for number in (1, 2):
            with pytest.raises(EngineProblem, match="the disk is on fire"):
                run.run_slice(number, 1000)


def test_a_record_after_that_of_the_slice_does_not_hide_it(tmp_path: Path) -> None:
    slice_and_warning = (
        "sys.stdin.readline(); write('slice', slice=7); write('warning'); sys.stdout.flush()\n"
    )
    engine = broken(tmp_path, SLICED + slice_and_warning + "sys.stdin.readline()")
    with SlicedRun(PLAN, binary=engine.binary) as run:
        assert run.run_slice(7, 1000) == {"slice": 7}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("time.sleep(60)", "did not write its record slice within 0 s"),
        ("os.close(1); os.close(2); time.sleep(60)", "closed its output, but did not end within 0 s"),
    ],
)
def test_the_limits_of_a_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str
) -> None:
    engine = broken(tmp_path, SLICED + "sys.stdin.readline(); " + body)
    phases = {"measure_us": 0, "drain_us": 100_000}
    plan = {**PLAN, "phases": phases, "reconnect": {"give_up_us": 200_000}}
    with SlicedRun(plan, binary=engine.binary, transaction_s_max=0.1) as run:
        # A limit of silence would end a slice that is longer.
        monkeypatch.setattr(engines, "CONNECT_S_MAX", 0.0)
        assert run.pause_s_max == pytest.approx(0.4)
        monkeypatch.setattr(engines, "STOP_S_MAX", 0.4)
        with pytest.raises(EngineProblem, match=message):
            run.run_slice(1, 1000)


def test_ctrl_c_in_a_slice_lets_the_engine_report(tmp_path: Path) -> None:
    engine = broken(
        tmp_path,
        SLICED
        + "def stop(*_): write('end', reason='interrupted'); sys.stdout.flush(); sys.exit(130)\n"
        + "signal.signal(signal.SIGINT, stop); sys.stdin.readline(); time.sleep(60)",
    )
    lines: list[bytes] = []
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    with SlicedRun(PLAN, binary=engine.binary, on_line=lines.append) as run:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run.run_slice(1, 1000)
    assert b"interrupted" in lines[-1]
    assert run._process.returncode == 130


@pytest.mark.parametrize(("number", "failed_by"), [(99, "harness"), (24, "harness"), (111, "server")])
def test_a_connection_without_a_local_port_or_file_is_no_failure_of_the_server(
    number: int, failed_by: str
) -> None:
    text = f"127.0.0.1:3306: no connection (os error {number})"
    end = {"reason": "connect-failed", "failure": {"code": None, "class": "refused", "text": text}}
    result = EngineResult(3, None, end, "")
    # The server is not asked.
    failure = describe_failure(result, cast("Server", None))
    assert failure == {"reason": text, "failed_by": failed_by}


class Answering:
    """A server that answers dbdyno, or does not."""

    def __init__(self, answers: bool) -> None:
        self._answers = answers

    def query(self, _statement: str) -> list[Any]:
        if not self._answers:
            raise ServerProblem("connection refused")
        return []


@pytest.mark.parametrize(
    ("is_of_fleet", "answers", "failed_by"),
    [(False, True, "server"), (True, True, "harness"), (True, False, "server")],
)
def test_the_network_of_one_host_is_no_failure_of_the_server(
    is_of_fleet: bool, answers: bool, failed_by: str
) -> None:
    end = {"reason": "connection-lost", "failure": {"code": None, "text": "no answer"}}
    result = EngineResult(3, None, end, "", is_of_fleet=is_of_fleet)
    failure = describe_failure(result, cast("Server", Answering(answers)))
    assert failure == {"reason": "no answer", "failed_by": failed_by}


def test_a_run_without_a_transaction_has_failed() -> None:
    def failure(events: int, errors: dict[str, int]) -> dict[str, str]:
        end = {"reason": "done", "phases": {"measure": {"events": events, "errors": errors}}}
        return describe_idle(EngineResult(0, None, end, ""))

    assert failure(1, {}) == {}
    reason = "no transaction ended in the measurement (errors: 3 x protocol)"
    assert failure(0, {"protocol": 3}) == {"reason": reason, "failed_by": "server"}
