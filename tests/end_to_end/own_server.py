"""What a user may have for a server of his own: a program that starts it in the background, stops it, and
brings its data back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import SMALL

from dbdyno.servers.kinds.local import LocalServer

PROGRAM = """
import os, pathlib, signal, subprocess, sys, time
import psutil

folder, server, apart_s = pathlib.Path({folder!r}), {server!r}, {apart_s!r}
data, saved = {data!r}, {saved!r}
started, pid = folder / "started", folder / "pid"
def is_up():
    try:
        return psutil.Process(int(pid.read_text())).status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.NoSuchProcess):
        return False

if sys.argv[1] == "start" and is_up():
    # As systemctl, after dbdyno was killed.
    sys.exit()
elif sys.argv[1] == "start":
    # The first one belongs to the test start.
    starts = started.read_text().split() if started.exists() else []
    if len(starts) == 2:
        time.sleep(max(0.0, float(starts[1]) + apart_s - time.time()))
    process = subprocess.Popen(
        server, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    pid.write_text(str(process.pid))
    started.write_text(" ".join([*starts, str(time.time())]))
elif sys.argv[1] == "restore":
    if pid.exists():
        sys.exit("the server runs")
    subprocess.run(["rm", "-rf", data], check=True)
    subprocess.run(["cp", "-a", saved, data], check=True)
elif pid.exists():
    process = psutil.Process(int(pid.read_text()))
    process.send_signal(signal.SIGTERM)
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.02)
    pid.unlink()
"""


class Own:
    """A server that is started, stopped and restored by `argv(word)` alone."""

    def __init__(self, server: LocalServer, folder: Path, apart_s: float = 0.0) -> None:
        """`server` has made its data, and is stopped; they are what `restore` brings back. Between the second
        start and the third there are `apart_s` seconds.
        """
        identity = server.describe().identity
        server.stop(clean=True)
        command = [
            identity["binary"],
            "--no-defaults",
            *([f"--user={identity['user']}"] if os.geteuid() == 0 else []),
            f"--datadir={identity['datadir']}",
            f"--socket={identity['socket']}",
            f"--port={identity['port']}",
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            *(f"--{name}={value}" for name, value in SMALL.items()),
        ]
        data = identity["datadir"].rstrip("/")
        saved = f"{data}-saved"
        subprocess.run(["cp", "-a", data, saved], check=True)
        self._script, self._started = folder / "own.py", folder / "started"
        self._script.write_text(
            PROGRAM.format(folder=str(folder), server=command, apart_s=apart_s, data=data, saved=saved)
        )

    def argv(self, word: str) -> list[str]:
        return [sys.executable, str(self._script), word]

    def starts(self) -> int:
        return len(self._started.read_text().split())

    def close(self) -> None:
        subprocess.run(self.argv("stop"), check=True)
