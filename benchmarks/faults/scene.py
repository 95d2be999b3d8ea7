"""One run of dbdyno under observation: what it prints, its processes, and the phase that it is in."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from dbdyno.binary import COMPAT, ENGINE

from .experiment import NAME, PLANNED
from .proxy import Proxy
from .reached import find_server

ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.01
SERVERS = ("mariadbd", "mysqld", "postgres")


class NothingToHit(Exception):  # noqa: N818 — no error: the cell has no meaning.
    """What the fault hits does not exist in this phase."""


@dataclass
class Scene:
    """What a fault can reach. `Scene.start` starts dbdyno, after `Fault.before` has changed the scene."""

    results: Path
    experiment: Path
    # Directories and proxies of servers that dbdyno does not start.
    directories: Sequence[str] = ()
    proxies: Sequence[Proxy] = ()
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    # Whether dbdyno gets a terminal of its own as standard input.
    has_terminal: bool = False
    # A command that starts dbdyno, such as nohup.
    prefix: Sequence[str] = ()
    stdout: str = "stdout"
    # Calls that undo the fault, the last one first.
    undo: list[Callable[[], None]] = field(default_factory=list)
    # Time and text of each line on standard error.
    lines: list[tuple[float, str]] = field(default_factory=list)
    terminal: int = -1
    # Runs that existed before.
    known: set[Path] = field(default_factory=set)
    # The phase in which the fault happens.
    phase: str = ""
    # Trials of the whole run.
    planned: int = PLANNED

    def start(self, *arguments: str) -> None:
        """Start `dbdyno compare`."""
        command = [*self.prefix, sys.executable, "-m", "dbdyno", "compare", str(self.experiment)]
        # Faults do not need a quiet machine.
        command += ["--results", str(self.results), "--share-machine", *arguments]
        self.environment["PYTHONPATH"] = str(ROOT / "lab")
        self.known = self.known if "--resume" in arguments else set(self._runs())
        stdin = subprocess.DEVNULL
        if self.has_terminal:
            self.terminal, stdin = pty.openpty()
        with self.stdout_path().open("wb") as out:
            self.lab = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=self.environment,
                start_new_session=True,
                # It only makes a system call.
                preexec_fn=_take_terminal if self.has_terminal else None,  # noqa: PLW1509
            )
        if self.has_terminal:
            os.close(stdin)
        self.lines = []
        self._reader = threading.Thread(target=self._read, args=(self.lab,), daemon=True)
        self._reader.start()

    def stdout_path(self) -> Path:
        """The file of standard output."""
        return self.results / self.stdout

    def _read(self, lab: subprocess.Popen[str]) -> None:
        assert lab.stderr is not None
        try:
            for line in lab.stderr:
                self.lines.append((time.monotonic(), line.rstrip()))
        except (OSError, ValueError):
            # A fault has closed the pipe.
            return

    def close_stderr(self) -> None:
        """End the reader of standard error, as a pager that is quit."""
        assert self.lab.stderr is not None
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, self.lab.stderr.fileno())
        os.close(nothing)

    def end(self, limit_s: float) -> int | None:
        """The exit code of dbdyno; None if it did not end and was killed."""
        try:
            code = self.lab.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.lab.kill()
            self.lab.wait()
            return None
        finally:
            self._reader.join(2.0)
        return code

    def reach(self, phase: str, limit_s: float) -> bool:
        """Wait until dbdyno is in that phase; False if it ended, or the time is over, before."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if self.is_in(phase):
                return True
            if self.lab.poll() is not None:
                return False
            time.sleep(POLL_S)
        return False

    def is_in(self, phase: str) -> bool:
        """Whether dbdyno has begun that phase, by what it has printed and stored."""
        printed = [text for _, text in self.lines]
        match phase:
            case "rehearse":
                return any("to verify settings" in line for line in printed)
            case "prepare":
                return any(
                    line.startswith("loading ") or "loading the data again" in line for line in printed
                )
            case "restore":
                # The second group, so that there is a finished trial to lose.
                groups = ("restoring the data", "loading the data again", "restarting the server")
                return sum(any(one in line for one in groups) for line in printed) >= 2
            case "warm-up" | "measure":
                return self._trial_phase(1 if phase == "measure" else 0)
            case "judge":
                return any(line.startswith("done in ") for line in printed)
            case "report":
                path = self.run()
                return path is not None and (path / "verdict.json").exists() and self.is_in("judge")
        raise AssertionError(phase)

    def _trial_phase(self, number: int) -> bool:
        path = self.run()
        if path is None:
            return False
        events = path / "trials" / "0002" / "events.jsonl"
        try:
            content = events.read_bytes()
        except OSError:
            return False
        name = (b'"warmup"', b'"measure"')[number]
        return any(b'"type":"phase"' in line and name in line for line in content.splitlines())

    def _runs(self) -> list[Path]:
        return sorted(path.parent for path in (self.results / NAME).glob("*/experiment.json"))

    def run(self) -> Path | None:
        """The folder of this run; None before it exists."""
        runs = [path for path in self._runs() if path not in self.known]
        return runs[-1] if runs else None

    def finished(self) -> dict[int, str]:
        """Index and status of each finished trial, as stored."""
        found = {}
        path = self.run()
        for file in path.glob("trials/*/trial.json") if path else ():
            meta = json.loads(file.read_text())
            if meta["status"] == "done":
                found[int(meta["index"])] = f"{meta['started_unix_us']}"
        return found

    def descendants(self) -> list[psutil.Process]:
        """All processes below dbdyno."""
        try:
            return list(psutil.Process(self.lab.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return []

    def engines(self) -> list[psutil.Process]:
        """Running load generators."""
        return [
            one for one in self.descendants() if _words(one)[:1] and _words(one)[0].endswith((ENGINE, COMPAT))
        ]

    def wait_for(
        self, find: Callable[[], list[psutil.Process]], limit_s: float = 5.0
    ) -> list[psutil.Process]:
        """The processes that `find` returns, as soon as there are any. Raises NothingToHit."""
        deadline = time.monotonic() + limit_s
        while not (processes := find()):
            if time.monotonic() > deadline or self.lab.poll() is not None:
                raise NothingToHit(f"{find.__name__}: no such process runs in this phase")
            time.sleep(POLL_S)
        return processes

    def current(self, phase: str) -> int:
        """The position of the variant whose server is in use: the first one's before the first trial, later
        that of the second trial.
        """
        path = self.run()
        if phase in ("rehearse", "prepare") or path is None:
            return 0
        return ("a", "b").index(json.loads((path / "schedule.json").read_text())[1]["variant"])

    def servers(self) -> list[psutil.Process]:
        """The running server with its child processes: one that dbdyno has started, or the existing one."""
        if self.directories:
            first = [one for one in (find_server(self.directories[self.current(self.phase)]),) if one]
        else:
            first = [
                one
                for one in self.descendants()
                if any(name in word for name in SERVERS for word in _words(one)[:4])
            ]
        return list(dict.fromkeys(process for one in first for process in (one, *_children(one))))


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.NoSuchProcess:
        return []


def _take_terminal() -> None:
    """Make standard input the controlling terminal of the new session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
