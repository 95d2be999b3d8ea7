"""The terminal of a command is closed (SIGHUP): it ends as by Ctrl-C, and goes on under nohup."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import sys
import termios
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.end_to_end.comparing import TWO_CONNECTIONS, environment, left_running, wait_until
from tests.end_to_end.test_run_command import url

from dbdyno.servers.kinds.local import LocalServer

TIME_LIMIT_S = 120.0


def commands(server: LocalServer, folder: Path) -> dict[str, list[str]]:
    """`run` and `compare` on one server."""
    address = server.address()
    (folder / "password").write_text(address.password)
    (folder / "password").chmod(0o600)
    text = TWO_CONNECTIONS.replace('"500ms"', '"2s"')
    for name in ("a", "b"):
        text += f'[[variant]]\nname = "{name}"\n[variant.server]\nkind = "remote"\n'
        text += f'url = "{url(address)}"\npassword_file = "{folder}/password"\n'
    (folder / "closed.toml").write_text(text)
    options = [
        "--connections",
        "2",
        "--time",
        "2s",
        "--warmup",
        "200ms",
        "--table-size",
        "500",
        "--workers",
        "1",
    ]
    target = ["--target", url(address), "--password-file", str(folder / "password")]
    return {
        "run": ["run", "oltp_read_write", *options, *target],
        "compare": ["compare", str(folder / "closed.toml"), "--no-report"],
    }


def take_terminal() -> None:
    """Make standard input the controlling terminal of the new session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def close_terminal(words: Sequence[str], results: Path) -> tuple[int, str]:
    """Run a command in a terminal that is closed while the load is measured: exit code, standard error."""
    terminal, stdin = pty.openpty()
    process = subprocess.Popen(
        words,
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 — it only makes a system call.
    )
    os.close(stdin)
    limit = threading.Timer(TIME_LIMIT_S, process.kill)
    limit.start()
    wait_until(
        lambda: any(b'"measure"' in path.read_bytes() for path in results.glob("*/*/trials/*/events.jsonl")),
        "the load begins",
    )
    os.close(terminal)
    assert process.stderr is not None
    errors = process.stderr.read()
    limit.cancel()
    return process.wait(), errors


@pytest.mark.parametrize("command", ["run", pytest.param("compare", marks=pytest.mark.long)])
@pytest.mark.parametrize("nohup", [False, True], ids=["plain", "nohup"])
def test_a_closed_terminal_ends_a_command_unless_it_runs_under_nohup(
    mariadb: LocalServer, command: str, nohup: bool, tmp_path: Path
) -> None:
    words = [
        *(["nohup"] if nohup else []),
        sys.executable,
        "-m",
        "dbdyno",
        *commands(mariadb, tmp_path)[command],
    ]
    code, errors = close_terminal([*words, "--share-machine", "--results", str(tmp_path)], tmp_path)
    assert code == (0 if nohup else 130), errors
    assert ("interrupted" in errors) != nohup, errors
    assert "Traceback" not in errors
    assert left_running(tmp_path) == []
    ((tables,),) = mariadb.query(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'dbdyno'"
    )
    assert tables == 0
