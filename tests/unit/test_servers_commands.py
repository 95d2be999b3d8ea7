"""The user's own commands: how they start, how they end, and what they see."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psutil
import pytest

from dbdyno import waiting
from dbdyno.experiment.model import Experiment, Load, OltpWorkload, ServerSpec, Variant
from dbdyno.servers import open_server, user_commands
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.user_commands import RunningCommand
from dbdyno.servers.workspace import Workspace

# A server that dbdyno does not start has no folder.
WORKSPACE = cast(Workspace, SimpleNamespace(run=""))
# Far above what anything here takes, on a busy machine too.
TIME_LIMIT_S = 60.0


def script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + TIME_LIMIT_S
    while runs(pid):
        assert time.monotonic() < deadline, f"{pid} goes on"
        time.sleep(0.02)


def first_line(running: RunningCommand) -> str:
    """What it said first, as soon as it is there."""
    deadline = time.monotonic() + TIME_LIMIT_S
    # Another offset than the one at which the command writes.
    while b"\n" not in (said := os.pread(running._output.fileno(), 1000, 0)):
        assert time.monotonic() < deadline, said
        time.sleep(0.02)
    return said.decode().splitlines()[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo no interpreter\n", r"Exec format error \(a script names its interpreter"),
        ("#!/no/such/shell\n", r"No such file or directory \(the interpreter in its first line"),
    ],
)
def test_a_script_that_cannot_be_run_is_the_users_to_mend(tmp_path: Path, text: str, words: str) -> None:
    program = script(tmp_path / "hook", text)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ServerProblem, match=words) as caught:
        RunningCommand([program], {})
    assert repr(program) in caught.value.text
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    with pytest.raises(ServerProblem, match="embedded null byte"):
        RunningCommand(["echo", "a\0b"], {})


def test_what_a_command_leaves_running_is_the_users() -> None:
    """As the server that `start` has started in the background."""
    ended = user_commands.run(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"], {}, TIME_LIMIT_S)
    assert ended.failure() == ""
    pid = int(ended.output)
    assert runs(pid)
    os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)


@pytest.mark.parametrize("waits", ["wait", "exit 3"], ids=["it runs", "it has ended"])
def test_what_during_trial_has_started_ends_with_it(waits: str) -> None:
    """A shell has what it starts in the background ignore SIGINT."""
    running = RunningCommand(["sh", "-c", f"sleep 600 & echo $!; {waits}"], {}, endless=True)
    pid = int(first_line(running))
    assert runs(pid)
    if waits != "wait":
        os.waitid(os.P_PID, running._process.pid, os.WEXITED | os.WNOWAIT)
    ended = running.finish(TIME_LIMIT_S)
    assert ended.exit_status == (0 if waits == "wait" else 3)
    wait_for_end(pid)


def test_what_during_trial_has_started_may_put_its_house_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent ends at once, and its child has work still to do, as perf has."""
    monkeypatch.setattr(user_commands, "GRACE_S", TIME_LIMIT_S)
    child = script(
        tmp_path / "child",
        f"#!{sys.executable}\n"
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: (time.sleep(0.3), print('all written'), sys.exit()))\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n",
    )
    parent = f"import os, subprocess, time; subprocess.Popen([{child!r}]); time.sleep(600)"
    running = RunningCommand([sys.executable, "-c", parent], {}, endless=True)
    assert first_line(running) == "ready"
    assert running.finish(TIME_LIMIT_S).output == "ready\nall written\n"


def test_during_trial_ends_with_a_dbdyno_that_is_killed() -> None:
    program = (
        "import time\n"
        "from dbdyno.servers.user_commands import RunningCommand\n"
        "print(RunningCommand(['sleep', '600'], {}, endless=True)._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as dbdyno:
        assert dbdyno.stdout is not None
        pid = int(dbdyno.stdout.readline())
        assert runs(pid)
        dbdyno.kill()
    wait_for_end(pid)


def test_a_command_gets_only_the_listed_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ("DBDYNO_PASSWORD", "MYSQL_PWD", "PGPASSWORD", "DBDYNO_MINE", "OF_ANOTHER", "CLOUD_TOKEN")
    passed = ("DBDYNO_TRACEBACK", "LC_TIME", "SSH_AUTH_SOCK")
    for name in (*secrets, *passed):
        monkeypatch.setenv(name, "4711")
    url = "mysql://u@h/db"
    listed = ("SSH_AUTH_SOCK", "NOT_SET", "DBDYNO_PASSWORD")
    own = ServerSpec(
        kind="command", url=url, password_env="DBDYNO_MINE", sample=("env",), hook_environment=listed
    )
    other = ServerSpec(kind="remote", url=url, password_env="OF_ANOTHER")
    experiment = Experiment(
        name="secrets",
        workloads=(OltpWorkload(name="oltp_point_select"),),
        load=Load(connections=(1,), duration_s=1.0),
        variants=(Variant(name="own", server=own), Variant(name="other", server=other)),
    )
    server = open_server(experiment.variants[0], WORKSPACE, None, experiment.secrets())
    seen = {name for name, value in server.process().items() if value == 4711}
    assert seen == set(passed)


def test_a_server_that_does_not_answer_after_its_start_command_has_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dbdyno.waiting.FIRST_S", 0.0)
    with socket.socket() as unused:
        # Bound and not listening: connections are refused, and no other program gets the port.
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        url = f"mysql://u@127.0.0.1:{port}/d"
        spec = ServerSpec(kind="command", url=url, start=("true",), stop=("true",), start_timeout_s=4.0)
        reports: list[str] = []
        server = open_server(Variant(name="a", server=spec), WORKSPACE, None, ())
        with (
            waiting.reported_by(reports.append),
            pytest.raises(ServerProblem, match=r"a: .* the server did not answer within 4 s") as caught,
        ):
            server.start()
    assert "start_timeout" in caught.value.fix
    assert any("waiting for the server of a to answer after its start command" in one for one in reports)
