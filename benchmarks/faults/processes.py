"""Processes that are killed or stopped: the server, the load generator, and dbdyno itself."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable

import psutil

from .fault import WITH_ENGINE, WITH_SERVER, Fault
from .scene import Scene

PAUSE_S = 3.0
CONTAINER = {"docker": "a container's processes are not children of dbdyno; local servers show the same"}


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _kill_server(scene: Scene) -> None:
    _signal(scene.wait_for(scene.servers), signal.SIGKILL)


def _kill_engine(scene: Scene) -> None:
    _signal(scene.wait_for(scene.engines), signal.SIGKILL)


def _stop_server(scene: Scene) -> None:
    stopped = scene.wait_for(scene.servers)
    _signal(stopped, signal.SIGSTOP)
    scene.undo.append(lambda: _signal(stopped, signal.SIGCONT))


def _pause_server(scene: Scene) -> None:
    _stop_server(scene)
    threading.Timer(PAUSE_S, scene.undo[-1]).start()


def _end_lab(number: signal.Signals) -> Callable[[Scene], None]:
    return lambda scene: scene.lab.send_signal(number)


def _use_terminal(scene: Scene) -> None:
    scene.has_terminal = True


def _use_nohup(scene: Scene) -> None:
    scene.has_terminal, scene.prefix = True, ("nohup",)


def _close_terminal(scene: Scene) -> None:
    os.close(scene.terminal)


FAULTS = [
    Fault("server-killed", "the server gets SIGKILL", _kill_server, never={**WITH_SERVER, **CONTAINER}),
    Fault("engine-killed", "the load generator gets SIGKILL", _kill_engine, never=WITH_ENGINE),
    Fault("lab-killed", "dbdyno gets SIGKILL", _end_lab(signal.SIGKILL), ends_lab=True),
    Fault("lab-terminated", "dbdyno gets SIGTERM", _end_lab(signal.SIGTERM), ends_lab=True),
    Fault(
        "terminal-closed",
        "the terminal of dbdyno is closed (SIGHUP)",
        _close_terminal,
        before=_use_terminal,
        ends_lab=True,
    ),
    Fault(
        "nohup",
        "the terminal is closed while dbdyno runs under nohup",
        _close_terminal,
        before=_use_nohup,
    ),
    Fault(
        "server-paused",
        f"the server stops for {PAUSE_S:.0f} s (SIGSTOP, SIGCONT)",
        _pause_server,
        never={**WITH_SERVER, **CONTAINER},
    ),
    Fault(
        "server-stopped",
        "the server stops for good (SIGSTOP)",
        _stop_server,
        never={**WITH_SERVER, **CONTAINER},
    ),
]
