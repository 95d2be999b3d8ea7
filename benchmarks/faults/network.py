"""Connections that are reset, cut, slow or half open, by a proxy between dbdyno and a server."""

from __future__ import annotations

import threading
from collections.abc import Callable

from .fault import PRIVATE, WITH_SERVER, Fault
from .namespaces import PORT_RANGE, enter
from .proxy import SLOW_S, Mode
from .scene import Scene

CUT_S = 1.0
LOCAL = dict.fromkeys(PRIVATE, "there is no network between dbdyno and a server that it starts")
NARROW = "61000\t61001"


def _set(mode: Mode) -> Callable[[Scene], None]:
    def inject(scene: Scene) -> None:
        for proxy in scene.proxies:
            proxy.mode = mode

    return inject


def _reset(scene: Scene) -> None:
    for proxy in scene.proxies:
        proxy.reset()


def _cut(scene: Scene) -> None:
    """Cut packets for a second; later connections are whole."""
    _set("cut")(scene)
    threading.Timer(CUT_S, _set("pass"), [scene]).start()


def _exhaust_ports(scene: Scene) -> None:
    before = PORT_RANGE.read_text()
    PORT_RANGE.write_text(NARROW)

    def undo() -> None:
        PORT_RANGE.write_text(before)

    scene.undo.append(undo)


FAULTS = [
    Fault("reset", "every connection is reset once (RST)", _reset, never={**WITH_SERVER, **LOCAL}),
    Fault(
        "cut",
        f"for {CUT_S:g} s the next packet of every connection is cut in half, then the connection closes",
        _cut,
        never={**WITH_SERVER, **LOCAL},
    ),
    Fault(
        "half-open",
        "connections stay open, but no byte arrives any more",
        _set("drop"),
        never={**WITH_SERVER, **LOCAL},
    ),
    Fault(
        "slow",
        f"every packet takes {SLOW_S * 1000:.0f} ms longer",
        _set("slow"),
        # The run goes on, and loading many rows takes long.
        limit_s=180.0,
        never={**WITH_SERVER, **LOCAL},
    ),
    Fault(
        "no-ports",
        "no local port is free for further connections",
        _exhaust_ports,
        never={**WITH_SERVER, "docker": "the engine of the containers has another network"},
        missing=enter,
    ),
]
